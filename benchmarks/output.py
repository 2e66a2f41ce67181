"""What matches cost: written into buffers, handed over as Arrow batches, with attributes.

*Into buffers* is the kernel: update and listing into buffers that are used again. *As Arrow
batches* is a run from record batches to record batches. Streams and windows are chosen so that an
event ends ten matches or more on average; what the update takes is a small part, and included.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from common import Figure, Settings, Task, Timing, duration, quotient, rate
from streams import Reading, compiled, feeding, one_batch, random_types

EVENTS = 1_000_000
EVENTS_WHEN_QUICK = 200_000
"""They end millions of matches, which no processor learns either."""
LISTED = {
    "A ; B ; C, W=50": ("A ; B ; C", "ABC", 50),
    "A+ ; B, W=10": ("A+ ; B", "AB", 10),
    "(A+ ; B)+ ; C, W=14": ("(A+ ; B)+ ; C", "ABC", 14),
}
GOALS = {"fixed": (350e6, 60e6), "variable": (100e6, 25e6)}
"""Matches per second into buffers and as Arrow batches, by whether lengths vary."""
STRESS_EVENTS = 2_000
ATTRIBUTES = "n: INT, v: DOUBLE, name: STRING"
TEXTS = 10_000


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    yield from listing(settings)
    yield from stress(settings)
    yield from attributes(settings)


# --- positions ------------------------------------------------------------------------------------


def listing(settings: Settings) -> Iterator[Figure]:
    """Matches per second, positions only."""
    readings: dict[str, Reading] = {}
    tasks = []
    events = EVENTS if settings.full else EVENTS_WHEN_QUICK
    for name, (formula, types, window) in LISTED.items():
        query = compiled(formula, types, window)
        batch = one_batch(type=random_types(types, events))
        readings[name] = Reading(query, batch, listed=True)
        tasks.append(Task(f"{name} buffers", readings[name].update, readings[name].rewind))
        tasks.append(Task(f"{name} arrow", partial(feeding, query, [batch], listed=True)))
    timings = settings.repeated(tasks, clock=time.process_time)
    for name, reading in readings.items():
        into_buffers, as_arrow = GOALS["variable" if "+" in name else "fixed"]
        matches = reading.matches
        context: dict[str, Any] = {"matches": matches, "positions": reading.positions}
        for way, goal in (("buffers", into_buffers), ("arrow", as_arrow)):
            said = "into buffers" if way == "buffers" else "as Arrow batches"
            timing = timings[f"{name} {way}"]
            yield rate(f"{name} {said}", "matches/s", matches, timing, goal, **context)


def stress(settings: Settings) -> Iterator[Figure]:
    """2,000 events of which the last ends all matches of A;B;C;D at once."""
    query = compiled("A ; B ; C ; D", "ABCDX", None)
    names = np.array(list("ABCX"))[np.random.default_rng(4).integers(0, 4, STRESS_EVENTS)]
    names[-1] = "D"
    batch = one_batch(type=pa.array(names))
    reading: list[Reading] = []

    def fresh() -> None:
        # Without a window, a second pass would end the matches of the first as well.
        reading[:] = [Reading(query, batch, listed=True, passes=0)]

    tasks = [
        Task("buffers", lambda: reading[0].update(), fresh),
        Task("arrow", partial(feeding, query, [batch], listed=True)),
    ]
    timings = settings.repeated(tasks, repetitions=settings.fewer, clock=time.process_time)
    context: dict[str, Any] = {"matches": reading[0].matches}
    yield duration("stress A;B;C;D into buffers", timings["buffers"], 0.1, **context)
    yield duration("stress A;B;C;D as Arrow batches", timings["arrow"], 1.0, **context)


# --- attributes -----------------------------------------------------------------------------------


def attributes(settings: Settings) -> Iterator[Figure]:
    """Three attributes for each label, beside Arrow's `take` of the same values.

    A value costs what a run with attributes takes longer than one with positions alone. `take` is
    given the rows of the very same events, one output batch after another.
    """
    events = attribute_events(EVENTS if settings.full else EVENTS_WHEN_QUICK)
    plain = compiled("A AS a ; B AS b ; C AS c", "ABC", 20)
    query = compiled("A AS a ; B AS b ; C AS c", "ABC", 20, ATTRIBUTES)
    rows = _rows(plain, events)
    values = 3 * sum(len(indices) for indices in rows)
    tasks = [
        Task("positions", partial(feeding, plain, [events.select(["type"])], listed=True)),
        Task("attributes", partial(feeding, query, [events], listed=True)),
        Task("take", partial(_take, events, rows)),
    ]
    timings = settings.repeated(tasks, clock=time.process_time)
    matches = len(rows) and values // 9
    context: dict[str, Any] = {"matches": matches, "values": values}
    for way in ("positions", "attributes"):
        name = f"A;B;C, W=20, as Arrow batches, {way}"
        yield rate(name, "matches/s", matches, timings[way], **context)
    gathered = Timing(tuple(_difference(timings)), timings["attributes"].calibrated)
    yield rate("attributes: values gathered", "values/s", values, gathered, **context)
    yield rate("attributes: Arrow's take", "values/s", values, timings["take"], **context)
    yield quotient(
        "attributes: cost of a value beside Arrow's take",
        gathered.rows,
        timings["take"].rows,
        **context,
    )


def attribute_events(events: int) -> pa.RecordBatch:
    """Equally likely types with an integer, a double and a text."""
    rng = np.random.default_rng(9)
    texts = pa.array([f"sensor {number}" for number in range(TEXTS)])
    return one_batch(
        type=random_types("ABC", events),
        n=pa.array(rng.integers(0, 1000, events).astype(np.int32)),
        v=pa.array(rng.random(events)),
        name=texts.take(pa.array(rng.integers(0, TEXTS, events))),
    )


def _rows(query: Any, events: pa.RecordBatch) -> list[pa.Array]:
    """The events under each label of each batch of matches."""
    found = []
    for batch in query.match_arrow([events.select(["type"])]):
        for label in ("a", "b", "c"):
            structs = pc.list_flatten(batch.column(label))
            found.append(structs.field("pos"))
    return found


def _take(events: pa.RecordBatch, rows: list[pa.Array]) -> None:
    for indices in rows:
        for name in ("n", "v", "name"):
            events.column(name).take(indices)


def _difference(timings: dict[str, Timing]) -> Iterator[float]:
    """The seconds that attributes take beyond positions, never less than a hundredth of all."""
    for more, less in zip(timings["attributes"].seconds, timings["positions"].seconds, strict=True):
        yield max(more - less, more / 100)

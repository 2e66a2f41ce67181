"""The kernel: the update alone, columns of which few events matter, and the plain record.

*Update alone* reads symbols that are there and lists nothing; *from columns* starts from Arrow
columns and computes the symbols. Both are steady states: the window is full. Queries of the record
of 2026-11-21 (`records/kernel-2026-11-21.jsonl`) are set beside it, ratio by ratio.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import NOMINAL, Figure, Settings, Task, Timing, quotient, rate
from streams import (
    QUERIES,
    Reading,
    compiled,
    feeding,
    one_batch,
    random_types,
    rare_types,
    seconds_apart,
)

WINDOWS = (100, 100_000)
CONDITIONS = "two conditions a type"
_EVENTS_PER_SECOND = {"Q1": 150e6, "Q2": 150e6, "Q3": 140e6, "Q4": 150e6, "Q5": 130e6, "Q6": 130e6}
GOALS = {
    **{f"update {q} W={w}": goal for q, goal in _EVENTS_PER_SECOND.items() for w in WINDOWS},
    **{
        f"update {q} W={w} seconds": 0.9 * goal
        for q, goal in _EVENTS_PER_SECOND.items()
        for w in WINDOWS
    },
    f"{CONDITIONS}, 1 % relevant": 0.6 * NOMINAL,
    f"{CONDITIONS}, 20 % relevant": 300e6,
}
SPARSE_EVENTS = 10_000_000
"""The same number in every mode: the calibration kernel reads as many, and fewer stay in caches."""
PLAIN_RECORD = Path(__file__).parent / "records" / "kernel-2026-11-21.jsonl"


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part.

    The repetitions of all of them are interleaved, so that a slow minute of the machine shows in
    every figure's spread and in none alone.
    """
    tasks = [task for name in QUERIES for task in update_tasks(name, settings)]
    tasks += [task for name in QUERIES for task in sparse_tasks(name)]
    tasks += condition_tasks()
    timings = settings.repeated(tasks)
    found: dict[str, Figure] = {}
    for task in tasks:
        events = settings.events if task.name.startswith("update") else SPARSE_EVENTS
        goal = GOALS.get(task.name)
        found[task.name] = rate(
            task.name, "events/s", events, timings[task.name], goal, events=events
        )
        yield found[task.name]
    for name in QUERIES:
        yield from costs(name, timings, settings)
    yield from beside_the_record(found)


# --- the update alone -----------------------------------------------------------------------------


def update_tasks(name: str, settings: Settings) -> Iterator[Task]:
    """The update of one query over equally likely types, for windows of events and of time."""
    formula, types = QUERIES[name]
    column = random_types(types, settings.events)
    timed = one_batch(type=column, ts=seconds_apart(settings.events))
    for window in WINDOWS:
        query = compiled(formula, types, window)
        reading = Reading(query, one_batch(type=column), listed=False)
        yield Task(f"update {name} W={window}", reading.update, reading.rewind)
        query = compiled(formula, types, f"{window} SECONDS [ts]", "ts: TIMESTAMP")
        reading = Reading(query, timed, listed=False)
        yield Task(f"update {name} W={window} seconds", reading.update, reading.rewind)


def costs(name: str, timings: dict[str, Timing], settings: Settings) -> Iterator[Figure]:
    """What a long window costs beside a short one, and a window of time beside one of events."""
    short, long = WINDOWS
    for unit in ("", " seconds"):
        yield quotient(
            f"cost of W={long}{unit} beside W={short}{unit}, {name}",
            timings[f"update {name} W={long}{unit}"].rows,
            timings[f"update {name} W={short}{unit}"].rows,
            1.1,
            events=settings.events,
        )
    for window in WINDOWS:
        yield quotient(
            f"cost of W={window} seconds beside events, {name}",
            timings[f"update {name} W={window} seconds"].rows,
            timings[f"update {name} W={window}"].rows,
            1.1,
            events=settings.events,
        )


# --- few events that matter -----------------------------------------------------------------------


def sparse_tasks(name: str) -> Iterator[Task]:
    """From a column of types in which 1 % are the query's, with and without listing matches."""
    formula, types = QUERIES[name]
    query = compiled(formula, types + "X", WINDOWS[0])
    batch = one_batch(type=rare_types(types, SPARSE_EVENTS, 0.01))
    yield Task(f"sparse {name}", partial(feeding, query, [batch], listed=False))
    yield Task(f"sparse with matches {name}", partial(feeding, query, [batch], listed=True))


def condition_tasks() -> Iterator[Task]:
    """Two conditions for each type, an integer and a double column, of which few rows pass; all of
    a run, and each of the kernel's two passes.

    With 20 % relevant a window has so many matches that writing them would be all the work; so that
    stream is read without.
    """
    few, many = _conditional(0.01), _conditional(0.2)
    rng = np.random.default_rng(4)
    batch = one_batch(
        type=random_types("ABCX", SPARSE_EVENTS),
        n=pa.array(rng.integers(0, 100, SPARSE_EVENTS).astype(np.int32)),
        v=pa.array(rng.random(SPARSE_EVENTS)),
    )
    yield Task(f"{CONDITIONS}, 1 % relevant", partial(feeding, few, [batch], listed=False))
    yield Task(
        f"{CONDITIONS}, 1 % relevant, with matches", partial(feeding, few, [batch], listed=True)
    )
    yield Task(f"{CONDITIONS}, 20 % relevant", partial(feeding, many, [batch], listed=False))
    for share, query in (("1 %", few), ("20 %", many)):
        reading = Reading(query, batch, listed=False)
        yield Task(f"{CONDITIONS}, {share} relevant, symbols alone", reading.classify)
        yield Task(f"{CONDITIONS}, {share} relevant, update alone", reading.update)


def _conditional(share: float) -> Any:
    """A;B;C with conditions that so many of all events pass, where A, B, C and X are as likely."""
    below = 12 if share < 0.1 else 50
    above = 1 - share / 0.75 / (below / 100)
    steps = [
        f"({name} AS {name.lower()} FILTER {name.lower()}.n < {below} "
        f"AND {name.lower()}.v > {above:.6f})"
        for name in "ABC"
    ]
    return compiled(" ; ".join(steps), "ABCX", WINDOWS[0], "n: INT, v: DOUBLE")


# --- the record of the plain queries --------------------------------------------------------------


def plain_record(path: Path = PLAIN_RECORD) -> dict[str, float]:
    """The ratios of the plain queries in the last line of the record, by the names used here."""
    *_, last = path.read_text().splitlines()
    record = json.loads(last)
    return {
        f"{group} {name}": figure["ratio"]
        for group in ("update", "sparse", "sparse with matches")
        for name, figure in record[group].items()
    }


def beside_the_record(found: dict[str, Figure]) -> Iterator[Figure]:
    """The plain queries as multiples of what was recorded; one repetition each, the median."""
    for name, recorded in plain_record().items():
        if name in found:
            now = statistics.median(found[name].normal)
            figure = quotient(
                f"beside the record: {name}", (now,), (recorded,), 1.0, higher_is_better=True
            )
            yield replace(figure, compared=False)

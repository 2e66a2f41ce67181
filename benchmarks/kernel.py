"""The kernel: the update alone, columns of which few events matter, and the plain record.

*Update alone* reads symbols that are there and lists nothing; *from columns* starts from Arrow
columns and computes the symbols. Both are steady states: the window is full. Queries of the record
of 2026-11-21 (`records/kernel-2026-11-21.jsonl`) are set beside it, ratio by ratio.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import (
    NOMINAL,
    QUERIES,
    Figure,
    Reading,
    Settings,
    Task,
    compiled,
    feeding,
    one_batch,
    quotient,
    random_types,
    rare_types,
    rate,
    seconds_apart,
)

WINDOWS = (100, 100_000)
GOALS = {"Q1": 150e6, "Q2": 150e6, "Q3": 140e6, "Q4": 150e6, "Q5": 130e6, "Q6": 130e6}
SPARSE_EVENTS = 10_000_000
"""In every mode: the calibration kernel reads as many, and shorter columns stay in caches."""
PLAIN_RECORD = Path(__file__).parent / "records" / "kernel-2026-11-21.jsonl"


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    found: dict[str, Figure] = {}
    for name in QUERIES:
        for figure in (*update(name, settings), *sparse(name, settings)):
            found[figure.name] = figure
            yield figure
    yield from conditions(settings)
    yield from beside_the_record(found)


# --- the update alone -----------------------------------------------------------------------------


def update(name: str, settings: Settings) -> Iterator[Figure]:
    """The update of one query over equally likely types, for windows of events and of time."""
    formula, types = QUERIES[name]
    readings = dict(_readings(formula, types, settings.events))
    timings = settings.repeated(
        [Task(key, reading.update, reading.rewind) for key, reading in readings.items()]
    )
    for key, timing in timings.items():
        goal = GOALS[name] * (0.9 if "seconds" in key else 1.0)
        yield rate(
            f"update {name} W={key}",
            "events/s",
            settings.events,
            timing,
            goal,
            events=settings.events,
        )
    for clock, what in (("", ""), (" seconds", ", window of time")):
        yield quotient(
            f"update {name} cost at W=100000 beside W=100{what}",
            timings[f"100000{clock}"].rows,
            timings[f"100{clock}"].rows,
            1.1,
            events=settings.events,
        )
    for window in WINDOWS:
        yield quotient(
            f"update {name} cost of a window of time, W={window}",
            timings[f"{window} seconds"].rows,
            timings[f"{window}"].rows,
            events=settings.events,
        )


def _readings(formula: str, types: str, events: int) -> Iterator[tuple[str, Reading]]:
    column = random_types(types, events)
    for window in WINDOWS:
        query = compiled(formula, types, window)
        yield f"{window}", Reading(query, one_batch(type=column), listed=False)
    timed = one_batch(type=column, ts=seconds_apart(events))
    for window in WINDOWS:
        query = compiled(formula, types, f"{window} SECONDS [ts]", "ts: TIMESTAMP")
        yield f"{window} seconds", Reading(query, timed, listed=False)


# --- few events that matter -----------------------------------------------------------------------


def sparse(name: str, settings: Settings) -> Iterator[Figure]:
    """From a column of types in which 1 % are the query's, with and without listing matches."""
    formula, types = QUERIES[name]
    query = compiled(formula, types + "X", WINDOWS[0])
    batch = one_batch(type=rare_types(types, SPARSE_EVENTS, 0.01))
    timings = settings.repeated(
        [
            Task("sparse", partial(feeding, query, [batch], listed=False)),
            Task("sparse with matches", partial(feeding, query, [batch], listed=True)),
        ]
    )
    for way, timing in timings.items():
        yield rate(f"{way} {name}", "events/s", SPARSE_EVENTS, timing, events=SPARSE_EVENTS)


def conditions(settings: Settings) -> Iterator[Figure]:
    """Two conditions for each type, an integer and a double column, of which few rows pass."""
    queries = {share: _conditional(share) for share in (0.01, 0.2)}
    rng = np.random.default_rng(4)
    batch = one_batch(
        type=random_types("ABCX", SPARSE_EVENTS),
        n=pa.array(rng.integers(0, 100, SPARSE_EVENTS).astype(np.int32)),
        v=pa.array(rng.random(SPARSE_EVENTS)),
    )
    few, many = queries[0.01], queries[0.2]
    # With 20 % relevant a window has so many matches that writing them would be all the work.
    tasks = {
        "1 % relevant": (few, False, 0.6 * NOMINAL),
        "1 % relevant, with matches": (few, True, None),
        "20 % relevant": (many, False, 300e6),
    }
    timings = settings.repeated(
        [
            Task(key, partial(feeding, query, [batch], listed=listed))
            for key, (query, listed, _) in tasks.items()
        ]
    )
    for key, (_, _, goal) in tasks.items():
        yield rate(
            f"two conditions a type, {key}",
            "events/s",
            SPARSE_EVENTS,
            timings[key],
            goal,
            events=SPARSE_EVENTS,
        )


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
            yield quotient(
                f"beside the record: {name}", (now,), (recorded,), 1.0, higher_is_better=True
            )

"""Simultaneous events: what `ties="simultaneous"` costs.

The update alone (symbols, keys and the borders of instants are there, nothing is listed) of the
same query with and without `ties="simultaneous"`, on a stream without ties: who allows ties pays
next to nothing where there are none. Beside it the same kernel on a stream in which an instant has
two events on average: there both answer differently, so the figure has no goal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from common import Figure, Settings, Task, quotient, rate
from streams import FreshRuns, declaration, one_batch, random_types

import celc

TYPES = "ABCD"
QUERIES = {
    "A ; B ; C": "A ; B ; C WITHIN 20 [ts]",
    "A+ ; B": "A+ ; B WITHIN 4 [ts]",
    "(A+ ; B)+ ; C": "(A+ ; B)+ ; C WITHIN 8 [ts]",
    "A : B": "A : B WITHIN 20 [ts]",
    "one key": "(A AS a ; B AS b ; C AS c) FILTER a.id = b.id AND b.id = c.id WITHIN 2000 [ts]",
    "partitions": "A ; B ; C PARTITION BY id WITHIN 20 [ts]",
}
IDS = 1_000
MOST = 1.1


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    tasks = [task for name in QUERIES for task in tasks_of(name, settings.events)]
    timings = settings.repeated(tasks, repetitions=3 * settings.repetitions)
    context: dict[str, Any] = {"events": settings.events}
    for name in QUERIES:
        for way in ways_of(name):
            yield rate(way, "events/s", settings.events, timings[way], **context)
        ordered, allowed, tied = ways_of(name)
        for way, goal in ((allowed, MOST), (tied, None)):
            cost = f"cost of {way} beside ordered events"
            yield quotient(cost, timings[way].rows, timings[ordered].rows, goal, **context)


def ways_of(name: str) -> tuple[str, str, str]:
    """Ordered events; ties allowed, where there are none; and ties."""
    return f"{name}, ordered", f"{name}, ties allowed", f"{name}, two events an instant"


def tasks_of(name: str, events: int) -> Iterator[Task]:
    """The three ways to read a stream by one query."""
    by_key = "PARTITION BY" in QUERIES[name]
    without, tied = stream(events, ties=False, by_key=by_key), stream(
        events, ties=True, by_key=by_key
    )
    ordered, simultaneous = (compiled(QUERIES[name], ties) for ties in (None, "simultaneous"))
    readings = (ordered, without), (simultaneous, without), (simultaneous, tied)
    for way, (query, batch) in zip(ways_of(name), readings, strict=True):
        runs = FreshRuns(query, batch)
        yield Task(way, runs.update, runs.begin)


def compiled(clauses: str, ties: str | None) -> Any:
    """A compiled query, ordered by time."""
    declared = declaration(TYPES, "id: INT, ts: LONG")
    text = f"{declared} SELECT * FROM S WHERE {clauses}"
    return celc.compile(text, order_by="ts", ties=ties).query


def stream(events: int, *, ties: bool, by_key: bool) -> pa.RecordBatch:
    """Equally likely types and keys, in the order of their times; with `by_key`, key by key."""
    rng = np.random.default_rng(14)
    ids = rng.integers(0, IDS, events).astype(np.int32)
    times = np.cumsum(rng.integers(0, 2, events)) if ties else np.arange(events)
    if by_key:
        ids.sort()
    return one_batch(
        type=random_types(TYPES, events), id=pa.array(ids), ts=pa.array(times.astype(np.int64))
    )

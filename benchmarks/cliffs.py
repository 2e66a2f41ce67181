"""Queries that differ by one operator or condition, to see which of these make a query much slower.

They have absences, UNLESS, neighbours in loops, nested selectors, and conditions across events.

    python benchmarks/cliffs.py [--events N] [--record]

The events have ten types, equally likely, an id from 0 to 99 and a value from 0 to 1. Each query
has a window of 100 events and one of 20, or the window in its name. "The update alone" is measured
on events whose symbols are computed before, and lists no matches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from common import best_of, calibrate
from rates import rates, run_alone
from streams import FreshRuns, random_types

import celc

TYPES = "ABCDEFGHIJ"
WINDOWS = (100, 20)  # events
DECLARATION = "CREATE STREAM S { " + ", ".join(
    f"EVENT {name} {{ id: LONG, v: DOUBLE }}" for name in TYPES
)
QUERIES = {
    "A ; B ; C": "A ; B ; C",
    "A : B : C": "A : B : C",
    "SELECT STRICT A ; B ; C": "SELECT STRICT * WHERE A ; B ; C",
    "A ; !B ; C": "A ; !B ; C",
    "(A ; C) UNLESS B": "(A ; C) UNLESS B",
    "A ; !B ; C ; D": "A ; !B ; C ; D",
    "(A ; B+ ; C) UNLESS D": "(A ; B+ ; C) UNLESS D",
    "A ; !(B ; D) ; C": "A ; !(B ; D) ; C",
    "A ; !(B : D) ; C": "A ; !(B : D) ; C",
    "A : (B ; C):+ ; D": "A : (B ; C):+ ; D",
    "LAST(A ; B) ; C": "LAST(A ; B) ; C",
    "NXT(A ; B) ; C": "NXT(A ; B) ; C",
    "SELECT FIRST A ; B ; C": "SELECT FIRST * WHERE A ; B ; C",
}

_KEYED = "(A AS a ; B AS b ; C AS c) FILTER a.id = b.id AND b.id = c.id"
ACROSS = {
    "keyed": (f"SELECT * WHERE {_KEYED}", 1_000),
    "SELECT NXT keyed": (f"SELECT NXT * WHERE {_KEYED}", 1_000),
    "AND": ("((A AS x ; B AS y) FILTER x.id = y.id) AND (A AS x ; B AS y)", 100),
    "LAST": ("LAST((A AS x ; B AS y) FILTER x.id = y.id) ; C", 100),
    "NXT": ("NXT((A AS x ; B AS y) FILTER x.id = y.id) ; C", 100),
    "absent pattern": (
        "(A AS a ; !((B AS b ; D AS d) FILTER a.id = b.id AND b.id = d.id) ; C AS c) "
        "FILTER a.id = c.id",
        1_000,
    ),
    "UNLESS pattern": (
        "((A AS a ; C AS c) FILTER a.id = c.id) "
        "UNLESS ((B AS b ; D AS d) FILTER a.id = b.id AND b.id = d.id)",
        1_000,
    ),
    "LAST of three": (
        "LAST((A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id) ; D",
        100,
    ),
    "rising": ("SELECT * WHERE ((A AS a)+ ; B) FILTER a.v > PREV(a.v)", 50),
    "SELECT LAST rising": ("SELECT LAST * WHERE ((A AS a)+ ; B) FILTER a.v > PREV(a.v)", 50),
    "AVG > 0.9": ("SELECT * WHERE ((A AS a)+ ; B) FILTER AVG(a.v) > 0.9", 100),
    "SELECT LAST AVG > 0.9": ("SELECT LAST * WHERE ((A AS a)+ ; B) FILTER AVG(a.v) > 0.9", 100),
}
"""Queries with conditions across events, each with its window in events."""


def compiled(body: str, window: int) -> Any:
    """A compiled query over the stream."""
    query = body if body.startswith("SELECT") else f"SELECT * WHERE {body}"
    matcher = celc.compile(f"{DECLARATION} }}\n{query} WITHIN {window} EVENTS")
    return next(iter(matcher.queries.values()))


def stream(events: int) -> pa.RecordBatch:
    """Random events with a type, an id and a value."""
    random = np.random.default_rng(5)
    ids, values = random.integers(0, 100, events), random.random(events)
    columns = {"type": random_types(TYPES, events), "id": ids, "v": values}
    return pa.RecordBatch.from_pydict(columns)


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    batch = stream(events)
    figures: dict[str, Any] = {}
    asked = [(formula, body, window) for window in WINDOWS for formula, body in QUERIES.items()]
    asked += [(formula, body, window) for formula, (body, window) in ACROSS.items()]
    for formula, body, window in asked:
        name, query = f"{formula}, W={window}", compiled(body, window)
        figure = rates(name, query, batch, calibrated())
        runs = FreshRuns(query, batch)
        seconds = []
        for _ in range(3):
            runs.begin()
            seconds.append(best_of(runs.update, 1))
        figure["update_per_second"] = round(events / min(seconds))
        figure["ratio_of_update"] = round(events / min(seconds) / calibrated(), 4)
        print(f"{'':34} {events / min(seconds) / 1e6:8.2f} M events/s, the update alone")
        figures[name] = figure
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("cliffs", __doc__, 1_000_000, measure)

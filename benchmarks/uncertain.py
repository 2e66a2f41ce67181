"""What uncertain time costs: cost against the points of an event, the threshold and the window.

    python benchmarks/uncertain.py [--events N] [--record]

100,000 events, one for each unit of time, of three types in ten, for one hundred keys (the sweep of
figure 5(a) in *On Complexity and Optimization of Expensive Queries*, whose intervals have ten
points). An event lies at one of U points from its time on. `ordinary` is the same query over the
same events at their first point, as events of certain time (`ties="simultaneous"`), and every ratio
is to it. `match_arrow` is timed, rows included.

U = 1 is certain time: what the way of uncertain time costs where it is not needed.

Then an A, some B's and a C, `A ; B+ ; C` with and without a condition that goes by the order of
the B's, against the threshold: 40 B's that can all be at the same 20 times (`together`), and 16 of
which one comes at each unit of time, with ten times each (`one a unit`).

Every figure is CPU time of one thread, the best of several runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from common import best_of, calibrate
from rates import run_alone

import celc

_ATTRIBUTES = "id: INT, v: DOUBLE, low: LONG, high: LONG"
TYPES = "ABCDEFGHIJ"
QUERIES = {
    "A ; B ; C": "A ; B ; C PARTITION BY id",
    "A ; B+ ; C": "A ; B+ ; C PARTITION BY id",
    "A ; B, a rising value": "(A AS x ; B AS y) FILTER x.v < y.v PARTITION BY id",
    "A ; B+ ; C, rising B's": "(A AS x ; B+ AS y ; C) FILTER B.v > PREV(B.v) PARTITION BY id",
}
COMPARED = {"A ; B, a rising value", "A ; B+ ; C, rising B's"}
"""Their conditions compare events; measured in narrow windows."""
WINDOWS = (10, 100, 1000, 3000)
POINTS = (1, 5, 10, 20)
THRESHOLDS = (0.0, 0.5, 0.9)
OVERLAPPING = {
    "together": (40, 0, 20, (0.8, 0.9, 0.97)),
    "one a unit": (16, 1, 10, (0.0, 0.1, 0.5, 0.9)),
}
"""How many B's, how far apart, with how many times each, and the thresholds."""
ORDERED = {"any order": "A ; B+ ; C", "rising B's": "(A ; B+ ; C) FILTER B.v > PREV(B.v)"}


def compiled(formula: str, window: int, uncertain: bool, threshold: float = 0.0) -> Any:
    """A compiled query over the stream."""
    times = "UNCERTAIN [low, high] BY 1 " if uncertain else ""
    events = ", ".join(f"EVENT {name} {{ {_ATTRIBUTES} }}" for name in TYPES)
    text = f"CREATE STREAM S {times}{{ {events} }}\nSELECT * FROM S WHERE {formula}"
    text += f" WITHIN {window} [low]"
    if threshold:
        text += f" WITH CONFIDENCE >= {threshold}"
    ties = None if uncertain else "simultaneous"
    (query,) = celc.compile(text, ties=ties).queries.values()
    return query


def stream(events: int, points: int) -> pa.RecordBatch:
    """The events, one key after another."""
    random = np.random.default_rng(5)
    keys = random.integers(0, 100, events).astype(np.int32)
    order = np.argsort(keys, kind="stable")
    low = np.arange(events)[order]
    codes = random.integers(0, len(TYPES), events).astype(np.int32)[order]
    return pa.RecordBatch.from_pydict(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(TYPES))),
            "id": pa.array(keys[order]),
            "v": random.random(events),
            "low": low,
            "high": low + points - 1,
        }
    )


def _timed(query: Any, batch: pa.RecordBatch) -> tuple[float, int]:
    query.match_arrow([batch.slice(0, 1000)])
    matches = 0

    def once() -> None:
        nonlocal matches
        matches = sum(map(len, query.match_arrow([batch])))

    once()
    return best_of(once, 3), matches


def overlapping(count: int, apart: int, points: int) -> pa.RecordBatch:
    """An A, some B's at several times each, and a C behind all of them."""
    random = np.random.default_rng(7)
    low = np.concatenate([[0], 1 + apart * np.arange(count), [2 + apart * count + points]])
    high = np.concatenate([low[:1], low[1:-1] + points - 1, low[-1:]])
    names = pa.array(["A", *["B"] * count, "C"])
    ids = pa.array(np.ones(count + 2, np.int32))
    return pa.RecordBatch.from_pydict(
        {"type": names, "id": ids, "v": random.random(count + 2), "low": low, "high": high}
    )


def of_overlapping() -> dict[str, Any]:
    """The figures of overlapping B's."""
    found: dict[str, Any] = {}
    for shape, (count, apart, points, thresholds) in OVERLAPPING.items():
        batch = overlapping(count, apart, points)
        for order, formula in ORDERED.items():
            line = []
            for threshold in thresholds:
                query = compiled(formula, 1000, True, threshold)
                seconds, rows = _timed(query, batch)
                key = f"{count} B's {shape}, {order}, {threshold}"
                found[key] = {"seconds": round(seconds, 5), "matches": rows}
                line.append(f"{threshold}: {seconds:.4f} s ({rows:,})")
            print(f"{count} B's {shape}, {order}: {', '.join(line)}")
    return found


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    figures: dict[str, Any] = {}
    for name, formula in QUERIES.items():
        for window in WINDOWS:
            if name in COMPARED and window > 100:
                continue
            seconds, rows = _timed(compiled(formula, window, False), stream(events, 1))
            found: dict[str, Any] = {
                "ordinary seconds": round(seconds, 5),
                "ordinary matches": rows,
            }
            figures[f"{name}, W = {window}"] = found
            rate = events / seconds / 1e6
            print(f"{name:24} W = {window:5} ordinary {rate:7.2f} M events/s, {rows:,} matches")
            for threshold in THRESHOLDS:
                query = compiled(formula, window, True, threshold)
                line = []
                for points in POINTS:
                    taken, rows = _timed(query, stream(events, points))
                    found[f"U = {points}, {threshold}"] = {
                        "ratio": round(taken / seconds, 3),
                        "matches": rows,
                    }
                    line.append(f"U={points}: {taken / seconds:6.2f} ({rows:,})")
                print(f"{'':24} confidence {threshold}: {', '.join(line)}")
    figures |= of_overlapping()
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("uncertain", __doc__, 100_000, measure)

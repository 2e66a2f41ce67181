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

Every figure is CPU time of one thread, the least of seven runs. Runs of a query and of `ordinary`
come in turns, so that a slow moment of a shared machine does not fall on one of them alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


class Timed:
    """Runs of a query over a batch: the least CPU seconds, and the number of matches."""

    def __init__(self, query: Any, batch: pa.RecordBatch) -> None:
        self.query, self.batch = query, batch
        self.seconds, self.matches = math.inf, 0
        query.match_arrow([batch.slice(0, 1000)])
        self._once()

    def _once(self) -> None:
        self.matches = sum(map(len, self.query.match_arrow([self.batch])))

    def repeat(self) -> None:
        """Run it once more."""
        self.seconds = min(self.seconds, best_of(self._once, 1))


def in_turns(timed: Sequence[Timed], rounds: int = 7) -> None:
    """Repeat all of them, one after the other: so a slow moment of the machine is one of all."""
    for _ in range(rounds):
        for one in timed:
            one.repeat()


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
                one = Timed(query, batch)
                in_turns([one], 3)
                key = f"{count} B's {shape}, {order}, {threshold}"
                found[key] = {"seconds": round(one.seconds, 5), "matches": one.matches}
                line.append(f"{threshold}: {one.seconds:.4f} s ({one.matches:,})")
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
            ordinary = Timed(compiled(formula, window, False), stream(events, 1))
            uncertain = {
                threshold: {
                    points: Timed(
                        compiled(formula, window, True, threshold), stream(events, points)
                    )
                    for points in POINTS
                }
                for threshold in THRESHOLDS
            }
            in_turns([ordinary, *(one for line in uncertain.values() for one in line.values())])
            found: dict[str, Any] = {
                "ordinary seconds": round(ordinary.seconds, 5),
                "ordinary matches": ordinary.matches,
            }
            figures[f"{name}, W = {window}"] = found
            rate = events / ordinary.seconds / 1e6
            rows = f"{rate:7.2f} M events/s, {ordinary.matches:,} matches"
            print(f"{name:24} W = {window:5} ordinary {rows}")
            for threshold, line in uncertain.items():
                shown = []
                for points, one in line.items():
                    ratio = one.seconds / ordinary.seconds
                    found[f"U = {points}, {threshold}"] = {
                        "ratio": round(ratio, 3),
                        "matches": one.matches,
                    }
                    shown.append(f"U={points}: {ratio:6.2f} ({one.matches:,})")
                print(f"{'':24} confidence {threshold}: {', '.join(shown)}")
    figures |= of_overlapping()
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("uncertain", __doc__, 100_000, measure)

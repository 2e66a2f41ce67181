"""What "then the first" costs beside "then any": `A ; FIRST B` beside `A ; B`.

    python benchmarks/first.py [--events N] [--record]

*update* reads symbols that are there and lists nothing. *matches* starts from columns and lists
each match, up to the kernel's buffers; beside the order stands the update of `A ; B`, whose matches
are far more. A figure is how many events a second FIRST reads for each one that the query beside it
reads: CPU time of one thread, the least of five in turns. The last line is the update of `A ; FIRST
B` in a window of a hundred thousand events beside one of a hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from common import best_of, calibrate, matches_of
from rates import run_alone
from streams import Reading, compiled, one_batch, random_types

KEYS = 100_000
WAITING = 50  # A's that wait for a B with a greater value, about
UPDATES = {
    "two steps": ("A ; FIRST B ; FIRST C", "A ; B ; C", "ABC", 0.5),
    "a chain": ("A ; (FIRST B)+ ; FIRST C", "A ; B ; C", "ABC", 0.1),
    "of two events": ("A ; FIRST (B ; C)", "A ; B ; C", "ABC", 0.1),
}
"""The query, the one beside it, its types and the goal."""
ATTRIBUTES = "id: INT, v: DOUBLE"
EQUAL = "A AS a ; FIRST (B AS b FILTER b.id = a.id)"
SAME = "(A AS a ; B AS b) FILTER b.id = a.id"
GREATER = "A AS a ; FIRST (B AS b FILTER b.v > a.v)"
WINDOWS = (100, 100_000)


def beside(first: Callable[[], object], other: Callable[[], object]) -> float:
    """The events a second that the first one reads for each one of the other."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(5):
        for run, found in zip((first, other), times, strict=True):
            found.append(best_of(run, 1))
    return min(times[1]) / min(times[0])


def updating(formula: str, types: str, window: int, batch: pa.RecordBatch) -> Callable[[], object]:
    """The update of a query over full windows."""
    reading = Reading(compiled(formula, types, window), batch, listed=False)

    def once() -> None:
        reading.rewind()
        reading.update()

    return once


def listing(formula: str, window: int, batch: pa.RecordBatch) -> Callable[[], object]:
    """The matches of a query from columns."""
    return partial(matches_of, compiled(formula, "AB", window, ATTRIBUTES), batch)


def with_values(events: int) -> pa.RecordBatch:
    """Types A and B with keys that rarely repeat, and values of which few B's are above an A's."""
    rng = np.random.default_rng(9)
    types = random_types("AB", events)
    is_last = np.asarray(types.indices) == 1
    values = rng.random(events)
    values[is_last] = np.where(rng.random(int(is_last.sum())) < 1 / WAITING, 2.0, -1.0)
    keys = rng.integers(0, KEYS, events).astype(np.int32)
    return one_batch(type=types, id=keys, v=values)


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    figures: dict[str, Any] = {}

    def told(name: str, ratio: float, goal: float | None = None) -> None:
        asked = "" if goal is None else f"   goal {goal}"
        print(f"{name:32} {ratio:6.3f}{asked}", flush=True)
        figures[name] = {"ratio": round(ratio, 3), "goal": goal}

    for name, (first, other, types, goal) in UPDATES.items():
        batch = one_batch(type=random_types(types, events))
        ratio = beside(*(updating(text, types, 1_000, batch) for text in (first, other)))
        told(f"update: {name}", ratio, goal)
    batch = with_values(events)
    ratio = beside(*(listing(text, 100_000, batch) for text in (EQUAL, SAME)))
    told("matches: an equality", ratio, 0.7)
    plain = updating("A ; B", "AB", 1_000, batch.select(["type"]))
    told("matches: an order", beside(listing(GREATER, 1_000, batch), plain), 0.05)
    batch = one_batch(type=random_types("AB", events))
    short, long = (updating("A ; FIRST B", "AB", window, batch) for window in WINDOWS)
    told("a window of 100,000 beside 100", beside(long, short), 0.9)
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("first", __doc__, 1_000_000, measure)

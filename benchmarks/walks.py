"""What the walks that are written by hand save, beside what the compiler would choose without them.

    python benchmarks/walks.py [--events N] [--record]

A query is compiled twice: as it is, and with the one question answered no by which its strategy
finds the walk. `runs` (`engine/walk/runs.py`) stands beside the walk of the factory
(`engine/walk/walk.py`); `latest` (`engine/walk/latest_walk.py`) beside the choice in windows, which
is what finds the matches of LAST where no pile shows the latest event first. Both forms list the
same matches. A figure is the CPU time of the one by that of the other, from events to the kernel's
buffers, update included: each the best of five, in turns.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pyarrow as pa
from celc_runtime.plan.strategy import All
from common import best_of, calibrate, matches_of, rows_of
from per_start import compiled, stream
from rates import run_alone

from celc.plan import strategy

QUERIES = {
    "runs, W=100": ("_all_or_in_runs", "SELECT * FROM S WHERE A ; B ; C WITHIN 100 EVENTS"),
    "runs, W=1000": ("_all_or_in_runs", "SELECT * FROM S WHERE A ; B WITHIN 1000 EVENTS"),
    "latest, W=100": ("_all_marked", "SELECT LAST * FROM S WHERE A ; B+ ; C WITHIN 100 EVENTS"),
    "latest, W=1000": ("_all_marked", "SELECT LAST * FROM S WHERE A ; B ; C WITHIN 1000 EVENTS"),
}
"""The question of `celc.plan.strategy` that finds the walk, and a query."""

_NO: dict[str, Any] = {
    "_all_or_in_runs": lambda query, update: (All(), "one by one"),
    "_all_marked": lambda tables: False,
}


def both(question: str, text: str) -> tuple[Any, Any]:
    """The query by the walk of its own, and without it."""
    own = compiled(text)
    with mock.patch.object(strategy, question, _NO[question]):
        return own, compiled(text)


def ratio(own: Any, other: Any, batch: pa.RecordBatch) -> float:
    """How many times faster the walk by hand is."""
    first, second = (rows_of(query, batch) for query in (own, other))
    assert first == second, "both forms list the same matches"
    assert type(own.program.listing) is not type(other.program.listing)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(5):
        for query, found in zip((own, other), times, strict=True):
            found.append(best_of(lambda query=query: matches_of(query, batch), 1))  # type: ignore[misc]
    return min(times[1]) / min(times[0])


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    batch = stream(events)
    figures: dict[str, Any] = {}
    for name, (question, text) in QUERIES.items():
        own, other = both(question, text)
        found = ratio(own, other, batch)
        ways = (type(one.program.listing).__name__ for one in (own, other))
        print(f"{name:16} {found:6.2f} times as fast ({' beside '.join(ways)})", flush=True)
        figures[name] = {"ratio": round(found, 2)}
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("walks", __doc__, 200_000, measure)

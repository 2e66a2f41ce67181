"""What totals cost: SELECT TOTAL of Q1 to Q6 in windows of 100 and of 100,000 events.

    python benchmarks/totals.py [--events N] [--record]

Events come of the types of the query alone, so that every second to fourth one ends matches. With
W = 100,000 an event ends up to 10^29985 matches, of which none is listed. `counted` is the kernel
over prepared symbols: what the totals are at each event that ends matches. `rows` is `match_arrow`,
from an Arrow batch with types to rows with DECIMALs. `COUNT(*)` of more than 38 digits is an error,
so `rows` are of APPROX_COUNT(*) where windows are wide. The other functions stand beside the count,
of an attribute of the first event type: the kernel's time with them over that without, the middle
one of the quotients of several turns, and so is the cost of a wide window beside a narrow one.

Rates are of CPU time of one thread, the best of several runs; ratios to the calibration kernel
of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.run.answer.counted import CountedWalk
from celc_runtime.run.run_of import run_of
from common import best_of, calibrate, rows_of
from rates import run_alone
from streams import QUERIES, declaration, random_types

import celc

WINDOWS = (100, 100_000)
FUNCTIONS = {
    "SUM of LONG": "SUM(A.n) AS s",
    "SUM of DOUBLE": "SUM(A.v) AS s",
    "AVG": "AVG(A.v) AS s",
    "MIN": "MIN(A.v) AS s",
    "MAX": "MAX(A.v) AS s",
}
_PLAIN = "nothing"
_TURNS = 9


def compiled(formula: str, types: str, items: str, within: int) -> Any:
    """A compiled query with totals."""
    text = (
        f"{declaration(types, 'v: DOUBLE, n: LONG')} SELECT TOTAL {items} FROM S "
        f"WHERE {formula} WITHIN {within} EVENTS"
    )
    return next(iter(celc.compile(text).queries.values()))


def counting(query: Any, events: pa.RecordBatch) -> Callable[[], None]:
    """The kernel over the symbols of a batch, in a new run each time."""
    prepared = next(run_of(query.program)._source.batches(events, None, None, None)).prepared

    def count() -> None:
        walk = run_of(query.program)._walk
        assert isinstance(walk, CountedWalk)
        walk.read_silently(prepared)

    return count


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    random = np.random.default_rng(7)
    figures: dict[str, Any] = {}
    for name, (formula, types) in QUERIES.items():
        batch = pa.RecordBatch.from_pydict(
            {
                "type": random_types(types, events),
                "v": random.normal(size=events),
                "n": random.integers(-1000, 1000, events),
            }
        )
        seconds = _seconds(
            {
                (within, title): counting(compiled(formula, types, items, within), batch)
                for within in WINDOWS
                for title, items in _items().items()
            }
        )
        rate = calibrated()
        for within in WINDOWS:
            plain = seconds[within, _PLAIN]
            shown = "COUNT(*)" if within == WINDOWS[0] else "APPROX_COUNT(*)"
            query = compiled(formula, types, f"{shown} AS n", within)
            rows_of(query, batch)
            to_rows = best_of(partial(rows_of, query, batch), 3)
            found = {
                "counted_events_per_second": events / min(plain),
                "rows_events_per_second": events / to_rows,
                "rows": rows_of(query, batch),
                "ratio": events / min(plain) / rate,
                f"beside W = {WINDOWS[0]}": _beside(plain, seconds[WINDOWS[0], _PLAIN]),
            }
            for title in FUNCTIONS:
                found[f"with {title}"] = _beside(seconds[within, title], plain)
            figures[f"{name}, W = {within:,}"] = found
            print(name, within, {k: round(v, 3) for k, v in found.items()}, flush=True)
    return {"calibration": calibrated(), "figures": figures}


def _items() -> dict[str, str]:
    """The items of each query, by what is beside the count."""
    return {_PLAIN: "COUNT(*) AS n"} | {
        title: f"COUNT(*) AS n, {item}" for title, item in FUNCTIONS.items()
    }


def _seconds(kernels: dict[Any, Callable[[], None]]) -> dict[Any, list[float]]:
    """What each of some kernels takes, in turns, so that a slow minute of the machine slows all."""
    for kernel in kernels.values():
        kernel()
    taken: dict[Any, list[float]] = {key: [] for key in kernels}
    for _ in range(_TURNS):
        for key, kernel in kernels.items():
            taken[key].append(best_of(kernel, 1))
    return taken


def _beside(some: list[float], others: list[float]) -> float:
    """The middle one of the quotients of times that were taken in one turn."""
    return float(np.median(np.array(some) / np.array(others)))


if __name__ == "__main__":
    run_alone("totals", __doc__, 1_000_000, measure)

"""What totals cost: SELECT TOTAL of Q1 to Q6 in windows of 100 and of 100,000 events.

    python benchmarks/totals.py [--events N] [--record]

Events come of the types of the query alone, so that every second to fourth one ends matches. With
W = 100,000 an event ends up to 10^29985 matches, of which none is listed. `counted` is the kernel
over prepared symbols: what the totals are at each event that ends matches. `rows` is `match_arrow`,
from an Arrow batch with types to rows with DECIMALs. `COUNT(*)` of more than 38 digits is an error,
so `rows` are of APPROX_COUNT(*) where windows are wide. The other functions stand beside the count,
of an attribute of the first event type; `ratio` is the kernel's time with them over that without.

Every figure is CPU time of one thread, the best of several runs; ratios to the calibration kernel
of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.run.totals_run import TotalsRun
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


def compiled(formula: str, types: str, items: str, within: int) -> Any:
    """A compiled query with totals."""
    text = (
        f"{declaration(types, 'v: DOUBLE, n: LONG')} SELECT TOTAL {items} FROM S "
        f"WHERE {formula} WITHIN {within} EVENTS"
    )
    return next(iter(celc.compile(text).queries.values()))


def counting(query: Any, events: pa.RecordBatch) -> Callable[[], None]:
    """The kernel over the symbols of a batch, in a new run each time."""
    reader = TotalsRun(query.program)
    prepared = reader._columns.prepare(events)
    reader._classify(prepared)
    assert reader._counted is not None

    def count() -> None:
        run = TotalsRun(query.program)
        assert run._counted is not None
        run._counted.read_silently(prepared)

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
        for within in WINDOWS:
            plain = _count_of(compiled(formula, types, "COUNT(*) AS n", within), batch)
            shown = "COUNT(*)" if within == WINDOWS[0] else "APPROX_COUNT(*)"
            query = compiled(formula, types, f"{shown} AS n", within)
            rows_of(query, batch)
            to_rows = best_of(partial(rows_of, query, batch), 3)
            found = {
                "counted_events_per_second": events / plain,
                "rows_events_per_second": events / to_rows,
                "rows": rows_of(query, batch),
                "ratio": events / plain / calibrated(),
            }
            for title, item in FUNCTIONS.items():
                more = compiled(formula, types, f"COUNT(*) AS n, {item}", within)
                found[f"with {title}"] = _count_of(more, batch) / plain
            figures[f"{name}, W = {within:,}"] = found
            print(name, within, {k: round(v, 3) for k, v in found.items()}, flush=True)
    return {"calibration": calibrated(), "figures": figures}


def _count_of(query: Any, batch: pa.RecordBatch) -> float:
    """Seconds that the kernel takes."""
    count = counting(query, batch)
    count()
    return best_of(count, 3)


if __name__ == "__main__":
    run_alone("totals", __doc__, 1_000_000, measure)

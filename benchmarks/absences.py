"""What an absence at an end of a pattern costs: nothing for an hour, before it or after it.

    python benchmarks/absences.py [--events N] [--record]

Events come a second apart on average, and have one of 100,000 ids. So an hour holds 3,600 of them,
and next to none with one id. About every tenth event ends a match that stays, but 100,000 deadlines
are not a tenth of the hour's events: absences with a key wait for their id alone. `matches` is
everything up to the kernel's buffers: symbols, what is remembered, update and listing. `rows` is
`match_arrow`: which matches are decided, and their rows.

Every figure is CPU time of one thread, the best of several runs; ratios to the calibration kernel
of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime import EventWarning
from common import calibrate
from rates import rates, run_alone

import celc

DECLARATION = "CREATE STREAM S { " + ", ".join(
    f"EVENT {name} {{ id: LONG, ts: TIMESTAMP }}" for name in "ABCD"
)
IDS = 100_000
SAME = "(B AS y FILTER y.id = x.id)"
FEW, MANY = (0.15, 0.0001, 0.0), (0.1, 0.1, 0.1)
"""The shares of A, B and C; the rest is D. With few B's a seventh of the matches is ruled out."""
QUERIES = {
    "no absence": ("A", FEW),
    "after": ("A ; !B FOR 1 HOUR", FEW),
    "before": ("!B FOR 1 HOUR ; A", FEW),
    "after, with a key": (f"A AS x ; !{SAME} FOR 1 HOUR", MANY),
    "before, with a key": (f"!{SAME} FOR 1 HOUR ; A AS x", MANY),
    "after, since the start": (f"A AS x ; !{SAME} WITHIN 1 HOUR", MANY),
    "inside, with a key": (
        f"A AS x ; !{SAME} ; C AS z FILTER z.id = x.id WITHIN 1 HOUR",
        MANY,
    ),
}


def compiled(formula: str) -> Any:
    """A compiled query over the stream, of input that is over."""
    matcher = celc.compile(
        f"{DECLARATION} }}\nSELECT NONE FROM S WHERE {formula}", order_by="ts", at_end="closed"
    )
    return next(iter(matcher.queries.values()))


def stream(events: int, shares: tuple[float, ...]) -> pa.RecordBatch:
    """Types, an id and a time."""
    random = np.random.default_rng(5)
    codes = random.choice(4, events, p=(*shares, 1 - sum(shares))).astype(np.int32)
    times = np.cumsum(random.integers(1, 2_000, events)) * 1_000
    return pa.RecordBatch.from_pydict(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list("ABCD"))),
            "id": random.integers(0, IDS, events),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    warnings.simplefilter("ignore", EventWarning)
    calibrated = calibrate(events)
    streams = {shares: stream(events, shares) for shares in (FEW, MANY)}
    figures: dict[str, Any] = {}
    for name, (formula, shares) in QUERIES.items():
        query, batch = compiled(formula), streams[shares]
        figures[name] = rates(name, query, batch, calibrated())
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("absences", __doc__, 10_000_000, measure)

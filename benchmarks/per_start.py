"""What SELECT FIRST and LONGEST cost: from events to chosen matches, and to rows.

    python benchmarks/per_start.py [--events N] [--record]

The stream has three event types; A is every second event, and events come a millisecond apart on
average. `matches` is everything up to the kernel's buffers: symbols, update or runs, and listing.
`rows` is `match_arrow`: the choice among rows, and the rows of start and end. Of a burst (a run of
events with small gaps), `kernels` are the two that find the links between neighbours and the runs,
per event that a run can hold.

Every figure is CPU time of one thread, the best of several runs; ratios to the calibration kernel
of `common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.engine.walk.listing import new_output
from celc_runtime.engine.walk.longest_runs import RunEvents, links, list_runs_that_end
from common import best_of, calibrate
from rates import rates, run_alone

import celc

DECLARATION = "CREATE STREAM S { " + ", ".join(
    f"EVENT {name} {{ v: DOUBLE, ts: TIMESTAMP }}" for name in "ABC"
)
BURSTS = (
    "SELECT LONGEST DISJOINT NONE FROM S WHERE (A AS x)+ FILTER x.ts - PREV(x.ts) <= 5 MILLISECONDS"
)
QUERIES = {
    "first of a chain": "SELECT FIRST NONE FROM S WHERE A ; B ; C",
    "first of a +": "SELECT FIRST NONE FROM S WHERE A+ ; C",
    "first disjoint": "SELECT FIRST DISJOINT NONE FROM S WHERE A ; B ; C WITHIN 1 SECOND",
    "longest of a chain": "SELECT LONGEST NONE FROM S WHERE A ; C WITHIN 20 MILLISECONDS",
    "bursts": BURSTS,
    "rising runs": "SELECT LONGEST DISJOINT NONE FROM S WHERE (A AS x):+ FILTER x.v > PREV(x.v)",
    "runs in windows": "SELECT LONGEST DISJOINT NONE FROM S WHERE A+ WITHIN 50 MILLISECONDS",
    "longest run of each start": "SELECT LONGEST NONE FROM S WHERE A+ WITHIN 50 MILLISECONDS",
}
PIECE = 1 << 18


def compiled(query: str) -> Any:
    """A compiled query over the stream."""
    matcher = celc.compile(f"{DECLARATION} }}\n{query}", order_by="ts")
    return next(iter(matcher.queries.values()))


def stream(events: int) -> pa.RecordBatch:
    """Types A, B and C, a value and a time."""
    random = np.random.default_rng(5)
    codes = random.choice(3, events, p=(0.5, 0.25, 0.25)).astype(np.int32)
    times = np.cumsum(random.exponential(1_000, events)).astype(np.int64) + np.arange(events)
    return pa.RecordBatch.from_pydict(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list("ABC"))),
            "v": random.random(events),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def kernels_of(query: Any, batch: pa.RecordBatch) -> tuple[int, float]:
    """The events that runs can hold, and the seconds of the kernels that find the runs."""
    times = np.asarray(batch.column("ts").cast(pa.int64()))[:PIECE]
    tags = np.arange(PIECE) << query.plan.matching.kind_bits | query.program.listing.kinds[1]
    always = np.full(PIECE, -(2**62))
    linked, whole = np.ones(PIECE, np.bool_), np.ones(PIECE, np.bool_)
    events = RunEvents(tags, np.arange(PIECE), np.zeros(PIECE, np.int64), always, linked, whole)
    find = links(query.program.listing.checks.admits)
    past, state = (times, np.ones(PIECE, np.bool_)), np.zeros((0, 2), np.int64)
    output = new_output(matches=1 << 16, room=1 << 19, limit=None)

    def once() -> None:
        linked[:] = True
        find(tags, linked, past, 0, state)
        pointers = np.zeros(2, np.int64)
        while list_runs_that_end(events, pointers, 1, True, output):
            output.used[:] = 0
        output.used[:] = 0

    once()
    return PIECE, best_of(once, 20)


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(events)
    batch = stream(events)
    figures: dict[str, Any] = {}
    for name, text in QUERIES.items():
        query = compiled(text)
        figures[name] = rates(name, query, batch, calibrated())
    count, seconds = kernels_of(compiled(BURSTS), batch)
    figures["kernels of bursts"] = {
        "events_per_second": round(count / seconds),
        "ratio": round(count / seconds / calibrated(), 4),
    }
    print(f"{'kernels of bursts':34} {count / seconds / 1e6:8.2f} M events of runs/s")
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("per_start", __doc__, 1_000_000, measure)

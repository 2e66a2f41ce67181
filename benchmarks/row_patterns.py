"""What MATCH_RECOGNIZE costs, beside a loop that backtracks.

    python benchmarks/row_patterns.py [--events N] [--record]

Patterns of one table, as one partition and as 100,000: the two passes of the kernel (`kernel`, the
goal is 30 million rows a second), the kernel with the conditions, and `match_table` as a whole,
which looks at the order and writes the rows of the result as well. `backtracking`: a loop in Numba
that tries each start depth first, as the engines do that promise nothing, on 20,000 rows.
`rare`: `match_table` on rows in no order, where one partition in a hundred has a row of B; `bound`:
a condition of DEFINE that bounds the match in time.

Every time is CPU time of one thread, the best of several runs; ratios to the calibration kernel of
`common.py`, timed in the same run, are what to compare between machines.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.row_pattern import passes
from celc_runtime.row_pattern.arranged import arranged
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.run import run_of
from celc_runtime.row_pattern.tables import conforming_table
from common import best_of, calibrate
from numba import njit
from rates import run_alone

import celc

_HEAD = """CREATE TABLE t (k INT, ts LONG, v INT);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS first, COUNT(*) AS n
"""
PATTERNS = {
    "A+ B+": "PATTERN (A+ B+) DEFINE A AS v < 900, B AS v >= 900)",
    "A+ B, B never": "PATTERN (A+ B) DEFINE A AS v < 1000, B AS v > 5000)",
    "(A+)+ B, B never": "PATTERN ((A+)+ B) DEFINE A AS v < 1000, B AS v > 5000)",
    "(A?){20} B": "PATTERN ((A?){20} B) DEFINE A AS v < 800, B AS v > 900)",
    "V shape": "PATTERN (S D+ U+) DEFINE D AS v < PREV(v), U AS v > PREV(v))",
}
FEW = 20_000
_RARE = "PATTERN (A X* B) DEFINE A AS v < 500, B AS v > 5000)"
_BOUND = "PATTERN (A X* B) DEFINE A AS v < 500, B AS v > 995 AND ts <= A.ts + INTERVAL '20' SECOND)"


def table(rows: int, parts: int) -> pa.Table:
    """Values drawn from 0 to 999, in the order of `ts`."""
    rng = np.random.default_rng(1)
    size = -(-rows // parts)
    return pa.table(
        {
            "k": np.repeat(np.arange(parts), size)[:rows].astype(np.int32),
            "ts": np.arange(rows),
            "v": rng.integers(0, 1000, rows).astype(np.int32),
        }
    )


def rare(rows: int) -> dict[str, float]:
    """Million rows a second of `match_table` for `_RARE` and `_BOUND`."""
    rng = np.random.default_rng(2)
    data = table(rows, -(-rows // 20))
    values = data.column("v").to_numpy().copy()
    values[15::2000] = 6000
    data = data.set_column(2, "v", pa.array(values)).take(pa.array(rng.permutation(rows)))
    times = pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us", "UTC"))
    timed = table(rows, 20).set_column(1, "ts", times)
    found = {}
    for name, text, given in (("rare", _RARE, data), ("bound", _BOUND, timed)):
        head = _HEAD.replace("ts LONG", "ts TIMESTAMP") if given is timed else _HEAD
        query = celc.compile(head + text, dialect="match_recognize")
        query.match_table(given.slice(0, 1000))
        found[name] = rows / best_of(partial(query.match_table, given), 3) / 1e6
    return found


def kernel(program: RowProgram, rows: pa.Table) -> tuple[int, float, float]:
    """How many matches there are, and the seconds of the kernel without and with conditions."""
    ordered = arranged(program.plan, conforming_table(program.plan, rows, derived=False))
    run = run_of(program, ordered.rows(0, len(rows)), ordered.offsets)
    found = 0

    def both() -> None:
        nonlocal found
        find, data = run.finder()
        found = _count(run, find, data)

    whole = best_of(both)
    conditions = best_of(run.found)
    return found, whole - conditions, whole


def _count(run: Any, find: Any, data: Any) -> int:
    cursor = np.zeros(passes.CURSOR, np.int64)
    cursor[passes.ROW] = -1
    matches = np.empty((1 << 15, passes.MATCH_COLUMNS), np.int64)
    labels = np.empty(1 << 17, np.int32)
    targets = np.zeros(1, np.bool_)
    found = 0
    while True:
        status = find(data, run.offsets, 0, targets, False, cursor, matches, labels)
        found += int(cursor[passes.MATCHES])
        if status == passes.DONE:
            return found
        if status == passes.NO_ROOM and not cursor[passes.MATCHES]:
            labels = np.empty(2 * len(labels), np.int32)
        cursor[passes.MATCHES] = cursor[passes.LABELS] = 0


@njit  # type: ignore[untyped-decorator]
def _backtracking(values: Any, low: int, high: int) -> int:
    """`A+ B` with A: v < low, B: v > high, start by start; returns the matches."""
    found, start = 0, 0
    rows = values.shape[0]
    while start < rows:
        end = start
        while end < rows and values[end] < low:
            end += 1
        following = start + 1
        while end > start:
            if end < rows and values[end] > high:
                found += 1
                following = end + 1
                break
            end -= 1
        start = following
    return found


def measure(rows: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(rows)
    figures: dict[str, Any] = {}
    for parts in (1, 100_000):
        data = table(rows, parts)
        for name, text in PATTERNS.items():
            query = celc.compile(_HEAD + text, dialect="match_recognize").queries["query"]
            query.match_table(data.slice(0, 1000))
            matches, passes_alone, with_conditions = kernel(query.program, data)
            whole = best_of(partial(query.match_table, data), 3)
            found = {
                "matches": matches,
                "kernel, million rows/s": rows / passes_alone / 1e6,
                "with conditions": rows / with_conditions / 1e6,
                "match_table": rows / whole / 1e6,
            }
            figures[f"{name}, {parts:,} partitions"] = found
            print(parts, name, {key: round(value, 2) for key, value in found.items()}, flush=True)
    figures["match_table, rare and bound"] = rare(rows)
    print(figures["match_table, rare and bound"], flush=True)
    few = table(FEW, 1)
    query = celc.compile(_HEAD + PATTERNS["A+ B, B never"], dialect="match_recognize")
    values = few.column("v").to_numpy()
    _backtracking(values, 1000, 5000)
    figures["backtracking"] = {
        "rows": FEW,
        "seconds of a loop": best_of(partial(_backtracking, values, 1000, 5000), 3),
        "seconds of match_table": best_of(partial(query.match_table, few)),
    }
    print(figures["backtracking"], flush=True)
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("row_patterns", __doc__, 10_000_000, measure)

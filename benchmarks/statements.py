"""What `celc.sql` costs on Spark, beside `match` for the same clause.

    python benchmarks/statements.py [--events N] [--turns N] [--record]

Rows of 100,000 partitions in a Parquet file, and 100 rows of 10 in another. `match` is a query that
was compiled before; `celc.sql` reads the statement, compiles its clause and makes the plan each
time. Times are CPU time of all processes. The ways take turns, each second turn in the other order,
after some turns in which Spark's JVM compiles its own code; the least of each counts, as all that
disturbs a turn adds to it. The goal for the ratio is 1.1. `fixed` is what a call costs on 100 rows,
`per row` the ratio of what the other rows add.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
from common import calibrate
from processes import seconds_of
from rates import run_alone
from row_patterns import PATTERNS, table
from spark_jobs import run_made, session

import celc

_FEW = 100
_WARM = 3
_CHOSEN = ("A+ B+", "V shape")
_HEAD = (
    "SELECT * FROM {} MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
    "MEASURES COUNT(*) AS n, LAST(v) AS last "
)


def measure(rows: int, turns: int = 9) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(rows)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        frames = {}
        for called, number, partitions in (("few", _FEW, 10), ("many", rows, 100_000)):
            path = Path(folder) / f"{called}.parquet"
            pyarrow.parquet.write_table(table(number, partitions), path)
            frames[called] = spark.read.parquet(str(path))
            frames[called].createOrReplaceTempView(called)
        for name in _CHOSEN:
            least = {
                called: _least(_ways(spark, frame, _HEAD.format(called) + PATTERNS[name]), turns)
                for called, frame in frames.items()
            }
            figures[name] = _compared(name, least["few"], least["many"])
    return {"calibration": calibrated(), "figures": figures}


def _ways(spark: Any, frame: Any, text: str) -> dict[str, Callable[[], Any]]:
    query = celc.compile(text, dialect="match_recognize", schema=frame.schema)
    return {"match": lambda: query.match(frame), "celc.sql": lambda: celc.sql(spark, text)}


def _least(ways: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """The least CPU seconds of each way."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(_WARM + turns):
        order = [*ways] if turn % 2 else [*reversed(ways)]
        for way in order:
            seconds = seconds_of(lambda way=way: run_made(ways[way]))
            if turn >= _WARM:
                found[way].append(seconds)
    return {way: min(seconds) for way, seconds in found.items()}


def _compared(name: str, few: dict[str, float], many: dict[str, float]) -> dict[str, float]:
    """The figures of a pattern, which are printed."""
    added = {way: many[way] - few[way] for way in many}
    ratio, per_row = (one["celc.sql"] / one["match"] for one in (many, added))
    fixed = few["celc.sql"] - few["match"]
    print(
        f"{name:12} {ratio:5.2f}  {many['match']:6.2f} s by match   fixed {fixed:+.2f} s   "
        f"per row {per_row:5.2f}",
        flush=True,
    )
    return {
        "ratio": round(ratio, 3),
        "per_row": round(per_row, 3),
        "fixed_seconds": round(fixed, 3),
        **{way: round(seconds, 3) for way, seconds in many.items()},
        **{f"{way} of {_FEW}": round(seconds, 3) for way, seconds in few.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--turns", type=int, default=9)
    known, sys.argv[1:] = parser.parse_known_args()
    run_alone("statements", __doc__, 1_000_000, lambda rows: measure(rows, known.turns))

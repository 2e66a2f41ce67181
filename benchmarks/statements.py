"""What `celc.sql` costs on Spark, beside `match` for the same clause.

    python benchmarks/statements.py [--events N] [--record]

Rows of 100,000 partitions in a Parquet file. `match` is a query that was compiled before;
`celc.sql` reads the statement, compiles its clause and makes the plan each time. Times are CPU time
of all processes, the least of five in turns; the goal for their ratio is 1.1.
"""

from __future__ import annotations

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

GOAL = 1.1
_TURNS = 5
_CHOSEN = ("A+ B+", "V shape")
_HEAD = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
    "MEASURES COUNT(*) AS n, LAST(v) AS last "
)


def measure(rows: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(rows)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        path = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(table(rows, 100_000), path)
        frame = spark.read.parquet(str(path))
        frame.createOrReplaceTempView("t")
        for name in _CHOSEN:
            text = _HEAD + PATTERNS[name]
            query = celc.compile(text, dialect="match_recognize", schema=frame.schema)
            ways: dict[str, Callable[[], Any]] = {
                "match": lambda query=query: query.match(frame),
                "celc.sql": lambda text=text: celc.sql(spark, text),
            }
            found: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(_TURNS + 1):
                for way, make in ways.items():
                    seconds = seconds_of(lambda make=make: run_made(make))
                    if turn:  # the first one compiles
                        found[way].append(seconds)
            least = {way: min(seconds) for way, seconds in found.items()}
            ratio = least["celc.sql"] / least["match"]
            print(f"{name:12} {ratio:5.2f}  {least['match']:6.2f} s by match", flush=True)
            figures[name] = {"ratio": round(ratio, 3), **least}
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("statements", __doc__, 1_000_000, measure)

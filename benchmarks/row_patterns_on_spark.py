"""What MATCH_RECOGNIZE costs on Spark, beside the same plan with a function that passes rows on.

    python benchmarks/row_patterns_on_spark.py [--events N] [--record]

Rows of 100,000 partitions in a Parquet file are spread by key, sorted, and given to `mapInArrow`:
to the query, and to a function that gives back each batch as it came. Both are counted, not
collected. Times are CPU time of all processes; the goal for their ratio is 1.5.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from common import calibrate
from processes import tree_seconds
from pyspark.sql import SparkSession
from rates import run_alone
from row_patterns import _HEAD, PATTERNS, table

import celc

_RUNS = 3
_CHOSEN = ("A+ B+", "(A+)+ B, B never", "V shape")


def passed_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as it comes."""
    yield from batches


def seconds(job: Callable[[], Any]) -> float:
    """CPU seconds of a job, the least of several runs."""
    found = []
    for _ in range(_RUNS):
        before = tree_seconds()
        job()
        found.append(tree_seconds() - before)
    return min(found)


def measure(rows: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(rows)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(table(rows, 100_000), path)
        frame = spark.read.parquet(str(path))
        spread = frame.repartition("k").sortWithinPartitions("k", "ts")
        plain = spread.mapInArrow(passed_on, "k INT, ts BIGINT, v INT")
        plain.limit(10).collect()
        figures["passed on"] = seconds(plain.count)
        for name in _CHOSEN:
            query = celc.compile(_HEAD + PATTERNS[name], dialect="match_recognize")
            result = frame.transform(query.match)
            result.limit(10).collect()
            figures[name] = seconds(result.count)
            figures[f"{name}, to passed on"] = figures[name] / figures["passed on"]
            print(name, round(figures[f"{name}, to passed on"], 2), flush=True)
    spark.stop()
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("row_patterns_on_spark", __doc__, 10_000_000, measure)

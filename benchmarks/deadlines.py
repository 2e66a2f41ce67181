"""What pending deadlines cost a stream while none is due.

    python benchmarks/deadlines.py [--pending N] [--keys N] [--rows N] [--files N] [--warm-up N]
        [--buckets N]

Two streams of one query with an absence at its end, on the same files of a minute of event time
each. In one of them the first file has also an event of each of N other partitions, which then are
silent, each with a match that waits for its deadline a day later. The figure is the clock of a file
(two micro-batches: that of its rows, and that of the watermark that they move) beside the other
stream's. The stream without pending deadlines is run before and after the other, so that the
scatter of the machine is seen. The files have no event that could undo a match or begin one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from cells import START, Cell, events
from pyarrow import parquet
from spark_jobs import session
from streaming import DELAY, SETTINGS, FileCost, _run

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = """
CREATE STREAM S {
  EVENT A { key: INT, v: DOUBLE, ts: TIMESTAMP },
  EVENT B { key: INT, v: DOUBLE, ts: TIMESTAMP },
  EVENT C { key: INT, v: DOUBLE, ts: TIMESTAMP },
  EVENT X { key: INT, v: DOUBLE, ts: TIMESTAMP },
  EVENT W { key: INT, v: DOUBLE, ts: TIMESTAMP }
}
QUERY silent: SELECT w[v] FROM S WHERE (W AS w ; !(A AS a FILTER a.v > 1) FOR 1 DAY [ts])
PARTITION BY key
"""


def waiting(count: int, first_key: int) -> pa.Table:
    """An event of each of so many partitions, in the first second."""
    ids = np.arange(first_key, first_key + count, dtype=np.int32)
    micros = START + np.arange(count) * 1_000_000 // max(1, count)
    return pa.table(
        {
            "type": pa.array(["W"] * count),
            "key": pa.array(ids),
            "v": pa.array(np.ones(count)),
            "ts": pa.array(micros, pa.timestamp("us", tz="UTC")),
        }
    )


def measured(
    spark: SparkSession, cell: Cell, pending: int, folder: Path
) -> tuple[list[FileCost], int]:
    """What each measured file cost beside so many pending deadlines, and how many events of them
    the states had in the end."""
    query = celc.compile(QUERY, order_by="ts").silent
    files = []
    (folder / "files").mkdir(parents=True)
    for number in range(cell.warm_up + cell.files):
        rows = events(cell, number)
        if number == 0 and pending:
            rows = pa.concat_tables([rows, waiting(pending, cell.keys)])
        files.append(folder / "files" / f"{number:04}.parquet")
        parquet.write_table(rows, files[-1])
    source = folder / "source"
    source.mkdir()
    frame = spark.readStream.schema(spark.read.parquet(str(files[0])).schema).parquet(str(source))
    options = {} if cell.buckets is None else {"buckets": cell.buckets}
    stream: DataFrame = query.match_stream(frame, watermark=DELAY, **options)
    found = _run(stream, folder, files)[cell.warm_up :]
    return found, _pending(spark, folder / "checkpoint")


def _pending(spark: SparkSession, checkpoint: Path) -> int:
    """How many events have a deadline to come, by the headers of all buckets."""
    from celc_runtime.stream.processor import HEADER, STATE
    from celc_runtime.stream.stored.state import pending_in
    from celc_runtime.stream.stored.texts import bytes_of

    state = spark.read.format("statestore").option("path", str(checkpoint))
    pieces = state.option("stateVarName", STATE).load().where(f"user_map_key.place = {HEADER}")
    headers = pieces.selectExpr("user_map_value.data").collect()
    return sum(pending_in(bytes_of(row.data)) for row in headers)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the two streams."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("pending", 100_000),
        ("keys", 20),
        ("rows", 10_000),
        ("files", 20),
        ("warm-up", 30),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    parser.add_argument("--buckets", type=int, metavar="N", help="the option of match_stream")
    asked = parser.parse_args(arguments)
    cell = Cell(asked.keys, asked.rows, asked.warm_up, asked.files, asked.buckets)
    clocks, workers = [], []
    with session() as spark, tempfile.TemporaryDirectory(prefix="celc-bench-") as name:
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        for number, pending in enumerate((0, asked.pending, 0)):
            costs, there = measured(spark, cell, pending, Path(name) / str(number))
            assert there == pending, f"{there:,} deadlines are pending, not {pending:,}"
            clocks.append(statistics.median(cost.clock for cost in costs))
            workers.append(statistics.median(cost.workers for cost in costs))
            print(
                f"{pending:9,} pending: {clocks[-1]:.3f} s on the clock for a file, "
                f"{workers[-1]:.3f} s of CPU of Python workers",
                flush=True,
            )
    for what, (before, beside, after) in (("clock", clocks), ("CPU of workers", workers)):
        without = (before + after) / 2
        print(f"{what}: {beside / without:.3f} times; scatter {after / before:.3f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())

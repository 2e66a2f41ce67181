"""What batch jobs of many shapes cost, for `scale.py`: CPU, bytes shuffled and written, memory."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from processes import end_workers, seconds_of, worker_peak
from pyarrow import parquet
from scale_queries import FITTED, TEXT, Compiled, Design, compiled, write

from celc.interfaces.cli.sizing.model import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WARM_UP, WARM_ROWS = 16, 1_000_000
"""Jobs before the first that is measured, each of so many rows: the JVM compiles Spark's code
meanwhile. With fewer it does so still in the first jobs that are measured, which cost more."""


@dataclass(frozen=True)
class Measured:
    """A job: what it read and found, and what it cost.

    job: as the log of the session names it; `shuffled` and `held`, the seconds for which tasks held
    a core, are 0 until that is read. seconds: of CPU, of all processes; clock: by the clock.
    shuffled, written, peak of the memory of a Python worker, state of a stream: bytes. Of a stream
    all are of one micro-batch.
    """

    job: str
    design: str
    kind: str
    rows: int
    matches: int
    seconds: float
    clock: float
    shuffled: int
    written: int
    peak: int
    state: int = 0
    held: float = 0.0


def amounts(design: Design, rows: int, matches: int) -> Batch:
    """What the model is told of a job."""
    return Batch(
        rows=rows,
        keys=max(1, rows // design.rows_of_key) if design.key else 1,
        relevant=design.share * design.passing,
        matches=matches,
        in_window=design.in_window,
        tasks=design.tasks if design.key else 1,
        text=TEXT,
    )


def measured(
    spark: SparkSession, designs: Sequence[Design], sizes: Sequence[int], turns: int
) -> Iterator[Measured]:
    """Run each design on each number of rows, `turns` times, and tell the run of the least CPU."""
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as name:
        folder = Path(name)
        _warm_up(spark, folder)
        for design in designs:
            made = compiled(design)
            spark.conf.set("spark.sql.shuffle.partitions", str(design.tasks))
            end_workers()  # those of another design keep its memory
            _run_once(spark, design, folder)  # workers start, and make machine code
            for rows in sizes:
                data = write(folder / "events", design, rows)
                runs = [
                    _run(spark, design, made, data, folder / "matches", rows, turn)
                    for turn in range(turns)
                ]
                shutil.rmtree(data)
                yield min(runs, key=lambda one: one.seconds)


def _warm_up(spark: SparkSession, folder: Path) -> None:
    """Let the JVM compile: jobs of all kinds of columns and answers."""
    for design in FITTED[:WARM_UP]:
        _run_once(spark, design, folder)


def _run_once(spark: SparkSession, design: Design, folder: Path) -> None:
    data = write(folder / "warm", design, WARM_ROWS)
    _run(spark, design, compiled(design), data, folder / "matches", WARM_ROWS, -1)
    shutil.rmtree(data)


def _run(
    spark: SparkSession,
    design: Design,
    made: Compiled,
    data: Path,
    answer: Path,
    rows: int,
    turn: int,
) -> Measured:
    job = f"{design.name}, {rows} rows, turn {turn}"
    spark.sparkContext.setJobDescription(job)
    begun = time.perf_counter()
    with worker_peak() as peak:
        seconds = seconds_of(
            lambda: made.query.match(spark.read.parquet(str(data)))
            .write.mode("overwrite")
            .parquet(str(answer))
        )
    clock = time.perf_counter() - begun
    files = list(answer.rglob("*.parquet"))
    written = sum(file.stat().st_size for file in files)
    matches = sum(parquet.read_metadata(file).num_rows for file in files)
    return Measured(
        job, design.name, "batch", rows, matches, seconds, clock, 0, written, peak.bytes
    )

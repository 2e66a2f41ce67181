"""What streams of many shapes cost in their steady state, for `scale.py`.

All files of a stream are there when it begins, and each micro-batch takes one: as with a trigger
and rows that never cease, a micro-batch reads the rows of one interval and runs those that the
watermark has passed. What a micro-batch costs is read where Spark hands over its answer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from processes import tree_seconds
from pyarrow import parquet
from scale_batch import Measured
from scale_queries import FILES, TEXT, WINDOW, Compiled, Design, compiled, events
from streaming import SETTINGS

from celc.interfaces.cli.sizing.model import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEADY = 3
"""Micro-batches that are measured, once the window is full and one more has run."""

DELAY = "1 second"

WARM_UP = 10
"""Micro-batches before the first stream: the JVM compiles Spark's planner meanwhile."""


class Streamed(NamedTuple):
    """A design as a stream, with the number of micro-batches in a window."""

    design: Design
    batches: int

    def keys(self, rows: int) -> int:
        """How many keys there are, so that a window has as many events of each as it should."""
        return max(1, round(rows * self.design.share * self.batches / self.design.in_window))

    def amounts(self, rows: int, matches: float) -> Stream:
        """What the model is told of a micro-batch."""
        design = self.design
        return Stream(
            rows=rows,
            keys=self.keys(rows),
            relevant=design.share * design.passing,
            matches=matches,
            in_window=design.in_window,
            tasks=design.tasks,
            text=TEXT,
            state=rows * design.share * design.passing * self.batches,
        )


_ABC, _AB = "A AS a ; B AS b ; C AS c", "A AS a ; B AS b"

FITTED = (
    Streamed(Design("rare", _ABC, share=0.01), 4),
    Streamed(Design("all rows", _ABC, "a[v], c[v]", share=1.0), 4),
    Streamed(Design("long window", _ABC, share=0.3), 12),
    Streamed(Design("six numbers", _ABC, numbers=6, share=0.5), 2),
    Streamed(Design("two texts", _ABC, texts=2, share=0.5), 4),
    Streamed(Design("text key", _AB, "a[v]", "AB", text_key=True, share=0.5, in_window=1), 4),
    Streamed(
        Design(
            "text and text key", _AB, "b[t0]", "AB", texts=1, text_key=True, share=0.3, in_window=2
        ),
        2,
    ),
    Streamed(Design("many matches", _AB, types="AB", share=0.5, in_window=8), 4),
    Streamed(Design("few keys", _ABC, "a[v]", share=0.03, in_window=30), 6),
    Streamed(Design("rising", f"({_AB}) FILTER a.v < b.v", types="AB", share=0.5, in_window=12), 3),
    Streamed(Design("eight tasks", _ABC, share=0.3, tasks=8), 4),
)

FRESH = (
    Streamed(
        Design(
            "four events",
            f"{_ABC} ; D AS d",
            "a[v, n], d[v]",
            "ABCD",
            numbers=2,
            texts=1,
            share=0.4,
            in_window=4,
        ),
        5,
    ),
    Streamed(
        Design("texts of a key", _ABC, "b[t0]", texts=2, text_key=True, share=0.2, in_window=3), 3
    ),
)


def measured(
    spark: SparkSession, streams: Sequence[Streamed], sizes: Sequence[int]
) -> Iterator[Measured]:
    """Run each stream with each number of rows in a micro-batch, and tell its steady state."""
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    first = FITTED[1]
    _run(spark, first, compiled(first.design), 20_000, WARM_UP)
    for stream in streams:
        made = compiled(stream.design)
        for rows in sizes:
            yield _run(spark, stream, made, rows, stream.batches + 2)


class _Mark(NamedTuple):
    seconds: float
    clock: float
    written: int


def _run(spark: SparkSession, stream: Streamed, made: Compiled, rows: int, before: int) -> Measured:
    design = stream.design
    spark.conf.set("spark.sql.shuffle.partitions", str(design.tasks))
    with tempfile.TemporaryDirectory(prefix="celc-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _write(folder / "source", stream, rows, before + STEADY)
        checkpoint, answers = folder / "checkpoint", folder / "answers"
        marks: list[_Mark] = []

        def taken(batch: DataFrame, number: int) -> None:
            marks.append(_Mark(tree_seconds(), time.perf_counter(), _changes(checkpoint)))
            batch.write.mode("overwrite").parquet(str(answers / f"batch={number}"))

        schema = spark.read.parquet(str(folder / "source")).schema
        read = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1")
        found = made.query.match_stream(read.parquet(str(folder / "source")), watermark=DELAY)
        writer = found.writeStream.foreachBatch(taken)
        writer = writer.option("checkpointLocation", str(checkpoint))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        begin, end = marks[before - 1], marks[before + STEADY - 1]
        matches = sum(
            parquet.read_metadata(file).num_rows
            for number in range(before, before + STEADY)
            for file in (answers / f"batch={number}").rglob("*.parquet")
        )
        return Measured(
            job="",
            design=design.name,
            kind="stream",
            rows=rows,
            matches=round(matches / STEADY),
            seconds=(end.seconds - begin.seconds) / STEADY,
            clock=(end.clock - begin.clock) / STEADY,
            shuffled=0,
            written=round((end.written - begin.written) / STEADY),
            peak=0,
            state=_state_bytes(running, before + STEADY - 1),
        )


def _changes(checkpoint: Path) -> int:
    """The bytes of all changes that were written to the state so far, also of files that Spark has
    deleted since: each has a number, and none is deleted while so few are there."""
    return sum(file.stat().st_size for file in checkpoint.rglob("*.changelog"))


def _state_bytes(running: Any, number: int) -> int:
    """The bytes of all states after a micro-batch, as celc counts them."""
    for progress in running.recentProgress:
        if progress.batchId == number:
            (row,) = progress.observedMetrics.values()
            return int(row["bytes"])
    raise RuntimeError(f"Spark tells nothing of micro-batch {number}")


def _write(folder: Path, stream: Streamed, rows: int, count: int) -> None:
    """Files of equal lengths of time, in their order."""
    folder.mkdir()
    length = WINDOW * 1_000_000 // stream.batches
    design = stream.design._replace(rows_of_key=max(1, rows // stream.keys(rows)))
    for number in range(count):
        table = events(
            design, rows, seed=number, keys=stream.keys(rows), begin=number * length, length=length
        )
        file = folder / f"{number:04}.parquet"
        parquet.write_table(table, file, row_group_size=-(-rows // FILES))
        os.utime(file, (1_800_000_000 + number, 1_800_000_000 + number))

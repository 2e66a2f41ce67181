"""Matches that wait for a deadline on real streams: the micro-batch in which they come, and workers
that are killed meanwhile."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from celc_runtime import finish
from celc_runtime.stream import match as stream
from celc_runtime.stream.monitor import micro_batch
from conftest import long_over_connect
from pyspark import cloudpickle
from stream_routes import (
    SETTINGS,
    START,
    event,
    files,
    finished,
    query,
    rows_of,
    run,
    settings,
    table,
    write_files,
)


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS):
        yield


SILENT = query(
    "QUERY silent: SELECT x[v] WHERE A AS x ; !B FOR 10 SECONDS [ts] PARTITION BY id",
    positions=True,  # without them an old event of a new partition is late
)


def _closed(spark: Any, rows: list[dict]) -> list[str]:
    """The answer of `match` to events of which all are there."""
    frame = spark.createDataFrame(table(rows))
    return rows_of(SILENT.with_options(at_end="closed").match(frame))


def _at(seconds: float) -> str:
    """A watermark as Spark's progress shows it."""
    time = START + dt.timedelta(seconds=seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


@long_over_connect
def test_a_silent_partition_comes_with_the_first_watermark_behind_its_deadline(
    spark: Any, tmp_path: Path
) -> None:
    """Partitions 1 and 3 are silent, and wait until 10 and 10.5 seconds; partition 2 is in another
    bucket, and moves the watermark. A micro-batch has the watermark of the rows read before it; the
    last one has no rows. Partition 34 is in the bucket of partition 2. It begins when the watermark
    is 10 seconds, with an event whose deadline lies 5 behind that: its match comes at once."""
    begins = [(0, 1), (0.5, 3)]
    moments = begins, [(9.5, 2)], [(10, 2)], [(10.001, 2), (-5, 34)], [(10.5, 2)], [(12, 2)]
    chunks = [
        [event(seconds, "A" if id != 2 else "B", id) for seconds, id in one] for one in moments
    ]
    last = [event(11.9, "A", 1)]  # it is left for `finish`
    write_files(tmp_path / "in", [table(chunk) for chunk in (*chunks[:-1], chunks[-1] + last)])
    found = SILENT.match_stream(files(spark, tmp_path / "in"), watermark="0 seconds", buckets=64)
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{out}/batch={number}")

    write.__module__ = "__main__"  # sent by value, over Connect
    writer = found.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    progress = [micro_batch(one) for one in finished(writer)]
    came = spark.read.parquet(out).selectExpr("id", "batch").collect()
    shown = {row.id: next(p for p in progress if p["batch"] == row.batch) for row in came}
    assert shown.keys() == {1, 3, 34}
    # The watermark of 10 seconds does not decide the first one, nor that of 10.5 the second one.
    assert (shown[1]["watermark"], shown[1]["rows"]) == (_at(10.001), 1)
    assert (shown[3]["watermark"], shown[3]["rows"]) == (_at(12), 0)
    assert (shown[34]["watermark"], shown[34]["rows"]) == (_at(10), 2)
    assert [p["watermark"] for p in progress[1:]] == [
        _at(n) for n in (0.5, 9.5, 10, 10.001, 10.5, 12)
    ]
    assert [p["matches"] for p in progress] == [0, 0, 0, 1, 1, 0, 1]
    assert progress[1]["pending"] == 2
    assert finish(spark, checkpoint, found, write)
    everything = [row for chunk in (*chunks, last) for row in chunk]
    assert rows_of(spark.read.parquet(f"{out}/*")) == _closed(spark, everything)


# --- workers that are killed ----------------------------------------------------------------------


_DIED = re.compile("crashed|exited|connection|EOF")
"""What Spark says of a worker that is gone."""


def _dying_task(route: Any, marker: str, options: Any) -> Any:
    """A task whose process is killed, once, when deadlines of a bucket without events are due."""
    task = route(options)
    step = task.step

    def dying(label: int, header: Any, load: Any, blocks: Any, watermark: int) -> Any:
        done = step(label, header, load, blocks, watermark)
        if not blocks and done[0].match_count:
            _kill_once(marker)
        return done

    task.step = dying
    return task


def _dying_finish(route: Any, marker: str, options: Any, rules: Any, batches: Any) -> Any:
    for batch in route(options, rules, batches):
        _kill_once(marker)
        yield batch


def _kill_once(marker: str) -> None:
    import os
    import signal

    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_worker_that_is_killed_when_deadlines_are_due(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 behind the step that hands the matches out, and in the task of `finish`: the stream
    is started again, and `finish` called again, and each match is there once."""
    for name, dying in (("task_route", _dying_task), ("finishing_route", _dying_finish)):
        made = getattr(stream, name)

        def patched(program: Any, made: Any = made, dying: Any = dying, name: str = name) -> Any:
            return partial(dying, made(program), str(tmp_path / name))

        monkeypatch.setattr(stream, name, patched)
    silent = [event(number / 100, "A", number) for number in range(1, 40)]
    undone = [event(5, "B", 7), event(6, "B", 11)]
    later = [event(9 + number / 100, "A", 100 + number) for number in range(10)]
    chunks = [silent, undone + later, [event(10.2, "B", 50)], [event(10.3, "B", 50)]]
    write_files(tmp_path / "in", [table(chunk) for chunk in chunks])
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        found = SILENT.match_stream(files(spark, tmp_path / "in"), watermark="0 seconds", buckets=8)
        with pytest.raises(Exception, match=_DIED):
            run(found, tmp_path)
        assert (tmp_path / "task_route").exists()
        run(found, tmp_path)
        checkpoint, rest = str(tmp_path / "checkpoint"), str(tmp_path / "rest")

        def write(rows: Any, number: int) -> None:
            rows.write.mode("overwrite").parquet(rest)

        with pytest.raises(Exception, match=_DIED):
            finish(spark, checkpoint, found, write)
        assert (tmp_path / "finishing_route").exists()
        assert finish(spark, checkpoint, found, write)
        assert not finish(spark, checkpoint, found, write)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    there = rows_of(spark.read.parquet(str(tmp_path / "out")))
    left = rows_of(spark.read.parquet(rest))
    assert len(there) >= 15
    assert len(left) >= 10
    assert sorted(there + left) == _closed(spark, [row for chunk in chunks for row in chunk])

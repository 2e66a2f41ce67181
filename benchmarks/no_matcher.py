"""The operator of `match_stream` with a matcher that does nothing: what no matcher can save.

It has the plan of `match_stream` (two functions over Arrow around an operator with state) and
nothing in it. A bucket stores eight bytes and a timer, and returns one row when the watermark has
passed the first of its events. Its workers leave modules out of the garbage that they look for
after each task, as those of `match_stream` do: that is 55 ms, and no matcher's doing.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.match import chosen_api, default_buckets, in_buckets
from celc_runtime.stream.one_bucket.step import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def without_a_matcher(rows: DataFrame, wanted: str, watermark: str) -> DataFrame:
    """For rows with the columns `id` (the key) and `timestamp`: the times (`asks`) of events that
    the watermark has passed.

    wanted: a condition of SQL on the rows that reach the operator, with all their columns.
    """
    from pyspark import cloudpickle
    from pyspark.sql import functions

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import it
    kept = functions.expr(wanted) | functions.col("timestamp").isNull()
    return in_buckets(
        rows.withWatermark("timestamp", watermark).where(kept),
        partial(_first_times, labels_of(default_buckets(rows.sparkSession))),
        _Nothing,
        _shown,
        "asks TIMESTAMP",
        api=chosen_api(None),
        metrics="nothing",
        step_ddl="rows BIGINT, asks BIGINT",
        counts=("rows",),
    )


def _first_times(labels: np.ndarray, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first time of the rows of each bucket, in milliseconds."""
    gc.freeze()
    for batch in batches:
        if not len(batch):
            continue
        buckets = batch.column("id").to_numpy() % len(labels)
        times = batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000
        found = np.unique(buckets)
        first = [int(times[buckets == one].min()).to_bytes(8, "little") for one in found]
        arrays = [pa.array(labels[found], pa.int32()), pa.array(first, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, names=["bucket", "events"])


class _Nothing:
    """What a bucket does, as the processor of `match_stream` calls it: it has the first time that
    the watermark has not passed."""

    @staticmethod
    def text_of(data: bytes) -> str:
        return data.hex()

    @staticmethod
    def bytes_of(text: str) -> bytes:
        return bytes.fromhex(text)

    def step(
        self, label: int, header: bytes | None, load: Any, blocks: list[bytes], watermark: int
    ) -> tuple[Step, list[dict[str, Any]]]:
        gc.freeze()
        before = int.from_bytes(header or b"", "little")
        times = [int.from_bytes(block, "little") for block in blocks]
        is_due = 0 < before < watermark
        waits = [*times, *([before] if before and not is_due else [])]
        now = min(waits, default=0)
        step = Step(None, now.to_bytes(8, "little"))  # type: ignore[arg-type]
        if now != before:
            step.unset_timers = [before] if before else []
            step.set_timers = [now] if now else []
        return step, [{"rows": len(blocks), "asks": before if is_due else None}]


def _shown(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The times of events that the watermark has passed: as far as it had to move."""
    gc.freeze()
    for batch in batches:
        times = pc.multiply(batch.column("asks").drop_null(), 1000)
        yield pa.RecordBatch.from_arrays([times.cast(pa.timestamp("us", "UTC"))], names=["asks"])

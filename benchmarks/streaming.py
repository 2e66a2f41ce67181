"""A stream in its steady state: rows per second, our share of the work, the size of states.

Files of events come one at a time into a folder that a stream watches; each is a micro-batch, with
another one behind it for the watermark that has moved. The first one, which is not counted, fills
the window. Beside it runs an *identity* stream of the same kind: the same events, packed beforehand
by partition, go through two `mapInArrow` that pass on what they get and an operator of the same
interface. That reads a state and writes one of the same size, and sets a timer to be called when
the watermark has moved on, as an operator must that puts events in order. What Python workers use
beyond it is ours: packing, the query, states, unpacking.

By CPU time of the process tree, the workers' part apart (all that descends from the JVM).
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from common import Figure, Settings
from processes import tree_seconds, worker_seconds
from pyarrow import parquet
from spark import session

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 20_000
"""Rows of a micro-batch."""

KEYS = (20, 2_000)
_WARM_UP = 3
WINDOW = 600
DELAY = 5
QUERY = f"""
CREATE STREAM S {{
  EVENT A {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT B {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT C {{ key: INT, v: DOUBLE, ts: TIMESTAMP }},
  EVENT X {{ key: INT, v: DOUBLE, ts: TIMESTAMP }}
}}
SELECT a[v], c[v] FROM S
WHERE (A AS a ; B AS b ; C AS c) FILTER a.v > 0.5 AND b.v > 0.5 AND c.v > 0.99
PARTITION BY key WITHIN {WINDOW} SECONDS [ts]
"""


class MicroBatch(NamedTuple):
    """What one file cost: seconds on the clock, CPU of all processes, CPU of Python workers."""

    clock: float
    cpu: float
    workers: float


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    batches = 14 if settings.full else 8
    settings.calibrated()  # for the record: what the machine was like
    with session() as spark:
        _for_streams(spark)
        for keys in KEYS:
            yield from _figures_of(spark, keys, batches)


def _for_streams(spark: SparkSession) -> None:
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    spark.conf.set("spark.sql.shuffle.partitions", "2")


def _figures_of(spark: SparkSession, keys: int, batches: int) -> Iterator[Figure]:
    query = celc.compile(QUERY, order_by="ts").query
    context = {"keys": keys, "rows": ROWS}
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as name:
        folder = Path(name)
        each = ROWS // keys
        files = [_file(folder, 0, keys, 0, WINDOW)]
        files += [
            _file(folder, number, keys, WINDOW + (number - 1) * each, each)
            for number in range(1, batches + 1)
        ]
        schema = spark.read.parquet(str(files[0])).schema
        checkpoint = folder / "checkpoint"

        def ours(source: Path) -> DataFrame:
            rows = spark.readStream.schema(schema).parquet(str(source))
            return query.match_stream(rows, watermark=f"{DELAY} seconds")

        steady = _run(ours, folder / "ours", files[:-1], checkpoint)
        state = _state_sizes(spark, checkpoint)
        restart = _run(ours, folder / "ours", files[-1:], checkpoint)
        packed = [_packed_file(query, folder, file) for file in files]
        size = int(state["bytes"] / state["partitions"])
        identity = _identity(spark, size)
        base = _run(identity, folder / "identity", packed[:-1], folder / "identity checkpoint")
        base_restart = _run(
            identity, folder / "identity", packed[-1:], folder / "identity checkpoint"
        )
    # The first ones after the start, when code is still being compiled, are left out.
    warm, base_warm = steady[_WARM_UP:], base[_WARM_UP:]
    yield Figure(
        "rows per second",
        "thousand rows a second",
        tuple(ROWS / 1000 / b.clock for b in warm),
        context=context,
    )
    shares = tuple(
        max(0.0, one.workers - other.workers) / one.cpu
        for one, other in zip(warm, base_warm, strict=True)
    )
    yield Figure(
        "our share of the work", "of CPU", shares, higher_is_better=False, goal=0.3, context=context
    )
    own = ROWS / 1000 * len(warm) / sum(b.workers for b in warm)
    yield Figure("CPU of workers", "thousand rows a second", (own,), context=context)
    yield Figure(
        "state per event that a live node points to, attributes aside",
        "bytes each",
        (state["overhead"],),
        higher_is_better=False,
        goal=40.0,
        context=context | {"live events": state["live"], "kept events": state["kept"]},
    )
    clock = statistics.median(b.clock for b in warm)
    startup = base_restart[0].clock - statistics.median(b.clock for b in base_warm)
    yield Figure(
        "first batch after a restart, Spark's own start-up aside",
        "steady batches",
        (max(0.0, restart[0].clock - max(0.0, startup)) / clock,),
        higher_is_better=False,
        goal=2.0,
        context=context,
    )


# --- streams --------------------------------------------------------------------------------------


def _run(
    stream: Callable[[Path], DataFrame], source: Path, files: list[Path], checkpoint: Path
) -> list[MicroBatch]:
    """Show a stream the files one by one, and tell what each cost."""
    source.mkdir(exist_ok=True)
    found = []
    with _started(stream(source), checkpoint) as running:
        for file in files:
            clock, cpu, workers = time.perf_counter(), tree_seconds(), worker_seconds()
            partial = source / f".{file.name}"
            shutil.copy(file, partial)
            partial.rename(source / file.name)
            running.processAllAvailable()
            found.append(
                MicroBatch(
                    time.perf_counter() - clock,
                    tree_seconds() - cpu,
                    worker_seconds() - workers,
                )
            )
    return found


@contextmanager
def _started(frame: DataFrame, checkpoint: Path) -> Iterator[Any]:
    running = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    try:
        yield running
    finally:
        running.stop()


def _identity(spark: SparkSession, size: int) -> Callable[[Path], DataFrame]:
    """A stream that passes on what it gets, with states of `size` bytes."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    def passed(batches: Any) -> Any:
        yield from batches

    class Identity(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self._handle = handle
            self._state = handle.getValueState("state", "state BINARY")

        def handleInputRows(self, key, rows, timerValues):  # type: ignore[no-untyped-def]  # noqa: N802, N803
            found = [bytes(row["events"]) for row in rows]
            before = self._state.get()
            self._state.update((b"0" * size if before is None else bytes(before[0]),))
            self._handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)
            yield Row(key=bytes(key[0]), events=found[0])

        def handleExpiredTimer(  # type: ignore[no-untyped-def]  # noqa: N802
            self,
            key,
            timerValues,  # noqa: N803
            expiredTimerInfo,  # noqa: N803
        ):
            before = self._state.get()
            self._state.update((bytes(before[0]),))
            yield Row(key=bytes(key[0]), events=b"")

        def close(self) -> None:
            pass

    ddl = "key BINARY, events BINARY"

    def stream(source: Path) -> DataFrame:
        rows = spark.readStream.schema(f"{ddl}, ts TIMESTAMP").parquet(str(source))
        blocks = rows.withWatermark("ts", f"{DELAY} seconds").select("key", "events")
        steps = (
            blocks.mapInArrow(passed, ddl)
            .groupBy("key")
            .transformWithState(Identity(), ddl, "append", "EventTime")
        )
        return steps.mapInArrow(passed, ddl)

    return stream


# --- data -----------------------------------------------------------------------------------------


def _events(number: int, keys: int, first: int, seconds: int) -> pa.Table:
    """So many seconds of events, one of each key a second: 10 % of types that the query names."""
    rng = np.random.default_rng(number)
    rows = keys * seconds
    key = np.tile(np.arange(keys), seconds)
    micros = (first + np.repeat(np.arange(seconds), keys)) * 1_000_000 + key * 7
    order = rng.permutation(rows)
    types = pa.array(["A", "B", "C", "X"]).take(
        pa.array(rng.choice(4, rows, p=[0.04, 0.03, 0.03, 0.9]))
    )
    return pa.table(
        {
            "type": types,
            "key": pa.array(key[order].astype(np.int32)),
            "v": rng.random(rows),
            "ts": pa.array(micros[order], pa.timestamp("us", tz="UTC")),
        }
    )


def _file(folder: Path, number: int, keys: int, first: int, seconds: int) -> Path:
    path = folder / f"{number:04}.parquet"
    parquet.write_table(_events(number, keys, first, seconds), path)
    return path


def _packed_file(query: Any, folder: Path, file: Path) -> Path:
    """The same events as the operator gets them, one row for each partition, with its last time."""
    table = parquet.read_table(file)
    options = {"tiebreak_types": {}, "late": "drop"}
    packed = pa.Table.from_batches(
        query.stream_packing_route(options, table.combine_chunks().to_batches())
    )
    last = pc.max(table["ts"])
    path = folder / f"packed-{file.name}"
    parquet.write_table(packed.append_column("ts", pa.repeat(last, len(packed))), path)
    return path


def _state_sizes(spark: SparkSession, checkpoint: Path) -> dict[str, float]:
    """What states hold, beside what the query's definition says is alive in them."""
    from celc_runtime.stream.tasks import StreamFormats, StreamOptions

    query = celc.compile(QUERY, order_by="ts").query
    formats = StreamFormats(query.program, StreamOptions({}))
    states = (
        spark.read.format("statestore")
        .option("path", str(checkpoint))
        .option("stateVarName", "state")
        .load()
        .selectExpr("value.state")
        .collect()
    )
    found = {"partitions": float(len(states)), "bytes": 0.0, "live": 0.0, "kept": 0.0}
    kept_bytes = 0
    for row in states:
        data = bytes(row[0])
        state = formats.states.read(data)
        kept = len(state.kept.records)
        found["bytes"] += len(data)
        found["kept"] += kept
        found["live"] += _alive(formats, state)
        waiting = len(state.waiting.records) * formats.events.dtype.itemsize
        kept_bytes += len(data) - waiting - 8 * kept  # v is asked for by SELECT and by conditions
    found["overhead"] = kept_bytes / max(1.0, found["live"])
    return found


def _alive(formats: Any, state: Any) -> int:
    """How many kept events are in a match that has begun: each A, and each B behind an A."""
    codes = formats.events.codes(state.kept)
    values = formats.events.values(state.kept, [f.name for f in formats.events.fields].index("v"))
    first = np.flatnonzero((codes == 0) & (values > 0.5))
    if not len(first):
        return 0
    behind = np.flatnonzero((codes == 1) & (values > 0.5))
    return len(first) + int((behind > first[0]).sum())

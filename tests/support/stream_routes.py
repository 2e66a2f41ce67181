"""Streams in tests: files that come one by one, queries over them, and what comes out."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from celc_runtime import CompiledQuery
from celc_runtime.stream.monitor import observed
from engines import interpreted, only_query
from spark_routes import AS_JSON, INTERPRETED_PLANS

import celc

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Each costs in each micro-batch, and these streams are small.
    "spark.sql.shuffle.partitions": "1",
    # To compile a plan takes longer than to run it on some rows.
    **INTERPRETED_PLANS,
}
"""What a session needs for streams, and what makes them cheap."""

START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)

DECLARATIONS = """CREATE STREAM S {
  EVENT A { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP },
  EVENT B { id: INT, v: DOUBLE, name: STRING, ts: TIMESTAMP }
}
"""

SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int32(),
        "v": pa.float64(),
        "name": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
        "row": pa.int64(),
    }
)


@contextmanager
def settings(spark: Any, wanted: Mapping[str, str]) -> Iterator[None]:
    """Settings of a session, for a while."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def query(text: str, **options: Any) -> CompiledQuery:
    """A query over `DECLARATIONS` in the order of `ts`, run as plain Python."""
    return only_query(queries(text, **options))


def queries(text: str, **options: Any) -> celc.Matcher:
    """The same of several."""
    with interpreted():
        return celc.compile(DECLARATIONS + text, **{"order_by": "ts"} | options)


# --- events ---------------------------------------------------------------------------------------


def event(
    seconds: float, type: str = "A", id: int = 1, v: float | None = 50.0, **more: Any
) -> dict[str, Any]:
    """An event so many seconds after `START`."""
    return {
        "type": type,
        "id": id,
        "v": v,
        "name": "n",
        "ts": START + dt.timedelta(seconds=seconds),
        **more,
    }


def events(count: int, keys: int, seed: int = 1) -> list[dict[str, Any]]:
    """Random events in order, no two at one time, half a second apart."""
    rnd = random.Random(seed)
    return [
        event(
            row / 2 + rnd.randrange(1000) / 10_000,
            rnd.choice("AB"),
            rnd.randrange(keys),
            rnd.choice([10.0, 41.5, 47.25, None]),
            name=rnd.choice(["é", "", None]),
            row=row,
        )
        for row in range(count)
    ]


END = event(50_000_000, id=-1, v=None, row=-1)
"""An event long after all others: the watermark follows it, and passes them."""


def shuffled(rows: Sequence[dict[str, Any]], seconds: float, seed: int = 1) -> list[dict[str, Any]]:
    """The events in an order in which none comes so many seconds after a later one, or more."""
    rnd = random.Random(seed)
    return sorted(rows, key=lambda e: e["ts"] + dt.timedelta(seconds=rnd.random() * seconds * 0.99))


def table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Events as a table."""
    rows = list(rows)
    return pa.table({f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in schema})


def parts(rows: Sequence[dict[str, Any]], count: int) -> list[Sequence[dict[str, Any]]]:
    """The rows in so many pieces, one after another."""
    edges = [len(rows) * number // count for number in range(count + 1)]
    return [rows[start:end] for start, end in pairwise(edges)]


# --- files ----------------------------------------------------------------------------------------


def write_files(folder: Path, tables: Iterable[pa.Table], first: int = 0) -> None:
    """Files that a stream reads in this order: it goes by the time of their last change."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(tables, first):
        # Written under a name that is not read and moved: a stream that runs sees whole files.
        hidden = folder / f".{number:04}"
        pq.write_table(rows, hidden)
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(folder / f"{number:04}.parquet")


def files(spark: Any, folder: Path, schema: Any = None) -> Any:
    """A streaming DataFrame of the files of a folder, one in each micro-batch."""
    if schema is None:
        schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def changed_since(checkpoint: Path) -> Any:
    """From when on the second query of a checkpoint has told rows, as its notes say."""
    notes = (checkpoint / "celc_queries").glob("*.txt")
    lines = [json.loads(line) for path in notes for line in path.read_text().splitlines()]
    (since,) = {one["since"] for one in lines} - {None}
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=since)


# --- running --------------------------------------------------------------------------------------


def run(matches: Any, folder: Path, checkpoint: str = "checkpoint") -> list[Any]:
    """Run a stream on all there is, into `folder`/out; what Spark says of each micro-batch."""
    writer = matches.writeStream.format("parquet").option("path", str(folder / "out"))
    return finished(writer.option("checkpointLocation", str(folder / checkpoint)))


def finished(writer: Any) -> list[Any]:
    """The same for a writer of streams."""
    started = writer.trigger(availableNow=True).start()
    try:
        started.awaitTermination()
        return list(started.recentProgress)
    finally:
        started.stop()


def together(streams: Mapping[str, Any]) -> Any:
    """Streams of any columns as one, because to start one takes Spark seconds."""
    from pyspark.sql import functions

    tagged = [
        stream.select(
            functions.lit(name).alias("stream"),
            functions.to_json(functions.struct("*"), AS_JSON).alias("json"),
        )
        for name, stream in streams.items()
    ]
    return reduce(lambda one, other: one.unionAll(other), tagged)


def taken_apart(found: Any) -> dict[str, list[str]]:
    """What `together` has brought together, sorted."""
    rows: dict[str, list[str]] = {}
    for row in found.collect():
        rows.setdefault(row.stream, []).append(canonical(json.loads(row.json)))
    return {name: sorted(texts) for name, texts in rows.items()}


def rows_of(found: Any) -> list[str]:
    """The rows of a DataFrame, sorted."""
    return sorted(map(repr, found.toArrow().to_pylist()))


def canonical(value: Any) -> str:
    """A row as text, times and whole numbers as Spark's JSON writes them."""
    return json.dumps(value, sort_keys=True, default=_as_json)


def _as_json(value: dt.datetime | Decimal) -> str | int:
    return int(value) if isinstance(value, Decimal) else value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def wanted(found: pa.Table) -> list[str]:
    """The rows of an answer in the form of `taken_apart`."""
    return sorted(map(canonical, found.to_pylist()))


def sums(progress: Iterable[Any], name: str) -> dict[str, int]:
    """The counts of a query over all micro-batches (those of what is there: of the last one)."""
    total: dict[str, int] = {}
    for one in progress:
        for count, value in observed(one).get(name, {}).items():
            there = count in ("waiting", "kept")
            total[count] = value if there else total.get(count, 0) + value
    return total

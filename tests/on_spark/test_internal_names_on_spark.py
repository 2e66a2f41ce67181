"""Columns called like those that the plans of Spark add, by every way to run a query there."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery
from conftest import long_over_connect
from engines import interpreted, only_query
from pyspark.sql import functions
from spark_routes import has_table_functions
from stream_routes import SETTINGS, settings

import celc

_START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
# For the partition, the order, a value, and a column that no query reads.
_CASTS = [
    ("Range", "number", "celc_time", "celc_ahead"),
    ("celc:612e62", "a.b", "\0position", "\0row"),
]
_MORE_CASTS = [
    ("number", "range", "bucket", "row"),
    ("key0", "Number", "rows", "range_"),
    ("\0row", "\0position", "\0place", "celc:612e62"),
    ("place", "hash", "Range", "celc:zz"),
]
_LONG = [pytest.param(names, marks=pytest.mark.long) for names in _MORE_CASTS]
# In the suite one cast goes by each way.
_SECOND = pytest.param(_CASTS[1], marks=pytest.mark.long)


def _query(names: tuple[str, ...], clauses: str) -> CompiledQuery:
    part, order, value, _ = names
    declared = f"{{ `{part}`: INT, `{order}`: TIMESTAMP, `{value}`: DOUBLE }}"
    text = (
        f"CREATE STREAM S {{ EVENT A {declared}, EVENT B {declared} }}\n"
        f"SELECT x, y FROM S WHERE A AS x ; B AS y FILTER x.`{value}` < y.`{value}` "
    )
    clauses = clauses.replace("PART", f"PARTITION BY `{part}`").replace("ORDER", f"`{order}`")
    with interpreted():
        return only_query(celc.compile(text + clauses, order_by=order, positions=True))


def _events(names: tuple[str, ...], count: int) -> pa.Table:
    part, order, value, other = names
    rng = random.Random(1)
    times = [_START + dt.timedelta(seconds=number) for number in range(count)]
    columns = {
        "type": [rng.choice("AB") for _ in times],
        part: pa.array([rng.choice((1, 1, 1, 1, 2, 3)) for _ in times], pa.int32()),
        order: pa.array(times, pa.timestamp("us", "UTC")),
        value: [float(rng.randrange(9)) for _ in times],
        other: ["something else"] * count,
    }
    return pa.table(columns)


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def _frame(spark: Any, events: pa.Table, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    pq.write_table(events, folder / "events.parquet")
    return spark.read.parquet(str(folder))


@long_over_connect
@pytest.mark.parametrize("names", [_CASTS[0], _SECOND, *_LONG], ids=repr)
def test_plans_of_match(names: tuple[str, ...], spark: Any, tmp_path: Path) -> None:
    """One task for each key, hot keys in time ranges, and time ranges of a whole stream."""
    events = _events(names, 300)
    frame = _frame(spark, events, tmp_path)
    keyed = _query(names, "PART WITHIN 6 SECONDS [ORDER]")
    whole = _query(names, "WITHIN 4 SECONDS [ORDER]")
    assert "hot key" in keyed.explain_plan(frame, ranges=4)
    assert "3 time ranges" in whole.explain_plan(frame, ranges=3)
    for query, ranges in ((keyed, 1), (keyed, 4), (whole, 3)):
        found = query.match(frame, ranges=ranges).toArrow().cast(query.output_schema)
        wanted = query.match_table(events)
        assert len(wanted) > 20
        assert _rows(found) == _rows(wanted), ranges
    without = keyed.with_options(positions=False)
    found = without.match(frame, ranges=4).toArrow().cast(without.output_schema)
    assert _rows(found) == _rows(without.match_table(events))


# Names that PySpark can look up and send in these calls, which are its own.
@pytest.mark.parametrize("names", [_CASTS[0], *_LONG[:2], _LONG[3]], ids=repr)
def test_routes_that_spark_calls(names: tuple[str, ...], spark: Any, tmp_path: Path) -> None:
    """`mapInArrow`, `applyInPandas` and a table function."""
    part, order, *_ = names
    events = _events(names, 60)
    frame = _frame(spark, events, tmp_path)
    query = _query(names, "PART WITHIN 6 SECONDS [ORDER]")
    wanted = _rows(query.match_table(events))
    assert wanted
    by = [functions.col(f"`{name}`") for name in (part, order)]
    ordered = frame.coalesce(1).sortWithinPartitions(*by)
    found = ordered.mapInArrow(query.match_arrow, query.output_ddl)
    assert _rows(found.toArrow().cast(query.output_schema)) == wanted
    found = frame.groupBy(by[0]).applyInPandas(query.match_pandas, query.output_ddl)
    assert found.count() == len(wanted)
    if not has_table_functions():
        return
    name = f"named_{[*_CASTS, *_MORE_CASTS].index(names)}"
    frame.createOrReplaceTempView(f"{name}_events")
    query.register(spark, name=name)
    found = spark.sql(
        f"SELECT * FROM {name}(TABLE({name}_events) PARTITION BY `{part}` ORDER BY `{order}`)"
    )
    assert _rows(found.toArrow().cast(query.output_schema)) == wanted


@pytest.mark.parametrize("names", [_CASTS[1], *_LONG], ids=repr)
def test_streams(names: tuple[str, ...], spark: Any, tmp_path: Path) -> None:
    events = _events(names, 60)
    read = _frame(spark, events, tmp_path / "in")
    query = _query(names, "PART WITHIN 6 SECONDS [ORDER]")
    wanted = _rows(query.match_table(events))
    with settings(spark, SETTINGS):
        frame = spark.readStream.schema(read.schema).parquet(str(tmp_path / "in"))
        matches = query.match_stream(frame, watermark="0 seconds", max_event_time_skew="3000 days")
        written = matches.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        written = written.option("checkpointLocation", str(tmp_path / "checkpoint"))
        started = written.trigger(availableNow=True).start()
        started.awaitTermination()
    found = spark.read.schema(matches.schema).parquet(str(tmp_path / "out"))
    rows = _rows(found.toArrow().cast(query.output_schema))
    # What the last event's window may still hold waits for the end of the stream.
    assert len(rows) >= len(wanted) - 5
    assert set(rows) <= set(wanted)

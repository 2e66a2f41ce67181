"""Queries as table functions of Spark SQL."""

from __future__ import annotations

import datetime as dt
from typing import Any

import celc_runtime
import pyarrow as pa
import pytest
from celc_runtime import EventError
from conftest import long_over_connect
from engines import as_on_spark, interpreted

import celc

FIRE = """CREATE STREAM Farm {
  EVENT T { station: STRING, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { station: STRING, value: DOUBLE, ts: TIMESTAMP }
}
QUERY fires:
SELECT hot[value], dry[value] FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25
PARTITION BY station WITHIN 10 MINUTES [ts]

QUERY `all fires`:
SELECT hot, dry FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 12
WITHIN 10 MINUTES [ts]

QUERY same:
SELECT hot, dry FROM Farm
WHERE (T AS hot ; H AS dry) FILTER hot.value = dry.value
WITHIN 2 HOURS [ts]
"""

_NOON = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
_PARTS = "PARTITION BY (station) ORDER BY (ts)"
_WHOLE = "WITH SINGLE PARTITION ORDER BY (ts)"


def _table() -> pa.Table:
    """Columns in another order than the query's, one that it does not read, stations at random."""
    rows = range(200)
    return pa.table(
        {
            "note": ["x"] * len(rows),
            "ts": [_NOON + dt.timedelta(minutes=row) for row in rows],
            "value": [float(row * 7 % 50) for row in rows],
            "station": [(None, "Łódź", "b")[row * row % 7 % 3] for row in rows],
            "type": ["TH"[row % 3 % 2] for row in rows],
        }
    )


@pytest.fixture(scope="module")
def queries(spark: Any) -> Any:
    with interpreted():
        found = celc.compile(FIRE).queries
    spark.createDataFrame(_table()).createOrReplaceTempView("events")
    found["fires"].register(spark)
    found["all fires"].register(spark, name="all_fires")
    return found


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def _said(spark: Any, call: str) -> str:
    with pytest.raises(Exception, match="EventError") as caught:
        spark.sql(f"SELECT * FROM {call}").collect()
    return str(caught.value)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_two_functions_in_one_statement(queries: Any, spark: Any, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = spark.sql(
            f"SELECT 'parts' AS which, start_time, end_time FROM fires(TABLE(events) {_PARTS}) "
            "UNION ALL "
            f"SELECT 'whole', start_time, end_time FROM all_fires(TABLE(events) {_WHOLE})"
        ).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    wanted = [
        {"which": which, **{name: row[name] for name in ("start_time", "end_time")}}
        for which, query in (("parts", "fires"), ("whole", "all fires"))
        for row in as_on_spark(queries[query]).match_table(_table()).to_pylist()
    ]
    assert len(wanted) > 15
    assert {row["which"] for row in wanted} == {"parts", "whole"}
    assert _sorted(found.to_pylist()) == _sorted(wanted)


def test_the_function_is_returned_for_dataframes(queries: Any, spark: Any) -> None:
    fires = queries["fires"].register(spark, name="other_fires")
    events = spark.table("events")
    found = fires(events.asTable().partitionBy("station").orderBy("ts")).toArrow()
    wanted = as_on_spark(queries["fires"]).match_table(_table())
    assert found.schema.names == wanted.schema.names
    assert _sorted(found.to_pylist()) == _sorted(wanted.to_pylist())


def test_a_table_without_rows_has_no_matches(queries: Any, spark: Any) -> None:
    none = "TABLE(SELECT * FROM events WHERE value < 0)"
    for call in (f"fires({none} {_PARTS})", f"all_fires({none} {_WHOLE})"):
        found = spark.sql(f"SELECT * FROM {call}")
        assert found.toArrow().num_rows == 0
    assert found.columns == as_on_spark(queries["all fires"]).output_schema.names


@long_over_connect
def test_what_can_be_told_of_a_wrong_call_is_told(queries: Any, spark: Any) -> None:
    falling = f"{_PARTS[:-3]}ts DESC)"
    assert "not in the order of ts" in _said(spark, f"fires(TABLE(events) {falling})")
    finer = "PARTITION BY (station, value) ORDER BY (ts)"
    assert "write TABLE(…) PARTITION BY (station)" in _said(spark, f"fires(TABLE(events) {finer})")
    assert "comes back" in _said(spark, f"fires(TABLE(events) {_WHOLE})")
    assert "WITH SINGLE PARTITION, not" in _said(spark, f"all_fires(TABLE(events) {_PARTS})")
    few = "TABLE(SELECT station, ts, value FROM events)"
    assert "'type', which is missing" in _said(spark, f"fires({few} {_PARTS})")
    tied = "TABLE(SELECT * FROM events UNION ALL SELECT * FROM events)"
    assert "two events are equal in ts" in _said(spark, f"fires({tied} {_PARTS})")


def test_partitions_in_one_table_need_their_order(queries: Any, spark: Any) -> None:
    """A table as a whole will do where it is sorted as the query reads it."""
    call = "fires(TABLE(events) WITH SINGLE PARTITION ORDER BY (station, ts))"
    found = spark.sql(f"SELECT * FROM {call}").toArrow()
    assert found.num_rows == len(as_on_spark(queries["fires"]).match_table(_table()))


@long_over_connect
def test_a_table_that_is_spread_and_sorted_needs_no_partition_by(queries: Any, spark: Any) -> None:
    """Spark hands over whole batches, and the run sees where a partition ends."""
    spread = "SELECT * FROM events DISTRIBUTE BY station SORT BY station"
    found = spark.sql(f"SELECT * FROM fires(TABLE({spread}, ts))").toArrow()
    wanted = as_on_spark(queries["fires"]).match_table(_table())
    assert _sorted(found.to_pylist()) == _sorted(wanted.to_pylist())
    assert "not in the order of ts" in _said(spark, f"fires(TABLE({spread}, ts DESC))")


@pytest.mark.parametrize(
    "call",
    [
        "(TABLE(SELECT * FROM unsorted DISTRIBUTE BY station))",
        "(TABLE(unsorted) PARTITION BY (station))",
        "(TABLE(unsorted) WITH SINGLE PARTITION)",
    ],
)
@long_over_connect
def test_a_function_that_sorts(call: str, queries: Any, spark: Any) -> None:
    """Rows in no order; positions are those in the partitions."""
    numbered = queries["fires"].with_options(positions=True)
    numbered.register(spark, "sorting", sorts=True)
    frame = spark.createDataFrame(_table())
    frame.orderBy("value", "ts").createOrReplaceTempView("unsorted")
    wanted = _sorted(numbered.match_table(_table()).to_pylist())
    assert len(wanted) > 10
    assert _sorted(spark.sql(f"SELECT * FROM sorting{call}").toArrow().to_pylist()) == wanted
    assert spark.sql(f"SELECT * FROM sorting{call} LIMIT 1").count() == 1


def test_what_a_function_cannot_sort(queries: Any, spark: Any) -> None:
    queries["fires"].register(spark, "sorting", sorts=True)
    tied = "TABLE(SELECT * FROM events UNION ALL SELECT * FROM events)"
    assert "two events are equal in ts" in _said(spark, f"sorting({tied} PARTITION BY (station))")
    by_value = queries["fires"].with_options(tiebreak="value")
    with pytest.raises(
        ValueError, match=r"sorts=True, because .*'value' is of type double.*SORT BY"
    ):
        by_value.register(spark, "by_value", sorts=True)
    queries["fires"].with_options(tiebreak="more").register(spark, "by_more", sorts=True)
    more = "TABLE(SELECT *, value AS more FROM events) PARTITION BY (station)"
    assert "sorts=True, but the column 'more' is of type double" in _said(spark, f"by_more({more})")


def test_a_query_with_keys(queries: Any, spark: Any) -> None:
    """More events than such a query looks ahead."""
    queries["same"].register(spark)
    found = spark.sql(f"SELECT * FROM same(TABLE(events) {_WHOLE})").toArrow()
    wanted = as_on_spark(queries["same"]).match_table(_table())
    assert len(wanted) > 10
    assert _sorted(found.to_pylist()) == _sorted(wanted.to_pylist())


_LATE = """CREATE STREAM Farm {
  EVENT T { station: STRING, value: DOUBLE, ts: TIMESTAMP },
  EVENT H { station: STRING, value: DOUBLE, ts: TIMESTAMP }
}
QUERY unanswered: SELECT hot[value] FROM Farm
WHERE (T AS hot ; !(H AS dry FILTER dry.value <= 3) FOR 40 MINUTES [ts]) FILTER hot.value > 40
PARTITION BY station
"""


@pytest.mark.parametrize("sorts", [False, True])
@long_over_connect
def test_a_call_tells_the_clock_of_all_partitions(sorts: bool, queries: Any, spark: Any) -> None:
    """An absence at the end is decided by the latest event, which other tasks can have."""
    with interpreted():
        query = celc.compile(_LATE).queries["unanswered"]
    events = spark.table("events")
    query.register(spark, sorts=sorts)
    call = f"unanswered(TABLE(events) {_PARTS}"
    wanted = sorted(map(repr, query.match(events).collect()))
    latest = "SELECT MAX(ts) FROM events"
    found = spark.sql(f"SELECT * FROM {call}, clock => ({latest}))").collect()
    assert sorted(map(repr, found)) == wanted
    early = spark.sql(f"SELECT * FROM {call}, clock => ({latest}) - INTERVAL '1' HOUR)").count()
    assert 0 < early < len(wanted)
    assert "write clock => (SELECT MAX(ts) FROM …)" in _said(spark, f"{call})")
    with pytest.raises(Exception, match="clock must be a TIMESTAMP"):
        spark.sql(f"SELECT * FROM {call}, clock => 'noon')").collect()
    closed = query.with_options(at_end="closed")
    closed.register(spark, "closed_ones", sorts=sorts)
    call = call.replace("unanswered", "closed_ones")
    assert spark.sql(f"SELECT * FROM {call})").count() == closed.match(events).count()
    assert "leave out clock" in _said(spark, f"{call}, clock => ({latest}))")


@long_over_connect
def test_a_dataframe_is_a_clock(queries: Any, spark: Any) -> None:
    with interpreted():
        query = celc.compile(_LATE).queries["unanswered"]
    events = spark.table("events")
    wanted = sorted(map(repr, query.match(events).collect()))
    told = query.with_options(clock=events, positions=False)
    frames = events.groupBy("station").applyInPandas(told.match_pandas, told.output_ddl)
    assert sorted(map(repr, frames.collect())) == wanted
    with pytest.raises(EventError, match="the DataFrame for its clock has no event"):
        query.with_options(clock=events.limit(0))


@long_over_connect
def test_nan_is_one_partition(spark: Any) -> None:
    """Spark makes an instance for each row of it."""
    text = (
        "CREATE STREAM S { EVENT A { k: DOUBLE, n: LONG } } QUERY pairs: "
        "SELECT * FROM S WHERE A AS x ; A AS y PARTITION BY k WITHIN 1 EVENTS"
    )
    with interpreted():
        query = celc.compile(text, order_by="n").queries["pairs"]
    nan = float("nan")
    table = pa.table({"k": [nan, 1.0, nan, -nan, 1.0, None, None], "n": range(7)})
    spark.createDataFrame(table).createOrReplaceTempView("keys")
    query.register(spark)
    call = "pairs(TABLE(keys) PARTITION BY (k) ORDER BY (n))"
    found = spark.sql(f"SELECT start_time, end_time FROM {call}").collect()
    assert sorted(map(tuple, found)) == [(0, 2), (1, 4), (2, 3), (5, 6)]


@long_over_connect
def test_nan_is_no_partition_of_matches_that_wait(spark: Any) -> None:
    """The first row of several would be told without the others."""
    text = (
        "CREATE STREAM S { EVENT A { k: DOUBLE, n: LONG } } QUERY counted: SELECT TOTAL COUNT(*) "
        "AS c FROM S WHERE A AS x PARTITION BY k PER PARTITION"
    )
    with interpreted():
        query = celc.compile(text, order_by="n").queries["counted"]
    query.register(spark)
    call = "SELECT * FROM counted(TABLE({}) PARTITION BY (k) ORDER BY (n))"
    table = pa.table({"k": [0.0, -0.0, float("nan"), float("nan"), -0.0], "n": range(5)})
    for name, rows in (("one_nan", [0, 1, 2, 4]), ("two_nan", range(5))):
        spark.createDataFrame(table.take(pa.array(rows))).createOrReplaceTempView(name)
    found = spark.sql(call.format("one_nan")).collect()
    assert sorted(map(repr, found)) == ["Row(k=0.0, c=Decimal('3'))", "Row(k=nan, c=Decimal('1'))"]
    with pytest.raises(Exception, match=r"after each row where k is NaN: use match\(df\)"):
        spark.sql(call.format("two_nan")).collect()


def test_names_that_cannot_be_called(queries: Any, spark: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot call a function 'all fires'.*name='fires'"):
        queries["all fires"].register(spark)
    with pytest.raises(ValueError, match="a table function 'Range' of its own"):
        queries["fires"].register(spark, name="Range")


def test_a_query_without_order_is_refused(spark: Any) -> None:
    with interpreted():
        module = celc.compile("CREATE STREAM S { EVENT A { n: LONG } } QUERY q: SELECT * WHERE A")
    with pytest.raises(celc_runtime.EventError, match=r"no order column.*with_options\(order_by="):
        module.register(spark)


def test_an_older_pyspark_is_named(
    queries: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions

    monkeypatch.delattr(functions, "arrow_udtf")
    with pytest.raises(RuntimeError, match=r"PySpark 4\.1 or newer, and this is"):
        queries["fires"].register(spark)

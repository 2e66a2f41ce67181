"""DataFrames as they come: times and their zones, columns by any name, one table of several."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError, union_streams
from engines import interpreted, only_query
from pyspark.sql import functions

import celc

DECLARATIONS = """CREATE STREAM S {
  EVENT A { id: INT, ts: TIMESTAMP, day: DATE, v: DOUBLE },
  EVENT B { id: INT, ts: TIMESTAMP, day: DATE, v: DOUBLE }
}
"""


def _query(text: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(text, positions=True, **options))


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture
def zone(request: pytest.FixtureRequest, spark: Any) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


# --- times ----------------------------------------------------------------------------------------

_TIMED = _query(DECLARATIONS + """SELECT x[ts], y[ts, v] FROM S
    WHERE (A AS x ; B AS y) FILTER y.ts >= TIMESTAMP '2026-11-01 05:30:00' AND x.day <= y.day
    PARTITION BY id WITHIN 40 MINUTES [ts]""")


def _timed() -> pa.Table:
    """A reading each 20 minutes around the hour that New York has twice, 1 November, 5 h UTC."""
    start = dt.datetime(2026, 11, 1, 3, tzinfo=dt.UTC)
    times = [start + dt.timedelta(minutes=20 * step) for step in range(18)]
    return pa.table(
        {
            "type": ["AAB"[step % 3] for step in range(18)],
            "id": pa.array([1] * 18, pa.int32()),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "day": pa.array([dt.date(2026, 10, 1 + step) for step in range(18)]),
            "v": [float(step) for step in range(18)],
        }
    )


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"], indirect=True)
def test_instants_do_not_depend_on_the_session(spark: Any, zone: str) -> None:
    """By `match` and by `mapInArrow`, for times with a zone and without one, which are UTC's."""
    table = _timed()
    wanted = _TIMED.match_table(table)
    assert len(wanted) == 8
    local = table.set_column(2, "ts", table["ts"].cast(pa.timestamp("us")))
    assert _TIMED.match_table(local) == wanted
    ddl = _TIMED.output_ddl
    texts = local.set_column(2, "ts", local["ts"].cast(pa.string()))
    without_zone = spark.createDataFrame(texts).selectExpr("* EXCEPT (ts)", "ts::TIMESTAMP_NTZ")
    for events, type in (
        (spark.createDataFrame(table), "timestamp"),
        (without_zone, "timestamp_ntz"),
    ):
        assert dict(events.dtypes)["ts"] == type
        sorted_events = events.coalesce(1).sortWithinPartitions("id", "ts")
        found = events.transform(_TIMED.match)
        assert dict(found.dtypes)["start_time"] == "timestamp"
        both = found.unionAll(sorted_events.mapInArrow(_TIMED.match_arrow, ddl)).toArrow()
        assert _rows(both) == sorted(_rows(wanted) * 2)


def test_frames_have_the_same_instants_in_utc(spark: Any) -> None:
    for column in (_timed()["ts"], _timed()["ts"].cast(pa.timestamp("us"))):
        events = spark.createDataFrame(_timed().set_column(2, "ts", column))
        grouped = events.groupBy("id").applyInPandas(_TIMED.match_pandas, _TIMED.output_ddl)
        assert _rows(grouped.toArrow()) == _rows(_TIMED.match_table(_timed()))


def test_days_order_events(spark: Any) -> None:
    query = _query(
        DECLARATIONS + "SELECT x, y FROM S WHERE A AS x ; B AS y PARTITION BY id WITHIN 1 DAYS",
        order_by="day",
    )
    events = spark.createDataFrame(_timed())
    assert dict(events.transform(query.match).dtypes)["end_time"] == "date"
    events.createOrReplaceTempView("days")
    query.register(spark, name="by_day")
    call = "by_day(TABLE(days) PARTITION BY (id) ORDER BY (day))"
    grouped = events.groupBy("id").applyInPandas(query.match_pandas, query.output_ddl)
    found = events.transform(query.match).unionAll(spark.sql(f"SELECT * FROM {call}"))
    wanted = query.match_table(_timed())
    assert len(wanted) == 6
    assert _rows(found.unionAll(grouped).toArrow()) == sorted(_rows(wanted) * 3)


# --- columns --------------------------------------------------------------------------------------

_NAMED = _query("""CREATE STREAM S {
      EVENT A { ts: LONG, `a.b`: DOUBLE, `t w o`: STRING, `ti``ck`: INT, `größe`: INT },
      EVENT B { ts: LONG, `a.b`: DOUBLE, `t w o`: STRING, `ti``ck`: INT, `größe`: INT }
    }
    SELECT x, y FROM S WHERE (A AS x ; B AS y) FILTER y.`a.b` > 1 AND x.`größe` > 0
    PARTITION BY `t w o` WITHIN 5 [ts]""")


def _named(kind: str = "type") -> pa.Table:
    rows = range(12)
    return pa.table(
        {
            kind: ["AB"[row % 2] for row in rows],
            "ts": list(rows),
            "TS": [99 - row for row in rows],
            "t w o": ["pq"[row % 5 % 2] for row in rows],
            "a": [{"b": float(row % 4), "c": "unused"} for row in rows],
            "ti`ck": pa.array(rows, pa.int32()),
            "größe": pa.array([row % 3 for row in rows], pa.int32()),
            "unused": ["x"] * len(rows),
        }
    )


def test_columns_of_any_name(spark: Any) -> None:
    """`ts` beside `TS`, which Spark takes for one; a struct's field; dots, spaces, backquotes."""
    wanted = _NAMED.match_table(_named())
    assert len(wanted) == 3
    events = spark.createDataFrame(_named())
    found = events.transform(_NAMED.match)
    with_column = events.toDF(*(f"c{n}" for n in range(len(events.columns))))
    with_column = with_column.selectExpr("*", "c4.b AS inner").toDF(*events.columns, "a.b")
    kinds = _NAMED.with_options(type_column="kind")
    renamed = spark.createDataFrame(_named("kind"))
    for other in (with_column.transform(_NAMED.match), renamed.transform(kinds.match)):
        found = found.unionAll(other)
    assert _rows(found.toArrow()) == sorted(_rows(wanted) * 3)


def test_two_spellings_of_a_name(spark: Any) -> None:
    query = _query(
        "CREATE STREAM S { EVENT A { n: LONG, N: LONG } } SELECT * FROM S WHERE A", order_by="n"
    )
    events = spark.createDataFrame(pa.table({"n": [1, 2], "N": [2, 1]}))
    with pytest.raises(EventError, match=r"reads 'n' and 'N', .* set spark.sql.caseSensitive"):
        query.match(events)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        found = events.transform(query.match).select("A").toArrow().to_pylist()
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
    assert [(row["A"][0]["n"], row["A"][0]["N"]) for row in found] == [(1, 2), (2, 1)]


def test_a_type_column_by_the_other_ways(spark: Any) -> None:
    query = _TIMED.with_options(type_column="kind")
    table = _timed().rename_columns(["kind", "id", "ts", "day", "v"])
    wanted = query.match_table(table)
    events = spark.createDataFrame(table)
    events.createOrReplaceTempView("kinds")
    query.register(spark, name="of_kinds")
    call = "of_kinds(TABLE(kinds) PARTITION BY (id) ORDER BY (ts))"
    grouped = events.groupBy("id").applyInPandas(query.match_pandas, query.output_ddl)
    found = spark.sql(f"SELECT * FROM {call}").unionAll(grouped)
    assert _rows(found.toArrow()) == sorted(_rows(wanted) * 2)


def test_a_declaration_and_a_schema_are_read_off_a_data_frame(spark: Any) -> None:
    table = _timed().rename_columns(["kind", "id", "ts", "day", "v"])
    events = spark.createDataFrame(table)
    text = celc.declare(events, type_column="kind")
    assert text == celc.declare(events.toArrow(), type_column="kind")
    declared = celc.compile(text, type_column="kind")
    query = text.partition("}\n\n")[2]
    known = celc.compile(query, schema=events.schema, type_column="kind", order_by="ts")
    wanted = _rows(declared.match_table(table).drop_columns(["start_pos", "end_pos"]))
    assert len(_rows(events.transform(declared.match).toArrow())) == len(wanted) > 0
    assert len(_rows(events.transform(known.match).toArrow())) == len(wanted)


def test_only_what_is_read_leaves_the_scan(spark: Any) -> None:
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        spark.createDataFrame(_named()).transform(_NAMED.match).explain()
    exchange = printed.getvalue().split("Exchange")[1]
    assert "unused" not in exchange


_WRONG_COLUMNS = [
    ("'x' AS type, 1 AS id, 1.0D AS v", r"lacks: 'ts'; its columns are: 'type', 'id', 'v'"),
    ("'x' AS type, 1 AS id, now() AS TS", r"rename 'TS' to 'ts'.*case must agree"),
    ("'x' AS type, 1 AS id, 2 AS id, now() AS ts", r"'id', which occurs more than once"),
    (
        "'x' AS type, map('k', 1) AS id, now() AS ts",
        r"'id' as INT.*map<string,int>: give it a column of the type int, made of this one$",
    ),
    (
        "'x' AS type, DATE '2024-01-31' AS id, now() AS ts",
        r"'id' as INT.* date: give it a column of the type int.*, or declare .* as DATE$",
    ),
    ("'x' AS type, array(1) AS id, now() AS ts", r"'id' as INT, but the column's type is array<"),
    ("'x' AS type, 1L AS id, now() AS ts", r"bigint: cast .* or declare the attribute as LONG"),
    (
        "1 AS type, 1 AS id, now() AS ts",
        r"'type' as STRING, but .* int: cast .* to string$",
    ),
    ("'x' AS type, 1 AS id, 5 AS ts", r"'ts' as TIMESTAMP, but the column's type is int"),
]


@pytest.mark.parametrize(("columns", "said"), _WRONG_COLUMNS)
def test_wrong_columns_are_told_at_once(spark: Any, columns: str, said: str) -> None:
    query = _query(DECLARATIONS + "SELECT NONE FROM S WHERE A PARTITION BY id WITHIN 1 HOURS [ts]")
    with pytest.raises(EventError, match=said):
        query.match(spark.sql(f"SELECT {columns}"))


def test_a_tiebreak_needs_an_order(spark: Any) -> None:
    events = spark.createDataFrame(_timed()).withColumn("at", functions.expr("map('k', 1)"))
    with pytest.raises(EventError, match=r"the column 'at', but .*map<string,int> have no order"):
        _TIMED.with_options(tiebreak="at").match(events)


def test_null_in_the_order(spark: Any) -> None:
    events = spark.createDataFrame(_timed()).selectExpr(
        "type", "id", "day", "v", "if(id = 1 AND day = DATE '2026-10-03', NULL, ts) AS ts"
    )
    with pytest.raises(Exception, match=r"EventError.*'ts' is NULL in row 0"):
        events.transform(_TIMED.match).collect()


# --- one table of several -------------------------------------------------------------------------


def test_streams_are_united(spark: Any) -> None:
    table = _timed()
    first = pa.compute.equal(table["type"], "A")
    v = pa.compute.if_else(first, pa.scalar(None, pa.float64()), table["v"])
    table = table.set_column(4, "v", v)
    parts = {
        name: spark.createDataFrame(table.filter(pa.compute.equal(table["type"], name)))
        for name in ("A", "B")
    }
    parts["A"] = parts["A"].drop("v")
    parts = {name: frame.drop("type") for name, frame in parts.items()}
    both = union_streams(parts)
    assert both.columns == ["type", "id", "ts", "day", "v"]
    kinds = union_streams(parts, type_column="kind")
    found = both.transform(_TIMED.match).unionAll(
        kinds.transform(_TIMED.with_options(type_column="kind").match)
    )
    assert _rows(found.toArrow()) == sorted(_rows(_TIMED.match_table(table)) * 2)


def test_streams_that_share_a_type_are_united(spark: Any) -> None:
    query = _query(
        """CREATE STREAM S { EVENT A { n: LONG, v: LONG } } CREATE STREAM T { EVENT A { n: LONG } }
        SELECT x, y FROM S, T WHERE S>A AS x ; T>A AS y WITHIN 2 [n]"""
    )
    united = union_streams(
        {
            ("S", "A"): spark.sql("SELECT 1L AS n, 7L AS v UNION ALL SELECT 4L, 8L"),
            ("T", "A"): spark.sql("SELECT 3L AS n UNION ALL SELECT 9L"),
        }
    )
    assert united.columns[:2] == ["stream", "type"]
    (row,) = united.transform(query.match).collect()
    assert (row.start_time, row.end_time, row.x[0].v) == (1, 3, 7)


_CLASHES = [
    ("1 AS id", "1L AS id", r"'id' is int in .* 'A' and bigint in that of 'B': cast .*'int'"),
    ("1 AS id", "1 AS ID", r"'id' of 'A' is 'ID' in .* 'B': rename one"),
    ("1 AS id, 2 AS Id", "1 AS id", r"of 'A' has more than one column 'id'"),
    ("1 AS id", "'B' AS type", r"of 'B' has a column 'type' already.*drop or rename"),
    ("1 AS id", "'B' AS TYPE", r"of 'B' has a column 'TYPE' already"),
    ("now() AS ts", "to_timestamp_ntz('2026-01-01') AS ts", r"timestamp in .* and timestamp_ntz"),
]


@pytest.mark.parametrize(("left", "right", "said"), _CLASHES)
def test_streams_that_clash(spark: Any, left: str, right: str, said: str) -> None:
    frames = {"A": spark.sql(f"SELECT {left}"), "B": spark.sql(f"SELECT {right}")}
    with pytest.raises(EventError, match=said):
        union_streams(frames)


def test_streams_need_names_of_one_kind(spark: Any) -> None:
    one = spark.range(1)
    with pytest.raises(EventError, match=r"by name, or all .* by \(stream, type\); it got both"):
        union_streams({"A": one, ("S", "B"): one})
    with pytest.raises(EventError, match="at least one event type"):
        union_streams({})

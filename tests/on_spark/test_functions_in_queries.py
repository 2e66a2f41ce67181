"""Functions in queries, derived attributes and keys that are computed, on every route of Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import clocks_and_bytes
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stream_routes import SETTINGS, files, run, settings

import celc
from celc.interfaces.cli import main

TEXT = """CREATE STREAM S {
  EVENT A { v: DOUBLE, s: STRING, ts: TIMESTAMP, p: STRUCT<city: STRING, n: ARRAY<INT>>,
            m: MAP<STRING, INT>, j: STRING, h: INT = HOUR(ts), last: INT = p.n[SIZE(p.n) - 1] },
  EVENT B { v: DOUBLE, s: STRING, ts: TIMESTAMP, p: STRUCT<city: STRING, n: ARRAY<INT>>,
            j: STRING, h: INT = HOUR(ts) }
}
PARAMETERS rule { id: LONG, name: STRING }
"""
TIMES = [dt.datetime(2024, 1, 1, hour, 30) for hour in (1, 3, 4, 5, 23)]
EVENTS = pa.table(
    {
        "type": ["A", "B", "A", "B", "A"],
        "v": [4.0, 9.0, 2.25, None, 16.0],
        "s": ["ab", "Ab", "cd", "CD", "x"],
        "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "p": pa.array(
            [{"city": "X", "n": [1, place]} for place in range(5)],
            pa.struct([("city", pa.string()), ("n", pa.list_(pa.int32()))]),
        ),
        "m": pa.array([[("k", 7)]] * 5, pa.map_(pa.string(), pa.int32())),
        "j": [f'{{"b": [{{"c": "{place - 1}"}}, {place}.50]}}' for place in range(5)],
    }
)
COLUMNS = (
    "type STRING, v DOUBLE, s STRING, ts TIMESTAMP, p STRUCT<city: STRING, n: ARRAY<INT>>, "
    "m MAP<STRING, INT>, j STRING"
)
SAME = (
    "SELECT x.s AS x, y.s AS y FROM S WHERE A AS x ; B AS y "
    "FILTER UPPER(x.s) = UPPER(y.s) AND x.h < 20 AND x.last = y.j:b[0].c::INT "
    "AND y.p.n[1] IN (1, 3) AND CONTAINS(x.m, 'k') AND x.m['k'] = 7 AND y[j:b[1] LIKE '%.5']"
)
KEYS = " PARTITION BY LOWER(s), p.city"
ROWS = [("ab", "Ab"), ("cd", "CD")]


def rows(frame: Any) -> list[tuple[str, str]]:
    return sorted((row["x"], row["y"]) for row in frame.collect())


def test_batches(spark: Any) -> None:
    events = spark.createDataFrame(EVENTS)
    query = celc.compile(TEXT + SAME + " WITHIN 3 HOURS", order_by="ts")
    assert rows(query.match(events)) == ROWS
    assert rows(query.with_options(positions=True).match(events)) == ROWS
    assert rows(query.match(events, plan="joins")) == ROWS
    assert query.match_compact(events).count() == 2
    keyed = celc.compile(f"{TEXT}{SAME}{KEYS} WITHIN 3 HOURS", order_by="ts")
    assert rows(keyed.match(events)) == ROWS


def test_clocks_bytes_and_short_numbers(spark: Any, tmp_path: Path) -> None:
    """All conditions in one job; a time that some clocks do not show is what it is."""
    pq.write_table(clocks_and_bytes.EVENTS, tmp_path / "events.parquet")
    events = spark.read.parquet(str(tmp_path))
    queries = [
        f"QUERY q{number}: SELECT x.row AS x, {'y' if 'y' in formula else 'x'}.row AS y FROM S "
        f"WHERE {formula} FILTER {condition}"
        for number, (condition, formula, _) in enumerate(clocks_and_bytes.ALL)
    ]
    compiled = celc.compile(clocks_and_bytes.DECLARATION + "\n".join(queries), order_by="row")
    with settings(spark, {"spark.sql.session.timeZone": "America/St_Johns"}):
        found = compiled.match_all(events).toArrow()
    for number, (condition, _, expected) in enumerate(clocks_and_bytes.ALL):
        pairs = compiled.rows(found, f"q{number}").select(["x", "y"]).to_pylist()
        wanted = [one if isinstance(one, tuple) else (one, one) for one in expected]
        assert sorted((row["x"], row["y"]) for row in pairs) == wanted, condition


def test_sql(spark: Any) -> None:
    spark.createDataFrame(EVENTS).createOrReplaceTempView("function_events")
    query = celc.compile(TEXT + SAME, order_by="ts")
    call = "(TABLE(function_events) WITH SINGLE PARTITION ORDER BY ts)"
    query.register(spark, "same_text")
    assert rows(spark.sql(f"SELECT * FROM same_text{call}")) == ROWS
    query.register(spark, "same_text_sorted", sorts=True)
    call = "(TABLE(function_events) WITH SINGLE PARTITION)"
    assert rows(spark.sql(f"SELECT * FROM same_text_sorted{call}")) == ROWS


def test_many_queries_rules_and_queries_over_queries(spark: Any) -> None:
    events = spark.createDataFrame(EVENTS)
    text = f"""{TEXT}
    QUERY same: {SAME}
    QUERY small: SELECT * FROM S WHERE A AS x FILTER ROUND(x.v) = 2
    QUERY read: SELECT m.x AS x, z.s AS y FROM same, S
    WHERE same AS m ; A AS z FILTER HOUR(m.ts) + 1 = HOUR(z.ts)
    """
    queries = celc.compile(text, order_by="ts")
    assert rows(queries.read.match(events)) == [("ab", "cd")]
    text = (
        TEXT
        + "SELECT x.s AS x, x.s AS y FROM S FOR EACH rule WHERE A AS x "
        + "FILTER UPPER(x.s) = rule.name"
    )
    rules = spark.createDataFrame(pa.table({"id": pa.array([1], pa.int64()), "name": ["CD"]}))
    found = celc.compile(text, order_by="ts").match(events, rule=rules)
    assert rows(found) == [("cd", "cd")]
    both = celc.compile(f"{TEXT}QUERY a: {SAME}\nQUERY b: {SAME}", order_by="ts")
    found = both.match_all(events).collect()
    assert sorted(row["query"] for row in found) == ["a", "a", "b", "b"]


@pytest.mark.long
def test_streams(spark: Any, tmp_path: Path) -> None:
    with settings(spark, SETTINGS):
        query = celc.compile(f"{TEXT}{SAME}{KEYS} WITHIN 3 HOURS", order_by="ts")
        (tmp_path / "in").mkdir()
        far = EVENTS.slice(4).set_column(
            3, "ts", pa.array([dt.datetime(2027, 1, 1)], pa.timestamp("us", "UTC"))
        )
        for name, piece in enumerate(
            (EVENTS.slice(0, 3), pa.concat_tables([EVENTS.slice(3), far]))
        ):
            pq.write_table(piece, tmp_path / "in" / f"{name}.parquet")
            given = files(spark, tmp_path / "in", COLUMNS)
            stream = query.match_stream(given, watermark="1 second")
            # Each run ends, and the next one begins with its checkpoint.
            run(stream, tmp_path)
        found = spark.read.schema(stream.schema).parquet(str(tmp_path / "out"))
        assert rows(found) == ROWS


def test_statements(spark: Any, tmp_path: Path) -> None:
    """Of the command line, whose text makes the derived columns itself."""
    spark.createDataFrame(EVENTS).createOrReplaceTempView("statement_events")
    (tmp_path / "q.cel").write_text(TEXT + SAME + " WITHIN 3 HOURS")
    arguments = ["--order-by", "ts", "--table", "statement_events", "-o", f"{tmp_path}/q.sql"]
    query = f"{tmp_path}/q.cel"
    assert main(["compile", query, "--to", "spark-sql", *arguments]) == 0
    text = (tmp_path / "q.sql").read_text().strip().removesuffix(";")
    assert rows(spark.sql(text)) == ROWS

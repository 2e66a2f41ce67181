"""MATCH_RECOGNIZE on Structured Streaming: the rows that the batch gives on the same rows."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from celc_runtime import EventError, StateError, finish, split_late
from row_streams_by_hand import query_of
from stream_routes import (
    SETTINGS,
    START,
    event,
    events,
    files,
    parts,
    rows_of,
    run,
    settings,
    shuffled,
    sums,
    table,
    write_files,
)

import celc

_SHAPE = """CREATE TABLE t (id INT, ts TIMESTAMP, v DOUBLE, name STRING);
SELECT * FROM t MATCH_RECOGNIZE (
  PARTITION BY id ORDER BY ts
  MEASURES CLASSIFIER() AS part, MATCH_NUMBER() AS n, PREV(FIRST(v)) AS before, UPPER(name) AS name2
  ALL ROWS PER MATCH
  PATTERN (A (B | {- C -})+ D?) WITHIN INTERVAL '3' SECONDS
  DEFINE A AS v > 41 OR name = '', B AS LENGTH(name) = 1, D AS v < A.v
)"""
_CLAUSE = _SHAPE[_SHAPE.index("MATCH_RECOGNIZE") :]


@pytest.fixture(autouse=True)
def _settings(spark: Any) -> Iterator[None]:
    with settings(spark, SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore", celc.CelWarning)
        yield


def _wanted(rows: list[dict[str, Any]]) -> list[str]:
    query = query_of(_SHAPE).with_options(match_id=True)
    found = query.match_table(table(rows).drop_columns(["type"]))
    return sorted(map(repr, found.to_pylist()))


def test_a_stream_that_stops_and_ends(spark: Any, tmp_path: Path) -> None:
    """Two runs from one checkpoint, rows out of order and a late one, then the end."""
    rows = events(90, keys=4, seed=5)
    query = query_of(_SHAPE).with_options(match_id=True)
    late = event(3, id=2, row=1000)
    one, two = parts(shuffled(rows, 2), 2)

    def stream() -> Any:
        return query.match_stream(
            files(spark, tmp_path / "in"),
            tiebreak="row",
            watermark="2 seconds",
            late="side",
            max_event_time_skew="9000 days",
            buckets=3,
            checkpoint=str(tmp_path / "checkpoint"),
        )

    write_files(tmp_path / "in", map(table, parts(one, 2)))
    progress = run(stream(), tmp_path)
    write_files(tmp_path / "in", [table([late, *two])], first=2)
    progress += run(stream(), tmp_path)
    counted = sums(progress, "celc_q")
    assert counted["rows"] == 91
    assert counted["late"] == 1
    assert counted["kept"] > 0
    matches, refused = split_late(spark.read.parquet(str(tmp_path / "out")))
    assert [row.row for row in refused.collect()] == [1000]
    last: list[str] = []
    assert finish(
        spark,
        str(tmp_path / "checkpoint"),
        stream(),
        lambda rest, _: last.extend(rows_of(split_late(rest)[0])),
    )
    assert last
    assert sorted(rows_of(matches) + last) == _wanted(rows)
    with pytest.raises(StateError, match="has been ended by finish"):
        stream()


def test_a_statement_over_a_stream(spark: Any, tmp_path: Path) -> None:
    rows = events(60, keys=2, seed=6)
    write_files(tmp_path / "in", map(table, parts(rows, 3)))
    files(spark, tmp_path / "in").createOrReplaceTempView("readings")
    try:
        text = (
            "WITH high AS (SELECT id, ts, v, name FROM readings WHERE v > 0) "
            "SELECT part, count FROM "
            f"(SELECT upper(part) AS part, id + 1 AS count FROM high {_CLAUSE}) WHERE part <> 'D'"
        )
        found = celc.sql(spark, text)
        assert found.isStreaming
        run(found, tmp_path)
        told = rows_of(spark.read.parquet(str(tmp_path / "out")))
        spark.read.parquet(str(tmp_path / "in")).createOrReplaceTempView("readings")
        whole = rows_of(celc.sql(spark, text))
        assert told
        assert not set(told) - set(whole)
        assert len(told) > len(whole) // 2
    finally:
        spark.catalog.dropTempView("readings")


@pytest.mark.long
def test_days(spark: Any, tmp_path: Path) -> None:
    """A stream in the order of a DATE, in a zone in which days begin at another instant."""
    rows = [
        {"k": key, "d": START.date() + dt.timedelta(days=day), "v": (day * 3) % 4}
        for day in range(12)
        for key in (1, 2)
    ]
    types = pa.schema([("k", pa.int32()), ("d", pa.date32()), ("v", pa.int32())])
    tables = [pa.Table.from_pylist(part, types) for part in parts(rows, 4)]
    write_files(tmp_path / "in", tables)
    query = query_of(
        "CREATE TABLE t (k INT, d DATE, v INT);\n"
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY d\n"
        "MEASURES FIRST(d) AS since, LAST(v) AS last\n"
        "PATTERN (A B+) WITHIN INTERVAL '2' DAY DEFINE B AS v > PREV(v))"
    )
    with settings(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
        stream = query.match_stream(
            files(spark, tmp_path / "in"), checkpoint=str(tmp_path / "checkpoint")
        )
        counted = sums(run(stream, tmp_path), "celc_q")
        assert counted["late"] == 0
        last: list[str] = []
        checkpoint = str(tmp_path / "checkpoint")
        finish(spark, checkpoint, stream, lambda rest, _: last.extend(rows_of(rest)))
    told = rows_of(spark.read.parquet(str(tmp_path / "out")))
    assert told
    assert sorted(told + last) == sorted(
        map(repr, query.match_table(pa.concat_tables(tables)).to_pylist())
    )


def test_what_a_stream_refuses(spark: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "in", [table(events(3, keys=1))])
    stream, whole = files(spark, tmp_path / "in"), spark.read.parquet(str(tmp_path / "in"))
    query = query_of(_SHAPE)
    with pytest.raises(EventError, match="this DataFrame is there as a whole: use match"):
        query.match_stream(whole)
    with pytest.raises(EventError, match="there is no tiebreak column 'nr'"):
        query.match_stream(stream, tiebreak="nr")
    with pytest.raises(ValueError, match="late must be one of"):
        query.match_stream(stream, late="keep")
    loop = query_of(_SHAPE.replace("WITHIN INTERVAL '3' SECONDS", ""))
    with pytest.raises(EventError, match="a match can wait for ever for later rows"):
        loop.match(stream)
    assert loop.match_stream(stream, allow_unbounded_state=True).isStreaming
    with pytest.raises(
        EventError, match="let ORDER BY begin with a TIMESTAMP or a DATE, ascending"
    ):
        query_of(_SHAPE.replace("ORDER BY ts", "ORDER BY v").split(" WITHIN")[0] + ")").match(
            stream
        )
    told = query.explain_plan(stream)
    assert "buckets: 4 of the keys of id" in told
    assert "until its match is decided, or WITHIN has passed; the number of its matches" in told

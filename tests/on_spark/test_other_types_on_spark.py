"""`EVENT OTHER { }` on every route of Spark: the answers are those of one machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import EventError
from stream_routes import SETTINGS, files, run, settings
from test_other_types import OTHER, _table

import celc
from celc.interfaces.cli import main

QUERY = "SELECT a.v AS v FROM S WHERE {} PARTITION BY id WITHIN 3 HOURS [ts]"
DDL = "type STRING, id BIGINT, ts TIMESTAMP, v BIGINT, w BIGINT"


def instants_of_others(rows: int = 120) -> pa.Table:
    """Events of declared and of other types, half an hour apart, as instants."""
    table = _table(random.Random(3), rows)
    times = table.column("ts").cast(pa.timestamp("us", "UTC"))
    return table.set_column(2, "ts", times)


def _rows(frame: Any) -> list[tuple[int, int, str]]:
    names = ["id", "v", "start_time", "end_time"]
    return sorted(
        tuple(map(str, row.values())) for row in frame.select(*names).toArrow().to_pylist()
    )


def _wanted(query: celc.Matcher, table: pa.Table) -> list[Any]:
    found = query.match_table(table).select(["id", "v", "start_time", "end_time"]).to_pylist()
    return sorted(tuple(map(str, row.values())) for row in found)


@pytest.mark.each(3)
@pytest.mark.parametrize(
    "formula", ["A AS a : OTHER : B", "A AS a ; !OTHER ; B", "A AS a ; OTHER ; B"]
)
def test_batches_and_sql(spark: Any, formula: str) -> None:
    table = instants_of_others()
    events = spark.createDataFrame(table)
    query = celc.compile(OTHER + QUERY.format(formula))
    wanted = _wanted(query, table)
    assert wanted
    assert _rows(query.match(events)) == wanted
    assert _rows(query.with_options(positions=True).match(events)) == wanted
    kinds = query.with_options(type_column="a.kind")
    assert _rows(kinds.match(events.withColumnRenamed("type", "a.kind"))) == wanted
    events.createOrReplaceTempView("with_others")
    query.register(spark, "others")
    call = "others(TABLE(with_others) PARTITION BY id ORDER BY ts)"
    assert _rows(spark.sql(f"SELECT * FROM {call}")) == wanted
    grouped = events.groupBy("id").applyInPandas(query.match_pandas, query.OUTPUT_DDL)
    assert _rows(grouped) == wanted
    whole = celc.compile(OTHER + QUERY.format(formula).replace(" PARTITION BY id", ""))
    assert whole.match(events).count() == len(whole.match_table(table))


def test_many_and_statements(spark: Any, tmp_path: Path, capsys: Any) -> None:
    table = instants_of_others()
    events = spark.createDataFrame(table)
    text = OTHER + "".join(
        f"QUERY {name}: {QUERY.format(formula)}\n"
        for name, formula in (("one", "A AS a : OTHER : B"), ("two", "A AS a ; B"))
    )
    found = celc.compile(text)
    for name in ("one", "two"):
        answer = found.rows(found.match_all(events), name)
        assert _rows(answer) == _wanted(found.queries[name], table)
    other = "CREATE STREAM T { EVENT x { ts: TIMESTAMP } }\n" + text
    other += "QUERY three: SELECT x.ts AS t FROM T WHERE x WITHIN 3 HOURS [ts]\n"
    with pytest.raises(EventError, match=r"'one': match_all: EVENT OTHER .*module\.one\.match"):
        celc.compile(other).match_all(events)
    (tmp_path / "q.cel").write_text(
        OTHER + "SELECT a.v AS v FROM S WHERE A AS a ; OTHER WITHIN 3 HOURS [ts]"
    )
    assert main(["compile", f"{tmp_path}/q.cel", "--to", "spark-sql"]) == 2
    assert "cannot tell which event types EVENT OTHER { } stands for" in capsys.readouterr().err


@pytest.mark.long
def test_streams(spark: Any, tmp_path: Path) -> None:
    table = instants_of_others()
    late = table.slice(119).set_column(
        2, "ts", pa.array([1_900_000_000_000_000], pa.int64()).cast(table.schema.field(2).type)
    )
    query = celc.compile(OTHER + QUERY.format("A AS a ; !OTHER ; B"))
    with settings(spark, SETTINGS):
        (tmp_path / "in").mkdir()
        for name, piece in enumerate(
            (table.slice(0, 50), pa.concat_tables([table.slice(50), late]))
        ):
            pq.write_table(piece, tmp_path / "in" / f"{name}.parquet")
            stream = query.match_stream(files(spark, tmp_path / "in", DDL), watermark="1 second")
            run(stream, tmp_path)
        found = spark.read.schema(stream.schema).parquet(str(tmp_path / "out"))
        assert _rows(found) == _wanted(query, table)

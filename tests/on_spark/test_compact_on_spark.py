"""Compact answers on Spark: what `expand` gives back are the rows of `match`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import celc_runtime
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery, EventError, expand
from engines import as_on_spark, interpreted, only_query
from shares import share

import celc

_EVENT = "{ id: INT, v: DOUBLE, name: STRING, at: TIMESTAMP, ts: LONG }"
_STREAM = f"CREATE STREAM S {{ EVENT A {_EVENT}, EVENT B {_EVENT}, EVENT C {_EVENT} }}\n"

_KEYED = "SELECT A[name, at], B WHERE A+ ; B PARTITION BY id WITHIN 12 [ts]"
_WAYS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (_KEYED, {}, {}),
    (_KEYED, {}, {"ranges": 4}),
    ("SELECT * WHERE A ; B+ ; C WITHIN 9 [ts]", {}, {"ranges": 4}),
    ("SELECT B[v, at] WHERE A ; B ; !A ; C WITHIN 9 EVENTS", {}, {}),
    ("SELECT * WHERE A+ ; C WITHIN 15 [ts] LIMIT 3", {}, {"ranges": 3}),
    (
        "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.v > PREV(x.v) WITHIN 20 [ts]",
        {},
        {"ranges": 3},
    ),
    ("SELECT MAX * WHERE (A OR C)+ ; B PARTITION BY id WITHIN 9 EVENTS", {}, {}),
    (
        "SELECT COUNT(A) AS n, SUM(A.v) / 2 AS `half.v`, MAX(A.at) AS most WHERE A+ ; B "
        "PARTITION BY id WITHIN 9 EVENTS",
        {"positions": False},
        {},
    ),
]


def _events(rows: int = 150) -> pa.Table:
    rng = random.Random(5)
    micros = pa.timestamp("us", tz="UTC")
    return pa.table(
        {
            "type": rng.choices("ABC", k=rows),
            "id": pa.array(rng.choices([1, 1, 1, 1, 2, 3, None], k=rows), pa.int32()),
            "v": rng.choices([0.5, 2.0, None], k=rows),
            "name": rng.choices(["x", "ü", None], k=rows),
            "at": pa.array([rng.randrange(10**15) for _ in range(rows)], micros),
            "ts": pa.array(range(rows), pa.int64()),
        }
    )


def _query(text: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(celc.compile(_STREAM + text, order_by="ts")).with_options(**options)


def _rows(table: pa.Table, schema: pa.Schema) -> Counter[str]:
    assert table.schema.names == schema.names
    return Counter(map(repr, table.cast(schema).to_pylist()))


@pytest.mark.parametrize(("text", "options", "called"), share(_WAYS, 3, first=1))
def test_expanded_answers_are_the_matches(
    text: str, options: dict[str, Any], called: dict[str, Any], spark: Any
) -> None:
    one, events = _query(text, **options), _events()
    compact = one.match_compact(spark.createDataFrame(events), **called)
    found = expand(compact)
    assert found.schema == one.match(spark.createDataFrame(events.slice(0, 3))).schema
    wanted = as_on_spark(one).match_table(events)
    assert len(wanted) >= 30
    assert _rows(found.toArrow(), wanted.schema) == _rows(wanted, wanted.schema)


def test_a_row_for_each_end_which_files_keep(spark: Any, tmp_path: Path) -> None:
    one, events = _query(_KEYED, positions=True), _events()
    compact = one.match_compact(spark.createDataFrame(events))
    wanted = one.match_compact(events)
    assert compact.columns == wanted.schema.names
    compact.write.parquet(str(tmp_path / "compact"))
    kept = spark.read.parquet(str(tmp_path / "compact"))
    assert kept.count() == len(wanted)
    # Rows and columns of one's own may come and go.
    some = kept.where("id = 1").withColumn("mine", kept["end_pos"] + 1).selectExpr("mine", "*")
    whole = one.match_table(events).to_pylist()
    assert expand(some).count() == sum(row["id"] == 1 for row in whole)
    first = one.expand(kept, limit=7).toArrow()
    assert len(first) == 7
    assert not _rows(first, one.output_schema) - Counter(map(repr, whole))


def test_presorted_events(spark: Any) -> None:
    one, events = _query(_KEYED), _events()
    frame = spark.createDataFrame(events).repartition("id").sortWithinPartitions("id", "ts")
    found = expand(one.match_compact(frame, presorted=True)).count()
    assert found == len(one.match_table(events))


def test_errors_on_spark(spark: Any, tmp_path: Path) -> None:
    one, frame = _query(_KEYED), spark.createDataFrame(_events())
    with pytest.raises(EventError, match="expand takes what match_compact gave"):
        expand(frame)
    compact = one.match_compact(frame)
    with pytest.raises(EventError, match=r"'events' is not: "):
        expand(compact.drop("events"))
    with pytest.raises(ValueError, match="limit must be a whole number from 1, not 0"):
        expand(compact, limit=0)
    frame.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    with pytest.raises(EventError, match="match_compact reads a DataFrame that is there as a"):
        one.match_compact(stream)
    with pytest.raises(ValueError, match="ranges and presorted are for a DataFrame of Spark"):
        one.match_compact(_events(), ranges=2)
    assert celc_runtime.expand is expand

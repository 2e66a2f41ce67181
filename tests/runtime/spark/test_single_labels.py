"""Labels with one event of every match: which they are, and how they travel to Spark."""

from __future__ import annotations

import random
import warnings
from itertools import islice
from typing import Any

import pytest
from celc_runtime import EventWarning
from celc_runtime.spark.answers.single_labels import wire_ddl, with_single_fields
from celc_runtime.spark.input.probe import explained
from engines import interpreted, only_query, table_of
from strategies import compiled_queries, random_stream

import celc

_STREAM = "CREATE STREAM S { EVENT A { id: LONG, ts: LONG }, EVENT B { ts: LONG } } "


def _single(clauses: str) -> list[str]:
    """The single labels, `<` before those of the first event, `>` behind those of the last."""
    with interpreted():
        query = only_query(celc.compile(_STREAM + clauses, order_by="ts"))
    labels = [label for label in query.plan.answer.labels if label.single]
    return ["<" * label.first + label.name + ">" * label.last for label in labels]


@pytest.mark.parametrize(
    ("query", "single"),
    [
        ("SELECT * FROM S WHERE A AS a ; B AS b", ["<a", "b>"]),
        ("SELECT a, b FROM S WHERE A AS a ; (B AS b)+", ["<a"]),
        ("SELECT x FROM S WHERE A AS x ; B AS x", []),
        ("SELECT a, b, x FROM S WHERE (A AS a OR B AS b) AS x", ["<x>"]),
        ("SELECT a FROM S WHERE A AS a ; !B ; A", ["<a"]),
        ("SELECT NXT a, b FROM S WHERE (A AS a)+ ; B AS b WITHIN 9 [ts]", ["b>"]),
        ("SELECT a, b FROM S WHERE (A AS a ; B AS b) FILTER a.id = 1 OR b.ts = a.ts", ["<a", "b>"]),
    ],
)
def test_which_labels_are_single(query: str, single: list[str]) -> None:
    assert sorted(_single(query)) == sorted(single)


def test_single_labels_of_random_queries_hold_one_event() -> None:
    rng = random.Random(5)
    single = others = ends = 0
    for query in islice(compiled_queries(rng), 60):
        events = random_stream(rng, 12, nulls=0.2)
        rows = [{**event, "row": row} for row, event in enumerate(events)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            found = query.match_table(table_of(query.plan, rows))
        if not len(found):
            continue
        names = [label.name for label in query.plan.answer.labels if label.single]
        single, others = single + len(names), others + len(query.plan.answer.labels) - len(names)
        for batch in found.to_batches():
            for name in names:
                assert set(batch[name].value_lengths().to_pylist()) == {1}, query.text
            for label in query.plan.answer.labels:
                if label.first or label.last:
                    end = batch["start_pos" if label.first else "end_pos"]
                    assert batch[label.name].flatten().field("pos") == end, query.text
                    ends += 1
            assert len(with_single_fields(query.plan, batch)) == len(batch)
    assert single > 5
    assert others > 10
    assert ends > 3


def test_fields_travel_in_the_place_of_a_single_label() -> None:
    text = "SELECT a, b, COUNT(b) AS n FROM S WHERE A AS a ; (B AS b)+ WITHIN 9 [ts]"
    with interpreted():
        query = only_query(celc.compile(_STREAM + text, order_by="ts"))
    events = [{"type": kind, "id": ts, "ts": ts} for ts, kind in enumerate("ABB")]
    found = query.match_table(table_of(query.plan, events)).combine_chunks().to_batches()[0]
    sent = with_single_fields(query.plan, found)
    assert sent.columns[:3] == [found["a"].flatten().field(at) for at in range(3)]
    # The start is that of a's event; no label has the last event of every match alone.
    assert sent.columns[3:] == [found[name] for name in ("end_pos", "end_time", "b", "n")]
    assert wire_ddl(query.plan).startswith("column_0 BIGINT, column_1 BIGINT, column_2 BIGINT, ")


def test_the_answer_on_spark_has_the_types_of_the_plan(spark: Any) -> None:
    text = "SELECT a, b FROM S WHERE A AS a ; B AS b"
    with interpreted():
        query = only_query(celc.compile(_STREAM + text, order_by="ts", positions=True))
    frame = spark.createDataFrame([("A", 7, 1), ("B", None, 2)], "type STRING, id LONG, ts LONG")
    found = query.match(frame)
    assert found.schema == spark.createDataFrame([], query.output_ddl).schema
    (row,) = found.toArrow().to_pylist()
    assert row["a"] == [{"pos": 0, "id": 7, "ts": 1}]
    assert row["b"] == [{"pos": 1, "ts": 2}]
    # A job that asks for a field makes no list.
    plan = explained(found.selectExpr("a[0].pos AS first", "b[0].ts AS last"))
    assert "array(" not in plan
    assert "struct" not in plan

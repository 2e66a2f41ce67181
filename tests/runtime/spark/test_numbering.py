"""Rows that Spark numbers and filters: positions, ties, undeclared types; by hand and in Spark."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery, EventError, EventWarning
from celc_runtime.spark.input.probe import explained
from celc_runtime.spark.numbering import why_not_numbered
from celc_runtime.spark.worker.task_columns import TIED
from celc_runtime.spark.worker.tasks import matches_of_task
from engines import interpreted, only_query, table_of
from numbered_rows import COLUMNS, cut, numbered_rows, tasks_sort_at_most, texts_of
from strategies import compiled_queries, random_stream

import celc

_DECLARATION = (
    "CREATE STREAM S { EVENT A { id: LONG, value: DOUBLE, note: STRING, ts: LONG }, "
    "EVENT B { id: LONG, value: DOUBLE, note: STRING, ts: LONG }, "
    "EVENT X { id: LONG, value: DOUBLE, ts: LONG } } "
)
_KEYED = "SELECT a[value], b[note] FROM S WHERE A AS a ; B AS b FILTER a.value > 1"


def _compiled(clauses: str, *, tiebreak: str = "row") -> CompiledQuery:
    text = f"{_DECLARATION}{_KEYED} {clauses}"
    with interpreted():
        return only_query(
            celc.compile(text, order_by="ts", tiebreak=tiebreak or (), positions=True)
        )


# --- by hand --------------------------------------------------------------------------------------


def _random_queries(seed: int, count: int) -> int:
    """How many rows were left out of the streams of random queries that give the same matches."""
    rng = random.Random(seed)
    left_out = 0
    queries = compiled_queries(rng)
    while count:
        query = next(queries)
        if why_not_numbered(query.plan):
            continue
        count -= 1
        events = [
            {**event, "row": row}
            for row, event in enumerate(random_stream(rng, 14, nulls=0.2, strangers=0.1))
        ]
        table = table_of(query.plan, events)
        handed = numbered_rows(query.plan, table)
        left_out += len(table) - len(handed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            found = matches_of_task(query.program, COLUMNS, (), cut(handed, rng))
            assert texts_of(found) == texts_of(query.match_table(table).to_batches()), query.text
    return left_out


def test_random_queries() -> None:
    assert _random_queries(21, 25) > 40


@pytest.mark.long
@pytest.mark.parametrize("seed", range(700, 710))
def test_many_random_queries(seed: int) -> None:
    assert _random_queries(seed, 600) > 1_000


def test_a_mark_of_equal_rows_is_an_error() -> None:
    query = _compiled("PARTITION BY id")
    batch = pa.RecordBatch.from_pydict(
        {
            "type": ["A", None],
            "id": [1, 1],
            "value": [2.0, None],
            "note": [None, None],
            "ts": [5, 5],
            "row": [7, 7],
            "number": [1, 2],
            "mark": pa.array([0, TIED], pa.int8()),
        }
    )
    with pytest.raises(EventError, match=r"equal in ts, row \(ts=5, row=7\), and a distributed"):
        list(matches_of_task(query.program, COLUMNS, (), [batch]))


@pytest.mark.parametrize(
    ("clauses", "why"),
    [
        ("PARTITION BY id", ""),
        ("PARTITION BY id WITHIN 9 [ts]", ""),
        ("WITHIN 9 [ts]", ""),
        ("PARTITION BY id WITHIN 9 EVENTS", ""),
        ("PARTITION BY ts", "at one place of the order"),
        ("PARTITION BY id WITHIN 9 [value]", "must not fall"),
        ("PARTITION BY id CONSUME BY ANY", "side by side"),
    ],
)
def test_which_queries_are_numbered(clauses: str, why: str) -> None:
    found = why_not_numbered(_compiled(clauses).plan)
    assert why in found
    assert bool(why) == bool(found)


def test_rows_that_count_are_not_left_out_where_types_have_keys_of_their_own() -> None:
    text = (
        "CREATE STREAM S { EVENT A { id: LONG, ts: LONG }, EVENT B { other: LONG, ts: LONG }, "
        "EVENT X { id: LONG, ts: LONG } } "
        "SELECT * FROM S WHERE A AS a ; B AS b PARTITION BY [id, other] WITHIN 9 "
    )
    with interpreted():
        counting, timed = (
            only_query(celc.compile(text + unit, order_by="ts", positions=True))
            for unit in ("EVENTS", "[ts]")
        )
    assert "a key is another attribute" in why_not_numbered(counting.plan)
    assert why_not_numbered(timed.plan) == ""


# --- in Spark -------------------------------------------------------------------------------------


def _stream(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    types = rng.choice(["A", "B", "X", "Stranger"], rows, p=[0.1, 0.1, 0.7, 0.1])
    return pa.table(
        {
            "type": types,
            "id": pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.05),
            "value": rng.choice([0.5, 1.5, 2.5], rows),
            "note": rng.choice(["p", "q"], rows),
            "ts": np.sort(rng.integers(0, rows // 3, rows)),
            "row": np.arange(rows),
        }
    )


def _written(spark: Any, events: pa.Table, folder: Path) -> Any:
    folder.mkdir(exist_ok=True)
    shuffled = events.take(pa.array(np.random.default_rng(4).permutation(len(events))))
    pq.write_table(shuffled, folder / "events.parquet")
    return spark.read.parquet(str(folder))


@pytest.mark.each(2)
@pytest.mark.parametrize("clauses", ["PARTITION BY id WITHIN 60 [ts]", "WITHIN 9 [ts]"])
def test_positions_are_those_of_all_rows(
    clauses: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks_sort_at_most(0, monkeypatch)
    events, query = _stream(900), _compiled(clauses)
    frame = _written(spark, events, tmp_path)
    assert "Spark numbers the sorted rows" in query.explain_plan(frame)
    found = query.match(frame)
    text = explained(found)
    assert text.count("Window ") == text.count("Sort ") == 1
    assert text.count("Exchange") == ("PARTITION" in clauses)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        wanted = query.match_table(events)
    assert len(wanted) > 50
    rows = found.toArrow().cast(query.output_schema)
    assert texts_of(rows.to_batches()) == texts_of(wanted.to_batches())
    assert query.match(frame.limit(0)).toArrow().num_rows == 0


@pytest.mark.long
def test_equal_rows_are_an_error_whether_they_matter_or_not(spark: Any) -> None:
    query = _compiled("PARTITION BY id", tiebreak="")
    schema = "type STRING, id LONG, value DOUBLE, note STRING, ts LONG"
    whole = ("A", 1, 2.0, "p", 1), ("X", 1, 2.0, "p", 2), ("B", 1, 2.0, "p", 3)
    for tie in (
        [("X", 1, 0.0, "", 1)],
        [("X", 1, 0.0, "", 2)],
        [("A", 1, 9.0, "", 3)],
    ):
        frame = spark.createDataFrame([*whole, *tie], schema)
        with pytest.raises(Exception, match="two events are equal in ts"):
            query.match(frame).toArrow()
    # Neither rows of undeclared types nor those of other partitions are at any place of the order.
    fine = [("Stranger", 1, 0.0, "", 1), ("Stranger", 1, 0.0, "", 1), ("X", 2, 0.0, "", 1)]
    found = query.match(spark.createDataFrame([*whole, *fine], schema)).toArrow()
    assert [(row["start_pos"], row["end_pos"]) for row in found.to_pylist()] == [(0, 2)]


def test_rows_that_are_wrong_are_refused_though_they_cannot_matter(spark: Any) -> None:
    query = _compiled("PARTITION BY id")
    schema = "type STRING, id LONG, value DOUBLE, note STRING, ts LONG, row LONG"
    for wrong, said in (
        ((None, 1, 0.0, "", 1, 0), "column 'type' is NULL"),
        (("X", 1, 0.0, "", None, 0), "order column 'ts' is NULL"),
    ):
        frame = spark.createDataFrame([("A", 1, 2.0, "p", 1, 1), wrong], schema)
        with pytest.raises(Exception, match=said):
            query.match(frame).toArrow()


def test_no_row_matters_where_nothing_can_match(spark: Any) -> None:
    text = (
        "CREATE STREAM S { EVENT A { v: INT, ts: LONG } } CREATE STREAM T { EVENT A { ts: LONG } } "
        "SELECT * FROM S, T WHERE (S>A AS a ; T>A AS b) FILTER a.v > 3 AND a.v < 2"
    )
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts", positions=True))
    assert query.plan.source.relevant == ()
    schema = "stream STRING, type STRING, v INT, ts LONG"
    frame = spark.createDataFrame([("S", "A", 1, 1), ("T", "A", None, 2)], schema)
    # Spark, or the task: over Connect the size of such a DataFrame is known.
    assert "numbers the sorted rows" in query.explain_plan(frame)
    assert query.match(frame).toArrow().num_rows == 0

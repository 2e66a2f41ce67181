"""Rows that only count, put back between those that come."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery, EventWarning, expand
from celc_runtime.spark import choose
from celc_runtime.spark.worker import rows_between as module
from celc_runtime.spark.worker.rows_between import RowsBetween
from celc_runtime.spark.worker.tasks import matches_of_task
from engines import interpreted, only_query, table_of
from numbered_rows import COLUMNS, cut, numbered_rows, tasks_sort_at_most, texts_of
from shares import share
from strategies import random_stream

import celc

_DECLARED = (
    "CREATE STREAM S { EVENT A { id: LONG, note: STRING, ts: LONG }, "
    "EVENT B { id: LONG, note: STRING, ts: LONG }, EVENT X { id: LONG, ts: LONG } } "
)


def _query(clauses: str, formula: str = "A AS a ; B AS b", select: str = "a, b") -> CompiledQuery:
    text = f"{_DECLARED}SELECT {select} FROM S WHERE {formula} {clauses}"
    with interpreted():
        return only_query(celc.compile(text, order_by="ts", tiebreak="row", positions=True))


def _put_back(query: CompiledQuery, batches: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    """Key, note and order of each row, and whether it was put back."""
    between, found = RowsBetween(query.plan), []
    for batch in batches:
        numbers = np.asarray(batch.column("number"))
        for events, absent in between.filled(batch.drop_columns(["number"]), numbers):
            assert len(events) <= module.ROWS_AT_ONCE
            marks = np.zeros(len(events), np.bool_) if absent is None else absent
            columns = (events.column(name).to_pylist() for name in ("id", "note", "ts"))
            found += list(zip(*columns, marks.tolist(), strict=True))
    return found


@pytest.mark.parametrize("at_once", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("length", [1, 2, 9])
def test_rows_are_put_back_in_front_of_others(
    at_once: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    # (key, number) of the rows that come; 0: of a type that is not declared.
    rows = [(1, 1), (1, 2), (1, 6), (1, 0), (1, 7), (2, 9), (None, 0), (None, 1), (None, 3)]
    table = pa.table(
        {
            "type": ["A"] * len(rows),
            "id": pa.array([key for key, _ in rows], pa.int64()),
            "note": [f"{place}" for place in range(len(rows))],
            "ts": list(range(0, 10 * len(rows), 10)),
            "row": list(range(len(rows))),
            "number": [number for _, number in rows],
        }
    )
    expected: list[tuple[object, ...]] = []
    last: dict[object, int] = {}
    for place, (key, number) in enumerate(rows):
        before = max(0, number - last.get(key, 0) - 1)
        expected += [(key, None, 10 * place, True)] * before
        expected.append((key, f"{place}", 10 * place, False))
        last[key] = max(number, last.get(key, 0))
    batches = [
        batch
        for start in range(0, len(rows), length)
        for batch in table.slice(start, length).combine_chunks().to_batches()
    ]
    assert _put_back(_query("PARTITION BY id WITHIN 9 EVENTS"), batches) == expected


def test_no_row_is_copied_where_none_was_left_out() -> None:
    query = _query("WITHIN 9 EVENTS")
    batch = pa.RecordBatch.from_pydict({"type": ["A", "B"], "id": [1, 1], "ts": [5, 6]})
    ((events, absent),) = RowsBetween(query.plan).filled(batch, np.array([1, 2]))
    assert absent is None
    assert events.equals(batch)
    assert events.column("ts").buffers()[1].address == batch.column("ts").buffers()[1].address


@pytest.mark.each(4)
@pytest.mark.parametrize(
    ("clauses", "formula", "select"),
    [
        ("WITHIN 3 EVENTS", "A AS a ; B AS b", "a, b"),
        ("PARTITION BY id WITHIN 3 EVENTS", "A AS a ; B AS b", "a, b"),
        ("PARTITION BY id", "A AS a : B AS b", "a, b"),
        ("WITHIN 5 [ts]", "A AS a :+", "a"),
        ("PARTITION BY id WITHIN 5 EVENTS", "A AS a ; B AS b", "STRICT a, b"),
        ("WITHIN 20 [ts]", "WITHIN[2 EVENTS](A AS a ; B AS b) ; A AS c", "a, b, c"),
        ("WITHIN 4 EVENTS", "A AS a ; !X ; B AS b", "a, b"),
        ("PARTITION BY id WITHIN 4 EVENTS CONSUME BY PARTITION", "A AS a ; B AS b", "a, b"),
    ],
)
@pytest.mark.parametrize("at_once", [2, 1000])
def test_queries_that_count_find_what_they_find_among_all_rows(
    clauses: str, formula: str, select: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    query = _query(clauses, formula, select)
    assert query.plan.source.told_apart is not None
    matches = left_out = 0
    for seed in range(12):
        rng = random.Random(seed)
        stream = random_stream(rng, 20, nulls=0.1, strangers=0.1)
        # One type that the query may only count.
        events = [
            {**event, "type": rng.choice("ABXX"), "row": row} for row, event in enumerate(stream)
        ]
        table = table_of(query.plan, events)
        handed = numbered_rows(query.plan, table)
        left_out += len(table) - len(handed)
        found = texts_of(matches_of_task(query.program, COLUMNS, (), cut(handed, rng)))
        assert found == texts_of(query.match_table(table).to_batches())
        matches += len(found)
    assert matches > 5
    assert left_out > 10 or "!X" in formula


# --- in Spark -------------------------------------------------------------------------------------

_KEYED = "PARTITION BY id WITHIN 5 EVENTS"


def _stream(rows: int) -> pa.Table:
    """Rows of which a tenth is of each of the query's types, and half of one key."""
    rng = np.random.default_rng(6)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "X", "Stranger"], rows, p=[0.1, 0.1, 0.7, 0.1]),
            "id": np.where(rng.random(rows) < 0.5, 3, rng.integers(0, 5, rows)),
            "note": rng.choice(["p", "q"], rows),
            "ts": np.sort(rng.integers(0, rows, rows)),
            "row": np.arange(rows),
        }
    )


_BY_SPARK, _BY_TASKS = 0, choose.MOST_ROWS


@pytest.mark.parametrize(
    ("clauses", "formula", "select", "ranges", "most_rows"),
    share(
        [
            ("WITHIN 20 EVENTS", "A AS a ; B AS b", "a, b", None, _BY_TASKS),
            ("WITHIN 20 EVENTS", "A AS a ; B AS b", "a, b", 4, _BY_SPARK),
            ("WITHIN 50 [ts]", "A AS a : B AS b", "a, b", None, _BY_SPARK),
            (_KEYED, "A AS a ; B AS b", "a, b", None, _BY_TASKS),
            (_KEYED, "A AS a ; B AS b", "a, b", 3, _BY_SPARK),
            (_KEYED, "A AS a ; B AS b", "STRICT a, b", None, _BY_SPARK),
            (_KEYED, "(A OR B) AS a ; (A OR B) AS b", "NXT a, b", None, _BY_TASKS),
            (_KEYED, "A AS a ; B AS b", "TOTAL COUNT(*) AS n", None, _BY_TASKS),
        ],
        8,
        first=1,
    ),
)
def test_answers_are_those_of_all_rows(
    clauses: str,
    formula: str,
    select: str,
    ranges: int | None,
    most_rows: int,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks_sort_at_most(most_rows, monkeypatch)
    events, query = _stream(1500), _query(clauses, formula, select)
    shuffled = events.take(pa.array(np.random.default_rng(4).permutation(len(events))))
    pq.write_table(shuffled, tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path))
    plan = query.explain_plan(frame, ranges=ranges)
    assert "counting: the tasks put back rows that only count" in plan
    assert ("time ranges, which" in plan) == (ranges is not None)
    for one in (query, query.with_options(positions=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            wanted = one.match_table(events)
        assert len(wanted) > 5
        found = one.match(frame, ranges=ranges).toArrow().cast(one.output_schema)
        assert texts_of(found.to_batches()) == texts_of(wanted.to_batches())
    if "TOTAL" not in select:
        expanded = expand(query.match_compact(frame, ranges=ranges)).toArrow()
        assert len(expanded) == len(query.match_table(events))


def test_rows_that_are_wrong_are_refused(spark: Any) -> None:
    query = _query(_KEYED)
    schema = "type STRING, id LONG, note STRING, ts LONG, row LONG"
    good = [("A", 1, "p", 1, 1), ("X", 1, None, 2, 2), ("B", 1, "q", 3, 3)]
    for wrong, said in (
        ((None, 1, "p", 2, 4), "column 'type' is NULL"),
        (("X", 1, None, None, 4), "order column 'ts' is NULL"),
        (("X", 1, None, 2, 2), "two events are equal in ts, row"),
    ):
        frame = spark.createDataFrame([*good, wrong], schema)
        with pytest.raises(Exception, match=said):
            query.match(frame).toArrow()
    found = query.match(spark.createDataFrame(good, schema)).toArrow()
    assert [(row["start_pos"], row["end_pos"]) for row in found.to_pylist()] == [(0, 2)]

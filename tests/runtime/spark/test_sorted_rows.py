"""Rows that tasks sort and number themselves: by hand, and in Spark beside Spark's own sort."""

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
from celc_runtime.arrow.events import gathering
from celc_runtime.arrow.events.sorting import sort_columns
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import input_schema
from celc_runtime.spark import choose
from celc_runtime.spark.input.columns import SPARK_TYPES
from celc_runtime.spark.numbering import why_not_numbered
from celc_runtime.spark.worker import sorted_rows as module
from celc_runtime.spark.worker.sorted_rows import sorted_rows
from celc_runtime.spark.worker.task_columns import TaskColumns, Unsorted, no_type
from celc_runtime.spark.worker.task_sort import why_spark_sorts
from celc_runtime.spark.worker.tasks import matches_of_task
from engines import interpreted, only_query, table_of
from numbered_rows import cut, tasks_sort_at_most, texts_of, what_is_known
from shares import share
from strategies import compiled_queries, random_stream

import celc

_DECLARATION = (
    "CREATE STREAM S { EVENT A { id: LONG, place: STRING, value: DOUBLE, ts: LONG }, "
    "EVENT B { id: LONG, place: STRING, value: DOUBLE, ts: LONG }, "
    "EVENT X { id: LONG, place: STRING, value: DOUBLE, ts: LONG } } "
)
_QUERY = "SELECT a[value], b[value] FROM S WHERE (A AS a ; B AS b) FILTER a.value > 1"


def _compiled(clauses: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(
            celc.compile(f"{_DECLARATION}{_QUERY} {clauses}", positions=True, **options)
        )


# --- by hand --------------------------------------------------------------------------------------


def _types(plan: Plan, table: pa.Table) -> dict[str, str]:
    declared = {
        name: SPARK_TYPES[plan.source.input_type(name)][0] for name in input_schema(plan).names
    }
    return {name: declared.get(name, "bigint") for name in table.column_names}


def _unsorted(plan: Plan, table: pa.Table, matters: str) -> pa.Table:
    """The rows as Spark would hand them over, of which types alone decide what can matter."""
    if not matters:
        return table
    rows = table.to_pylist()
    for row in rows:
        is_declared, can_matter = what_is_known(plan, row.get("stream"), row.get("type"))
        told = True if can_matter or not is_declared else None
        if not told:
            row |= {name: None for name in table.column_names if name not in sort_columns(plan)}
        elif matters == plan.source.type_name and row[matters] is None:
            row[matters] = no_type(plan)
        if matters != plan.source.type_name:
            row[matters] = told
    if matters == plan.source.type_name:
        return pa.Table.from_pylist(rows, table.schema)
    return pa.Table.from_pylist(rows, table.schema.append(pa.field(matters, pa.bool_())))


def _random_queries(seed: int, count: int) -> tuple[int, int]:
    """How many queries had their rows numbered, and how many matches there were."""
    rng = random.Random(seed)
    numbered = matches = 0
    queries = compiled_queries(rng)
    while count:
        query = next(queries)
        plan = query.plan
        events = [
            {**event, "row": row}
            for row, event in enumerate(random_stream(rng, 24, nulls=0.2, strangers=0.1))
        ]
        table = table_of(plan, events)
        if why_spark_sorts(plan, _types(plan, table)):
            continue
        count -= 1
        matters = "" if why_not_numbered(plan) else "matters"
        if matters and count % 3 and plan.source.type_name in table.column_names:
            matters = plan.source.type_name
        numbered += bool(matters)
        columns = TaskColumns(
            *("", "number", "mark") if matters else (),
            unsorted=Unsorted(tuple(table.schema.names), matters),
        )
        handed = _unsorted(plan, table, matters)
        handed = handed.take(pa.array(np.random.default_rng(seed).permutation(len(handed))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            found = texts_of(matches_of_task(query.program, columns, (), cut(handed, rng, 9)))
            assert found == texts_of(query.match_table(table).to_batches()), query.text
        matches += len(found)
    return numbered, matches


@pytest.mark.each(2)
@pytest.mark.parametrize("in_memory", [True, False])
def test_random_queries(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.setattr(module, "_BYTES_IN_MEMORY", 300)
        monkeypatch.setattr(gathering, "ROWS_AT_ONCE", 5)
    numbered, matches = _random_queries(5, 40)
    assert 5 < numbered < 35
    assert matches > 100


@pytest.mark.long
@pytest.mark.parametrize("seed", range(800, 810))
def test_many_random_queries(seed: int) -> None:
    numbered, matches = _random_queries(seed, 300)
    assert numbered > 50
    assert matches > 1_000


def _sorted(plan: Plan, table: pa.Table) -> list[dict[str, Any]]:
    unsorted = Unsorted(tuple(table.schema.names), "")
    found = sorted_rows(plan, TaskColumns(unsorted=unsorted), table.to_batches())
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize("times", [1, 2**40, 2**62])
@pytest.mark.parametrize("keys", [["id"], ["id", "place"], ["place"]])
def test_rows_are_sorted_whatever_their_values_are(keys: list[str], times: int) -> None:
    query = _compiled(f"PARTITION BY {', '.join(keys)}", order_by="ts", tiebreak="row")
    rng = np.random.default_rng(7)
    rows = 500
    moments = rng.integers(-2, 2, rows) * times
    table = pa.table(
        {
            "type": ["A"] * rows,
            "id": pa.array(rng.integers(0, 5, rows) * times, mask=rng.random(rows) < 0.1),
            "place": pa.array(rng.choice(["", "a", "é"], rows), mask=rng.random(rows) < 0.1),
            "value": rng.random(rows),
            "ts": pa.array(moments, mask=rng.random(rows) < 0.1),
            "row": pa.array(rng.permutation(rows), mask=rng.random(rows) < 0.001),
        }
    )
    found = _sorted(query.plan, table)
    by_key: dict[Any, list[Any]] = {}
    for row in found:
        by_key.setdefault(tuple(row[name] for name in keys), []).append(row)
    # One key after another.
    assert found == [row for of_key in by_key.values() for row in of_key]

    def place(row: dict[str, Any]) -> Any:
        return tuple((row[name] is not None, row[name] or 0) for name in ("ts", "row"))

    for of_key in by_key.values():
        assert of_key == sorted(of_key, key=place)
    assert sorted(map(repr, found)) == sorted(map(repr, table.to_pylist()))


def test_texts_tell_rows_apart_as_spark_orders_them() -> None:
    query = _compiled("PARTITION BY id", order_by="ts", tiebreak="place")
    places = ["b", "é", "", "a", "ab", "\U0001f600", "\uffff", "B"]
    rows = [{"type": "A", "id": 1, "place": p, "value": 2.0, "ts": 3} for p in places]
    found = _sorted(query.plan, pa.Table.from_pylist(rows))
    assert [row["place"] for row in found] == sorted(places, key=str.encode)


def test_a_file_is_gone_when_its_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BYTES_IN_MEMORY", 10)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'none'},{tmp_path}")
    query = _compiled("PARTITION BY id", order_by="ts")
    rows = [{"type": "A", "id": 1, "place": "p", "value": 2.0, "ts": -n} for n in range(9)]
    unsorted = Unsorted(("type", "id", "place", "value", "ts"), "")
    batches = pa.Table.from_pylist(rows).to_batches(max_chunksize=2)
    found = sorted_rows(query.plan, TaskColumns(unsorted=unsorted), batches)
    first = next(found)
    assert [path.name for path in tmp_path.glob("*/*")] == ["rows"]
    assert first.column("ts").to_pylist() == list(range(-8, 1))
    assert list(found) == []
    assert list(tmp_path.iterdir()) == []


def test_no_rows_and_one_row() -> None:
    query = _compiled("PARTITION BY id", order_by="ts")
    schema = {"type": "A", "id": 1, "place": "p", "value": 2.0, "ts": 3}
    one = pa.Table.from_pylist([schema])
    assert _sorted(query.plan, one) == [schema]
    assert _sorted(query.plan, one.slice(1)) == []


@pytest.mark.parametrize(
    ("clauses", "options", "types", "why"),
    [
        ("PARTITION BY id", {"order_by": "ts"}, {}, ""),
        ("PARTITION BY id", {"order_by": "ts", "tiebreak": "place"}, {}, ""),
        ("PARTITION BY id", {"order_by": "ts", "tiebreak": "row"}, {"row": "decimal(38,0)"}, "row"),
        ("PARTITION BY place", {"order_by": "ts"}, {"place": "void"}, "'place' is of type void"),
        ("PARTITION BY value", {"order_by": "ts"}, {}, "the key 'value' is of type double"),
        ("PARTITION BY place", {"order_by": "ts"}, {"place": "string collate UTF8_LCASE"}, "key"),
        ("PARTITION BY id", {"order_by": "value"}, {}, "order column 'value'"),
        ("PARTITION BY id", {"order_by": "ts", "ties": "simultaneous"}, {}, "by all columns"),
        ("", {"order_by": "ts"}, {}, ""),
        ("PARTITION BY id CONSUME BY ANY", {"order_by": "ts"}, {}, "are read side by side"),
    ],
)
def test_which_rows_tasks_sort(
    clauses: str, options: dict[str, str], types: dict[str, str], why: str
) -> None:
    plan = _compiled(clauses, **options).plan
    known = {"type": "string", "id": "bigint", "place": "string", "value": "double", "ts": "bigint"}
    found = why_spark_sorts(plan, known | types)
    assert why in found
    assert bool(why) == bool(found)


# --- in Spark -------------------------------------------------------------------------------------


def _events(rows: int) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "X", "Stranger"], rows, p=[0.1, 0.1, 0.7, 0.1]),
            "id": pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.05),
            "place": rng.choice(["here", "there"], rows),
            "value": rng.choice([0.5, 1.5, 2.5], rows),
            "ts": np.sort(rng.integers(0, rows // 3, rows)),
            "row": np.arange(rows),
        }
    )


def _frame(spark: Any, events: pa.Table, folder: Path, files: int = 3) -> Any:
    """The rows in no order, in several files."""
    folder.mkdir(exist_ok=True)
    shuffled = events.take(pa.array(np.random.default_rng(4).permutation(len(events))))
    for number in range(files):
        part = shuffled.take(pa.array(np.arange(number, len(events), files)))
        pq.write_table(part, folder / f"{number}.parquet")
    return spark.read.parquet(str(folder))


@pytest.mark.parametrize("most", [choose.MOST_ROWS, 0])
@pytest.mark.parametrize(
    ("clauses", "positions"),
    share(
        [
            ("PARTITION BY id WITHIN 60 [ts]", True),
            ("PARTITION BY id, place WITHIN 60 [ts]", False),
            ("PARTITION BY id WITHIN 9 EVENTS", True),
            ("WITHIN 3 [ts]", True),
            ("WITHIN 3 [ts]", False),
            ("WITHIN 9 EVENTS", True),
        ],
        6,
        first=1,
    ),
)
def test_matches_are_the_same_whoever_sorts(
    clauses: str,
    positions: bool,
    most: int,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks_sort_at_most(most, monkeypatch)
    query = _compiled(clauses, order_by="ts", tiebreak="row").with_options(positions=positions)
    events = _events(900)
    frame = _frame(spark, events, tmp_path)
    text = query.explain_plan(frame)
    assert ("sort: by the task" in text) == bool(most)
    assert ("sort: by Spark, because" in text) == (not most)
    found = query.match(frame).toArrow().cast(query.output_schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EventWarning)
        wanted = query.match_table(events)
    assert len(wanted) > 50
    assert texts_of(found.to_batches()) == texts_of(wanted.to_batches())
    assert query.match(frame.limit(0)).toArrow().num_rows == 0
    assert query.match(frame.limit(1)).toArrow().num_rows == 0


def test_spark_sorts_rows_whose_number_nobody_knows(spark: Any, tmp_path: Path) -> None:
    query = _compiled("PARTITION BY id WITHIN 60 [ts]", order_by="ts", tiebreak="row")
    frame = _frame(spark, _events(90), tmp_path)
    assert "sort: by the task" in query.explain_plan(frame)
    more = frame.selectExpr("*", "explode(sequence(1, 3)) AS copy").drop("row")
    more = more.withColumnRenamed("copy", "row")
    text = query.explain_plan(more)
    assert "sort: by Spark, because its plan has 'Generate'" in text
    assert "it is not known how many events a task would get" in text


def test_equal_rows_are_an_error_whether_they_matter_or_not(spark: Any, tmp_path: Path) -> None:
    query = _compiled("PARTITION BY id", order_by="ts")
    names = "type", "id", "place", "value", "ts"

    def frame(name: str, *rows: tuple[Any, ...]) -> Any:
        columns = zip(names, zip(*rows, strict=True), strict=True)
        table = pa.table({key: pa.array(values) for key, values in columns})
        return _frame(spark, table, tmp_path / name, files=1)

    whole = ("A", 1, "p", 2.0, 1), ("X", 1, "p", 2.0, 2), ("B", 1, "p", 2.0, 3)
    ties = ("X", 1, "", 0.0, 1), ("X", 1, "", 0.0, 2), ("A", 1, "", 9.0, 3)
    for number, tie in enumerate(ties):
        rows = frame(f"tie-{number}", *whole, tie)
        assert "sort: by the task" in query.explain_plan(rows)
        with pytest.raises(Exception, match="two events are equal in ts"):
            query.match(rows).toArrow()
    # Neither rows of undeclared types nor those of other partitions are at any place of the order.
    fine = ("Stranger", 1, "", 0.0, 1), ("Stranger", 1, "", 0.0, 1), ("X", 2, "", 0.0, 1)
    found = query.match(frame("fine", *whole, *fine)).toArrow()
    assert [(row["start_pos"], row["end_pos"]) for row in found.to_pylist()] == [(0, 2)]


@pytest.mark.parametrize("type", ["no type", "Stranger"])
def test_a_row_without_a_type_is_told_from_one_that_cannot_matter(type: str) -> None:
    query = _compiled("PARTITION BY id", order_by="ts")
    types = ["A", None, type, "B"]
    rows = {"id": [1] * 4, "place": [""] * 4, "value": [2.0] * 4, "ts": [1, 2, 3, 4]}
    table = pa.table({"type": types, **rows})
    columns = TaskColumns("", "number", "mark", Unsorted(tuple(table.column_names), "type"))
    found = matches_of_task(query.program, columns, (), table.to_batches())
    if type == no_type(query.plan):
        with pytest.raises(EventError, match="column 'type' is NULL in row"):
            list(found)
        return
    with pytest.warns(EventWarning, match="'Stranger'"):
        matches = [row for batch in found for row in batch.to_pylist()]
    assert [(row["start_pos"], row["end_pos"]) for row in matches] == [(0, 2)]


def test_a_mark_of_equal_rows_names_them() -> None:
    query = _compiled("PARTITION BY id", order_by="ts")
    none = {"type": pa.nulls(2, pa.string()), "matters": pa.nulls(2, pa.bool_())}
    table = pa.table({"id": [1, 1], "ts": [5, 5], **none})
    columns = TaskColumns("", "number", "mark", Unsorted(("type", "id", "ts"), "matters"))
    with pytest.raises(EventError, match=r"equal in ts \(ts=5\), and a distributed"):
        list(matches_of_task(query.program, columns, (), table.to_batches()))

"""Events that do not fit the query are refused with their place; all others are read as they are.

Every way in which Arrow can lay out the same values gives the same answer.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest
from celc_runtime import CompiledQuery, EventError, EventWarning
from celc_runtime.plan.schemas import named_type
from celc_runtime.spark.worker.task_columns import EVENTS_ALONE
from celc_runtime.spark.worker.tasks import matches_of_task
from engines import interpreted, only_query

import celc

DECLARATION = """CREATE STREAM S {
  EVENT A { id: INT, name: STRING, value: DOUBLE, ts: LONG },
  EVENT B { id: INT, name: STRING, value: DOUBLE, ts: LONG }
}
"""
MAX_LONG = 2**63 - 1
NAN = float("nan")


def compiled(text: str, declaration: str = DECLARATION, **options: Any) -> CompiledQuery:
    """A query whose generated code runs as plain Python."""
    with interpreted():
        return only_query(celc.compile(declaration + "QUERY q: " + text, **options))


def batch(**columns: Any) -> pa.RecordBatch:
    """Events of type A where nothing else is said; lists become arrays of the declared types."""
    types = {"id": pa.int32(), "value": pa.float64(), "ts": pa.int64()}
    rows = len(next(iter(columns.values())))
    columns = {"type": ["A"] * rows} | columns
    return pa.RecordBatch.from_pydict(
        {
            name: pa.array(values, types.get(name)) if isinstance(values, list) else values
            for name, values in columns.items()
        }
    )


def problem(query: CompiledQuery, *batches: pa.RecordBatch, ties_are_errors: bool = False) -> str:
    """What `match_arrow` says of the events, or a task of Spark."""
    route = partial(_of_task, query) if ties_are_errors else query.match_arrow
    with pytest.raises(EventError) as raised:
        list(route(list(batches)))
    return str(raised.value)


def _of_task(query: CompiledQuery, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return list(matches_of_task(query.program, EVENTS_ALONE, (), batches))


def pairs(query: CompiledQuery, batches: Iterable[pa.RecordBatch]) -> list[tuple[int, int]]:
    """Start and end of each match, sorted."""
    found = [part.select(["start_pos", "end_pos"]) for part in query.match_arrow(batches)]
    return sorted(tuple(row.values()) for part in found for row in part.to_pylist())


# --- columns --------------------------------------------------------------------------------------

BY_VALUE = "SELECT NONE FROM S WHERE A AS x FILTER x.value > 1"


def test_a_missing_column() -> None:
    assert problem(compiled(BY_VALUE), batch(ts=[1])) == (
        "query 'q' reads the column 'value', which is missing; the columns are: 'type', 'ts' "
        "(add it, or rename the column that holds it)"
    )


def test_columns_are_matched_by_case() -> None:
    assert "'value', which is missing; the columns are: 'type', 'VALUE'" in problem(
        compiled(BY_VALUE), batch(VALUE=[1.0])
    )


def test_a_column_given_twice() -> None:
    events = pa.RecordBatch.from_arrays(
        [pa.array(["A"]), pa.array([1.0]), pa.array([2.0])], ["type", "value", "value"]
    )
    assert problem(compiled(BY_VALUE), events) == (
        "query 'q' reads the column 'value', which occurs more than once; the columns are: 'type', "
        "'value', 'value' (drop or rename all but one)"
    )


def test_a_column_given_twice_that_nobody_reads() -> None:
    events = pa.RecordBatch.from_arrays(
        [pa.array(["A"]), pa.array([2.0]), pa.array([1]), pa.array([1])],
        ["type", "value", "id", "id"],
    )
    assert pairs(compiled(BY_VALUE), [events]) == [(0, 0)]


def test_a_missing_order_column() -> None:
    query = compiled(BY_VALUE, order_by="ts")
    assert problem(query, batch(value=[1.0])).startswith("query 'q' reads the column 'ts', which")


def test_a_missing_tiebreak_column() -> None:
    query = compiled(BY_VALUE, order_by="ts", tiebreak="event_id")
    assert "reads the column 'event_id', which is missing" in problem(
        query, batch(value=[1.0], ts=[1])
    )


def test_a_tiebreak_column_without_order() -> None:
    query = compiled(BY_VALUE, order_by="ts", tiebreak="where")
    events = batch(value=[1.0, 2.0], ts=[2, 1], where=pa.array([[1], [2]]))
    said = (
        "query 'q' orders events by the column 'where', but values of the type list<item: int64> "
        "have no order: name a column of numbers, texts or times"
    )
    assert problem(query, events) == said
    with pytest.raises(EventError) as raised:
        query.match_table(pa.Table.from_batches([events]))
    assert str(raised.value) == said


WRONG_TYPES = {
    "a-wider-number": (
        {"id": pa.array([1], pa.int64())},
        "declares 'id' as INT, but the column's type is int64: cast the column to int32, or "
        "declare the attribute as LONG",
    ),
    "an-unsigned-number": (
        {"id": pa.array([1], pa.uint32())},
        "declares 'id' as INT, but the column's type is uint32: cast the column to int32",
    ),
    "a-fraction": (
        {"id": pa.array([1.0])},
        "declares 'id' as INT, but the column's type is double: cast the column to int32, or "
        "declare the attribute as DOUBLE",
    ),
    "a-decimal": (
        {"value": pa.array([Decimal("1.5")])},
        "declares 'value' as DOUBLE, but the column's type is decimal128(2, 1): cast the column to "
        "double, or declare the attribute as DECIMAL(2, 1)",
    ),
    "a-text": (
        {"value": pa.array(["1.5"])},
        "declares 'value' as DOUBLE, but the column's type is string: cast the column to double, "
        "or declare the attribute as STRING",
    ),
    "coded-texts": (
        {"id": pa.array(["1"]).dictionary_encode()},
        "declares 'id' as INT, but the column's type is dictionary<values=string, indices=int32, "
        "ordered=0>: cast the column to int32, or declare the attribute as STRING",
    ),
    "large-coded-texts": (
        {"id": pa.array(["1"], pa.large_string()).dictionary_encode()},
        "declares 'id' as INT, but the column's type is dictionary<values=large_string, "
        "indices=int32, ordered=0>: cast the column to int32",
    ),
    "coded-wider-numbers": (
        {"id": pa.array([1]).dictionary_encode()},
        "declares 'id' as INT, but the column's type is dictionary<values=int64, indices=int32, "
        "ordered=0>: cast the column to int32, or declare the attribute as LONG",
    ),
    "bytes": (
        {"name": pa.array([b"a"])},
        "declares 'name' as STRING, but the column's type is binary: cast the column to string, or "
        "declare the attribute as BINARY",
    ),
    "a-time": (
        {"ts": pa.array([1], pa.timestamp("us"))},
        "declares 'ts' as LONG, but the column's type is timestamp[us]: cast the column to int64, "
        "or declare the attribute as TIMESTAMP_NTZ",
    ),
    "a-count-of-matches": (
        {"value": pa.array([Decimal(2)], pa.decimal128(38, 0))},
        "declares 'value' as DOUBLE, but the column's type is decimal128(38, 0): cast the column "
        "to double, or declare the attribute as DECIMAL(38, 0)",
    ),
    "a-list": (
        {"name": pa.array([["a"]])},
        "declares 'name' as STRING, but the column's type is list<item: string>: give it a column "
        "of the type string, made of this one, or declare the attribute as ARRAY<STRING>",
    ),
    "a-time-of-day": (
        {"value": pa.array([1], pa.time64("us"))},
        "declares 'value' as DOUBLE, but the column's type is time64[us]: give it a column of the "
        "type double, made of this one",
    ),
    "types-as-numbers": (
        {"type": pa.array([1])},
        "declares 'type' as STRING, but the column's type is int64: cast the column to string",
    ),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_column_of_another_type(name: str) -> None:
    columns, said = WRONG_TYPES[name]
    query = compiled("SELECT x FROM S WHERE A AS x")
    good = {"id": [1], "name": pa.array(["a"]), "value": [1.0], "ts": [1]}
    assert problem(query, batch(**(good | columns))) == f"query 'q' {said}"


@pytest.mark.parametrize(
    ("values", "unit", "options", "said"),
    [
        (
            ["2024-01-01 00:00:01"],
            "us",
            {"utc": True},
            "the column's type is string: make times of its texts, with pandas.to_datetime(column, "
            "utc=True), or by a cast to timestamp[us], or declare the attribute as STRING",
        ),
        (
            [1704067201],
            "s",
            {"unit": "s", "utc": True},
            "the column's type is int64: make times of its numbers, with pandas.to_datetime(column"
            ", unit='s', utc=True), or by a cast to timestamp[s], or declare the attribute as LONG",
        ),
    ],
)
def test_times_as_texts_and_numbers(
    values: list[Any], unit: str, options: dict[str, Any], said: str
) -> None:
    """Both ways that the message shows lead to the same times."""
    query = compiled(
        "SELECT x FROM S WHERE A AS x", "CREATE STREAM S { EVENT A { at: TIMESTAMP } }"
    )
    told = f"query 'q' declares 'at' as TIMESTAMP, but {said}"
    assert problem(query, batch(at=pa.array(values))) == told
    by_pandas = pa.array(pd.to_datetime(pd.Series(values), **options).dt.as_unit("us"))
    assert {
        str(query.match_table(pa.table({"type": ["A"], "at": one}))["x"][0][0]["at"].as_py())
        for one in (by_pandas, pa.array(values).cast(pa.timestamp(unit)))
    } == {"2024-01-01 00:00:01+00:00"}


ONE_OF_EACH = """CREATE STREAM S {
  EVENT A { b: BOOLEAN, i: INT, l: LONG, f: FLOAT, d: DOUBLE, s: STRING, t: TIMESTAMP, e: DATE }
}
"""
CONDITIONS = {
    "b": "x.b = TRUE",
    "i": "x.i > 1",
    "l": "x.l > 1",
    "f": "x.f > 1",
    "d": "x.d > 1",
    "s": "x.s > 'b'",
    "t": "x.t > TIMESTAMP '1970-01-01 00:00:01'",
    "e": "x.e > DATE '1970-01-02'",
}
TYPES = {
    "b": pa.bool_(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "d": pa.float64(),
    "s": pa.string(),
    "t": pa.timestamp("us", tz="UTC"),
    "e": pa.date32(),
}
"""The attributes of ONE_OF_EACH; each condition holds of `large` and not of `small` values."""


def column_of(name: str, values: Sequence[bool | None]) -> pa.Array:
    """Large values for True, small ones for False."""
    large: dict[str, tuple[Any, Any]] = {
        "b": (True, False),
        "s": ("c", "a"),
        "t": (2_000_000, 0),
        "e": (3, 0),
    }
    high, low = large.get(name, (2, 0))
    plain = {"t": pa.int64(), "e": pa.int32()}.get(name, TYPES[name])
    chosen = [None if value is None else high if value else low for value in values]
    return pa.array(chosen, plain).cast(TYPES[name])


def hits(name: str, batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The positions at which the attribute's condition holds."""
    query = compiled(f"SELECT x FROM S WHERE A AS x FILTER {CONDITIONS[name]}", ONE_OF_EACH)
    found = [row for part in query.match_arrow(batches) for row in part.to_pylist()]
    for row in found:
        # The value arrives in the output as well.
        assert row["x"][0][name] is not None
    return [row["start_pos"] for row in found]


def others(name: str, rows: int) -> dict[str, pa.Array]:
    """The attributes besides one, all NULL, in columns without a type of their own."""
    return {other: pa.nulls(rows) for other in TYPES if other != name}


def events_of(name: str, column: pa.Array) -> pa.RecordBatch:
    """A batch with one column that has values."""
    return pa.RecordBatch.from_pydict({name: column} | others(name, len(column)))


NARROWER = [
    *(("i", pa.int8()), ("i", pa.int16()), ("i", pa.uint8()), ("i", pa.uint16())),
    *(("l", pa.int8()), ("l", pa.int32()), ("l", pa.uint32())),
    *(("f", pa.float16()), ("f", pa.int8()), ("f", pa.int16())),
    *(("d", pa.float16()), ("d", pa.float32()), ("d", pa.int8()), ("d", pa.int32())),
    *(("s", pa.large_string()), ("s", pa.string_view())),
    *(("t", pa.timestamp(unit, tz="UTC")) for unit in ("s", "ms", "ns")),
    *(("t", pa.timestamp("us", tz=zone)) for zone in ("America/New_York", "+05:30", None)),
    ("t", pa.timestamp("ns")),
    *((name, pa.dictionary(pa.int8(), TYPES[name])) for name in "ilds"),
    ("i", pa.dictionary(pa.int32(), pa.int16())),
    ("s", pa.dictionary(pa.uint64(), pa.large_string())),
    ("s", pa.dictionary(pa.int16(), pa.string_view())),
]


@pytest.mark.parametrize(("name", "arrow_type"), NARROWER, ids=str)
def test_types_that_change_no_value(name: str, arrow_type: pa.DataType) -> None:
    values = [True, None, False, True, False]
    column = column_of(name, values)
    if pa.types.is_dictionary(arrow_type):
        coded = column.cast(arrow_type.value_type).dictionary_encode()
        column = pa.DictionaryArray.from_arrays(
            coded.indices.cast(arrow_type.index_type), coded.dictionary
        )
    elif arrow_type == pa.float16():
        column = pa.array(
            np.array([2, 0, 0, 2, 0], np.float16), mask=np.array([0, 1, 0, 0, 0], bool)
        )
    else:
        column = column.cast(arrow_type)
    assert column.type == arrow_type
    assert hits(name, [events_of(name, column)]) == [0, 3]


@pytest.mark.parametrize("name", TYPES)
def test_columns_of_nothing(name: str) -> None:
    batches = [
        events_of(name, pa.nulls(2)),
        events_of(name, pa.nulls(1, TYPES[name])),
        events_of(name, column_of(name, [True])),
        events_of(name, pa.nulls(1, pa.dictionary(pa.int8(), pa.null()))),
        events_of(name, column_of(name, [None, True])),
    ]
    assert hits(name, batches) == [3, 6]


@pytest.mark.each(4)
@pytest.mark.parametrize("name", TYPES)
def test_slices(name: str) -> None:
    rng = random.Random(5)
    for nulls in (0.0, 0.3):
        values = [None if rng.random() < nulls else rng.random() < 0.5 for _ in range(60)]
        whole = events_of(name, column_of(name, values))
        coded = {"s": whole.column(name).dictionary_encode()}.get(name, whole.column(name))
        expected = [row for row, value in enumerate(values) if value]
        assert hits(name, [whole]) == expected
        for column in (whole.column(name), coded):
            events = events_of(name, column)
            cuts = [0, 1, 2, 9, 9, 16, 25, 33, 60]
            slices = [events.slice(a, b - a) for a, b in pairwise(cuts)]
            assert hits(name, slices) == expected
            for start in (3, 8, 13):
                found = hits(name, [events.slice(start, 20)])
                assert found == [row - start for row in expected if start <= row < start + 20]


@pytest.mark.parametrize("name", TYPES)
def test_no_rows_and_no_batches(name: str) -> None:
    empty = events_of(name, pa.array([], TYPES[name]))
    full = events_of(name, column_of(name, [True, False]))
    assert hits(name, []) == []
    assert hits(name, [empty]) == []
    assert hits(name, [empty, full, empty, empty, full, empty]) == [0, 2]
    query = compiled(f"SELECT x FROM S WHERE A AS x FILTER {CONDITIONS[name]}", ONE_OF_EACH)
    for table in (empty.schema.empty_table(), pa.Table.from_batches([empty])):
        assert query.match_table(table).schema == query.output_schema
        assert len(query.match_table(table)) == 0


@pytest.mark.parametrize("clauses", ["PARTITION BY {0}", "PARTITION BY {0} CONSUME BY ANY", ""])
@pytest.mark.parametrize("name", TYPES)
def test_no_rows_where_every_check_looks(name: str, clauses: str) -> None:
    within = f" WITHIN 1 [{name}]" if name in "ilfd" else ""
    partition, _, consume = clauses.partition(" CONSUME")
    text = f"SELECT NONE FROM S WHERE A ; A {partition.format(name)}{within}"
    query = compiled(text + (consume and " CONSUME" + consume), ONE_OF_EACH, order_by=name)
    empty = events_of(name, pa.array([], TYPES[name]))
    full = events_of(name, column_of(name, [False, False]))
    assert pairs(query, [empty, full, empty]) == [(0, 1)]


# --- dictionaries ---------------------------------------------------------------------------------


def dictionary(
    codes: list[int | None], texts: list[str | None], index: pa.DataType, text: pa.DataType
) -> pa.DictionaryArray:
    """A dictionary-coded column, coded as it is said."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, index), pa.array(texts, text))


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint8(), pa.uint64()], ids=str)
def test_dictionaries(index: pa.DataType, text: pa.DataType) -> None:
    query = compiled("SELECT x FROM S WHERE A AS x FILTER x.name > 'b' OR x.name IS NULL")
    names = [
        dictionary([1, 0, None], ["a", "c"], index, text),  # another dictionary in each batch
        dictionary([0, 1, 1], ["d", "a"], index, text),
        dictionary([2, 1, 3], ["unused", "a", None, "c", None], index, text),
        dictionary([0, 1, 2], ["c", "a", "c"], index, text),  # one text twice
        dictionary([None, None, None], [], index, text),
    ]
    types = [
        dictionary([0, 1, 0], ["A", "B"], index, text),
        dictionary([1, 1, 0], ["B", "A"], index, text),
        dictionary([2, 1, 2], [None, "B", "A", "Z"], index, text),
        dictionary([2, 3, 0], ["A", "B", "A", "B"], index, text),
        dictionary([0, 0, 1], ["A", "B"], index, text),
    ]
    batches = [
        batch(type=t, name=n, id=[1, 2, 3], value=[1.0] * 3, ts=[1, 2, 3])
        for t, n in zip(types, names, strict=True)
    ]
    found = [row for part in query.match_arrow(batches) for row in part.to_pylist()]
    assert [(row["start_pos"], row["x"][0]["name"]) for row in found] == [
        *((0, "c"), (2, None), (3, "d"), (6, None), (8, "c"), (9, "c"), (11, "c")),
        *((12, None), (13, None)),
    ]


def test_matches_across_batches_that_code_texts_differently() -> None:
    query = compiled("SELECT x, y FROM S WHERE (A AS x) ; (B AS y) PARTITION BY name")
    names = [
        pa.array(["k"]),
        pa.array(["k"], pa.large_string()),
        pa.array(["k"]).dictionary_encode(),
        dictionary([0], ["k"], pa.int8(), pa.large_string()),
        pa.array(["k"], pa.string_view()),
    ]
    kinds = ["A", "A", "B", "A", "B"]
    batches = [
        batch(type=[kind], name=name, id=[row], value=[1.0], ts=[row])
        for row, (kind, name) in enumerate(zip(kinds, names, strict=True))
    ]
    found = [row for part in query.match_arrow(batches) for row in part.to_pylist()]
    assert sorted((row["name"], row["y"][0]["id"], row["x"][0]["id"]) for row in found) == [
        *(("k", 2, 0), ("k", 2, 1), ("k", 4, 0), ("k", 4, 1), ("k", 4, 3)),
    ]
    assert all(row["x"][0]["name"] == row["y"][0]["name"] == "k" for row in found)


# --- types of events ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "types",
    [
        pa.array(["A", None]),
        pa.array(["A", None]).dictionary_encode(),
        dictionary([1, 0], [None, "A"], pa.int8(), pa.string()),
        pa.array(["A", None], pa.large_string()),
    ],
    ids=["text", "null-index", "null-in-dictionary", "large-text"],
)
def test_an_event_without_type(types: pa.Array) -> None:
    first = batch(value=[1.0, 2.0, 3.0])
    assert problem(compiled(BY_VALUE), first, batch(type=types, value=[1.0, 2.0])) == (
        "query 'q': column 'type' is NULL in row 4 (counted from 0); every event needs one ("
        "another column of types is named by with_options(type_column=…), --type-column)"
    )


def test_an_event_without_stream() -> None:
    streams = "CREATE STREAM S { EVENT A { v: INT } }\nCREATE STREAM T { EVENT A { v: INT } }\n"
    query = compiled("SELECT NONE FROM S, T WHERE S>A", streams)
    events = pa.RecordBatch.from_pydict({"type": ["A"] * 3, "stream": ["S", "T", None]})
    assert "column 'stream' is NULL in row 2 (counted from 0)" in problem(query, events)


def test_rows_of_undeclared_types_have_no_position() -> None:
    query = compiled("SELECT NONE FROM S WHERE A : A")
    batches = [
        batch(type=["A", "X", "A"]),
        batch(type=["Y", "Y"]),
        batch(type=["B", "A", "X", "X", "A"]),
    ]
    with pytest.warns(EventWarning) as told:
        assert pairs(query, batches) == [(0, 1), (3, 4)]
    assert [str(warning.message) for warning in told] == [
        "query 'q': 5 of the rows have a type that none of its streams declares: 'X' (3), 'Y' (2); "
        "they are not part of the stream"
    ]


def test_undeclared_types_are_named_with_their_numbers_and_what_they_may_stand_for() -> None:
    streams = "CREATE STREAM S { EVENT Login {}, EVENT Logout {} }\n"
    query = compiled("SELECT NONE FROM S WHERE Login", streams)
    plain = pa.array(["login"] * 3 + ["Log in", "Other\n"] + ["Login"] * 2)
    for types in (plain, plain.dictionary_encode()):
        with pytest.warns(EventWarning) as told:
            pairs(query, [batch(type=types), batch(type=types)])
        assert "10 of the rows have a type" in str(told[0].message)
        assert (
            "declares: 'login' (6; did you mean 'Login'?), "
            "'Log in' (2; did you mean 'Login'?), 'Other\\n' (2);"
        ) in str(told[0].message)
    many = [f"type {n:04}" for n in range(3000)] + ["type 0000"]
    with pytest.warns(EventWarning) as told:
        pairs(query, [batch(type=many)])
    said = str(told[0].message)
    assert "3,001 of the rows" in said
    assert said.count("'type ") == 8
    assert "'type 0000' (2), 'type 0001' (1)" in said
    assert "and 2,992 of other types" in said


def test_undeclared_types_are_named_with_their_streams() -> None:
    streams = "CREATE STREAM S { EVENT A { v: INT } }\nCREATE STREAM T { EVENT A { v: INT } }\n"
    query = compiled("SELECT NONE FROM S, T WHERE S>A", streams)
    events = pa.RecordBatch.from_pydict({"type": ["A", "B", "A"], "stream": ["S", "S", "U"]})
    with pytest.warns(EventWarning, match=r"'S>B' \(1; did you mean 'S>A'\?\)"):
        pairs(query, [events])


def test_declared_types_that_a_query_does_not_name_are_no_surprise() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            pairs(compiled("SELECT NONE FROM S WHERE A : A"), [batch(type=["A", "B", "A"])]) == []
        )


def test_row_numbers_count_rows_of_undeclared_types() -> None:
    query = compiled("SELECT NONE FROM S WHERE A", order_by="ts")
    first = batch(type=["A", "X", "A"], ts=[1, None, 2])
    second = batch(type=["X", "A", "X", "A", "A"], ts=[9, 3, 0, None, 4])
    assert "'ts' is NULL in row 6 (counted from 0)" in problem(query, first, second)
    second = batch(type=["X", "A", "X", "A", "A"], ts=[9, 3, 0, 1, 4])
    assert "row 6 (counted from 0) has ts=1 after a larger value" in problem(query, first, second)


# --- order ----------------------------------------------------------------------------------------


def test_null_in_the_order() -> None:
    query = compiled("SELECT NONE FROM S WHERE A", order_by="ts")
    assert problem(query, batch(ts=[1, 2]), batch(ts=[3, None])) == (
        "query 'q': the order column 'ts' is NULL in row 3 (counted from 0): filter such rows out, "
        "or order by another column"
    )


def test_null_in_the_order_of_texts() -> None:
    query = compiled("SELECT NONE FROM S WHERE A", order_by="name")
    for names in (
        pa.array(["a", None]),
        pa.array(["a", None]).dictionary_encode(),
        dictionary([0, 1], ["a", None], pa.int8(), pa.string()),
    ):
        said = problem(query, batch(name=names))
        assert "the order column 'name' is NULL in row 1 (counted from 0)" in said


def test_nan_in_the_order() -> None:
    query = compiled("SELECT NONE FROM S WHERE A", order_by="value")
    assert problem(query, batch(value=[1.0]), batch(value=[2.0, NAN])) == (
        "query 'q': the order column 'value' is NaN in row 2 (counted from 0): filter such rows "
        "out, or order by another column"
    )


def test_unsorted_batches() -> None:
    query = compiled("SELECT NONE FROM S WHERE A ; A", order_by=["ts", "id"])
    said = (
        "query 'q': the events are not in the order of ts, id: row 3 (counted from 0) has {} after "
        "a larger value; sort them first, or use match_table"
    )
    first = batch(ts=[1, 2], id=[1, 5])
    assert problem(query, first, batch(ts=[2, 1], id=[5, 6])) == said.format("ts=1")
    assert problem(query, first, batch(ts=[2, 2], id=[5, 4])) == said.format("id=4")
    second = batch(ts=[1, 3], id=[6, 0])
    assert problem(query, first, second) == said.replace("row 3", "row 2").format("ts=1")
    table = pa.Table.from_batches([batch(ts=[3, 1, 2], id=[1, 2, 3])])
    assert query.match_table(table).num_rows == 3


def test_a_partition_begins_the_order_anew() -> None:
    query = compiled("SELECT NONE FROM S WHERE A ; A PARTITION BY id", order_by="ts")
    assert pairs(query, [batch(id=[1, 1, 2], ts=[5, 6, 1]), batch(id=[2, 3], ts=[2, 0])]) == [
        (0, 1),
        (0, 1),
    ]
    assert "row 3 (counted from 0) has ts=0" in problem(
        query, batch(id=[1, 1, 2], ts=[5, 6, 1]), batch(id=[2, 3], ts=[0, 0])
    )


def test_row_numbers_are_those_of_the_table_that_is_given() -> None:
    query = compiled("SELECT NONE FROM S WHERE A PARTITION BY id", order_by="value")
    for value, what in ((None, "NULL"), (NAN, "NaN")):
        events = batch(type=["A", "X", "A", "A"], id=[2, 1, 2, 1], value=[5.0, 4.0, value, 3.0])
        with pytest.raises(EventError) as raised:
            query.match_table(pa.Table.from_batches([events]))
        assert f"the order column 'value' is {what} in row 2 (counted" in str(raised.value)
    query = compiled("SELECT NONE FROM S WHERE A ; A WITHIN 1 [value]", order_by="ts")
    events = batch(ts=[3, 1, 2], value=[1.0, 2.0, 3.0])
    with pytest.raises(EventError) as raised:
        query.match_table(pa.Table.from_batches([events]))
    assert "'value', which falls in row 0 (counted from 0) to 1.0" in str(raised.value)


def test_tiebreak_columns_sort_null_first_and_nan_last() -> None:
    """NULL is first and NaN is last, whatever the columns' types."""
    ascending: list[pa.Array] = [
        pa.array([None, float("-inf"), -1.0, 0.0, float("inf"), NAN]),
        pa.array([None, False, True]),
        pa.array([None, "", "A", "a", "\uffff", "\U00010000"]),
        pa.array([None, "", "A", "a", "\uffff", "\U00010000"]).dictionary_encode(),
        pa.array([None, -(2**62), -1, 0, 2**62, MAX_LONG]).cast(pa.timestamp("us", tz="UTC")),
        pa.array([None, Decimal("-2.5"), Decimal("0.0"), Decimal("1.5"), Decimal(2), Decimal(3)]),
        pa.array([None, b"", b"\x00", b"\x7f", b"\x80", b"\xff"]),
    ]
    query = compiled("SELECT x[id] FROM S WHERE A AS x", order_by="ts", tiebreak=["other", "id"])
    rng = random.Random(1)
    for column in ascending:
        # What is not told apart by the column would be put into the opposite order by `id`.
        rows = len(column)
        ids = list(range(rows, 0, -1))
        table = pa.Table.from_batches([batch(ts=[1] * rows, id=ids, other=column)])
        for _ in range(6):
            found = query.match_table(table.take(pa.array(rng.sample(range(rows), rows))))
            assert [row[0]["id"] for row in found["x"].to_pylist()] == ids, column
        (whole,) = table.to_batches()
        assert len(pairs(query, [whole.slice(row, 1) for row in range(rows)])) == rows
        assert len(pairs(query, [whole])) == rows
        for row in range(rows - 1):
            backwards = table.take(pa.array([row + 1, row])).combine_chunks()
            for size in (1, 2):
                said = problem(query, *backwards.to_batches(max_chunksize=size))
                assert "not in the order of ts, other, id: row 1 (counted from 0) has" in said
    nothing = batch(ts=[1, 1], id=[1, 2], other=pa.nulls(2))
    assert len(pairs(query, [nothing])) == 2
    assert "row 3 (counted from 0) has id=1" in problem(
        query, nothing, batch(ts=[1, 1], id=[3, 1], other=pa.nulls(2, pa.int64()))
    )


def test_nan_separates_partitions() -> None:
    """NaN is neither less nor more than a number for Arrow, which is no reason to take a table in
    which they alternate for one that is sorted."""
    query = compiled("SELECT NONE FROM S WHERE A ; A PARTITION BY value", order_by="ts")
    events = batch(value=[1.0, NAN, 1.0, -NAN, 0.0, -0.0], ts=[1, 2, 3, 4, 5, 6])
    assert len(query.match_table(pa.Table.from_batches([events]))) == 3
    assert "the partition value=1.0 comes back in row 2" in problem(query, events)
    assert "the partition value=nan comes back in row 2" in problem(
        query, events.slice(1, 2), events.slice(3)
    )


def test_ties() -> None:
    query = compiled("SELECT NONE FROM S WHERE A ; A", order_by=["ts", "id"])
    first, second = batch(ts=[1, 1], id=[1, 2]), batch(ts=[1, 2], id=[2, 2])
    assert problem(query, first, second, ties_are_errors=True) == (
        "query 'q': two events are equal in ts, id (row 2 (counted from 0) and the one before it), "
        "and a distributed table has no order of its own: name a column that tells them apart, as "
        "in with_options(tiebreak=['event_id']) or celc compile --tiebreak event_id; or, if "
        "neither comes before the other and the query asks for no order among them (as SELECT "
        "FIRST, LIMIT and EVENTS do), compile it with ties='simultaneous' (--ties simultaneous). "
        "No column tells rows apart that are equal in all columns: df.dropDuplicates() leaves one "
        "of them"
    )
    assert len(pairs(query, [first, second])) == 6
    tiebroken = query.with_options(tiebreak="value")
    batches = [
        batch(ts=[1, 1], id=[1, 2], value=[0.0, 0.0]),
        batch(ts=[1, 2], id=[2, 2], value=[1.0, 0.0]),
    ]
    assert len(_of_task(tiebroken, batches)) == 2
    assert "equal in ts, id, value" in problem(
        tiebroken, batches[0], batches[0].slice(1), ties_are_errors=True
    )


def test_ties_of_events_in_different_partitions_are_none() -> None:
    query = compiled("SELECT NONE FROM S WHERE A ; A PARTITION BY id", order_by="ts")
    batches = [batch(ts=[1, 2, 2], id=[1, 1, 2]), batch(ts=[2], id=[3])]
    assert len(_of_task(query, batches)) == 1


def test_a_partition_that_comes_back() -> None:
    query = compiled("SELECT NONE FROM S WHERE A ; A PARTITION BY id, name")
    first = batch(id=[1, 1, 2], name=pa.array(["a", "b", None]))
    said = (
        "query 'q': the partition id={}, name={} comes back in row {} (counted from 0) after "
        "others: sort the events by id, name first, or use match_table"
    )
    second = batch(id=[2, 2, 1], name=pa.array([None, "a", "a"]))
    assert problem(query, first, second) == said.format(1, "'a'", 5)
    second = batch(id=[2, 2, 2], name=pa.array([None, "a", None]))
    assert problem(query, first, second) == said.format(2, "NULL", 5)
    assert pairs(query, [first, batch(id=[2], name=pa.array([None], pa.string()))]) == [(0, 1)]


# --- windows --------------------------------------------------------------------------------------

WINDOW = "SELECT NONE FROM S WHERE A ; A WITHIN 5 [{}]"


def test_a_window_attribute_that_falls() -> None:
    query = compiled(WINDOW.format("value"), order_by="ts")
    said = (
        "query 'q': WITHIN is measured on 'value', which falls in row 2 (counted from 0) to 2.5: "
        "order the events by it, or measure on another attribute"
    )
    first = batch(ts=[1, 2], value=[1.0, 3.0])
    assert problem(query, first, batch(ts=[3], value=[2.5])) == said
    assert problem(query, batch(ts=[1, 2, 3], value=[1.0, 3.0, 2.5])) == said
    assert pairs(query, [first, batch(ts=[3], value=[3.0])]) == [(0, 1), (0, 2), (1, 2)]


def test_a_window_attribute_may_fall_between_partitions() -> None:
    query = compiled(
        "SELECT NONE FROM S WHERE A ; A PARTITION BY id WITHIN 5 [value]", order_by="ts"
    )
    batches = [batch(id=[1, 1, 2], ts=[1, 2, 1], value=[7.0, 8.0, 1.0])]
    more = batch(id=[3, 3], ts=[1, 2], value=[0.0, -1.0])
    assert pairs(query, batches) == [(0, 1)]
    assert "falls in row 4 (counted from 0) to -1.0" in problem(query, *batches, more)


def test_a_window_attribute_that_falls_where_partitions_interleave() -> None:
    query = compiled(
        "SELECT NONE FROM S WHERE A ; B PARTITION BY id WITHIN 5 [value] CONSUME BY ANY",
        order_by="ts",
    )
    first = batch(id=[1, 2, 1], ts=[1, 2, 3], value=[5.0, 100.0, 6.0])
    good = batch(type=["A", "B"], id=[2, 1], ts=[4, 5], value=[101.0, 6.0])
    assert pairs(query, [first, good]) == [(0, 2), (1, 2)]
    bad = batch(type=["A", "B", "A"], id=[3, 1, 1], ts=[4, 5, 6], value=[9.0, 7.0, 6.5])
    assert "falls in row 5 (counted from 0) to 6.5" in problem(query, first, bad)
    bad = batch(type=["A", "B"], id=[3, 2], ts=[4, 5], value=[9.0, 99.0])
    assert "falls in row 4 (counted from 0) to 99.0" in problem(query, first, bad)


@pytest.mark.parametrize(("value", "what"), [(None, "NULL"), (NAN, "NaN")])
def test_a_window_attribute_without_value(value: float | None, what: str) -> None:
    query = compiled(WINDOW.format("value"), order_by="ts")
    assert problem(query, batch(ts=[1], value=[1.0]), batch(ts=[2, 3], value=[2.0, value])) == (
        f"query 'q': WITHIN is measured on 'value', which is {what} in row 2 (counted from 0): "
        "filter such rows out, or measure on another attribute"
    )


def test_window_attributes_at_the_ends_of_their_types() -> None:
    query = compiled(WINDOW.format("ts"), order_by="id")
    lowest = -(2**63)
    times = [lowest + 1, lowest + 6, lowest + 7, MAX_LONG - 5, MAX_LONG]
    assert pairs(query, [batch(id=[1, 2, 3, 4, 5], ts=times)]) == [(0, 1), (1, 2), (3, 4)]
    assert "'ts', which is too far from 0 to measure from in row 1 (counted" in problem(
        query, batch(id=[1], ts=[lowest + 1]), batch(id=[2], ts=[lowest])
    )
    query = compiled(WINDOW.format("value"))
    infinite = [float("-inf"), -1e308, 0.0, 5.0, 1e308, float("inf")]
    assert pairs(query, [batch(value=infinite)]) == [(2, 3)]


def test_days_that_no_window_reaches() -> None:
    text = "SELECT NONE FROM S WHERE A ; A WITHIN 2 DAYS [e]"
    query = compiled(text, ONE_OF_EACH, order_by="i")
    last = MAX_LONG // 86_400_000_000

    def days(*values: int) -> pa.RecordBatch:
        columns = others("e", len(values)) | {
            "e": pa.array(values, pa.int32()).cast(pa.date32()),
            "i": pa.array([1] * len(values), pa.int32()),
        }
        return pa.RecordBatch.from_pydict(columns)

    near = days(-last, 2 - last, 3 - last, last - 2, last)
    assert pairs(query, [near]) == [(0, 1), (1, 2), (3, 4)]
    for day in (-last - 1, last + 1, 2**31 - 1, -(2**31)):
        said = problem(query, days(-last), days(day))
        assert "'e', which is too far from 0 to measure from in row 1 (counted from 0)" in said


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            pa.array([1000, 1001], pa.timestamp("ns")),
            "row 3 (counted from 0) has 1970-01-01 00:00:00.000001001",
        ),
        (
            pa.array([0, 2**62], pa.timestamp("s", tz="UTC")),
            "row 3 (counted from 0) has 4611686018427387904 (timestamp[s, tz=UTC])",
        ),
    ],
    ids=["nanoseconds", "far-seconds"],
)
def test_times_that_do_not_fit(times: pa.Array, said: str) -> None:
    query = compiled(f"SELECT NONE FROM S WHERE A AS x FILTER {CONDITIONS['t']}", ONE_OF_EACH)
    assert problem(query, events_of("t", column_of("t", [True, False])), events_of("t", times)) == (
        "query 'q' declares 't' as TIMESTAMP, which counts whole microseconds in 64 bits, but "
        f"{said}: round or filter such times"
    )


def test_times_beyond_the_years_of_python() -> None:
    query = compiled(
        "SELECT x FROM S WHERE A AS x ; A PARTITION BY e, t", ONE_OF_EACH, order_by="t"
    )
    days = [-(2**31), -(2**31), 2**31 - 1, 2**31 - 1, 2**31 - 1]
    times = [-(2**63), -(2**63), 2**62, 2**62, MAX_LONG]

    def events(*rows: int) -> pa.RecordBatch:
        columns = {
            "e": pa.array([days[row] for row in rows], pa.int32()).cast(pa.date32()),
            "t": pa.array([times[row] for row in rows]).cast(pa.timestamp("us", tz="UTC")),
        }
        nothing = {name: pa.nulls(len(rows)) for name in TYPES if name not in columns}
        return pa.RecordBatch.from_pydict(columns | nothing)

    found = list(query.match_arrow([events(0, 1), events(2), events(3, 4)]))
    assert [part["t"].cast(pa.int64()).to_pylist() for part in found] == [[-(2**63)], [2**62]]
    shuffled = query.match_table(pa.Table.from_batches([events(4, 0, 3, 1, 2)]))
    assert shuffled["start_time"].cast(pa.int64()).to_pylist() == [-(2**63), 2**62]
    assert problem(query, events(0, 4, 1)) == (
        "query 'q': the partition e=-2147483648 (date32[day]), t=-9223372036854775808 "
        "(timestamp[us, tz=UTC]) comes back in row 2 (counted from 0) after others: sort the "
        "events by e, t first, or use match_table"
    )
    unpartitioned = compiled("SELECT NONE FROM S WHERE A", ONE_OF_EACH, order_by="t")
    assert "has t=-9223372036854775808 (timestamp" in problem(unpartitioned, events(3, 0))


# --- partitions -----------------------------------------------------------------------------------

KEYS: dict[str, list[Any]] = {
    "b": [True, False, None],
    "i": [0, 1, -1, 2**31 - 1, -(2**31), None],
    "l": [0, 1, -1, MAX_LONG, -(2**63), None],
    "f": [0.0, -0.0, NAN, -NAN, 1.5, float("inf"), None],
    "d": [0.0, -0.0, NAN, -NAN, 1.5, float("-inf"), None],
    "s": ["", "a", "A", "é", "e\u0301", "a\x00", "😀", None],
    "t": [0, -1, 2**62, -(2**62), MAX_LONG, None],
    "e": [0, -1, 2_932_896, -719_162, None],
}


def keyed(name: str, rng: random.Random) -> tuple[pa.Table, list[Any]]:
    """A table of 80 events in the order of `seq`, with an attribute `k`, and its keys in order."""
    plain = {"t": pa.int64(), "e": pa.int32()}.get(name, TYPES[name])
    keys = [rng.choice(KEYS[name]) for _ in range(80)]
    column = pa.array(keys, plain, from_pandas=False).cast(TYPES[name])
    return pa.table({"k": column, "seq": pa.array(range(80), pa.int64())}), keys


def declared(name: str) -> str:
    """The type of an attribute of ONE_OF_EACH; Spark SQL knows it by the same name."""
    kind = named_type(TYPES[name])
    assert kind is not None
    return kind


def partition_query(name: str, consume: str = "") -> CompiledQuery:
    """Events next to each other in a partition by an attribute k of the type."""
    return compiled(
        f"SELECT x[seq] FROM S WHERE (A AS x) : (A AS x) PARTITION BY k {consume}",
        f"CREATE STREAM S {{ EVENT A {{ k: {declared(name)}, seq: LONG }} }}\n",
        order_by="seq",
    )


def normal(key: Any) -> Any:
    """A key as Python compares keys."""
    if isinstance(key, float):
        return "NaN" if key != key else key + 0.0
    return key


def neighbours(keys: list[Any]) -> set[tuple[Any, int, int]]:
    """The pairs of events that are next to each other in one partition, with its key."""
    parts: defaultdict[Any, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        parts[normal(key)].append(row)
    return {(key, a, b) for key, rows in parts.items() for a, b in pairwise(rows)}


def found_neighbours(table: pa.Table) -> set[tuple[Any, int, int]]:
    keys = table["k"]
    if pa.types.is_temporal(keys.type):
        keys = keys.cast(pa.int64() if pa.types.is_timestamp(keys.type) else pa.int32())
    found = [tuple(event["seq"] for event in events) for events in table["x"].to_pylist()]
    result = {(normal(k), *pair) for k, pair in zip(keys.to_pylist(), found, strict=True)}
    assert len(result) == len(table)
    return result


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_meet(name: str) -> None:
    table, keys = keyed(name, random.Random(3))
    expected = neighbours(keys)
    assert len(expected) > 60
    assert found_neighbours(partition_query(name).match_table(table)) == expected
    # Where partitions interleave, the events come in one order, here in small batches.
    query = partition_query(name, "CONSUME BY ANY")
    rows = len(query.match_table(table))
    assert rows > 0
    for size in (7, 80):
        batches = table.to_batches(max_chunksize=size)
        if name == "s":
            batches = [
                pa.RecordBatch.from_arrays([b["k"].dictionary_encode(), b["seq"]], ["k", "seq"])
                for b in batches
            ]
        assert sum(len(found) for found in query.match_arrow(batches)) == rows


# --- Spark ----------------------------------------------------------------------------------------


@pytest.fixture
def settings(spark: Any) -> Iterator[Callable[[str, str], None]]:
    """A function that changes a setting of the session until the test ends."""
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.parametrize("names", [["b", "f", "s", "e"], ["d", "l", "i", "t"]], ids="".join)
def test_equal_keys_meet_in_spark(
    names: list[str], spark: Any, settings: Callable[[str, str], None]
) -> None:
    # More Spark partitions than there are keys in some of them: these are empty.
    settings("spark.sql.shuffle.partitions", "6")
    settings("spark.sql.adaptive.enabled", "false")
    union = None
    expected = {}
    for name in names:
        table, keys = keyed(name, random.Random(4))
        expected[name] = neighbours(keys)
        found = spark.createDataFrame(table).selectExpr(
            *(
                f"CAST({'k' if name == other else 'NULL'} AS {declared(other)}) AS {other}"
                for other in names
            ),
            f"'{name}' AS n",
            "seq",
        )
        union = found if union is None else union.unionAll(found)
    assert union is not None
    columns = ", ".join(f"{name}: {declared(name)}" for name in names)
    query = compiled(
        f"SELECT x[seq] FROM S WHERE (A AS x) : (A AS x) PARTITION BY n, {', '.join(names)}",
        f"CREATE STREAM S {{ EVENT A {{ n: STRING, {columns}, seq: LONG }} }}\n",
        order_by="seq",
    )
    answer = query.match(union).toArrow()
    for name in names:
        rows = answer.filter(pa.compute.equal(answer["n"], name))
        assert (
            found_neighbours(rows.select([name, "x"]).rename_columns(["k", "x"])) == expected[name]
        )


def test_ties_in_spark(spark: Any) -> None:
    query = compiled("SELECT NONE FROM S WHERE A ; A", order_by=["ts", "id"])
    events = spark.createDataFrame(
        pa.table({"type": ["A", "A"], "id": pa.array([1, 1], pa.int32()), "ts": [5, 5]})
    )
    with pytest.raises(Exception, match=r"two events are equal in ts, id .*tiebreak=") as raised:
        query.match(events).collect()
    assert "EventError" in str(raised.value)
    assert (
        query.with_options(tiebreak="n")
        .match(events.selectExpr("*", "monotonically_increasing_id() AS n"))
        .count()
        == 1
    )


def test_the_time_zone_of_the_session_changes_no_instant(
    spark: Any, settings: Callable[[str, str], None]
) -> None:
    query = compiled(
        "SELECT x[t] FROM S WHERE (A AS x) ; (A AS x) "
        "FILTER x.t >= TIMESTAMP '2024-03-10 06:30:00' WITHIN 1 HOUR [t]",
        "CREATE STREAM S { EVENT A { t: TIMESTAMP } }\n",
    )
    # The clocks of New York go from 02:00 to 03:00 at 07:00 UTC, and back on 3 November.
    first = 1_710_050_400_000_000
    half = 1_800_000_000
    instants = [first + k * half for k in range(6)] + [
        1_730_613_600_000_000 + k * half for k in range(4)
    ]
    table = pa.table({"t": pa.array(instants).cast(pa.timestamp("us", tz="UTC"))})
    expected = query.match_table(table)
    assert len(expected) > 8
    settings("spark.sql.session.timeZone", "America/New_York")
    events = spark.createDataFrame(table).cache()
    found = query.match(events).toArrow()
    events.unpersist()
    for name in ("start_time", "end_time"):
        assert sorted(found[name].cast(pa.int64()).to_pylist()) == sorted(
            expected[name].cast(pa.int64()).to_pylist()
        )


KILLED_ONCE = """
import json, os, signal, sys
import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
import celc

marker = sys.argv[1]
matcher = celc.compile(
    "CREATE STREAM S { EVENT A { k: INT, seq: LONG } }\\n"
    "SELECT x[seq] WHERE (A AS x) ; (A AS x) PARTITION BY k WITHIN 3 EVENTS",
    order_by="seq",
)
(query,) = matcher.queries.values()
table = pa.table({"k": pa.array([row % 5 for row in range(400)], pa.int32()), "seq": range(400)})
spark = (
    SparkSession.builder.master("local[2,4]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.adaptive.enabled", "false")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
match = query.match_arrow


def dying(batches):
    def until_the_third():
        for number, batch in enumerate(batches):
            if number == 3:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
            yield batch

    return match(until_the_third())


events = spark.createDataFrame(table).repartition("k").sortWithinPartitions("k", "seq")
found = events.mapInArrow(dying, query.output_ddl).toArrow()
spark.stop()
print(json.dumps([sorted(map(str, t.to_pylist())) for t in (found, query.match_table(table))]))
"""


@pytest.mark.long
def test_a_worker_that_is_killed_is_retried(spark: Any, tmp_path: Path) -> None:
    assert spark.version  # Java has been found
    script = tmp_path / "killed.py"
    script.write_text(KILLED_ONCE)
    marker = tmp_path / "marker"
    done = subprocess.run(
        [sys.executable, str(script), str(marker)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "NUMBA_DISABLE_JIT": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert marker.exists()
    assert "Lost task" in done.stderr
    found, expected = json.loads(done.stdout.splitlines()[-1])
    assert found == expected
    assert len(found) > 500


@pytest.mark.parametrize(
    ("starts", "ends", "told"),
    [
        ([1, 3], [2, 2], r"row 1 .* starts after its end: 'start' is 3, and 'ts' is 2"),
        ([1, None], [2, 3], r"the start of events, 'start', is NULL in row 1"),
        ([1, 1], [2, None], r"the order column 'ts' is NULL in row 1"),
        ([1, 1], [3, 2], r"not in the order of ts: row 1"),
    ],
)
def test_an_event_that_lasts_starts_before_it_ends(
    starts: list[int | None], ends: list[int | None], told: str
) -> None:
    declared = DECLARATION.replace("S {", "S LASTING [start, ts] {").replace(
        "ts: LONG", "start: LONG, ts: LONG"
    )
    events = batch(start=pa.array(starts, pa.int64()), ts=ends)
    for joint in (";", "; FIRST"):
        query = compiled(f"SELECT NONE FROM S WHERE A {joint} B", declared)
        with pytest.raises(EventError, match=told):
            list(query.match_arrow([events]))

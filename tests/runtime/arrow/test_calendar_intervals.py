"""Columns of DuckDB's INTERVALs, which Arrow has as months, days and nanoseconds."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import EventError
from celc_runtime.arrow.calendar_intervals import (
    CALENDAR_INTERVAL,
    first_without_length,
    with_lengths,
)
from engines import interpreted

import celc

_DAY = 86_400_000_000
_LONG = """\
CREATE STREAM S { EVENT A { id: LONG, took: INTERVAL } }
SELECT x.took AS took, SUM(x.took) AS total FROM S WHERE A AS x FILTER x.took > 1 HOUR
"""


def _column(values: list[tuple[int, int, int] | None]) -> pa.Array:
    return pa.array([None if one is None else pa.MonthDayNano(one) for one in values])


def _micros(column: pa.Array) -> list[int | None]:
    found: list[int | None] = column.cast(pa.int64()).to_pylist()
    return found


def test_days_and_what_is_shorter_are_a_length() -> None:
    values = [(0, 1, 7_200_000_000_000), None, (0, -1, 1_000), (0, 0, -5_000)]
    assert _micros(with_lengths(_column(values))) == [_DAY + 7_200_000_000, None, 1 - _DAY, -5]
    assert with_lengths(_column(values)[1:3]).type == pa.duration("us")
    assert _micros(with_lengths(_column(values)[2:])) == [1 - _DAY, -5]
    assert with_lengths(pa.nulls(3, CALENDAR_INTERVAL)).null_count == 3
    assert len(with_lengths(_column([(0, 1, 0)])[:0])) == 0


@pytest.mark.parametrize(
    "wrong", [(1, 0, 0), (-1, 30, 0), (0, 0, 1), (0, 2**31 - 1, 0), (0, -(2**31), 0)]
)
def test_a_value_without_a_length_leaves_the_column_as_it_is(wrong: tuple[int, int, int]) -> None:
    column = _column([(0, 1, 0), None, wrong, (0, 1, 0)])
    assert with_lengths(column) is column
    assert first_without_length(column) == 2
    assert first_without_length(column[1:]) == 1
    chunked = pa.chunked_array([column[:2], column[2:]])
    assert with_lengths(chunked) is chunked
    assert with_lengths(pa.chunked_array([column[:2], column[3:]])).type == pa.duration("us")


def test_lengths_are_exact_up_to_64_bits() -> None:
    rng = random.Random(3)
    for _ in range(2000):
        total = rng.choice((2**63 - 1, -(2**63))) + rng.choice((-1, 0, 1, -_DAY, _DAY))
        days = total // _DAY + rng.randint(-2, 2)
        rest = total - days * _DAY
        column = _column([(0, days, 1000 * rest)])
        fits = -(2**63) <= total < 2**63
        found = with_lengths(column)
        assert (found.type == pa.duration("us")) == fits, (days, rest)
        if fits:
            assert np.asarray(found.cast(pa.int64()))[0] == total


def _tables() -> dict[str, Any]:
    took = [(0, 0, 7_200_000_000_000), (0, 1, 0), None, (0, 0, 1_000)]
    table = pa.table({"id": [1, 2, 3, 4], "took": _column(took)})
    chunks = pa.concat_tables([table[:1], table[1:]])
    return {"table": table, "chunks": chunks, "batches": chunks.to_batches()}


@pytest.mark.parametrize("name", ["table", "chunks", "batches", "relation"])
def test_a_query_reads_them_as_intervals(name: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    with interpreted():
        query = celc.compile(_LONG)
    table = _tables()["table"]
    events = duckdb.from_arrow(table) if name == "relation" else _tables()[name]
    wanted = [timedelta(hours=2), timedelta(days=1)]
    assert query.match_table(events).column("took").to_pylist() == wanted
    assert query.with_options(order_by="id").match_table(events).num_rows == 2
    ordered = query.with_options(order_by="took").match_table(_tables()["table"].take([1, 0]))
    assert ordered.column("took").to_pylist() == wanted


def test_months_are_refused_by_their_row() -> None:
    with interpreted():
        query = celc.compile(_LONG)
    table = pa.table({"id": [1, 2], "took": _column([(0, 1, 0), (14, 0, 0)])})
    for events in (table, pa.concat_tables([table[:1], table[1:]]), table.to_batches()):
        with pytest.raises(EventError, match=r"but row 1 .* has 14 months, 0 days .* no length"):
            query.match_table(events)
    with pytest.raises(EventError, match="has 14 months"):
        query.with_options(order_by="took").match_table(table.take([1, 0]))
    # A column that no query reads may have them.
    shorter = celc.compile("CREATE STREAM S { EVENT A { id: LONG } } SELECT * FROM S WHERE A AS x")
    assert shorter.match_table(table).num_rows == 2


def test_a_declaration_is_read_off_them() -> None:
    assert "took: INTERVAL" in celc.declare(_tables()["table"])

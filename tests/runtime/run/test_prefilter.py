"""Rows that cannot matter leave a large table before it is sorted: the same answers."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.arrow.events import digits
from celc_runtime.plan.errors import EventError, WorkLimitError
from celc_runtime.rules import any_query
from celc_runtime.run import parts, prefilter
from engines import interpreted, only_query

import celc

_COLUMNS = "k: LONG, t: STRING, ts: LONG, id: LONG, v: DOUBLE"
_DECLARED = "CREATE STREAM S { " + ", ".join(f"EVENT {x} {{ {_COLUMNS} }}" for x in "ABCDEFGH")
_WINDOW = "WITHIN 90 [ts]"
_BY_KEY = f"PARTITION BY k {_WINDOW}"
_TEXTS = {
    "a key": f"SELECT a.v AS one, a, b WHERE A AS a ; B AS b {_BY_KEY}",
    "a text as the key": f"SELECT * WHERE A ; B PARTITION BY t {_WINDOW}",
    "two keys": f"SELECT * WHERE A ; B PARTITION BY k, t {_WINDOW}",
    "no key": f"SELECT * WHERE (A AS a ; B AS b) FILTER a.v > 0.9 AND b.v < 0.1 {_WINDOW}",
    "absence": f"SELECT a, b WHERE A AS a ; !C ; B AS b {_BY_KEY}",
    "a condition between": f"SELECT * WHERE (A AS a ; B AS b) FILTER b.v > a.v {_BY_KEY}",
    "first": f"SELECT * WHERE A AS a ; FIRST (B AS b) {_BY_KEY}",
    "consumed": f"SELECT * WHERE A AS a ; B AS b {_BY_KEY} CONSUME BY PARTITION",
    "totals": f"SELECT TOTAL COUNT(*) AS n WHERE A AS a ; B AS b {_BY_KEY} PER PARTITION",
    "an absence at the end": f"SELECT * WHERE A AS a ; !B FOR 20 [ts] {_BY_KEY}",
    "an absence at the start": "SELECT * WHERE !A FOR 20 [ts] ; A AS a",
    "a window inside": f"SELECT * WHERE A AS a ; !(WITHIN[4 [ts]](B ; C)) ; D AS d {_BY_KEY}",
}
_WRONG = (
    *("unsorted", "unsorted at the end", "equal rows", "undeclared", "NULL in k"),
    *("too far from 0", "NULL in all keys", "NULL in ts", "NULL in id", "NULL in type"),
)
_READS_ALL = {
    "neighbours": f"SELECT * WHERE A : B {_BY_KEY}",
    "a window of events": "SELECT * WHERE A ; B PARTITION BY k WITHIN 9 EVENTS",
    "a window of another column": f"SELECT * WHERE A ; !(WITHIN[4 [id]](B ; C)) ; D {_BY_KEY}",
}


def _query(text: str, at_end: str = "closed") -> CompiledQuery:
    with interpreted():
        return only_query(
            celc.compile(f"{_DECLARED} }}\n{text}", order_by="ts", tiebreak="id", at_end=at_end)
        )


def _table(rows: int = 3_000, keys: int = 9) -> pa.Table:
    rng = np.random.default_rng(rows + keys)
    return pa.table(
        {
            "type": rng.choice([*"ABCDEFGH"], rows),
            "k": rng.integers(-4, keys - 4, rows),
            "t": rng.choice([f"key {n}" for n in range(keys)], rows),
            "ts": np.cumsum(rng.integers(0, 3, rows)),
            "id": np.arange(rows),
            "v": rng.random(rows),
        }
    )


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """Tables of any size are prefiltered; (rows before, rows after; None: all are read) of each."""
    found: list[tuple[int, int | None]] = []

    def prefiltered(program: Any, table: pa.Table, workers: Any) -> Any:
        answer = prefilter.prefiltered(program, table, workers)
        found.append((len(table), None if answer is None else answer.size))
        return answer

    monkeypatch.setattr(any_query, "MOST_ROWS_READ", 0)
    monkeypatch.setattr(any_query, "LEAST_ROWS", 1)
    monkeypatch.setattr(any_query, "TINY", 0)  # pieces stay
    monkeypatch.setattr(prefilter, "_ROWS_OF_A_THREAD", 1)
    monkeypatch.setattr(any_query, "prefiltered", prefiltered)
    return found


def _whole(query: CompiledQuery, table: pa.Table) -> pa.Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_query, "LEAST_ROWS", 1 << 62)
        return query.match_table(table)


@pytest.mark.parametrize("name", _TEXTS)
@pytest.mark.parametrize(("threads", "pieces"), [(1, 1), (1, 4), (3, 1), (3, 7)])
def test_the_answer_is_that_of_all_rows(
    name: str, threads: int, pieces: int, looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (digits, "_ROWS_OF_A_SLICE"), (parts, "LEAST_ROWS"):
        monkeypatch.setattr(*place, 50)
    for share in ("_MOST_KEPT", "_MOST_KEPT_TO_REMEMBER"):
        monkeypatch.setattr(prefilter, share, 0.6)
    query, table = _query(_TEXTS[name]), _table()
    cuts = np.linspace(0, len(table), pieces + 1, dtype=int)
    some = [table.slice(first, end - first) for first, end in pairwise([0, *cuts.tolist()])]
    found = query.match_table(pa.concat_tables(some), threads=threads)
    assert found.equals(_whole(query, table))
    assert len(found)
    ((rows, kept),) = looked
    assert rows == len(table)
    assert kept is not None
    assert kept < 0.6 * rows


@pytest.mark.parametrize("threads", [1, 3])
def test_the_last_row_tells_which_matches_are_decided(
    threads: int, looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it is left out, and of a key of which no other row stays."""
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    query, table = _query(_TEXTS["an absence at the end"], at_end="open"), _table()
    last = {"type": "H", "k": 4, "t": "", "ts": table["ts"][-1].as_py() + 10, "id": 3_000, "v": 0.5}
    table = pa.concat_tables([table, pa.Table.from_pylist([last], table.schema)])
    told = []
    for least in (1, 1 << 62):
        monkeypatch.setattr(any_query, "LEAST_ROWS", least)
        with pytest.warns(UserWarning, match="undecided") as caught:
            found = query.match_table(table, threads=threads)
        told.append((found.to_pylist(), [str(one.message) for one in caught]))
    ((_, kept),) = looked
    assert kept is not None
    assert told[0] == told[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_clock_that_is_given_decides(
    threads: int, looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not the time of the last row."""
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    table = _table()
    clock = table["ts"][2_000].as_py()
    query = _query(_TEXTS["an absence at the end"], at_end="open").with_options(clock=clock)
    told = []
    for least in (1, 1 << 62):
        monkeypatch.setattr(any_query, "LEAST_ROWS", least)
        with pytest.warns(UserWarning, match="undecided") as caught:
            found = query.match_table(table, threads=threads)
        told.append((found.to_pylist(), [str(one.message) for one in caught]))
    assert told[0] == told[1]
    ((_, kept),) = looked
    assert kept is not None


def _coded(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Texts in pieces, each with codes of its own, and with texts that it does not have."""
    pieces = []
    for first in range(0, len(column), 900):
        texts = column.slice(first, 900).combine_chunks()
        if pa.types.is_dictionary(type):
            known = pa.concat_arrays([pa.array(["ZZ"]), texts[::-1]]).dictionary_encode()
            texts = known.slice(1)[::-1].cast(type)
        pieces.append(texts.cast(type))
    return pa.chunked_array(pieces)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "type",
    [
        *(pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())),
        *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int16(), pa.large_string())),
    ],
    ids=str,
)
@pytest.mark.parametrize("key", ["k", "t", "k, t"])
def test_texts_may_have_any_form(
    key: str, type: pa.DataType, threads: int, looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    query, table = _query(f"SELECT * WHERE A ; B PARTITION BY {key} {_WINDOW}"), _table()
    wanted = _whole(query, table)
    for name in ("type", "t"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, _coded(table.column(name), type))
    assert query.match_table(table, threads=threads).equals(wanted)
    assert len(wanted)
    ((_, kept),) = looked
    assert kept is not None


_BAD_CODES = {
    "NULL as a type": ("type", [*"ABCDEFG", None]),
    "an undeclared type": ("type", [*"ABCDEFG", "X"]),
    "NULL as a key": ("t", [*(f"key {n}" for n in range(7)), None]),
}


@pytest.mark.parametrize("name", _BAD_CODES)
def test_codes_that_stand_for_nothing(name: str, looked: list[Any]) -> None:
    query, table = _query(_TEXTS["a text as the key"]), _table()
    column, texts = _BAD_CODES[name]
    codes = np.random.default_rng(1).integers(0, len(texts), len(table))
    bad = pa.DictionaryArray.from_arrays(codes, pa.array(texts))
    table = table.set_column(table.column_names.index(column), column, bad)
    found = _told(query, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_query, "LEAST_ROWS", 1 << 62)
        assert _told(query, table) == found
    assert looked == [(len(table), None)]


@pytest.mark.parametrize("code", [10**7, -(10**7)])
@pytest.mark.parametrize("name", ["t", "type"])
def test_codes_outside_of_their_dictionary(name: str, code: int, looked: list[Any]) -> None:
    """Arrow makes such columns without a look, as from a damaged file. No memory is read or written
    at their places: the error is that of all tables."""
    query, table = _query(_TEXTS["a text as the key"]), _table()
    codes = np.arange(len(table)) % 5
    codes[1_000] = code
    bad = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), [*"ABCDE"], safe=False)
    table = table.set_column(table.column_names.index(name), name, bad)
    with pytest.raises(pa.ArrowIndexError):
        query.match_table(table)
    assert looked in ([], [(len(table), None)])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["a key", "no key", "a condition between"])
def test_compact_answers_are_those_of_all_rows(
    name: str, threads: int, looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LEAST_ROWS", 50)
    query, table = _query(_TEXTS[name]), _table()
    found = query.match_compact(table, threads=threads)
    ((_, kept),) = looked
    assert kept is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_query, "LEAST_ROWS", 1 << 62)
        assert found.equals(query.match_compact(table))
    assert len(found)


@pytest.mark.parametrize("name", _READS_ALL)
def test_queries_that_read_all_rows(name: str, looked: list[Any]) -> None:
    query, table = _query(_READS_ALL[name]), _table()
    assert query.match_table(table).equals(_whole(query, table))
    assert not looked


def _told(query: CompiledQuery, table: pa.Table) -> tuple[str, list[str]]:
    """(the rows or the error, the warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = repr(query.match_table(table).to_pylist())
        except EventError as problem:
            found = str(problem)
    return found, [str(one.message) for one in caught]


def _wrong(name: str) -> pa.Table:
    """A table in which one row is wrong, whose type no query asks for."""
    table = _table()
    columns = {one: table.column(one).to_pylist() for one in table.column_names}
    row = columns["type"].index("H", 1500)
    if name == "unsorted":
        columns["ts"][row] += 10**6
    elif name == "unsorted at the end":
        columns["ts"][-1] = 0
    elif name == "too far from 0":
        columns["type"][0], columns["ts"][0] = "H", -(2**63)
    elif name == "equal rows":
        for values in columns.values():
            values.insert(row, values[row])
    elif name == "undeclared":
        columns["type"][row] = "X"
    elif name == "NULL in all keys":
        columns["k"] = [None] * len(table)
    else:
        columns[name.removeprefix("NULL in ")][row] = None
    types = {one: table.schema.field(one).type for one in table.column_names}
    return pa.table({one: pa.array(values, types[one]) for one, values in columns.items()})


@pytest.mark.parametrize("name", _WRONG)
def test_tables_that_are_wrong_or_unsorted_are_read_whole(name: str, looked: list[Any]) -> None:
    query, table = _query(_TEXTS["a key"]), _wrong(name)
    found = _told(query, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(any_query, "LEAST_ROWS", 1 << 62)
        assert _told(query, table) == found
    assert looked == [(len(table), None)]


def test_keys_that_are_far_apart_are_not_counted(looked: list[Any]) -> None:
    query, table = _query(_TEXTS["a key"]), _table()
    far = _table().column("k").to_numpy() * 10**6
    table = table.set_column(table.column_names.index("k"), "k", pa.array(far))
    assert query.match_table(table).equals(_whole(query, table))
    assert looked == [(len(table), None)]


def test_a_key_of_half_of_the_rows_that_stay_is_cut(
    looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts have fewer rows where others have left: each of them can have matches."""
    monkeypatch.setattr(parts, "LEAST_ROWS", 300)
    cut: list[list[int]] = []

    def answer_of_parts(program: Any, rows: Any, some: list[parts.Part], *more: Any) -> Any:
        cut.append([part.later - part.start for part in some])
        return parts.answer_of_parts(program, rows, some, *more)

    monkeypatch.setattr(any_query, "answer_of_parts", answer_of_parts)
    query, table = _query(_TEXTS["a key"]), _table(keys=40)
    keys = np.where(np.arange(len(table)) % 2, 0, table.column("k").to_numpy())
    table = table.set_column(table.column_names.index("k"), "k", pa.array(keys))
    found = query.match_table(table, threads=2)
    ((_, kept),) = looked
    assert kept is not None
    (sizes,) = cut
    assert max(sizes) < kept / 4
    assert found.equals(_whole(query, table))


def test_a_message_names_the_row_as_it_was_given(
    looked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the greatest time of all rows is looked for before, in rows that are sorted."""
    monkeypatch.setattr(any_query, "NOTED_ROWS", 1)
    query = _query(_TEXTS["an absence at the end"], at_end="open")
    with pytest.raises(EventError, match="column 'type' is NULL") as caught:
        query.match_table(_wrong("NULL in type"))
    row = _wrong("NULL in type").column("type").to_pylist().index(None)
    assert f"row {row:,} (counted from 0)" in str(caught.value)
    assert looked[0][1] is None


def test_what_does_not_pay_is_looked_for_once(looked: list[Any]) -> None:
    query, table = _query(_TEXTS["a key"]), _table()
    everything = table.filter(pa.array([one in "ABC" for one in table.column("type").to_pylist()]))
    for _ in range(2):
        assert query.match_table(everything).equals(_whole(query, everything))
    assert looked == [(len(everything), None)] * 2
    assert query.program.kept["share"] > 0.5


def test_a_table_of_another_kind_is_looked_at_soon(looked: list[Any]) -> None:
    """One of which too many rows matter stops only the next calls from looking."""
    query, table = _query(_TEXTS["a key"]), _table()
    everything = table.filter(pa.array([one in "ABC" for one in table.column("type").to_pylist()]))
    query.match_table(everything)
    answers = [query.match_table(table) for _ in range(18)]
    assert all(answer.equals(_whole(query, table)) for answer in answers)
    found = [kept for _, kept in looked[1:]]
    assert found[:15] == [None] * 15
    assert None not in found[15:]


def test_a_message_names_the_position_in_the_whole_table(looked: list[Any]) -> None:
    query = _query(f"SELECT * WHERE (A AS a ; (B AS b)+) FILTER a.v > LAST(b.v) {_BY_KEY}")
    query, table = query.with_options(max_work=200), _table(keys=1)
    told = []
    for least in (1, 1 << 62):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(any_query, "LEAST_ROWS", least)
            with pytest.raises(WorkLimitError, match="that end at position") as caught:
                query.match_table(table)
            told.append(str(caught.value))
    assert told[0] == told[1]
    assert looked[0][1] is not None

"""Tables in small pieces are joined, where that can be."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow import pieces
from celc_runtime.arrow.pieces import joined
from engines import interpreted, only_query

import celc


def _cut(table: pa.Table, *cuts: int) -> pa.Table:
    return pa.concat_tables([table[first:end] for first, end in pairwise([0, *cuts, len(table)])])


def test_small_pieces_are_joined_and_large_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": range(100), "text": [*map(str, range(100))], "list": [[1]] * 100})
    cut = _cut(table, 10, 10, 60)
    found = joined(cut)
    assert found.equals(table)
    assert [column.num_chunks for column in found.itercolumns()] == [1, 1, 1]
    monkeypatch.setattr(pieces, "_SMALL", 25)
    assert joined(cut) is cut
    assert joined(table) is table
    assert joined(pa.table({})).num_rows == 0


def _coded(texts: list[str], index: pa.DataType) -> pa.Array:
    return pa.array(texts).dictionary_encode().cast(pa.dictionary(index, pa.string()))


def test_codes_of_their_own_stay() -> None:
    """All codes together would be too many for their type."""
    attributes = "{ ts: LONG, name: STRING }"
    text = f"CREATE STREAM S {{ EVENT A {attributes} }} SELECT a.name AS a_name WHERE A AS a"
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts"))
    names = [f"name {number}" for number in range(300)]
    parts = [_coded(names[first : first + 100], pa.int8()) for first in (0, 100, 200)]
    table = pa.table({"type": ["A"] * 300, "ts": np.arange(300), "name": pa.chunked_array(parts)})
    assert joined(table) is table
    assert query.match_table(table).column("a_name").to_pylist() == names
    same = pa.chunked_array([_coded(names[:100], pa.int8())] * 3)
    coded = table.set_column(2, "name", same)
    assert joined(coded).column("name").num_chunks == 1
    found = query.match_table(coded)
    assert found.column("a_name").to_pylist() == names[:100] * 3

"""Tables in small pieces are joined, where that can be."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from celc_runtime.arrow.pieces import joined
from engines import interpreted, only_query

import celc


def _cut(table: pa.Table, *cuts: int) -> pa.Table:
    return pa.concat_tables([table[first:end] for first, end in pairwise([0, *cuts, len(table)])])


def test_small_pieces_are_joined_and_large_ones_stay() -> None:
    table = pa.table({"n": range(100), "text": [*map(str, range(100))], "list": [[1]] * 100})
    cut = _cut(table, 10, 10, 60)
    found = joined(cut, 1 << 20)
    assert found.equals(table)
    assert [column.num_chunks for column in found.itercolumns()] == [1, 1, 1]
    assert joined(cut, 30) is cut  # a row has some 25 bytes, and there are four pieces
    assert joined(table, 1 << 20) is table
    assert joined(pa.table({}), 1 << 20).num_rows == 0
    assert joined(cut.slice(100), 1 << 20).num_rows == 0


def _coded(texts: list[str], index: pa.DataType) -> pa.Array:
    return pa.array(texts).dictionary_encode().cast(pa.dictionary(index, pa.string()))


_ROWS = 24_000  # which are sorted by digits


@pytest.mark.parametrize("way", ["table", "batches", "compact"])
@pytest.mark.parametrize("text", ["PARTITION BY k WITHIN 4 [ts]", "WITHIN 4 [ts]"])
def test_each_piece_has_narrow_codes_of_its_own(text: str, way: str) -> None:
    """All codes together are too many for their type."""
    declared = "CREATE STREAM S { EVENT A { ts: LONG, k: LONG, name: STRING } }"
    with interpreted():
        query = only_query(
            celc.compile(f"{declared} SELECT a, b WHERE A AS a ; A AS b {text}", order_by="ts")
        )
    rows, keys = (600, 1) if way == "batches" else (_ROWS, 2)
    names = [f"name {number * 300 // rows}" for number in range(rows)]
    pieces = [
        _coded(names[first : first + rows // 3], pa.int8()) for first in range(0, rows, rows // 3)
    ]
    columns = {"type": ["A"] * rows, "ts": np.arange(rows), "k": np.arange(rows) % keys}
    coded = pa.table({**columns, "name": pa.chunked_array(pieces)})
    plain = pa.table({**columns, "name": names})
    if way == "table":
        assert query.match_table(coded).equals(query.match_table(plain))
    elif way == "batches":
        found = pa.Table.from_batches(query.match_arrow(coded.to_batches()))
        assert found.equals(pa.Table.from_batches(query.match_arrow(plain.to_batches())))
    else:
        assert query.match_compact(coded).num_rows == query.match_compact(plain).num_rows > 0


def test_long_texts_are_not_copied_to_be_joined() -> None:
    short = pa.table({"n": range(1_000), "text": ["short"] * 1_000})
    long = pa.table({"n": range(1_000), "text": ["long" * 1_000] * 1_000})
    assert joined(_cut(short, 500), 1 << 20).column(0).num_chunks == 1
    assert joined(_cut(long, 500), 1 << 20).column(0).num_chunks == 2

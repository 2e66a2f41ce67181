"""Tables in small pieces are joined, where that can be."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

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


_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "LONG": (pa.int64(), [1, 2]),
    "BOOLEAN": (pa.bool_(), [True, False]),
    "DOUBLE": (pa.float16(), [1.5, 2.0]),
    "STRING": (pa.string_view(), ["a", "b"]),
    "BINARY": (pa.binary_view(), [b"a", b"b"]),
    "DATE": (pa.date32(), [date(2024, 2, 29), date(2024, 3, 1)]),
    "TIMESTAMP": (pa.timestamp("s"), [datetime(2024, 2, 29), datetime(2024, 3, 1)]),
    "INTERVAL": (pa.duration("us"), [timedelta(1), timedelta(2)]),
    "DECIMAL(10, 2)": (pa.decimal256(10, 2), [Decimal("1.50"), Decimal("2.00")]),
    "ARRAY<INT>": (pa.list_(pa.int32()), [[1], [2, 3]]),
}


@pytest.mark.parametrize("declared", _VALUES)
def test_coded_columns_of_any_type_with_null_among_their_values(declared: str) -> None:
    """As pandas codes categories of any type; a dictionary may hold NULL too."""
    type, (one, two) = _VALUES[declared]
    text = f"CREATE STREAM S {{ EVENT A {{ ts: LONG, k: LONG, v: {declared} }} }} "
    with interpreted():
        query = only_query(
            celc.compile(f"{text} SELECT a WHERE A AS a : A PARTITION BY k", order_by="ts")
        )
    codes = [pa.array([0, 2, 1, 0, None], pa.int8()), pa.array([1, 1, 0], pa.int8())]
    values = [pa.array([one, two, None], type), pa.array([two, one], type)]
    pieces = [pa.DictionaryArray.from_arrays(*piece) for piece in zip(codes, values, strict=True)]
    if type == pa.timestamp("s"):
        one, two = one.replace(tzinfo=UTC), two.replace(tzinfo=UTC)
    table = pa.table({"ts": range(8), "k": [1, 2, 1, 1, 2, 2, 1, 2], "v": pa.chunked_array(pieces)})
    for some, wanted in ((table[5:], [one]), (table, [one, two, one, None, None, one])):
        found = query.match_table(some)
        assert [row["a"][0]["v"] for row in found.to_pylist()] == wanted
        assert query.match_compact(some).num_rows == len(wanted)


def test_long_texts_are_not_copied_to_be_joined() -> None:
    short = pa.table({"n": range(1_000), "text": ["short"] * 1_000})
    long = pa.table({"n": range(1_000), "text": ["long" * 1_000] * 1_000})
    assert joined(_cut(short, 500), 1 << 20).column(0).num_chunks == 1
    assert joined(_cut(long, 500), 1 << 20).column(0).num_chunks == 2

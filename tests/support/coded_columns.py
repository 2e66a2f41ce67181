"""Columns of tables that are coded: categories of pandas and dictionaries of Arrow, of any type."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow as pa


def with_coded_columns(table: pa.Table, rng: random.Random) -> pa.Table:
    """The same table, some of its columns coded: with NULL among the values, with values that no
    row has or that stand twice, and with codes of each piece's own."""
    for place, field in enumerate(table.schema):
        # Arrow takes no rows of views.
        is_coded = pa.types.is_dictionary(field.type) or pa.types.is_nested(field.type)
        if is_coded or pa.types.is_string_view(field.type) or rng.random() < 0.75:
            continue
        column = pa.concat_arrays(table.column(place).chunks or [pa.nulls(0, field.type)])
        table = table.set_column(place, field.name, _coded(column, rng))
    return table


def _coded(column: pa.Array, rng: random.Random) -> pa.ChunkedArray:
    codes = rng.choice((pa.int8(), pa.uint16(), pa.int32()))
    cuts = sorted(rng.choices(range(len(column) + 1), k=rng.choice((0, 0, 2))))
    pieces = [
        _coded_piece(column.slice(first, end - first), codes, rng)
        for first, end in pairwise([0, *cuts, len(column)])
    ]
    return pa.chunked_array(pieces, pa.dictionary(codes, column.type))


def _coded_piece(piece: pa.Array, codes: pa.DataType, rng: random.Random) -> pa.DictionaryArray:
    """A piece, whose codes are those of its rows in any order, and of NULL where one is there."""
    rows = [*range(len(piece))]
    rng.shuffle(rows)
    values = piece.take(pa.array(rows, pa.int64()))
    if rng.random() < 0.5:
        values = pa.concat_arrays([values, pa.nulls(1, piece.type)])
    places = [rows.index(row) for row in range(len(piece))]
    has_code = rng.random() < 0.5
    found = [
        place if has_code or one.is_valid else None
        for place, one in zip(places, piece, strict=True)
    ]
    return pa.DictionaryArray.from_arrays(pa.array(found, codes), values)

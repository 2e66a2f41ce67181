"""Numbers in the order of a column: of rows in ORDER BY, and of values in an aggregate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import sortable, whole_numbers
from celc_runtime.arrow.decimal_vectors import ranks_of_decimals


def first_null(column: pa.Array) -> int:
    """The place of the first NULL of a column that has one."""
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])


def sort_keys(column: pa.Array, *, descending: bool, nulls_first: bool | None) -> list[np.ndarray]:
    """Keys that sort as a column does, the first one first."""
    found = []
    if column.null_count:
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        found.append(~nulls if nulls_first else nulls)
    if pa.types.is_string(column.type):
        values = ranks_of_texts(column)
    elif pa.types.is_decimal(column.type):
        values = ranks_of_decimals(column).values
    elif column.null_count == len(column):
        values = np.zeros(len(column), np.int64)
    else:
        filled = column
        if column.null_count:
            filled = pc.fill_null(column, column.drop_null()[0])
        values = whole_numbers(sortable(filled))
    found.append(~values if descending else values)
    return found


def ranks_of_texts(column: pa.Array) -> np.ndarray:
    """int64 in the order of a column of texts; anything where NULL."""
    coded = column.dictionary_encode()
    ranks = np.empty(max(len(coded.dictionary), 1), np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    found: np.ndarray = ranks[pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)]
    return found

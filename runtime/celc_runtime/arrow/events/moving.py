"""Columns of a table moved into another order, by threads side by side.

Each thread reads a slice of the rows as they stand, and writes each value to its place. So it reads
each line of memory once, while to pick the rows of a part out of the whole table reads all lines
for each part: rows with one key lie all over a table in the order of time. Rows that are left out
are not copied before.

Values of fixed size without NULL are moved so. Texts and others are left to be picked, part by
part.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.jit.kernels import njit

_OF_BITS: dict[int, np.dtype] = {size: np.dtype(f"u{size // 8}") for size in (8, 16, 32, 64)}


class _Move(NamedTuple):
    """A column, and the memory for its values in order."""

    pieces: list[np.ndarray]  # the bits of the values as they stand, or of their codes
    begins: np.ndarray  # int64[pieces + 1]: the rows at which pieces begin, and how many there are
    borders: np.ndarray  # int64[pieces + 1]: how many rows that are moved stand before these
    moved: np.ndarray  # the bits in order
    column: pa.Array  # over them


class Moves:
    """Columns that are moved slice by slice. `columns`: they with each row at its place, once all
    slices have been moved; None for those that are not moved.

    rows: int64, the rows that are moved, as they stand; None: all of them.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], rows: np.ndarray | None = None) -> None:
        self._rows = NO_INTEGERS if rows is None else rows
        found = [_move_of(column, rows) for column in columns]
        self._moves = [one for one in found if one is not None]
        self.columns = tuple(None if one is None else one.column for one in found)

    def of_slice(self, places: np.ndarray, first: int, end: int) -> None:
        """Move some of the rows that are moved, from the one with number `first` to before `end`,
        to their places (int64, one for each row that is moved; empty: as they stand)."""
        for one in self._moves:
            slices = zip(one.pieces, one.begins[:-1], pairwise(one.borders.tolist()), strict=True)
            for values, begin, (start, behind) in slices:
                some = max(start, first), min(behind, end)
                if some[0] < some[1]:
                    _move(values, begin, self._rows, places, *some, one.moved)


def _move_of(column: pa.ChunkedArray, rows: np.ndarray | None) -> _Move | None:
    is_coded = pa.types.is_dictionary(column.type)
    type = column.type.index_type if is_coded else column.type
    if column.null_count or not (pa.types.is_primitive(type) and type.bit_width in _OF_BITS):
        return None
    chunks = [chunk for chunk in column.chunks if len(chunk)]  # others can have no memory at all
    if is_coded and len(chunks) != 1:
        chunks = [column.combine_chunks()]  # each chunk can have codes of its own
    dtype = _OF_BITS[type.bit_width]
    pieces = [_bits(one.indices if is_coded else one, dtype) for one in chunks]
    begins = np.cumsum([0, *map(len, pieces)])
    borders = begins if rows is None else np.searchsorted(rows, begins)
    # Arrow keeps memory that it has used. New memory costs as much to touch as to move the values.
    memory = pa.allocate_buffer(int(borders[-1]) * dtype.itemsize)
    moved = pa.Array.from_buffers(type, int(borders[-1]), [None, memory])
    if is_coded:
        moved = pa.DictionaryArray.from_arrays(
            moved, chunks[0].dictionary, ordered=column.type.ordered, safe=False
        )
    return _Move(pieces, begins, borders, np.frombuffer(memory, dtype), moved)


def _bits(column: pa.Array, dtype: np.dtype) -> np.ndarray:
    values = np.frombuffer(column.buffers()[1], dtype)
    values = values[column.offset : column.offset + len(column)]
    values.flags.writeable = False  # kernels are compiled for one type of array
    return values


@njit(nogil=True, cache=True)
def _move(values, begin, rows, places, first, end, moved):  # type: ignore[no-untyped-def]
    """Write the values of some rows to their places. values: from the row `begin` on. rows: those
    that are moved; empty: all. places: empty: they come as they stand."""
    for number in range(first, end):
        row = rows[number] if rows.shape[0] else number
        place = places[number] if places.shape[0] else number
        moved[np.uint64(place)] = values[np.uint64(row - begin)]

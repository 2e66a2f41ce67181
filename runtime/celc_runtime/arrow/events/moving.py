"""Columns of a table moved into another order, by threads side by side.

Each thread reads a slice of the rows as they stand, and writes each value to its place. So it reads
each line of memory once, while to pick the rows of a part out of the whole table reads all lines
for each part: rows with one key lie all over a table in the order of time.

Values of fixed size without NULL are moved so. Texts and others are left to be picked, part by
part.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.jit.kernels import njit

_OF_BYTES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class _Move(NamedTuple):
    """A column, and the memory for its values in order."""

    column: pa.Array  # the values as they stand; of a coded column, the codes
    values: np.ndarray  # their bits
    memory: pa.Buffer
    moved: np.ndarray  # the bits in order


class Moves:
    """Columns that are moved slice by slice. `columns`: they with each row at its place, once all
    slices have been moved; None for those that are not moved."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        moves = [_move_of(column) for column in columns]
        self._moves = [one for one in moves if one is not None]
        self.columns = tuple(
            None if move is None else _as_column(column, move)
            for column, move in zip(columns, moves, strict=True)
        )

    def of_slice(self, places: np.ndarray, first: int, end: int) -> None:
        """Move the rows from `first` to before `end` to their places (int64[rows])."""
        for one in self._moves:
            _move(one.values, places, first, end, one.moved)


def _move_of(column: pa.Array) -> _Move | None:
    if column.null_count:
        return None
    plain = column.indices if pa.types.is_dictionary(column.type) else column
    type = plain.type
    if not (pa.types.is_primitive(type) and type.bit_width in _OF_BYTES):
        return None
    values = np.frombuffer(plain.buffers()[1], _OF_BYTES[type.bit_width])
    values = values[plain.offset : plain.offset + len(plain)]
    values.flags.writeable = False  # kernels are compiled for one type of array
    # Arrow keeps memory that it has used. New memory costs as much to touch as to move the values.
    memory = pa.allocate_buffer(values.nbytes)
    return _Move(plain, values, memory, np.frombuffer(memory, values.dtype))


def _as_column(column: pa.Array, move: _Move) -> pa.Array:
    moved = pa.Array.from_buffers(move.column.type, len(move.moved), [None, move.memory])
    if not pa.types.is_dictionary(column.type):
        return moved
    return pa.DictionaryArray.from_arrays(
        moved, column.dictionary, ordered=column.type.ordered, safe=False
    )


@njit(nogil=True, cache=True)
def _move(values, places, first, end, moved):  # type: ignore[no-untyped-def]
    """Write the values of a slice of the rows to their places."""
    for row in range(first, end):
        moved[np.uint64(places[row])] = values[row]

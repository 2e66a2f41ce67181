"""Columns of a table moved into another order, by threads side by side.

Each thread reads a slice of the rows as they stand, and writes each value to its place. So it reads
each line of memory once, while to pick the rows of a part out of the whole table reads all lines
for each part: rows with one key lie all over a table in the order of time. Rows that are left out
are not copied before.

One call of a kernel, which holds no lock of Python, moves all columns of a slice, in however many
pieces they are. It moves one column after another: rows with ten thousand keys are written at as
many places at once, and the lines of all columns there would not fit into the second cache.

Values of fixed size without NULL are moved so. Texts and others are left to be picked, part by
part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.jit.instructions import (
    byte_at,
    half_word_at,
    long_word_at,
    put_byte_at,
    put_half_word_at,
    put_long_word_at,
    put_word_at,
    word_at,
)
from celc_runtime.jit.kernels import njit

_BITS = (8, 16, 32, 64)  # of a value that is moved


class Laid(NamedTuple):
    """Values of fixed size, wherever their pieces lie.

    pieces: int64[pieces, 2], the address at which the value of row 0 would be, and the row behind
    the last one. size: the bytes of a value. kept: what holds their memory.
    """

    pieces: np.ndarray
    size: int
    kept: Any

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> Laid:
        """The values of columns of one primitive type, or the codes of coded ones, one after
        another."""
        pieces, behind, size = [], 0, 8
        for one in columns:
            type = one.type
            size = (type.index_type if pa.types.is_dictionary(type) else type).bit_width // 8
            if len(one):  # others can have no memory at all
                # The memory of texts of a dictionary comes behind that of the codes.
                address = one.buffers()[1].address + size * one.offset
                pieces.append((address - size * behind, behind + len(one)))
                behind += len(one)
        return cls(np.array(pieces, np.int64).reshape(-1, 2), size, columns)


class Moves:
    """Columns that are moved slice by slice. `columns`: they with each row at its place, once all
    slices have been moved; None for those that are not moved.

    rows: int64, the rows that are moved, as they stand, which may be written after this; None: all
    of them.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], rows: np.ndarray | None = None) -> None:
        self._rows = NO_INTEGERS if rows is None else rows
        given = [*map(_with_one_dictionary, columns)]
        found = [*map(_laid, given)]
        self._laid = [one for one in found if one is not None]
        count = 0
        if self._laid:
            count = len(given[0]) if rows is None else len(rows)
        # Arrow keeps memory that it has used. New memory costs as much to touch as to move the
        # values, and so does memory of all columns together, which is too large to be kept.
        memories = [pa.allocate_buffer(count * one.size) for one in self._laid]
        pieces = np.cumsum([0, *(len(one.pieces) for one in self._laid[:-1])])
        self._columns = np.array(  # as `_move` takes them
            [
                (piece, one.size, memory.address)
                for piece, one, memory in zip(pieces.tolist(), self._laid, memories, strict=False)
            ],
            np.int64,
        ).reshape(-1, 3)
        places = iter(memories)
        self.columns = tuple(
            None if one is None else _column(column, count, next(places))
            for column, one in zip(given, found, strict=True)
        )

    def of_slice(self, places: np.ndarray, first: int, end: int) -> None:
        """Move some of the rows that are moved, from the one with number `first` to before `end`,
        to their places (int64, one for each row that is moved; empty: as they stand)."""
        if not self._laid or first == end:
            return
        pieces = np.concatenate([one.pieces for one in self._laid])
        _move(pieces, self._columns, self._rows, places, first, end)


def _with_one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose codes mean the same in all pieces; another column as it is."""
    if not pa.types.is_dictionary(column.type) or column.num_chunks == 1:
        return column
    return pa.chunked_array([column.combine_chunks()])


def _column(column: pa.ChunkedArray, count: int, memory: pa.Buffer) -> pa.Array:
    """The moved values of a column, `count` in a memory."""
    type = column.type
    if not pa.types.is_dictionary(type):
        return pa.Array.from_buffers(type, count, [None, memory])
    codes = pa.Array.from_buffers(type.index_type, count, [None, memory])
    return pa.DictionaryArray.from_arrays(
        codes, column.chunk(0).dictionary, ordered=type.ordered, safe=False
    )


def _laid(column: pa.ChunkedArray) -> Laid | None:
    is_coded = pa.types.is_dictionary(column.type)
    type = column.type.index_type if is_coded else column.type
    if column.null_count or not pa.types.is_primitive(type) or type.bit_width not in _BITS:
        return None
    return Laid.of(column.chunks)


@njit(nogil=True, cache=True)
def _move(pieces, columns, rows, places, first, end):  # type: ignore[no-untyped-def]
    """Write the values of some rows to their places.

    pieces: those of `Laid`, column by column. columns: int64[columns, 3], for each the first of its
    pieces, the bytes of a value, and the address that values are written to. rows: those that are
    moved; empty: all. places: empty: they come as they stand.
    """
    for number in range(columns.shape[0]):
        piece, size, into = columns[number, 0], columns[number, 1], columns[number, 2]
        begin = first
        while begin < end:
            row = rows[begin] if rows.shape[0] else begin
            while pieces[piece, 1] <= row:
                piece += 1
            behind = _before(rows, begin, end, pieces[piece, 1])
            base = pieces[piece, 0]
            if size == 8:
                _move_long_words(base, rows, places, begin, behind, into)
            elif size == 4:
                _move_words(base, rows, places, begin, behind, into)
            elif size == 2:
                _move_half_words(base, rows, places, begin, behind, into)
            else:
                _move_bytes(base, rows, places, begin, behind, into)
            begin = behind


@njit(nogil=True, cache=True)
def _before(rows, first, end, row):  # type: ignore[no-untyped-def]
    """The first number from `first` to before `end` whose row (empty: itself) is not before `row`,
    else `end`."""
    if rows.shape[0] == 0:
        return min(end, row)
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


# In functions of their own, because the loops took a third longer inside of `_move`.


@njit(nogil=True, cache=True)
def _move_long_words(base, rows, places, first, end, into):  # type: ignore[no-untyped-def]
    for moved in range(first, end):
        row = rows[moved] if rows.shape[0] else moved
        place = places[moved] if places.shape[0] else moved
        put_long_word_at(into + 8 * place, long_word_at(base + 8 * row))


@njit(nogil=True, cache=True)
def _move_words(base, rows, places, first, end, into):  # type: ignore[no-untyped-def]
    for moved in range(first, end):
        row = rows[moved] if rows.shape[0] else moved
        place = places[moved] if places.shape[0] else moved
        put_word_at(into + 4 * place, word_at(base + 4 * row))


@njit(nogil=True, cache=True)
def _move_half_words(base, rows, places, first, end, into):  # type: ignore[no-untyped-def]
    for moved in range(first, end):
        row = rows[moved] if rows.shape[0] else moved
        place = places[moved] if places.shape[0] else moved
        put_half_word_at(into + 2 * place, half_word_at(base + 2 * row))


@njit(nogil=True, cache=True)
def _move_bytes(base, rows, places, first, end, into):  # type: ignore[no-untyped-def]
    for moved in range(first, end):
        row = rows[moved] if rows.shape[0] else moved
        place = places[moved] if places.shape[0] else moved
        put_byte_at(into + place, byte_at(base + row))

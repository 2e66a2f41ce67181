"""The order of a task's rows, by their keys and then by the columns of the order.

NumPy sorts numbers of 64 bits several times as fast as it sorts rows by several columns. So the
number of the key and the value of the first column are packed into one number, wherever they fit.
The other columns are compared only among rows for which these numbers are equal.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, numbers, plain

_BITS = 63
"""The bits of an int64 besides its sign: the room for packed numbers."""

_STEPS = (1_000_000, 1_000)
"""Microseconds: a second and a millisecond. Times are often multiples of one of them, and then need
fewer bits."""

_ROWS_AT_ONCE = 1 << 16

_FIRST_ROWS = 1_000
"""Rows: these are looked at first. Mostly they show already that values are no multiples."""


class RowOrder(NamedTuple):
    """Rows in their order."""

    rows: np.ndarray  # int64[rows], the places that the rows had before
    codes: np.ndarray  # int64[rows], the numbers of their keys
    may_tie: bool
    """Whether two rows of one key may be equal in the first column of the order. If not, no two are
    equal in all columns."""


def codes_of_keys(columns: Sequence[pa.ChunkedArray], rows: int) -> np.ndarray:
    """int64[rows]: a number for the key of each row, from 0 on. Equal keys have equal numbers;
    without columns, all keys are equal."""
    codes: np.ndarray | None = None
    for column in columns:
        found, keys = _coded(column)
        if codes is not None:
            # Coded again: the numbers have no gaps then, so the next product fits as well.
            codes *= max(1, keys)
            codes += found
            found, _ = _coded(pa.chunked_array([pa.array(codes)]))
        codes = found
    return np.zeros(rows, np.int64) if codes is None else codes


def _coded(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """int64[rows], a number for each value, from 0 on; and how many values there are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # Chunk by chunk: in one piece, texts would be copied. The chunks have one dictionary.
    coded = column.dictionary_encode(null_encoding="encode")
    codes, first, values = np.empty(len(column), np.int64), 0, 0
    for chunk in coded.chunks:
        codes[first : first + len(chunk)] = chunk.indices.to_numpy(zero_copy_only=False)
        first += len(chunk)
        values = len(chunk.dictionary)
    return codes, values


def values_of(columns: Sequence[pa.ChunkedArray]) -> Iterator[np.ndarray]:
    """Arrays by which rows are sorted, the first one first; NULL comes before all values."""
    for chunked in columns:
        column = plain(in_one_piece(chunked))
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = _ranks(column)
        values, known = numbers(column)
        if known.all():
            yield values
        else:
            yield known
            yield np.where(known, values, 0)


def _ranks(texts: pa.Array) -> pa.Array:
    """The rank of each text in the order of all: byte by byte, as Spark compares them."""
    coded = texts.dictionary_encode()
    ranks = np.empty(len(coded.dictionary), np.int64)
    ranks[np.asarray(pc.sort_indices(coded.dictionary))] = np.arange(len(ranks))
    return pa.array(ranks).take(coded.indices)


def order_of(codes: np.ndarray, columns: Sequence[pa.ChunkedArray]) -> RowOrder:
    """The rows by their keys' numbers, then by the columns. There is at least one row.

    codes: int64[rows], whose memory is used: their values are lost.
    """
    values = values_of(columns)
    first = next(values, None)
    if first is None:
        rows: np.ndarray = np.argsort(codes, kind="stable")
        return RowOrder(rows, codes[rows], True)
    found = _by_one_number(codes, first)
    if found is None:
        rows = np.lexsort((*reversed([first, *values]), codes))
        return RowOrder(rows, codes[rows], True)
    rows, both, bits = found
    equal = both[1:] == both[:-1]
    if not equal.any():
        both >>= bits
        return RowOrder(rows, both, False)
    tied = np.zeros(len(rows), np.bool_)
    tied[1:] = equal
    tied[:-1] |= equal
    # Rows that are not tied are in place. The tied ones are sorted by the columns that follow.
    places = np.flatnonzero(tied)
    some = rows[places]
    rows[places] = some[np.lexsort((*reversed([each[some] for each in values]), both[places]))]
    both >>= bits
    return RowOrder(rows, both, True)


def _by_one_number(
    codes: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """The rows sorted by one number each, which packs the key and the value of the first column.

    Returns (the rows in order; their numbers in order; how many low bits of a number are not of the
    key). None if key and value do not fit into one number.

    If there is room for the place of the row as well, it is packed into the low bits, and the
    numbers themselves are sorted. That takes less than half the time of an argsort; a lexsort takes
    four times as long as an argsort. Where it finds them, the numbers take the memory of `codes`.
    """
    if first.dtype == np.bool_:
        return None
    low, count = int(first.min()), len(first)
    bits_of_codes, bits_of_rows = int(codes.max()).bit_length(), (count - 1).bit_length()
    most = int(first.max()) - low
    if most.bit_length() + bits_of_codes > _BITS:
        return None
    values = first.astype(np.int64)
    values -= low
    if most.bit_length() + bits_of_codes + bits_of_rows > _BITS:
        step = _step_of(values)
        most //= step
        if step > 1:
            values //= step
    bits = most.bit_length()
    both = codes  # no array more than needed: there are millions of rows
    both <<= bits
    both |= values
    del values
    if (both[1:] >= both[:-1]).all():
        return np.arange(count), both, bits
    if bits + bits_of_codes + bits_of_rows > _BITS:
        order = np.argsort(both)
        return order, both[order], bits
    both <<= bits_of_rows
    for begin in range(0, count, _ROWS_AT_ONCE):
        both[begin : begin + _ROWS_AT_ONCE] |= np.arange(begin, min(count, begin + _ROWS_AT_ONCE))
    both.sort()
    order = both & ((1 << bits_of_rows) - 1)
    both >>= bits_of_rows
    return order, both, bits


def _step_of(values: np.ndarray) -> int:
    """The greatest of `_STEPS` that divides all values; 1: neither does."""
    for step in _STEPS:
        if not (values[:_FIRST_ROWS] % step).any() and not any(
            (values[first : first + _ROWS_AT_ONCE] % step).any()
            for first in range(0, len(values), _ROWS_AT_ONCE)
        ):
            return step
    return 1

"""The order of a task's rows by their keys and the columns of the order, as arrays of numbers."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, numbers, plain

_BITS = 63
"""The bits of a number that is not negative."""

_STEPS = (1_000_000, 1_000)
"""Times in microseconds are often whole seconds or milliseconds."""

_FIRST_ROWS = 1_000
"""So many rows show where values are no multiples of a step."""


class RowOrder(NamedTuple):
    """rows: int64[rows], the rows in their order. codes: int64[rows], the numbers of their keys, in
    that order. may_tie: whether two of one key may be equal in the first column of the order; if
    not, no two are equal in all."""

    rows: np.ndarray
    codes: np.ndarray
    may_tie: bool


def codes_of_keys(columns: Sequence[pa.ChunkedArray], rows: int) -> np.ndarray:
    """int64[rows]: a number for the key of each row, from 0 on; equal keys have equal numbers, and
    without columns all keys are equal."""
    codes: np.ndarray | None = None
    for column in columns:
        coded = in_one_piece(column).dictionary_encode(null_encoding="encode")
        found = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if codes is not None:
            # Dense numbers again, so that the next product fits as well.
            pairs = pa.array(codes * max(1, len(coded.dictionary)) + found)
            found = pairs.dictionary_encode().indices.to_numpy().astype(np.int64)
        codes = found
    return np.zeros(rows, np.int64) if codes is None else codes


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
    """The places of texts among all of them in order, byte by byte as Spark compares them."""
    coded = texts.dictionary_encode()
    ranks = np.empty(len(coded.dictionary), np.int64)
    ranks[np.asarray(pc.sort_indices(coded.dictionary))] = np.arange(len(ranks))
    return pa.array(ranks).take(coded.indices)


def order_of(codes: np.ndarray, columns: Sequence[pa.ChunkedArray]) -> RowOrder:
    """The rows by their keys' numbers, then by the columns. There is at least one row."""
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
    # The others are at their places: only these are compared by the columns that follow.
    places = np.flatnonzero(tied)
    some = rows[places]
    rows[places] = some[np.lexsort((*reversed([each[some] for each in values]), both[places]))]
    both >>= bits
    return RowOrder(rows, both, True)


def _by_one_number(
    codes: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int] | None:
    """The rows in the order of one number made of key and first column, these numbers in their
    order, and how many of their last bits are not of the key; None where one number cannot hold
    both.

    Where the row's own number fits behind them, numbers are sorted that bring their row along,
    which takes less than half of the time of an argsort; a lexsort takes four times that of one.
    """
    if first.dtype == np.bool_:
        return None
    low, count = int(first.min()), len(first)
    bits_of_codes, bits_of_rows = int(codes.max()).bit_length(), (count - 1).bit_length()
    most = int(first.max()) - low
    if most.bit_length() + bits_of_codes > _BITS:
        return None
    both = first.astype(np.int64)
    both -= low
    if most.bit_length() + bits_of_codes + bits_of_rows > _BITS:
        step = _step_of(both)
        most //= step
        if step > 1:
            both //= step
    bits = most.bit_length()
    both += codes << bits
    if (both[1:] >= both[:-1]).all():
        return np.arange(count), both, bits
    if bits + bits_of_codes + bits_of_rows > _BITS:
        order = np.argsort(both)
        return order, both[order], bits
    both <<= bits_of_rows
    both |= np.arange(count)
    both.sort()
    order = both & ((1 << bits_of_rows) - 1)
    both >>= bits_of_rows
    return order, both, bits


def _step_of(values: np.ndarray) -> int:
    """The greatest step of which all values are multiples; 1: none that is looked for."""
    for step in _STEPS:
        if not (values[:_FIRST_ROWS] % step).any() and not (values % step).any():
            return step
    return 1

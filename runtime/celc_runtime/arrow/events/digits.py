"""Sorts rows by columns, digit by digit: a pass over all rows for each, the last column first.

Most tables come in the order of time, so that the key is all that is left to sort by: then one pass
takes the fiftieth part of the time of Arrow's sort, which compares rows. (An LSD radix sort: Knuth,
The Art of Computer Programming, volume 3, 5.2.5.)

Whole numbers and times are their own digits; of texts the distinct ones are sorted, and their ranks
are the digits. NULL comes first, and equal rows keep their order.

Threads share a pass: each counts the digits of a slice of the rows, and then writes the rows of its
slice behind those of earlier slices with the same digit.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers, plain, room_of
from celc_runtime.jit.kernels import MOST_ROWS, njit

_DIGIT = 16  # bits: the places of a digit's rows fit into the processor's second cache

_ROWS_OF_A_DIGIT = 4  # of a slice, for each digit that there can be

_ROWS_OF_A_SLICE = 1 << 16  # or more

_NO_ORDER = np.zeros(0, np.int64)


class Workers(NamedTuple):
    """Threads that take the steps of one call side by side."""

    threads: int
    side_by_side: Callable[[Sequence[Callable[[], Any]]], list[Any]]
    """Makes all calls, and returns their answers in order."""

    def slices(self, rows: int, least: int = 0) -> list[tuple[int, int]]:
        """(first row, row behind the last) of a slice for each thread. There are fewer slices if
        they would have less than `least` rows, or too few to be worth a thread."""
        count = max(1, min(self.threads, rows // max(least, _ROWS_OF_A_SLICE)))
        return [(rows * n // count, rows * (n + 1) // count) for n in range(count)]


ALONE = Workers(1, lambda calls: [call() for call in calls])


class Places(NamedTuple):
    """A column as whole numbers from 0 on in its order."""

    values: np.ndarray  # uint64[rows]
    largest: int

    @property
    def bits(self) -> list[tuple[int, int]]:
        """The first bit of each digit and the number of its bits, the lowest digit first. A column
        with no more values than rows is one digit."""
        width = self.largest.bit_length()
        if self.largest <= max(len(self.values), 1 << _DIGIT):
            return [(0, width)]
        return [(low, min(_DIGIT, width - low)) for low in range(0, width, _DIGIT)]


def is_worth_it(rows: int) -> bool:
    """Whether this number of rows is sorted faster by digits than by comparisons, also if the code
    has to be loaded first."""
    return rows >= MOST_ROWS


def places_of(column: pa.Array, workers: Workers = ALONE) -> Places | None:
    """A column of whole numbers, times or texts, which may be coded; None for other types."""
    type = column.type
    if pa.types.is_dictionary(type):
        if not _is_text(type.value_type):
            return places_of(plain(column), workers)
        return _ranks(column, workers)
    if _is_text(type):
        return _ranks(column.dictionary_encode(), workers)
    whole = pa.types.is_integer(type) or pa.types.is_temporal(type)
    if not whole or type == pa.uint64() or type.bit_width > 64 or not len(column):
        return None
    values, valid = numbers(column)
    if not column.null_count:
        return places_of_numbers(values, workers)
    found = places_of_numbers(values[valid], workers)
    if found is None:
        return None
    placed = np.zeros(len(values), np.uint64)
    placed[valid] = found.values + np.uint64(1)
    return Places(placed, found.largest + 1)


def coded_texts(column: pa.Array, workers: Workers) -> pa.Array:
    """A column of texts coded by the distinct ones; another column as it is."""
    if not _is_text(column.type):
        return column
    slices = workers.slices(len(column))
    calls = [partial(column.slice(first, end - first).dictionary_encode) for first, end in slices]
    coded = workers.side_by_side(calls)
    if len(coded) == 1:
        return coded[0]
    return pa.concat_arrays(pa.chunked_array(coded).unify_dictionaries().chunks)


def places_of_numbers(values: np.ndarray, workers: Workers = ALONE) -> Places | None:
    """Whole numbers of up to 64 bits, or truths; None for others, and where they are too far
    apart."""
    if values.dtype.kind not in "bi":
        return None
    if not len(values):
        return Places(np.zeros(0, np.uint64), 0)
    values = values.view(np.int8) if values.dtype.kind == "b" else values
    least, greatest = int(values.min()), int(values.max())
    if greatest - least >= (1 << 63) - 1:
        return None
    found = room_of(len(values))

    def of_slice(first: int, end: int) -> None:
        np.subtract(
            values[first:end], least, out=found[first:end], dtype=np.int64, casting="unsafe"
        )

    slices = workers.slices(len(values))
    workers.side_by_side([partial(of_slice, *one) for one in slices])
    return Places(found.view(np.uint64), greatest - least)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _ranks(column: pa.DictionaryArray, workers: Workers) -> Places:
    """The ranks of coded texts, which may stand twice in the dictionary; 0 for NULL."""
    texts = column.dictionary
    distinct = pc.unique(texts.drop_null())
    known = pc.index_in(texts, value_set=distinct.take(pc.sort_indices(distinct)))
    ranks = np.zeros(len(texts) + 1, np.uint64)
    ranks[:-1] = pc.fill_null(pc.add(known.cast(pa.int64()), 1), 0).to_numpy(zero_copy_only=False)
    found = room_of(len(column)).view(np.uint64)

    def of_slice(first: int, end: int) -> None:
        codes = column.indices.slice(first, end - first).cast(pa.int64())
        if codes.null_count:
            codes = pc.fill_null(codes, len(texts))
        found[first:end] = ranks[codes.to_numpy(zero_copy_only=False)]

    slices = workers.slices(len(column))
    workers.side_by_side([partial(of_slice, *one) for one in slices])
    return Places(found, int(ranks.max(initial=0)))


class InOrder(NamedTuple):
    """Rows in the order of columns. order: int64[rows], the rows in order. places: int64[rows],
    where each row comes; empty: not asked for. begins: int64, the places at which the values of the
    only column begin; None: not known."""

    order: np.ndarray
    places: np.ndarray
    begins: np.ndarray | None


def order_by_digits(columns: Sequence[Places], workers: Workers = ALONE) -> np.ndarray:
    """int64[rows]: the rows in the order of the columns, the first one first. There is a column."""
    return in_order(columns, workers, with_places=False).order


def in_order(columns: Sequence[Places], workers: Workers, *, with_places: bool) -> InOrder:
    """The rows in the order of the columns, the first one first. There is a column."""
    rows = len(columns[0].values)
    digits = [
        (column.values, np.uint64(low), np.uint64(bits))
        for column in reversed(columns)
        for low, bits in column.bits
        if bits
    ]
    if not digits:
        order = np.arange(rows)
        return InOrder(order, order if with_places else _NO_ORDER, np.zeros(1, np.int64))
    order = places = _NO_ORDER
    for number, (values, low, bits) in enumerate(digits, start=1):
        if with_places and number == len(digits):
            places = room_of(rows)
        size, after = 1 << int(bits), room_of(rows)
        # Of fewer rows, it takes longer to add up the counts of slices than to count.
        slices = workers.slices(rows, _ROWS_OF_A_DIGIT * size)
        counts = np.zeros((len(slices), size), np.int64)
        digit = values, low, bits, order
        workers.side_by_side(
            [partial(_count, *digit, *one, counts[n]) for n, one in enumerate(slices)]
        )
        begins = _begin(counts)
        workers.side_by_side(
            [
                partial(_place, *digit, *one, counts[n], after, places)
                for n, one in enumerate(slices)
            ]
        )
        order = after
    return InOrder(order, places, begins if len(digits) == 1 else None)


def _begin(counts: np.ndarray) -> np.ndarray:
    """Turn the counts of digits in slices into the places of their first rows; returns the places
    at which digits begin that some row has."""
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape)
    begins = ends[:, -1] - counts.sum(axis=0)
    found: np.ndarray = begins[begins < ends[:, -1]]
    counts[:] = ends.T - counts
    return found


@njit(nogil=True, cache=True)
def _count(values, low, bits, before, first, end, counts):  # type: ignore[no-untyped-def]
    """Count the digits of a slice of `before` (empty: of all rows, as they stand)."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for number in range(first, end):
        row = before[number] if before.shape[0] else number
        counts[np.int64((values[row] >> low) & mask)] += 1


@njit(nogil=True, cache=True)
def _place(values, low, bits, before, first, end, nexts, after, places):  # type: ignore[no-untyped-def]
    """Write the rows of a slice in the order of a digit; nexts: where its next row comes."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for number in range(first, end):
        row = before[number] if before.shape[0] else number
        digit = np.int64((values[row] >> low) & mask)
        place = nexts[digit]
        nexts[digit] = place + 1
        after[place] = row
        if places.shape[0]:
            places[row] = place

"""Sorts rows by columns, digit by digit: a pass over all rows for each, the last column first.

Most tables come in the order of time, so that the key is all that is left to sort by: then one pass
takes the fiftieth part of the time of Arrow's sort, which compares rows. (An LSD radix sort: Knuth,
The Art of Computer Programming, volume 3, 5.2.5.)

Whole numbers and times are their own digits; of texts the distinct ones are sorted, and their ranks
are the digits. NULL comes first, and equal rows keep their order.

Threads share a pass: each counts the digits of a slice of the rows, and then writes the rows of its
slice behind those of earlier slices with the same digit. What has to be known before is asked in
one step (`Step`), because a thread is woken for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers, plain, room_of
from celc_runtime.arrow.views import is_text
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

    def take(self, *steps: Step) -> list[Any]:
        """What steps find, whose calls are made together."""
        calls = [call for step in steps for call in step.calls]
        answers = iter(self.side_by_side(calls) if calls else ())
        return [step.found([next(answers) for _ in step.calls]) for step in steps]


class Step(NamedTuple):
    """Calls that threads can make side by side, in any order."""

    calls: Sequence[Callable[[], Any]]
    found: Callable[[list[Any]], Any]
    """What their answers, in their order, show."""


def done(found: Any) -> Step:
    """A step that has nothing left to do."""
    return Step([], lambda _: found)


ALONE = Workers(1, lambda calls: [call() for call in calls])


class Places(NamedTuple):
    """A column as whole numbers from 0 on in its order: its values without the least one."""

    values: np.ndarray  # uint64[rows], modulo 2⁶⁴
    largest: int  # of these numbers
    least: np.uint64 = np.uint64(0)  # of the values

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
    """A column of whole numbers, times or texts, which may be coded; None for other types, and
    where numbers are too far apart."""
    found: Places | None = workers.take(placing(column, workers))[0]
    return found


def placing(column: pa.Array, workers: Workers) -> Step:
    """The step that finds `places_of`."""
    type = column.type
    if pa.types.is_dictionary(type):
        if not is_text(type.value_type):
            return placing(plain(column), workers)
        return done(_ranks(column, workers))
    if is_text(type):
        return done(_ranks(column.dictionary_encode(), workers))
    whole = pa.types.is_integer(type) or pa.types.is_temporal(type)
    if not whole or type == pa.uint64() or type.bit_width > 64 or not len(column):
        return done(None)
    values, valid = numbers(column)
    if not column.null_count:
        return _placing_numbers(values, workers)
    found = places_of_numbers(values[valid], workers)
    if found is None:
        return done(None)
    placed = np.zeros(len(values), np.uint64)
    placed[valid] = found.values - found.least + np.uint64(1)
    return done(Places(placed, found.largest + 1))


def coded_texts(column: pa.Array, workers: Workers) -> pa.Array:
    """A column of texts coded by the distinct ones; another column as it is."""
    return workers.take(coding_texts(column, workers))[0]


def coding_texts(column: pa.Array, workers: Workers) -> Step:
    """The step that finds `coded_texts`."""
    if not is_text(column.type):
        return done(column)

    def found(coded: list[pa.DictionaryArray]) -> pa.DictionaryArray:
        if len(coded) == 1:
            return coded[0]
        return pa.concat_arrays(pa.chunked_array(coded).unify_dictionaries().chunks)

    slices = workers.slices(len(column))
    calls = [partial(column.slice(first, end - first).dictionary_encode) for first, end in slices]
    return Step(calls, found)


def places_of_numbers(values: np.ndarray, workers: Workers = ALONE) -> Places | None:
    """Whole numbers of up to 64 bits, or truths; None for others, and where they are too far
    apart."""
    found: Places | None = workers.take(_placing_numbers(values, workers))[0]
    return found


def _placing_numbers(values: np.ndarray, workers: Workers) -> Step:
    if values.dtype.kind not in "bi":
        return done(None)
    values = values.view(np.int8) if values.dtype.kind == "b" else values
    is_wide = values.dtype == np.int64
    wide = np.ascontiguousarray(values) if is_wide else room_of(len(values))
    if not len(values):
        return done(Places(wide.view(np.uint64), 0))

    def of_slice(first: int, end: int) -> tuple[int, int]:
        if not is_wide:
            wide[first:end] = values[first:end]
        return int(values[first:end].min()), int(values[first:end].max())

    def found(ends: list[tuple[int, int]]) -> Places | None:
        least, greatest = min(one for one, _ in ends), max(one for _, one in ends)
        if greatest - least >= (1 << 63) - 1:
            return None
        return Places(wide.view(np.uint64), greatest - least, np.int64(least).astype(np.uint64))

    return Step([partial(of_slice, *one) for one in workers.slices(len(values))], found)


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
    """Rows in the order of columns. order: int64[rows], the rows in order. begins: int64, the
    places in it at which the values of the only column begin; None: not known."""

    order: np.ndarray
    begins: np.ndarray | None


Move: TypeAlias = Callable[[np.ndarray, int, int], None]
"""Takes where each row comes (int64[rows]), and moves those from a first one to before another."""


def order_by_digits(columns: Sequence[Places], workers: Workers = ALONE) -> np.ndarray:
    """int64[rows]: the rows in the order of the columns, the first one first. There is a column."""
    return in_order(columns, workers).order


def in_order(columns: Sequence[Places], workers: Workers, move: Move | None = None) -> InOrder:
    """The rows in the order of the columns, the first one first. There is a column. move: moves
    them; None: they are not moved."""
    rows = len(columns[0].values)
    digits = [
        (_read_only(column.values), column.least, np.uint64(low), np.uint64(bits))
        for column in reversed(columns)
        for low, bits in column.bits
        if bits
    ]
    if not digits:
        order = np.arange(rows)
        if move is not None:
            move(order, 0, rows)
        return InOrder(order, np.zeros(1, np.int64))
    order, begins = _NO_ORDER, _NO_ORDER
    for number, digit in enumerate(digits, start=1):
        order, begins = _by_digit(digit, order, workers, move if number == len(digits) else None)
    return InOrder(order, begins if len(digits) == 1 else None)


def _read_only(values: np.ndarray) -> np.ndarray:
    """The same numbers: kernels are compiled for one type of array."""
    values = values.view()
    values.flags.writeable = False
    return values


def _by_digit(
    digit: tuple[np.ndarray, np.uint64, np.uint64, np.uint64],
    before: np.ndarray,
    workers: Workers,
    move: Move | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(The rows in the order of a digit, and in the order `before` where it is equal; the places at
    which its values begin). digit: as `_count` takes it."""
    rows, size = len(digit[0]), 1 << int(digit[-1])
    # Of fewer rows, it takes longer to add up the counts of slices than to count.
    slices = workers.slices(rows, _ROWS_OF_A_DIGIT * size)
    after, places = room_of(rows), _NO_ORDER if move is None else room_of(rows)
    counts = np.zeros((len(slices), size), np.int64)
    workers.side_by_side(
        [partial(_count, *digit, before, *one, counts[n]) for n, one in enumerate(slices)]
    )
    begins = _begin(counts)
    # A slice is moved once the places of its rows are known, unless more threads can share that.
    at_once = move if len(slices) == len(workers.slices(rows)) else None

    def place(number: int, first: int, end: int) -> None:
        _place(*digit, before, first, end, counts[number], after, places)
        # Rows that stand in an order before are of all slices.
        if at_once is not None and not len(before):
            at_once(places, first, end)

    workers.side_by_side([partial(place, n, *one) for n, one in enumerate(slices)])
    if move is not None and (at_once is None or len(before)):
        workers.side_by_side([partial(move, places, *one) for one in workers.slices(rows)])
    return after, begins


def _begin(counts: np.ndarray) -> np.ndarray:
    """Turn the counts of digits in slices into the places of their first rows; returns the places
    at which digits begin that some row has."""
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape)
    begins = ends[:, -1] - counts.sum(axis=0)
    found: np.ndarray = begins[begins < ends[:, -1]]
    counts[:] = ends.T - counts
    return found


@njit(nogil=True, cache=True)
def _count(values, least, low, bits, before, first, end, counts):  # type: ignore[no-untyped-def]
    """Count the digits of a slice of `before` (empty: of all rows, as they stand)."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for number in range(first, end):
        row = before[number] if before.shape[0] else number
        counts[np.int64(((values[row] - least) >> low) & mask)] += 1


@njit(nogil=True, cache=True)
def _place(values, least, low, bits, before, first, end, nexts, after, places):  # type: ignore[no-untyped-def]
    """Write the rows of a slice in the order of a digit; nexts: where its next row comes."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for number in range(first, end):
        row = before[number] if before.shape[0] else number
        digit = np.int64(((values[row] - least) >> low) & mask)
        place = nexts[digit]
        nexts[digit] = place + 1
        after[place] = row
        if places.shape[0]:
            places[row] = place

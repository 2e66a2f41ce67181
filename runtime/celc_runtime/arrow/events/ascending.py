"""Whether rows stand in the order of columns already. Most tables show in a few rows that they do
not, and large ones that do are looked through by threads side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    is_whole,
    numbers,
    order_of_neighbours,
    plain,
    sortable,
    whole_column,
    whole_values,
)
from celc_runtime.arrow.events.digits import ALONE, Step, Workers, done
from celc_runtime.arrow.events.moving import Laid
from celc_runtime.engine.arena.batch import disorder
from celc_runtime.jit.instructions import long_word_at
from celc_runtime.jit.kernels import compiling, njit

_FEW = 1 << 12  # rows that are looked at first


def ascends(columns: Sequence[pa.Array], workers: Workers) -> bool:
    """Whether rows ascend by all columns. Most tables show in a few rows that they do not."""
    rows = len(columns[0])
    if len(columns) == 1 and is_signed(columns[0]):
        values = numbers(columns[0])[0]
        return rows < 2 or not disorder(values[1:], values[0])[0]

    def slice_ascends(first: int, end: int) -> bool:
        first = max(0, first - 1)  # the row before is compared as well
        return is_sorted([sortable(plain(one.slice(first, end - first))) for one in columns])

    if not slice_ascends(0, min(_FEW, rows)):
        return False
    calls = [partial(slice_ascends, *one) for one in workers.slices(rows)]
    return rows <= _FEW or all(workers.side_by_side(calls))


def strictly_increases(column: pa.Array | pa.ChunkedArray, workers: Workers = ALONE) -> bool:
    """Whether a column is of whole numbers or times, and strictly ascends. False if unsure.

    Then the rows are sorted, whatever the other order columns hold.
    """
    return bool(workers.take(increasing(column, workers))[0])


def increasing(column: pa.Array | pa.ChunkedArray, workers: Workers) -> Step:
    """The step that finds `strictly_increases`. Most columns that do not show it in a few rows:
    then nothing is left to do."""
    if not is_signed(column):
        return done(False)

    def falls(values: np.ndarray, before: Any) -> bool:
        return any(disorder(values, before))

    before, calls = None, []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        values = numbers(chunk)[0]
        if not len(values):
            continue
        if before is None:
            before, values = values[0], values[1:]
        if not len(values):
            continue
        if len(values) > _FEW and falls(values[:_FEW], before):
            return done(False)
        slices = workers.slices(len(values))
        calls += [
            partial(falls, values[a:b], before if a == 0 else values[a - 1]) for a, b in slices
        ]
        before = values[-1]
    return Step(calls, lambda found: not any(found))


def is_signed(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column has whole numbers or times, without NULL, that int64 holds."""
    return is_whole(column) and column.type != pa.uint64()


def rise(pieces: Sequence[pa.RecordBatch]) -> int:
    """How many of one or two columns of whole numbers or times, the first ones, show that each row
    comes after the one before it; 0: they do not. No piece is empty."""
    columns = [
        Laid.of([*map(_of_64_bits, column)])
        for column in zip(*(piece.columns for piece in pieces), strict=True)
    ]
    with compiling():  # what it reads is no array, by whose length a kernel is known to be worth it
        return int(strictly_rise(columns[0].pieces, columns[-1].pieces))


def _of_64_bits(column: pa.Array) -> pa.Array:
    if column.type.bit_width == 64:
        return column
    return whole_column(whole_values(column).astype(np.int64), pa.int64())


@njit(nogil=True, cache=True)
def strictly_rise(firsts, others):  # type: ignore[no-untyped-def]
    """1: each row comes after the one before it by the first column; 2: by the other one where
    values of that are equal; 0: it does not.

    firsts, others: the pieces of `Laid` of columns of 64 bits, which end at the same rows.
    """
    shown, begin = 1, 0
    for piece in range(firsts.shape[0]):
        base, other, behind = firsts[piece, 0], others[piece, 0], firsts[piece, 1]
        if begin > 0:
            before, other_before = firsts[piece - 1, 0], others[piece - 1, 0]
            risen = _rises(before, base, other_before, other, begin)
            if risen == 0:
                return 0
            shown = max(shown, risen)
        last = long_word_at(base + 8 * begin)
        for row in range(begin + 1, behind):
            value = long_word_at(base + 8 * row)
            if value <= last:
                if _rises(base, base, other, other, row) == 0:
                    return 0
                shown = 2
            last = value
        begin = behind
    return shown


@njit(nogil=True, cache=True)
def _rises(before, base, other_before, other, row):  # type: ignore[no-untyped-def]
    """`strictly_rise` of a row and the one before it."""
    value, last = long_word_at(base + 8 * row), long_word_at(before + 8 * (row - 1))
    if value != last:
        return 1 if value > last else 0
    one, last = long_word_at(other + 8 * row), long_word_at(other_before + 8 * (row - 1))
    return 2 if one > last else 0


def is_sorted(columns: Sequence[pa.Array]) -> bool:
    """Whether rows ascend by all columns, the first column first; NULL is before all values."""
    undecided = np.ones(len(columns[0]), np.bool_)
    undecided[0] = False
    for column in columns:
        order = order_of_neighbours(column, None)
        if (undecided & (order < 0)).any():
            return False
        undecided &= order == 0
    return True

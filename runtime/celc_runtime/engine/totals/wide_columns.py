"""Columns of whole numbers of 128 bits, in two words each: totals of matches (see `wide_numbers`).

NumPy has no such type. An array of Python's numbers takes ten times as long to add.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from celc_runtime.engine.values.wide_numbers import FULL
from celc_runtime.plan.frozen import frozen

_HALF = 1 << 32
_WORD = 1 << 64
_LOW_HALF = np.uint64(_HALF - 1)
_SHIFT = np.uint64(32)

MOST_DIGITS = 10**38  # absolute values of DECIMAL(38, 0) are smaller than this


@frozen(eq=False)
class WideColumn:
    """Numbers in two's complement. A column of counts has no negative numbers."""

    high: np.ndarray  # uint64[rows]; in a column of counts, `FULL` stands for 2¹²⁷ and more
    low: np.ndarray  # uint64[rows]

    def __len__(self) -> int:
        return len(self.high)

    def taken(self, rows: np.ndarray) -> WideColumn:
        return WideColumn(self.high[rows], self.low[rows])

    def are_small(self) -> bool:
        top = self.low >> np.uint64(62)
        return not (self.high.any() or top.any())

    def as_numbers(self) -> np.ndarray:
        """int64[rows] if the numbers can be added and negated in 64 bits, else Python's
        (object)."""
        if self.are_small():
            return self.low.view(np.int64)
        found: np.ndarray = self.high.view(np.int64).astype(object) * _WORD
        total: np.ndarray = found + self.low.astype(object)
        return total


def column_of(words: np.ndarray) -> WideColumn:
    """uint64[rows, 2] (high, low) as a column with memory of its own."""
    return WideColumn(words[:, 0].copy(), words[:, 1].copy())


def wide(values: np.ndarray) -> WideColumn:
    """A column from int64[rows], or from Python's numbers of at most 127 bits (object[rows])."""
    if values.dtype != object:
        found = values.astype(np.int64)
        return WideColumn((found >> 63).view(np.uint64), found.view(np.uint64))
    high = [value >> 64 & (_WORD - 1) for value in values.tolist()]
    low = [value & (_WORD - 1) for value in values.tolist()]
    return WideColumn(np.array(high, np.uint64), np.array(low, np.uint64))


def together(columns: Sequence[WideColumn]) -> WideColumn:
    return WideColumn(
        np.concatenate([one.high for one in columns]), np.concatenate([one.low for one in columns])
    )


def sums_between(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> WideColumn:
    """The exact sums of ranges of int64 or uint64[rows].

    starts, ends: int64, the first row of each range, and the row after its last.
    """
    low = np.zeros(len(values) + 1, np.int64)
    high = np.zeros(len(values) + 1, np.int64)
    np.cumsum((values & values.dtype.type(_HALF - 1)).astype(np.int64), out=low[1:])
    np.cumsum((values >> values.dtype.type(32)).astype(np.int64), out=high[1:])
    lows, highs = low[ends] - low[starts], high[ends] - high[starts]
    shifted = highs.view(np.uint64) << _SHIFT
    total = shifted + lows.view(np.uint64)
    carried = (total < shifted).view(np.uint8).astype(np.int64)
    return WideColumn(((highs >> 32) + carried).view(np.uint64), total)


def sums_of_groups(column: WideColumn, starts: np.ndarray, *, counts: bool) -> WideColumn:
    """The sums of groups of rows; groups begin at the rows `starts` (int64, ascending, from 0).

    counts: a sum that reaches 2¹²⁷, or contains a `FULL`, is `FULL`. Otherwise sums wrap around.
    """
    if len(starts) == len(column):
        return column
    limbs = [
        np.add.reduceat(limb, starts)
        for limb in (
            column.low & _LOW_HALF,
            column.low >> _SHIFT,
            column.high & _LOW_HALF,
            column.high >> _SHIFT,
        )
    ]
    for place in range(3):
        limbs[place + 1] = limbs[place + 1] + (limbs[place] >> _SHIFT)
    is_full = limbs[3] >> np.uint64(31) != 0
    low = limbs[1] << _SHIFT | limbs[0] & _LOW_HALF
    high = limbs[3] << _SHIFT | limbs[2] & _LOW_HALF
    if counts and is_full.any():
        high, low = np.where(is_full, FULL, high), np.where(is_full, np.uint64(0), low)
    return WideColumn(high, low)


def sums_of_counts(one: WideColumn, other: WideColumn) -> WideColumn:
    low = one.low + other.low
    high = one.high + other.high + (low < one.low)
    is_full = (one.high | other.high | high) >= FULL
    return WideColumn(np.where(is_full, FULL, high), np.where(is_full, np.uint64(0), low))


def differences(one: WideColumn, other: WideColumn) -> WideColumn:
    """One column less another, row by row, modulo 2¹²⁸."""
    return WideColumn(one.high - other.high - (one.low < other.low), one.low - other.low)


def leaves_38_digits(column: WideColumn) -> np.ndarray:
    """bool[rows]: where a count has more than 38 digits."""
    high, low = np.uint64(MOST_DIGITS >> 64), np.uint64(MOST_DIGITS & (_WORD - 1))
    found: np.ndarray = (column.high > high) | ((column.high == high) & (column.low >= low))
    return found

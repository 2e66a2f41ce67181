"""Totals of sets of partial matches: elements of a commutative semiring, and the parts of kernels.

The sum of two elements stands for the matches of both, the product for all that are put together of
a part of the one and a part of the other. `engine/totals.py` says how they come to be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.wide_numbers import (
    FULL,
    add_wide,
    add_wrapping,
    multiply_by_word,
    multiply_wide,
    multiply_wrapping,
)
from celc_runtime.jit.kernels import njit

NOTHING = np.int64(2**63 - 1)
"""The least of no values: greater than all, or equal to the greatest one."""

KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_PART: dict[str, Any] = {
    **KERNEL,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options of the parts of kernels: to pass all these arrays took longer than an event."""


class Elements(NamedTuple):
    """Elements of the semiring, as rows.

    words: uint64[rows, 2 + 4 · whole]: the count (high, low), then for each whole sum the signed
    sum and the sum of absolute values. reals: float64[rows, 1 + real], or of no columns where
    nothing asks for them: the count, and each real sum; in one scale for all rows, 2 to the power
    of `scale`. least: int64[rows, ordered].
    """

    words: np.ndarray
    reals: np.ndarray
    least: np.ndarray


class Measures(NamedTuple):
    """What each event of a batch adds, for each function; belongs: bool[functions, kinds], whether
    an event of a kind counts for it.

    whole: int64[whole, rows]; real: float64[real, rows]; ordered: int64[ordered, rows], NOTHING for
    NULL. NULLs add 0.
    """

    whole: np.ndarray
    whole_belongs: np.ndarray
    real: np.ndarray
    real_belongs: np.ndarray
    ordered: np.ndarray
    ordered_belongs: np.ndarray


class Shape(NamedTuple):
    """How many functions there are: whole sums, real sums (−1: not even the count is wanted as a
    real number) and least values."""

    whole: int
    real: int
    ordered: int


_LARGE = 2.0**200
_SCALE = 200
_ALL_BITS = np.uint64(2**64 - 1)


def new_elements(rows: int, shape: Shape) -> Elements:
    """Rows of 0: of no match."""
    return Elements(
        np.zeros((rows, 2 + 4 * shape.whole), np.uint64),
        np.zeros((rows, 1 + shape.real), np.float64),
        np.full((rows, shape.ordered), NOTHING, np.int64),
    )


@cache
def parts_of_totals(whole: int, real: int, ordered: int) -> tuple[Callable[..., Any], ...]:
    """The parts of an update for elements of one shape.

    Machine code is made for each shape, because loops whose lengths are known vanish: with lengths
    that were read, one measure took three times as long as none.
    """
    words, reals = 2 + 4 * whole, 1 + real

    @njit(**_PART)
    def clear(to, row):  # type: ignore[no-untyped-def]
        for word in range(words):
            to.words[row, word] = np.uint64(0)
        for number in range(reals):
            to.reals[row, number] = 0.0
        for number in range(ordered):
            to.least[row, number] = NOTHING

    @njit(**_PART)
    def set_one(to, row):  # type: ignore[no-untyped-def]
        """One match without events."""
        to.words[row, 0], to.words[row, 1] = np.uint64(0), np.uint64(1)
        if reals > 0:
            to.reals[row, 0] = 1.0

    @njit(**_PART)
    def copy(to, row, source, place):  # type: ignore[no-untyped-def]
        for word in range(words):
            to.words[row, word] = source.words[place, word]
        for number in range(reals):
            to.reals[row, number] = source.reals[place, number]
        for number in range(ordered):
            to.least[row, number] = source.least[place, number]

    @njit(**_PART)
    def add(to, row, source, place):  # type: ignore[no-untyped-def]
        """Add the matches of another element, in the same scale."""
        old, more = to.words, source.words
        old[row, 0], old[row, 1] = add_wide(
            old[row, 0], old[row, 1], more[place, 0], more[place, 1]
        )
        for number in range(whole):
            word = 2 + 4 * number
            old[row, word], old[row, word + 1] = add_wrapping(
                old[row, word], old[row, word + 1], more[place, word], more[place, word + 1]
            )
            old[row, word + 2], old[row, word + 3] = add_wide(
                old[row, word + 2], old[row, word + 3], more[place, word + 2], more[place, word + 3]
            )
        for number in range(reals):
            to.reals[row, number] += source.reals[place, number]
        for number in range(ordered):
            to.least[row, number] = min(to.least[row, number], source.least[place, number])

    @njit(**_PART)
    def move(to, target, source, place, keep, kind, at, measures):  # type: ignore[no-untyped-def]
        """Add the matches of an element, each with one event more, to those of the target, of which
        nothing stays where `keep` is 0. Both can be one element."""
        sums, mask = to.words, _ALL_BITS * np.uint64(keep)
        high, low = source.words[place, 0], source.words[place, 1]
        for number in range(whole):
            word = 2 + 4 * number
            top, rest = source.words[place, word], source.words[place, word + 1]
            over, under = source.words[place, word + 2], source.words[place, word + 3]
            value = measures.whole[number, at]
            if value != 0 and measures.whole_belongs[number, kind]:
                size = np.uint64(-value) if value < 0 else np.uint64(value)
                more_top, more, is_full = multiply_by_word(high, low, size)
                if is_full:
                    over, under = FULL, np.uint64(0)
                else:
                    over, under = add_wide(over, under, more_top, more)
                if value < 0:
                    more_top, more = ~more_top + np.uint64(more == 0), ~more + np.uint64(1)
                top, rest = add_wrapping(top, rest, more_top, more)
            sums[target, word], sums[target, word + 1] = add_wrapping(
                sums[target, word] & mask, sums[target, word + 1] & mask, top, rest
            )
            sums[target, word + 2], sums[target, word + 3] = add_wide(
                sums[target, word + 2] & mask, sums[target, word + 3] & mask, over, under
            )
        for number in range(ordered):
            least = source.least[place, number]
            if (high | low) and measures.ordered_belongs[number, kind]:
                least = min(least, measures.ordered[number, at])
            kept = to.least[target, number] if keep else NOTHING
            to.least[target, number] = min(kept, least)
        if reals > 0:
            times = source.reals[place, 0]
            for number in range(real):
                value = source.reals[place, 1 + number]
                # An infinite value times a count that is below the scale would be no number.
                if times != 0.0 and measures.real_belongs[number, kind]:
                    value += times * measures.real[number, at]
                kept = to.reals[target, 1 + number] if keep else 0.0
                to.reals[target, 1 + number] = kept + value
            to.reals[target, 0] = (to.reals[target, 0] if keep else 0.0) + times
        sums[target, 0], sums[target, 1] = add_wide(
            sums[target, 0] & mask, sums[target, 1] & mask, high, low
        )

    @njit(**_PART)
    def add_product(to, row, first, place, second, other):  # type: ignore[no-untyped-def]
        """Add the matches that are put together of two parts."""
        sums, ones, twos = to.words, first.words, second.words
        high, low = ones[place, 0], ones[place, 1]
        other_high, other_low = twos[other, 0], twos[other, 1]
        if (high | low) and (other_high | other_low):
            top, rest = multiply_wide(high, low, other_high, other_low)
            sums[row, 0], sums[row, 1] = add_wide(sums[row, 0], sums[row, 1], top, rest)
            for number in range(whole):
                word = 2 + 4 * number
                top, rest = multiply_wrapping(high, low, twos[other, word], twos[other, word + 1])
                more, most = multiply_wrapping(
                    other_high, other_low, ones[place, word], ones[place, word + 1]
                )
                top, rest = add_wrapping(top, rest, more, most)
                sums[row, word], sums[row, word + 1] = add_wrapping(
                    sums[row, word], sums[row, word + 1], top, rest
                )
                top, rest = multiply_wide(high, low, twos[other, word + 2], twos[other, word + 3])
                more, most = multiply_wide(
                    other_high, other_low, ones[place, word + 2], ones[place, word + 3]
                )
                top, rest = add_wide(top, rest, more, most)
                sums[row, word + 2], sums[row, word + 3] = add_wide(
                    sums[row, word + 2], sums[row, word + 3], top, rest
                )
            if reals > 0:
                times, other_times = first.reals[place, 0], second.reals[other, 0]
                to.reals[row, 0] += times * other_times
                for number in range(1, reals):
                    value, other_value = first.reals[place, number], second.reals[other, number]
                    # An infinite sum times a count that is below the scale would be no number.
                    if value != 0.0 and other_times != 0.0:
                        to.reals[row, number] += value * other_times
                    if other_value != 0.0 and times != 0.0:
                        to.reals[row, number] += times * other_value
            for number in range(ordered):
                least = min(first.least[place, number], second.least[other, number])
                to.least[row, number] = min(to.least[row, number], least)

    @njit(**_PART)
    def scale_down(to, first, end, scales, which):  # type: ignore[no-untyped-def]
        """Scale reals down where one is large."""
        large = False
        for row in range(first, end):
            for number in range(reals):
                large |= abs(to.reals[row, number]) > _LARGE
        if large:
            for row in range(first, end):
                for number in range(reals):
                    to.reals[row, number] *= 1.0 / _LARGE
            scales[which] += _SCALE

    return clear, set_one, copy, add, move, add_product, scale_down

"""Elements of totals whose numbers are small: the same semiring, without scales and saturation.

Counts, and sums of absolute values of whole numbers, stay below 2¹²⁶. Real numbers are plain
DOUBLEs. So sums are plain additions. One test for each event tells whether a number has left these
bounds. If one has, the update goes on with the elements of `total_elements`. These have no bounds,
and take up to twice the time.

Rejected: one signed number for a whole sum. It took a tenth less time, but the sum of absolute
values is needed too, because it decides whether a total leaves 38 digits.

A real sum cannot leave a DOUBLE here. A value is 0, or infinite, or between 2⁻¹²⁸ and 2¹²⁸. A
product of two parts is below 2¹²⁶ · 2¹²⁶ · 2¹²⁸ times the number of events.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from celc_runtime.engine.totals.scaled_numbers import INFINITE, UNKNOWN, ZERO, side_by_side
from celc_runtime.engine.totals.total_elements import (
    NOTHING,
    PART,
    Elements,
    Shape,
    belongs,
    parts_of_others,
)
from celc_runtime.engine.values.wide_numbers import (
    FULL,
    add_wrapping,
    multiply_wide,
    multiply_wrapping,
)
from celc_runtime.jit.kernels import njit

BITS_OF_VALUES = 40  # whole values are below 2⁴⁰; larger ones need elements without bounds
BITS_OF_COUNTS = 62 - BITS_OF_VALUES
"""High words of counts that such values are added to are below 2 to this power. So what a count
adds to a sum has a high word below 2⁶²."""

_ALL_BITS = np.uint64(2**64 - 1)
_NONE = np.uint64(0)
_1, _2, _3, _4 = (np.uint64(number) for number in (1, 2, 3, 4))
_VALUES, _COUNTS = np.uint64(BITS_OF_VALUES), np.uint64(BITS_OF_COUNTS)


def bounded_numbers(shape: Shape) -> int:
    """The number of reals of an element: the count, then a sum and a number of values for each
    sum."""
    return max(0, 1 + 2 * shape.real)


def new_bounded_elements(count: int, shape: Shape) -> Elements:
    return Elements(
        np.zeros(count * shape.words, np.uint64),
        np.zeros(count * bounded_numbers(shape)),
        np.full(count * shape.ordered, NOTHING, np.int64),
    )


def reals_without_bounds(reals: np.ndarray, shape: Shape, count: int) -> np.ndarray:
    """The reals of the first elements with scales, in the form of `side_by_side`."""
    if shape.real < 0:
        return np.zeros(0)
    width = bounded_numbers(shape)
    bounded = reals[: count * width].reshape(count, width)
    sums, known = bounded[:, 1 : 1 + shape.real], bounded[:, 1 + shape.real :]
    sizes = bounded[:, : shape.numbers]
    scales = np.where(sizes == 0.0, UNKNOWN, np.where(np.isinf(sizes), INFINITE, 0.0))
    # A sum that has values is 0, not nothing.
    zeros = (sums == 0.0) & (known != 0.0)
    scales[:, 1 : 1 + shape.real][zeros] = ZERO
    return side_by_side(sizes, scales)


@cache
def parts_of_bounded_totals(
    whole: int, known: int, real: int, counted: int, ordered: int, pairs: int
) -> tuple[Callable[..., Any], ...]:
    """The kernels of an update, as in `total_elements.parts_of_totals`.

    `move` and `add_product` return the high words of all that they wrote, combined by OR. These
    show whether a number has left its bounds.
    """
    shape = Shape(whole, known, real, counted, ordered, pairs)
    reals = bounded_numbers(shape)
    clear_others, copy_others, move_others, multiply_others = parts_of_others(shape)
    of_words, of_reals = np.uint64(shape.words), np.uint64(reals)
    of_whole, of_real, of_sums = (np.uint64(n) for n in (whole, 2 * max(real, 0), max(real, 0)))

    @njit(**PART)
    def clear(to, place):  # type: ignore[no-untyped-def]
        clear_others(to, place)
        at = np.uint64(place) * of_reals
        for number in range(reals):
            to.reals[at + np.uint64(number)] = 0.0

    @njit(**PART)
    def set_one(to, place):  # type: ignore[no-untyped-def]
        to.words[np.uint64(place) * of_words + _1] = _1
        if reals > 0:
            to.reals[np.uint64(place) * of_reals] = 1.0

    @njit(**PART)
    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        copy_others(to, target, source, place)
        at, of = np.uint64(target) * of_reals, np.uint64(place) * of_reals
        for number in range(reals):
            to.reals[at + np.uint64(number)] = source.reals[of + np.uint64(number)]

    @njit(**PART)
    def move(to, target, source, place, keep, program, labels_at, event, measures):  # type: ignore[no-untyped-def]
        labels = program[labels_at]
        sums, mask, seen = to.words, _ALL_BITS * np.uint64(keep), _NONE
        at, of = np.uint64(target) * of_words, np.uint64(place) * of_words
        high, low = source.words[of], source.words[of + _1]
        added = np.uint64(event) * of_whole
        for number in range(whole):
            word = _2 + _4 * np.uint64(number)
            from_sum, to_sum = of + word, at + word
            top, rest = add_wrapping(
                sums[to_sum] & mask,
                sums[to_sum + _1] & mask,
                source.words[from_sum],
                source.words[from_sum + _1],
            )
            over, under = add_wrapping(
                sums[to_sum + _2] & mask,
                sums[to_sum + _3] & mask,
                source.words[from_sum + _2],
                source.words[from_sum + _3],
            )
            if belongs(labels, program, labels_at, number):
                value = measures.whole[added + np.uint64(number)]
                # No branch: no processor can predict the next sign.
                sign = np.uint64(value >> 63)
                more_top, more = multiply_wrapping(high, low, _NONE, np.uint64(abs(value)))
                over, under = add_wrapping(over, under, more_top & sign, more & sign)
                sign = ~sign
                top, rest = add_wrapping(top, rest, more_top & sign, more & sign)
            sums[to_sum], sums[to_sum + _1] = top, rest
            sums[to_sum + _2], sums[to_sum + _3] = over, under
            seen |= top | over
        move_others(to, target, source, place, keep, program, labels_at, event, measures)
        if reals > 0:
            numbers = to.reals
            to_real, from_real = np.uint64(target) * of_reals, np.uint64(place) * of_reals
            times = source.reals[from_real]
            added = np.uint64(event) * of_real
            for number in range(real):
                one = np.uint64(number)
                of_sum, to_sum = from_real + _1 + one, to_real + _1 + one
                total, known = source.reals[of_sum], source.reals[of_sum + of_sums]
                kept, kept_known = numbers[to_sum], numbers[to_sum + of_sums]
                # An infinite value times zero matches would be NaN.
                if times != 0.0 and belongs(labels, program, labels_at, whole + number):
                    total += times * measures.real[added + _2 * one]
                    is_known = measures.real[added + _2 * one + _1] != UNKNOWN
                    known += times if is_known else 0.0
                total += kept if keep else 0.0
                known += kept_known if keep else 0.0
                numbers[to_sum], numbers[to_sum + of_sums] = total, known
            kept = numbers[to_real]
            numbers[to_real] = times + (kept if keep else 0.0)
        high, low = add_wrapping(sums[at] & mask, sums[at + _1] & mask, high, low)
        sums[at], sums[at + _1] = high, low
        return seen | (high << _VALUES if whole > 0 else high)

    @njit(**PART)
    def add_product(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
        sums, ones, twos, seen = to.words, first.words, second.words, _NONE
        mask = _ALL_BITS * np.uint64(keep)
        at = np.uint64(target) * of_words
        one, two = np.uint64(place) * of_words, np.uint64(other) * of_words
        high, low = ones[one], ones[one + _1]
        other_high, other_low = twos[two], twos[two + _1]
        if (high | low) and (other_high | other_low):
            top, rest = multiply_wide(high, low, other_high, other_low)
            seen |= top
            top, rest = add_wrapping(sums[at] & mask, sums[at + _1] & mask, top, rest)
            sums[at], sums[at + _1] = top, rest
            # A product can leave all bounds at once. What one event adds cannot.
            seen |= FULL if whole > 0 and top >> _COUNTS else top
            for number in range(2 * whole):
                word = _2 + _2 * np.uint64(number)
                here, left, right = at + word, one + word, two + word
                top, rest = multiply_wide(high, low, twos[right], twos[right + _1])
                more, most = multiply_wide(other_high, other_low, ones[left], ones[left + _1])
                seen |= top | more
                top, rest = add_wrapping(top, rest, more, most)
                top, rest = add_wrapping(sums[here] & mask, sums[here + _1] & mask, top, rest)
                sums[here], sums[here + _1] = top, rest
                seen |= top
            multiply_others(to, target, keep, first, place, second, other)
            if reals > 0:
                at = np.uint64(target) * of_reals
                one, two = np.uint64(place) * of_reals, np.uint64(other) * of_reals
                times, other_times = first.reals[one], second.reals[two]
                kept = to.reals[at]
                to.reals[at] = times * other_times + (kept if keep else 0.0)
                for number in range(1, reals):
                    next_one = np.uint64(number)
                    kept = to.reals[at + next_one]
                    to.reals[at + next_one] = (
                        first.reals[one + next_one] * other_times
                        + times * second.reals[two + next_one]
                        + (kept if keep else 0.0)
                    )
        elif keep == 0:
            clear(to, target)
        return seen

    @njit(**PART)
    def settle(to, first, end):  # type: ignore[no-untyped-def]
        """Does nothing: there are no scales."""

    return clear, set_one, copy, move, add_product, settle

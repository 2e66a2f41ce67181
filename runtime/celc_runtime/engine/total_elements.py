"""Totals of sets of partial matches: elements of a commutative semiring, and the parts of kernels.

The sum of two elements stands for the matches of both, the product for all that are put together of
a part of the one and a part of the other. `engine/totals.py` says how they come to be.

Rejected: one scale for all real numbers of an element, and scales apart where it cannot be. Such
elements are smaller, and nine of ten sums find equal scales; but the code for the others, which the
compiler puts into every step, cost as much again, and twice the time to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.wide_numbers import (
    FULL,
    add_wide,
    multiply_by_word,
    multiply_wide,
)
from celc_runtime.jit.kernels import njit

NOTHING = np.int64(2**63 - 1)
"""The least of no values: greater than all, or equal to the greatest one."""

KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
PART: dict[str, Any] = {
    **KERNEL,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options of the parts of kernels: to pass all these arrays took longer than an event."""


class Elements(NamedTuple):
    """Elements of the semiring, one after another.

    words: uint64[elements × words]: the count (high, low), then for each whole sum that of its
    positive values and, without their sign, that of its negative ones, then a bit for each known
    sum: whether it has values. reals: float64[elements × 2 · numbers], or of no length where
    nothing asks for them: the count, each real sum, and the number of values of each counted one,
    all as a size and a scale, which are together size · 2^(256 · scale). least: int64[elements ×
    ordered].

    `bounded_elements` has another layout for real numbers.

    The arrays have one axis, because machine code finds a place in them without reading their
    shapes, which took a tenth of the time.
    """

    words: np.ndarray
    reals: np.ndarray
    least: np.ndarray


class Measures(NamedTuple):
    """What each event of a batch adds, for each function.

    whole: int64[rows × whole]; known: uint64[rows × known words], a bit for each known sum; real:
    float64[rows × 2 · real], sizes and scales; ordered: int64[rows × ordered], NOTHING for NULL.
    NULLs add 0 to whole sums, and `UNKNOWN` to real ones.
    """

    whole: np.ndarray
    known: np.ndarray
    real: np.ndarray
    ordered: np.ndarray


class Shape(NamedTuple):
    """How many functions there are: whole sums, known sums (those of whole numbers, the first ones,
    of which it is wanted whether they have values), real sums (−1: not even the count is wanted as
    a real number), those of them, the first ones, whose values are counted, and least values."""

    whole: int
    known: int
    real: int
    counted: int
    ordered: int

    @property
    def numbers(self) -> int:
        """How many real numbers an element has."""
        return 1 + self.real + self.counted

    @property
    def known_words(self) -> int:
        """How many words have a bit for each known sum."""
        return -(-self.known // 64)

    @property
    def words(self) -> int:
        """How many words an element has."""
        return 2 + 4 * self.whole + self.known_words

    @property
    def measures(self) -> int:
        """How many functions there are."""
        return self.whole + max(self.real, 0) + self.ordered

    @property
    def label_words(self) -> int:
        """How many words have a bit for each function."""
        return max(1, -(-self.measures // 64))


BITS_OF_SCALE = 256
UNKNOWN = -(2.0**40)
"""About the scale of a sum of no value, whose size is 0."""
ZERO = -(2.0**38)
"""About the scale of a sum of values that are all 0. Any other number is larger than both."""

_UP, _DOWN = 2.0**BITS_OF_SCALE, 2.0**-BITS_OF_SCALE
LARGE, SMALL = 2.0 ** (BITS_OF_SCALE // 2), 2.0 ** -(BITS_OF_SCALE // 2)
"""The largest and the least size of a settled number."""
_GROWTH = 192
"""Between two calls of `settle` a number grows by at most so many bits for its own sake. So it is
below 2³²⁰ if it is a count, and below 2⁴⁵³ if it is a sum: then products of both fit a DOUBLE."""
_APART = 3.0
"""Of two numbers whose scales are further apart the smaller one is nothing beside the other: it is
less than 2⁻¹⁰⁰ of it, whether or not they are settled."""
_ALL_BITS = np.uint64(2**64 - 1)
_NONE = np.uint64(0)
_1, _2, _3, _4 = (np.uint64(number) for number in (1, 2, 3, 4))


@njit(**PART)
def steps_between(growth):  # type: ignore[no-untyped-def]
    """After how many events numbers are to be settled, if they grow by up to so many bits at an
    event."""
    return max(np.int64(1), np.int64(_GROWTH) // np.int64(growth))


def new_elements(count: int, shape: Shape) -> Elements:
    """Elements of no match."""
    reals = np.zeros((count, shape.numbers, 2))
    reals[:, :, 1] = UNKNOWN
    return Elements(
        np.zeros(count * shape.words, np.uint64),
        reals.reshape(-1),
        np.full(count * shape.ordered, NOTHING, np.int64),
    )


@njit(**KERNEL)
def _plus_of_scales(size, scale, other, other_scale):  # type: ignore[no-untyped-def]
    """The sum of two numbers of different scales."""
    if scale < other_scale:
        size, scale, other, other_scale = other, other_scale, size, scale
    if abs(other) < np.inf:
        if scale - other_scale > _APART:
            return size, scale
        while other_scale < scale:
            other, other_scale = other * _DOWN, other_scale + 1.0
    return size + other, scale


@njit(**PART)
def _plus(size, scale, other, other_scale):  # type: ignore[no-untyped-def]
    """The sum of two numbers, as a size and a scale."""
    if scale == other_scale:
        return size + other, scale
    return _plus_of_scales(size, scale, other, other_scale)


@njit(**PART)
def belongs(labels, program, labels_at, number):  # type: ignore[no-untyped-def]
    """Whether an event counts for a measure; labels: the first of its words."""
    if number >= 64:
        labels = program[labels_at + np.uint64(number // 64)]
    return labels >> np.uint64(number % 64) & _1 != _NONE


@cache
def parts_of_others(shape: Shape) -> tuple[Callable[..., Any], ...]:
    """The parts of an update that elements with bounds and without have in common: clear and copy
    for words and least values; add, move and multiply for bits of known sums and least values."""
    whole, ordered, words, known_words = shape.whole, shape.ordered, shape.words, shape.known_words
    of_words, of_least, of_known = (np.uint64(n) for n in (words, ordered, known_words))
    first_known, first_ordered = np.uint64(2 + 4 * whole), whole + max(shape.real, 0)

    @njit(**PART)
    def clear(to, place):  # type: ignore[no-untyped-def]
        at = np.uint64(place) * of_words
        for word in range(words):
            to.words[at + np.uint64(word)] = _NONE
        at = np.uint64(place) * of_least
        for number in range(ordered):
            to.least[at + np.uint64(number)] = NOTHING

    @njit(**PART)
    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        at, of = np.uint64(target) * of_words, np.uint64(place) * of_words
        for word in range(words):
            to.words[at + np.uint64(word)] = source.words[of + np.uint64(word)]
        at, of = np.uint64(target) * of_least, np.uint64(place) * of_least
        for number in range(ordered):
            to.least[at + np.uint64(number)] = source.least[of + np.uint64(number)]

    @njit(**PART)
    def add(to, target, source, place):  # type: ignore[no-untyped-def]
        at = np.uint64(target) * of_words + first_known
        of = np.uint64(place) * of_words + first_known
        for index in range(known_words):
            to.words[at + np.uint64(index)] |= source.words[of + np.uint64(index)]
        at, of = np.uint64(target) * of_least, np.uint64(place) * of_least
        for number in range(ordered):
            one, other = at + np.uint64(number), of + np.uint64(number)
            to.least[one] = min(to.least[one], source.least[other])

    @njit(**PART)
    def move(to, target, source, place, keep, program, labels_at, event, measures):  # type: ignore[no-untyped-def]
        labels, mask = program[labels_at], _ALL_BITS * np.uint64(keep)
        at, of = np.uint64(target) * of_words, np.uint64(place) * of_words
        is_some = (source.words[of] | source.words[of + _1]) != 0
        for index in range(known_words):
            bits = measures.known[np.uint64(event) * of_known + np.uint64(index)]
            bits &= labels if index == 0 else program[labels_at + np.uint64(index)]
            bits = source.words[of + first_known + np.uint64(index)] | (bits if is_some else _NONE)
            to_word = at + first_known + np.uint64(index)
            to.words[to_word] = (to.words[to_word] & mask) | bits
        to_least, from_least = np.uint64(target) * of_least, np.uint64(place) * of_least
        added = np.uint64(event) * of_least
        for number in range(ordered):
            one = np.uint64(number)
            least, kept = source.least[from_least + one], to.least[to_least + one]
            more = measures.ordered[added + one]
            has_more = is_some & belongs(labels, program, labels_at, first_ordered + number)
            least = min(least, more if has_more else NOTHING)
            to.least[to_least + one] = min(kept if keep else NOTHING, least)

    @njit(**PART)
    def multiply(to, target, first, place, second, other):  # type: ignore[no-untyped-def]
        at = np.uint64(target) * of_words + first_known
        one = np.uint64(place) * of_words + first_known
        two = np.uint64(other) * of_words + first_known
        for index in range(known_words):
            word = np.uint64(index)
            to.words[at + word] |= first.words[one + word] | second.words[two + word]
        at = np.uint64(target) * of_least
        one, two = np.uint64(place) * of_least, np.uint64(other) * of_least
        for number in range(ordered):
            next_one = np.uint64(number)
            least = min(first.least[one + next_one], second.least[two + next_one])
            to.least[at + next_one] = min(to.least[at + next_one], least)

    return clear, copy, add, move, multiply


@cache
def parts_of_totals(
    whole: int, known: int, real: int, counted: int, ordered: int
) -> tuple[Callable[..., Any], ...]:
    """The parts of an update for elements of one shape.

    Machine code is made for each shape, because loops whose lengths are known vanish: with lengths
    that were read, one measure took three times as long as none. Places are unsigned: Numba asks of
    others whether they are negative.
    """
    shape = Shape(whole, known, real, counted, ordered)
    reals = shape.numbers
    clear_others, copy_others, add_others, move_others, multiply_others = parts_of_others(shape)
    of_words, of_reals = np.uint64(shape.words), np.uint64(2 * reals)
    of_whole, of_real = np.uint64(whole), np.uint64(2 * max(real, 0))

    @njit(**PART)
    def clear(to, place):  # type: ignore[no-untyped-def]
        clear_others(to, place)
        at = np.uint64(place) * of_reals
        for number in range(reals):
            size = at + _2 * np.uint64(number)
            to.reals[size], to.reals[size + _1] = 0.0, UNKNOWN

    @njit(**PART)
    def set_one(to, place):  # type: ignore[no-untyped-def]
        """One match without events; the element is clear."""
        to.words[np.uint64(place) * of_words + _1] = _1
        if reals > 0:
            at = np.uint64(place) * of_reals
            to.reals[at], to.reals[at + _1] = 1.0, 0.0

    @njit(**PART)
    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        copy_others(to, target, source, place)
        at, of = np.uint64(target) * of_reals, np.uint64(place) * of_reals
        for number in range(2 * reals):
            to.reals[at + np.uint64(number)] = source.reals[of + np.uint64(number)]

    @njit(**PART)
    def add(to, target, source, place):  # type: ignore[no-untyped-def]
        """Add the matches of another element."""
        old, more = to.words, source.words
        at, of = np.uint64(target) * of_words, np.uint64(place) * of_words
        old[at], old[at + _1] = add_wide(old[at], old[at + _1], more[of], more[of + _1])
        for number in range(2 * whole):
            word = _2 + _2 * np.uint64(number)
            to_sum, from_sum = at + word, of + word
            old[to_sum], old[to_sum + _1] = add_wide(
                old[to_sum], old[to_sum + _1], more[from_sum], more[from_sum + _1]
            )
        add_others(to, target, source, place)
        at, of = np.uint64(target) * of_reals, np.uint64(place) * of_reals
        for number in range(reals):
            size, other = at + _2 * np.uint64(number), of + _2 * np.uint64(number)
            to.reals[size], to.reals[size + _1] = _plus(
                to.reals[size], to.reals[size + _1], source.reals[other], source.reals[other + _1]
            )
        return _NONE

    @njit(**PART)
    def move(to, target, source, place, keep, program, labels_at, event, measures):  # type: ignore[no-untyped-def]
        """Add the matches of an element, each with one event more, to those of the target, of which
        nothing stays where `keep` is 0. Both can be one element."""
        labels = program[labels_at]
        sums, mask = to.words, _ALL_BITS * np.uint64(keep)
        at, of = np.uint64(target) * of_words, np.uint64(place) * of_words
        high, low = source.words[of], source.words[of + _1]
        added = np.uint64(event) * of_whole
        for number in range(whole):
            word = _2 + _4 * np.uint64(number)
            from_sum, to_sum = of + word, at + word
            top, over = source.words[from_sum], source.words[from_sum + _2]
            if top >= FULL or over >= FULL:
                # The sum has left all bounds, whatever is added.
                sums[to_sum], sums[to_sum + _1] = FULL, _NONE
                continue
            sums[to_sum], sums[to_sum + _1] = add_wide(
                sums[to_sum] & mask, sums[to_sum + _1] & mask, top, source.words[from_sum + _1]
            )
            sums[to_sum + _2], sums[to_sum + _3] = add_wide(
                sums[to_sum + _2] & mask,
                sums[to_sum + _3] & mask,
                over,
                source.words[from_sum + _3],
            )
            value = measures.whole[added + np.uint64(number)]
            if value != 0 and belongs(labels, program, labels_at, number):
                # No branch: which sign comes next no processor foresees.
                to_sum += np.uint64(value >> 63) & _2
                # That of the least number is 2⁶³ as a word.
                top, rest = multiply_by_word(high, low, np.uint64(abs(value)))
                sums[to_sum], sums[to_sum + _1] = add_wide(
                    sums[to_sum], sums[to_sum + _1], top, rest
                )
        move_others(to, target, source, place, keep, program, labels_at, event, measures)
        if reals > 0:
            numbers = to.reals
            to_real, from_real = np.uint64(target) * of_reals, np.uint64(place) * of_reals
            times, scale = source.reals[from_real], source.reals[from_real + _1]
            added = np.uint64(event) * of_real
            for number in range(real):
                one = _2 * np.uint64(number)
                other, to_other = from_real + _2 + one, to_real + _2 + one
                value, value_scale = source.reals[other], source.reals[other + _1]
                # An infinite value times no match would be no number.
                if times != 0.0 and belongs(labels, program, labels_at, whole + number):
                    more, more_scale = measures.real[added + one], measures.real[added + one + _1]
                    value, value_scale = _plus(value, value_scale, times * more, scale + more_scale)
                    if number < counted:
                        of_count = _2 * np.uint64(real)
                        other, to_count = other + of_count, to_other + of_count
                        count, count_scale = source.reals[other], source.reals[other + _1]
                        if more_scale != UNKNOWN:
                            count, count_scale = _plus(count, count_scale, times, scale)
                        if keep:
                            count, count_scale = _plus(
                                numbers[to_count], numbers[to_count + _1], count, count_scale
                            )
                        numbers[to_count], numbers[to_count + _1] = count, count_scale
                elif number < counted:
                    of_count = _2 * np.uint64(real)
                    other, to_count = other + of_count, to_other + of_count
                    count, count_scale = source.reals[other], source.reals[other + _1]
                    if keep:
                        count, count_scale = _plus(
                            numbers[to_count], numbers[to_count + _1], count, count_scale
                        )
                    numbers[to_count], numbers[to_count + _1] = count, count_scale
                if keep:
                    value, value_scale = _plus(
                        numbers[to_other], numbers[to_other + _1], value, value_scale
                    )
                numbers[to_other], numbers[to_other + _1] = value, value_scale
            if keep:
                times, scale = _plus(numbers[to_real], numbers[to_real + _1], times, scale)
            numbers[to_real], numbers[to_real + _1] = times, scale
        sums[at], sums[at + _1] = add_wide(sums[at] & mask, sums[at + _1] & mask, high, low)
        return _NONE

    @njit(**PART)
    def add_product(to, target, first, place, second, other):  # type: ignore[no-untyped-def]
        """Add the matches that are put together of two parts."""
        sums, ones, twos = to.words, first.words, second.words
        at = np.uint64(target) * of_words
        one, two = np.uint64(place) * of_words, np.uint64(other) * of_words
        high, low = ones[one], ones[one + _1]
        other_high, other_low = twos[two], twos[two + _1]
        if (high | low) and (other_high | other_low):
            top, rest = multiply_wide(high, low, other_high, other_low)
            sums[at], sums[at + _1] = add_wide(sums[at], sums[at + _1], top, rest)
            for number in range(2 * whole):
                word = _2 + _2 * np.uint64(number)
                here, left, right = at + word, one + word, two + word
                if (ones[left] | twos[right] | sums[here]) >= FULL:
                    sums[here], sums[here + _1] = FULL, _NONE
                    continue
                top, rest = multiply_wide(high, low, twos[right], twos[right + _1])
                more, most = multiply_wide(other_high, other_low, ones[left], ones[left + _1])
                top, rest = add_wide(top, rest, more, most)
                sums[here], sums[here + _1] = add_wide(sums[here], sums[here + _1], top, rest)
            multiply_others(to, target, first, place, second, other)
            if reals > 0:
                at = np.uint64(target) * of_reals
                one, two = np.uint64(place) * of_reals, np.uint64(other) * of_reals
                times, scale = first.reals[one], first.reals[one + _1]
                other_times, other_scale = second.reals[two], second.reals[two + _1]
                to.reals[at], to.reals[at + _1] = _plus(
                    to.reals[at], to.reals[at + _1], times * other_times, scale + other_scale
                )
                for number in range(1, reals):
                    next_one = _2 * np.uint64(number)
                    here, left, right = at + next_one, one + next_one, two + next_one
                    value, value_scale = _plus(
                        first.reals[left] * other_times,
                        first.reals[left + _1] + other_scale,
                        times * second.reals[right],
                        scale + second.reals[right + _1],
                    )
                    to.reals[here], to.reals[here + _1] = _plus(
                        to.reals[here], to.reals[here + _1], value, value_scale
                    )
        return _NONE

    @njit(**PART)
    def settle(to, first, end):  # type: ignore[no-untyped-def]
        """Bring the sizes of real numbers near 1, between `SMALL` and `LARGE`."""
        for number in range(np.int64(first) * reals, np.int64(end) * reals):
            at = _2 * np.uint64(number)
            size = abs(to.reals[at])
            while LARGE < size < np.inf:
                to.reals[at], to.reals[at + _1] = to.reals[at] * _DOWN, to.reals[at + _1] + 1.0
                size *= _DOWN
            while 0.0 < size < SMALL:
                to.reals[at], to.reals[at + _1] = to.reals[at] * _UP, to.reals[at + _1] - 1.0
                size *= _UP

    return clear, set_one, copy, add, move, add_product, settle

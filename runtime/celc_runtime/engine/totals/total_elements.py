"""Totals of sets of partial matches, as elements of a commutative semiring.

An element holds the number of matches of a set, and for each aggregate its value over all of them.
The sum of two elements is the total of both sets together. The product is the total of all pairs: a
match of the first set joined with a match of the second. `engine/totals/kernel.py` says how they
are used.

Rejected: one scale for all real numbers of an element, and a scale for each number only in elements
where one is not enough. Elements with one scale are smaller. But each step then has the code for
both kinds, which doubled the time of a step and the time to compile.

Long: the parts of one kernel, which share the lengths of an element.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.totals.scaled_numbers import (
    NOTHING_FROM,
    UNKNOWN,
    settled,
    side_by_side,
)
from celc_runtime.engine.values.wide_numbers import (
    FULL,
    add_wide,
    multiply_by_word,
    multiply_wide,
)
from celc_runtime.jit.kernels import njit

NOTHING = np.int64(2**63 - 1)
"""The least key where there are no values. No key is greater."""

KERNEL: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
PART: dict[str, Any] = {
    **KERNEL,
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options for parts of kernels, which are inlined. As calls, they took longer to pass these arrays
than all work of an event."""


class Elements(NamedTuple):
    """Elements of the semiring, one after another.

    The arrays have one axis. Then machine code finds an element without reading shapes, which took
    a tenth of the time. `bounded_elements` has another layout for real numbers.
    """

    words: np.ndarray
    """uint64[elements × words]: the count (high, low), then the whole sums, then the known bits.

    A whole sum has two numbers of two words: the sum of its positive values, and the sum of its
    negative ones without their sign. A known bit says whether a sum has any values."""
    reals: np.ndarray
    """float64, as `scaled_numbers`: the count, the real sums, and the numbers of values of the
    counted sums; empty if the query needs no real numbers."""
    least: np.ndarray
    """int64[elements × ordered], the least keys. The first ones are pairs: a key, then a second key
    that decides if two first ones are equal."""


class Measures(NamedTuple):
    """What each event of a batch adds to each measure."""

    whole: np.ndarray  # int64[rows × whole]; NULL adds 0
    known: np.ndarray  # uint64[rows × known words], a bit for each known sum
    real: np.ndarray  # float64[rows × 2 · real], as `scaled_numbers`; NULL adds `UNKNOWN`
    ordered: np.ndarray  # int64[rows × ordered], NOTHING for NULL


class Shape(NamedTuple):
    """The number of measures of each kind."""

    whole: int
    known: int  # the first sums of `whole`: those that are NULL if they have no values
    real: int  # −1: not even the count is needed as a real number
    counted: int  # the first sums of `real`: those that need the number of their values
    ordered: int
    pairs: int = 0  # the pairs among `ordered`, which come first and take two numbers each

    @property
    def numbers(self) -> int:
        """The number of reals of an element."""
        return 1 + self.real + self.counted

    @property
    def known_words(self) -> int:
        """The number of words that hold a bit for each known sum."""
        return -(-self.known // 64)

    @property
    def words(self) -> int:
        """The number of words of an element."""
        return 2 + 4 * self.whole + self.known_words

    @property
    def measures(self) -> int:
        return self.whole + max(self.real, 0) + self.ordered

    @property
    def label_words(self) -> int:
        """The number of words that hold a bit for each measure."""
        return max(1, -(-self.measures // 64))


_GROWTH = 192
"""Bits by which a number itself grows between two calls of `settle`, at most. So a count stays
below 2³²⁰ and a sum below 2⁴⁵³, and their product fits a DOUBLE."""
_ALL_BITS = np.uint64(2**64 - 1)
_NONE = np.uint64(0)
_1, _2, _3, _4 = (np.uint64(number) for number in (1, 2, 3, 4))


@njit(**PART)
def steps_between(growth):  # type: ignore[no-untyped-def]
    """The number of events after which numbers are settled, if one event adds up to `growth`
    bits."""
    return max(np.int64(1), np.int64(_GROWTH) // np.int64(growth))


def new_elements(count: int, shape: Shape) -> Elements:
    """Elements of no matches: counts and sums are 0, least keys `NOTHING`."""
    numbers = count, shape.numbers
    return Elements(
        np.zeros(count * shape.words, np.uint64),
        side_by_side(np.zeros(numbers), np.full(numbers, UNKNOWN)),
        np.full(count * shape.ordered, NOTHING, np.int64),
    )


@njit(**PART)
def belongs(labels, program, labels_at, number):  # type: ignore[no-untyped-def]
    """Whether an event counts for a measure; `labels_at` is the first of its words in `program`."""
    if number >= 64:
        labels = program[labels_at + np.uint64(number // 64)]
    return labels >> np.uint64(number % 64) & _1 != _NONE


@cache
def parts_of_others(shape: Shape) -> tuple[Callable[..., Any], ...]:
    """The kernel parts that elements with and without bounds share.

    `clear` and `copy` for words and least keys; `move` and `multiply` for the bits of known sums
    and least keys.
    """
    whole, ordered, words, known_words = shape.whole, shape.ordered, shape.words, shape.known_words
    of_words, of_least, of_known = (np.uint64(n) for n in (words, ordered, known_words))
    first_known, first_ordered = np.uint64(2 + 4 * whole), whole + max(shape.real, 0)
    pairs, paired = shape.pairs, 2 * shape.pairs

    @njit(**PART)
    def pair_at(least, place):  # type: ignore[no-untyped-def]
        return least[place], least[place + _1]

    @njit(**PART)
    def lower(one, other):  # type: ignore[no-untyped-def]
        is_less = one[0] < other[0] or (one[0] == other[0] and one[1] < other[1])
        return one if is_less else other

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
        for number in range(pairs):
            one = np.uint64(2 * number)
            pair = pair_at(source.least, from_least + one)
            if is_some & belongs(labels, program, labels_at, first_ordered + 2 * number):
                pair = lower(pair, pair_at(measures.ordered, added + one))
            if keep:
                pair = lower(pair, pair_at(to.least, to_least + one))
            to.least[to_least + one], to.least[to_least + one + _1] = pair
        for number in range(paired, ordered):
            one = np.uint64(number)
            least, kept = source.least[from_least + one], to.least[to_least + one]
            more = measures.ordered[added + one]
            has_more = is_some & belongs(labels, program, labels_at, first_ordered + number)
            least = min(least, more if has_more else NOTHING)
            to.least[to_least + one] = min(kept if keep else NOTHING, least)

    @njit(**PART)
    def multiply(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
        at = np.uint64(target) * of_words + first_known
        mask = _ALL_BITS * np.uint64(keep)
        one = np.uint64(place) * of_words + first_known
        two = np.uint64(other) * of_words + first_known
        for index in range(known_words):
            word = np.uint64(index)
            bits = first.words[one + word] | second.words[two + word]
            to.words[at + word] = (to.words[at + word] & mask) | bits
        at = np.uint64(target) * of_least
        one, two = np.uint64(place) * of_least, np.uint64(other) * of_least
        for number in range(pairs):
            here = np.uint64(2 * number)
            pair = lower(pair_at(first.least, one + here), pair_at(second.least, two + here))
            if keep:
                pair = lower(pair, pair_at(to.least, at + here))
            to.least[at + here], to.least[at + here + _1] = pair
        for number in range(paired, ordered):
            next_one = np.uint64(number)
            least = min(first.least[one + next_one], second.least[two + next_one])
            kept = to.least[at + next_one]
            to.least[at + next_one] = min(kept if keep else NOTHING, least)

    return clear, copy, move, multiply


@cache
def parts_of_scaled(real: int, counted: int, whole: int) -> tuple[Callable[..., Any], ...]:
    """`clear`, `copy`, `move` and `multiply` for the reals of elements, as in `parts_of_totals`.

    The reals: the count, `real` sums, and the number of values of the first `counted` sums. These
    sums come after the `whole` measures.
    """
    numbers = 1 + real + counted
    length, to_scale = np.uint64(2 * numbers), np.uint64(numbers)

    @njit(**PART)
    def plus(size, scale, more, of_more):  # type: ignore[no-untyped-def]
        if scale < of_more:
            size, scale, more, of_more = more, of_more, size, scale
        if scale != of_more:
            apart = of_more - scale
            more *= math.ldexp(1.0, int(apart)) if apart > NOTHING_FROM else 0.0
        return size + more, scale

    @njit(**PART)
    def clear(to, target):  # type: ignore[no-untyped-def]
        at = np.uint64(target) * length
        for number in range(numbers):
            size = at + np.uint64(number)
            to[size], to[size + to_scale] = 0.0, UNKNOWN

    @njit(**PART)
    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        at, of = np.uint64(target) * length, np.uint64(place) * length
        for number in range(2 * numbers):
            to[at + np.uint64(number)] = source[of + np.uint64(number)]

    @njit(**PART)
    def move(to, target, source, place, keep, program, labels_at, event, measured):  # type: ignore[no-untyped-def]
        at, of = np.uint64(target) * length, np.uint64(place) * length
        labels = program[labels_at]
        times, of_times = source[of], source[of + to_scale]
        first = np.uint64(event) * np.uint64(2 * real)
        for number in range(numbers):
            to_size, from_size = at + np.uint64(number), of + np.uint64(number)
            size, scale = source[from_size], source[from_size + to_scale]
            place_of_sum = number - 1 if number <= real else number - 1 - real
            # An infinite value times zero matches would be NaN.
            if (
                number > 0
                and times != 0.0
                and belongs(labels, program, labels_at, whole + place_of_sum)
            ):
                value_at = first + np.uint64(2 * place_of_sum)
                value, of_value = measured[value_at], measured[value_at + _1]
                if number > real:
                    is_known = of_value != UNKNOWN
                    value, of_value = (1.0, 0.0) if is_known else (0.0, UNKNOWN)
                size, scale = plus(size, scale, times * value, of_times + of_value)
            if keep:
                size, scale = plus(to[to_size], to[to_size + to_scale], size, scale)
            to[to_size], to[to_size + to_scale] = size, scale

    @njit(**PART)
    def multiply(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
        at = np.uint64(target) * length
        one, two = np.uint64(place) * length, np.uint64(other) * length
        times, of_times = first[one], first[one + to_scale]
        others, of_others = second[two], second[two + to_scale]
        for number in range(numbers):
            here, left, right = (
                at + np.uint64(number),
                one + np.uint64(number),
                two + np.uint64(number),
            )
            size, scale = first[left] * others, first[left + to_scale] + of_others
            if number > 0:
                size, scale = plus(
                    size, scale, times * second[right], of_times + second[right + to_scale]
                )
            if keep:
                size, scale = plus(to[here], to[here + to_scale], size, scale)
            to[here], to[here + to_scale] = size, scale

    return clear, copy, move, multiply


@cache
def parts_of_totals(
    whole: int, known: int, real: int, counted: int, ordered: int, pairs: int
) -> tuple[Callable[..., Any], ...]:
    """The kernel parts of an update, for elements of one shape.

    Machine code is made for each shape, because loops of known length are unrolled. With lengths
    read at run time, one measure took three times as long as none. Places are unsigned, because
    Numba tests signed ones for being negative.
    """
    shape = Shape(whole, known, real, counted, ordered, pairs)
    reals = shape.numbers
    clear_others, copy_others, move_others, multiply_others = parts_of_others(shape)
    of_words, of_reals = np.uint64(shape.words), np.uint64(2 * reals)
    of_whole, to_scale = np.uint64(whole), np.uint64(reals)
    clear_scaled, copy_scaled, move_scaled, multiply_scaled = parts_of_scaled(
        max(real, 0), counted, whole
    )

    @njit(**PART)
    def clear(to, place):  # type: ignore[no-untyped-def]
        clear_others(to, place)
        if reals > 0:
            clear_scaled(to.reals, place)

    @njit(**PART)
    def set_one(to, place):  # type: ignore[no-untyped-def]
        """Write one match without events. The element must be clear."""
        to.words[np.uint64(place) * of_words + _1] = _1
        if reals > 0:
            at = np.uint64(place) * of_reals
            to.reals[at], to.reals[at + to_scale] = 1.0, 0.0

    @njit(**PART)
    def copy(to, target, source, place):  # type: ignore[no-untyped-def]
        copy_others(to, target, source, place)
        if reals > 0:
            copy_scaled(to.reals, target, source.reals, place)

    @njit(**PART)
    def move(to, target, source, place, keep, program, labels_at, event, measures):  # type: ignore[no-untyped-def]
        """Add the matches of the source, each with the event added, to the target.

        The target is emptied first if `keep` is 0. Both may be the same element.
        """
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
                # The sum is beyond all bounds already. Adding changes nothing.
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
                # No branch: no processor can predict the next sign.
                to_sum += np.uint64(value >> 63) & _2
                # As a word, the absolute value of the least number is 2⁶³.
                top, rest = multiply_by_word(high, low, np.uint64(abs(value)))
                sums[to_sum], sums[to_sum + _1] = add_wide(
                    sums[to_sum], sums[to_sum + _1], top, rest
                )
        move_others(to, target, source, place, keep, program, labels_at, event, measures)
        if reals > 0:
            move_scaled(
                to.reals,
                target,
                source.reals,
                place,
                keep,
                program,
                labels_at,
                event,
                measures.real,
            )
        sums[at], sums[at + _1] = add_wide(sums[at] & mask, sums[at + _1] & mask, high, low)
        return _NONE

    @njit(**PART)
    def add_product(to, target, keep, first, place, second, other):  # type: ignore[no-untyped-def]
        """Add the matches that consist of a part of each of two elements."""
        sums, ones, twos = to.words, first.words, second.words
        mask = _ALL_BITS * np.uint64(keep)
        at = np.uint64(target) * of_words
        one, two = np.uint64(place) * of_words, np.uint64(other) * of_words
        high, low = ones[one], ones[one + _1]
        other_high, other_low = twos[two], twos[two + _1]
        if (high | low) and (other_high | other_low):
            top, rest = multiply_wide(high, low, other_high, other_low)
            sums[at], sums[at + _1] = add_wide(sums[at] & mask, sums[at + _1] & mask, top, rest)
            for number in range(2 * whole):
                word = _2 + _2 * np.uint64(number)
                here, left, right = at + word, one + word, two + word
                kept_top, kept_rest = sums[here] & mask, sums[here + _1] & mask
                if (ones[left] | twos[right] | kept_top) >= FULL:
                    sums[here], sums[here + _1] = FULL, _NONE
                    continue
                top, rest = multiply_wide(high, low, twos[right], twos[right + _1])
                more, most = multiply_wide(other_high, other_low, ones[left], ones[left + _1])
                top, rest = add_wide(top, rest, more, most)
                sums[here], sums[here + _1] = add_wide(kept_top, kept_rest, top, rest)
            multiply_others(to, target, keep, first, place, second, other)
            if reals > 0:
                multiply_scaled(to.reals, target, keep, first.reals, place, second.reals, other)
        elif keep == 0:
            clear(to, target)
        return _NONE

    @njit(**PART)
    def settle(to, first, end):  # type: ignore[no-untyped-def]
        """Bring the sizes of real numbers near 1."""
        for element in range(np.int64(first), np.int64(end)):
            for number in range(reals):
                size = np.uint64(2 * reals * element + number)
                scale = size + to_scale
                to.reals[size], to.reals[scale] = settled(to.reals[size], to.reals[scale])

    return clear, set_one, copy, move, add_product, settle

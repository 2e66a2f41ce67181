"""Whole numbers of two 64-bit words, for counts of matches: 2⁶³ of them are 63 events under a `+`.

A count is never negative. From 2¹²⁷ on it stays at 2¹²⁷ (high word `FULL`), which stands for all
numbers that large: products and sums of such numbers, but for those with 0, are as large again. So
whether a total leaves 38 digits is known exactly, however large the numbers on the way.

A signed sum wraps around at 2¹²⁸, and is right where the sum of the absolute values is below 2¹²⁷.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.jit.kernels import njit

FULL = np.uint64(1 << 63)
"""The high word of every number from 2¹²⁷ on."""

_ZERO = np.uint64(0)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True, error_model="numpy", _nrt=False)
def add_wide(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """(high, low) of the sum of two counts."""
    total = low + other_low
    top = high + other_high + np.uint64(total < low)
    if (high | other_high | top) >= FULL:
        return FULL, _ZERO
    return top, total


@njit(nogil=True, error_model="numpy", _nrt=False)
def add_wrapping(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """(high, low) of the sum of two signed numbers, modulo 2¹²⁸."""
    total = low + other_low
    return high + other_high + np.uint64(total < low), total


@njit(nogil=True, error_model="numpy", _nrt=False)
def product_of_words(first, second):  # type: ignore[no-untyped-def]
    """(high, low) of the product of two words."""
    low_first, high_first = first & _LOW, first >> _HALF
    low_second, high_second = second & _LOW, second >> _HALF
    lows = low_first * low_second
    cross, other_cross = low_first * high_second, high_first * low_second
    middle = (lows >> _HALF) + (cross & _LOW) + (other_cross & _LOW)
    high = high_first * high_second + (cross >> _HALF) + (other_cross >> _HALF)
    return high + (middle >> _HALF), (middle << _HALF) | (lows & _LOW)


@njit(nogil=True, error_model="numpy", _nrt=False)
def multiply_wide(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """(high, low) of the product of two counts."""
    if (high | low) == 0 or (other_high | other_low) == 0:
        return _ZERO, _ZERO
    if high == 0 and other_high == 0:
        top, rest = product_of_words(low, other_low)
        return (FULL, _ZERO) if top >= FULL else (top, rest)
    if high != 0 and other_high != 0:
        return FULL, _ZERO
    if high == 0:
        high, low, other_low = other_high, other_low, low
    carried, rest = product_of_words(low, other_low)
    over, top = product_of_words(high, other_low)
    if over != 0 or top >= FULL:
        return FULL, _ZERO
    top += carried
    return (FULL, _ZERO) if top >= FULL else (top, rest)


@njit(nogil=True, error_model="numpy", _nrt=False)
def multiply_by_word(high, low, word):  # type: ignore[no-untyped-def]
    """(high, low) of the product of a number and a word, modulo 2¹²⁸, and whether the product of
    the count is 2¹²⁷ or more."""
    top, rest = product_of_words(low, word)
    if high == 0:
        return top, rest, top >= FULL
    over, more = product_of_words(high, word)
    total = top + more
    return total, rest, over != 0 or total < top or total >= FULL


@njit(nogil=True, error_model="numpy", _nrt=False)
def multiply_wrapping(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """(high, low) of the product of two signed numbers, modulo 2¹²⁸."""
    top, rest = product_of_words(low, other_low)
    return top + high * other_low + low * other_high, rest

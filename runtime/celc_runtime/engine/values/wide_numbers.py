"""Whole numbers of two 64-bit words, for counts of matches: 63 events under a `+` have 2⁶³ matches.

A count is never negative. From 2¹²⁷ on it stays at 2¹²⁷ (high word `FULL`), which stands for all
larger numbers. Sums and products with such a number are as large again, except products with 0. So
it
is always known exactly whether a total leaves 38 digits.

A signed sum wraps around at 2¹²⁸. It is right if the sum of the absolute values is below 2¹²⁷.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from celc_runtime.jit.kernels import njit

FULL = np.uint64(1 << 63)  # the high word of every count from 2¹²⁷ on

_ZERO = np.uint64(0)


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


def product_of_words(first: Any, second: Any) -> Any:
    """(high, low) of the product of two words."""
    product = int(first) * int(second)
    return np.uint64(product >> 64), np.uint64(product & (2**64 - 1))


@intrinsic
def _multiply(typing_context, first, second):  # type: ignore[no-untyped-def]
    """(high, low) of the product of two words, as one machine instruction."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word, both = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, both) for argument in arguments))
        high = builder.trunc(builder.lshr(product, both(64)), word)
        words = [high, builder.trunc(product, word)]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), code


@overload(product_of_words, jit_options={"nogil": True, "_nrt": False}, inline="always")
def _product_of_words(first, second):  # type: ignore[no-untyped-def]
    return lambda first, second: _multiply(first, second)


@njit(nogil=True, error_model="numpy", _nrt=False)
def multiply_wide(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """(high, low) of the product of two counts."""
    top, rest = product_of_words(low, other_low)
    if (high | other_high) != 0:
        if high != 0 and other_high != 0:
            return FULL, _ZERO
        # One of the high words is 0.
        over, more = product_of_words(high | other_high, other_low if high != 0 else low)
        total = top + more
        if over != 0 or total < top:
            return FULL, _ZERO
        top = total
    return (FULL, _ZERO) if top >= FULL else (top, rest)


@njit(nogil=True, error_model="numpy", _nrt=False)
def multiply_by_word(high, low, word):  # type: ignore[no-untyped-def]
    """(high, low) of the product of a count and a word."""
    top, rest = product_of_words(low, word)
    if high != 0:
        over, more = product_of_words(high, word)
        total = top + more
        if over != 0 or total < top:
            return FULL, _ZERO
        top = total
    return (FULL, _ZERO) if top >= FULL else (top, rest)


@njit(nogil=True, error_model="numpy", _nrt=False)
def multiply_wrapping(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """(high, low) of the product of two signed numbers, modulo 2¹²⁸."""
    top, rest = product_of_words(low, other_low)
    return top + high * other_low + low * other_high, rest

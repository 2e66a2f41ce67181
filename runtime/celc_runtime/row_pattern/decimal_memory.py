"""DECIMALs in the registers of a path, which are numbers of 64 bits.

A value of more than 18 digits has two of them. A sum has three, so that it is exact whatever its
parts are, and equal sums are equal registers.
"""

import numpy as np

from celc_runtime.engine.values.decimals import decimal_of_words
from celc_runtime.jit.kernels import njit
from celc_runtime.row_pattern import decimal_memory_in_python as plain


@njit(nogil=True, cache=True, plain=plain.pair_in)
def pair_in(registers, at):  # type: ignore[no-untyped-def]
    """The value in two registers."""
    return np.int64(registers[at]), np.uint64(registers[at + 1])


@njit(nogil=True, cache=True, plain=plain.put_pair)
def put_pair(registers, at, value):  # type: ignore[no-untyped-def]
    """Write a value into two registers."""
    registers[at], registers[at + 1] = value[0], np.int64(value[1])


@njit(nogil=True, cache=True, plain=plain.add_to_sum)
def add_to_sum(registers, at, value):  # type: ignore[no-untyped-def]
    """Add a value to the sum in three registers."""
    top, high, low = registers[at], np.uint64(registers[at + 1]), np.uint64(registers[at + 2])
    upper, lower = np.uint64(value[0]), value[1]
    low += lower
    carry = np.uint64(low < lower)
    high += carry
    top += np.int64(high < carry)
    high += upper
    top += np.int64(high < upper) + (value[0] >> 63)
    registers[at], registers[at + 1], registers[at + 2] = top, np.int64(high), np.int64(low)


@njit(nogil=True, cache=True, plain=plain.decimal_sum)
def decimal_sum(registers, at, digits):  # type: ignore[no-untyped-def]
    """The sum in three registers, as a DECIMAL with at most `digits` digits."""
    high, low = np.int64(registers[at + 1]), np.uint64(registers[at + 2])
    return decimal_of_words(np.int64(registers[at]), high, low, digits)

"""Arithmetic of DECIMALs of more than 18 digits, as Spark's with ANSI mode off.

A DECIMAL is its whole number of the smallest unit; the scale is known when code is written. Up to
18 digits it is an int64, and ordinary arithmetic serves. Longer ones are a pair (high, low) of an
int64 and a uint64, two's complement as in Arrow's 128 bits: pairs compare as Python and Numba
compare tuples.

A result of more digits than its type has is `TOO_LARGE`, which `is_decimal` tells from all others.
What is in between has 256 bits: four words, the highest first, without a sign. A result is rounded
once, HALF_UP.
"""

import numpy as np

from celc_runtime.engine.values import decimals_in_python as plain
from celc_runtime.engine.values.wide_numbers import product_of_words
from celc_runtime.jit.kernels import njit

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_HALF, _REST = np.uint64(32), np.uint64(2**32 - 1)
_TOP = np.uint64(63)
_ALL = np.uint64(2**64 - 1)
_TEN, _FIVE = np.uint64(10), np.uint64(5)
_HIGHEST = np.int64(2**63 - 1)

_POWERS = np.array([10**n for n in range(20)], np.uint64)
"""Powers of ten that one word holds."""
_HIGH = np.array([10**n >> 64 for n in range(39)], np.uint64)
_LOW = np.array([10**n & (2**64 - 1) for n in range(39)], np.uint64)
"""The words of the powers of ten that two words hold."""
_POWERS_OF_DOUBLES = np.array([10.0**n for n in range(23)])
"""Powers of ten that a DOUBLE holds exactly."""

MOST_DIGITS = 38


@njit(nogil=True, cache=True, plain=plain.wide_of)
def wide_of(value):  # type: ignore[no-untyped-def]
    """An int64 as a pair."""
    value = np.int64(value)
    return np.int64(value >> 63), np.uint64(value)


@njit(nogil=True, cache=True, plain=plain.wide_in)
def wide_in(record):  # type: ignore[no-untyped-def]
    """An element of a column of pairs."""
    return np.int64(record["high"]), np.uint64(record["low"])


@njit(nogil=True, cache=True, plain=plain.narrow_of)
def narrow_of(value):  # type: ignore[no-untyped-def]
    """A pair of at most 18 digits as an int64."""
    return np.int64(value[1])


@njit(nogil=True, cache=True, plain=plain.is_decimal)
def is_decimal(value):  # type: ignore[no-untyped-def]
    """Whether a result is a DECIMAL: not `TOO_LARGE`."""
    return value[0] != _HIGHEST


@njit(nogil=True, cache=True)
def decimal_of_words(top, high, low, digits):  # type: ignore[no-untyped-def]
    """A sum of three words, in two's complement, as a DECIMAL with at most `digits` digits."""
    if top != high >> 63:
        return _too_large()
    size = absolute_decimal((high, low))
    return _signed(high < 0, (_ZERO, _ZERO, np.uint64(size[0]), size[1]), digits)


@njit(nogil=True, cache=True)
def _too_large():  # type: ignore[no-untyped-def]
    return _HIGHEST, _ALL


# --- 128 bits -------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, plain=plain.negate_decimal)
def negate_decimal(value):  # type: ignore[no-untyped-def]
    """-value."""
    # A caller in Python has whole numbers, which Numba takes for int64.
    low = ~np.uint64(value[1]) + _ONE
    high = ~np.uint64(value[0]) + np.uint64(low == _ZERO)
    return np.int64(high), low


@njit(nogil=True, cache=True, plain=plain.absolute_decimal)
def absolute_decimal(value):  # type: ignore[no-untyped-def]
    """ABS(value)."""
    if value[0] < 0:
        return negate_decimal(value)
    return np.int64(value[0]), np.uint64(value[1])


@njit(nogil=True, cache=True)
def _words(value):  # type: ignore[no-untyped-def]
    """The two words of a value without its sign."""
    size = absolute_decimal(value)
    return np.uint64(size[0]), size[1]


@njit(nogil=True, cache=True)
def _signed(negative, words, digits):  # type: ignore[no-untyped-def]
    """A number of four words as a DECIMAL with at most `digits` digits."""
    a, b, c, d = words
    high, low = _HIGH[digits], _LOW[digits]
    if (a | b) != _ZERO or c > high or (c == high and d >= low):
        return _too_large()
    found = np.int64(c), d
    return negate_decimal(found) if negative else found


# --- 256 bits -------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def less_words(one, other):  # type: ignore[no-untyped-def]
    for place in range(4):
        if one[place] != other[place]:
            return one[place] < other[place]
    return False


@njit(nogil=True, cache=True)
def sum_of_words(one, other):  # type: ignore[no-untyped-def]
    d = one[3] + other[3]
    carry = np.uint64(d < one[3])
    c = one[2] + other[2]
    more = np.uint64(c < one[2])
    c += carry
    carry = more | np.uint64(c < carry)
    b = one[1] + other[1]
    more = np.uint64(b < one[1])
    b += carry
    carry = more | np.uint64(b < carry)
    return one[0] + other[0] + carry, b, c, d


@njit(nogil=True, cache=True)
def difference_of_words(one, other):  # type: ignore[no-untyped-def]
    """one - other, which is not negative."""
    turned = sum_of_words((~other[0], ~other[1], ~other[2], ~other[3]), (_ZERO, _ZERO, _ZERO, _ONE))
    return sum_of_words(one, turned)


@njit(nogil=True, cache=True)
def words_times(words, factor):  # type: ignore[no-untyped-def]
    """The product with a word; all bits are set where 256 do not hold it."""
    a, b, c, d = words
    carry, d = product_of_words(d, factor)
    top, c = product_of_words(c, factor)
    c += carry
    carry = top + np.uint64(c < carry)
    top, b = product_of_words(b, factor)
    b += carry
    carry = top + np.uint64(b < carry)
    top, a = product_of_words(a, factor)
    a += carry
    if top != _ZERO or a < carry:
        return _ALL, _ALL, _ALL, _ALL
    return a, b, c, d


@njit(nogil=True, cache=True)
def _times_power(words, power):  # type: ignore[no-untyped-def]
    """The product with a power of ten."""
    while power > 0:
        step = min(power, 19)
        words = words_times(words, _POWERS[step])
        power -= step
    return words


@njit(nogil=True, cache=True)
def _over(words, divisor):  # type: ignore[no-untyped-def]
    """The quotient by a number of 32 bits, cut."""
    a, b, c, d = words
    rest = a % divisor
    a //= divisor
    b, rest = _long_step(b, rest, divisor)
    c, rest = _long_step(c, rest, divisor)
    d, rest = _long_step(d, rest, divisor)
    return a, b, c, d


@njit(nogil=True, cache=True)
def _long_step(word, rest, divisor):  # type: ignore[no-untyped-def]
    """(quotient, rest) of (rest, word) by a number of 32 bits."""
    upper = (rest << _HALF) | (word >> _HALF)
    lower = ((upper % divisor) << _HALF) | (word & _REST)
    return ((upper // divisor) << _HALF) | (lower // divisor), lower % divisor


@njit(nogil=True, cache=True)
def _over_power(words, power):  # type: ignore[no-untyped-def]
    """The quotient by a power of ten, HALF_UP. The digits behind the first one that is cut off do
    not matter."""
    if power == 0:
        return words
    power -= 1
    while power > 0:
        step = min(power, 9)
        words = _over(words, _POWERS[step])
        power -= step
    return _over(sum_of_words(words, (_ZERO, _ZERO, _ZERO, _FIVE)), _TEN)


@njit(nogil=True, cache=True)
def _rescaled(words, power):  # type: ignore[no-untyped-def]
    """The number times 10 to a power, HALF_UP where that is negative."""
    return _times_power(words, power) if power >= 0 else _over_power(words, -power)


@njit(nogil=True, cache=True)
def _divided(words, high, low):  # type: ignore[no-untyped-def]
    """(quotient, high and low word of the rest) by a number below 2¹²⁷, bit by bit."""
    quotient = (_ZERO, _ZERO, _ZERO, _ZERO)
    top, rest = _ZERO, _ZERO
    begun = False
    for place in range(4):
        word, made = words[place], _ZERO
        if word != _ZERO or begun:
            begun = True
            for _ in range(64):
                top = (top << _ONE) | (rest >> _TOP)
                rest = (rest << _ONE) | (word >> _TOP)
                word <<= _ONE
                made <<= _ONE
                if top > high or (top == high and rest >= low):
                    top -= high + np.uint64(rest < low)
                    rest -= low
                    made |= _ONE
        quotient = (quotient[1], quotient[2], quotient[3], made)
    return quotient, top, rest


# --- operations -----------------------------------------------------------------------------------


@njit(nogil=True, cache=True, plain=plain.rescale_decimal)
def rescale_decimal(value, power, digits):  # type: ignore[no-untyped-def]
    """A DECIMAL in a type with at most `digits` digits, and `power` decimals more (or fewer)."""
    high, low = _words(value)
    return _signed(value[0] < 0, _rescaled((_ZERO, _ZERO, high, low), power), digits)


@njit(nogil=True, cache=True, plain=plain.floor_decimal)
def floor_decimal(value, scale):  # type: ignore[no-untyped-def]
    """The greatest whole number that is not above value / 10^scale."""
    return _whole(value, scale, value[0] < 0)


@njit(nogil=True, cache=True, plain=plain.ceil_decimal)
def ceil_decimal(value, scale):  # type: ignore[no-untyped-def]
    """The least whole number that is not below value / 10^scale."""
    return _whole(value, scale, value[0] >= 0)


@njit(nogil=True, cache=True)
def _whole(value, scale, away):  # type: ignore[no-untyped-def]
    """The number without its decimals; `away`: what they were brings it away from 0."""
    high, low = _words(value)
    found, left = (_ZERO, _ZERO, high, low), scale
    while left > 0:
        step = min(left, 9)
        found = _over(found, _POWERS[step])
        left -= step
    if away and less_words(_times_power(found, scale), (_ZERO, _ZERO, high, low)):
        found = sum_of_words(found, (_ZERO, _ZERO, _ZERO, _ONE))
    return _signed(value[0] < 0, found, MOST_DIGITS)


@njit(nogil=True, cache=True, plain=plain.add_decimals)
def add_decimals(left, right, up_left, up_right, down, digits):  # type: ignore[no-untyped-def]
    """left · 10^up_left + right · 10^up_right, with `down` decimals less."""
    high, low = _words(left)
    one = _times_power((_ZERO, _ZERO, high, low), up_left)
    high, low = _words(right)
    other = _times_power((_ZERO, _ZERO, high, low), up_right)
    negative = left[0] < 0
    if negative == (right[0] < 0):
        total = sum_of_words(one, other)
    elif less_words(one, other):
        negative, total = not negative, difference_of_words(other, one)
    else:
        total = difference_of_words(one, other)
    return _signed(negative, _over_power(total, down), digits)


@njit(nogil=True, cache=True, plain=plain.subtract_decimals)
def subtract_decimals(left, right, up_left, up_right, down, digits):  # type: ignore[no-untyped-def]
    """left · 10^up_left − right · 10^up_right, with `down` decimals less."""
    return add_decimals(left, negate_decimal(right), up_left, up_right, down, digits)


@njit(nogil=True, cache=True, plain=plain.multiply_decimals)
def multiply_decimals(left, right, down, digits):  # type: ignore[no-untyped-def]
    """left · right, with `down` decimals less."""
    high, low = _words(left)
    other_high, other_low = _words(right)
    c, d = product_of_words(low, other_low)
    b, more = product_of_words(high, other_low)
    product = sum_of_words((_ZERO, _ZERO, c, d), (_ZERO, b, more, _ZERO))
    b, more = product_of_words(low, other_high)
    product = sum_of_words(product, (_ZERO, b, more, _ZERO))
    a, b = product_of_words(high, other_high)
    product = sum_of_words(product, (a, b, _ZERO, _ZERO))
    return _signed((left[0] < 0) != (right[0] < 0), _rescaled(product, -down), digits)


@njit(nogil=True, cache=True, plain=plain.divide_decimals)
def divide_decimals(left, right, up, digits):  # type: ignore[no-untyped-def]
    """left · 10^up / right; by zero `TOO_LARGE`."""
    high, low = _words(right)
    one_high, one_low = _words(left)
    dividend = _times_power((_ZERO, _ZERO, one_high, one_low), up)
    if dividend[0] == _ALL or (high | low) == _ZERO:
        return _too_large()
    quotient, top, rest = _divided(dividend, high, low)
    half = sum_of_words((_ZERO, _ZERO, top, rest), (_ZERO, _ZERO, top, rest))
    if not less_words(half, (_ZERO, _ZERO, high, low)):
        quotient = sum_of_words(quotient, (_ZERO, _ZERO, _ZERO, _ONE))
    return _signed((left[0] < 0) != (right[0] < 0), quotient, digits)


@njit(nogil=True, cache=True, plain=plain.remainder_decimals)
def remainder_decimals(left, right, up_left, up_right):  # type: ignore[no-untyped-def]
    """The rest of left · 10^up_left by right · 10^up_right, with the sign of left; by zero
    `TOO_LARGE`."""
    high, low = _words(right)
    if (high | low) == _ZERO:
        return _too_large()
    divisor = _times_power((_ZERO, _ZERO, high, low), up_right)
    high, low = _words(left)
    dividend = _times_power((_ZERO, _ZERO, high, low), up_left)
    if less_words(dividend, divisor):
        # So it is where the divisor has more than 128 bits: only one of both is scaled up.
        return _signed(left[0] < 0, dividend, MOST_DIGITS)
    _, high, low = _divided(dividend, divisor[2], divisor[3])
    return _signed(left[0] < 0, (_ZERO, _ZERO, high, low), MOST_DIGITS)


@njit(nogil=True, cache=True, plain=plain.decimal_to_double)
def decimal_to_double(value, scale):  # type: ignore[no-untyped-def]
    """The DOUBLE nearest to value / 10^scale."""
    high, low = _words(value)
    if (high | low) == _ZERO:
        return 0.0
    if high == _ZERO and low < np.uint64(1 << 53) and scale < 23:
        found = np.float64(low) / _POWERS_OF_DOUBLES[scale]
        return -found if value[0] < 0 else found
    # The quotient of the number moved up as far as it goes: far more than 64 bits, of which 64 and
    # one that stands for all others decide.
    words, moved = (high, low, _ZERO, _ZERO), np.int64(-128)
    while words[0] >> _TOP == _ZERO:
        words = sum_of_words(words, words)
        moved -= 1
    words, top, rest = _divided(words, _HIGH[scale], _LOW[scale])
    others = np.uint64((top | rest) != _ZERO)
    while (words[0] | words[1] | words[2]) != _ZERO:
        step = _ONE
        if (words[0] | words[1]) != _ZERO:
            step = _HALF
        others |= np.uint64((words[3] & ((_ONE << step) - _ONE)) != _ZERO)
        up = np.uint64(64) - step
        words = (
            words[0] >> step,
            (words[1] >> step) | (words[0] << up),
            (words[2] >> step) | (words[1] << up),
            (words[3] >> step) | (words[2] << up),
        )
        moved += np.int64(step)
    found = np.float64(words[3] | others) * 2.0**moved
    return -found if value[0] < 0 else found

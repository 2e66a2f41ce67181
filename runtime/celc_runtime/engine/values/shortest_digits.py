"""The digits with which the shortest text of a DOUBLE says it, for ROUND and CAST between events:
Spark rounds the number that this text says. Of a FLOAT it takes the text of the same DOUBLE.

The algorithm is that of Steele and White in the form of Burger and Dybvig ("Printing Floating-Point
Numbers Quickly and Accurately", 1996), over whole numbers of forty 32-bit words. It takes some
microseconds, so ROUND asks it only near a half. Rejected: Ryū, whose tables are larger than all
other code between events.
"""

import math
from decimal import Decimal

import numpy as np

from celc_runtime.engine.values import decimals_in_python
from celc_runtime.engine.values.decimals import (
    decimal_to_double,
    is_decimal,
    negate_decimal,
    rescale_decimal,
    wide_of,
)
from celc_runtime.engine.values.decimals_in_python import Pair
from celc_runtime.jit.kernels import njit
from celc_runtime.values.numbers import rounded_real, rounded_wholes

_BITS, _LOWEST = 53, -1074  # of a mantissa, and the lowest exponent
_WORDS = 40
_MASK = 2**32 - 1
_HIGHEST = np.int64(2**63 - 1)
_ALL = np.uint64(2**64 - 1)
_MOST_DIGITS = 38
_MOST_PLACES = 22  # 10²² is the largest power of ten that a DOUBLE holds exactly


@njit(nogil=True, cache=True)
def _multiply(number, factor):  # type: ignore[no-untyped-def]
    """number *= factor, which has less than 32 bits."""
    carry = 0
    for place in range(_WORDS):
        total = number[place] * factor + carry
        number[place] = total & _MASK
        carry = total >> 32


@njit(nogil=True, cache=True)
def _shifted(value, bits):  # type: ignore[no-untyped-def]
    """value · 2^bits; the value has less than 62 bits."""
    number = np.zeros(_WORDS, np.int64)
    place = bits // 32
    number[place] = value & _MASK
    number[place + 1] = value >> 32
    _multiply(number, 1 << (bits % 32))
    return number


@njit(nogil=True, cache=True)
def _compared(one, other):  # type: ignore[no-untyped-def]
    """-1, 0 or 1: one is less than the other, equal, or more."""
    for place in range(_WORDS - 1, -1, -1):
        if one[place] != other[place]:
            return -1 if one[place] < other[place] else 1
    return 0


@njit(nogil=True, cache=True)
def _sum_compared(one, more, other):  # type: ignore[no-untyped-def]
    """one + more compared with another."""
    total = np.empty(_WORDS, np.int64)
    carry = 0
    for place in range(_WORDS):
        word = one[place] + more[place] + carry
        total[place] = word & _MASK
        carry = word >> 32
    return _compared(total, other)


@njit(nogil=True, cache=True)
def _subtract(one, other):  # type: ignore[no-untyped-def]
    """one -= other, which is not more."""
    borrow = 0
    for place in range(_WORDS):
        word = one[place] - other[place] + borrow
        one[place] = word & _MASK
        borrow = word >> 32


@njit(nogil=True, cache=True)
def shortest_digits(value):  # type: ignore[no-untyped-def]
    """(digits, power): of the shortest numbers digits · 10^power whose DOUBLE is a finite value
    above 0, the one that is nearest to it."""
    part, exponent = math.frexp(value)
    exponent -= _BITS
    mantissa = np.int64(math.ldexp(part, _BITS))
    if exponent < _LOWEST:  # a number with fewer bits
        mantissa >>= _LOWEST - exponent
        exponent = _LOWEST
    rest, unit = _shifted(mantissa, max(exponent, 0) + 1), _shifted(1, max(-exponent, 0) + 1)
    above, below = _shifted(1, max(exponent, 0)), _shifted(1, max(exponent, 0))
    if mantissa == 1 << (_BITS - 1) and exponent > _LOWEST:  # the number below is half as far
        _multiply(rest, 2)
        _multiply(unit, 2)
        _multiply(above, 2)
    power = math.ceil(math.log10(value) - 1e-10)
    for _ in range(power):
        _multiply(unit, 10)
    for _ in range(-power):
        _multiply(rest, 10)
        _multiply(above, 10)
        _multiply(below, 10)
    even = 0 if mantissa % 2 else 1  # an even number takes what lies in the middle
    if _sum_compared(rest, above, unit) + even > 0:
        power += 1
    else:
        _multiply(rest, 10)
        _multiply(above, 10)
        _multiply(below, 10)
    digits = np.int64(0)
    while True:
        digit = 0
        while _compared(rest, unit) >= 0:
            _subtract(rest, unit)
            digit += 1
        power -= 1
        low = _compared(rest, below) - even < 0
        high = _sum_compared(rest, above, unit) + even > 0
        if low or high:
            if low and high:
                half = _sum_compared(rest, rest, unit)
                high = half > 0 or (half == 0 and digit % 2 == 1)
            return digits * 10 + digit + (1 if high else 0), power
        digits = digits * 10 + digit
        _multiply(rest, 10)
        _multiply(above, 10)
        _multiply(below, 10)


# --- ROUND ----------------------------------------------------------------------------------------


def _plain_real(value: float, places: int) -> float:
    return rounded_real(np.float64(value), places)


@njit(nogil=True, cache=True, plain=_plain_real)
def round_real(value, places):  # type: ignore[no-untyped-def]
    """ROUND of a DOUBLE to -18 to 38 digits behind the point."""
    if 0 <= places <= _MOST_PLACES:
        # Most numbers are far from a half, as in `celc_runtime.values.numbers`.
        scale = 1.0
        for _ in range(places):
            scale *= 10.0
        size = abs(value) * scale
        whole = np.floor(size)
        if size < 2.0**41 and abs(size - whole - 0.5) > 1e-3:
            nearest = (whole + 1.0 if size - whole > 0.5 else whole) / scale
            return -nearest if value < 0 and nearest > 0 else nearest
    if not np.isfinite(value):
        return value
    if value == 0:
        return 0.0
    digits, power = shortest_digits(abs(value))
    if power + places >= 0:
        return value
    units = rescale_decimal(wide_of(digits), max(power + places, -_MOST_DIGITS), _MOST_DIGITS)
    if places < 0:
        found = decimal_to_double(rescale_decimal(units, -places, _MOST_DIGITS), 0)
    else:
        found = decimal_to_double(units, places)
    return -found if value < 0 and found > 0 else found


def _plain_whole(value: int, places: int, bits: int) -> int:
    type = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[bits]
    return int(rounded_wholes(np.array([value], type), places)[0])


@njit(nogil=True, cache=True, plain=_plain_whole)
def round_whole(value, places, bits):  # type: ignore[no-untyped-def]
    """ROUND of a whole number of so many bits, which wraps."""
    if places >= 0:
        return np.int64(value)
    if places < -19:
        return np.int64(0)
    moved = rescale_decimal(wide_of(value), places, _MOST_DIGITS)
    low = np.int64(rescale_decimal(moved, -places, _MOST_DIGITS)[1])
    return (low << (64 - bits)) >> (64 - bits)


# --- CAST to DECIMAL ------------------------------------------------------------------------------


def _plain_decimal(value: float, scale: int, precision: int) -> Pair:
    if not math.isfinite(value):
        return decimals_in_python.TOO_LARGE
    sign, digits, power = Decimal(repr(float(value))).as_tuple()
    assert isinstance(power, int)
    units = int("".join(map(str, digits)))
    size = decimals_in_python.wide_of(-units if sign else units)
    return decimals_in_python.rescale_decimal(size, power + scale, precision)


@njit(nogil=True, cache=True, plain=_plain_decimal)
def real_to_decimal(value, scale, precision):  # type: ignore[no-untyped-def]
    """A DOUBLE or FLOAT as a pair; one that is not `is_decimal` where it has none."""
    if not np.isfinite(value):
        return _HIGHEST, _ALL
    size = abs(np.float64(value))
    if size == 0:
        return wide_of(0)
    digits, power = shortest_digits(size)
    moved = min(max(power + scale, -_MOST_DIGITS), _MOST_DIGITS + 1)
    found = rescale_decimal(wide_of(digits), moved, precision)
    return negate_decimal(found) if value < 0 and is_decimal(found) else found

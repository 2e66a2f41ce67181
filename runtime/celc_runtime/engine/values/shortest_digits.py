"""The digits with which the shortest text of a DOUBLE says it, for ROUND and CAST between events:
Spark rounds the number that this text says. Of a FLOAT it takes the text of the same DOUBLE.

The algorithm is that of Steele and White in the form of Burger and Dybvig ("Printing Floating-Point
Numbers Quickly and Accurately", 1996), over whole numbers of four words: code between events has
no memory of its own. It takes some microseconds, so ROUND asks it only near a half. Rejected: Ryū,
whose tables are larger than all other code between events.
"""

import math
from decimal import Decimal

import numpy as np

from celc_runtime.engine.values import decimals_in_python
from celc_runtime.engine.values.decimals import (
    decimal_to_double,
    difference_of_words,
    is_decimal,
    less_words,
    negate_decimal,
    rescale_decimal,
    sum_of_words,
    wide_of,
    words_times,
)
from celc_runtime.engine.values.decimals_in_python import Pair
from celc_runtime.jit.kernels import njit
from celc_runtime.values.numbers import rounded_real, rounded_wholes

_BITS = 53  # of a mantissa
_ZERO, _TWO, _TEN = np.uint64(0), np.uint64(2), np.uint64(10)
_HIGHEST = np.int64(2**63 - 1)
_ALL = np.uint64(2**64 - 1)
_MOST_DIGITS = 38
_LEAST, _MOST = 1e-39, 1e38
"""What is less rounds to 0 in every DECIMAL, and what is not less has none."""
_MOST_PLACES = 22  # 10²² is the largest power of ten that a DOUBLE holds exactly


@njit(nogil=True, cache=True)
def _shifted(value, bits):  # type: ignore[no-untyped-def]
    """value · 2^bits."""
    words = (_ZERO, _ZERO, _ZERO, np.uint64(value))
    while bits > 0:
        step = min(bits, 62)
        words = words_times(words, np.uint64(1 << step))
        bits -= step
    return words


@njit(nogil=True, cache=True)
def _is_at_least(one, other, even):  # type: ignore[no-untyped-def]
    """Whether one is more than the other or, where `even`, as much."""
    return less_words(other, one) or (even and not less_words(one, other))


@njit(nogil=True, cache=True)
def shortest_digits(value):  # type: ignore[no-untyped-def]
    """(digits, power): of the shortest numbers digits · 10^power whose DOUBLE is a value from 1e-40
    to 1e40, the one that is nearest to it."""
    part, exponent = math.frexp(value)
    exponent -= _BITS
    mantissa = np.int64(math.ldexp(part, _BITS))
    rest, unit = _shifted(mantissa, max(exponent, 0) + 1), _shifted(1, max(-exponent, 0) + 1)
    above, below = _shifted(1, max(exponent, 0)), _shifted(1, max(exponent, 0))
    if mantissa == 1 << (_BITS - 1):  # the number below is half as far
        rest, unit = words_times(rest, _TWO), words_times(unit, _TWO)
        above = words_times(above, _TWO)
    power = math.ceil(math.log10(value) - 1e-10)
    for _ in range(power):
        unit = words_times(unit, _TEN)
    for _ in range(-power):
        rest = words_times(rest, _TEN)
        above, below = words_times(above, _TEN), words_times(below, _TEN)
    even = mantissa % 2 == 0  # an even number takes what lies in the middle
    if _is_at_least(sum_of_words(rest, above), unit, even):
        power += 1
    else:
        rest = words_times(rest, _TEN)
        above, below = words_times(above, _TEN), words_times(below, _TEN)
    digits = np.int64(0)
    while True:
        digit = 0
        while not less_words(rest, unit):
            rest = difference_of_words(rest, unit)
            digit += 1
        power -= 1
        low = _is_at_least(below, rest, even)
        high = _is_at_least(sum_of_words(rest, above), unit, even)
        if low or high:
            if low and high:
                high = _is_at_least(sum_of_words(rest, rest), unit, digit % 2 == 1)
            return digits * 10 + digit + (1 if high else 0), power
        digits = digits * 10 + digit
        rest = words_times(rest, _TEN)
        above, below = words_times(above, _TEN), words_times(below, _TEN)


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
    size = abs(value)
    if size < _LEAST:
        return 0.0
    if size >= _MOST:  # its last digit is one before which ROUND takes none
        return value
    digits, power = shortest_digits(size)
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
    """ROUND of a whole number with `bits` bits, which wraps if it is too large."""
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
    if size < _LEAST:
        return wide_of(0)
    if size >= _MOST:
        return _HIGHEST, _ALL
    digits, power = shortest_digits(size)
    moved = min(max(power + scale, -_MOST_DIGITS), _MOST_DIGITS + 1)
    found = rescale_decimal(wide_of(digits), moved, precision)
    return negate_decimal(found) if value < 0 and is_decimal(found) else found

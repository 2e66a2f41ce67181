"""CAST and TRY_CAST between events: numbers, BOOLEANs and times in another type, as
`celc_runtime.values.casts` makes them of columns. None of the operands is NULL."""

import numpy as np

from celc_runtime.engine.values.decimals import (
    ceil_decimal,
    floor_decimal,
    is_decimal,
    narrow_of,
    wide_of,
)
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.jit.kernels import njit

_SECOND = 1_000_000  # microseconds
_MOST = 2**63 - 1


@njit(nogil=True, cache=True)
def real_to_whole(value, bits):  # type: ignore[no-untyped-def]
    """A DOUBLE or FLOAT without its decimals, as a whole number with `bits` bits (32 or 64).

    As in Java, NaN becomes 0, and a value that is too large becomes the greatest or least number.
    """
    value, half = np.float64(value), 2.0 ** (bits - 1)
    if np.isnan(value):
        return np.int64(0)
    if value >= half:
        return np.int64((1 << (bits - 1)) - 1) if bits < 64 else np.int64(_MOST)
    if value <= -half:
        return np.int64(-(1 << (bits - 1))) if bits < 64 else np.int64(-_MOST - 1)
    return np.int64(value)


@njit(nogil=True, cache=True)
def real_fits(value, bits):  # type: ignore[no-untyped-def]
    """Whether a DOUBLE or FLOAT without its decimals fits into a whole number with `bits` bits."""
    value, half = np.float64(value), 2.0 ** (bits - 1)
    most = half - 1.0 if bits < 64 else half
    return (np.floor(value) <= most) & (np.ceil(value) >= -half)


@njit(nogil=True, cache=True)
def whole_fits(value, bits):  # type: ignore[no-untyped-def]
    """Whether a whole number fits into `bits` bits; these are fewer than 64."""
    half = 1 << (bits - 1)
    return (np.int64(value) >= -half) & (np.int64(value) < half)


@njit(nogil=True, cache=True)
def decimal_to_whole(value, scale):  # type: ignore[no-untyped-def]
    """The low 64 bits of a DECIMAL, a pair, without its decimals."""
    if value[0] < 0:
        return narrow_of(ceil_decimal(value, scale))
    return narrow_of(floor_decimal(value, scale))


@njit(nogil=True, cache=True)
def decimal_fits(value, scale):  # type: ignore[no-untyped-def]
    """Whether a LONG is a DECIMAL, a pair, without its decimals."""
    whole = ceil_decimal(value, scale) if value[0] < 0 else floor_decimal(value, scale)
    low = wide_of(narrow_of(whole))
    return is_decimal(whole) & (whole[0] == low[0])


@njit(nogil=True, cache=True)
def seconds_of(time):  # type: ignore[no-untyped-def]
    """The whole seconds since 1970 of a TIMESTAMP."""
    return np.int64(time) // _SECOND


@njit(nogil=True, cache=True)
def whole_to_time(seconds):  # type: ignore[no-untyped-def]
    """Whole seconds since 1970 as a TIMESTAMP; what is too far away is the last one."""
    seconds = np.int64(seconds)
    if seconds < -(_MOST // _SECOND):
        return np.int64(-_MOST - 1)
    if seconds > _MOST // _SECOND:
        return np.int64(_MOST)
    return seconds * np.int64(_SECOND)


@njit(nogil=True, cache=True)
def day_of(time):  # type: ignore[no-untyped-def]
    """The day since 1970 of a time."""
    return np.int64(time) // MICROSECONDS_PER_DAY

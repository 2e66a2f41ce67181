"""Arithmetic with times and durations: 64-bit microseconds, NULL on overflow.

A condition first asks whether a result fits (`can_add`, …), then computes it as a sum or product of
LONGs, which would wrap. So NULL needs no special value: as for columns, a boolean stands beside the
value. Rejected: Spark's rule, where an overflow ends the job, with or without ANSI mode.

A sum of durations on the way may have more than 64 bits, and become smaller again. It is two
numbers, (high, low) = high · 2³² + low with 0 ≤ low < 2³². So equal sums are equal numbers, and
fewer than 2³¹ durations do not overflow them.
"""

import numpy as np

from celc_runtime.engine.values.spark_arithmetic import (
    LAST_DAY,
    add_long,
    multiply_long,
    subtract_long,
)
from celc_runtime.jit.kernels import njit

SMALLEST = -(2**63)  # microseconds: the only duration whose negative does not fit
_LOW = 2**32 - 1  # the lower bits of a duration, in a sum


@njit(nogil=True, cache=True)
def can_add(left, right):  # type: ignore[no-untyped-def]
    """Whether 64 bits hold left + right."""
    left, right = np.int64(left), np.int64(right)
    total = add_long(left, right)
    return ((left ^ total) & (right ^ total)) >= 0


@njit(nogil=True, cache=True)
def can_subtract(left, right):  # type: ignore[no-untyped-def]
    left, right = np.int64(left), np.int64(right)
    return ((left ^ right) & (left ^ subtract_long(left, right))) >= 0


@njit(nogil=True, cache=True)
def can_multiply(left, right):  # type: ignore[no-untyped-def]
    left, right = np.int64(left), np.int64(right)
    if left == 0 or right == 0:
        return True
    if left == -1:
        return right != SMALLEST
    if right == -1:
        return left != SMALLEST
    product = multiply_long(left, right)
    return product // left == right and product % left == 0


@njit(nogil=True, cache=True)
def begins_at_time(days):  # type: ignore[no-untyped-def]
    """Whether the midnight of a DATE is a TIMESTAMP."""
    return (np.int64(days) >= -LAST_DAY) & (np.int64(days) <= LAST_DAY)


@njit(nogil=True, cache=True)
def units_between(start, end, unit):  # type: ignore[no-untyped-def]
    """How many whole units of time lie between two times, cut towards 0; 64 bits hold the time
    between them."""
    length = subtract_long(end, start)
    units = length // unit
    return units + 1 if units < 0 and length % unit != 0 else units


@njit(nogil=True, cache=True)
def add_duration(high, low, value):  # type: ignore[no-untyped-def]
    """(high, low) of a sum of durations with one more."""
    value = np.int64(value)
    low += value & _LOW
    return high + (value >> 32) + (low >> 32), low & _LOW


@njit(nogil=True, cache=True)
def is_duration(high):  # type: ignore[no-untyped-def]
    """Whether 64 bits hold a sum of durations."""
    return (high >= -2147483648) & (high <= 2147483647)


@njit(nogil=True, cache=True)
def duration_of(high, low):  # type: ignore[no-untyped-def]
    """A sum of durations, where 64 bits hold it."""
    return (np.int64(high) << 32) | low


@njit(nogil=True, cache=True)
def mean_duration(high, low, count):  # type: ignore[no-untyped-def]
    """A sum of durations by their number, rounded towards zero. 64 bits always hold it."""
    rest = ((high % count) << 32) + low
    mean = ((high // count) << 32) + rest // count
    return mean + 1 if mean < 0 and rest % count != 0 else mean


@njit(nogil=True, cache=True)
def can_sum_interval(values, valid, events):  # type: ignore[no-untyped-def]
    """Whether 64 bits hold the sum of durations; sums on the way may be larger."""
    high, low = np.int64(0), np.int64(0)
    for event in events:
        if valid[event]:
            high, low = add_duration(high, low, values[event])
    return is_duration(high)


@njit(nogil=True, cache=True)
def sum_interval(values, valid, events):  # type: ignore[no-untyped-def]
    """The sum of durations, where 64 bits hold it."""
    total = np.int64(0)
    for event in events:
        if valid[event]:
            total = add_long(total, values[event])
    return total


@njit(nogil=True, cache=True)
def average_interval(values, valid, events):  # type: ignore[no-untyped-def]
    """The average of durations, rounded towards zero; 0 without values."""
    high, low, count = np.int64(0), np.int64(0), np.int64(0)
    for event in events:
        if valid[event]:
            high, low = add_duration(high, low, values[event])
            count += 1
    return mean_duration(high, low, max(count, 1))

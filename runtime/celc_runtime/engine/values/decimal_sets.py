"""Functions of a label's set of events in conditions, of DECIMALs, as in `label_sets`.

A column of up to 18 digits is int64, for which `label_sets` has the functions that need no scale. A
column of more digits is of pairs (`decimals`), and so is every sum.
"""

import numpy as np

from celc_runtime.engine.values import decimals_in_python as plain
from celc_runtime.engine.values.decimals import (
    decimal_of_words,
    decimal_to_double,
    wide_in,
    wide_of,
)
from celc_runtime.engine.values.label_sets import sorted_known
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True, plain=plain.sum_of_decimals)
def sum_of_decimals(values, valid, events, digits):  # type: ignore[no-untyped-def]
    """The sum of DECIMALs of 64 bits, as a DECIMAL with at most `digits` digits."""
    high, low = np.int64(0), np.int64(0)
    for event in events:
        if valid[event]:
            value = np.int64(values[event])
            high += value >> 32
            low += value & 4294967295
    # Halves of words, so that fewer than 2³¹ values cannot overflow.
    top = high + (low >> 32)
    word = np.uint64((top & 4294967295) << 32) | np.uint64(low & 4294967295)
    return decimal_of_words(np.int64(top >> 63), np.int64(top >> 32), word, digits)


@njit(nogil=True, cache=True, plain=plain.sum_of_wide)
def sum_of_wide(values, valid, events, digits):  # type: ignore[no-untyped-def]
    """The sum of DECIMALs of two words, as a DECIMAL with at most `digits` digits."""
    top, high, low = np.int64(0), np.uint64(0), np.uint64(0)
    for event in events:
        if valid[event]:
            upper, lower = wide_in(values[event])
            sign, upper = upper >> 63, np.uint64(upper)
            low += lower
            carry = np.uint64(low < lower)
            high += carry
            top += np.int64(high < carry)
            high += upper
            top += np.int64(high < upper) + sign
    return decimal_of_words(top, np.int64(high), low, digits)


@njit(nogil=True, cache=True)
def smallest_wide(values, valid, events):  # type: ignore[no-untyped-def]
    """The index of an event with the smallest value, −1 where all are NULL."""
    best = -1
    for event in events:
        if valid[event] and (best < 0 or wide_in(values[event]) < wide_in(values[best])):
            best = event
    return best


@njit(nogil=True, cache=True)
def largest_wide(values, valid, events):  # type: ignore[no-untyped-def]
    """The index of an event with the largest value, −1 where all are NULL."""
    best = -1
    for event in events:
        if valid[event] and (best < 0 or wide_in(values[event]) > wide_in(values[best])):
            best = event
    return best


@njit(nogil=True, cache=True)
def count_distinct_wide(values, valid, events):  # type: ignore[no-untyped-def]
    """The number of different values."""
    count = np.int64(0)
    for place in range(events.shape[0]):
        event = events[place]
        is_new = valid[event]
        for before in range(place):
            other = events[before]
            if is_new and valid[other] and wide_in(values[other]) == wide_in(values[event]):
                is_new = False
        count += is_new
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def variance_of_decimals(values, valid, events, scale):  # type: ignore[no-untyped-def]
    """As `variance`, of values of 64 bits."""
    mean, squares, count = np.float64(0), np.float64(0), 0
    for event in events:
        if valid[event]:
            count += 1
            distance = decimal_to_double(wide_of(values[event]), scale) - mean
            step = distance / count
            mean += step
            squares += distance * (distance - step)
    return squares / (count - 1) if count > 1 else np.float64(0)


@njit(nogil=True, cache=True, error_model="numpy")
def deviation_of_decimals(values, valid, events, scale):  # type: ignore[no-untyped-def]
    """As `deviation`, of values of 64 bits."""
    return np.sqrt(variance_of_decimals(values, valid, events, scale))


@njit(nogil=True, cache=True)
def median_of_decimals(values, valid, events, room, scale):  # type: ignore[no-untyped-def]
    """As `median`, of values of 64 bits."""
    count = sorted_known(values, valid, events, room)
    if count == 0:
        return np.nan
    low, high = values[room[(count - 1) >> 1]], values[room[count >> 1]]
    one = decimal_to_double(wide_of(low), scale)
    if low == high:
        return one
    return 0.5 * one + 0.5 * decimal_to_double(wide_of(high), scale)

"""Functions of a label's set of events in conditions: FIRST, LAST, MIN, MAX, SUM, AVG, VARIANCE,
STDDEV, MEDIAN, COUNT(DISTINCT …).

`events` are int64 indices into the remembered columns, in stream order. All functions but FIRST and
LAST skip NULLs. MIN, MAX, SUM, AVG and MEDIAN need one value that is not NULL, VARIANCE and STDDEV
need two. Whole numbers wrap, and NaN is larger than any number. Fractions are added in stream
order, as Spark adds the rows of a sorted group.
"""

import numpy as np

from celc_runtime.engine.values.spark_arithmetic import less_real
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def events_of_role(path, depth, roles, bit, kind_bits, first, events):  # type: ignore[no-untyped-def]
    """Write the events of a match that have a role, as indices into the columns; returns their
    number.

    `path[0]` to `path[depth]` are the tags of the match's events from the last one back. `roles`
    has the bit sets of roles by kind. Events are written in stream order. `events` must have room
    for all: allocating or returning an array for each match would cost more than everything else.
    """
    count = 0
    kind_mask = (np.int64(1) << kind_bits) - 1
    for place in range(depth, -1, -1):
        if roles[path[place] & kind_mask] & bit:
            events[count] = (path[place] >> kind_bits) - first
            count += 1
    return count


@njit(nogil=True, cache=True)
def some_known(valid, events):  # type: ignore[no-untyped-def]
    """Whether the column is not NULL for at least one event."""
    for event in events:  # noqa: SIM110  Numba has no generators here
        if valid[event]:
            return True
    return False


@njit(nogil=True, cache=True)
def sum_whole(values, valid, events):  # type: ignore[no-untyped-def]
    """The sum of whole numbers as a LONG."""
    total = np.int64(0)
    for event in events:
        if valid[event]:
            total += np.int64(values[event])
    return total


@njit(nogil=True, cache=True)
def sum_real(values, valid, events):  # type: ignore[no-untyped-def]
    """The sum as a DOUBLE, from the first event on."""
    total = np.float64(0)
    for event in events:
        if valid[event]:
            total += np.float64(values[event])
    return total


@njit(nogil=True, cache=True)
def average(values, valid, events):  # type: ignore[no-untyped-def]
    """The sum as a DOUBLE divided by the number of values; NaN where there are none."""
    total, count = np.float64(0), 0
    for event in events:
        if valid[event]:
            total += np.float64(values[event])
            count += 1
    return total / count if count > 0 else np.nan


@njit(nogil=True, cache=True)
def smallest(values, valid, events):  # type: ignore[no-untyped-def]
    """The index of an event with the smallest value, −1 where all are NULL."""
    best = -1
    for event in events:
        if valid[event] and (best < 0 or less_real(values[event], values[best])):
            best = event
    return best


@njit(nogil=True, cache=True)
def largest(values, valid, events):  # type: ignore[no-untyped-def]
    """The index of an event with the largest value, −1 where all are NULL."""
    best = -1
    for event in events:
        if valid[event] and (best < 0 or less_real(values[best], values[event])):
            best = event
    return best


@njit(nogil=True, cache=True)
def smallest_text(ranks, codes, events):  # type: ignore[no-untyped-def]
    """The index of an event with the first text in order, −1 where all are NULL."""
    best = -1
    for event in events:
        if codes[event] >= 0 and (best < 0 or ranks[event] < ranks[best]):
            best = event
    return best


@njit(nogil=True, cache=True)
def largest_text(ranks, codes, events):  # type: ignore[no-untyped-def]
    """The index of an event with the last text in order, −1 where all are NULL."""
    best = -1
    for event in events:
        if codes[event] >= 0 and (best < 0 or ranks[event] > ranks[best]):
            best = event
    return best


@njit(nogil=True, cache=True)
def first_of(events):  # type: ignore[no-untyped-def]
    """The first event, −1 where there is none."""
    return events[0] if events.shape[0] > 0 else -1


@njit(nogil=True, cache=True)
def last_of(events):  # type: ignore[no-untyped-def]
    """The last event, −1 where there is none."""
    return events[events.shape[0] - 1] if events.shape[0] > 0 else -1


@njit(nogil=True, cache=True)
def nth_of(events, place):  # type: ignore[no-untyped-def]
    """The event at a place, from 1, or negative from the end; −1 where there is none."""
    number = place - 1 if place > 0 else events.shape[0] + place
    return events[number] if 0 <= number < events.shape[0] else -1


@njit(nogil=True, cache=True)
def count_known(valid, events):  # type: ignore[no-untyped-def]
    """The number of events for which the column is not NULL."""
    count = 0
    for event in events:
        if valid[event]:
            count += 1
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def variance(values, valid, events):  # type: ignore[no-untyped-def]
    """The sample variance of two or more values, 0 for fewer.

    By Welford's algorithm as Spark computes it: a running mean and a running sum of squares.
    """
    mean, squares, count = np.float64(0), np.float64(0), 0
    for event in events:
        if valid[event]:
            count += 1
            distance = np.float64(values[event]) - mean
            step = distance / count
            mean += step
            squares += distance * (distance - step)
    return squares / (count - 1) if count > 1 else np.float64(0)


@njit(nogil=True, cache=True, error_model="numpy")
def deviation(values, valid, events):  # type: ignore[no-untyped-def]
    """The sample standard deviation of two or more values, 0 for fewer."""
    return np.sqrt(variance(values, valid, events))


@njit(nogil=True, cache=True)
def _sort(values, room, count):  # type: ignore[no-untyped-def]
    """Sort the first `count` events of `room` by value. A heap sort needs no memory of its own."""
    end, start = count, count >> 1
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            room[0], room[end] = room[end], room[0]
        # Let the event at `start` sink until no event below it is larger.
        place, below = start, 2 * start + 1
        while below < end:
            if below + 1 < end and less_real(values[room[below]], values[room[below + 1]]):
                below += 1
            if not less_real(values[room[place]], values[room[below]]):
                break
            room[place], room[below] = room[below], room[place]
            place, below = below, 2 * below + 1


@njit(nogil=True, cache=True)
def sorted_known(values, valid, events, room):  # type: ignore[no-untyped-def]
    """Write the events whose value is not NULL, by value; returns their number."""
    count = 0
    for event in events:
        if valid[event]:
            room[count] = event
            count += 1
    _sort(values, room, count)
    return count


@njit(nogil=True, cache=True)
def median(values, valid, events, room):  # type: ignore[no-untyped-def]
    """The median as a DOUBLE, NaN without values; `room` is int64, with room for all events.

    Of two different middle values half of each is added, so no sum overflows.
    """
    count = sorted_known(values, valid, events, room)
    if count == 0:
        return np.nan
    low, high = values[room[(count - 1) >> 1]], values[room[count >> 1]]
    if not less_real(low, high):
        return np.float64(low)
    return 0.5 * np.float64(low) + 0.5 * np.float64(high)


@njit(nogil=True, cache=True)
def median_interval(values, valid, events, room):  # type: ignore[no-untyped-def]
    """The median of durations: Spark's DOUBLE, rounded towards zero; 0 without values."""
    middle = median(values, valid, events, room)
    if middle != middle:
        return np.int64(0)
    if middle >= 9223372036854775808.0:
        return np.int64(9223372036854775807)
    return np.int64(middle)


@njit(nogil=True, cache=True)
def _count_different(values, room, count):  # type: ignore[no-untyped-def]
    """The number of different values; the events must be sorted by value."""
    different = np.int64(count > 0)
    for place in range(1, count):
        if less_real(values[room[place - 1]], values[room[place]]):
            different += 1
    return different


@njit(nogil=True, cache=True)
def count_distinct(values, valid, events, room):  # type: ignore[no-untyped-def]
    """The number of different values; NaN is one. `room` as for `median`."""
    return _count_different(values, room, sorted_known(values, valid, events, room))


@njit(nogil=True, cache=True)
def count_distinct_texts(codes, events, room):  # type: ignore[no-untyped-def]
    """The number of different texts, given as codes; a negative code is NULL."""
    count = 0
    for event in events:
        if codes[event] >= 0:
            room[count] = event
            count += 1
    _sort(codes, room, count)
    return _count_different(codes, room, count)

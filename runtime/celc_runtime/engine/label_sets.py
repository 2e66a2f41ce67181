"""Functions of a label's set of events, as conditions use them: FIRST, LAST, MIN, MAX, SUM, AVG.

`events` are int64 indices into the remembered columns, in stream order. MIN, MAX, SUM and AVG skip
NULLs; each has a value where the column is not NULL for some event. Whole numbers wrap, NaN is
larger than any number, and fractions are added in stream order, as Spark adds the rows of a sorted
group.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.engine.spark_arithmetic import less_real
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def events_of_role(path, depth, roles, bit, kind_bits, first, events):  # type: ignore[no-untyped-def]
    """Write the events of a match that play a role, in stream order, as indices into the columns;
    returns how many.

    `path[0]` to `path[depth]` are the tags of the match's events from the last one back, `roles`
    the bit sets of roles by kind. `events` has room for all; new room for each match, or an array
    handed back, would cost more than the rest.
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
    """Whether the column is not NULL for one of the events at least."""
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

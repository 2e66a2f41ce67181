"""How many subsets of a match's events have enough different values. Each of them is a match.

Of 40 equal events and two others under a `+` there are 2⁴⁰ matches with three values: too many to
list, but easy to count. Of n events with the same value, 2ⁿ − 1 subsets have this value, and one
has not. So a table holds the number of subsets with 0, 1, 2, … values, and with enough, and is
updated value by value. It never subtracts, so a count that is too large stays too large
(`wide_numbers`). An event without a value (NULL) doubles all numbers. The last event of a match is
in each subset if it is under the `+`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from celc_runtime.engine.values.wide_numbers import FULL, add_wide, multiply_wide
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked

HIGH, LOW = 0, 1


@cache
def counted_sets(checks: Checked) -> Callable[..., None]:
    """A kernel (output, past, first, bits, counts) that counts the subsets of each match in the
    output.

    counts: uint64[matches, 2] (see `Checked.rounds`).
    """
    holds, same, rounds = checks.holds, checks.same, checks.rounds
    assert holds is not None
    assert same is not None
    ((least, _, _),) = checks.varieties

    def count(output, past, first, bits, counts):  # type: ignore[no-untyped-def]
        kind_mask = (np.int64(1) << bits) - 1
        tags, ends = output.tags, output.ends
        begin, longest = np.int64(0), np.int64(0)
        for match in range(counts.shape[0]):
            longest = max(longest, ends[match] - begin)
            begin = ends[match]
        # One event with each value, and how many events have it.
        events, sizes = np.empty(longest, np.int64), np.empty(longest, np.int64)
        begin = np.int64(0)
        for match in range(counts.shape[0]):
            values, unknown, last = 0, 0, -1
            for place in range(begin, ends[match]):
                tag = tags[place]
                last = -1
                if not rounds[tag & kind_mask]:
                    continue
                event = holds(past, first, tag, 0)
                if event < 0:
                    unknown += 1
                    continue
                last = 0
                while last < values and not same(past, events[last], event, 0):
                    last += 1
                if last == values:
                    events[values], sizes[values] = event, 0
                    values += 1
                sizes[last] += 1
            if last < 0 and rounds[tags[ends[match] - 1] & kind_mask]:
                unknown -= 1
            write_sets(sizes[:values], unknown, last, least, counts[match])
            begin = ends[match]

    return njit(nogil=True, error_model="numpy")(count) if checks.compiles else count


@njit(nogil=True, cache=True)
def write_sets(sizes, free, last, least, count):  # type: ignore[no-untyped-def]
    """Write into count (uint64[2]) the number of sets of events with at least `least` values.

    `least` is 1 or more. sizes: int64, the number of events with each value. free: the number of
    other events. last: the place of a value of which one event is in every set; −1: none.
    """
    count[:] = 0
    if sizes.shape[0] < least:
        return
    found = np.zeros((least + 1, 2), np.uint64)
    if last < 0:
        found[0, HIGH], found[0, LOW] = _power(free)
    else:
        found[1, HIGH], found[1, LOW] = _power(free + sizes[last] - 1)
    for value in range(sizes.shape[0]):
        if value == last:
            continue
        all_high, all_low = _power(sizes[value])
        high, low = _without_one(all_high, all_low)  # the empty set lacks the value
        enough_high, enough_low = multiply_wide(
            found[least, HIGH], found[least, LOW], all_high, all_low
        )
        found[least, HIGH], found[least, LOW] = enough_high, enough_low
        for number in range(least, 0, -1):
            more_high, more_low = multiply_wide(
                found[number - 1, HIGH], found[number - 1, LOW], high, low
            )
            found[number, HIGH], found[number, LOW] = add_wide(
                found[number, HIGH], found[number, LOW], more_high, more_low
            )
    count[HIGH], count[LOW] = found[least, HIGH], found[least, LOW]


@njit(nogil=True, error_model="numpy", _nrt=False)
def _power(exponent):  # type: ignore[no-untyped-def]
    """(high, low) of a power of 2."""
    one, none = np.uint64(1), np.uint64(0)
    if exponent >= 127:
        return FULL, none
    if exponent >= 64:
        return one << np.uint64(exponent - 64), none
    return none, one << np.uint64(exponent)


@njit(nogil=True, error_model="numpy", _nrt=False)
def _without_one(high, low):  # type: ignore[no-untyped-def]
    """(high, low) of a positive count minus 1; a count that stands for all large ones stays."""
    if high == FULL:
        return high, low
    return high - np.uint64(low == 0), low - np.uint64(1)

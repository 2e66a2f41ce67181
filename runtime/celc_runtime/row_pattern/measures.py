"""The rows and sums that measures read, for each row of the result.

Rows of the result come match by match, and within a match in the order of its rows, so a running
value is kept up from one to the next, and a match costs its rows once for each leaf.
"""

import numpy as np

from celc_runtime.engine.values.spark_arithmetic import add_long, less_real
from celc_runtime.engine.values.time_arithmetic import (
    add_duration,
    duration_of,
    is_duration,
    mean_duration,
)
from celc_runtime.jit.kernels import njit
from celc_runtime.row_pattern.passes import FIRST_LABEL, LENGTH, PARTITION, START


@njit(nogil=True, cache=True)
def listed_rows(matches, labels, rows, row_labels):  # type: ignore[no-untyped-def]
    """Write the row, and the variable, of each row that a match has; `labels` are variables."""
    for match in range(matches.shape[0]):
        first = matches[match, FIRST_LABEL]
        for place in range(max(matches[match, LENGTH], 0)):
            rows[first + place] = matches[match, START] + place
            row_labels[first + place] = labels[first + place]


@njit(nogil=True, cache=True)
def result_rows(matches, excluded, all_rows, empty, shown):  # type: ignore[no-untyped-def]
    """Write the match and the place in it of each row of the result; returns how many there are.

    A place of −1: the row has no row of the match, as that of an empty match. `shown` has room for
    a row for each match and for each row of one.
    """
    count = 0
    for match in range(matches.shape[0]):
        length = matches[match, LENGTH]
        if length <= 0:
            if length < 0 or empty:
                shown[count, 0], shown[count, 1] = match, -1
                count += 1
        elif not all_rows:
            shown[count, 0], shown[count, 1] = match, length - 1
            count += 1
        else:
            first = matches[match, FIRST_LABEL]
            for place in range(length):
                if not excluded[first + place]:
                    shown[count, 0], shown[count, 1] = match, place
                    count += 1
    return count


@njit(nogil=True, cache=True)
def navigate(  # type: ignore[no-untyped-def]
    matches, labels, offsets, shown, variables, place_of, rows, row_labels
):
    """Write the row that navigation finds for each row of the result, and its variable; −1: none.

    The rows of a match are listed once for its rows of the result. For the only one they are looked
    through from the end that is asked for, in 0.7 of the time.
    variables: bool by variable. place_of: whether FIRST, the offset, the shift, and whether FINAL.
    """
    first_rows, offset, shift, final = place_of
    longest = 1
    for match in range(matches.shape[0]):
        longest = max(longest, matches[match, LENGTH])
    places = np.empty(longest, np.int64)
    known, total, visible = -1, 0, 0
    for number in range(shown.shape[0]):
        match, current = shown[number, 0], shown[number, 1]
        start, length = matches[match, START], matches[match, LENGTH]
        first = matches[match, FIRST_LABEL]
        rows[number], row_labels[number] = -1, -1
        if match != known and (number + 1 == shown.shape[0] or shown[number + 1, 0] != match):
            found = _searched(
                labels, variables, first, length if final else current + 1, first_rows, offset
            )
        else:
            if match != known:
                known, total, visible = match, 0, 0
                for place in range(max(length, 0)):
                    if variables[labels[first + place]]:
                        places[total] = place
                        total += 1
            while visible < total and places[visible] <= current:
                visible += 1
            seen = total if final else visible
            at = offset if first_rows else seen - 1 - offset
            found = places[at] if 0 <= at < seen else -1
        if found < 0:
            continue
        row = start + found + shift
        part = matches[match, PARTITION]
        if row < offsets[part] or row >= offsets[part + 1]:
            continue
        rows[number] = row
        if start <= row < start + length:
            row_labels[number] = labels[first + row - start]


@njit(nogil=True, cache=True)
def _searched(labels, variables, first, length, first_rows, offset):  # type: ignore[no-untyped-def]
    """The place of the row of some variables behind `offset` others, from the first or from the
    last one of `length` rows on; −1: there is none."""
    for number in range(length):
        place = number if first_rows else length - 1 - number
        if variables[labels[first + place]]:
            if offset == 0:
                return place
            offset -= 1
    return -1


def _aggregate(real: bool):  # type: ignore[no-untyped-def]
    """The kernel of sums of whole numbers, or of real ones."""

    @njit(nogil=True)
    def aggregate(  # type: ignore[no-untyped-def]
        matches, labels, shown, variables, final, values, valid, results, counts
    ):
        """Write the sum of the visible rows' values, and their number, for each row of the result.

        values, valid: by row of the matches, as in `listed_rows`; `valid` of no size: all are.
        """
        count, done, known = 0, 0, -1
        value = values.dtype.type(0)
        for number in range(shown.shape[0]):
            match, current = shown[number, 0], shown[number, 1]
            first = matches[match, FIRST_LABEL]
            if match != known:
                known, count, done = match, 0, 0
                value = values.dtype.type(0)
            until = max(matches[match, LENGTH], 0) if final else current + 1
            for place in range(first + done, first + until):
                if not variables[labels[place]] or (valid.shape[0] > 0 and not valid[place]):
                    continue
                if real:
                    value += values[place]
                else:
                    value = add_long(value, values[place])
                count += 1
            done = max(done, until)
            results[number] = value
            counts[number] = count

    return aggregate


aggregate_whole = _aggregate(False)
aggregate_real = _aggregate(True)


@njit(nogil=True, cache=True)
def aggregate_durations(  # type: ignore[no-untyped-def]
    matches, labels, shown, variables, final, values, valid, averages, results, known
):
    """Write the sum or average of the visible rows' durations, and whether there is one that fits,
    for each row of the result; the arguments are those of `aggregate`."""
    high, low, count, done, last = np.int64(0), np.int64(0), 0, 0, -1
    for number in range(shown.shape[0]):
        match, current = shown[number, 0], shown[number, 1]
        first = matches[match, FIRST_LABEL]
        if match != last:
            high, low, count, done, last = np.int64(0), np.int64(0), 0, 0, match
        until = max(matches[match, LENGTH], 0) if final else current + 1
        for place in range(first + done, first + until):
            if variables[labels[place]] and valid[place]:
                high, low = add_duration(high, low, values[place])
                count += 1
        done = max(done, until)
        if averages:
            results[number], known[number] = mean_duration(high, low, max(count, 1)), count > 0
        else:
            results[number], known[number] = duration_of(high, low), count > 0 and is_duration(high)


@njit(nogil=True)
def least_or_greatest_place(  # type: ignore[no-untyped-def]
    matches, labels, shown, variables, final, values, valid, least, places
):
    """Write the place, among the rows of the matches, of the first least (or greatest) value that
    each row of the result sees; −1: it sees none."""
    best, done, known = -1, 0, -1
    for number in range(shown.shape[0]):
        match, current = shown[number, 0], shown[number, 1]
        first = matches[match, FIRST_LABEL]
        if match != known:
            known, best, done = match, -1, 0
        until = max(matches[match, LENGTH], 0) if final else current + 1
        for place in range(first + done, first + until):
            if not variables[labels[place]] or not valid[place]:
                continue
            if (
                best < 0
                or (least and less_real(values[place], values[best]))
                or (not least and less_real(values[best], values[place]))
            ):
                best = place
        done = max(done, until)
        places[number] = best


@njit(nogil=True, cache=True)
def list_visible(matches, labels, shown, variables, final, ends, places):  # type: ignore[no-untyped-def]
    """Write the places, among the rows of the matches, that each row of the result sees of
    variables, and where its part of them ends; returns how many there are. Where `places` has no
    size, they are counted alone."""
    count, writes = 0, places.shape[0] > 0
    for number in range(shown.shape[0]):
        match, current = shown[number, 0], shown[number, 1]
        first = matches[match, FIRST_LABEL]
        seen = max(matches[match, LENGTH], 0) if final else current + 1
        for place in range(first, first + seen):
            if variables[labels[place]]:
                if writes:
                    places[count] = place
                count += 1
        ends[number] = count
    return count

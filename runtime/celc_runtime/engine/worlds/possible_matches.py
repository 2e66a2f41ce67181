"""The events of matches in possible worlds, sorted by position."""

import numpy as np

from celc_runtime.jit.kernels import njit

_FEW = 256  # moved places: an insertion sort that moves more is left to a real sort


@njit(nogil=True, cache=True)
def put_in_order(ends, tags):  # type: ignore[no-untyped-def]
    """Sort the events of each match by number, in place. Most matches are in reverse order."""
    begin = np.int64(0)
    for match in range(ends.shape[0]):
        end = ends[match]
        low, high = begin, end - 1
        while low < high:
            tags[low], tags[high] = tags[high], tags[low]
            low += 1
            high -= 1
        for place in range(begin + 1, end):
            tag, at = tags[place], place
            while at > begin and tags[at - 1] > tag:
                tags[at] = tags[at - 1]
                at -= 1
            tags[at] = tag
        begin = end


@njit(nogil=True, cache=True)
def greatest_of(ends, rows, values):  # type: ignore[no-untyped-def]
    """int64[matches]: an event with the greatest value in each match."""
    found = np.empty(ends.shape[0], np.int64)
    begin = np.int64(0)
    for match in range(ends.shape[0]):
        best = rows[begin]
        for place in range(begin + 1, ends[match]):
            if values[rows[place]] > values[best]:
                best = rows[place]
        found[match] = best
        begin = ends[match]
    return found


@njit(nogil=True, cache=True)
def under_label(ends, tags, bits, belongs):  # type: ignore[no-untyped-def]
    """(int32[matches + 1], where the events of each match begin; int64, the events) of one label.

    belongs: bool[kinds].
    """
    offsets = np.zeros(ends.shape[0] + 1, np.int32)
    events = np.empty(tags.shape[0], np.int64)
    kind_mask = (np.int64(1) << bits) - 1
    count, begin = 0, np.int64(0)
    for match in range(ends.shape[0]):
        for place in range(begin, ends[match]):
            if belongs[tags[place] & kind_mask]:
                events[count] = tags[place] >> bits
                count += 1
        offsets[match + 1] = count
        begin = ends[match]
    return offsets, events[:count]


@njit(nogil=True, cache=True)
def last_and_order(ends, tags, bits):  # type: ignore[no-untyped-def]
    """(the last event of each match; the matches by last event; whether they are in that order).

    Both arrays are int64[matches]. The events of each match must be sorted. Matches with the same
    last event are sorted by their first events, latest first. The second array is empty if the
    matches are in this order already, and meaningless if the third value is False.
    """
    matches = ends.shape[0]
    last, order = np.empty(matches, np.int64), np.empty(matches, np.int64)
    first = np.empty(matches, np.int64)
    begin, moved = np.int64(0), False
    start = 0
    for match in range(matches):
        first[match], last[match] = tags[begin] >> bits, tags[ends[match] - 1] >> bits
        begin = ends[match]
        if match > 0 and last[match] < last[match - 1]:
            return last, order, False
        if match > 0 and last[match] > last[match - 1]:
            start = match
        # Few matches have the same last event, or most of them are in order.
        at = match
        while at > start and first[order[at - 1]] < first[match]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = match
        moved |= at < match
        if at < match - _FEW:
            return last, order, False
    return last, order if moved else order[:0], True


@njit(nogil=True, cache=True)
def taken_matches(ends, tags, confidences, order):  # type: ignore[no-untyped-def]
    """The ends, tags and confidences of the matches with the numbers `order` (int64)."""
    matches, count = order.shape[0], np.int64(0)
    for match in order:
        count += ends[match] - (ends[match - 1] if match > 0 else 0)
    of_ends, of_tags = np.empty(matches, np.int64), np.empty(count, np.int64)
    shares = np.empty(matches, np.float64)
    used = np.int64(0)
    for place in range(matches):
        match = order[place]
        for at in range(ends[match - 1] if match > 0 else 0, ends[match]):
            of_tags[used] = tags[at]
            used += 1
        of_ends[place], shares[place] = used, confidences[match]
    return of_ends, of_tags, shares

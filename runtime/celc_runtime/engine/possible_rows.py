"""The events of matches in possible worlds, put in the order of their positions."""

from __future__ import annotations

import numpy as np

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def put_in_order(ends, tags):  # type: ignore[no-untyped-def]
    """Sort the events of each match by their numbers, in place. Most stand in the opposite order."""
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
    """int64[matches]: of the events of each match one with the greatest value."""
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
    """The events under a label: int32[matches + 1], where those of each match begin, and int64, the
    events. belongs: bool[kinds]."""
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

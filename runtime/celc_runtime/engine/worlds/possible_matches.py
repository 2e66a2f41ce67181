"""Matches in possible worlds: their orders added up, and their events sorted by position."""

import numpy as np

from celc_runtime.engine.arena.key_tables import hash_of, hash_of_three
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


@njit(nogil=True, cache=True)
def added_up(ends, tags, shares, bits, looks, bound):  # type: ignore[no-untyped-def]
    """Matches out of chains, each of which is one order of the events of a match.

    ends, tags, shares: the chains, with the probability of each, in the form of `PossibleRows`.
    looks: int64[kinds], as in `Question`. Returns the matches in the same form, those with a
    confidence above `bound`. Chains with the same events, labels and order count once. Sets and
    orders are compared by 128 random bits, as in `possible_sets`.
    """
    chains = ends.shape[0]
    size = np.int64(16)
    while size < 4 * chains:
        size *= 2
    # A table of sets, and of chains with their order.
    slots, keys = np.full(size, -1, np.int64), np.empty((size, 2), np.int64)
    confidences, first = np.zeros(chains, np.float64), np.empty(chains, np.int64)
    count, begin, kept = 0, np.int64(0), np.int64(0)
    mask = (np.int64(1) << bits) - 1
    for number in range(chains):
        one, other, order, turned = np.int64(0), np.int64(0), np.int64(1), np.int64(2)
        for place in range(begin, ends[number]):
            letter = (tags[place] >> bits) * looks.shape[0] + looks[tags[place] & mask]
            of_one, of_other = hash_of(np.int64(2 * letter)), hash_of(np.int64(2 * letter + 1))
            one, other = one + of_one, other + of_other
            order = hash_of_three(order, of_one, np.int64(0))
            turned = hash_of_three(turned, of_other, np.int64(1))
        slot = slot_of(slots, keys, order, turned)
        is_new = slots[slot] < 0
        slots[slot], keys[slot, 0], keys[slot, 1] = 0, order, turned
        if is_new:
            slot = slot_of(slots, keys, one, other)
            if slots[slot] < 0:
                slots[slot], keys[slot, 0], keys[slot, 1] = count, one, other
                first[count] = number
                count += 1
            confidences[slots[slot]] += shares[number]
        begin = ends[number]
    wanted = np.empty(count, np.int64)
    for match in range(count):
        if confidences[match] > bound:
            wanted[kept], confidences[kept] = first[match], confidences[match]
            kept += 1
    of_ends, of_tags, _ = taken_matches(ends, tags, shares, wanted[:kept])
    return of_ends, of_tags, confidences[:kept]


@njit(nogil=True, cache=True)
def slot_of(slots, keys, one, other):  # type: ignore[no-untyped-def]
    """The slot of a key of 128 bits in a hash table (−1: free), or where it belongs."""
    slot = one & (slots.shape[0] - 1)
    while slots[slot] >= 0 and (keys[slot, 0] != one or keys[slot, 1] != other):
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot

"""Reduces the collected matches of one event: by a selector, and to one of each that look alike.

The *support* of a match is the set of its events that count for the selector. The *look* of a match
is its first event and the labels that it shows on each event.
"""

import numpy as np

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def copy_matches(source, output, first, end):  # type: ignore[no-untyped-def]
    """Copy matches while there is room; returns their number."""
    copied = 0
    for match in range(first, end):
        start = source.ends[match - 1] if match > 0 else np.int64(0)
        size = source.ends[match] - start
        matches, used = output.used[0], output.used[1]
        if matches == output.rows.shape[0] or used + size > output.tags.shape[0]:
            break
        # A loop: slices take Numba a second to compile.
        for place in range(size):
            output.tags[used + place] = source.tags[start + place]
        output.rows[matches], output.ends[matches] = source.rows[match], used + size
        output.used[0], output.used[1] = matches + 1, used + size
        copied += 1
    return copied


@njit(nogil=True, cache=True)
def keep_matches(output, kept):  # type: ignore[no-untyped-def]
    """Drop the matches that are not kept (bool[matches]), and close the gaps."""
    matches, used, start = 0, np.int64(0), np.int64(0)
    for match in range(output.used[0]):
        end = output.ends[match]
        if kept[match]:
            for place in range(start, end):
                output.tags[used] = output.tags[place]
                used += 1
            output.rows[matches], output.ends[matches] = output.rows[match], used
            matches += 1
        start = end
    output.used[0], output.used[1] = matches, used


@njit(nogil=True, cache=True)
def _start_of(output, match):  # type: ignore[no-untyped-def]
    """Where the tags of a match begin."""
    return output.ends[match - 1] if match > 0 else np.int64(0)


@njit(nogil=True, cache=True)
def _support_of(output, bits, supports, match, into):  # type: ignore[no-untyped-def]
    """Write the events of a match's support, ascending; returns their number."""
    count = 0
    kind_mask = (np.int64(1) << bits) - 1
    for place in range(_start_of(output, match), output.ends[match]):
        tag = output.tags[place]
        if supports[tag & kind_mask]:
            into[count] = tag >> bits
            count += 1
    return count


@njit(nogil=True, cache=True)
def _prefers(is_next, one, ones, other, others):  # type: ignore[no-untyped-def]
    """1 if NXT (or else LAST) prefers the first of two supports, −1 for the second, 0 for equal
    ones.

    The smallest (for LAST the largest) event that is in only one of them decides.
    """
    for place in range(min(ones, others)):
        mine = one[place] if is_next else one[ones - 1 - place]
        yours = other[place] if is_next else other[others - 1 - place]
        if mine != yours:
            return 1 if (mine < yours) == is_next else -1
    return 1 if ones > others else -1 if ones < others else 0


@njit(nogil=True, cache=True)
def keep_preferred(output, bits, supports, is_next):  # type: ignore[no-untyped-def]
    """Keep the matches with the support that NXT (or else LAST) prefers to all others here."""
    matches = output.used[0]
    kept = np.ones(matches, np.bool_)
    longest = 0
    for match in range(matches):
        longest = max(longest, output.ends[match] - _start_of(output, match))
    one, other = np.empty(longest, np.int64), np.empty(longest, np.int64)
    best = 0
    for match in range(1, matches):
        size = _support_of(output, bits, supports, match, one)
        bests = _support_of(output, bits, supports, best, other)
        preferred = _prefers(is_next, one, size, other, bests)
        if preferred > 0:
            kept[best:match] = False
            best = match
        elif preferred < 0:
            kept[match] = False
    keep_matches(output, kept)


@njit(nogil=True, cache=True)
def keep_preferred_of_starts(output, bits, supports, firsts):  # type: ignore[no-untyped-def]
    """Keep, among the matches with the same first event, those with the support NXT prefers.

    firsts: bool[kinds], which events can be the first.
    """
    matches = output.used[0]
    kept = np.ones(matches, np.bool_)
    starts = np.empty(matches, np.int64)
    kind_mask = (np.int64(1) << bits) - 1
    longest = 0
    for match in range(matches):
        begin = _start_of(output, match)
        longest = max(longest, output.ends[match] - begin)
        while not firsts[output.tags[begin] & kind_mask]:
            begin += 1
        starts[match] = output.tags[begin] >> bits
    one, other = np.empty(longest, np.int64), np.empty(longest, np.int64)
    best, first, order = 0, 0, np.argsort(starts, kind="mergesort")
    for place in range(matches):
        match = order[place]
        if place == 0 or starts[match] != starts[best]:
            best, first = match, place
            continue
        size = _support_of(output, bits, supports, match, one)
        bests = _support_of(output, bits, supports, best, other)
        preferred = _prefers(True, one, size, other, bests)
        if preferred > 0:
            kept[order[first:place]] = False
            best = match
        elif preferred < 0:
            kept[match] = False
    keep_matches(output, kept)


@njit(nogil=True, cache=True)
def _contained(one, other):  # type: ignore[no-untyped-def]
    """Whether each event of one support is in the other."""
    place = 0
    for event in one:
        while place < other.shape[0] and other[place] < event:
            place += 1
        if place == other.shape[0] or other[place] != event:
            return False
        place += 1
    return True


@njit(nogil=True, cache=True)
def keep_largest(output, bits, supports, most_work):  # type: ignore[no-untyped-def]
    """Keep the matches whose supports are in no larger support here, as MAX chooses them.

    Returns the number of events and supports that were compared; past `most_work` it stops early,
    and keeps all. Supports are taken by size, the largest first. They are compared with kept
    supports only: a support inside another one is inside a kept one. A hash of 64 bits, one bit for
    each event, often shows that the smaller support has an event of its own. Only otherwise the two
    are compared event by event.
    """
    matches, used = output.used[0], output.used[1]
    events = np.empty(used, np.int64)
    begins = np.empty(matches + 1, np.int64)
    sizes, hashes = np.empty(matches, np.int64), np.zeros(matches, np.uint64)
    begins[0] = 0
    for match in range(matches):
        begin = begins[match]
        sizes[match] = _support_of(output, bits, supports, match, events[begin:])
        begins[match + 1] = begin + sizes[match]
        for event in events[begin : begins[match + 1]]:
            hashes[match] |= np.uint64(1) << np.uint64(event & 63)
    kept = np.zeros(matches, np.bool_)
    largest = np.empty(matches, np.int64)
    count, larger, size, work = 0, 0, np.int64(-1), matches
    for match in np.argsort(-sizes, kind="mergesort"):
        if sizes[match] != size:
            # A support can only be inside a larger one.
            larger, size = count, sizes[match]
        is_within = False
        support = events[begins[match] : begins[match + 1]]
        for place in range(larger):
            rival = largest[place]
            work += 1
            if hashes[match] & ~hashes[rival]:
                continue
            work += size + sizes[rival]
            if _contained(support, events[begins[rival] : begins[rival + 1]]):
                is_within = True
                break
        if work > most_work:
            return work
        if not is_within:
            kept[match] = True
            largest[count] = match
            count += 1
    keep_matches(output, kept)
    return work


@njit(nogil=True, cache=True)
def _same_look(output, bits, shown, one, other):  # type: ignore[no-untyped-def]
    kind_mask = (np.int64(1) << bits) - 1
    at, end = _start_of(output, one), output.ends[one]
    yours, your_end = _start_of(output, other), output.ends[other]
    if output.tags[at] >> bits != output.tags[yours] >> bits:
        return False
    while True:
        while at < end and shown[output.tags[at] & kind_mask] < 0:
            at += 1
        while yours < your_end and shown[output.tags[yours] & kind_mask] < 0:
            yours += 1
        if at == end or yours == your_end:
            return at == end and yours == your_end
        mine, your = output.tags[at], output.tags[yours]
        if mine >> bits != your >> bits or shown[mine & kind_mask] != shown[your & kind_mask]:
            return False
        at += 1
        yours += 1


@njit(nogil=True, cache=True)
def keep_distinct(output, bits, shown):  # type: ignore[no-untyped-def]
    """Keep one match of each look; all matches end at the same event."""
    matches = output.used[0]
    size = 16
    while size < 2 * matches:
        size *= 2
    table = np.full(size, -1, np.int64)
    kept = np.zeros(matches, np.bool_)
    kind_mask = (np.int64(1) << bits) - 1
    for match in range(matches):
        start = _start_of(output, match)
        code = np.uint64(output.tags[start] >> bits)
        for place in range(start, output.ends[match]):
            tag = output.tags[place]
            look = shown[tag & kind_mask]
            if look >= 0:
                code ^= np.uint64(tag >> bits) * np.uint64(64) + np.uint64(look)
                code *= np.uint64(0x9E3779B97F4A7C15)
                code ^= code >> np.uint64(29)
        slot = np.int64(code & np.uint64(size - 1))
        while table[slot] >= 0 and not _same_look(output, bits, shown, table[slot], match):
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = match
            kept[match] = True
    keep_matches(output, kept)

"""Listing with conditions across events: a branch is cut as soon as its events decide a condition.

The walk is that of `enumerate`, from the last event of a match back to the first. Each event that
is added is checked against those that are on the path already: a condition is decided as soon as
the last of the events that it compares is there, and no match below is looked at if it fails. What
is left is a match. So the delay between two matches is constant for conditions that keys decide
(`joins`); for others, whatever fails lies in between.

Two kinds of queries need all matches of an end event before the first can be handed out: those
whose output does not tell matches apart by all of the events that are compared (each row is to come
once), and those with a selector. They are collected, and reduced whenever the buffers are full.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from celc_runtime.arrow.columns import Prepared
from celc_runtime.engine.arena import (
    CHILD,
    DONE,
    FIRED,
    FIRES,
    LISTED,
    MATCHES_LEFT,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    SINCE,
    STACK_FULL,
    STACK_SIZE,
    TAG,
    TOO_MUCH_WORK,
    WORK,
    Memory,
    lowest_id,
    relevant_rows,
)
from celc_runtime.engine.listing import Kinds, Output, new_output
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked
from celc_runtime.run.history import Remembered
from celc_runtime.run.listings import Floors, ListingOfRun
from celc_runtime.run.positions import Positions

_COLLECTED = 1 << 12
_COLLECTED_ENTRIES = 1 << 14


@cache
def checked_listing(
    admits: Callable[..., bool], completes: Callable[..., bool]
) -> Callable[..., int]:
    """A function like `enumerate.list_fired` that lists what generated functions admit.

    Made once for each query, because Numba compiles it, which takes seconds.
    """

    def walk(memory, output, kinds, past, first, consumed, most_work, collects, state):  # type: ignore[no-untyped-def]
        nodes, counters, stack, path = memory.nodes, memory.counters, memory.stack, memory.path
        mask = nodes.shape[0] - 1
        fire = memory.fires[counters[LISTED] - 1]
        row, floor_value = fire[1], fire[3]
        lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
        left = counters[MATCHES_LEFT]
        bits = kinds.bits[0]
        kind_mask = (np.int64(1) << bits) - 1
        starts, rows, ends, tags = kinds.starts, output.rows, output.ends, output.tags
        matches, used = output.used[0], output.used[1]
        waiting, status, work = counters[STACK_SIZE], DONE, counters[WORK]
        while waiting > 0 and status == DONE:
            waiting -= 1
            node, depth = stack[waiting, 0], stack[waiting, 1]
            while True:
                at = node & mask
                tag, following = nodes[at, TAG], nodes[at, NEXT]
                begins = tag != MERGE and starts[tag & kind_mask]
                if waiting + 2 > stack.shape[0] or depth + 1 >= path.shape[0]:
                    status = STACK_FULL
                elif begins and (matches == rows.shape[0] or used + depth + 1 > tags.shape[0]):
                    status = OUTPUT_FULL
                elif work > most_work:
                    status = TOO_MUCH_WORK
                if status != DONE:
                    # The node goes back untouched; the path above it stays where it is.
                    stack[waiting, 0], stack[waiting, 1] = node, depth
                    waiting += 1
                    break
                goes_on = following >= lowest and nodes[following & mask, SINCE] >= floor_value
                if tag == MERGE:
                    if goes_on:
                        stack[waiting, 0], stack[waiting, 1] = following, depth
                        waiting += 1
                    node = nodes[at, CHILD]
                    continue
                path[depth] = tag
                work += 1
                admitted = (tag >> bits) > consumed and admits(past, first, path, depth, state)
                if begins and admitted and completes(past, first, path, depth, state):
                    for place in range(depth, -1, -1):
                        tags[used] = path[place]
                        used += 1
                    rows[matches], ends[matches] = row, used
                    matches += 1
                    left -= 1
                    if not collects:
                        work = 0
                    if left == 0:
                        waiting = 0
                        break
                child = nodes[at, CHILD]
                if admitted and child >= lowest and nodes[child & mask, SINCE] >= floor_value:
                    if goes_on:
                        stack[waiting, 0], stack[waiting, 1] = following, depth
                        waiting += 1
                    node = child
                    depth += 1
                elif goes_on:
                    node = following
                else:
                    break
        counters[STACK_SIZE], counters[MATCHES_LEFT], counters[WORK] = waiting, left, work
        output.used[0], output.used[1] = matches, used
        return status

    # A function that Numba has not compiled (for debugging) cannot be called by one that it has.
    # The conditions become part of the walk. Nothing in it makes an array, and to count references
    # to the columns, which the caller holds, would cost several times what a step does.
    compiled_walk: Any = walk
    if hasattr(admits, "py_func"):
        compiled_walk = njit(nogil=True, error_model="numpy", _nrt=False)(walk)

    def listing(memory, output, kinds, past, first, consumed, most, most_work, collects, state):  # type: ignore[no-untyped-def]
        counters = memory.counters
        begun = 0
        while True:
            if counters[STACK_SIZE] == 0:
                if counters[LISTED] == counters[FIRED] or begun == most or output.limit[0] == 0:
                    return DONE
                begun += 1
                memory.stack[0, 0] = memory.fires[counters[LISTED], 0]
                memory.stack[0, 1] = 0
                counters[STACK_SIZE] = 1
                counters[LISTED] += 1
                counters[MATCHES_LEFT] = output.limit[0]
                counters[WORK] = 0
            status = compiled_walk(
                memory, output, kinds, past, first, consumed, most_work, collects, state
            )
            if status != DONE:
                return status

    return njit(nogil=True)(listing) if hasattr(admits, "py_func") else listing


class CheckedListing(ListingOfRun):
    """Lists the matches of the events that fired, with what the conditions read of past events."""

    def __init__(self, checks: Checked, plan: Plan) -> None:
        self._checks = checks
        self._listing = checked_listing(checks.admits, checks.completes)
        self._remembered = Remembered(checks.remembers)
        self._consumes = plan.consume_by != "NONE"
        self._limit = 2**62 if plan.limit is None else plan.limit
        self._bits = plan.kind_bits
        self._max_work = plan.max_work
        self._state = np.zeros((checks.states, 0), np.int64)
        self._consumed = -1
        columns = [kind.columns for kind in plan.kinds]
        looks = {look: number for number, look in enumerate(dict.fromkeys(columns))}
        # What an event shows: the same number where the same, −1 where nothing.
        self._shown = np.array([looks[look] if look else -1 for look in columns], np.int64)
        self._supports = np.array(checks.supports, np.bool_)
        self._collects = self._consumes or checks.distinct or bool(checks.selector)
        self._collected = new_output(matches=1, room=1, limit=None)
        if self._collects:
            self._collected = new_output(matches=_COLLECTED, room=_COLLECTED_ENTRIES, limit=None)
        self._ready: int | None = None

    @property
    def nbytes(self) -> int:
        """The size of what is kept between batches."""
        return self._remembered.nbytes + sum(array.nbytes for array in self._collected)

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        """Take in a batch."""
        batch = prepared.batch
        count = int(np.count_nonzero(batch.symbols))
        if count:
            rows = relevant_rows(batch.words, batch.symbols, count)
            self._remembered.append(prepared.events, rows, batch.symbols[rows])
        return prepared

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End the batch: entries before `oldest` are not asked for any more."""
        self._remembered.drop(oldest())

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        """List the matches of each event that fired; a status of the arena module."""
        counters = memory.counters
        if output.limit[0] == 0:
            counters[LISTED] = counters[FIRED]
        while True:
            if self._ready is not None and not self._delivered(output):
                return OUTPUT_FULL
            if counters[LISTED] == counters[FIRED] and counters[STACK_SIZE] == 0:
                counters[LISTED] = counters[FIRED] = 0
                return DONE
            if self._state.shape[1] < len(memory.path):
                wider = np.zeros((len(self._state), len(memory.path)), np.int64)
                wider[:, : self._state.shape[1]] = self._state
                self._state = wider
            into = self._collected if self._collects else output
            most = (1 if counters[STACK_SIZE] == 0 else 0) if self._collects else FIRES
            status = int(
                self._listing(
                    memory,
                    into,
                    kinds,
                    self._remembered.past,
                    self._remembered.first,
                    self._consumed,
                    most,
                    self._max_work,
                    self._collects,
                    self._state,
                )
            )
            if not self._collects:
                if status != DONE:
                    return status
            elif status not in (OUTPUT_FULL, DONE):
                return status
            else:
                self._reduce(memory, kinds, is_complete=status == DONE)
                if counters[WORK] > self._max_work:
                    return TOO_MUCH_WORK
                if status == DONE:
                    self._ready = 0
                else:
                    # What did not fit ends with the node on top of the stack.
                    self._make_room(int(memory.stack[counters[STACK_SIZE] - 1, 1]) + 1)

    def _reduce(self, memory: Memory, kinds: Kinds, *, is_complete: bool) -> None:
        """Drop what a selector does not choose, and what is there twice.

        The events that MAX compares count as steps of the search; past the limit it drops nothing.
        """
        counters, bits = memory.counters, kinds.bits[0]
        if self._checks.selector == "MAX":
            most = self._max_work - int(counters[WORK])
            counters[WORK] += _keep_largest(self._collected, bits, self._supports, most)
        elif self._checks.selector:
            _keep_preferred(self._collected, bits, self._supports, self._checks.selector == "NXT")
        # Of two that look alike, MAX may need the other one's support until all have been seen.
        if self._checks.distinct and (is_complete or self._checks.selector != "MAX"):
            _keep_distinct(self._collected, kinds.bits[0], self._shown)

    def _make_room(self, size: int) -> None:
        """More room for what is collected for one event, if reducing it has not helped much.

        `size`: how many events the match that did not fit has, as far as is known by now.
        """
        collected = self._collected
        rows, tags = len(collected.rows), len(collected.tags)
        matches, used = (int(count) for count in collected.used)
        more_rows = rows if 2 * matches >= rows else 0
        more_tags = max(tags, size) if 2 * used > tags or used + size > tags else 0
        if more_rows or more_tags:
            self._collected = Output(
                np.concatenate([collected.rows, np.zeros(more_rows, np.int64)]),
                np.concatenate([collected.ends, np.zeros(more_rows, np.int64)]),
                np.concatenate([collected.tags, np.zeros(more_tags, np.int64)]),
                collected.used,
                collected.limit,
            )

    def _delivered(self, output: Output) -> bool:
        """Hand out what has been collected, up to LIMIT; False where the output is full."""
        collected = self._collected
        found = min(int(collected.used[0]), self._limit)
        assert self._ready is not None
        while self._ready < found:
            copied = int(_copy_matches(collected, output, self._ready, found))
            if copied == 0:
                return False
            self._ready += copied
        if found and self._consumes:
            last = collected.tags[collected.ends[0] - 1]
            self._consumed = int(last >> self._bits)
        collected.used[:] = 0
        self._ready = None
        return True


@njit(nogil=True, cache=True)
def _copy_matches(source, output, first, end):  # type: ignore[no-untyped-def]
    """Copy matches as far as there is room; returns how many."""
    copied = 0
    for match in range(first, end):
        start = source.ends[match - 1] if match > 0 else np.int64(0)
        size = source.ends[match] - start
        matches, used = output.used[0], output.used[1]
        if matches == output.rows.shape[0] or used + size > output.tags.shape[0]:
            break
        output.tags[used : used + size] = source.tags[start : source.ends[match]]
        output.rows[matches], output.ends[matches] = source.rows[match], used + size
        output.used[0], output.used[1] = matches + 1, used + size
        copied += 1
    return copied


@njit(nogil=True, cache=True)
def _keep(output, kept):  # type: ignore[no-untyped-def]
    """Close the gaps between the matches that are kept."""
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
    return output.ends[match - 1] if match > 0 else np.int64(0)


@njit(nogil=True, cache=True)
def _support_of(output, bits, supports, match, into):  # type: ignore[no-untyped-def]
    """Write the events of a match that count, ascending; returns how many."""
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
    """Whether NXT (else LAST) prefers the first of two supports; −1 for the second, 0: equal.

    What decides is the smallest (largest) event in one and not in the other.
    """
    for place in range(min(ones, others)):
        mine = one[place] if is_next else one[ones - 1 - place]
        yours = other[place] if is_next else other[others - 1 - place]
        if mine != yours:
            return 1 if (mine < yours) == is_next else -1
    return 1 if ones > others else -1 if ones < others else 0


@njit(nogil=True, cache=True)
def _keep_preferred(output, bits, supports, is_next):  # type: ignore[no-untyped-def]
    """Keep the matches with the support that NXT (else LAST) chooses among all here."""
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
    _keep(output, kept)


@njit(nogil=True, cache=True)
def _contained(one, other):  # type: ignore[no-untyped-def]
    """Whether each event of one support is in another one."""
    place = 0
    for event in one:
        while place < other.shape[0] and other[place] < event:
            place += 1
        if place == other.shape[0] or other[place] != event:
            return False
        place += 1
    return True


@njit(nogil=True, cache=True)
def _keep_largest(output, bits, supports, most_work):  # type: ignore[no-untyped-def]
    """Keep the matches whose supports lie within no larger one here, as MAX chooses them.

    Returns the number of events and of supports that were compared; past `most_work` it ends
    early, and keeps all. Supports are taken by size, the largest first, and only compared with
    those that are kept: what lies within another support lies within a kept one. Two supports are
    compared event by event only if a hash of 64 bits, one bit for each event, does not tell that
    one has an event that the other has not.
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
            # Supports of one size do not lie properly within each other.
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
    _keep(output, kept)
    return work


@njit(nogil=True, cache=True)
def _same_look(output, bits, shown, one, other):  # type: ignore[no-untyped-def]
    """Whether two matches begin alike and show the same labels on the same events."""
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
def _keep_distinct(output, bits, shown):  # type: ignore[no-untyped-def]
    """Keep one of each of the matches that look alike; all end at one event."""
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
    _keep(output, kept)

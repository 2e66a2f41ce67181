"""Sets of events of uncertain time that a definition judges: which there are.

A set comes once, in whatever order its events can be a match, and with it the events that must be
absent and can be between its events.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.key_tables import hash_of_two
from celc_runtime.engine.values.copies import copy_to
from celc_runtime.engine.worlds.possible_matches import slot_of
from celc_runtime.engine.worlds.possible_moves import START
from celc_runtime.jit.kernels import njit


class Asking(NamedTuple):
    """What is the same for all sets of a query."""

    step: int  # between two points
    window: int  # the longest match; negative: any length
    bits: int  # the number of bits of a kind
    max_work: int  # the most steps for one set
    longest: int  # the longest time between the first and the last point of an event
    kinds: np.ndarray  # int64[kinds], one number for all kinds with the same labels
    absent: np.ndarray  # bool[symbols], whether events must be absent somewhere
    alone: bool  # whether each of these rules a match out by itself
    by_symbol: bool  # whether the symbols of events tell all that conditions ask
    measures: bool  # whether times count beside the order of events


class Judged(NamedTuple):
    """Sets of events, each with those that are multiplied with it."""

    ends: np.ndarray  # int64[sets], where the tags of each set end
    tags: np.ndarray  # int64, events of the match << bits | kind, ascending
    told_ends: np.ndarray  # int64[sets], where the multiplied events end in the next one
    told: np.ndarray  # int64, events of the match, then others unless these are apart
    apart_ends: np.ndarray  # int64[sets]
    apart: np.ndarray  # int64, other events, each of which is seen with the match alone


@njit(nogil=True, cache=True)
def with_room(array, needed):  # type: ignore[no-untyped-def]
    """The array, or a longer copy of it that holds `needed` numbers."""
    if needed <= array.shape[0]:
        return array
    larger = np.empty(max(needed, 2 * array.shape[0]), array.dtype)
    copy_to(larger, 0, array)
    return larger


@njit(nogil=True, cache=True)
def distinct(rows, width, count):  # type: ignore[no-untyped-def]
    """Keep each row of `width` numbers once, in place; returns how many are left."""
    size = np.int64(16)
    while size < 4 * count:
        size *= 2
    slots, keys = np.full(size, -1, np.int64), np.empty((size, 2), np.int64)
    kept = 0
    for row in range(count):
        one, other = np.int64(1), np.int64(2)
        for place in range(width):
            one = hash_of_two(one, rows[row * width + place])
            other = hash_of_two(other, ~rows[row * width + place])
        slot = slot_of(slots, keys, one, other)
        if slots[slot] >= 0:
            continue
        slots[slot], keys[slot, 0], keys[slot, 1] = 0, one, other
        for place in range(width):
            rows[kept * width + place] = rows[row * width + place]
        kept += 1
    return kept


@njit(nogil=True, cache=True)
def sets_of_cluster(first, stop, events, moves, asked):  # type: ignore[no-untyped-def]
    """The sets of events that the relaxed formula admits in some order, events of one time in any
    order, and whose greatest event is from `first` to before `stop`.

    Returns (steps, or −1 if there are more than allowed; int64[sets], where the tags of each end;
    int64, tags).
    """
    low, last, step, window, bits = events.low, events.last, asked.step, asked.window, asked.bits
    ends, tags = np.empty(16, np.int64), np.empty(64, np.int64)
    count, used, work = 0, 0, 0
    # Open sets of one size: tags, the first event, the state before it, and the latest time at
    # which that event can be.
    size, opened = 1, 0
    rows, complete, whole = np.empty(64, np.int64), np.empty(16, np.int64), 0
    for event in range(first, stop):
        symbol = events.symbols[event]
        for move in range(moves.ends_first[symbol], moves.ends_first[symbol + 1]):
            tag = event << bits | asked.kinds[moves.ends_kinds[move]]
            if moves.ends_sources[move] == START:
                complete = with_room(complete, whole + 1)
                complete[whole] = tag
                whole += 1
                continue
            rows = with_room(rows, 4 * (opened + 1))
            rows[4 * opened], rows[4 * opened + 1] = tag, event
            rows[4 * opened + 2], rows[4 * opened + 3] = moves.ends_sources[move], last[event]
            opened += 1
    while True:
        for row in range(distinct(complete, size, whole)):
            greatest = complete[row * size + size - 1] >> bits
            if not first <= greatest < stop:
                continue  # it comes with the cluster of its greatest event
            ends, tags = with_room(ends, count + 1), with_room(tags, used + size)
            for place in range(size):
                tags[used + place] = complete[row * size + place]
            used += size
            ends[count] = used
            count += 1
        opened = distinct(rows, size + 3, opened)
        if opened == 0:
            return work, ends[:count], tags[:used]
        longer, size = rows, size + 1
        rows, complete = np.empty(64, np.int64), np.empty(64, np.int64)
        waiting, opened, whole = opened, 0, 0
        for number in range(waiting):
            at = number * (size + 2)
            event, state, time = longer[at + size - 1], longer[at + size], longer[at + size + 1]
            part, behind = events.part[event], events.part_end[event]
            floor = low[longer[at + size - 2] >> bits] - window
            if window >= 0:
                part += np.searchsorted(low[part:behind], floor - asked.longest)
            for other in range(part, behind):
                if low[other] > time:
                    break
                work += 1
                if work > asked.max_work:
                    return -1, ends[:0], tags[:0]
                is_taken = window >= 0 and last[other] < floor
                for place in range(size - 1):
                    is_taken |= longer[at + place] >> bits == other
                if is_taken:
                    continue
                latest = min(last[other], low[other] + (time - low[other]) // step * step)
                symbol = events.symbols[other]
                for node in range(moves.node_first[symbol], moves.node_first[symbol + 1]):
                    if moves.node_states[node] != state:
                        continue
                    for move in range(moves.into_first[node], moves.into_first[node + 1]):
                        tag = other << bits | asked.kinds[moves.into_kinds[move]]
                        source = moves.into_sources[move]
                        if source == START:
                            complete = with_room(complete, (whole + 1) * size)
                            into, begin = complete, whole * size
                            whole += 1
                        else:
                            rows = with_room(rows, (opened + 1) * (size + 3))
                            into, begin = rows, opened * (size + 3)
                            rows[begin + size], rows[begin + size + 1] = other, source
                            rows[begin + size + 2] = latest
                            opened += 1
                        place = size - 1
                        while place > 0 and longer[at + place - 1] > tag:
                            into[begin + place] = longer[at + place - 1]
                            place -= 1
                        into[begin + place] = tag
                        for left in range(place):
                            into[begin + left] = longer[at + left]


@njit(nogil=True, cache=True)
def sets_of_clusters(starts, cluster, most, events, moves, asked):  # type: ignore[no-untyped-def]
    """The sets of all clusters from a number on, until they have more than `most` tags.

    starts: int64[clusters + 1]. Returns (the cluster to go on with, whether that one takes more
    than max_work steps; ends and tags as `sets_of_cluster`).
    """
    ends, tags = np.empty(64, np.int64), np.empty(256, np.int64)
    count, used, too_much = 0, 0, False
    while cluster < starts.shape[0] - 1 and used <= most:
        work, of_ends, of_tags = sets_of_cluster(
            starts[cluster], starts[cluster + 1], events, moves, asked
        )
        if work < 0:
            too_much = True
            break
        ends, tags = with_room(ends, count + len(of_ends)), with_room(tags, used + len(of_tags))
        copy_to(tags, used, of_tags)
        for number in range(of_ends.shape[0]):
            ends[count] = used + of_ends[number]
            count += 1
        used += of_tags.shape[0]
        cluster += 1
    return cluster, too_much, ends[:count], tags[:used]


@njit(nogil=True, cache=True)
def judged_sets(ends, tags, events, asked):  # type: ignore[no-untyped-def]
    """The sets, each with the events that must be absent and can be between its events; of one time
    with the first or the last event too, since UNLESS sees such events."""
    sets, bits, low, last = ends.shape[0], asked.bits, events.low, events.last
    told_ends, told = np.empty(sets, np.int64), np.empty(tags.shape[0], np.int64)
    apart_ends, apart = np.empty(sets, np.int64), np.empty(16, np.int64)
    begin, count, others = np.int64(0), 0, 0
    for number in range(sets):
        stop = ends[number]
        earliest, latest = low[tags[begin] >> bits], last[tags[begin] >> bits]
        told = with_room(told, count + stop - begin)
        for place in range(begin, stop):
            event = tags[place] >> bits
            earliest, latest = min(earliest, low[event]), max(latest, last[event])
            told[count] = event
            count += 1
        event = tags[begin] >> bits
        part, behind = events.part[event], events.part_end[event]
        if asked.absent.shape[0] == 0:
            behind = part
        else:
            part += np.searchsorted(low[part:behind], earliest - asked.longest)
        for other in range(part, behind):
            if low[other] > latest:
                break
            symbol = events.symbols[other]
            if last[other] < earliest or symbol >= asked.absent.shape[0]:
                continue
            is_other = symbol >= 0 and asked.absent[symbol]
            for place in range(begin, stop):
                is_other &= tags[place] >> bits != other
            if is_other and asked.alone:
                apart = with_room(apart, others + 1)
                apart[others] = other
                others += 1
            elif is_other:
                told = with_room(told, count + 1)
                told[count] = other
                count += 1
        told_ends[number], apart_ends[number] = count, others
        begin = stop
    return Judged(ends, tags, told_ends, told[:count], apart_ends, apart[:others])

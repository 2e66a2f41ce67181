"""The sets of labelled events that can be a match in several orders, and their confidences.

k overlapping events can have k! orders, so these are not walked one by one. Chains with the same
events, the same marks, the same state before them and the same first event continue in the same
way. Their vectors are added (dynamic programming over subsets, as for the travelling salesman).
Sets grow in layers from the last event back. All orders of a set of n events are complete in layer
n, so its confidence is known after that layer.

If rows must be likely, the sets of a layer that are in no match likely enough are left out
(`_hopeless`), so that a higher confidence costs less.

With a window, chains that end at different times are kept apart, because the end decides which
starts are inside.

Sets are compared by 128 random bits, the sum of those of their events and marks. Two of 10^12 sets
are equal by chance with a probability of about 10^-15.
"""

import numpy as np

from celc_runtime.engine.arena.key_tables import hash_of, hash_of_three
from celc_runtime.engine.values.copies import copy_to
from celc_runtime.engine.worlds.possible_moves import START
from celc_runtime.engine.worlds.possible_orders import (
    bound_of,
    extended,
    of_all_orders,
    set_out,
    share_of,
    with_twice_the_rows,
)
from celc_runtime.engine.worlds.possible_reach import FAR, NEVER, behind_of_state
from celc_runtime.engine.worlds.possible_walk import DONE, OUT_OF_WORK
from celc_runtime.jit.kernels import njit

_EVENT, _STATE, _END, _PARENT, _KIND, _AT, _LATEST, _FIRST_HASH, _SECOND_HASH = range(9)
"""The columns of a chain: its first event, the state before it, the time of its end (FAR: any), the
chain after its first event (−1: none), the kind of that event, the place of its vector, its latest
point, and the bits of the set."""


@njit(nogil=True, cache=True)
def _slot_of(slots, chains, first_hash, second_hash, event, state, end):  # type: ignore[no-untyped-def]
    """The slot of a chain in a hash table of chains (−1: free), or the free slot where it
    belongs."""
    mask = slots.shape[0] - 1
    slot = (first_hash ^ hash_of_three(np.int64(event), np.int64(state), np.int64(end))) & mask
    while slots[slot] >= 0:
        chain = slots[slot]
        if (
            chains[chain, _FIRST_HASH] == first_hash
            and chains[chain, _SECOND_HASH] == second_hash
            and chains[chain, _EVENT] == event
            and chains[chain, _STATE] == state
            and chains[chain, _END] == end
        ):
            return slot
        slot = (slot + 1) & mask
    return slot


@njit(nogil=True, cache=True)
def _larger(slots, chains, first, count):  # type: ignore[no-untyped-def]
    found = np.full(2 * slots.shape[0], -1, np.int64)
    for chain in range(first, count):
        slot = _slot_of(
            found,
            chains,
            chains[chain, _FIRST_HASH],
            chains[chain, _SECOND_HASH],
            chains[chain, _EVENT],
            chains[chain, _STATE],
            chains[chain, _END],
        )
        found[slot] = chain
    return found


@njit(nogil=True, cache=True)
def _longer(array, least):  # type: ignore[no-untyped-def]
    found = np.empty(max(2 * array.shape[0], least), array.dtype)
    copy_to(found, 0, array)
    return found


@njit(nogil=True, cache=True)
def _has(chains, chain, event):  # type: ignore[no-untyped-def]
    while chain >= 0:
        if chains[chain, _EVENT] == event:
            return True
        chain = chains[chain, _PARENT]
    return False


@njit(nogil=True, cache=True)
def _group_of(slots, chains, chain, by_state):  # type: ignore[no-untyped-def]
    """The first chain with the set of a chain (and its state), in a hash table that gets it."""
    mask = slots.shape[0] - 1
    state = chains[chain, _STATE] if by_state else np.int64(0)
    slot = (chains[chain, _FIRST_HASH] ^ hash_of(state)) & mask
    while slots[slot] >= 0:
        other = slots[slot]
        if (
            chains[other, _FIRST_HASH] == chains[chain, _FIRST_HASH]
            and chains[other, _SECOND_HASH] == chains[chain, _SECOND_HASH]
            and (not by_state or chains[other, _STATE] == state)
        ):
            return other
        slot = (slot + 1) & mask
    slots[slot] = chain
    return chain


@njit(nogil=True, cache=True)
def _hopeless(chains, vectors, first, count, events, asked, whole):  # type: ignore[no-untyped-def]
    """Whether no match with the set of a chain is likely enough: bool, for the chains from `first`
    to before `count`, all of one layer. Empty if all matches are wanted.

    The orders of a set before which one state stands are some of those in which its events can
    come, and all of them if orders commute and the sets of all ends are here (`whole`). The others
    are counted by `bound_of`.
    """
    if asked.bound <= 0.0:
        return np.empty(0, np.bool_)
    size = np.int64(256)
    while size < 2 * (count - first):
        size *= 2
    likely, slots = np.zeros(count - first, np.float64), np.full(size, -1, np.int64)
    of_set, found = np.empty(count - first, np.int64), np.ones(count - first, np.bool_)
    for chain in range(first, count):
        group, at = _group_of(slots, chains, chain, True) - first, chains[chain, _AT]
        for point in range(events.points[chains[chain, _EVENT]]):
            likely[group] += vectors[at + point]
        of_set[chain - first] = group
    slots[:] = -1
    for chain in range(first, count):
        group = _group_of(slots, chains, chain, False) - first
        if likely[of_set[chain - first]] > asked.bound:
            found[group] = False
        of_set[chain - first] = group
    members = np.empty((16, 2), np.int64)
    for number in range(count - first):
        if of_set[number] < number:
            found[number] = found[of_set[number]]
            continue
        if not found[number] or (whole and asked.commutes):
            continue
        chain, depth = first + number, 0
        while chain >= 0:
            chain, depth = chains[chain, _PARENT], depth + 1
        if depth > members.shape[0]:
            members = np.empty((2 * depth, 2), np.int64)
        chain = first + number
        for place in range(depth - 1, -1, -1):
            members[place, 0], members[place, 1] = chains[chain, _EVENT], chains[chain, _KIND]
            chain = chains[chain, _PARENT]
        found[number] = bound_of(members, depth, events, asked) <= asked.bound
    return found


@njit(nogil=True, cache=True)
def sets_of_ends(first, stop, events, moves, reached, asked, whole):  # type: ignore[no-untyped-def]
    """The labelled sets of the matches that end at the events from `first` to before `stop`.

    Returns a status, and the ends, tags and confidences of rows as in `PossibleRows`; each set is
    one row. whole: the events are a whole cluster. Otherwise it is one event: the other orders of a
    set are added for this set alone, and its row is at the greatest event that can be its last one.
    asked: see `Question`; its max_work is compared with the average steps for a row.
    """
    looks, step, window = asked.looks, asked.step, asked.window
    bits, bound, max_work = asked.bits, asked.bound, asked.max_work
    chains = np.empty((256, 9), np.int64)
    vectors = np.empty(1024, np.float64)
    count, used = 0, np.int64(0)
    ends, tags = np.empty(64, np.int64), np.empty(256, np.int64)
    confidences = np.empty(64, np.float64)
    rows, written = 0, np.int64(0)
    # Complete sets, a chain for each, in the same form.
    complete, shares = np.empty((64, 9), np.int64), np.empty(64, np.float64)
    scratch = np.empty(max(1, events.points.max()), np.float64)
    work = 0
    for event in range(first, stop):
        symbol = events.symbols[event]
        if not reached.can_end[event]:
            continue
        points = events.points[event]
        for move in range(moves.ends_first[symbol], moves.ends_first[symbol + 1]):
            source, kind = moves.ends_sources[move], moves.ends_kinds[move]
            letter = event * looks.shape[0] + looks[kind]
            if source == START:
                if bound < 1.0:
                    if rows == ends.shape[0]:
                        ends, confidences = _longer(ends, rows + 1), _longer(confidences, rows + 1)
                    if written == tags.shape[0]:
                        tags = _longer(tags, written + 1)
                    tags[written] = event << bits | kind
                    written += 1
                    ends[rows], confidences[rows] = written, 1.0
                    rows += 1
                continue
            for point in range(points if window >= 0 else 1):
                if count == chains.shape[0]:
                    chains = with_twice_the_rows(chains)
                if used + points > vectors.shape[0]:
                    vectors = _longer(vectors, used + points)
                chain = chains[count]
                chain[_EVENT], chain[_STATE], chain[_PARENT] = event, source, -1
                chain[_KIND], chain[_AT] = kind, used
                chain[_FIRST_HASH] = hash_of(np.int64(2 * letter))
                chain[_SECOND_HASH] = hash_of(np.int64(2 * letter + 1))
                if window >= 0:
                    vectors[used : used + points] = 0.0
                    vectors[used + point] = share_of(events, event, point)
                    chain[_END] = chain[_LATEST] = events.low[event] + point * step
                else:
                    set_out(events, event, vectors, used)
                    chain[_END], chain[_LATEST] = FAR, events.last[event]
                used += points
                count += 1
    begin = 0
    while begin < count:
        end_of_layer, done = count, 0
        hopeless = _hopeless(chains, vectors, begin, count, events, asked, whole)
        slots, of_complete = np.full(256, -1, np.int64), np.full(256, -1, np.int64)
        for number in range(begin, end_of_layer):
            if hopeless.shape[0] > 0 and hopeless[number - begin]:
                continue
            behind, state, end = (
                chains[number, _EVENT],
                chains[number, _STATE],
                chains[number, _END],
            )
            latest_behind = chains[number, _LATEST]
            floor = end - window if window >= 0 else NEVER
            place = behind_of_state(
                reached.of_state,
                reached.events,
                reached.behind,
                events.low,
                events.part[behind],
                events.part_end[behind],
                state,
                behind,
                latest_behind,
            )
            while place > reached.of_state[state] and reached.before[place - 1] >= floor:
                place -= 1
                if reached.events[place] < events.part[behind]:
                    break
                event, node = reached.events[place], reached.nodes[place]
                work += 1
                late = reached.earliest[node] >= latest_behind
                if late or reached.latest_start[node] < floor:
                    continue
                if _has(chains, number, event):
                    continue
                points, symbol = events.points[event], events.symbols[event]
                work += points
                if work > max_work * (1 + rows):
                    return OUT_OF_WORK, ends[:rows], tags[:written], confidences[:rows]
                at = chains[number, _AT]
                if used + points > vectors.shape[0]:
                    vectors = _longer(vectors, used + points)
                # After all vectors. It stays there only if the chain is new.
                total, latest = extended(events, step, vectors, at, event, behind, used)
                if total <= 0.0:
                    continue
                copy_to(scratch, 0, vectors[used : used + points])
                into = moves.node_first[symbol] + node - reached.first[event]
                for move in range(moves.into_first[into], moves.into_first[into + 1]):
                    source, kind = moves.into_sources[move], moves.into_kinds[move]
                    letter = event * looks.shape[0] + looks[kind]
                    first_hash = chains[number, _FIRST_HASH] + hash_of(np.int64(2 * letter))
                    second_hash = chains[number, _SECOND_HASH] + hash_of(np.int64(2 * letter + 1))
                    if source == START:
                        share = 0.0
                        for point in range(points):
                            if events.low[event] + point * step >= floor:
                                share += scratch[point]
                        if share <= 0.0:
                            continue
                        slot = _slot_of(of_complete, complete, first_hash, second_hash, -1, -1, FAR)
                        if of_complete[slot] >= 0:
                            shares[of_complete[slot]] += share
                            continue
                        if done == complete.shape[0]:
                            complete, shares = with_twice_the_rows(complete), _longer(
                                shares, done + 1
                            )
                        added = complete[done]
                        # The key leaves out the event. The place among the vectors identifies it.
                        added[_EVENT], added[_STATE], added[_END] = -1, -1, FAR
                        added[_PARENT], added[_KIND], added[_AT] = number, kind, event
                        added[_FIRST_HASH], added[_SECOND_HASH] = first_hash, second_hash
                        shares[done] = share
                        of_complete[slot] = done
                        done += 1
                        if 2 * done > of_complete.shape[0]:
                            of_complete = _larger(of_complete, complete, 0, done)
                        continue
                    slot = _slot_of(slots, chains, first_hash, second_hash, event, source, end)
                    if slots[slot] >= 0:
                        known = slots[slot]
                        place_of = chains[known, _AT]
                        for point in range(points):
                            vectors[place_of + point] += scratch[point]
                        chains[known, _LATEST] = max(chains[known, _LATEST], latest)
                        continue
                    if count == chains.shape[0]:
                        chains = with_twice_the_rows(chains)
                    if used + points > vectors.shape[0]:
                        vectors = _longer(vectors, used + points)
                    copy_to(vectors, used, scratch[:points])
                    chain = chains[count]
                    chain[_EVENT], chain[_STATE], chain[_END] = event, source, end
                    chain[_PARENT], chain[_KIND], chain[_AT] = number, kind, used
                    chain[_LATEST] = latest
                    chain[_FIRST_HASH], chain[_SECOND_HASH] = first_hash, second_hash
                    used += points
                    slots[slot] = count
                    count += 1
                    if 2 * (count - end_of_layer) > slots.shape[0]:
                        slots = _larger(slots, chains, end_of_layer, count)
        for number in range(done):
            if whole and shares[number] <= bound:
                continue
            if rows == ends.shape[0]:
                ends, confidences = _longer(ends, rows + 1), _longer(confidences, rows + 1)
            begin_of_row = written
            event, kind = complete[number, _AT], complete[number, _KIND]
            parent = complete[number, _PARENT]
            while True:
                if written == tags.shape[0]:
                    tags = _longer(tags, written + 1)
                tags[written] = event << bits | kind
                written += 1
                if parent < 0:
                    break
                event, kind = chains[parent, _EVENT], chains[parent, _KIND]
                parent = chains[parent, _PARENT]
            if not whole:
                count_of_row = written - begin_of_row
                members = np.empty((count_of_row, 2), np.int64)
                for place in range(count_of_row):
                    members[place, 0] = tags[begin_of_row + place] >> bits
                    members[place, 1] = tags[begin_of_row + place] & ((np.int64(1) << bits) - 1)
                total, last_event = of_all_orders(members, count_of_row, events, moves, asked)
                if total < 0.0:
                    return OUT_OF_WORK, ends[:rows], tags[:written], confidences[:rows]
                if last_event != first or total <= bound:
                    written = begin_of_row
                    continue
                shares[number] = total
            ends[rows], confidences[rows] = written, shares[number]
            rows += 1
        begin = end_of_layer
    return DONE, ends[:rows], tags[:written], confidences[:rows]

"""The orders in which events of uncertain time can be a match, each with its probability.

An event is at one of its points: low, low + step, … A match in a possible world is a chain of
events at rising points, so its probability is a sum over the points of its events. The chain is
walked from its last event back. Beside each event stands a vector: for each of its points the
probability that the event is there and that the chain goes on behind it. The vector of the event
before it is a sum of suffixes, so that an event costs as many steps as it has points.

*Candidates.* Which event can be before another, in which state, is known before the walk: `reach`
goes through all points in the order of time, as an update does through events, and notes for each
event and each state the earliest point at which the state can be reached by it, and the latest
start of a match that reaches it. Both hold for chains that may use an event twice, so they admit at
least all chains; the walk itself takes no event twice. An event that comes late in the input but
can be early, because its points overlap those of events before it, is found by its points like any
other. What bounds a walk are the window and the latest point of the event behind.

*Orders.* Events that overlap can be one match in several orders. Then the chain is only the way to
the set of its events: all orders of this set are added up, by subsets (`of_all_orders`).

*Rejected*: one event for each point, read by an ordinary update. It lists a match once for each
choice of points, which are U^k for k events of U points.

After section 5.3 of *On Complexity and Optimization of Expensive Queries in Complex Event
Processing* (SIGMOD 2014), where intervals are given and confidences enumerated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.key_tables import hash_of
from celc_runtime.engine.possible_moves import START, PossibleMoves
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked

NEVER = np.int64(-(2**63))
FAR = np.int64(2**63 - 1)
NO_WINDOW = np.int64(-1)

_MOST_BEHIND = 1 << 24
"""So many places of `Reached.behind` are noted at most; else they are searched for."""

DONE, ROWS_FULL, PATH_FULL, POINTS_FULL, KNOWN_FULL, OUT_OF_WORK = range(6)
"""The statuses of the walk: at the end; no room for rows, for events of a chain, for their vectors,
for known sets; too many steps for one row."""


class PossibleEvents(NamedTuple):
    """Events, partition by partition, by their least times; all arrays are int64[events]: symbols,
    the times of the first and the last point, the number of points, the first event of the
    partition, and the event behind its last one."""

    symbols: np.ndarray
    low: np.ndarray
    last: np.ndarray
    points: np.ndarray
    part: np.ndarray
    part_end: np.ndarray


class Reached(NamedTuple):
    """Which event reaches which state; a *node* is an event in a state.

    first[events + 1]: the nodes of an event, in the order of `PossibleMoves.node_states`.
    earliest, latest_start: of each node the earliest point at which it is reached (FAR: at none),
    and the latest start of a match there. can_end: bool[events]. of_state[states + 1] into nodes
    and events: the nodes of a state that are reached, by their events. before: of the same, the
    latest start of all nodes of the partition up to it. behind[events, states]: where in these the
    nodes of a state end whose events stand before an event; empty where it would be too large.
    """

    first: np.ndarray
    earliest: np.ndarray
    latest_start: np.ndarray
    can_end: np.ndarray
    of_state: np.ndarray
    nodes: np.ndarray
    events: np.ndarray
    before: np.ndarray
    behind: np.ndarray


@njit(nogil=True, cache=True)
def _sift_down(times, owners, size):  # type: ignore[no-untyped-def]
    """Let the first element of a heap sink to its place."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[place] <= times[child]:
            return
        times[place], times[child] = times[child], times[place]
        owners[place], owners[child] = owners[child], owners[place]
        place = child


@njit(nogil=True, cache=True)
def _sift_up(times, owners, place):  # type: ignore[no-untyped-def]
    """Let an element of a heap rise to its place."""
    while place > 0:
        parent = (place - 1) // 2
        if times[parent] <= times[place]:
            return
        times[place], times[parent] = times[parent], times[place]
        owners[place], owners[parent] = owners[parent], owners[place]
        place = parent


@njit(nogil=True, cache=True)
def _at_point(  # type: ignore[no-untyped-def]
    nodes, node_states, into, sources, time, window, node, earliest, latest, starts, pending
):
    """Take an event in at one of its points. nodes: the first of its places in `node_states`, and
    the one behind the last; into, sources: of `PossibleMoves`; node: its first node. starts: for
    each state the latest start of a match in it, before this time; pending: the same of events at
    this time."""
    for place in range(nodes[0], nodes[1]):
        start = _latest_start(into[place], into[place + 1], sources, starts, time)
        if start != NEVER and (window < 0 or start >= time - window):
            if earliest[node] == FAR:
                earliest[node] = time
            latest[node] = max(latest[node], start)
            state = node_states[place]
            pending[state] = max(pending[state], start)
        node += 1


@njit(nogil=True, cache=True)
def _latest_start(first, behind, sources, starts, time):  # type: ignore[no-untyped-def]
    """The latest start of a match that some moves lead on at a time; NEVER: of none."""
    start = NEVER
    for move in range(first, behind):
        source = sources[move]
        start = max(start, time if source == START else starts[source])
    return start


@njit(nogil=True, cache=True)
def _sweep(events, moves, states, step, window, first):  # type: ignore[no-untyped-def]
    """Go through all points in the order of time; see `Reached`."""
    # Each use of an array inside a tuple counts its references.
    symbols, lows, lasts, points = events.symbols, events.low, events.last, events.points
    parts, part_ends = events.part, events.part_end
    node_first, node_states = moves.node_first, moves.node_states
    into, sources = moves.into_first, moves.into_sources
    ends, end_sources = moves.ends_first, moves.ends_sources
    count = symbols.shape[0]
    nodes = first[count]
    earliest, latest = np.full(nodes, FAR, np.int64), np.full(nodes, NEVER, np.int64)
    can_end = np.zeros(count, np.bool_)
    starts, pending = np.full(states, NEVER, np.int64), np.full(states, NEVER, np.int64)
    # A heap of the next points of events, and these.
    times, owners, size = np.empty(count, np.int64), np.empty(count, np.int64), 0
    event = 0
    while event < count or size > 0:
        if size == 0 and parts[event] == event:
            starts[:] = NEVER
        stop = part_ends[event if size == 0 else owners[0]]
        time = times[0] if size > 0 else lows[event]
        if event < stop and lows[event] < time:
            time = lows[event]
        while True:
            is_first = event < stop and lows[event] == time
            if not is_first and (size == 0 or times[0] != time):
                break
            owner = event if is_first else owners[0]
            symbol = symbols[owner]
            _at_point(
                (node_first[symbol], node_first[symbol + 1]),
                node_states,
                into,
                sources,
                time,
                window,
                first[owner],
                earliest,
                latest,
                starts,
                pending,
            )
            start = _latest_start(ends[symbol], ends[symbol + 1], end_sources, starts, time)
            if start != NEVER and (window < 0 or start >= time - window):
                can_end[owner] = True
            if is_first:
                event += 1
                if points[owner] > 1:
                    times[size], owners[size] = time + step, owner
                    _sift_up(times, owners, size)
                    size += 1
                continue
            if time < lasts[owner]:
                times[0] = time + step
            else:
                size -= 1
                times[0], owners[0] = times[size], owners[size]
            _sift_down(times, owners, size)
        for state in range(states):
            starts[state] = max(starts[state], pending[state])
            pending[state] = NEVER
    return earliest, latest, can_end


@njit(nogil=True, cache=True)
def _by_state(events, moves, states, first, earliest, latest):  # type: ignore[no-untyped-def]
    """The nodes that are reached, by states and events; see `Reached`."""
    count = events.symbols.shape[0]
    of_state = np.zeros(states + 1, np.int64)
    for event in range(count):
        place = moves.node_first[events.symbols[event]] - first[event]
        for node in range(first[event], first[event + 1]):
            if earliest[node] != FAR:
                of_state[moves.node_states[place + node] + 1] += 1
    for state in range(states):
        of_state[state + 1] += of_state[state]
    following = of_state[:states].copy()
    nodes = np.empty(of_state[states], np.int64)
    owners, before = np.empty_like(nodes), np.empty_like(nodes)
    behind = np.empty((count if count * states <= _MOST_BEHIND else 0, states), np.int64)
    for event in range(count):
        if behind.shape[0] > 0:
            behind[event] = following
        place = moves.node_first[events.symbols[event]] - first[event]
        for node in range(first[event], first[event + 1]):
            if earliest[node] == FAR:
                continue
            state = moves.node_states[place + node]
            at = following[state]
            following[state] += 1
            nodes[at], owners[at], before[at] = node, event, latest[node]
            if at > of_state[state] and events.part[owners[at - 1]] == events.part[event]:
                before[at] = max(before[at], before[at - 1])
    return of_state, nodes, owners, before, behind


def reach(
    events: PossibleEvents, moves: PossibleMoves, states: int, step: int, window: int
) -> Reached:
    """Which events reach which states; `window`: the longest match, NO_WINDOW: of any length."""
    first = np.zeros(len(events.symbols) + 1, np.int64)
    np.cumsum(np.diff(moves.node_first)[events.symbols], out=first[1:])
    earliest, latest, can_end = _sweep(events, moves, states, step, window, first)
    return Reached(
        first,
        earliest,
        latest,
        can_end,
        *_by_state(events, moves, states, first, earliest, latest),
    )


@njit(nogil=True, cache=True)
def extended(events, step, vectors, at, event, behind, into):  # type: ignore[no-untyped-def]
    """Write the vector of an event before another, whose vector stands at `at`, to `into`. Returns
    its sum, and the latest point at which it is not 0."""
    total, carried, latest = 0.0, 0.0, NEVER
    later = events.points[behind] - 1
    time_later = events.last[behind]
    time = events.last[event]
    points = events.points[event]
    for point in range(points - 1, -1, -1):
        while later >= 0 and time_later > time:
            carried += vectors[at + later]
            later -= 1
            time_later -= step
        vectors[into + point] = carried / points
        total += carried
        if carried > 0.0 and latest == NEVER:
            latest = time
        time -= step
    return total / points, latest


@njit(nogil=True, cache=True)
def in_window(events, step, window, chain, depth, vectors, room):  # type: ignore[no-untyped-def]
    """The probability that the events of a chain (chain[0, 0] the last one, chain[depth, 0] the
    first) come in this order inside a window; vectors: room for two vectors, the second one at
    `room`."""
    last, found = chain[0, 0], 0.0
    for end in range(events.points[last]):
        for point in range(events.points[last]):
            vectors[point] = 0.0
        vectors[end] = 1.0 / events.points[last]
        at, into = np.int64(0), room
        for place in range(1, depth + 1):
            extended(events, step, vectors, at, chain[place, 0], chain[place - 1, 0], into)
            at, into = into, at
        first = chain[depth, 0]
        floor = events.low[last] + end * step - window
        for point in range(events.points[first]):
            if events.low[first] + point * step >= floor:
                found += vectors[at + point]
    return found


@njit(nogil=True, cache=True)
def _place_of(chains, first, count, members, state, event, end):  # type: ignore[no-untyped-def]
    """The chain from `first` to before `count` with these events, state, first event and end; −1:
    there is none."""
    for chain in range(first, count):
        if (
            chains[chain, 0] == members
            and chains[chain, 1] == state
            and chains[chain, 2] == event
            and chains[chain, 3] == end
        ):
            return chain
    return -1


@njit(nogil=True, cache=True)
def of_all_orders(chain, count, events, moves, asked):  # type: ignore[no-untyped-def]
    """The probability that some events (chain[place, 0], with the labels of the kind chain[place,
    1]) are a match, over all their orders, and the greatest of the events that can be the last one.
    The first is −1 where that takes more than max_work steps, or where they are more than 62.

    Chains of the same events that begin with the same event, after the same state, go on alike:
    their vectors are added. Where the window can cut, chains that end at different times stay
    apart.
    """
    if count > 62:
        return -1.0, np.int64(-1)
    step, window, looks = asked.step, asked.window, asked.looks
    low, last, most, work = FAR, NEVER, np.int64(1), 0
    for place in range(count):
        low = min(low, events.low[chain[place, 0]])
        last = max(last, events.last[chain[place, 0]])
        most = max(most, events.points[chain[place, 0]])
    cuts = window >= 0 and last - low > window
    # The members as bits, the state before, the place of the first event, the end, and the places
    # of the last events as bits.
    chains, vectors = np.empty((64, 5), np.int64), np.zeros((64, most), np.float64)
    size, found, ends = 0, 0.0, np.int64(0)
    for place in range(count):
        event = chain[place, 0]
        symbol, points = events.symbols[event], events.points[event]
        for move in range(moves.ends_first[symbol], moves.ends_first[symbol + 1]):
            if looks[moves.ends_kinds[move]] != looks[chain[place, 1]]:
                continue
            for end in range(points if cuts else 1):
                if size == chains.shape[0]:
                    chains, vectors = with_twice_the_rows(chains), with_twice_the_rows(vectors)
                chains[size, 0], chains[size, 2] = np.int64(1) << place, place
                chains[size, 1] = moves.ends_sources[move]
                chains[size, 3] = events.low[event] + end * step if cuts else FAR
                chains[size, 4] = np.int64(1) << place
                vectors[size] = 0.0
                for point in range(points):
                    if not cuts or point == end:
                        vectors[size, point] = 1.0 / points
                size += 1
    flat = np.zeros(2 * most, np.float64)
    begin = 0
    for layer in range(1, count):
        stop = size
        for number in range(begin, stop):
            members, state, behind, end, lasts = chains[number]
            if state == START:
                continue
            for place in range(count):
                if members >> place & 1:
                    continue
                event, behind_event = chain[place, 0], chain[behind, 0]
                symbol, points = events.symbols[event], events.points[event]
                node = _node_of(moves, symbol, state)
                if node < 0:
                    continue
                work += points
                if work > asked.max_work:
                    return -1.0, np.int64(-1)
                flat[:most] = vectors[number]
                total, _ = extended(events, step, flat, 0, event, behind_event, most)
                if total <= 0.0:
                    continue
                for move in range(moves.into_first[node], moves.into_first[node + 1]):
                    if looks[moves.into_kinds[move]] != looks[chain[place, 1]]:
                        continue
                    source = moves.into_sources[move]
                    if source == START:
                        if layer == count - 1:
                            floor = end - window if cuts else NEVER
                            for point in range(points):
                                if events.low[event] + point * step >= floor:
                                    found += flat[most + point]
                                    ends |= lasts if flat[most + point] > 0.0 else np.int64(0)
                        continue
                    known = members | np.int64(1) << place
                    at = _place_of(chains, stop, size, known, source, place, end)
                    if at < 0:
                        if size == chains.shape[0]:
                            chains, vectors = with_twice_the_rows(chains), with_twice_the_rows(
                                vectors
                            )
                        at = size
                        chains[at, 0], chains[at, 1] = known, source
                        chains[at, 2], chains[at, 3], chains[at, 4] = place, end, 0
                        vectors[at] = 0.0
                        size += 1
                    chains[at, 4] |= lasts
                    for point in range(points):
                        vectors[at, point] += flat[most + point]
        begin = stop
    last_event = np.int64(-1)
    for place in range(count):
        if ends >> place & 1:
            last_event = max(last_event, chain[place, 0])
    return found, last_event


@njit(nogil=True, cache=True)
def _node_of(moves, symbol, state):  # type: ignore[no-untyped-def]
    """The place of a state among those that events of a symbol lead to; −1: they do not."""
    for place in range(moves.node_first[symbol], moves.node_first[symbol + 1]):
        if moves.node_states[place] == state:
            return place
    return -1


@njit(nogil=True, cache=True)
def with_twice_the_rows(array):  # type: ignore[no-untyped-def]
    """A matrix with twice the rows, the new ones of zeros."""
    found = np.zeros((2 * array.shape[0], array.shape[1]), array.dtype)
    found[: array.shape[0]] = array
    return found


@njit(nogil=True, cache=True)
def behind_of_state(  # type: ignore[no-untyped-def]
    of_state, owners, noted, lows, part, part_end, state, event, time
):
    """The place behind the last node of a state whose event is in the partition of another event,
    from `part` to before `part_end`, and can be before a time. of_state, owners, noted: `of_state`,
    `events` and `behind` of `Reached`; lows: the first points of events."""
    low, high = of_state[state], of_state[state + 1]
    if noted.shape[0] > 0:
        # Few events behind it can be before it.
        low = noted[event, state]
        while low < high and owners[low] < part_end and lows[owners[low]] < time:
            low += 1
        return low
    while low < high:
        middle = (low + high) // 2
        found = owners[middle]
        if found < part or (found < part_end and lows[found] < time):
            low = middle + 1
        else:
            high = middle
    return low


class Walk(NamedTuple):
    """The state of a walk between two calls, and its memory.

    numbers: int64[6]: the next event that can end a match, the one to stop before, the next of its
    moves, the number of events in the chain, the steps since the last row, and how many sets are
    known. path: int64[depth, 8], for each event of the chain, the last one first: the event, its
    kind, the state before it, the next candidate for the event before it, the next move of the
    present candidate, the end of its moves, where its vector stands, and whether two events of the
    chain so far could change places. latest: int64[depth], the latest point of the event at which
    the chain is possible. vectors: float64. chain: int64[depth, 2], events and kinds. scratch:
    float64, twice as many as the most points of an event. known: int64[slots, 2], the sets of
    events that have been found at the end at hand, by 128 bits; 0: a free slot. tags: int64[depth],
    entries and kinds of the chain, and state: int64[states, depth], for conditions.
    """

    numbers: np.ndarray
    path: np.ndarray
    latest: np.ndarray
    vectors: np.ndarray
    chain: np.ndarray
    scratch: np.ndarray
    known: np.ndarray
    tags: np.ndarray
    state: np.ndarray


_EVENT, _KIND, _STATE, _NEXT, _MOVE, _MOVES_END, _AT, _SWAPS = range(8)
END, STOP, END_MOVE, DEPTH, WORK, KNOWN = range(6)


def new_walk(
    events: PossibleEvents, first: int, stop: int, moves: PossibleMoves, states: int
) -> Walk:
    """The walk through the matches that end at the events from `first` to before `stop`; `states`:
    how many numbers conditions keep with an event."""
    most = int(events.points.max(initial=1))
    numbers = np.array([first, stop, -1, 0, 0, 0], np.int64)
    if first < stop:
        numbers[END_MOVE] = moves.ends_first[events.symbols[first]]
    depth = 64
    return Walk(
        numbers,
        np.zeros((depth, 8), np.int64),
        np.zeros(depth, np.int64),
        np.zeros(depth + 4 * most, np.float64),
        np.zeros((depth, 2), np.int64),
        np.zeros(2 * most, np.float64),
        np.zeros((64, 2), np.int64),
        np.zeros(depth, np.int64),
        np.zeros((states, depth), np.int64),
    )


def with_room(walk: Walk, status: int) -> Walk:
    """The walk with the room that a status asks for."""
    if status == POINTS_FULL:
        return walk._replace(vectors=np.resize(walk.vectors, 2 * len(walk.vectors)))
    if status == KNOWN_FULL:
        known = np.zeros((2 * len(walk.known), 2), np.int64)
        enter_all(walk.known, known)
        return walk._replace(known=known)
    assert status == PATH_FULL
    more = len(walk.path)
    return walk._replace(
        path=np.concatenate([walk.path, np.zeros((more, 8), np.int64)]),
        latest=np.concatenate([walk.latest, np.zeros(more, np.int64)]),
        chain=np.concatenate([walk.chain, np.zeros((more, 2), np.int64)]),
        tags=np.concatenate([walk.tags, np.zeros(more, np.int64)]),
        state=np.concatenate([walk.state, np.zeros((len(walk.state), more), np.int64)], axis=1),
    )


@njit(nogil=True, cache=True)
def _enter(known, one, other):  # type: ignore[no-untyped-def]
    """Enter the bits of a set into a table with a free slot; returns whether they are new."""
    mask = known.shape[0] - 1
    slot = one & mask
    while known[slot, 0] != 0 or known[slot, 1] != 0:
        if known[slot, 0] == one and known[slot, 1] == other:
            return False
        slot = (slot + 1) & mask
    known[slot, 0], known[slot, 1] = one, other
    return True


@njit(nogil=True, cache=True)
def enter_all(known, larger):  # type: ignore[no-untyped-def]
    """Enter the sets of one table into another."""
    for slot in range(known.shape[0]):
        if known[slot, 0] != 0 or known[slot, 1] != 0:
            _enter(larger, known[slot, 0], known[slot, 1])


class PossibleRows(NamedTuple):
    """Room for matches: used: int64[2], the matches and their events. ends: int64[matches], where
    the events of each end in tags (int64: event << kind_bits | kind, the last one first).
    confidences: float64[matches]."""

    used: np.ndarray
    ends: np.ndarray
    tags: np.ndarray
    confidences: np.ndarray


def new_rows(matches: int, events: int) -> PossibleRows:
    """Room for so many matches with so many events together."""
    return PossibleRows(
        np.zeros(2, np.int64),
        np.zeros(matches, np.int64),
        np.zeros(events, np.int64),
        np.zeros(matches, np.float64),
    )


class Question(NamedTuple):
    """What is asked for.

    step: between two points. window: the longest match, NO_WINDOW: of any length. bits: those of a
    kind. bound: rows are more likely than that. sums: whether the orders of a match are added up,
    so that each is one row. max_work: the most steps for a row. looks: int64[kinds], a number for
    the labels of each kind.
    """

    step: int
    window: int
    bits: int
    bound: float
    sums: bool
    max_work: int
    looks: np.ndarray


@njit(nogil=True, cache=True)
def _is_new(walk, asked, depth):  # type: ignore[no-untyped-def]
    """Whether the events of the chain, with their labels, have not been found at this end yet."""
    one, other = np.int64(0), np.int64(0)
    for place in range(depth + 1):
        letter = walk.chain[place, 0] * asked.looks.shape[0] + asked.looks[walk.chain[place, 1]]
        one += hash_of(np.int64(2 * letter))
        other += hash_of(np.int64(2 * letter + 1))
    if not _enter(walk.known, one, other):
        return False
    walk.numbers[KNOWN] += 1
    return True


@njit(nogil=True, cache=True)
def _write(walk, events, moves, asked, rows, total, swaps):  # type: ignore[no-untyped-def]
    """Write the chain as a row, if it is likely enough; a status, DONE where that has been decided.

    swaps: whether two of its events could change places. Then all its orders are added up, and the
    row is written at the greatest of the events that can be the last one, once.
    """
    depth = walk.numbers[DEPTH]
    chain = walk.chain
    if not _has_room(rows.used, rows.ends, rows.tags, depth):
        return ROWS_FULL
    if swaps and asked.sums:
        if 2 * walk.numbers[KNOWN] >= walk.known.shape[0]:
            return KNOWN_FULL
        if not _is_new(walk, asked, depth):
            return DONE
        total, last_event = of_all_orders(chain, depth + 1, events, moves, asked)
        if total < 0.0:
            return OUT_OF_WORK
        if last_event != chain[0, 0]:
            return DONE
    elif (
        asked.window >= 0 and events.last[chain[0, 0]] - events.low[chain[depth, 0]] > asked.window
    ):
        room = walk.scratch.shape[0] // 2
        total = in_window(events, asked.step, asked.window, chain, depth, walk.scratch, room)
    if total > asked.bound:
        _note(rows.used, rows.ends, rows.tags, rows.confidences, chain, depth, asked.bits, total)
        walk.numbers[WORK] = 0
    return DONE


@njit(nogil=True, cache=True)
def _has_room(used, ends, tags, depth):  # type: ignore[no-untyped-def]
    """Whether there is room for one more match; see `PossibleRows`."""
    return used[0] < ends.shape[0] and used[1] + depth + 1 <= tags.shape[0]


@njit(nogil=True, cache=True)
def _note(used, ends, tags, confidences, chain, depth, bits, total):  # type: ignore[no-untyped-def]
    """Write a match; see `PossibleRows`."""
    match, first = used[0], used[1]
    for place in range(depth + 1):
        tags[first + place] = chain[place, 0] << bits | chain[place, 1]
    ends[match] = first + depth + 1
    confidences[match] = total
    used[0], used[1] = match + 1, first + depth + 1


class Past(NamedTuple):
    """What conditions read: the remembered columns, the entry at their index 0, and the entry of
    each event (int64[events])."""

    columns: tuple[np.ndarray, ...]
    first: int
    entries: np.ndarray


@njit(nogil=True, cache=True, inline="always")
def _always(past, first, path, depth, state):  # type: ignore[no-untyped-def]
    """The condition of matches without conditions."""
    return True


@cache
def walker(checks: Checked | None) -> Callable[..., int]:
    """A kernel that lists matches, and asks of each event and match what generated functions ask.

    It takes (walk, events, moves, reached, asked, rows, past), and lists until there is no more
    room, or no more of them; it returns a status. A chain that is not likely enough is given up
    before it is complete, unless its events could come in another order, whose share counts as
    well; so is a chain of events that the conditions do not admit. Made once for each query.
    """
    # Longer than 60 lines: it makes one kernel, which has to be a closure over the conditions.
    admits, completes = _always, _always
    if checks is not None:
        admits, completes = checks.admits, checks.completes

    def walk_on(walk, events, moves, reached, asked, rows, past):  # type: ignore[no-untyped-def]
        numbers, path, latest = walk.numbers, walk.path, walk.latest
        # Each use of an array inside a tuple counts its references twice, which takes longer than a
        # step of the walk. So they are taken out once.
        vectors, chain, tags, kept = walk.vectors, walk.chain, walk.tags, walk.state
        symbols, lows, lasts, all_points = events.symbols, events.low, events.last, events.points
        parts, part_ends, noted = events.part, events.part_end, reached.behind
        ends_first, ends_sources = moves.ends_first, moves.ends_sources
        into_first, into_sources, into_kinds = (
            moves.into_first,
            moves.into_sources,
            moves.into_kinds,
        )
        of_state, owners, nodes = reached.of_state, reached.events, reached.nodes
        before, earliest, latest_start = reached.before, reached.earliest, reached.latest_start
        row_tags, row_ends, shares, used = rows.tags, rows.ends, rows.confidences, rows.used
        columns, past_first, entries = past.columns, past.first, past.entries
        step, window, bits, bound = asked.step, asked.window, asked.bits, asked.bound
        while True:
            depth = numbers[DEPTH]
            if depth + 1 >= path.shape[0]:
                return PATH_FULL
            if depth == 0:
                if numbers[END] == numbers[STOP]:
                    return DONE
                event = numbers[END]
                symbol = symbols[event]
                move = numbers[END_MOVE]
                if move == ends_first[symbol] and numbers[KNOWN] > 0:
                    walk.known[:] = 0
                    numbers[KNOWN] = 0
                if not reached.can_end[event] or move == ends_first[symbol + 1]:
                    numbers[END] += 1
                    numbers[WORK] = 0
                    if numbers[END] < numbers[STOP]:
                        numbers[END_MOVE] = ends_first[symbols[numbers[END]]]
                    continue
                points = all_points[event]
                if points > vectors.shape[0]:
                    return POINTS_FULL
                source, kind = ends_sources[move], moves.ends_kinds[move]
                chain[0, 0], chain[0, 1] = event, kind
                tags[0] = entries[event] << bits | kind
                if not admits(columns, past_first, tags, 0, kept):
                    numbers[END_MOVE] = move + 1
                    continue
                if source == START:
                    if completes(columns, past_first, tags, 0, kept):
                        status = _write(walk, events, moves, asked, rows, 1.0, False)
                        if status != DONE:
                            return status
                else:
                    for point in range(points):
                        vectors[point] = 1.0 / points
                    time = lasts[event]
                    path[0, _EVENT], path[0, _KIND], path[0, _STATE] = event, kind, source
                    path[0, _NEXT] = behind_of_state(
                        of_state,
                        owners,
                        noted,
                        lows,
                        parts[event],
                        part_ends[event],
                        source,
                        event,
                        time,
                    )
                    path[0, _MOVE] = path[0, _MOVES_END] = 0
                    path[0, _AT] = path[0, _SWAPS] = 0
                    latest[0] = time
                    numbers[DEPTH] = 1
                numbers[END_MOVE] = move + 1
                continue
            top = depth - 1
            behind, state = path[top, _EVENT], path[top, _STATE]
            into = path[top, _AT] + all_points[behind]
            if path[top, _MOVE] < path[top, _MOVES_END]:
                move = path[top, _MOVE]
                event = chain[depth, 0]
                source, kind = into_sources[move], into_kinds[move]
                chain[depth, 1] = kind
                tags[depth] = entries[event] << bits | kind
                if not admits(columns, past_first, tags, depth, kept):
                    path[top, _MOVE] = move + 1
                    continue
                swaps = path[top, _SWAPS] != 0 or lasts[event] > lows[behind]
                if source == START:
                    if completes(columns, past_first, tags, depth, kept):
                        total = 0.0
                        for point in range(all_points[event]):
                            total += vectors[into + point]
                        if swaps or (window >= 0 and lasts[chain[0, 0]] - lows[event] > window):
                            status = _write(walk, events, moves, asked, rows, total, swaps)
                            if status != DONE:
                                return status
                        elif not _has_room(used, row_ends, row_tags, depth):
                            return ROWS_FULL
                        elif total > bound:
                            _note(used, row_ends, row_tags, shares, chain, depth, bits, total)
                            numbers[WORK] = 0
                else:
                    path[depth, _EVENT], path[depth, _KIND], path[depth, _STATE] = (
                        event,
                        kind,
                        source,
                    )
                    path[depth, _NEXT] = behind_of_state(
                        of_state,
                        owners,
                        noted,
                        lows,
                        parts[event],
                        part_ends[event],
                        source,
                        event,
                        latest[depth],
                    )
                    path[depth, _MOVE] = path[depth, _MOVES_END] = 0
                    path[depth, _AT], path[depth, _SWAPS] = into, swaps
                    numbers[DEPTH] = depth + 1
                path[top, _MOVE] = move + 1
                continue
            place = path[top, _NEXT] - 1
            floor = lows[path[0, _EVENT]] - window
            if (
                place < of_state[state]
                or owners[place] < parts[behind]
                or (window >= 0 and before[place] < floor)
            ):
                numbers[DEPTH] = top
                continue
            event, node = owners[place], nodes[place]
            numbers[WORK] += 1
            if earliest[node] >= latest[top]:
                path[top, _NEXT] = place
                continue
            if window >= 0 and latest_start[node] < floor:
                path[top, _NEXT] = place
                continue
            points = all_points[event]
            if into + points > vectors.shape[0]:
                return POINTS_FULL
            path[top, _NEXT] = place
            if points > 1 and _is_in(path, depth, event):
                continue
            numbers[WORK] += points
            if numbers[WORK] > asked.max_work:
                return OUT_OF_WORK
            if points == 1 and all_points[behind] == 1:
                time = lasts[event]
                total = vectors[path[top, _AT]] if lasts[behind] > time else 0.0
                vectors[into] = total
            else:
                total, time = extended(events, step, vectors, path[top, _AT], event, behind, into)
            if total <= 0.0:
                continue
            swaps = path[top, _SWAPS] != 0 or lasts[event] > lows[behind]
            if total <= bound and not (swaps and asked.sums):
                continue
            symbol = symbols[event]
            first = moves.node_first[symbol] + node - reached.first[event]
            chain[depth, 0], latest[depth] = event, time
            path[top, _MOVE], path[top, _MOVES_END] = (
                into_first[first],
                into_first[first + 1],
            )

    # Interpreted conditions (for debugging) cannot be called by compiled code.
    if checks is not None and not checks.compiles:
        return walk_on
    compiled: Callable[..., int] = njit(nogil=True, error_model="numpy")(walk_on)
    return compiled


@njit(nogil=True, cache=True)
def _is_in(path, depth, event):  # type: ignore[no-untyped-def]
    """Whether an event is in the chain."""
    for place in range(depth):  # noqa: SIM110 - no generators in kernels
        if path[place, _EVENT] == event:
            return True
    return False


@njit(nogil=True, cache=True)
def clusters_of(events, first, stop, window, many):  # type: ignore[no-untyped-def]
    """Where clusters begin, and which events are in a cluster that so many events overlap in, or
    before it within the window.

    No event behind the beginning of a cluster can be before one in front of it. bool[events] twice,
    for all events; those from `first` on to before `stop` are whole clusters.
    """
    count = events.symbols.shape[0]
    begins, heavy = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    depth = np.zeros(count, np.int64)
    active = np.empty(count, np.int64)
    size, greatest = 0, int(NEVER)
    for event in range(count):
        if events.part[event] == event:
            size, greatest = 0, int(NEVER)
        left = 0
        for place in range(size):
            if active[place] > events.low[event]:
                active[left] = active[place]
                left += 1
        size = left
        begins[event] = greatest == NEVER or events.low[event] >= greatest
        greatest = max(greatest, events.last[event])
        active[size] = events.last[event]
        size += 1
        depth[event] = size
    start, crowded, reach = first, -1, 0
    for event in range(stop):
        if depth[event] >= many:
            crowded = event
        if event < first:
            continue
        if begins[event]:
            start = event
            reach = max(reach, int(events.part[event]))
            floor = events.low[event] - window if window >= 0 else NEVER
            while reach < event and events.last[reach] < floor:
                reach += 1
        if crowded >= reach and not heavy[start]:
            heavy[start:event] = True
        heavy[event] = heavy[start] or crowded >= reach
    return begins, heavy

"""The orders in which events of uncertain time can be a match, each with its probability.

An event is at one of its points: low, low + step, … A match in a possible world is a chain of events
at rising points, so its probability is a sum over the points of its events. The chain is walked from
its last event back. Beside each event stands a vector: for each of its points the probability that
the event is there and that the chain goes on behind it. The vector of the event before it is a sum
of suffixes, so that an event costs as many steps as it has points.

*Candidates.* Which event can be before another, in which state, is known before the walk: `reach`
goes through all points in the order of time, as an update does through events, and notes for each
event and each state the earliest point at which the state can be reached by it, and the latest
start of a match that reaches it. Both hold for chains that may use an event twice, so they admit at
least all chains; the walk itself takes no event twice. An event that comes late in the input but can
be early, because its points overlap those of events before it, is found by its points like any
other. What bounds a walk are the window and the latest point of the event behind.

*Rejected*: one event for each point, read by an ordinary update. It lists a match once for each
choice of points, which are U^k for k events of U points.

After section 5.3 of *On Complexity and Optimization of Expensive Queries in Complex Event
Processing* (SIGMOD 2014), where intervals are given and confidences enumerated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.possible_moves import START, PossibleMoves
from celc_runtime.jit.kernels import njit

NEVER = np.int64(-(2**63))
FAR = np.int64(2**63 - 1)
NO_WINDOW = np.int64(-1)

DONE, ROWS_FULL, PATH_FULL, POINTS_FULL, OUT_OF_WORK = range(5)
"""The statuses of the walk: at the end; no room for rows, for events of a chain, for their vectors;
too many steps for one row."""


class PossibleEvents(NamedTuple):
    """Events by their least times, ascending; all arrays are int64[events]: symbols, the times of
    the first and the last point, and the number of points."""

    symbols: np.ndarray
    low: np.ndarray
    last: np.ndarray
    points: np.ndarray


class Reached(NamedTuple):
    """Which event reaches which state; a *node* is an event in a state.

    first[events + 1]: the nodes of an event, in the order of `PossibleMoves.node_states`.
    earliest, latest_start: of each node the earliest point at which it is reached (FAR: at none),
    and the latest start of a match there. can_end: bool[events]. of_state[states + 1] into nodes and
    events: the nodes of a state that are reached, by their events. before: of the same, the latest
    start of all nodes up to it.
    """

    first: np.ndarray
    earliest: np.ndarray
    latest_start: np.ndarray
    can_end: np.ndarray
    of_state: np.ndarray
    nodes: np.ndarray
    events: np.ndarray
    before: np.ndarray


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
def _at_point(events, moves, event, time, window, first, earliest, latest, can_end, starts, pending):  # type: ignore[no-untyped-def]
    """Take an event in at one of its points. starts: for each state the latest start of a match in
    it, before this time; pending: the same of events at this time."""
    symbol = events.symbols[event]
    node = first[event]
    for place in range(moves.node_first[symbol], moves.node_first[symbol + 1]):
        start = NEVER
        for move in range(moves.into_first[place], moves.into_first[place + 1]):
            source = moves.into_sources[move]
            start = max(start, time if source == START else starts[source])
        if start != NEVER and (window < 0 or start >= time - window):
            if earliest[node] == FAR:
                earliest[node] = time
            latest[node] = max(latest[node], start)
            state = moves.node_states[place]
            pending[state] = max(pending[state], start)
        node += 1
    for move in range(moves.ends_first[symbol], moves.ends_first[symbol + 1]):
        source = moves.ends_sources[move]
        start = time if source == START else starts[source]
        if start != NEVER and (window < 0 or start >= time - window):
            can_end[event] = True


@njit(nogil=True, cache=True)
def _sweep(events, moves, states, step, window, first):  # type: ignore[no-untyped-def]
    """Go through all points in the order of time; see `Reached`."""
    count = events.symbols.shape[0]
    nodes = first[count]
    earliest, latest = np.full(nodes, FAR, np.int64), np.full(nodes, NEVER, np.int64)
    can_end = np.zeros(count, np.bool_)
    starts, pending = np.full(states, NEVER, np.int64), np.full(states, NEVER, np.int64)
    times, owners, size = np.empty(count, np.int64), np.empty(count, np.int64), 0
    event = 0
    while event < count or size > 0:
        time = times[0] if size > 0 else events.low[event]
        if event < count and events.low[event] < time:
            time = events.low[event]
        while event < count and events.low[event] == time:
            _at_point(
                events, moves, event, time, window, first, earliest, latest, can_end, starts, pending
            )
            if events.points[event] > 1:
                times[size], owners[size] = time + step, event
                _sift_up(times, owners, size)
                size += 1
            event += 1
        while size > 0 and times[0] == time:
            owner = owners[0]
            _at_point(
                events, moves, owner, time, window, first, earliest, latest, can_end, starts, pending
            )
            if time < events.last[owner]:
                times[0] = time + step
            else:
                size -= 1
                times[0], owners[0] = times[size], owners[size]
            _sift_down(times, owners, size)
        for state in range(states):
            starts[state] = max(starts[state], pending[state])
            pending[state] = NEVER
    return earliest, latest, can_end


def reach(
    events: PossibleEvents, moves: PossibleMoves, states: int, step: int, window: int
) -> Reached:
    """Which events reach which states; `window`: the longest match, NO_WINDOW: of any length."""
    per_event = np.diff(moves.node_first)[events.symbols]
    first = np.zeros(len(per_event) + 1, np.int64)
    first[1:] = np.cumsum(per_event)
    earliest, latest, can_end = _sweep(events, moves, states, step, window, first)
    reached = np.flatnonzero(earliest != FAR)
    owner = np.searchsorted(first, reached, side="right") - 1
    place = moves.node_first[events.symbols[owner]] + reached - first[owner]
    state = moves.node_states[place]
    order = np.argsort(state, kind="stable")
    nodes, of_node = reached[order], owner[order]
    of_state = np.searchsorted(state[order], np.arange(states + 1)).astype(np.int64)
    before = latest[nodes]
    for begin, end in zip(of_state[:-1], of_state[1:], strict=True):
        np.maximum.accumulate(before[begin:end], out=before[begin:end])
    return Reached(first, earliest, latest, can_end, of_state, nodes, of_node, before)


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
def in_window(events, step, window, path, depth, vectors, room):  # type: ignore[no-untyped-def]
    """The probability that the events of a chain (path[0] the last one, path[depth] the first) come
    in this order inside a window; vectors: room for two vectors, the second one at `room`."""
    last, found = path[0], 0.0
    for end in range(events.points[last]):
        for point in range(events.points[last]):
            vectors[point] = 0.0
        vectors[end] = 1.0 / events.points[last]
        at, into = np.int64(0), room
        for place in range(1, depth + 1):
            extended(events, step, vectors, at, path[place], path[place - 1], into)
            at, into = into, at
        first = path[depth]
        floor = events.low[last] + end * step - window
        for point in range(events.points[first]):
            if events.low[first] + point * step >= floor:
                found += vectors[at + point]
    return found


class Walk(NamedTuple):
    """The state of a walk between two calls, and its memory.

    numbers: int64[5]: the next event that can end a match, the one to stop before, the next of its
    moves, the number of events in the chain, and the steps since the last row. path: int64[depth, 7]
    for each event of the chain, the last one first: the event, its kind, the state before it, the
    next candidate for the event before it, the next move of the present candidate, the end of its
    moves, and where its vector stands. latest: int64[depth], the latest point of the event at which
    the chain is possible. vectors: float64. chain: int64[depth]. scratch: float64, twice as many as
    the most points of an event.
    """

    numbers: np.ndarray
    path: np.ndarray
    latest: np.ndarray
    vectors: np.ndarray
    chain: np.ndarray
    scratch: np.ndarray


_EVENT, _KIND, _STATE, _NEXT, _MOVE, _MOVES_END, _AT = range(7)
END, STOP, END_MOVE, DEPTH, WORK = range(5)


def new_walk(events: PossibleEvents, first: int, stop: int, moves: PossibleMoves) -> Walk:
    """The walk through the matches that end at the events from `first` to before `stop`."""
    most = int(events.points.max(initial=1))
    numbers = np.array([first, stop, -1, 0, 0], np.int64)
    if first < stop:
        numbers[END_MOVE] = moves.ends_first[events.symbols[first]]
    depth = 64
    return Walk(
        numbers,
        np.zeros((depth, 7), np.int64),
        np.zeros(depth, np.int64),
        np.zeros(depth + 4 * most, np.float64),
        np.zeros(depth, np.int64),
        np.zeros(2 * most, np.float64),
    )


def with_room(walk: Walk, status: int) -> Walk:
    """The walk with the room that a status asks for."""
    if status == POINTS_FULL:
        return walk._replace(vectors=np.resize(walk.vectors, 2 * len(walk.vectors)))
    assert status == PATH_FULL
    more = len(walk.path)
    return walk._replace(
        path=np.concatenate([walk.path, np.zeros((more, 7), np.int64)]),
        latest=np.concatenate([walk.latest, np.zeros(more, np.int64)]),
        chain=np.concatenate([walk.chain, np.zeros(more, np.int64)]),
    )


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


@njit(nogil=True, cache=True)
def _write(walk, events, step, window, bits, bound, rows, kind_of_first, total):  # type: ignore[no-untyped-def]
    """Write the chain as a row, if it is likely enough. Returns whether there is room for it."""
    depth = walk.numbers[DEPTH]
    first = walk.chain[depth]
    last = walk.path[0, _EVENT] if depth > 0 else first
    if depth > 0 and window >= 0 and events.last[last] - events.low[first] > window:
        for place in range(depth):
            walk.chain[place] = walk.path[place, _EVENT]
        room = walk.scratch.shape[0] // 2
        total = in_window(events, step, window, walk.chain, depth, walk.scratch, room)
    if total <= bound:
        return True
    matches, used = rows.used[0], rows.used[1]
    if matches == rows.ends.shape[0] or used + depth + 1 > rows.tags.shape[0]:
        return False
    for place in range(depth):
        rows.tags[used + place] = walk.path[place, _EVENT] << bits | walk.path[place, _KIND]
    rows.tags[used + depth] = first << bits | kind_of_first
    rows.ends[matches] = used + depth + 1
    rows.confidences[matches] = total
    rows.used[0], rows.used[1] = matches + 1, used + depth + 1
    walk.numbers[WORK] = 0
    return True


@njit(nogil=True, cache=True)
def behind_of_state(events, reached, state, time):  # type: ignore[no-untyped-def]
    """The place behind the last node of a state whose event can be before a time."""
    low, high = reached.of_state[state], reached.of_state[state + 1]
    while low < high:
        middle = (low + high) // 2
        if events.low[reached.events[middle]] < time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def walk_on(walk, events, moves, reached, step, window, bits, bound, prunes, max_work, rows):  # type: ignore[no-untyped-def]
    """List matches until there is no more room, or no more of them; a status.

    Rows are those whose probability is greater than `bound`. prunes: a chain that is not likely
    enough is given up before it is complete, because its events come in one order only.
    """
    numbers, path = walk.numbers, walk.path
    while True:
        depth = numbers[DEPTH]
        if depth + 1 >= path.shape[0]:
            return PATH_FULL
        if depth == 0:
            if numbers[END] == numbers[STOP]:
                return DONE
            event = numbers[END]
            symbol = events.symbols[event]
            move = numbers[END_MOVE]
            if not reached.can_end[event] or move == moves.ends_first[symbol + 1]:
                numbers[END] += 1
                numbers[WORK] = 0
                if numbers[END] < numbers[STOP]:
                    numbers[END_MOVE] = moves.ends_first[events.symbols[numbers[END]]]
                continue
            points = events.points[event]
            if points > walk.vectors.shape[0]:
                return POINTS_FULL
            source, kind = moves.ends_sources[move], moves.ends_kinds[move]
            if source == START:
                walk.chain[0] = event
                if not _write(walk, events, step, window, bits, bound, rows, kind, 1.0):
                    return ROWS_FULL
            else:
                for point in range(points):
                    walk.vectors[point] = 1.0 / points
                latest = events.last[event]
                path[0, _EVENT], path[0, _KIND], path[0, _STATE] = event, kind, source
                path[0, _NEXT] = behind_of_state(events, reached, source, latest)
                path[0, _MOVE] = path[0, _MOVES_END] = 0
                path[0, _AT] = 0
                walk.latest[0] = latest
                numbers[DEPTH] = 1
            numbers[END_MOVE] = move + 1
            continue
        top = depth - 1
        behind, state = path[top, _EVENT], path[top, _STATE]
        into = path[top, _AT] + events.points[behind]
        if path[top, _MOVE] < path[top, _MOVES_END]:
            move = path[top, _MOVE]
            event = walk.chain[depth]
            source, kind = moves.into_sources[move], moves.into_kinds[move]
            if source == START:
                total = 0.0
                for point in range(events.points[event]):
                    total += walk.vectors[into + point]
                if not _write(walk, events, step, window, bits, bound, rows, kind, total):
                    return ROWS_FULL
            else:
                path[depth, _EVENT], path[depth, _KIND], path[depth, _STATE] = event, kind, source
                path[depth, _NEXT] = behind_of_state(events, reached, source, walk.latest[depth])
                path[depth, _MOVE] = path[depth, _MOVES_END] = 0
                path[depth, _AT] = into
                numbers[DEPTH] = depth + 1
            path[top, _MOVE] = move + 1
            continue
        place = path[top, _NEXT] - 1
        floor = events.low[path[0, _EVENT]] - window
        if place < reached.of_state[state] or (window >= 0 and reached.before[place] < floor):
            numbers[DEPTH] = top
            continue
        event, node = reached.events[place], reached.nodes[place]
        numbers[WORK] += 1
        if reached.earliest[node] >= walk.latest[top]:
            path[top, _NEXT] = place
            continue
        if window >= 0 and reached.latest_start[node] < floor:
            path[top, _NEXT] = place
            continue
        points = events.points[event]
        if into + points > walk.vectors.shape[0]:
            return POINTS_FULL
        path[top, _NEXT] = place
        if points > 1 and _is_in(path, depth, event):
            continue
        numbers[WORK] += points
        if numbers[WORK] > max_work:
            return OUT_OF_WORK
        total, latest = extended(
            events, step, walk.vectors, path[top, _AT], event, behind, into
        )
        if total <= 0.0 or (prunes and total <= bound):
            continue
        symbol = events.symbols[event]
        first = moves.node_first[symbol] + node - reached.first[event]
        walk.chain[depth], walk.latest[depth] = event, latest
        path[top, _MOVE], path[top, _MOVES_END] = moves.into_first[first], moves.into_first[first + 1]


@njit(nogil=True, cache=True)
def _is_in(path, depth, event):  # type: ignore[no-untyped-def]
    """Whether an event is in the chain."""
    for place in range(depth):
        if path[place, _EVENT] == event:
            return True
    return False

"""Which event of uncertain time can be before another event, and in which state.

`reach` goes through all points in the order of time, as an update goes through events. It notes for
each event and each state the earliest point at which the event can reach the state, and the latest
start of a match that reaches it. Both also allow chains that use an event twice, so they admit at
least all valid chains. An event that is late in the input but can be early, because its points
overlap those of events before it, is found by its points like any other.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.worlds.possible_moves import START, PossibleMoves
from celc_runtime.jit.kernels import njit

NEVER = np.int64(-(2**63))
FAR = np.int64(2**63 - 1)
NO_WINDOW = np.int64(-1)

_MOST_BEHIND = 1 << 24  # places of `Reached.behind` that are noted; more are searched for


class PossibleEvents(NamedTuple):
    """Events of each partition by their earliest times; arrays are int64[events], but `shares`."""

    symbols: np.ndarray
    low: np.ndarray  # the time of the first point
    last: np.ndarray  # the time of the last point
    points: np.ndarray  # the number of points
    part: np.ndarray  # the first event of the partition
    part_end: np.ndarray  # the event after its last one
    at: np.ndarray  # where the probabilities of its points begin in `shares`
    shares: np.ndarray  # float64; empty: all points of an event are equally likely


NO_SHARES = np.zeros(0)


class Reached(NamedTuple):
    """Which event reaches which state; a *node* is an event in a state."""

    first: np.ndarray  # [events + 1], the nodes of an event, as in `PossibleMoves.node_states`
    earliest: np.ndarray  # for each node the earliest point at which it is reached; FAR: never
    latest_start: np.ndarray  # for each node the latest start of a match there
    can_end: np.ndarray  # bool[events]
    of_state: np.ndarray  # [states + 1], into the next three
    nodes: np.ndarray  # the nodes of a state that are reached, by event
    events: np.ndarray  # their events
    before: np.ndarray  # the latest start of all these nodes up to here, in the same partition
    behind: np.ndarray
    """[events, states]: where the nodes of a state end whose events stand before an event; empty if
    it would be too large."""


@njit(nogil=True, cache=True)
def _sift_down(times, owners, size):  # type: ignore[no-untyped-def]
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
    """Read an event at one of its points.

    nodes: (first, end) of its places in `node_states`. into, sources: of `PossibleMoves`. node: the
    event's first node. starts: for each state the latest start of a match in it before this time.
    pending: the same for events at this time.
    """
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
    """The latest start of a match that some moves continue at a time; NEVER: none."""
    start = NEVER
    for move in range(first, behind):
        source = sources[move]
        start = max(start, time if source == START else starts[source])
    return start


@njit(nogil=True, cache=True)
def _sweep(events, moves, states, step, window, first):  # type: ignore[no-untyped-def]
    """Go through all points in the order of time; see `Reached`."""
    # Each use of an array inside a tuple counts its references. So they are taken out once.
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
    # A heap of the next point of each event, with the events.
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
    """The nodes that are reached, by state and event; see `Reached`."""
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
    """Which events reach which states. window: the longest match, NO_WINDOW: any length."""
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
def behind_of_state(  # type: ignore[no-untyped-def]
    of_state, owners, noted, lows, part, part_end, state, event, time
):
    """The place after the last node of a state whose event can be before a time.

    The event must be in the partition from `part` to before `part_end`. of_state, owners, noted:
    `of_state`, `events` and `behind` of `Reached`. lows: the first points of events.
    """
    low, high = of_state[state], of_state[state + 1]
    if noted.shape[0] > 0:
        # Few events after it can be before it.
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

"""The probability of matches whose events can come in several orders.

The time of an event is uncertain: it is one of several *points*. Events whose intervals overlap can
form one match in several orders. The probabilities of all orders of its set of events are added, by
dynamic programming over subsets (`of_all_orders`).

A *chain* is a match that has been followed back from its last event to some event, its first so
far. The *vector* of a chain has a number for each point of that event: the probability that the
event is at this point, and that all later events of the chain come after it, in their order.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.values.copies import copy_to
from celc_runtime.engine.worlds.possible_moves import START
from celc_runtime.engine.worlds.possible_reach import FAR, NEVER
from celc_runtime.jit.kernels import njit


class Question(NamedTuple):
    """The part of a query that decides which sets of events are answers."""

    step: int  # of time, between two points of an event
    window: int  # the longest time of a match; NO_WINDOW: any
    bits: int  # the number of bits of a kind
    bound: float  # rows must have a greater probability than this
    several: bool  # whether the events of a match can come in several orders
    sums: bool  # whether the orders of a match are one row, with the sum; else each order is a row
    commutes: bool
    """Whether two events of a match that can be swapped in one match can be swapped in every match.
    Then either all orders of a set of events end matches, or none does."""
    max_work: int  # the most steps for one row
    looks: np.ndarray  # int64[kinds], a number for the labels of each kind
    follows: np.ndarray
    """bool[symbols * looks, symbols * looks]: whether an event can come before another one in some
    match, by symbol * looks + look of each; empty: it would be too large."""


@njit(nogil=True, cache=True)
def extended(events, step, vectors, at, event, behind, into):  # type: ignore[no-untyped-def]
    """Extend a chain by an event in front of its first event, `behind`.

    The vector of the chain begins at `vectors[at]`. The new one is written from `vectors[into]` on.
    Returns the sum of the new vector, and the latest time at which it is not 0.
    """
    total, carried, latest = 0.0, 0.0, NEVER
    later = events.points[behind] - 1
    time_later = events.last[behind]
    time = events.last[event]
    points = events.points[event]
    shares, of_points = events.shares, events.at[event]
    share = 1.0 / points
    for point in range(points - 1, -1, -1):
        while later >= 0 and time_later > time:
            carried += vectors[at + later]
            later -= 1
            time_later -= step
        if shares.shape[0] > 0:
            share = shares[of_points + point]
        found = carried * share
        vectors[into + point] = found
        total += found
        if found > 0.0 and latest == NEVER:
            latest = time
        time -= step
    return total, latest


@njit(nogil=True, cache=True)
def set_out(events, event, vectors, at):  # type: ignore[no-untyped-def]
    """Write the vector of a chain of one event, the probabilities of its points, from `vectors[at]`
    on."""
    points = events.points[event]
    for point in range(points):
        vectors[at + point] = share_of(events, event, point)


@njit(nogil=True, cache=True)
def share_of(events, event, point):  # type: ignore[no-untyped-def]
    """The probability that an event is at one of its points."""
    if events.shares.shape[0] > 0:
        return events.shares[events.at[event] + point]
    return 1.0 / events.points[event]


@njit(nogil=True, cache=True)
def in_window(events, step, window, chain, depth, vectors, room):  # type: ignore[no-untyped-def]
    """The probability that the events of a chain come in this order inside the window.

    chain[0, 0] is the last event, chain[depth, 0] the first. vectors: room for two vectors, the
    second one at `room`.
    """
    last, found = chain[0, 0], 0.0
    for end in range(events.points[last]):
        for point in range(events.points[last]):
            vectors[point] = 0.0
        vectors[end] = share_of(events, last, end)
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
    """The number of the chain with these events, state, first event and end; −1: there is none.

    Only the chains from `first` to before `count` are looked at.
    """
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
    """(the probability that some events are a match, over all their orders; the last event).

    chain[place, 0] are the events, chain[place, 1] their kinds. Of the events that can come last,
    the one with the greatest number is returned. The probability is −1 if it takes more than
    max_work steps, or if there are more than 62 events, whose set does not fit into a word.

    Chains of the same events with the same first event and the same state before it continue in the
    same way, so their vectors are added. If the window can cut, chains with different end times are
    kept apart.
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
    # The columns of a chain: its members (bits), the state before it, the place of its first event,
    # its end, and the places of the events that can be its last one (bits).
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
                        vectors[size, point] = share_of(events, event, point)
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
                copy_to(flat, 0, vectors[number])
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


_MOST_BOUNDED = 8  # events whose orders a bound counts; more make it a little closer
_MOST_NUMBERS = 1 << 16  # probabilities that the bound keeps at once: 512 kB


@njit(nogil=True, cache=True)
def _bounded(chain, count, events, asked):  # type: ignore[no-untyped-def]
    """The events of a chain whose orders the bound counts: the newest one, and others that overlap.

    Returns (their places in the chain; the letter of each, −1: it is not known what may follow it;
    their least time; the number of points of time from there on).
    """
    places, letters = np.empty(_MOST_BOUNDED, np.int64), np.full(_MOST_BOUNDED, -1, np.int64)
    newest = chain[count - 1, 0]
    low, last, size = events.low[newest], events.last[newest], 0
    for place in range(count - 1, -1, -1):
        event = chain[place, 0]
        if events.low[event] > last or events.last[event] < low:
            continue
        least, latest = min(low, events.low[event]), max(last, events.last[event])
        times = (latest - least) // asked.step + 1
        is_apart = (events.low[event] - low) % asked.step != 0
        if is_apart or (times << (size + 1)) * (size + 1) > _MOST_NUMBERS:
            continue
        low, last, places[size] = least, latest, place
        if asked.follows.shape[0] > 0:
            look = asked.looks[chain[place, 1]]
            letters[size] = events.symbols[event] * (asked.looks.max() + 1) + look
        size += 1
        if size == _MOST_BOUNDED:
            break
    return places[:size], letters[:size], low, (last - low) // asked.step + 1


@njit(nogil=True, cache=True)
def bound_of(chain, count, events, asked):  # type: ignore[no-untyped-def]
    """An upper bound of the confidence of every match with these events, over all its orders. It is
    close only up to `asked.bound`: above, nobody needs to know it better.

    chain[place, 0] are the events, chain[place, 1] their kinds; the last place is the newest one.

    In a world in which a match holds, its events come in an order in which each can follow the one
    before. So do any of its events. The bound is the probability of such orders of some of them:
    the newest one, and others that overlap with these. It never rises when events are added.
    """
    places, letters, low, times = _bounded(chain, count, events, asked)
    size = places.shape[0]
    can_follow, any_order = np.ones((size, size), np.bool_), True
    for one in range(size):
        for other in range(size):
            if letters[one] >= 0:
                can_follow[one, other] = asked.follows[letters[one], letters[other]]
            any_order &= one == other or can_follow[one, other]
    # For each subset the probability that its first event is at a time, and the others behind it in
    # such an order; if not all orders are such: for each first event.
    rows = 1 if any_order else size
    found = np.zeros(((1 << size) * rows, times), np.float64)
    whole = 1.0
    for members in range(1, 1 << size):
        for number in range(size):
            if not members >> number & 1:
                continue
            event = chain[places[number], 0]
            first, rest = (events.low[event] - low) // asked.step, members & ~(1 << number)
            into = members if any_order else members * size + number
            carried, later = 0.0 if rest else 1.0, times - 1
            for point in range(events.points[event] - 1, -1, -1):
                while rest and later > first + point:
                    if any_order:
                        carried += found[rest, later]
                    else:
                        for other in range(size):
                            if rest >> other & 1 and can_follow[number, other]:
                                carried += found[rest * size + other, later]
                    later -= 1
                found[into, first + point] += carried * share_of(events, event, point)
        if members & (members + 1) == 0:
            # All subsets of the newest events have come.
            begin, stop = members * rows, (members + 1) * rows
            whole = found[begin:stop].sum()
            if whole <= asked.bound:
                break
    return whole


@njit(nogil=True, cache=True)
def _node_of(moves, symbol, state):  # type: ignore[no-untyped-def]
    """The place of a state among those that events of a symbol lead to; −1: it is not there."""
    for place in range(moves.node_first[symbol], moves.node_first[symbol + 1]):
        if moves.node_states[place] == state:
            return place
    return -1


@njit(nogil=True, cache=True)
def with_twice_the_rows(array):  # type: ignore[no-untyped-def]
    """A copy of a two-dimensional array with twice the rows; the new ones are 0."""
    found = np.zeros((2 * array.shape[0], array.shape[1]), array.dtype)
    copy_to(found.reshape(-1), 0, array.reshape(-1))
    return found


@njit(nogil=True, cache=True)
def clusters_of(events, first, stop, window, many):  # type: ignore[no-untyped-def]
    """Where clusters begin, and which events are crowded: bool[events] each, for all events.

    A cluster is a run of events that overlap. All of them come after all events of the clusters
    before, whatever their times are. Events are crowded if a cluster that their matches can reach
    has a place where `many` events overlap: the cluster itself, or an earlier one inside the
    window. The events from `first` to before `stop` must be whole clusters.
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

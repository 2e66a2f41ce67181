"""The walk through the chains of events that can be a match, each with its probability.

An event is at one of its points: low, low + step, … A match in a possible world is a chain of
events at rising points. So its probability is a sum over the points of its events. The chain is
walked from its last event back. Each event has a vector: for each of its points the probability
that the event is there and that the chain continues after it. The vector of the event before it is
a sum of suffixes. So an event costs as many steps as it has points.

The walk knows beforehand which event can be before which (`possible_reach`). It takes no event
twice. The window and the latest point of the next event bound it. If events of a chain could change
places, the chain only stands for the set of its events, whose orders are added up
(`possible_orders`).

*Rejected*: one event for each point, read by an ordinary update. It lists a match once for each
choice of points: U^k times for k events of U points.

After section 5.3 of *On Complexity and Optimization of Expensive Queries in Complex Event
Processing* (SIGMOD 2014), where intervals are given and confidences enumerated.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.key_tables import hash_of
from celc_runtime.engine.worlds.possible_moves import START, PossibleMoves
from celc_runtime.engine.worlds.possible_orders import (
    bound_of,
    extended,
    in_window,
    of_all_orders,
    set_out,
)
from celc_runtime.engine.worlds.possible_reach import PossibleEvents, behind_of_state
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked

DONE, ROWS_FULL, PATH_FULL, POINTS_FULL, KNOWN_FULL, OUT_OF_WORK = range(6)
"""Statuses of the walk: finished; no room for rows, for events of a chain, for their vectors, for
known sets; too many steps for one row."""


class Walk(NamedTuple):
    """The state of a walk between two calls, and its memory."""

    numbers: np.ndarray
    """int64[6]: the next event that can end a match, the event to stop before, its next move, the
    number of events in the chain, the steps since the last row, the number of known sets."""
    path: np.ndarray
    """int64[depth, 8], for each event of the chain, the last one first: the event, its kind, the
    state before it, the next candidate for the event before it, the next move of this candidate,
    the end of its moves, the place of its vector, whether two events of the chain so far could
    change places."""
    latest: np.ndarray  # int64[depth], the latest point of the event at which the chain is possible
    vectors: np.ndarray  # float64
    chain: np.ndarray  # int64[depth, 2], events and kinds
    scratch: np.ndarray  # float64, twice the most points of an event
    known: np.ndarray  # int64[slots, 2], the sets found at this end, as 128 bits; 0: a free slot
    tags: np.ndarray  # int64[depth], entries and kinds of the chain, for conditions
    state: np.ndarray  # int64[states, depth], for conditions


_EVENT, _KIND, _STATE, _NEXT, _MOVE, _MOVES_END, _AT, _SWAPS = range(8)
END, STOP, END_MOVE, DEPTH, WORK, KNOWN = range(6)


def new_walk(
    events: PossibleEvents, first: int, stop: int, moves: PossibleMoves, states: int
) -> Walk:
    """The walk through the matches that end at the events from `first` to before `stop`.

    states: how many numbers conditions keep with an event.
    """
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
    """Insert the bits of a set into a table with a free slot; returns whether they are new."""
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
    for slot in range(known.shape[0]):
        if known[slot, 0] != 0 or known[slot, 1] != 0:
            _enter(larger, known[slot, 0], known[slot, 1])


class PossibleRows(NamedTuple):
    """Room for matches."""

    used: np.ndarray  # int64[2], the number of matches and of their events
    ends: np.ndarray  # int64[matches], where the events of each match end in `tags`
    tags: np.ndarray  # int64, event << kind_bits | kind, the last event first
    confidences: np.ndarray  # float64[matches]


def new_rows(matches: int, events: int) -> PossibleRows:
    return PossibleRows(
        np.zeros(2, np.int64),
        np.zeros(matches, np.int64),
        np.zeros(events, np.int64),
        np.zeros(matches, np.float64),
    )


@njit(nogil=True, cache=True)
def _is_new(walk, asked, depth):  # type: ignore[no-untyped-def]
    """Whether the events of the chain, with their labels, are new at this end."""
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
    """Write the chain as a row if it is likely enough; returns a status (DONE: written or dropped).

    swaps: whether two of its events could change places. Then all its orders are added, and the row
    is written once, at the greatest event that can be the last one.
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
    if total > (0.0 if swaps and asked.several and not asked.sums else asked.bound):
        _note(rows.used, rows.ends, rows.tags, rows.confidences, chain, depth, asked.bits, total)
        walk.numbers[WORK] = 0
    return DONE


@njit(nogil=True, cache=True)
def _has_room(used, ends, tags, depth):  # type: ignore[no-untyped-def]
    return used[0] < ends.shape[0] and used[1] + depth + 1 <= tags.shape[0]


@njit(nogil=True, cache=True)
def _note(used, ends, tags, confidences, chain, depth, bits, total):  # type: ignore[no-untyped-def]
    match, first = used[0], used[1]
    for place in range(depth + 1):
        tags[first + place] = chain[place, 0] << bits | chain[place, 1]
    ends[match] = first + depth + 1
    confidences[match] = total
    used[0], used[1] = match + 1, first + depth + 1


class Past(NamedTuple):
    """What conditions read."""

    columns: tuple[np.ndarray, ...]  # the remembered columns
    first: int  # the entry at their index 0
    entries: np.ndarray  # int64[events], the entry of each event


@njit(nogil=True, cache=True, inline="always")
def _always(past, first, path, depth, state):  # type: ignore[no-untyped-def]
    """The condition of queries without conditions."""
    return True


@cache
def walker(checks: Checked | None) -> Callable[..., int]:
    """A kernel (walk, events, moves, reached, asked, rows, past) that lists matches.

    It stops when there is no more room or no more match, and returns a status. It asks the
    generated functions about each event and match. A chain that is not likely enough is given up
    before it is complete; if its events could come in another order, whose probability counts as
    well, all orders together must not be likely enough (`bound_of`). A chain whose events the
    conditions reject is given up too. Made once for each query.
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
                    set_out(events, event, vectors, 0)
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
                if bound > 0.0 and swaps and asked.several:
                    total = vectors[into : into + all_points[event]].sum()
                    if total <= bound and bound_of(chain, depth + 1, events, asked) <= bound:
                        path[top, _MOVE] = move + 1
                        continue
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
            if total <= bound and not (swaps and asked.several):
                continue
            symbol = symbols[event]
            first = moves.node_first[symbol] + node - reached.first[event]
            chain[depth, 0], latest[depth] = event, time
            path[top, _MOVE], path[top, _MOVES_END] = (
                into_first[first],
                into_first[first + 1],
            )

    # Compiled code cannot call interpreted conditions (for debugging).
    if checks is not None and not checks.compiles:
        return walk_on
    compiled: Callable[..., int] = njit(nogil=True, error_model="numpy")(walk_on)
    return compiled


@njit(nogil=True, cache=True)
def _is_in(path, depth, event):  # type: ignore[no-untyped-def]
    for place in range(depth):  # noqa: SIM110 - no generators in kernels
        if path[place, _EVENT] == event:
            return True
    return False

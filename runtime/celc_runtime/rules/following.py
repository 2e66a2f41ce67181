"""Rows that are followed through events, from those that begin a match: the kernels.

Each first event is a visit of its row. After it the row is alive in some states of the course
(`plan/parameters`). If one of these does not wait, the next event of the partition is visited; if
all wait, the next event that has the values of the row which a move asks for, within the window.
The visits of a row up to the event after which it is dead are one *life*. A life in which nothing
has to be read is left out. Any other is read with all its events, so also with those that end
partial matches.

Why a life is enough: every partial match that begins in it meets all events that can move it or end
it, because these are visited. A row is not visited again before the end of a life, since events
that begin matches are looked up in it as well.

Most lives end at once. A processor that foresees this reads the keys of many rows at the same time,
though each of them is far from the one before. So the first question about a row is whether it can
go on at all, and the shapes of some rows are read together: a row then costs 20 ns in place of 280.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.rules.ordered_keys import OrderedKeys, place_in_group
from celc_runtime.rules.pairs import Pairs, pairs_of_places

_AHEAD = 64  # rows whose shapes are read together


class Moves(NamedTuple):
    """Moves with one test of each OR: choices. Rows that have the same ones are of one *shape*, and
    each shape has choices of its own, because the keys of its rows lie in columns of their own."""

    first: np.ndarray  # int64[shapes + 1], where the choices of each shape begin
    begun: np.ndarray  # int64[shapes], the bits of the states after an event that begins a match
    types: np.ndarray  # int64[choices], the type of the event among `declared_types`
    sources: np.ndarray  # int64[choices], the bit of the state
    targets: np.ndarray  # int64[choices], the bit of the state afterwards; 0: none
    reads: np.ndarray  # bool[choices], whether the event has to be read
    ends: np.ndarray  # int64[choices], the bit of the state that holds no partial match afterwards
    tests: np.ndarray  # int64[choices + 1], where the tests of each begin in the next three
    operators: np.ndarray  # int64
    of_events: np.ndarray  # int64, the column of the event's key
    of_rows: np.ndarray  # int64, the column of the row's key
    finders: np.ndarray  # int64[choices], the finder of the events; -1: none
    bases: np.ndarray  # int64[choices], the first of its groups in `Events.places`
    firsts: np.ndarray  # int64[choices], the column of the row's code of its first attribute
    seconds: np.ndarray  # int64[choices], that of its second one; -1: it has one
    scales: np.ndarray  # int64[choices], the groups for each code of the first


class States(NamedTuple):
    waits: int  # a bit for each state that waits
    passes: np.ndarray  # int64[states], the bits of the state after any other event
    reads: np.ndarray  # bool[states], whether that event has to be read


class Events(NamedTuple):
    """The events of a run, as a kernel reads them."""

    keys: np.ndarray  # int64[events, columns]
    nulls: np.ndarray  # int64[events], a bit for each column
    types: np.ndarray  # int64[events]
    parts: np.ndarray  # int64[events]
    times: np.ndarray  # int64[events], what the window is measured on; empty: there is no window
    floors: np.ndarray  # int64[events], the least time in the window that ends at the event
    places: OrderedKeys  # the events of each group of each finder
    groups: np.ndarray  # int64[events, finders], the group of each event; -1: no row asks for it
    later: np.ndarray  # int64[events, finders], the next event of the same group


@dataclass
class Following:
    """Events, ready for the rows to be followed through them."""

    events: Events
    keys: np.ndarray
    moves: Moves
    states: States
    is_quick: bool

    def begin(self) -> Lives:
        """Follow rows anew, from other first events."""
        return Lives(self)


class Lives:
    """The lives of rows that begin at given events."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._visited = np.full(len(following.keys), -1, np.int64)
        self._found: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, events: np.ndarray, rows: np.ndarray) -> None:
        """Follow rows (int32) from events (int32) at which a match can begin.

        Events ascend, also from call to call.
        """
        of, number, room = self._following, 0, max(1024, len(events))
        while number < len(events):
            of_rows, of_events = np.empty(room, np.int32), np.empty(room, np.int32)
            shapes = np.empty(_AHEAD, np.int64)
            number, count = _follow(
                number,
                events,
                rows,
                of.events,
                of.keys,
                of.moves,
                of.states,
                self._visited,
                of.is_quick,
                shapes,
                of_rows,
                of_events,
            )
            self._found.append((of_rows[:count].copy(), of_events[:count].copy()))
            room *= 2  # one life can be longer

    def pairs(self) -> Pairs | None:
        """The events to read for each row; None: there are none."""
        rows = np.concatenate([one for one, _ in self._found] or [np.zeros(0, np.int32)])
        if not len(rows):
            return None
        events = np.concatenate([one for _, one in self._found])
        count = len(self._following.keys)
        return pairs_of_places(events, rows, np.arange(count, dtype=np.int32), count)


# --- kernels --------------------------------------------------------------------------------------


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _admits(choice, event, row, events, keys, moves):  # type: ignore[no-untyped-def]
    """Whether an event is of the type of a choice and satisfies its tests."""
    if events.types[event] != moves.types[choice]:
        return False
    for test in range(moves.tests[choice], moves.tests[choice + 1]):
        column, operator = moves.of_events[test], moves.operators[test]
        of_event, of_row = events.keys[event, column], keys[row, moves.of_rows[test]]
        if operator == 0:
            if of_event != of_row:
                return False
            continue
        if operator == 5:
            if of_event == 0:
                return False
            continue
        if (events.nulls[event] >> column) & 1:
            return False
        if operator == 1 and of_event >= of_row:
            return False
        if operator == 2 and of_event > of_row:
            return False
        if operator == 3 and of_event <= of_row:
            return False
        if operator == 4 and of_event < of_row:
            return False
    return True


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _visit(event, row, alive, events, keys, moves, states):  # type: ignore[no-untyped-def]
    """(the states of the row after an event; whether the event has to be read; whether a match can
    begin with it)."""
    shape, sources = keys[row, 0], alive | 1
    after, left, reads, begins = np.int64(0), alive & states.waits, False, False
    for choice in range(moves.first[shape], moves.first[shape + 1]):
        if sources & moves.sources[choice] == 0:
            continue
        if not _admits(choice, event, row, events, keys, moves):
            continue
        after |= moves.targets[choice]
        left &= ~moves.ends[choice]
        reads |= moves.reads[choice]
        begins |= moves.sources[choice] == 1
    rest = alive & ~states.waits
    if rest:
        for state in range(1, len(states.passes)):
            if (rest >> state) & 1:
                after |= states.passes[state]
                reads |= states.reads[state]
    return after | left, reads, begins


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _next(event, row, alive, events, keys, moves, states):  # type: ignore[no-untyped-def]
    """The next event that has to be visited; −1: there is none in the partition."""
    count = len(events.types)
    found = np.int64(count)
    if alive & ~states.waits:
        found = np.int64(event) + 1
    else:
        shape, sources = keys[row, 0], alive | 1
        before = np.int64(-1)
        for choice in range(moves.first[shape], moves.first[shape + 1]):
            if sources & moves.sources[choice] == 0:
                continue
            if moves.finders[choice] < 0:
                found = np.int64(event) + 1
                continue
            finder = moves.finders[choice]
            group = moves.bases[choice] + keys[row, moves.firsts[choice]] * moves.scales[choice]
            if moves.seconds[choice] >= 0:
                group += keys[row, moves.seconds[choice]]
            if group == before:
                continue
            before = group
            if events.groups[event, finder] == group:
                found = min(found, events.later[event, finder])
                continue
            place = place_in_group(events.places, group, event, True)
            if place < events.places.starts[group + 1]:
                found = min(found, events.places.keys[place])
    if found < count and events.parts[found] == events.parts[event]:
        return found
    return np.int64(-1)


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def _goes_on(event, row, shape, events, keys, moves, states):  # type: ignore[no-untyped-def]
    """Whether a match that begins with an event can go on with another one.

    Mostly it cannot. A processor that foresees this reads the keys of many rows at once, though
    each of them is far from the one before.
    """
    alive = moves.begun[shape]
    found = _next(event, row, alive, events, keys, moves, states)
    if found < 0 or (len(events.times) and events.times[event] < events.floors[found]):
        return False
    if alive & states.waits:
        return True
    for choice in range(moves.first[shape], moves.first[shape + 1]):
        if alive & moves.sources[choice] and _admits(choice, found, row, events, keys, moves):
            return True
    for state in range(1, len(states.passes)):
        if (alive >> state) & 1 and (states.passes[state] or states.reads[state]):
            return True
    return False


@njit(nogil=True, cache=True, error_model="numpy", _nrt=False)
def _follow(  # type: ignore[no-untyped-def]
    number,
    first,
    rows,
    events,
    keys,
    moves,
    states,
    visited,
    is_quick,
    shapes,
    of_rows,
    of_events,
):
    """Write the rows (int32) and the events (int32) that are read for them; those of each row
    ascend. Returns (the number of the first event that is left for more room, how many were
    written).

    visited: int64[rows], the last event of the last life of each row. shapes: int64,
    room for those of some rows. They are read together, because rows are far from each
    other: the processor then waits once, and the first keys of a row come with its shape.
    """
    count, block, ahead = 0, number, number
    while number < len(first):
        if number == ahead:
            block, ahead = number, min(number + len(shapes), len(first))
            for one in range(number, ahead):
                shapes[one - number] = keys[rows[one], 0]
        row, event = np.int64(rows[number]), np.int64(first[number])
        if is_quick and not _goes_on(
            event, row, shapes[number - block], events, keys, moves, states
        ):
            number += 1
            continue
        if event <= visited[row]:
            number += 1
            continue
        begin, alive, latest, is_read = count, np.int64(0), event, False
        while True:
            alive, reads, begins = _visit(event, row, alive, events, keys, moves, states)
            is_read |= reads
            if begins:
                latest = event
            if count == begin and alive == 0 and not is_read:
                break
            if count == len(of_rows):
                return number, begin
            of_rows[count], of_events[count] = row, event
            count += 1
            if alive == 0:
                break
            found = _next(event, row, alive, events, keys, moves, states)
            if found < 0:
                break
            if len(events.times) and events.times[latest] < events.floors[found]:
                break
            event = found
        if event > first[number]:
            visited[row] = event
        if not is_read:
            count = begin
        number += 1
    return number, count

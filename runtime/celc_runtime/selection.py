"""Selectors under WITHIN: choosing among the matches inside the window, at each event that ends one.

A match that a selector would prefer may leave the window while a lesser one stays, so what is
chosen at one event says little of what is chosen at the next, and no fixed number of nodes per
state can hold the answer. So the update runs on all matches and only tells where some match ends
(which costs what it costs without a selector). For each such event the selector's automaton, which
was made for a stream of its own, then reads the events of the window as if the stream began there.
It marks what a chosen match marks and follows nothing else; what it builds is thrown away after its
matches have been listed.

*Exact*: the matches in the window that ends at j are the matches of the stream that begins at the
window's first event, and the automaton chooses among those (Theorem 4 of the CEL paper).

*Cost*: an update is constant per event. An event that ends a match costs (events of the window that
are not quiet) × (states of the automaton that are alive at once, a number fixed by the query),
whatever the number of matches that are not chosen; then each chosen match costs its length. It
grows with the window, not with the stream.

Two cheaper ways: NXT, where an event can be marked in one way only, needs no automaton of its own
(`Earliest`): read from the end back, the window tells which states reach the end; read forward, an
event is marked whenever one of those is reached by doing so. That is two table look-ups an event.
LAST costs its own length only, where events come out of the arena in the right order (`latest`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from celc_runtime.arena import (
    ALWAYS,
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT_NODE,
    OUTPUT_FULL,
    STACK_SIZE,
    WINDOW_FULL,
    Memory,
    new_memory,
    put,
    with_deeper_stack,
)
from celc_runtime.batch import NO_INTEGERS, Batch, window_floor
from celc_runtime.enumerate import list_fired
from celc_runtime.lists import Move, as_matrix, tables


class Selection(NamedTuple):
    """A selector's automaton, with the tracker that reads the window before a match begins.

    following: int64[trackers, letters], the tracker's next state; symbols: int64[trackers,
    letters], the column of the other tables; quiet: bool[letters], letters that change nothing
    unless they end a match. The rest is as in `lists.Tables`. most: int64[1], the most nodes that
    one event makes.
    """

    following: np.ndarray
    symbols: np.ndarray
    quiet: np.ndarray
    start_first: np.ndarray
    start_moves: np.ndarray
    move_first: np.ndarray
    moves: np.ndarray
    skip: np.ndarray
    most: np.ndarray


def selection(
    *,
    following: Sequence[Sequence[int]],
    symbols: Sequence[Sequence[int]],
    quiet: Sequence[bool],
    starts: Sequence[Sequence[Move]],
    moves: Sequence[Mapping[int, Sequence[Move]]],
    skip: Sequence[Sequence[int]],
) -> Selection:
    """`Selection` from what a generated module spells out."""
    columns = len(starts)
    found = tables(
        starts=starts,
        moves=moves,
        skip=skip,
        idle=(False,) * columns,
        window=0,
        size=0,
        consumes=False,
        interleaved=False,
    )
    most = max(
        (
            len(starts[column]) + len(moves) + sum(len(row.get(column, ())) for row in moves)
            for column in range(columns)
        ),
        default=0,
    )
    return Selection(
        as_matrix(following),
        as_matrix(symbols),
        np.array(quiet, np.bool_),
        found.start_first,
        found.start_moves,
        found.move_first,
        found.moves,
        found.skip,
        np.array([most + 1], np.int64),
    )


class Earliest(NamedTuple):
    """What NXT runs over a window instead, where an event can be marked in one way only.

    All by letter: targets, kinds: int64[states, letters], where marking an event leads (−1: it
    cannot be), and how; skip: int64[states, letters], where passing it leads or −1; end_kinds:
    int64[states, letters], how it is marked as the last one. ends: int64[letters] and back:
    int64[sets, letters], numbers of sets of states from which the end can be reached, read from the
    end back; within: bool[sets, states]. State 0 is the start.
    """

    targets: np.ndarray
    kinds: np.ndarray
    skip: np.ndarray
    end_kinds: np.ndarray
    ends: np.ndarray
    back: np.ndarray
    within: np.ndarray


def earliest(
    *,
    marks: Sequence[Mapping[int, tuple[int, int]]],
    skip: Sequence[Sequence[int]],
    end_kinds: Sequence[Mapping[int, int]],
    sets: Sequence[Sequence[int]],
    ends: Sequence[int],
    back: Sequence[Sequence[int]],
) -> Earliest:
    """`Earliest` from what a generated module spells out."""
    states, letters = len(skip), len(ends)
    targets = np.full((states, letters), -1, np.int64)
    kinds = np.zeros((states, letters), np.int64)
    last = np.zeros((states, letters), np.int64)
    within = np.zeros((len(sets), states), np.bool_)
    for state in range(states):
        for letter, (kind, target) in marks[state].items():
            targets[state, letter], kinds[state, letter] = target, kind
        for letter, kind in end_kinds[state].items():
            last[state, letter] = kind
    for number, members in enumerate(sets):
        within[number, list(members)] = True
    return Earliest(
        targets,
        kinds,
        as_matrix(skip),
        last,
        np.array(ends, np.int64),
        as_matrix(back),
        within,
    )


class History(NamedTuple):
    """Events that a window may reach back to, those of the batch at hand last.

    All int64[events]. rows: their rows in the batch, −1 for earlier ones; letters; keys: what the
    window is measured on; parts: numbers of their partitions; entries: their numbers among the
    events with a symbol other than 0 (of no meaning for the others).
    """

    rows: np.ndarray
    letters: np.ndarray
    keys: np.ndarray
    parts: np.ndarray
    entries: np.ndarray


_NO_HISTORY = History(*[NO_INTEGERS] * 5)

# Places in `Windows.places`.
_CURSOR = 0  # the event of the history that fired last
_FIRST = 1  # the first event of its window
_BOUNDARY = 2  # the last event that a match has consumed, −1: none
_INTERLEAVED = 3
_CONSUMES = 4


class Windows:
    """The events of the window, and what is needed to choose among the matches inside it."""

    def __init__(
        self, chosen: Selection | Earliest, *, interleaved: bool, consumes: bool, all_events: bool
    ) -> None:
        self._selection = chosen
        self._all_events = all_events
        self._history = _NO_HISTORY
        self._part = 0
        self._places = np.array([0, 0, -1, interleaved, consumes], np.int64)
        self._scratch = new_memory(0)
        self._contents = np.zeros((2, max(1, chosen.skip.shape[0])), np.int64)
        self._sets = np.zeros(256, np.int64)

    @property
    def nbytes(self) -> int:
        """The size of what is kept between batches."""
        kept = (*self._history, *self._scratch, self._contents, self._sets)
        return int(sum(array.nbytes for array in kept))

    def enter(
        self, batch: Batch, keys: np.ndarray, parts: np.ndarray, entry: int, with_letters: bool
    ) -> Batch:
        """Take in a batch; `keys` int64[rows], `parts`: the rows at which a new partition begins,
        `entry` the number of its first event that matters. Where letters depend on contexts, the
        update writes them into the history."""
        rows = np.arange(len(batch.symbols)) if self._all_events else np.flatnonzero(batch.symbols)
        numbers = (
            batch.slots[rows]
            if len(batch.slots)
            else self._part + np.searchsorted(parts, rows, side="right")
        )
        self._part += len(parts)
        matters = batch.symbols[rows] != 0
        old = self._history
        here = History(
            rows,
            batch.symbols[rows].astype(np.int64),
            keys[rows],
            numbers,
            entry + np.cumsum(matters) - matters,
        )
        self._places[_CURSOR] = len(old.rows)
        self._history = History(*map(np.concatenate, zip(old, here, strict=True)))
        if with_letters:
            return batch._replace(letters=self._history.letters[len(old.rows) :])
        return batch

    def leave(self, floors: np.ndarray | int) -> None:
        """End the batch: keep what is not before the floor, one for all or for each partition."""
        history = self._history
        if isinstance(floors, int):
            # Partitions come one after another: only the last one goes on.
            keep = (history.keys >= floors) & (history.parts == self._part)
        else:
            keep = history.keys >= floors[history.parts]
        keep[: self._places[_BOUNDARY] + 1] = False
        kept = History(*(column[keep] for column in history))
        kept.rows[:] = -1
        self._history = kept
        self._places[_FIRST], self._places[_BOUNDARY] = 0, -1

    def choose(self, memory: Memory, output, kinds) -> int:  # type: ignore[no-untyped-def]
        """List what is chosen at each event that fired; a status of the arena module."""
        if isinstance(self._selection, Earliest):
            return int(
                _choose_earliest(
                    memory,
                    output,
                    kinds,
                    self._selection,
                    self._history,
                    self._sets,
                    self._places,
                )
            )
        return int(
            _choose(
                memory,
                output,
                kinds,
                self._selection,
                self._history,
                self._scratch,
                self._contents,
                self._places,
            )
        )

    def grow(self) -> None:
        """More room for one window."""
        self._sets = np.zeros(2 * len(self._sets), np.int64)
        self._scratch = self._scratch._replace(
            nodes=np.zeros((2 * len(self._scratch.nodes), 4), np.int64)
        )

    def deepen(self) -> None:
        """More room for the enumeration."""
        self._scratch = with_deeper_stack(self._scratch)


@njit(nogil=True, cache=True)
def _choose(memory, output, kinds, chosen, history, scratch, contents, places):  # type: ignore[no-untyped-def]
    counters = memory.counters
    while True:
        if scratch.counters[FIRED]:
            status = list_fired(scratch, output, kinds)
            if status != DONE:
                return status
        if counters[LISTED] == counters[FIRED]:
            counters[LISTED] = counters[FIRED] = 0
            return DONE
        fire = memory.fires[counters[LISTED]]
        first, cursor = _window_of(fire, history, places)
        floor_value = fire[3]
        root = _read_window(chosen, history, scratch, contents, kinds, first, cursor, floor_value)
        if root < 0:
            return WINDOW_FULL
        counters[LISTED] += 1
        if places[_CONSUMES]:
            places[_BOUNDARY] = cursor
        if root > 0 and output.limit[0] > 0:
            ready = scratch.fires[0]
            ready[0], ready[1], ready[2], ready[3] = root, fire[1], 1, ALWAYS
            scratch.counters[FIRED] = 1
            scratch.counters[LISTED] = scratch.counters[STACK_SIZE] = 0


@njit(nogil=True, cache=True)
def _window_of(fire, history, places):  # type: ignore[no-untyped-def]
    """The first event of the window of an event that fired, and its own place in the history."""
    cursor = places[_CURSOR]
    while history.rows[cursor] != fire[1]:
        cursor += 1
    places[_CURSOR] = cursor
    first = max(places[_FIRST], places[_BOUNDARY] + 1)
    if not places[_INTERLEAVED]:
        while history.parts[first] != history.parts[cursor] or history.keys[first] < fire[3]:
            first += 1
        places[_FIRST] = first
    return first, cursor


@njit(nogil=True, cache=True)
def _choose_earliest(memory, output, kinds, chosen, history, sets, places):  # type: ignore[no-untyped-def]
    counters, bits, tags = memory.counters, kinds.bits[0], output.tags
    letters, entries = history.letters, history.entries
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        first, last = _window_of(fire, history, places)
        used = output.used[1]
        if output.used[0] == output.rows.shape[0] or used + last + 1 - first > tags.shape[0]:
            return OUTPUT_FULL
        if last + 1 - first > sets.shape[0]:
            return WINDOW_FULL
        reached = chosen.ends[letters[last]]
        for at in range(last - 1, first - 1, -1):
            sets[at - first] = reached
            reached = chosen.back[reached, letters[at]]
        state = np.int64(0)
        for at in range(first, last):
            letter = letters[at]
            target = chosen.targets[state, letter]
            if target >= 0 and chosen.within[sets[at - first], target]:
                tags[used] = entries[at] << bits | chosen.kinds[state, letter]
                used += 1
                state = target
            else:
                state = chosen.skip[state, letter]
        if output.limit[0] > 0:
            tags[used] = entries[last] << bits | chosen.end_kinds[state, letters[last]]
            output.rows[output.used[0]], output.ends[output.used[0]] = fire[1], used + 1
            output.used[0], output.used[1] = output.used[0] + 1, used + 1
        counters[LISTED] += 1
        if places[_CONSUMES]:
            places[_BOUNDARY] = last
    counters[LISTED] = counters[FIRED] = 0
    return DONE


@njit(nogil=True, cache=True)
def _read_window(chosen, history, scratch, contents, kinds, first, last, floor_value):  # type: ignore[no-untyped-def]
    """Build the chosen matches that end at event `last`; their root, 0: none, −1: no room."""
    nodes, bits = scratch.nodes, kinds.bits[0]
    states = chosen.skip.shape[0]
    columns = chosen.skip.shape[1]
    part = history.parts[last]
    tracker = np.int64(0)
    node = np.int64(1)
    now = 0
    begun = False
    for state in range(states):
        contents[0, state] = 0
    for at in range(first, last + 1):
        letter = history.letters[at]
        if chosen.quiet[letter] and at != last:
            continue
        if history.parts[at] != part or history.keys[at] < floor_value:
            continue
        if node + chosen.most[0] > nodes.shape[0]:
            return np.int64(-1)
        column = chosen.symbols[tracker, letter]
        tracker = chosen.following[tracker, letter]
        tag = history.entries[at] << bits
        ends = at == last
        root = np.int64(0)
        if begun:
            for state in range(states):
                contents[1 - now, state] = 0
            for state in range(states):
                content = contents[now, state]
                if content == 0:
                    continue
                place = state * columns + column
                for index in range(chosen.move_first[place], chosen.move_first[place + 1]):
                    kind, accepts, target = chosen.moves[index]
                    if ends and accepts:
                        put(nodes, node, tag | kind, content, root, 0)
                        root = node
                        node += 1
                    elif not ends and target >= 0:
                        put(nodes, node, tag | kind, content, contents[1 - now, target], 0)
                        contents[1 - now, target] = node
                        node += 1
                target = chosen.skip[state, column]
                if not ends and target >= 0:
                    if contents[1 - now, target] == 0:
                        contents[1 - now, target] = content
                    else:
                        put(nodes, node, MERGE, content, contents[1 - now, target], 0)
                        contents[1 - now, target] = node
                        node += 1
            now = 1 - now
        for index in range(chosen.start_first[column], chosen.start_first[column + 1]):
            kind, accepts, target = chosen.start_moves[index]
            if ends and accepts:
                put(nodes, node, tag | kind, 0, root, 0)
                root = node
                node += 1
            elif not ends and target >= 0:
                put(nodes, node, tag | kind, 0, contents[now, target], 0)
                contents[now, target] = node
                node += 1
                begun = True
        if ends:
            scratch.counters[NEXT_NODE] = node
            return root
    return np.int64(0)


def common_floor(batch: Batch, keys: np.ndarray, size: int) -> int:
    """The earliest key in the window of the last event of a batch, for any event after it."""
    if len(batch.floors):
        return int(batch.floors[-1])
    return int(window_floor(keys[-1], size))

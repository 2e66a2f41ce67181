"""Selectors under WITHIN: choosing among the matches in the window, wherever one ends.

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
(`EarliestListing`): read from the end back, the window tells which states reach the end; read
forward, an event is marked whenever one of those is reached by doing so. That is two table look-ups
an event, and for a chain like `A ; B ; C` it stops early on both ways: going back, once every state
reaches the end whatever comes before; going forward, once only the last event is left to mark.
LAST costs its own length only, where events come out of the arena in the right order (`latest`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from celc_runtime.arrow.columns import Prepared
from celc_runtime.engine.arena import (
    ALWAYS,
    DONE,
    ENTRY,
    FIRED,
    LISTED,
    MERGE,
    NEXT_NODE,
    OUTPUT_FULL,
    SHIFT,
    STACK_FULL,
    STACK_SIZE,
    WINDOW_FULL,
    Memory,
    new_memory,
    next_relevant,
    put,
    with_deeper_stack,
)
from celc_runtime.engine.batch import NO_INTEGERS
from celc_runtime.engine.listing import Kinds, Output, list_fired
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import EarliestInWindow, InWindow
from celc_runtime.run.listings import NOTED_ROWS, Floors, ListingOfRun
from celc_runtime.run.positions import Positions


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

_EVENTS_ROOM = 256
"""Events of one window for which there is room at first."""

# Places in `WindowListing._places`.
_CURSOR = 0  # the event of the history that fired last
_FIRST = 1  # the first event of its window
_BOUNDARY = 2  # the last event that a match has consumed, −1: none
_INTERLEAVED = 3
_CONSUMES = 4


class WindowListing(ListingOfRun):
    """The events of the window, and what is needed to choose among the matches inside it."""

    most_rows = NOTED_ROWS

    def __init__(
        self, listing: InWindow | EarliestInWindow, plan: Plan, *, with_letters: bool
    ) -> None:
        self._all_events = listing.all_events
        self._with_letters = with_letters
        # Where interleaved partitions count their events, positions are what rows are not.
        self._by_position = plan.interleaves and plan.window_attribute is None
        self._history = _NO_HISTORY
        self._part = 0
        consumes = plan.consume_by != "NONE"
        self._places = np.array([0, 0, -1, plan.interleaves, consumes], np.int64)

    @property
    def nbytes(self) -> int:
        """The size of what is kept between batches."""
        return int(sum(array.nbytes for array in self._history))

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        """Take in a batch; where letters depend on contexts, the update writes them into the
        history."""
        batch, counters, old = prepared.batch, memory.counters, self._history
        known = len(old.rows)
        rows = len(batch.symbols)
        keys = positions.of(np.arange(rows)) if self._by_position else batch.keys
        count = rows if self._all_events else int(np.count_nonzero(batch.symbols))
        history = History(*(np.empty(known + count, np.int64) for _ in old))
        for column, before in zip(history, old, strict=True):
            column[:known] = before
        shift, entry = int(counters[SHIFT]), int(counters[ENTRY])
        _append(
            history, known, batch, keys, prepared.parts, shift, entry, self._part, self._all_events
        )
        self._part += len(prepared.parts)
        self._places[_CURSOR] = known
        self._history = history
        if not self._with_letters:
            return prepared
        return replace(prepared, batch=batch._replace(letters=history.letters[known:]))

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End the batch: keep what is not before the floor, one for all or for each partition."""
        history, behind = self._history, floors()
        if isinstance(behind, int):
            # Partitions come one after another: only the last one goes on.
            keep = (history.keys >= behind) & (history.parts == self._part)
        else:
            keep = history.keys >= behind[history.parts]
        keep[: self._places[_BOUNDARY] + 1] = False
        kept = History(*(column[keep] for column in history))
        kept.rows[:] = -1
        self._history = kept
        self._places[_FIRST], self._places[_BOUNDARY] = 0, -1


class SelectorListing(WindowListing):
    """What a selector's automaton chooses, run over the events of each window."""

    def __init__(self, listing: InWindow, plan: Plan, *, with_letters: bool) -> None:
        super().__init__(listing, plan, with_letters=with_letters)
        self._selector = listing.selector
        self._scratch = new_memory(0)
        self._contents = np.zeros((2, max(1, len(listing.selector.skip))), np.int64)

    @property
    def nbytes(self) -> int:
        kept = (*self._scratch, self._contents)
        return super().nbytes + int(sum(array.nbytes for array in kept))

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(
            _choose(
                memory,
                output,
                kinds,
                self._selector,
                self._history,
                self._scratch,
                self._contents,
                self._places,
            )
        )

    def with_room(self, status: int, memory: Memory) -> Memory:
        """For the arena of one window, or for the walk through it."""
        if status == WINDOW_FULL:
            nodes = np.zeros((2 * len(self._scratch.nodes), 4), np.int64)
            self._scratch = self._scratch._replace(nodes=nodes)
        else:
            assert status == STACK_FULL
            self._scratch = with_deeper_stack(self._scratch)
        return memory


class EarliestListing(WindowListing):
    """What takes the earliest events in each window that still lead to the end at hand."""

    def __init__(self, listing: EarliestInWindow, plan: Plan, *, with_letters: bool) -> None:
        super().__init__(listing, plan, with_letters=with_letters)
        self._selector = listing.selector
        self._sets = np.zeros(_EVENTS_ROOM, np.int64)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._sets.nbytes

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(
            _choose_earliest(
                memory, output, kinds, self._selector, self._history, self._sets, self._places
            )
        )

    def with_room(self, status: int, memory: Memory) -> Memory:
        """For the events of one window."""
        assert status == WINDOW_FULL
        self._sets = np.zeros(2 * len(self._sets), np.int64)
        return memory


@njit(nogil=True, cache=True)
def _append(history, at, batch, keys, parts, shift, entry, part, all_events):  # type: ignore[no-untyped-def]
    symbols = batch.symbols
    rows = symbols.shape[0]
    entered = 0
    row = 0
    while row < rows:
        if symbols[row] == 0 and not all_events:
            row = next_relevant(batch.words, symbols, row + 1, rows)
            continue
        while entered < parts.shape[0] and parts[entered] <= row:
            shift = parts[entered]
            entered += 1
        history.rows[at] = row
        history.letters[at] = symbols[row]
        history.keys[at] = keys[row] if keys.shape[0] else row - shift
        history.parts[at] = batch.slots[row] if batch.slots.shape[0] else part + entered
        history.entries[at] = entry
        entry += symbols[row] != 0
        at += 1
        row += 1


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
    letters, entries, states = history.letters, history.entries, chosen.states[0]
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        first, last = _window_of(fire, history, places)
        used = output.used[1]
        if output.used[0] == output.rows.shape[0] or used + last + 1 - first > tags.shape[0]:
            return OUTPUT_FULL
        if last + 1 - first > sets.shape[0]:
            return WINDOW_FULL
        reached = chosen.ends[letters[last]]
        at = last - 1
        while at >= first and not chosen.settled[reached]:
            sets[at - first] = reached * states
            reached = chosen.back[reached + letters[at]]
            at -= 1
        settled_until, settled = at, reached * states
        state = np.int64(0)
        for at in range(first, last):
            if chosen.done[state]:
                break
            # Without a branch on the event: which ones are marked cannot be predicted.
            place = state + letters[at]
            step = chosen.steps[(settled if at <= settled_until else sets[at - first]) + place]
            tags[used] = entries[at] << bits | chosen.kinds[place]
            used += step & 1
            state = step >> 1
        if output.limit[0] > 0:
            tags[used] = entries[last] << bits | chosen.end_kinds[state + letters[last]]
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

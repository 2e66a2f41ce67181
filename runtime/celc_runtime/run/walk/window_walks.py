"""The walks of selectors under WITHIN: choosing among the matches in the window of each event.

A match that a selector prefers may leave the window before a less preferred one. So the choice at
one event says little about the choice at the next, and no fixed number of nodes per state can hold
it. Therefore the update runs on all matches, and only tells where some match ends, which costs as
much as without a selector. For each such event the events of the window are read again
(`window_selection`). So the cost grows with the window, not with the stream.

LAST does not need that if events come out of the arena in the right order (`latest_walk`).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.engine.arena.nodes import ENTRY, SHIFT, WINDOW_FULL, Memory, new_memory
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.engine.walk.window_selection import (
    BOUNDARY,
    CURSOR,
    FIRST,
    WindowEvents,
    append_events,
    choose_by_automaton,
    choose_earliest,
)
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import EarliestInWindow, InWindow
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.walks import NOTED_ROWS, Floors, WalkOfRun, with_more_scratch

_NO_EVENTS = WindowEvents(*[NO_INTEGERS] * 5)

_EVENTS_ROOM = 256  # events of one window for which there is room at first


class WindowWalk(WalkOfRun):
    """Notes the events that windows can reach; subclasses choose among their matches."""

    most_rows = NOTED_ROWS

    def __init__(
        self, listing: InWindow | EarliestInWindow, plan: Plan, *, with_letters: bool
    ) -> None:
        self._all_events = listing.all_events
        self._with_letters = with_letters
        # If partitions interleave, a window in EVENTS is measured on positions, not on rows.
        self._by_position = plan.interleaves and plan.window_attribute is None
        self._events = _NO_EVENTS
        self._part = 0
        consumes = plan.matching.consume_by != "NONE"
        self._places = np.array([0, 0, -1, plan.interleaves, consumes], np.int64)

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self._events))

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        """Note the events of a batch. If letters depend on contexts, the update writes them
        here."""
        batch, counters, old = prepared.batch, memory.counters, self._events
        known = len(old.rows)
        rows = len(batch.symbols)
        keys = positions.of(np.arange(rows)) if self._by_position else batch.keys
        count = rows if self._all_events else int(np.count_nonzero(batch.symbols))
        events = WindowEvents(*(np.empty(known + count, np.int64) for _ in old))
        for column, before in zip(events, old, strict=True):
            column[:known] = before
        shift, entry = int(counters[SHIFT]), int(counters[ENTRY])
        append_events(
            events, known, batch, keys, prepared.parts, shift, entry, self._part, self._all_events
        )
        self._part += len(prepared.parts)
        self._places[CURSOR] = known
        self._events = events
        if not self._with_letters:
            return prepared
        return replace(prepared, batch=batch._replace(letters=events.letters[known:]))

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End a batch: keep the events that a later window can reach."""
        events, behind = self._events, floors()
        if isinstance(behind, int):
            # Partitions come one after another, so only the last one goes on.
            keep = (events.keys >= behind) & (events.parts == self._part)
        else:
            keep = events.keys >= behind[events.parts]
        keep[: self._places[BOUNDARY] + 1] = False
        kept = WindowEvents(*(column[keep] for column in events))
        kept.rows[:] = -1
        self._events = kept
        self._places[FIRST], self._places[BOUNDARY] = 0, -1


class SelectorWalk(WindowWalk):
    """Lists the matches that a selector's automaton chooses, run over the events of each window."""

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
            choose_by_automaton(
                memory,
                output,
                kinds,
                self._selector,
                self._events,
                self._scratch,
                self._contents,
                self._places,
            )
        )

    def with_room(self, status: int, memory: Memory) -> Memory:
        self._scratch = with_more_scratch(self._scratch, status)
        return memory


class EarliestWalk(WindowWalk):
    """Lists the match of the earliest events in each window that still lead to its end."""

    def __init__(self, listing: EarliestInWindow, plan: Plan, *, with_letters: bool) -> None:
        super().__init__(listing, plan, with_letters=with_letters)
        self._selector = listing.selector
        self._sets = np.zeros(_EVENTS_ROOM, np.int64)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._sets.nbytes

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(
            choose_earliest(
                memory, output, kinds, self._selector, self._events, self._sets, self._places
            )
        )

    def with_room(self, status: int, memory: Memory) -> Memory:
        assert status == WINDOW_FULL
        self._sets = np.zeros(2 * len(self._sets), np.int64)
        return memory

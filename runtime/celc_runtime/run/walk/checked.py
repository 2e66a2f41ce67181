"""The walk with conditions between events, which are checked while matches are listed.

There are two kernels. Most queries return each match as it is found (`listing_kernel`). SELECT LAST
does so too if it can search in the order of its preference (`latest_checked`). If all matches of an
event must be known first, they are collected and reduced (`collected_listing`).
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import relevant_rows
from celc_runtime.engine.arena.nodes import (
    LISTED,
    PADDING,
    PRODUCT_FULL,
    STACK_FULL,
    STACK_SIZE,
    TOO_MUCH_WORK,
    WINDOW_FULL,
    Memory,
    with_deeper_stack,
)
from celc_runtime.engine.definition.instants import Instants
from celc_runtime.engine.graph.checked_graph import Product, larger, new_product
from celc_runtime.engine.totals.wide_columns import WideColumn, column_of
from celc_runtime.engine.walk.collected_listing import (
    Together,
    Wanted,
    collected_listing,
    with_room_for,
)
from celc_runtime.engine.walk.counted_sets import counted_sets
from celc_runtime.engine.walk.failures import is_full
from celc_runtime.engine.walk.listing import Kinds, Output, new_output
from celc_runtime.engine.walk.search import (
    FAILURES,
    OPEN,
    Given,
    fitted,
    new_search,
    that_notes_starts,
    with_more_slots,
    with_more_tops,
)
from celc_runtime.engine.walk.walk import listing_kernel
from celc_runtime.jit.kernels import STEPS_IN_PYTHON, compiling
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked
from celc_runtime.run.past.history import History
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.walks import Floors, WalkOfRun

_COLLECTED = 1 << 12
_COLLECTED_ENTRIES = 1 << 14


class WithPast(WalkOfRun):
    """A walk with conditions; holds the past events that they read."""

    most_rows = 1 << 20
    """What is remembered of so many rows takes some ten megabytes. A million rows took 12.6 ms in
    place of 9.9, and 53 in place of 49, in batches of a quarter: Python is asked for each."""

    def __init__(self, checks: Checked, plan: Plan, instants: Instants | None = None) -> None:
        self._instants = instants
        self._checks = checks
        self._history = History(checks.remembers, plan)
        self._max_work = plan.choice.max_work
        leasts = [least for least, _, _ in checks.varieties]
        self._search = new_search(checks.states, checks.fails_by, len(checks.limits), leasts)
        self._consumes = plan.matching.consume_by != "NONE"
        self._lasts = plan.source.begin is not None
        self._first_of_instant = np.zeros(0, np.int64)  # by remembered event

    @property
    def nbytes(self) -> int:
        own = sum(array.nbytes for array in self._search)
        return super().nbytes + self._history.nbytes + own

    @property
    def history(self) -> History:
        return self._history

    def look(self, prepared: Prepared, positions: Positions) -> None:
        batch = prepared.batch
        rows = relevant_rows(batch.symbols)
        count = len(rows)
        if count or len(prepared.parts):  # a partition can begin without a relevant event
            symbols = batch.symbols[rows]
            if self._instants is not None:
                symbols = self._instants.class_of[symbols]
            if self._lasts:
                self._note_instants(rows, batch.instants)
            self._history.append(prepared.events, rows, symbols, positions, prepared.parts)

    def _note_instants(self, rows: np.ndarray, instants: np.ndarray) -> None:
        """Note for the events at some rows the first one of each one's instant."""
        first = self._history.next
        found = first + np.arange(len(rows))
        if len(instants):
            numbers = instants[rows]
            found = first + np.searchsorted(numbers, numbers)
        self._first_of_instant = np.concatenate([self._first_of_instant, found])

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        self._history.drop(self._history.reached(oldest()))
        gone = len(self._first_of_instant) - (self._history.next - self._history.first)
        self._first_of_instant = self._first_of_instant[max(0, gone) :]

    def given(self, memory: Memory) -> Given:
        """What kernels are given for an arena."""
        self._search = fitted(self._search, len(memory.path), len(memory.nodes))
        history = self._history
        return Given(history.past, history.first, self._max_work, self._consumes, self._search)


class WithGraphs(WithPast):
    """A walk that makes graphs of matches with conditions (`engine.graph.checked_graph`)."""

    def __init__(self, checks: Checked, plan: Plan, instants: Instants | None = None) -> None:
        super().__init__(checks, plan, instants)
        assert checks.carries is not None, "routes and strategies ask for that"
        self._product = new_product(checks.carries)
        self.starts = np.tile([False, True], max(1, len(plan.matching.kinds)))
        """bool: for each mark of a node of a graph, whether matches begin with it."""

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(array.nbytes for array in self._product)

    def with_patience(self, memory: Memory, kernel: Callable[[Given, Product], int]) -> int:
        """The status of a kernel, which Python runs for a few steps before it is compiled."""
        given, product = self.given(memory), self._product
        status = int(
            kernel(given._replace(most_work=min(self._max_work, STEPS_IN_PYTHON)), product)
        )
        if status == TOO_MUCH_WORK and self._max_work > STEPS_IN_PYTHON:
            with compiling():
                status = int(kernel(given, product))
        if status == TOO_MUCH_WORK:
            memory.counters[LISTED] += 1  # the event at which the run ends
        return status

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status != PRODUCT_FULL:
            return super().with_room(status, memory)
        self._product = larger(self._product)
        return memory


@lru_cache(maxsize=256)
def _wanted(
    limit: int | None, supports: tuple[bool, ...], pads: bool, columns: tuple[tuple[int, ...], ...]
) -> Wanted:
    """What the collected matches of a query must have; runs share it, and none writes it."""
    looks = {look: number for number, look in enumerate(dict.fromkeys(columns))}
    of_kinds = np.array(supports, np.bool_)
    return Wanted(
        np.array([2**62 if limit is None else limit], np.int64),
        of_kinds,
        of_kinds if pads else np.ones_like(of_kinds),
        np.array([looks[look] if look else -1 for look in columns], np.int64),
    )


class CheckedWalk(WithPast):
    """Lists the matches that conditions admit."""

    def __init__(self, checks: Checked, plan: Plan, instants: Instants | None = None) -> None:
        super().__init__(checks, plan, instants)
        choice = plan.choice
        self._kind_bits = plan.matching.kind_bits
        # Instants of events that last begin with an event that need not be in the match.
        self._pads = self._lasts and instants is not None
        # Without instants in the tables, each event of an instant fires by itself.
        chooses = choice.limit is not None or bool(checks.selector)
        self._together = Together(
            self._lasts and instants is None and chooses, np.zeros(0, np.int64), False
        )
        if checks.greatest and choice.per_start is not None and choice.per_start.end == "FIRST":
            self._search = that_notes_starts(self._search)
        chooses |= self._consumes or checks.distinct or checks.greatest
        self._collects = chooses and not checks.in_order
        matches, room = (_COLLECTED, _COLLECTED_ENTRIES) if self._collects else (1, 1)
        self._collected = new_output(matches=matches, room=room, limit=None)
        columns = tuple(kind.columns for kind in plan.matching.kinds)
        self._wanted = _wanted(choice.limit, tuple(checks.supports), self._pads, columns)

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(array.nbytes for array in self._collected)

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        self._together = self._together._replace(instants=prepared.batch.instants)
        return prepared

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        checks, given = self._checks, self.given(memory)
        if self._collects:
            # What is collected is compared at once: that cannot go on where it was stopped.
            collect = collected_listing(checks)
            with compiling():
                arguments = (given, self._collected, self._wanted, self._together)
                return int(collect(memory, output, kinds, *arguments))
        listing = listing_kernel(checks)
        first = given._replace(most_work=min(self._max_work, STEPS_IN_PYTHON))  # it can go on
        status = int(listing(memory, output, kinds, first))
        if status == TOO_MUCH_WORK and self._max_work > STEPS_IN_PYTHON:
            with compiling():
                status = int(listing(memory, output, kinds, given))
        return status

    @property
    def holds(self) -> bool:
        return bool(self._together.waits and self._collected.used[0])

    def let_go(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        together = self._together
        self._together = together._replace(is_last=True)
        status = self.choose(memory, output, kinds)
        self._together = together
        return status

    def instant_of(self, entries: np.ndarray) -> np.ndarray:
        if not self._lasts or self._pads:
            return entries
        found: np.ndarray = self._first_of_instant[entries - self._history.first]
        return found

    def begins(self, output: Output, starts: np.ndarray) -> np.ndarray:
        if not self._pads:
            return starts
        matches = int(output.used[0])
        if not matches:
            return starts
        ends = output.ends[:matches]
        tags = output.tags[: ends[-1]]
        kinds = tags & ((1 << self._kind_bits) - 1)
        shown = np.flatnonzero(self._wanted.shown[kinds] >= 0)
        found: np.ndarray = tags[shown[np.searchsorted(shown, np.append(0, ends[:-1]))]]
        return found >> self._kind_bits

    def firsts(self, begins: np.ndarray) -> np.ndarray:
        return begins if self._lasts else super().firsts(begins)

    def counts(self, output: Output) -> WideColumn | None:
        if not self._checks.rounds:
            return None
        words = np.zeros((output.used[0], 2), np.uint64)
        bits = np.int64(self._kind_bits)
        counted_sets(self._checks)(output, self._history.past, self._history.first, bits, words)
        return column_of(words)

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status == STACK_FULL:
            return with_deeper_stack(memory)
        assert status == WINDOW_FULL
        depth, searches = 0, self._checks.in_order or self._checks.greatest
        if not searches:
            depth = int(memory.stack[memory.counters[STACK_SIZE] - 1, 1])
        numbers = self._search.numbers
        if is_full(self._search.failures, numbers[FAILURES] + numbers[OPEN]):
            self._search = with_more_slots(self._search)
        elif searches and not self._is_full(len(memory.path)):
            self._search = with_more_tops(self._search)
        else:
            # The match that did not fit ends with the node on top of the stack.
            size = len(memory.path) if searches else depth + 1
            self._collected = with_room_for(self._collected, size)
        return memory

    def _is_full(self, size: int) -> bool:
        """Whether matches have been collected, and one of `size` events might not fit."""
        rows, tags = len(self._collected.rows), len(self._collected.tags)
        matches, used = self._collected.used
        is_tight = matches == rows or used + size > tags - PADDING
        return self._collects and bool(is_tight)

"""The listing with conditions across events: checked while matches are listed (`checked_listing`).

Two kinds of queries need all matches of an end event before the first can be handed out: queries
with a selector, and queries whose output does not tell matches apart by all of the events that are
compared, where each row is to come once. Their matches are collected, and reduced whenever the
buffers are full (`collected_matches`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from celc_runtime.arrow.columns import Prepared
from celc_runtime.engine.arena import (
    DONE,
    FIRED,
    FIRES,
    LISTED,
    OUTPUT_FULL,
    STACK_SIZE,
    TOO_MUCH_WORK,
    WORK,
    Memory,
)
from celc_runtime.engine.batch import relevant_rows
from celc_runtime.engine.checked_listing import checked_listing
from celc_runtime.engine.collected_matches import (
    copy_matches,
    keep_distinct,
    keep_largest,
    keep_preferred,
    keep_preferred_of_starts,
)
from celc_runtime.engine.instants import Instants
from celc_runtime.engine.listing import Kinds, Output, new_output
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked
from celc_runtime.run.history import History
from celc_runtime.run.listings import NOTED_ROWS, Floors, ListingOfRun
from celc_runtime.run.positions import Positions

_COLLECTED = 1 << 12
_COLLECTED_ENTRIES = 1 << 14


class CheckedListing(ListingOfRun):
    """Lists the matches that conditions admit; holds the past events that the conditions read."""

    # What is remembered of larger batches costs more to make room for than to read.
    most_rows = NOTED_ROWS

    def __init__(self, checks: Checked, plan: Plan, instants: Instants | None = None) -> None:
        self._instants = instants
        self._checks = checks
        self._listing = checked_listing(checks.admits, checks.completes)
        self._history = History(checks.remembers, plan)
        self._consumes = plan.consume_by != "NONE"
        self._limit = 2**62 if plan.limit is None else plan.limit
        self._bits = plan.kind_bits
        self._max_work = plan.max_work
        self._state = np.zeros((checks.states, 0), np.int64)
        self._consumed = -1
        columns = [kind.columns for kind in plan.kinds]
        looks = {look: number for number, look in enumerate(dict.fromkeys(columns))}
        # By kind: a number for the set of labels that an event shows, −1 where it shows none.
        self._shown = np.array([looks[look] if look else -1 for look in columns], np.int64)
        self._supports = np.array(checks.supports, np.bool_)
        self._collects = self._consumes or checks.distinct or bool(checks.selector)
        self._collected = new_output(matches=1, room=1, limit=None)
        if self._collects:
            self._collected = new_output(matches=_COLLECTED, room=_COLLECTED_ENTRIES, limit=None)
        self._ready: int | None = None

    @property
    def nbytes(self) -> int:
        return self._history.nbytes + sum(array.nbytes for array in self._collected)

    @property
    def history(self) -> History:
        return self._history

    def look(self, prepared: Prepared, positions: Positions) -> None:
        batch = prepared.batch
        count = int(np.count_nonzero(batch.symbols))
        if count or len(prepared.parts):  # a partition may begin without an event that matters
            rows = relevant_rows(batch.words, batch.symbols, count)
            symbols = batch.symbols[rows]
            if self._instants is not None:
                symbols = self._instants.class_of[symbols]
            self._history.append(prepared.events, rows, symbols, positions, prepared.parts)

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        self._history.drop(self._history.reached(oldest()))

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        counters = memory.counters
        if output.limit[0] == 0:
            counters[LISTED] = counters[FIRED]
        while True:
            if self._ready is not None and not self._hand_out(output):
                return OUTPUT_FULL
            if counters[LISTED] == counters[FIRED] and counters[STACK_SIZE] == 0:
                counters[LISTED] = counters[FIRED] = 0
                return DONE
            if self._state.shape[1] < len(memory.path):
                wider = np.zeros((len(self._state), len(memory.path)), np.int64)
                wider[:, : self._state.shape[1]] = self._state
                self._state = wider
            into = self._collected if self._collects else output
            most = (1 if counters[STACK_SIZE] == 0 else 0) if self._collects else FIRES
            status = int(
                self._listing(
                    memory,
                    into,
                    kinds,
                    self._history.past,
                    self._history.first,
                    self._consumed,
                    most,
                    self._max_work,
                    self._collects,
                    self._state,
                )
            )
            if not self._collects:
                if status != DONE:
                    return status
            elif status not in (OUTPUT_FULL, DONE):
                return status
            else:
                self._reduce(memory, kinds, is_complete=status == DONE)
                if counters[WORK] > self._max_work:
                    return TOO_MUCH_WORK
                if status == DONE:
                    self._ready = 0
                else:
                    # What did not fit ends with the node on top of the stack.
                    self._make_room(int(memory.stack[counters[STACK_SIZE] - 1, 1]) + 1)

    def _reduce(self, memory: Memory, kinds: Kinds, *, is_complete: bool) -> None:
        """Drop the matches that a selector does not choose, and those that look like another.

        The events that MAX compares count as steps of the search; past the limit it drops nothing.
        """
        counters, bits = memory.counters, kinds.bits[0]
        if self._checks.selector == "MAX":
            most = self._max_work - int(counters[WORK])
            counters[WORK] += keep_largest(self._collected, bits, self._supports, most)
        elif self._checks.selector == "NXT_OF_ENDS":
            keep_preferred_of_starts(self._collected, bits, self._supports)
        elif self._checks.selector:
            keep_preferred(self._collected, bits, self._supports, self._checks.selector == "NXT")
        # Matches that look alike can differ in support, and MAX needs all supports to the end.
        if self._checks.distinct and (is_complete or self._checks.selector != "MAX"):
            keep_distinct(self._collected, kinds.bits[0], self._shown)

    def _make_room(self, size: int) -> None:
        """More room for the collected matches of one event, if reducing them has not helped much.

        `size`: how many events the match that did not fit has at least.
        """
        collected = self._collected
        rows, tags = len(collected.rows), len(collected.tags)
        matches, used = (int(count) for count in collected.used)
        more_rows = rows if 2 * matches >= rows else 0
        more_tags = max(tags, size) if 2 * used > tags or used + size > tags else 0
        if more_rows or more_tags:
            self._collected = Output(
                np.concatenate([collected.rows, np.zeros(more_rows, np.int64)]),
                np.concatenate([collected.ends, np.zeros(more_rows, np.int64)]),
                np.concatenate([collected.tags, np.zeros(more_tags, np.int64)]),
                collected.used,
                collected.limit,
            )

    def _hand_out(self, output: Output) -> bool:
        """Hand out the collected matches, up to LIMIT; False where the output is full."""
        collected = self._collected
        found = min(int(collected.used[0]), self._limit)
        assert self._ready is not None
        while self._ready < found:
            copied = int(copy_matches(collected, output, self._ready, found))
            if copied == 0:
                return False
            self._ready += copied
        if found and self._consumes:
            last = collected.tags[collected.ends[0] - 1]
            self._consumed = int(last >> self._bits)
        collected.used[:] = 0
        self._ready = None
        return True

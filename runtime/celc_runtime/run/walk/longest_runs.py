"""The walk of SELECT LONGEST if the longest matches are runs of events.

It reads the relevant events itself, and keeps those of the runs that may go on. A run is listed
when its end is known: when an event comes that the run does not contain. A run that is open at the
end of a batch is listed up to there. If it goes on, it is listed once more, and the choice by
starts (`per_start`) takes the longer one.
"""

from collections.abc import Callable

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import NO_INTEGERS, relevant_rows
from celc_runtime.engine.arena.nodes import ALWAYS, DONE, ENTRY, OUTPUT_FULL, Memory
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.engine.walk.longest_runs import (
    END,
    START,
    RunEvents,
    judgement,
    links,
    list_open_runs,
    list_runs_that_end,
)
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked, LongestRuns
from celc_runtime.run.past.history import History
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.walk.walks import NOTED_ROWS, Floors, WalkOfRun


class RelevantEvents(WalkOfRun):
    """A walk that reads the relevant events itself, and asks which of them are neighbours.

    contiguous: no other events may be between neighbours.
    """

    reads_alone = True

    # Larger columns cost more to make than to read.
    most_rows = NOTED_ROWS

    def __init__(self, plan: Plan, *, contiguous: bool) -> None:
        self._plan = plan
        self._contiguous = contiguous
        self._last_position = -2
        self._begins_anew = False
        self._count = self._entry = 0

    def _relevant(
        self, prepared: Prepared, positions: Positions, memory: Memory
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The relevant rows of a batch (int64), their symbols and positions, and whether a match
        can go on from the one before (bool). None goes on from one partition to the next."""
        batch = prepared.batch
        self._entry = int(memory.counters[ENTRY])
        rows = relevant_rows(batch.symbols)
        self._count = len(rows)
        of_rows = positions.of(rows)
        linked = np.ones(self._count, np.bool_)
        if self._count:
            first = np.searchsorted(rows, prepared.parts)
            linked[first[first < self._count]] = False
            linked[0] &= not self._begins_anew
            if self._contiguous:
                linked &= np.diff(of_rows, prepend=self._last_position) == 1
            self._last_position = int(of_rows[-1])
            self._begins_anew = False
        if len(prepared.parts) and (not self._count or rows[-1] < prepared.parts[-1]):
            self._begins_anew = True
        return rows, batch.symbols[rows], of_rows, linked

    def _window(
        self, prepared: Prepared, rows: np.ndarray, positions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The keys of events, and the floors of their windows (both int64)."""
        batch, window = prepared.batch, self._plan.matching.window
        if window is None:
            return np.zeros(len(rows), np.int64), np.full(len(rows), ALWAYS)
        keys = batch.keys[rows] if len(batch.keys) else positions.astype(np.int64)
        if len(batch.floors):
            return keys, batch.floors[rows]
        size = int(window.size)
        return keys, np.where(keys >= ALWAYS + size, keys - size, ALWAYS)


class LongestRunsWalk(RelevantEvents):
    """Lists the longest run from each event, or, with DISJOINT, from each event after a run."""

    def __init__(self, listing: LongestRuns, plan: Plan) -> None:
        assert plan.choice.per_start is not None
        super().__init__(plan, contiguous=listing.contiguous)
        self._listing = listing
        self._kinds = np.array(listing.kinds, np.int64)
        self._disjoint = plan.choice.per_start.disjoint
        self._events = RunEvents(
            *(NO_INTEGERS, NO_INTEGERS, NO_INTEGERS, NO_INTEGERS),
            *(np.zeros(0, np.bool_), np.zeros(0, np.bool_)),
        )
        self._pointers = np.zeros(2, np.int64)
        self._open = 0
        checks = listing.checks
        self._history = None if checks is None else History(checks.remembers, plan)
        self._state = np.zeros((0 if checks is None else checks.states, 2), np.int64)

    @property
    def nbytes(self) -> int:
        kept = sum(column.nbytes for column in self._events)
        return kept if self._history is None else kept + self._history.nbytes

    def of_stretches(self, silent: np.ndarray | None) -> None:
        """List the runs of all starts, even with DISJOINT: the beginnings of runs are not known."""
        self._disjoint = False

    def oldest(self) -> int:
        """The entry of the first event whose run is not known; all later ones are after it."""
        if self._pointers[START] < len(self._events.tags):
            return int(self._events.tags[self._pointers[START]] >> self._plan.matching.kind_bits)
        return self._entry + self._count

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        """Append the relevant events of a batch to those of open runs."""
        old = self._events
        rows, symbols, of_rows, linked = self._relevant(prepared, positions, memory)
        bits = self._plan.matching.kind_bits
        tags = np.arange(self._entry, self._entry + self._count) << bits | self._kinds[symbols]
        keys, floors = self._window(prepared, rows, of_rows)
        new = RunEvents(tags, rows, keys, floors, linked, np.ones(self._count, np.bool_))
        self._events = new
        if len(old.tags):
            old.rows[:] = -1
            both = zip(old, new, strict=True)
            self._events = RunEvents(*(np.concatenate(pair) for pair in both))
        self._link(prepared, rows, symbols, positions, len(old.tags))
        self._open = -1
        return prepared

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        """List the runs of the batch; those that are open at its end come last."""
        events, pointers, least = self._events, self._pointers, self._listing.least
        if self._open < 0:
            status = list_runs_that_end(events, pointers, least, self._disjoint, output)
            if status != DONE:
                return int(status)
            # Without an event in this batch, the open runs are listed already.
            self._open = int(pointers[START]) if self._count else len(events.tags)
        self._open = int(list_open_runs(events, self._open, least, self._disjoint, output))
        return DONE if self._open == len(events.tags) else OUTPUT_FULL

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End a batch: keep the events of open runs."""
        start = int(self._pointers[START])
        if self._history is not None:
            self._history.drop(self.oldest())
        self._events = RunEvents(*(column[start:].copy() for column in self._events))
        self._pointers[START] = 0
        self._pointers[END] = max(0, int(self._pointers[END]) - start)

    def _link(
        self,
        prepared: Prepared,
        rows: np.ndarray,
        symbols: np.ndarray,
        positions: Positions,
        known: int,
    ) -> None:
        """Separate neighbours that the conditions reject; `known` events are of earlier batches."""
        if self._history is None or not self._count:
            return
        self._history.append(prepared.events, rows, symbols, positions, prepared.parts)
        checks = self._listing.checks
        assert checks is not None
        first = max(0, known - 1)
        find = links(checks.admits)
        with np.errstate(all="ignore"):
            find(
                self._events.tags[first:],
                self._events.linked[first:],
                self._history.past,
                self._history.first,
                self._state,
            )
            if self._listing.judges:
                self._judge(checks)

    def _judge(self, checks: Checked) -> None:
        """Find the runs that satisfy the conditions on whole runs."""
        assert self._history is not None
        count = len(self._events.tags)
        judgement(checks.completes)(
            self._events,
            self._history.past,
            self._history.first,
            np.zeros(count, np.int64),
            np.zeros((checks.states, count + 1), np.int64),
        )

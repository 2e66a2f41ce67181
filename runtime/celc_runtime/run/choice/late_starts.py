"""The choice among matches with the same start that are decided after their ends, because an
absence stands there: SELECT FIRST, LONGEST and DISJOINT.

It takes two steps. Batches wait as in `deadlines`, and then the matches that survived come to the
choice of `per_start`, decided or not. A start *waits* while a match of it could still be undone: it
gives no rows. With DISJOINT no later start of its partition gives any, because it is open which
match it keeps, and where that ends. A start whose matches begin inside a match that is kept does
not count: nothing of it is kept anyway.

A match is listed when no later event can undo it, or when its partition is over and the clock is
known (`Program.compares_late`). So what is undecided then stays so.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.plan.plan import Plan
from celc_runtime.run.choice.deadlines import Deadlines
from celc_runtime.run.choice.per_start import StartChoice
from celc_runtime.run.choice.starts import starts_of
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.walk.listed import Listed

_NO_ENTRIES = np.zeros(0, np.int64)


class LateStartChoice(StartChoice):
    """Chooses among matches with the same start; `deadlines` says which of them are decided."""

    def __init__(self, plan: Plan, deadlines: Deadlines) -> None:
        assert plan.choice.per_start is not None
        super().__init__(plan.choice.per_start, plan.matching.window, starts_of(plan))
        self._deadlines = deadlines
        self._notes_parts = plan.choice.per_start.disjoint
        # LIMIT … PER asks for the times of matches that are not chosen, too (`LimitedRows`).
        self._narrows = plan.choice.rate is None
        self._open = _NO_ENTRIES  # the starts that wait, ascending
        self._waiting_part = -1  # for DISJOINT: the partition in which a start waits

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._deadlines.nbytes

    # --- batches ----------------------------------------------------------------------------------

    def arrived(self, reading: Reading, *, lists: bool) -> Iterator[tuple[Reading, bool]]:
        super().arrived(reading, lists=lists)
        yield from self._deadlines.arrived(reading, lists=lists)

    def over(self) -> Iterator[tuple[Reading, bool]]:
        yield from self._deadlines.over()

    # --- matches ----------------------------------------------------------------------------------

    def narrow(self, listed: Listed) -> None:
        if self._starts_of.lasts:
            return
        self._look(listed, listed.entries.starts)
        if self._narrows:
            super().narrow(listed)

    def take(self, rows: pa.RecordBatch, listed: Listed) -> Iterator[pa.RecordBatch]:
        if self._starts_of.lasts:
            self._look(listed, self._starts_of.of(rows, listed))
        yield from super().take(rows, listed)

    def _look(self, listed: Listed, starts: np.ndarray) -> None:
        """Note which of the matches with the given starts (int64) could still be undone."""
        is_decided, _, _ = self._deadlines.decided(listed)
        self._open = np.union1d(self._open, starts[~is_decided])

    def known(self, oldest: Callable[[], int]) -> Iterator[pa.RecordBatch]:
        yield from super().known(oldest)
        behind = self._starts_of.bound(self.given_before)
        self._open = self._open[np.searchsorted(self._open, behind) :]

    def _handed_out(self, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        waits = self._wait(rows)
        self.undecided += int(waits.sum())
        if self._choice.limit is not None:
            # It chooses once all chosen matches of an end are decided.
            waits = np.isin(self._ends[rows], self._ends[rows[waits]])
        yield from super()._handed_out(rows[~waits])

    def _wait(self, rows: np.ndarray) -> np.ndarray:
        """bool[rows]: which chosen matches (int64, their rows) are not known."""
        starts = self._starts[rows]
        waits: np.ndarray = np.isin(starts, self._open)
        if not self._choice.disjoint or not len(starts):
            return waits
        parts = self._parts.of(self._starts_of.entries(starts))
        _, place = np.unique(parts, return_inverse=True)
        first = np.full(len(parts), np.iinfo(np.int64).max)
        order = self._in_order(rows)
        np.minimum.at(first, place[waits], order[waits])
        waits = (order >= first[place]) | (parts == self._waiting_part)
        if waits.any():
            self._waiting_part = int(parts[waits].max())
        return waits

    def _in_order(self, rows: np.ndarray) -> np.ndarray:
        """int64[rows]: numbers in the order of the starts of rows (int64), equal for one start."""
        starts: np.ndarray = self._starts[rows]
        if not self._starts_of.lasts:
            return starts
        distinct, first, place = np.unique(starts, return_index=True, return_inverse=True)
        order = np.empty(len(distinct), np.int64)
        order[np.lexsort((distinct, self._times_at(rows[first])[:, 0]))] = np.arange(len(distinct))
        found: np.ndarray = order[place]
        return found

"""The choice among matches with the same start that are decided after their ends, because an
absence stands there: SELECT FIRST, LONGEST and DISJOINT.

It takes two steps. Batches wait as in `deadlines`, and then the matches that survived come to the
choice of `per_start`, decided or not. A start *waits* while a match of it could still be undone: it
gives no rows. With DISJOINT no later start of its partition gives any, because it is open which
match it keeps, and where that ends. A start whose matches begin inside a match that is kept does
not count: nothing of it is kept anyway.

A match is listed when no later event can undo it, or when its partition is over and the clock is
known (`compares_late`). So what is undecided then stays so.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.plan.plan import Plan
from celc_runtime.run.choice.deadlines import Deadlines
from celc_runtime.run.choice.per_start import StartChoice
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.walk.listed import Listed

_NO_ENTRIES = np.zeros(0, np.int64)


class LateStartChoice(StartChoice):
    """Chooses among matches with the same start; `deadlines` says which of them are decided."""

    def __init__(self, plan: Plan, deadlines: Deadlines) -> None:
        assert plan.choice.per_start is not None
        super().__init__(plan.choice.per_start, plan.matching.window)
        self._deadlines = deadlines
        # LIMIT … PER asks for the times of matches that are not chosen, too (`LimitedRows`).
        self._narrows = plan.choice.rate is None
        self._open = _NO_ENTRIES  # the starts that wait, ascending
        # For DISJOINT: the entries at which partitions begin, ascending, but for those that are
        # behind, and the number of these; the partition in which a start waits.
        self._begins, self._parts_behind = _NO_ENTRIES, 0
        self._entries_read, self._waiting_part = 0, -1

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._deadlines.nbytes

    # --- batches ----------------------------------------------------------------------------------

    def arrived(self, reading: Reading, *, lists: bool) -> Iterator[tuple[Reading, bool]]:
        prepared = reading.prepared
        if self._choice.disjoint:
            before = np.append(0, np.cumsum(prepared.batch.symbols != 0))
            begins = self._entries_read + before[prepared.parts]
            self._begins = np.concatenate([self._begins, begins])
            self._entries_read += int(before[-1])
        yield from self._deadlines.arrived(reading, lists=lists)

    def over(self) -> Iterator[tuple[Reading, bool]]:
        yield from self._deadlines.over()

    # --- matches ----------------------------------------------------------------------------------

    def narrow(self, listed: Listed) -> None:
        is_decided, _, _ = self._deadlines.decided(listed)
        self._open = np.union1d(self._open, listed.entries.starts[~is_decided])
        if self._narrows:
            super().narrow(listed)

    def known(self, oldest: int) -> Iterator[pa.RecordBatch]:
        yield from super().known(oldest)
        behind = self.given_before
        self._open = self._open[np.searchsorted(self._open, behind) :]
        gone = max(0, int(np.searchsorted(self._begins, behind, side="right")) - 1)
        self._begins, self._parts_behind = self._begins[gone:], self._parts_behind + gone

    def _handed_out(self, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
        waits = self._wait(self._starts[rows])
        self.undecided += int(waits.sum())
        if self._choice.limit is not None:
            # It chooses once all chosen matches of an end are decided.
            waits = np.isin(self._ends[rows], self._ends[rows[waits]])
        yield from super()._handed_out(rows[~waits])

    def _wait(self, starts: np.ndarray) -> np.ndarray:
        """bool[rows]: which chosen matches with these starts (int64) are not known."""
        waits: np.ndarray = np.isin(starts, self._open)
        if not self._choice.disjoint or not len(starts):
            return waits
        parts = self._parts_behind + np.searchsorted(self._begins, starts, side="right")
        _, place = np.unique(parts, return_inverse=True)
        first = np.full(len(parts), np.iinfo(np.int64).max)
        np.minimum.at(first, place[waits], starts[waits])
        waits = (starts >= first[place]) | (parts == self._waiting_part)
        if waits.any():
            self._waiting_part = int(parts[waits].max())
        return waits

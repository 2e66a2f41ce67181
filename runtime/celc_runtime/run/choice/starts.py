"""What tells the starts of matches apart, and in which order they are (SELECT FIRST and LONGEST).

A match of events without length starts at its first event. A match of events that last starts at a
time. Two matches that start at one time have the same start if their first events end in one
instant: then both have one `start_pos`. Here such a start is one number, as an entry is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.walk.listed import Listed

_NO_NUMBERS = np.zeros(0, np.int64)

_TIME_BITS = 20
_MOST_TIMES = 1 << _TIME_BITS  # times at which matches start whose first events end together


class Starts:
    """The starts of matches of events without length: the entries of their first events."""

    lasts = False

    def of(self, rows: pa.RecordBatch, listed: Listed) -> np.ndarray:
        """int64[matches]: the starts of the matches in the buffers; rows: their rows."""
        return listed.entries.starts

    def times(self, rows: pa.RecordBatch | pa.Table) -> np.ndarray:
        """int64[matches, 2]: when they start and when they end, if their starts are times."""
        return np.zeros((len(rows), 0), np.int64)

    def bound(self, entry: int) -> int:
        """No match whose first event is not before this entry has a start before this number."""
        return entry

    def entries(self, starts: np.ndarray) -> np.ndarray:
        """int64: the entries of starts (int64)."""
        return starts

    def forget(self, entry: int) -> None:
        """No later match starts before this entry."""


class StartsThatLast(Starts):
    """The starts of matches of events that last: the entry at which the instant begins in which the
    first event ends, and a number for the time at which the match starts."""

    lasts = True

    def __init__(self) -> None:
        self._numbers: dict[int, dict[int, int]] = {}

    def of(self, rows: pa.RecordBatch, listed: Listed) -> np.ndarray:
        pairs = np.stack([listed.starts, self.times(rows)[:, 0]], 1)
        distinct, place = np.unique(pairs, axis=0, return_inverse=True)
        found = [self._number(*pair) for pair in distinct.tolist()]
        return np.array(found, np.int64)[place.reshape(-1)]

    def _number(self, entry: int, time: int) -> int:
        known = self._numbers.setdefault(entry, {})
        number = known.setdefault(time, len(known))
        if number == _MOST_TIMES:
            raise EventError(
                f"more than {_MOST_TIMES:,} matches start at different times with events that end "
                "together"
            )
        return entry << _TIME_BITS | number

    def times(self, rows: pa.RecordBatch | pa.Table) -> np.ndarray:
        columns = [rows.column(name) for name in ("start_time", "end_time")]
        if isinstance(rows, pa.Table):
            columns = [column.combine_chunks() for column in columns]
        return np.stack([whole_numbers(column) for column in columns], 1)

    def bound(self, entry: int) -> int:
        return min(entry, (1 << 63 - _TIME_BITS) - 1) << _TIME_BITS

    def entries(self, starts: np.ndarray) -> np.ndarray:
        found: np.ndarray = starts >> _TIME_BITS
        return found

    def forget(self, entry: int) -> None:
        self._numbers = {one: times for one, times in self._numbers.items() if one >= entry}


def starts_of(plan: Plan) -> Starts:
    """What tells the starts of a query's matches apart."""
    return Starts() if plan.source.begin is None else StartsThatLast()


class PartsOfEntries:
    """The partitions of entries, as far as they matter."""

    def __init__(self) -> None:
        # The entries at which partitions begin, ascending, but for those that are behind, and the
        # number of these.
        self._begins, self._behind = _NO_NUMBERS, 0
        self._read = 0  # entries

    def note(self, reading: Reading) -> None:
        """Note a batch that has arrived."""
        prepared = reading.prepared
        before = np.append(0, np.cumsum(prepared.batch.symbols != 0))
        self._begins = np.concatenate([self._begins, self._read + before[prepared.parts]])
        self._read += int(before[-1])

    def of(self, entries: np.ndarray) -> np.ndarray:
        """int64: the numbers of the partitions of entries (int64)."""
        found: np.ndarray = self._behind + np.searchsorted(self._begins, entries, side="right")
        return found

    def begin_of_part(self, entry: int) -> int:
        """The first entry of an entry's partition."""
        place = int(np.searchsorted(self._begins, entry, side="right"))
        return int(self._begins[place - 1]) if place else 0

    def forget(self, entry: int) -> None:
        """No earlier entry will be asked for."""
        gone = max(0, int(np.searchsorted(self._begins, entry, side="right")) - 1)
        self._begins, self._behind = self._begins[gone:], self._behind + gone

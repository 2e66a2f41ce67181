"""The answer of LIMIT n PER d and LIMIT n PER PARTITION: the rows that stay, by their known times.

The rows of a partition are taken in the order of their known time, then end, start, then as SELECT
NXT would prefer, then by labels. A row stays if fewer than n rows that stayed have a known time
later than its own minus d. So of all rows before, only the last n known times count.

A row waits until no row can come that goes before it: to the end of the batch where rows are known
at their end, to a later event where they are decided later, to the end of the partition where
matches are compared by their starts. Which rows of one known time stay depends on their order, but
not how many. So only those of a time that leaves some out are put in order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.arrow.matches.decided_times import decided_times
from celc_runtime.engine.arena.nodes import NEVER
from celc_runtime.plan.plan import DECIDED_TIME, Rate
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import MatchRows
from celc_runtime.run.answer.waiting_rows import WaitingRows, before, later, place_fields, places_of
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.source.stretches import Stretches
from celc_runtime.run.walk.listed import Listed

_MOST_ROWS = 1 << 16


class LimitedRows(MatchRows):
    """Returns the rows of matches that LIMIT … PER leaves.

    knows_clock: whether the clock that decides matches is known from the beginning. given_before:
    for matches that are chosen by their starts, the first start of those that are still to come.
    """

    def __init__(
        self,
        program: Program,
        *,
        in_instants: bool,
        knows_clock: bool,
        given_before: Callable[[], int],
    ) -> None:
        super().__init__(program, in_instants=in_instants)
        plan = program.plan
        assert plan.choice.rate is not None
        self._rate = plan.choice.rate
        self._knows_clock = knows_clock
        self._given_before = given_before
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._merged = 0
        self._kept: dict[int, _Kept] = {}
        self._part = self._first_part = 0  # after the present batch, and before it
        self._parts, self._slots = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._last = NEVER  # the key of the last row that was read
        self._stretches: Stretches | None = None
        self._tagged = pa.schema([*self._schema, *place_fields(plan)])
        # For FIRST with an absence at the end: the latest times at which matches are decided, by
        # their starts. It knows a row when all matches of its start are.
        choice = plan.choice.per_start
        is_late = choice is not None and choice.late and choice.end == "FIRST"
        self._latest: dict[tuple[int, int], int] | None = None
        if is_late and plan.shows_decided_time:
            self._latest = {}

    @property
    def nbytes(self) -> int:
        return int(sum(rows.nbytes for rows in self._waiting))

    # --- rows -------------------------------------------------------------------------------------

    def resume(self, stretches: Stretches) -> None:
        """Begin stretches, whose partitions have rows that stayed before."""
        self._stretches = stretches
        if stretches.kept is None:
            return
        for part, values in enumerate(stretches.kept.tolist(), start=1):
            if self._rate.length is None:
                self._kept[part] = _Kept(max(0, values[0]))
            else:
                self._kept[part] = _Kept(times=[time for time in values if time > NEVER])

    def enter(self, reading: Reading, entry: int, kept_rows: np.ndarray | None) -> None:
        super().enter(reading, entry, kept_rows)
        prepared = reading.prepared
        self._slots = prepared.batch.slots
        self._parts = np.asarray(prepared.parts, np.int64)
        self._first_part = self._part
        self._part += len(self._parts)
        if self._plan.source.order_by and len(prepared.events):
            times = prepared.events.column(self._plan.source.order_by[0])
            self._last = int(whole_numbers(times.slice(len(times) - 1))[0])

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        rows, found = self.of(listed), listed.entries
        if len(self._slots):
            parts = self._slots[listed.rows].astype(np.int64)
        else:
            parts = self._first_part + np.searchsorted(self._parts, listed.rows, side="right")
        # The buffers are used again before these rows are returned.
        known = self._known_times(rows, listed)
        begins = np.zeros(len(rows), np.int64)
        if self._plan.source.begin is not None:
            begins = whole_numbers(rows.column("start_time")).copy()
        starts, ends = listed.starts.copy(), listed.ends.copy()
        places = (parts, known, ends, starts, begins)
        if self._latest is not None:
            pairs = zip(starts.tolist(), begins.tolist(), strict=True)
            for start, time in zip(pairs, known.tolist(), strict=True):
                self._latest[start] = max(time, self._latest.get(start, time))
        lists = (
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(entries.copy()))
            for offsets, entries in zip(found.offsets, found.entries, strict=True)
        )
        columns = [*rows.columns, *map(pa.array, places), *lists]
        yield pa.RecordBatch.from_arrays(columns, schema=self._tagged)

    def _known_times(self, rows: pa.RecordBatch, listed: Listed) -> np.ndarray:
        """int64[rows]: the known times, as keys."""
        plan = self._plan
        if not plan.source.order_by:
            return listed.entries.ends.copy()
        choice = plan.choice.per_start
        if choice is not None and choice.end == "LONGEST":
            assert plan.choice.rate is not None
            window = plan.choice.rate.known_after or plan.matching.window
            assert window is not None, "the compiler asks for a window of time"
            return later(rows.column("start_time"), window.size)
        if not plan.shows_decided_time:
            return whole_numbers(rows.column("end_time")).copy()
        latest = listed.walk.latest(listed.output)
        if latest is None:
            return whole_numbers(rows.column(DECIDED_TIME)).copy()
        starts, numbers = latest
        times = self.store.stretch(int(starts.min()), listed.entries_read)
        starts_at = plan.source.begin or plan.source.order_by[0]
        first = times.column(starts_at, times.places(starts))
        return whole_numbers(decided_times(plan, first, rows.column("end_time"), numbers))

    def add(self, rows: pa.RecordBatch, listed: Listed | None) -> Iterator[pa.RecordBatch]:
        if self._latest is not None:
            rows = self._known_by_start(rows, self._latest)
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows > max(_MOST_ROWS, 2 * self._merged):
            self._prune()
            self._merged = self._rows
        yield from ()

    def _known_by_start(
        self, rows: pa.RecordBatch, latest: dict[tuple[int, int], int]
    ) -> pa.RecordBatch:
        """The same rows, each known when all matches of its start are decided."""
        _, _, _, starts, begins = places_of(rows, self._plan)
        found = zip(starts.tolist(), begins.tolist(), strict=True)
        known = pa.array([latest[start] for start in found], pa.int64())
        place = len(self._schema) + 1  # behind the number of the partition
        given = self._given_before()
        self._latest = {start: time for start, time in latest.items() if start[0] >= given}
        return rows.set_column(place, self._tagged.field(place), known)

    def known(self) -> Iterator[pa.RecordBatch]:
        choice = self._plan.choice
        if not self._rows:
            return
        if not (choice.deadlines or choice.waits):
            yield from self._settled(None, self._part)
            return
        rows = self._together()
        parts, known, _, starts, _ = places_of(rows, self._plan)
        part, time = self._part, self._last
        if choice.waits and self._plan.source.begin is not None:
            # Where events last, later rows can start earlier. Those of a later partition cannot
            # come before all rows of this one have.
            part, time = int(parts.max()), NEVER
        elif choice.waits:
            # Later rows start later, so they are known at the time of the last of these, or later.
            given = np.flatnonzero(starts < self._given_before())
            if not len(given):
                return
            last = given[np.lexsort((known[given], parts[given]))[-1]]
            part, time = int(parts[last]), int(known[last])
            if choice.deadlines:
                time = NEVER  # of a partition, an earlier start can be known later
        # With an absence, later rows of this partition end here or later, and none of it is held.
        over = (parts == part) & (known < time)
        if choice.waits or self._knows_clock:
            over |= parts < part
        yield from self._settled(over, part if choice.waits or self._knows_clock else 0)

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield from self._settled(None, 0)
        if self._stretches is not None and self._stretches.kept is not None:
            self._write(self._stretches.kept)

    def _write(self, values: np.ndarray) -> None:
        """Write what stayed of each partition into int64[parts, numbers]."""
        for part, kept in self._kept.items():
            row = values[part - 1]
            row[:] = NEVER
            if self._rate.length is None:
                row[0] = kept.number
            else:
                row[: len(kept.times)] = kept.times

    # --- choosing ---------------------------------------------------------------------------------

    def _together(self) -> pa.RecordBatch:
        """The waiting rows as one batch, each once."""
        (rows,) = pa.Table.from_batches(self._waiting, self._tagged).combine_chunks().to_batches()
        self._waiting = [rows]
        return rows

    def _settled(self, over: np.ndarray | None, part: int) -> Iterator[pa.RecordBatch]:
        """Remove the rows (bool[rows]; None: all) that no later row goes before; yields those that
        stay.

        part: no later row is of a partition before this one.
        """
        if not self._rows or (over is not None and not over.any()):
            return
        rows = self._together()
        self._waiting, self._rows = [], 0
        if over is not None and not over.all():
            left = rows.filter(pa.array(~over))
            self._waiting, self._rows = [left], len(left)
            rows = rows.filter(pa.array(over))
        waiting = WaitingRows(rows, self._plan)
        chosen = np.concatenate([np.zeros(0, np.int64), *self._chosen(waiting)])
        if not self._plan.interleaves:
            self._kept = {number: kept for number, kept in self._kept.items() if number >= part}
        if len(chosen):
            order = np.lexsort((waiting.ends[chosen], waiting.parts[chosen]))
            shown = rows.take(pa.array(chosen[order]))
            columns = shown.columns[: len(self._schema)]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _chosen(self, rows: WaitingRows) -> Iterator[np.ndarray]:
        """The rows that stay, some at a time."""
        rate = self._rate
        earliest = before(rows.known, rate.length, self._plan)
        for part, groups in rows.groups_of_parts():
            kept = self._kept.setdefault(part, _Kept())
            since = earliest[rows.order[groups[:, 0]]]
            number = 0
            while number < len(groups):
                first, behind = groups[number].tolist()
                time = int(rows.known[rows.order[first]])
                room = kept.room(rate, int(since[number]), time)
                if room:
                    found = rows.first_of(first, behind, room)
                    kept.add(len(found), time, rate)
                    yield found
                    number += 1
                elif rate.length is None:
                    break
                else:
                    number = int(np.searchsorted(since, kept.times[0]))

    def _prune(self) -> None:
        """Drop rows for which there is no room beside those of the same known time."""
        rate, choice = self._rate, self._plan.choice
        if rate.support is not None and choice.deadlines:
            return  # what is one row can be known at several times
        if rate.length is not None and not rate.length.size:
            return
        rows = WaitingRows(self._together(), self._plan)
        chosen = [
            rows.first_of(first, behind, rate.count)
            for _, groups in rows.groups_of_parts()
            for first, behind in groups.tolist()
        ]
        self._waiting = [rows.rows.take(pa.array(np.concatenate(chosen)))]
        self._rows = len(self._waiting[0])


@dataclass(slots=True)
class _Kept:
    """The rows of a partition that stayed."""

    number: int = 0  # how many, for PER PARTITION
    times: list[int] = field(default_factory=list)
    """The known times, ascending, of those that can still count; empty for PER PARTITION, PER 0."""

    def room(self, rate: Rate, since: int, time: int) -> int:
        """How many rows of a known time can stay, where times up to `since` do not count."""
        if rate.length is None:
            return rate.count - self.number
        if since >= time:
            return 2**62  # PER 0: rows of the same time do not count either
        while self.times and self.times[0] <= since:
            self.times.pop(0)
        return rate.count - len(self.times)

    def add(self, number: int, time: int, rate: Rate) -> None:
        self.number += number
        if rate.length is not None and rate.length.size:
            self.times += [time] * number

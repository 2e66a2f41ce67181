"""Matches with an absence at their end: when they are decided, and what waits until then.

Later events show whether something is absent after a match. So a batch waits until later events
have passed the deadlines of all matches that end in it, or until its partition is over. Only then
the update reads it. By then the walk has remembered these later events, and finds the matches that
survive. Of these, the *decided* ones are returned: no future event can remove them.

Some deadlines are times on the first order column. The *clock* passes them: the greatest such time
in the whole input, in any partition. If the clock is not known from the beginning, the matches that
no event has decided so far are held until the input ends. Other deadlines (EVENTS, other
attributes) are passed by events of the partition.

`bound`: a deadline is passed exactly if the key of the event from which it counts is smaller. For a
time it is the floor of the clock (`floors_of`). A deadline in EVENTS is passed when its last event
has come.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.window_keys import floors_of
from celc_runtime.arrow.matches.decided_times import LEFT_OPEN, NO_DEADLINE
from celc_runtime.engine.arena.batch import order_preserving
from celc_runtime.engine.arena.nodes import ALWAYS
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import event_schema
from celc_runtime.program import Program
from celc_runtime.run.choice.choices import ChoiceOfRun
from celc_runtime.run.past.history import History, measured
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.source.stretches import Stretches
from celc_runtime.run.walk.by_definition import DefinitionWalk
from celc_runtime.run.walk.listed import Listed

_Times = TypeVar("_Times", int, np.ndarray)

PASSED = 2**63 - 1  # the bound that passes every deadline

_BOUNDS_KEPT = 64


@dataclass(slots=True)
class PartSoFar:
    """A partition as far as it has been read."""

    bounds: np.ndarray  # int64[deadlines], set by its last event
    is_over: bool = False


@dataclass(slots=True)
class WaitingBatch:
    """A batch that waits for later events."""

    reading: Reading
    begins: np.ndarray  # int64[parts], the rows at which partitions begin or go on
    bounds: np.ndarray  # int64[deadlines, parts], of the partitions that end in the batch
    last_keys: np.ndarray  # int64[deadlines], of the last row
    part: PartSoFar  # the last partition
    lists_matches: bool  # whether the matches of the batch are returned

    @property
    def is_ready(self) -> bool:
        """Whether no later event matters to matches that end in this batch."""
        return self.part.is_over or bool((self.last_keys < self.part.bounds).all())

    def bounds_at(self, deadline: int, rows: np.ndarray) -> np.ndarray:
        """int64: the bounds of a deadline in the partitions of the given rows (int64)."""
        bounds = self.bounds[deadline].copy()
        bounds[-1] = self.part.bounds[deadline]
        found: np.ndarray = bounds[np.searchsorted(self.begins, rows, side="right") - 1]
        return found


@dataclass(slots=True)
class HeldMatches:
    """Matches that the clock has not decided yet."""

    matches: pa.RecordBatch
    keys: np.ndarray  # int64[matches], the keys from which their deadlines count
    deadlines: np.ndarray  # int64[matches], the numbers of their deadlines


class Deadlines(ChoiceOfRun):
    """The waiting batches and matches of one run."""

    def __init__(self, program: Program, history: History, options: RunOptions) -> None:
        plan = self._plan = program.plan
        # Whether each match waits for the whole length after its end.
        self._all_wait = program.all_wait and not any(
            one.from_start for one in plan.choice.deadlines
        )
        # Whether all matches of an end, or of a span, are one row. On a stream, it comes when all
        # are decided.
        per = None if plan.answer.totals is None else plan.answer.totals.per
        self._span = per if isinstance(per, int) else None
        self._unites = plan.answer.collapsed or per == "END" or self._span is not None
        self._were_read = np.zeros(0, np.bool_)
        # For LIMIT … PER on a stream: the times of the rows. A match that waits for no absence
        # waits until the clock has passed its end, because one that is decided then goes first.
        self._times: np.ndarray | None = None
        self._history = history
        clock = options.clock
        if clock is None and plan.choice.clock is not None:
            clock = clock_key(plan, plan.choice.clock)
        self._knows_clock = clock is not None
        self._clock = clock
        self._since = options.since
        self._is_over = options.is_over
        # On a stream, for absences of EVENTS: int64[rows], the positions of the last events of
        # their partitions, now and before.
        self._lasts: tuple[np.ndarray, np.ndarray] | None = None
        self._waiting: deque[WaitingBatch] = deque()
        self._part: PartSoFar | None = None
        self._held: list[HeldMatches] = []
        self._bounds: dict[tuple[int, int], int] = {}  # by deadline and clock
        self.batch: WaitingBatch | None = None
        """The present batch."""
        self.undecided = 0
        """The number of matches that were left undecided."""

    @property
    def is_closed(self) -> bool:
        """Whether the input is known to be over, so that every match is decided."""
        return self._plan.choice.at_end == "closed"

    @property
    def nbytes(self) -> int:
        waiting = sum(one.reading.prepared.events.nbytes for one in self._waiting)
        return int(waiting + sum(held.matches.nbytes for held in self._held))

    # --- batches ------------------------------------------------------------------------------

    def arrived(self, reading: Reading, *, lists: bool) -> Iterator[tuple[Reading, bool]]:
        """The waiting batches that are ready to be read."""
        self._wait(reading, lists_matches=lists)
        yield from self._ready()

    def over(self) -> Iterator[tuple[Reading, bool]]:
        if self._part is not None:
            self._part.is_over = True
            self._part = None
        yield from self._ready()

    def _wait(self, reading: Reading, *, lists_matches: bool) -> None:
        """Let a batch wait, and update the bounds of the batches before it."""
        prepared, positions = reading
        parts, rows = prepared.parts, len(prepared.events)
        goes_on = not len(parts) or parts[0] != 0
        begins = np.append(0, parts) if goes_on else parts
        lasts = np.append(begins[1:], rows) - 1
        keys, bounds = self._measured(prepared.events.take(pa.array(lasts)), positions.of(lasts))
        if not self._knows_clock and any(map(self._plan.is_on_clock, self._plan.choice.deadlines)):
            times = whole_numbers(prepared.events.column(self._plan.source.order_by[0]))
            latest = int(times[lasts].max())
            self._clock = latest if self._clock is None else max(latest, self._clock)
        part = self._part
        if part is not None:
            if goes_on:
                part.bounds = bounds[:, 0]
            part.is_over = not goes_on or len(begins) > 1
        if part is None or part.is_over:
            part = self._part = PartSoFar(bounds[:, -1])
        last_keys = keys[:, -1]
        batch = WaitingBatch(reading, begins, bounds, last_keys, part, lists_matches)
        self._waiting.append(batch)

    def _measured(
        self, events: pa.RecordBatch, positions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """int64[deadlines, rows]: the keys of events, and the bounds that they set."""
        windows = measured(self._plan, events, positions)
        keys = self._keys_at(events, windows)
        bounds = [
            windows[one.window][1]
            + (self._plan.matching.local_windows[one.window].unit == "EVENTS")
            for one in self._plan.choice.deadlines
        ]
        return np.array(keys), np.array(bounds)

    def _ready(self) -> Iterator[tuple[Reading, bool]]:
        while self._waiting and self._waiting[0].is_ready:
            self.batch = self._waiting.popleft()
            yield self.batch.reading, self.batch.lists_matches

    def silent(self, stretches: Stretches, events: pa.RecordBatch) -> np.ndarray | None:
        """bool[rows]: at which rows of stretches no match ends that is to be returned now.

        Silent rows of stretches were read before, at the clock `since`. The deadline of a match
        that ends at a row is not after the row's own deadline.
        """
        if self._plan.choice.rate is not None:
            self._times = whole_numbers(events.column(self._plan.source.order_by[0]))
        if stretches.before is not None:
            self._lasts = _last_positions(stretches)
        keys, were_read = self._keys(stretches, events), stretches.silent
        self._were_read = were_read
        found: np.ndarray = np.zeros(len(were_read), np.bool_)
        if self._since is not None:
            passed = [key < self._bound_before(n) for n, key in enumerate(keys)]
            if self._times is not None:
                passed.append(self._times < self._since)
            found = were_read & np.logical_and.reduce(passed)
        if self._unites or self._all_wait:
            waits = [key >= self._bound_now(number) for number, key in enumerate(keys)]
            found |= (np.logical_or if self._unites else np.logical_and).reduce(waits)
        if self._unites:
            # The other rows list all their matches.
            self._since, self._were_read = None, np.zeros(0, np.bool_)
        return found

    def undecided_ends(self, stretches: Stretches, events: pa.RecordBatch) -> np.ndarray | None:
        """bool[rows]: where a match can end whose deadline has not passed."""
        keys = self._keys(stretches, events)
        waits = [key >= self._bound_now(number) for number, key in enumerate(keys)]
        if self._times is not None:
            waits.append(~self._have_ended(np.arange(len(self._times))))
        found: np.ndarray = np.logical_or.reduce(waits)
        return found

    def _have_ended(self, rows: np.ndarray) -> np.ndarray:
        """bool: whether the clock has passed the ends of matches, with LIMIT … PER on a stream."""
        assert self._times is not None
        assert self._clock is not None
        found: np.ndarray = self._times[rows] < self._clock
        return found

    def _keys(self, stretches: Stretches, events: pa.RecordBatch) -> list[np.ndarray]:
        """For each deadline int64[rows]: the keys of the events of stretches; of spans, those of
        their last moments."""
        keys = self._keys_at(events, measured(self._plan, events, stretches.positions))
        if self._span is not None:
            keys = [last_moments(key, self._span) for key in keys]
        return keys

    def _keys_at(
        self, events: pa.RecordBatch, windows: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> list[np.ndarray]:
        """For each deadline int64[rows]: no match that ends at a row has a later key. Where events
        have a duration, others of the row's instant can start later than the row; none starts
        later than it ends."""
        if self._plan.source.begin is None:
            return [windows[one.window][0] for one in self._plan.choice.deadlines]
        ends = whole_numbers(events.column(self._plan.source.order_by[0]))
        return [ends for _ in self._plan.choice.deadlines]

    # --- matches ------------------------------------------------------------------------------

    def take(self, rows: pa.RecordBatch, listed: Listed) -> Iterator[pa.RecordBatch]:
        """Returns the decided matches. Some others are held."""
        decided = self._decided(rows, listed)
        if len(decided):
            yield decided

    def _decided(self, matches: pa.RecordBatch, listed: Listed) -> pa.RecordBatch:
        is_decided, was_decided, keys = self.decided(listed)
        numbers, is_held = listed.deadlines, np.zeros(len(is_decided), np.bool_)
        if not self._knows_clock:
            on_clock = map(self._plan.is_on_clock, self._plan.choice.deadlines)
            waits = np.flatnonzero(np.fromiter(on_clock, np.bool_))
            is_held = ~is_decided & np.isin(numbers, waits)
        if is_held.any():
            held = pa.array(is_held)
            self._held.append(HeldMatches(matches.filter(held), keys[is_held], numbers[is_held]))
        self.undecided += int((~is_decided & ~is_held).sum())
        if not isinstance(listed.walk, DefinitionWalk):  # which has asked `judge` already
            is_decided &= ~was_decided
        return matches if is_decided.all() else matches.filter(pa.array(is_decided))

    def decided(self, listed: Listed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(bool[matches], whether each is decided, as far as the clock is known; whether it was
        before, at `since`; int64[matches], the keys from which their deadlines count)."""
        rows, numbers = listed.rows, listed.deadlines
        entries = listed.begins, listed.entries.ends
        is_decided = numbers != LEFT_OPEN
        if self._times is not None:
            is_decided &= (numbers != NO_DEADLINE) | self._have_ended(rows)
        was_decided = np.zeros(len(numbers), np.bool_)
        keys = np.zeros(len(numbers), np.int64)
        for number, deadline in enumerate(self._plan.choice.deadlines):
            here = np.flatnonzero(numbers == number)
            if not len(here):
                continue
            of_matches = entries[0] if deadline.from_start else entries[1]
            keys[here] = self._history.keys(deadline.window, of_matches[here])
            is_decided[here], was_decided[here] = self._judged(number, keys[here], rows[here])
        return is_decided, was_decided, keys

    def judge(self, number: int, entries: tuple[int, int], row: int) -> tuple[bool, bool]:
        """Whether a match of the present batch is decided, and whether it was before (at `since`).

        entries: an event that starts when it starts, and its last event. row: where it ends.
        """
        if number == NO_DEADLINE and self._times is None:
            return True, self.was_read(row)
        if number == NO_DEADLINE:
            assert self._times is not None
            had_ended = self._since is not None and bool(self._times[row] < self._since)
            return bool(self._have_ended(np.array([row]))[0]), had_ended and self.was_read(row)
        deadline = self._plan.choice.deadlines[number]
        entry = entries[0] if deadline.from_start else entries[1]
        keys = self._history.keys(deadline.window, np.array([entry]))
        is_decided, was_decided = self._judged(number, keys, np.array([row]))
        return bool(is_decided[0]), bool(was_decided[0])

    def was_read(self, row: int) -> bool:
        """Whether a row of the present batch was read at `since`."""
        return bool(len(self._were_read) and self._were_read[row])

    def _judged(
        self, number: int, keys: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        was_decided = np.zeros(len(keys), np.bool_)
        if self._lasts is None and not self._plan.is_on_clock(self._plan.choice.deadlines[number]):
            if self.is_closed:
                return np.ones(len(keys), np.bool_), was_decided
            assert self.batch is not None
            return keys < self.batch.bounds_at(number, rows), was_decided
        if self._since is not None:
            # If the end had been read, a decided match was returned then. Otherwise the end came
            # after the deadline.
            was_decided = self._were_read[rows] & (keys < self._bound_before(number, rows))
        return keys < self._bound_now(number, rows), was_decided

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The held matches that are decided at the end of the input."""
        held, self._held = self._held, []
        for some in held:
            bounds = np.array(
                [self.clock_bound(n) for n in range(len(self._plan.choice.deadlines))]
            )
            is_decided = some.keys < bounds[some.deadlines]
            self.undecided += int((~is_decided).sum())
            if is_decided.any():
                yield some.matches.filter(pa.array(is_decided))

    def clock_bound(self, number: int) -> int:
        """The bound of a deadline on the clock, as far as the clock is known."""
        if self.is_closed:
            return PASSED
        return ALWAYS if self._clock is None else self._bound(number, self._clock)

    def _bound_now(self, number: int, rows: np.ndarray | slice = slice(None)) -> int | np.ndarray:
        """The bound of a deadline, at rows of stretches: of one in EVENTS int64[rows]."""
        if not self._counts(number):
            return self.clock_bound(number)
        return PASSED if self._is_over else self._counted(number, 0, rows)

    def _bound_before(
        self, number: int, rows: np.ndarray | slice = slice(None)
    ) -> int | np.ndarray:
        """The same when the stretches were read before."""
        if not self._counts(number):
            assert self._since is not None
            return self._bound(number, self._since)
        return self._counted(number, 1, rows)

    def _counts(self, number: int) -> bool:
        return self._plan.counts(self._plan.choice.deadlines[number])

    def _counted(self, number: int, when: int, rows: np.ndarray | slice) -> np.ndarray:
        assert self._lasts is not None
        window = self._plan.matching.local_windows[self._plan.choice.deadlines[number].window]
        bounds: np.ndarray = self._lasts[when][rows] - int(window.size) + 1
        return bounds

    def _bound(self, number: int, clock: int) -> int:
        known = self._bounds.get((number, clock))
        if known is None:
            if len(self._bounds) > _BOUNDS_KEPT:
                self._bounds.clear()
            known = self._bounds[number, clock] = self._new_bound(number, clock)
        return known

    def _new_bound(self, number: int, clock: int) -> int:
        plan = self._plan
        size = plan.matching.local_windows[plan.choice.deadlines[number].window].size
        type = event_schema(plan).field(plan.source.order_by[0]).type
        return int(floors_of(np.array([clock], np.int64), size, type)[0])


def _last_positions(stretches: Stretches) -> tuple[np.ndarray, np.ndarray]:
    """int64[rows]: the positions of the last events of the partitions of rows, now and before."""
    starts, rows = stretches.starts, len(stretches.positions)
    ends = np.append(starts[1:], rows)
    assert stretches.before is not None
    before = stretches.before - 1
    now = np.maximum(before, stretches.positions[ends - 1])
    return np.repeat(now, ends - starts), np.repeat(before, ends - starts)


def last_moments(times: _Times, span: int) -> _Times:
    """int64: the last moments of the spans of times; all in microseconds."""
    return (times // span + 1) * span - 1


def clock_key(plan: Plan, clock: int | float) -> int:
    """The key of a clock, which a plan holds as a number."""
    type = event_schema(plan).field(plan.source.order_by[0]).type
    if pa.types.is_date32(type):
        clock *= MICROSECONDS_PER_DAY
    elif pa.types.is_floating(type):
        return int(order_preserving(np.array([clock], np.float64))[0])
    return int(clock)


def latest_time(plan: Plan, batches: Iterable[pa.RecordBatch]) -> int | None:
    """The key of the greatest time of the first order column in batches; None: there is no event.

    Raises EventError as a run does.
    """
    columns, found = Columns(plan, ties_are_errors=False), []
    for batch in batches:
        events = columns.prepare(batch).events
        if len(events):
            found.append(int(whole_numbers(events.column(plan.source.order_by[0])).max()))
    return max(found, default=None)


def undecided_words(plan: Plan, count: int) -> str:
    matches = f"{count:,} match{'' if count == 1 else 'es'}"
    return (
        f"query {plan.name!r}: {matches} of it {'is' if count == 1 else 'are'} undecided, because "
        "the input ends before the absence at the end is certain; if no more events come, say so: "
        "at_end='closed' (--at-end closed)"
    )

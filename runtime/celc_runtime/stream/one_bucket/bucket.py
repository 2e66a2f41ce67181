"""One bucket of a stream: what happens to its events in a micro-batch, without Spark.

Events wait until the watermark has passed them, because until then an earlier event may come. Then
they are run after the kept events of their partitions (`bucket_run`). Partitions without new events
are not run. Nothing is done in Python for each partition: all that is known of partitions is in
columns (`known_keys`).

An event is *late* if it cannot be put in its place any more: because events of its partition up to
its time have been run, or because events that it could form a match with are gone.

Long: all that happens to the events of a bucket, in its order.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from celc_runtime.engine.arena.nodes import NEVER
from celc_runtime.program import Program
from celc_runtime.run.choice.deadlines import last_moments
from celc_runtime.stream.one_bucket.bucket_run import BucketRun, less
from celc_runtime.stream.one_bucket.carried_over import carry_over
from celc_runtime.stream.one_bucket.event_order import EventSort
from celc_runtime.stream.one_bucket.known_keys import (
    KnownKeys,
    deadline_lengths,
    kept_length,
    merged_keys,
    start_length,
    window_length,
)
from celc_runtime.stream.one_bucket.members import Members
from celc_runtime.stream.one_bucket.partition_totals import rows_of_partitions
from celc_runtime.stream.one_bucket.segments import Segments, due_for_merge
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.stored.blocks import Block, block_of
from celc_runtime.stream.stored.known_starts import END_OF_TIME, has_ended
from celc_runtime.stream.stored.needs import needs_in
from celc_runtime.stream.stored.rows import Keys, RowLayout, Rows
from celc_runtime.stream.stored.state import (
    KEPT,
    KEYS,
    WAITING,
    BucketState,
    Segment,
    StateFormat,
)
from celc_runtime.stream.stored.state_rows import joined_events, taken_events, taken_records

_Times = TypeVar("_Times", int, np.ndarray)

_LAST_TIMER = END_OF_TIME - 1000

_SHARE_OF_WINDOW = 8
"""Segments of kept events are merged up to this part of the window. The first events of a segment
may stay longer by this."""

_FORGETS_BUSY = 3
"""After a micro-batch with fewer busy partitions, the noted number falls to this many quarters.
So if micro-batches differ, segments are not written with sections and without them in turn."""


@dataclass(slots=True)
class OpenBucket:
    """A bucket within a micro-batch."""

    header: bytes | None  # of the state before
    state: BucketState
    segments: Segments
    step: Step
    behind: Rows  # events that arrived behind the watermark
    begun: int  # nanoseconds, when it was opened
    waits: list[Block] = field(default_factory=list)  # events that wait from now on


class BucketReader:
    """Advances the buckets of a query from one micro-batch to the next.

    key_ttl: microseconds without an event after which a partition begins again; None: never.
    members: the queries that share the events of `program`, which is then never run itself.
    counted: the column in which a query FOR EACH reads the positions of events, if it does.
    """

    def __init__(
        self,
        program: Program,
        layout: RowLayout,
        states: StateFormat,
        *,
        key_ttl: int | None = None,
        members: Members | None = None,
        counted: str | None = None,
    ) -> None:
        plan = program.plan
        self._layout = layout
        self._states = states
        self._order = EventSort(plan, layout)
        self._run = BucketRun(program, layout, states, self._order, key_ttl, members, counted)
        self._window_length = window_length(program)
        self._start_length = start_length(program)
        self._deadlines = deadline_lengths(plan)
        self._waits = plan.choice.waits
        self._counts = any(map(plan.counts, plan.choice.deadlines))
        self._may_be_later = plan.source.uncertain is not None
        self._span = None
        self._of_partitions = None
        if plan.answer.totals is not None and plan.answer.totals.per == "PARTITION":
            self._of_partitions = program
        if plan.answer.totals is not None and isinstance(plan.answer.totals.per, int):
            self._span = plan.answer.totals.per
        self._forgets = key_ttl is not None or not plan.answer.positions
        # The knowledge of nested selectors, and positions, never expire. Events of uncertain time
        # are kept longer than the time up to which they have been run says.
        stays = plan.answer.positions or len(program.contexts) > 0 or self._may_be_later
        known_for = [self._window_length, kept_length(plan)]
        stays = stays or None in known_for
        lifetimes = [key_ttl, None if stays else max(filter(None, known_for), default=0)]
        self._key_lifetime = min((t for t in lifetimes if t is not None), default=None)
        self._drops_kept = bool({"first", "since"} & set(states.values)) or key_ttl is not None

    def advance(
        self,
        number: int,
        header: bytes | None,
        load: Callable[[int], bytes | None],
        arrived: Sequence[Block],
        watermark: int | None,
    ) -> Step:
        """Take in the events that arrived, and run the events up to the watermark.

        The watermark is in microseconds; None: there is none yet. With PER of a duration, events
        are run up to the last end of a span before the watermark. number: of the bucket. header: of
        the state before, None: no state. load: the bytes stored under a number, or None. Raises
        EventError if events are equal in all order columns or cannot be measured, StateError if the
        state is damaged.
        """
        bucket = self.opened(number, header, load)
        self.receive(bucket, arrived, watermark)
        self.run(bucket, watermark)
        set_timer(bucket.step, bucket.state, self.store(bucket, watermark), watermark)
        return self.closed(bucket)

    def opened(
        self, number: int, header: bytes | None, load: Callable[[int], bytes | None]
    ) -> OpenBucket:
        """A bucket for one micro-batch; the arguments are those of `advance`."""
        begun = time.perf_counter_ns()
        state = self._states.fresh(number) if header is None else self._states.read(header, number)
        nothing, segments = self._layout.nothing, Segments(state, self._states, load)
        bucket = OpenBucket(header, state, segments, Step(late=nothing), nothing, begun)
        if state.written_for is not None:
            self._carry_over(bucket, load)
        return bucket

    def _carry_over(self, bucket: OpenBucket, load: Callable[[int], bytes | None]) -> None:
        """Go on with the state of another query, which the driver has found to suffice."""
        state = bucket.state
        assert state.written_for is not None
        old, new = needs_in(state.written_for), needs_in(state.record)
        assert old is not None
        assert new is not None
        carry_over(old, new, state, bucket.segments, self._states, load, self._order.time)
        self.count_again(bucket)

    def count_again(self, bucket: OpenBucket) -> None:
        """Find the next deadline anew, because queries with other deadlines share the events no
        more."""
        state = bucket.state
        state.next_deadline, state.pending = END_OF_TIME, 0
        if self._deadlines and state.frontier is not None:
            state.next_deadline = state.frontier

    def receive(self, bucket: OpenBucket, arrived: Sequence[Block], watermark: int | None) -> None:
        """Take in the events that arrived, before any is run. Those behind the watermark may be
        late, also if this query waits longer."""
        waits = [block for block in arrived if watermark is None or block.least > watermark]
        if watermark is not None:
            fresh, bucket.behind = self._arrived(
                [block for block in arrived if block.least <= watermark], watermark
            )
            waits.append(self._block(fresh))
        bucket.waits += waits

    def late(self, bucket: OpenBucket, keys: Keys, times: np.ndarray) -> np.ndarray:
        """bool[rows]: which events would be late in a bucket in which nothing has been run yet.

        keys, times (int64, microseconds): of events of any query with the same PARTITION BY.
        """
        known = KnownKeys(self._layout, bucket.state, bucket.segments, keys)
        return self._late(bucket.state, known, times, known.codes)

    def run(
        self,
        bucket: OpenBucket,
        watermark: int | None,
        *,
        never_late: Rows | None = None,
        late: np.ndarray | None = None,
    ) -> None:
        """Run the events up to the watermark.

        never_late: further events; the rows of other queries, which are found in time. late:
        bool[rows] of the bucket's `behind`, events that are late for other queries.
        """
        watermark = self._end_of_spans(watermark)
        state, segments, step = bucket.state, bucket.segments, bucket.step
        behind, found = bucket.behind, self._layout.nothing
        if late is not None:
            step.late, behind = self._parted(behind, late)
        if never_late is not None and len(never_late.records):
            waiting = np.ones(len(never_late.records), np.bool_)
            if watermark is not None:
                waiting = self._times(never_late) > watermark
            fresh, found = self._parted(never_late, waiting)
            bucket.waits.append(self._block(fresh))
        if watermark is None:
            return
        fresh, behind = self._parted(behind, self._times(behind) > watermark)
        bucket.waits.append(self._block(fresh))
        first_new = state.next_segment
        passed = self._layout.joined(
            [r for r in (found, self._passed(state, segments, watermark)) if len(r.records)]
        )
        due = self._due_rows(state, segments, watermark)
        if len(behind.records) or len(passed.records) or len(due.records):
            self._run_ready(step, state, segments, behind, passed, due, watermark)
        if self._waits:
            self._settle(step, state, segments, watermark)
        if self._of_partitions is not None and has_ended(watermark):
            self._tell_totals(self._of_partitions, step, state, segments)
        state.frontier = max(watermark, NEVER if state.frontier is None else state.frontier)
        if self._deadlines:
            self._note_deadlines(state, segments, first_new)
        self._evict(state, segments, watermark)

    def store(self, bucket: OpenBucket, watermark: int | None) -> int | None:
        """Put what stays into segments; the next time (milliseconds) when the watermark alone makes
        work, None: there is none."""
        watermark = self._end_of_spans(watermark)
        state, segments = bucket.state, bucket.segments
        segments.add_waiting(bucket.waits)
        self._merge(state, segments, watermark)
        segments.cut_searched()
        return self._due(state, segments, watermark)

    def closed(self, bucket: OpenBucket) -> Step:
        """The outcome of the micro-batch."""
        state, segments, step = bucket.state, bucket.segments, bucket.step
        step.waiting = sum(
            len(self._waiting_in(state, segments, segment)) for segment in state.of_kind(WAITING)
        )
        step.kept = sum(segment.rows for segment in state.of_kind(KEPT))
        step.pending = state.pending
        step.known = sum(segment.rows for segment in state.of_kind(KEYS))
        step.header = self._states.written(state)
        step.is_changed = step.header != bucket.header
        step.size = state.size
        step.written, step.removed = segments.written, segments.removed
        spent = time.perf_counter_ns() - bucket.begun
        step.state_time = spent - step.sort_time - step.kernel_time
        return step

    # --- waiting ----------------------------------------------------------------------------------

    def _arrived(self, blocks: Sequence[Block], watermark: int) -> tuple[Rows, Rows]:
        """The events that wait, and those that the watermark has passed."""
        rows = self._layout.joined([block.rows(self._layout) for block in blocks if block.events])
        return self._parted(rows, self._times(rows) > watermark)

    def _block(self, rows: Rows) -> Block:
        return block_of(self._layout, rows, self._order.time)

    def _times(self, rows: Rows) -> np.ndarray:
        return self._layout.values(rows, self._order.time)

    def _parted(self, rows: Rows, where: np.ndarray) -> tuple[Rows, Rows]:
        """The rows at which a condition (bool[rows]) is true, and the others."""
        if where.all():
            return rows, self._layout.nothing
        if not where.any():
            return self._layout.nothing, rows
        return (
            self._layout.taken(rows, np.flatnonzero(where)),
            self._layout.taken(rows, np.flatnonzero(~where)),
        )

    def _waiting_in(
        self, state: BucketState, segments: Segments, segment: Segment
    ) -> np.ndarray | range:
        """The times of the events of a segment that were not run; only their number if none was."""
        if state.frontier is None or segment.least > state.frontier:
            return range(segment.rows)
        rows = self._states.waiting(segment, segments.data(segment))
        times = self._times(rows)
        return times[times > state.frontier]

    def _passed(self, state: BucketState, segments: Segments, watermark: int) -> Rows:
        """The waiting events that the watermark has passed.

        Their segments are removed, or stay unchanged while most of their events still wait.
        """
        passed, left = [], []
        for segment in state.of_kind(WAITING):
            if segment.least > watermark:
                continue
            rows = self._states.waiting(segment, segments.data(segment))
            times = self._times(rows)
            now = times <= watermark
            if state.frontier is not None:
                now &= times > state.frontier
            chosen, _ = self._parted(rows, now)
            if len(chosen.records):
                passed.append(chosen)
            rest, _ = self._parted(rows, times > watermark)
            if 2 * len(rest.records) <= segment.rows:
                segments.remove(segment)
                left.append(rest)
        segments.add_waiting([self._block(rows) for rows in left])
        return self._layout.joined(passed)

    # --- running ----------------------------------------------------------------------------------

    def _run_ready(
        self,
        step: Step,
        state: BucketState,
        segments: Segments,
        behind: Rows,
        passed: Rows,
        due: Rows,
        watermark: int,
    ) -> None:
        """Run the events that the watermark has passed, and the partitions of kept events in `due`.

        These are events of this micro-batch, which may be late, and events that waited.
        """
        begun = time.perf_counter_ns()
        rows = self._layout.joined([r for r in (behind, passed, due) if len(r.records)])
        known = self._known(state, segments, rows)
        state.busy = max(len(known.values), _FORGETS_BUSY * state.busy // 4)
        codes, count = known.codes, len(behind.records) + len(passed.records)
        codes, due_codes = codes[:count], codes[count:]
        if len(due_codes):
            rows = self._layout.taken(rows, np.arange(count))
        late = np.zeros(len(codes), np.bool_)
        count = len(behind.records)
        late[:count] = self._late(state, known, self._times(behind), codes[:count])
        if late.any():
            rows, found = self._parted(rows, ~late)
            step.late = self._layout.joined([r for r in (step.late, found) if len(r.records)])
            codes = codes[~late]
        if len(codes) or len(due_codes):
            order = self._order.of(rows, codes)
            step.sort_time = time.perf_counter_ns() - begun
            self._run.run(step, state, segments, known, rows, codes, order, due_codes, watermark)

    def _known(self, state: BucketState, segments: Segments, rows: Rows) -> KnownKeys:
        return KnownKeys(self._layout, state, segments, self._layout.keys_of(rows))

    def _due_rows(self, state: BucketState, segments: Segments, watermark: int) -> Rows:
        """The kept events whose deadlines the watermark passes now.

        Matches that begin or end with them may be decided, although no event comes. At the end of
        the stream that are all that wait for a number of EVENTS.
        """
        since, found = state.frontier, []
        if since is not None and self._counts and has_ended(watermark):
            for segment in state.of_kind(KEPT):
                kept = segments.kept(segment)
                known = self._known(state, segments, kept.rows)
                alive = self._run.is_alive(known, kept, known.codes, self._times(kept.rows))
                found.append(self._layout.taken(kept.rows, np.flatnonzero(alive)))
            return self._layout.joined(found)
        if since is None or not self._deadlines or watermark < state.next_deadline:
            return self._layout.nothing
        for segment in state.of_kind(KEPT):
            if self._decided_from(segment.latest) + self._deadlines[-1] < since:
                continue
            if self._decided_from(segment.least) + self._deadlines[0] >= watermark:
                continue
            rows = segments.kept(segment).rows
            times = self._decided_from(self._times(rows))
            due = np.zeros(len(times), np.bool_)
            for length in self._deadlines:
                due |= (times >= since - length) & (times < watermark - length)
            if due.any():
                found.append(self._layout.taken(rows, np.flatnonzero(due)))
        return self._layout.joined(found)

    def _note_deadlines(self, state: BucketState, segments: Segments, first_new: int) -> None:
        """Note the next deadline after the frontier, and how many kept events have one.

        While none of the noted ones has been passed, only new segments are looked at. Their numbers
        begin with `first_new`.
        """
        frontier = state.frontier
        assert frontier is not None
        if frontier >= state.next_deadline:
            first_new, state.next_deadline, state.pending = 0, END_OF_TIME, 0
        for segment in state.of_kind(KEPT):
            if (
                segment.number < first_new
                or self._decided_from(segment.latest) + self._deadlines[-1] < frontier
            ):
                continue
            moment = self._decided_from(segment.least) + self._deadlines[0]
            pending = segment.rows
            if moment < frontier:
                times = self._decided_from(self._times(segments.kept(segment).rows))
                pending = self._pending(times, frontier)
                moment = min(
                    int(left.min()) + length
                    for length in self._deadlines
                    if len(left := times[times >= frontier - length])
                )
            state.next_deadline = min(state.next_deadline, moment + 1)
            state.pending += pending

    def _pending(self, times: np.ndarray, frontier: int) -> int:
        """How many of the kept events with these times have a deadline after the frontier."""
        return int(np.count_nonzero(self._decided_from(times) >= frontier - self._deadlines[-1]))

    def _decided_from(self, times: _Times) -> _Times:
        """The times from which deadlines count for matches that end at some; of spans, their last
        moments."""
        return times if self._span is None else last_moments(times, self._span)

    def _late(
        self, state: BucketState, known: KnownKeys, times: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """bool[rows]: which events of this micro-batch that the watermark has passed are late."""
        run_to = known.values["frontier"]
        if not self._states.values or self._forgets:
            # A partition without a record may have been run.
            frontier = NEVER if state.frontier is None else state.frontier
            run_to = np.where(known.is_known, run_to, frontier)
        run_to = run_to[codes]
        late = times <= run_to
        if self._window_length is not None:
            floors = less(times, self._window_length)
            # An event of uncertain time can be later than the time up to which it has been run.
            last_kept = (
                np.where(run_to > NEVER, END_OF_TIME, NEVER) if self._may_be_later else run_to
            )
            late |= (floors < state.evicted) & (floors <= last_kept)
        found: np.ndarray = late
        return found

    def _tell_totals(
        self, program: Program, step: Step, state: BucketState, segments: Segments
    ) -> None:
        """Return the rows of all partitions, when the stream ends."""
        if state.frontier is not None and has_ended(state.frontier):
            return  # they have been returned
        records = [segments.keys(segment) for segment in state.of_kind(KEYS)]
        rows = rows_of_partitions(program, self._layout, records)
        if rows is not None:
            step.matches.append(rows)

    def _settle(self, step: Step, state: BucketState, segments: Segments, watermark: int) -> None:
        """Return the matches that wait in partitions without new events."""
        over = END_OF_TIME
        if not has_ended(watermark):
            if self._start_length is None:
                return
            over = int(less(np.int64(watermark), self._start_length))
        due = [segment for segment in state.of_kind(KEPT) if segment.least <= over]
        waiting = []
        for segment in due:
            kept = segments.kept(segment)
            known = self._known(state, segments, kept.rows)
            times = self._times(kept.rows)
            alive = self._run.is_alive(known, kept, known.codes, times) & (times <= over)
            alive &= self._run.waits_at(known, kept, known.codes)
            if alive.any():
                waiting.append(self._layout.taken(kept.rows, np.flatnonzero(alive)))
        if waiting:
            rows = self._layout.joined(waiting)
            known = self._known(state, segments, rows)
            self._run.settle(step, state, segments, known, watermark)

    # --- what goes, and what is merged ------------------------------------------------------------

    def _evict(self, state: BucketState, segments: Segments, watermark: int) -> None:
        """Drop the segments of kept events that no later window reaches, and of expired
        partitions."""
        if self._window_length is not None:
            for segment in state.of_kind(KEPT):
                if segment.latest + self._window_length <= watermark:
                    segments.remove(segment)
                    state.evicted = max(state.evicted, segment.latest + 1)
        if self._key_lifetime is not None:
            for segment in state.of_kind(KEYS):
                if segment.latest + self._key_lifetime <= watermark:
                    segments.remove(segment)

    def _merge(self, state: BucketState, segments: Segments, watermark: int | None) -> None:
        longest = None
        if self._window_length is not None:
            longest = self._window_length // _SHARE_OF_WINDOW
        while due := due_for_merge(state.of_kind(WAITING), None):
            self._merge_waiting(state, segments, due)
        while due := due_for_merge(state.of_kind(KEYS), None):
            self._merge_keys(segments, due, watermark)
        for group in range(len(self._states.leaves_earlier)):
            while due := due_for_merge(_of_group(state, group), longest):
                self._merge_kept(state, segments, due, group)

    def _merge_waiting(self, state: BucketState, segments: Segments, due: list[Segment]) -> None:
        rows = self._layout.joined([self._states.waiting(s, segments.data(s)) for s in due])
        if state.frontier is not None:
            rows, _ = self._parted(rows, self._times(rows) > state.frontier)
        for segment in due:
            segments.remove(segment)
        segments.add_waiting([self._block(rows)])

    def _merge_keys(self, segments: Segments, due: list[Segment], watermark: int | None) -> None:
        records = merged_keys(self._layout, [segments.keys(s) for s in due])
        if self._key_lifetime is not None and watermark is not None:
            left = np.flatnonzero(
                less(np.int64(watermark), self._key_lifetime) < self._states.times_of(records)
            )
            records = taken_records(self._layout, records, left)
        for segment in due:
            segments.remove(segment)
        segments.add_keys(records)

    def _merge_kept(
        self, state: BucketState, segments: Segments, due: list[Segment], group: int
    ) -> None:
        kept = joined_events(self._layout, [segments.kept(s) for s in due])
        alive = self._states.latest_times(kept.rows) >= state.evicted
        if self._drops_kept:
            known = self._known(state, segments, kept.rows)
            alive &= self._run.is_alive(known, kept, known.codes, self._times(kept.rows))
        for segment in due:
            segments.remove(segment)
        segments.add_kept(taken_events(self._layout, kept, np.flatnonzero(alive)), group=group)
        if self._deadlines:
            assert state.frontier is not None
            gone = self._times(kept.rows)[~alive]
            state.pending -= self._pending(gone, state.frontier)

    # --- timers -----------------------------------------------------------------------------------

    def _end_of_spans(self, watermark: int | None) -> int | None:
        """The watermark; with PER of a duration, the last moment of the last whole span before it.

        So all matches that end in a span are found in one micro-batch. Rejected: keeping the sums
        of spans besides the events, and running each event when the watermark passes it. That is a
        second state to store, for queries whose windows are shorter than their spans.
        """
        if self._span is None or watermark is None or has_ended(watermark):
            return watermark
        return (watermark + 1) // self._span * self._span - 1

    def _due(self, state: BucketState, segments: Segments, watermark: int | None) -> int | None:
        """Milliseconds; None: nothing is due without an event."""
        moments = []
        for segment in state.of_kind(WAITING):
            times = self._waiting_in(state, segments, segment)
            if isinstance(times, range):
                moments.append(segment.least)
            elif len(times):
                moments.append(int(times.min()))
        if self._waits and self._start_length is not None:
            for segment in state.of_kind(KEPT):
                times = self._times(segments.kept(segment).rows)
                moments += [t + self._start_length for t in self._next(times, watermark)]
        for kind, length in ((KEPT, self._window_length), (KEYS, self._key_lifetime)):
            if length is not None:
                moments += [segment.latest + length for segment in state.of_kind(kind)]
        if state.next_deadline < END_OF_TIME:
            moments.append(state.next_deadline)
        if not moments:
            return None
        moment = min(moments)
        if self._span is not None:
            moment = (moment // self._span + 1) * self._span - 1
        # Events before 1970 wait for the first watermark too, because Spark begins with 0.
        return max(1, -(-min(moment, _LAST_TIMER) // 1000))

    def _next(self, times: np.ndarray, watermark: int | None) -> list[int]:
        """The first of these times (int64) that is inside the window of a later event, if any."""
        assert self._start_length is not None
        if watermark is not None:
            times = times[times > less(np.int64(watermark), self._start_length)]
        return [int(times.min())] if len(times) else []


def _of_group(state: BucketState, group: int) -> list[Segment]:
    """The segments of a group of kept events."""
    return [segment for segment in state.of_kind(KEPT) if segment.values == group]


class SetsTimers(Protocol):
    """The outcome of a micro-batch, as far as timers are concerned; all in milliseconds."""

    set_timers: list[int]
    unset_timers: list[int]


class HasTimer(Protocol):
    """What notes the one timer of a bucket (milliseconds; None: it is not set)."""

    timer: int | None


def set_timer(step: SetsTimers, holder: HasTimer, due: int | None, watermark: int | None) -> None:
    """Set the one timer of a bucket, at the earliest time when the watermark alone makes work.

    due: the next deadline. A timer that is too early stays: it expires once for nothing. A timer
    that the watermark has reached is unset here. Otherwise Spark would report it in this
    micro-batch, after the step of the bucket.
    """
    if due is not None and watermark is not None and 1000 * due <= watermark:
        due = None  # the stream has ended, so nothing is due later
    if holder.timer is not None and (
        due is None
        or due < holder.timer
        or (watermark is not None and 1000 * holder.timer <= watermark)
    ):
        step.unset_timers.append(holder.timer)
        holder.timer = None
    if due is not None and holder.timer is None:
        holder.timer = due
        step.set_timers.append(due)

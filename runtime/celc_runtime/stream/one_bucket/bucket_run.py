"""Runs a bucket's events after the kept events of their partitions.

The events of all partitions of a bucket are run at once, partition by partition. Kept events are
read again, so that the matches that they began are there (`Run.push_stretches`). In the end the
events that matter to the query are kept, with their positions.

*Exact*: a match consists of events inside the window, and depends only on events between its first
and its last. So a run that begins with the first event that any later window reaches finds the same
matches. Three things depend on events before the window: nested selectors, by the number of a
context, which is kept; CONSUME BY, after whose last match a new stream begins; and positions, which
are kept. Rows that matter to no match are not kept. If their presence matters (`:`, STRICT, `;!;`),
one row stands for all of them between two kept events, because a second one would change nothing.
In a window of EVENTS there are as many as there were.

Long: what is kept and what is run of a bucket must agree, line by line; runs with and without new
events share what they know of parts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.nodes import ALWAYS, NEVER
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.source.stretches import Starts, Stretches
from celc_runtime.stream.one_bucket.event_order import EventSort
from celc_runtime.stream.one_bucket.known_keys import (
    KnownKeys,
    has_own_clock,
    relevant_types,
    start_length,
    waits_for_ends,
    window_length,
)
from celc_runtime.stream.one_bucket.members import Members
from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.stored.key_table import grouped
from celc_runtime.stream.stored.known_starts import END_OF_TIME, has_ended, known_starts
from celc_runtime.stream.stored.rows import RowLayout, Rows
from celc_runtime.stream.stored.state import (
    KEPT,
    BucketState,
    StateFormat,
)
from celc_runtime.stream.stored.state_rows import (
    KEPT_ROWS,
    KeptEvents,
    KeyRecords,
    joined_events,
    taken_events,
    unknown_keys,
)

_ROWS_AT_ONCE = 1 << 20  # about the rows that are run at once, with the rows that stand for others


class Parts(NamedTuple):
    """The partitions whose events are run; one that expires in between is here twice."""

    keys: np.ndarray  # int64[parts], the numbers of the partitions, ascending
    goes_on: np.ndarray  # bool[parts], whether it continues what the bucket knows
    counts: np.ndarray  # int64[parts], the number of events that are run
    begins: np.ndarray  # int64[parts], the time of the first of these; without events the watermark
    ends: np.ndarray  # int64[parts], the time of the last of these; likewise
    due: np.ndarray  # bool[parts], whether deadlines may have passed in it

    def taken(self, index: np.ndarray) -> Parts:
        return Parts(*(column[index] for column in self))

    @classmethod
    def of_keys(cls, keys: np.ndarray, goes_on: np.ndarray) -> Parts:
        """The partitions with these numbers; nothing is said of their rows."""
        nothing = np.zeros(len(keys), np.int64)
        return cls(keys, goes_on, nothing, nothing, nothing, nothing.astype(np.bool_))


class _Events(NamedTuple):
    """Events of parts."""

    rows: Rows
    positions: np.ndarray  # int64
    parts: np.ndarray  # int64, the number of each event's part


class _Stretches(NamedTuple):
    """Kept events and events to be run together, part by part."""

    events: _Events  # all of them
    starts: np.ndarray  # int64[parts], where parts begin
    silent: np.ndarray  # bool[rows], the events that were kept
    contexts: np.ndarray  # int64[parts], the contexts in which they begin
    known: Starts | None  # the starts whose matches are known, if matches wait
    kept: np.ndarray | None  # int64[parts, numbers], as in `run.Stretches`
    before: np.ndarray | None = None  # int64[parts], likewise
    batch: pa.RecordBatch | None = None  # the columns of the events, if they are made already
    codes: np.ndarray | None = None  # int32[rows], then also the numbers of their types


@dataclass(slots=True)
class _Found:
    """What runs have found about `_Stretches`; the first four fields are as in `run.Behind`."""

    matters: np.ndarray
    contexts: np.ndarray
    firsts: np.ndarray
    behind: np.ndarray
    values: np.ndarray  # int64[rows], the window's attribute, if it is not the time
    ends: np.ndarray  # int64[parts], the last rows
    after: np.ndarray  # int64[parts], as in `Starts`
    kept: np.ndarray | None
    groups: np.ndarray | None = None  # int8[rows], of members: the group in which a row is kept


class BucketRun:
    """Runs events of a query's buckets, and keeps those that later matches can contain."""

    def __init__(
        self,
        program: Program,
        layout: RowLayout,
        states: StateFormat,
        order: EventSort,
        key_ttl: int | None,
        members: Members | None,
        counted: str | None,
    ) -> None:
        self._members = members
        self._counted = counted
        self._program = program
        self._plan = program.plan
        self._layout = layout
        self._states = states
        self._order = order
        self._key_ttl = key_ttl
        window = self._plan.matching.window
        self._in_events = window is not None and window.unit == "EVENTS" and not program.sees_all
        self._own_clock = has_own_clock(self._plan)
        self._window_length = window_length(program)
        self._has_contexts = len(program.contexts) > 0
        self._types = relevant_types(self._plan)
        self._waits = self._plan.choice.waits
        self._counts = any(map(self._plan.counts, self._plan.choice.deadlines))
        self._start_length = start_length(program)
        # Whether matches need events before the first start or end that is not known yet.
        self._looks_back = self._waits and (
            bool(self._plan.matching.reaches) or waits_for_ends(self._plan)
        )

    def run(
        self,
        step: Step,
        state: BucketState,
        segments: Segments,
        known: KnownKeys,
        rows: Rows,
        codes: np.ndarray,
        order: np.ndarray,
        due: np.ndarray,
        watermark: int,
    ) -> None:
        """Run events. Matches and counts go into `step`, what is kept into `segments`.

        codes: int64[rows], the numbers of their partitions in `known`. order: int64[rows], the rows
        by partition, sorted in each. due: int64, the numbers of the partitions in which deadlines
        may have passed.
        """
        begun = time.perf_counter_ns()
        codes = codes[order]
        parts = self._parts(known, self._layout.values(rows, self._order.time)[order], codes)
        parts = _with_due(parts, due, watermark)
        step.events, step.keys = len(codes), int(np.count_nonzero(np.diff(parts.keys)) + 1)
        events, read = self._relevant(state, known, rows, order, parts)
        found = None
        if len(read):
            of_parts = parts.taken(read)
            stretches = self._stretches(state, segments, known, events, of_parts, watermark)
            sorted_by = time.perf_counter_ns()
            found = self._found(step, stretches, of_parts.due, watermark, state.frontier)
            if self._own_clock:
                self._check_clock(known, of_parts, stretches, found)
            step.kernel_time += time.perf_counter_ns() - sorted_by
            stays = found.matters & ~stretches.silent
            together = KeptEvents(stretches.events.rows, stretches.events.positions, found.contexts)
            groups = found.groups if found.groups is not None else np.zeros(len(stays), np.int8)
            for group in range(len(self._states.leaves_earlier)):
                chosen = np.flatnonzero(stays & (groups == group))
                segments.add_kept(taken_events(self._layout, together, chosen), group=group)
        if self._states.values:
            segments.add_keys(self._records(known, parts, read, found, watermark))
        step.sort_time += time.perf_counter_ns() - begun - step.kernel_time

    def settle(
        self, step: Step, state: BucketState, segments: Segments, known: KnownKeys, watermark: int
    ) -> None:
        """Return the matches of partitions that the watermark has decided, without an event.

        Each of the partitions has kept events.
        """
        begun = time.perf_counter_ns()
        count = len(known.values)
        nothing = np.zeros(0, np.int64)
        times = known.values["last"].astype(np.int64)
        parts = Parts(
            np.arange(count),
            np.ones(count, np.bool_),
            np.zeros(count, np.int64),
            times,
            times,
            np.zeros(count, np.bool_),
        )
        events = _Events(self._layout.nothing, nothing, nothing)
        stretches = self._stretches(state, segments, known, events, parts, watermark)
        found = self._matches(self._program, step.matches, stretches, watermark, state.frontier)
        values = known.values.copy()
        values["frontier"] = np.maximum(watermark, values["frontier"])
        values["first"], values["after"] = found.firsts, found.after
        if found.kept is not None:
            values[KEPT_ROWS] = found.kept
        segments.add_keys(KeyRecords(known.rows(), values))
        step.kernel_time += time.perf_counter_ns() - begun

    def is_alive(
        self, known: KnownKeys, kept: KeptEvents, codes: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        """bool[rows]: which kept events later matches can contain, by the records of their
        partitions.

        codes: int64[rows], the numbers of the partitions in `known`.
        """
        values = known.values[codes]
        found: np.ndarray = times >= values["since"]
        if not self._looks_back:
            found &= kept.positions >= values["first"]
        if self._states.values:
            found &= known.is_known[codes]
        return found

    def waits_at(self, known: KnownKeys, kept: KeptEvents, codes: np.ndarray) -> np.ndarray:
        """bool[rows]: at which kept events matches that are not known yet can start, or end."""
        found: np.ndarray = known.is_known[codes]
        found &= kept.positions >= known.values["first"][codes]
        return found

    # --- parts ------------------------------------------------------------------------------------

    def _parts(self, known: KnownKeys, times: np.ndarray, codes: np.ndarray) -> Parts:
        """The parts of events, which are sorted by partition and time.

        A partition without an event for `key_ttl` expires, and begins again. This depends only on
        the times of its events, not on micro-batches.
        """
        begins = np.diff(codes, prepend=-1) != 0
        firsts = np.flatnonzero(begins)
        goes_on = begins.copy()
        if self._states.values:
            goes_on[firsts] = known.is_known[codes[firsts]]
        if self._key_ttl is not None and "last" in self._states.values:
            before = np.empty(len(times), np.int64)
            before[1:] = times[:-1]
            before[firsts] = np.where(
                goes_on[firsts], known.values["last"][codes[firsts]], times[firsts]
            )
            forgotten = less(times, self._key_ttl) >= before
            begins |= forgotten
            goes_on &= ~forgotten
        starts = np.flatnonzero(begins)
        counts = np.diff(np.append(starts, len(codes)))
        due = np.zeros(len(starts), np.bool_)
        lasts = starts + counts - 1
        return Parts(codes[starts], goes_on[starts], counts, times[starts], times[lasts], due)

    def _relevant(
        self, state: BucketState, known: KnownKeys, rows: Rows, order: np.ndarray, parts: Parts
    ) -> tuple[_Events, np.ndarray]:
        """The events whose types can matter, with positions, and the parts (int64) with such
        events.

        The events refer to parts by their indices among these.
        """
        if self._states.values:
            base = np.where(parts.goes_on, known.values["position"][parts.keys], 0)
            starts = np.cumsum(parts.counts) - parts.counts
            positions = np.arange(len(order)) + np.repeat(base - starts, parts.counts)
        else:
            # Only their order counts.
            positions = state.next_event + np.arange(len(order))
            state.next_event += len(order)
        of_rows = np.repeat(np.arange(len(parts.keys)), parts.counts)
        if self._types is None:
            taken = self._layout.taken(rows, order)
            return _Events(taken, positions, of_rows), np.arange(len(parts.keys))
        index = np.flatnonzero(self._types[self._layout.codes(rows)[order]])
        of_rows = of_rows[index]
        is_read = parts.due.copy()
        is_read[of_rows] = True
        places = np.cumsum(is_read) - 1
        taken = self._layout.taken(rows, order[index])
        return _Events(taken, positions[index], places[of_rows]), np.flatnonzero(is_read)

    def _stretches(
        self,
        state: BucketState,
        segments: Segments,
        known: KnownKeys,
        events: _Events,
        parts: Parts,
        watermark: int,
    ) -> _Stretches:
        """The kept events of the parts, followed by the new events."""
        kept, kept_parts = self._kept(state, segments, known, parts)
        rows = self._layout.joined([r for r in (kept.rows, events.rows) if len(r.records)])
        positions = np.concatenate([kept.positions, events.positions])
        by_part, edges = grouped(np.concatenate([kept_parts, events.parts]), len(parts.keys))
        together = _Events(
            self._layout.taken(rows, by_part),
            positions[by_part],
            np.repeat(np.arange(len(parts.keys)), np.diff(edges)),
        )
        silent, starts = by_part < len(kept_parts), edges[:-1]
        contexts = np.where(parts.goes_on, known.values["context"][parts.keys], 0)
        contexts = contexts.astype(np.int64)
        if self._has_contexts:
            first_kept = np.flatnonzero(silent[starts])
            contexts[first_kept] = kept.contexts[by_part[starts[first_kept]]]
        rises = np.diff(together.positions) > 0
        rises[starts[1:] - 1] = True
        if not rises.all():
            raise self._states.damaged("the positions of a partition do not ascend")
        known_now = None
        if self._waits:
            values = np.where(
                parts.goes_on, known.values[parts.keys], unknown_keys(1, self._layout)
            )
            times = self._layout.values(together.rows, self._order.time)
            border = self._border(watermark)
            known_now = known_starts(values, together.positions, times, edges, border)
        kept_rows = None
        if self._layout.most_kept:
            of_parts = np.where(
                parts.goes_on, known.values[parts.keys], unknown_keys(1, self._layout)
            )
            kept_rows = of_parts[KEPT_ROWS].copy()
        before = None
        if self._counts:
            before = np.where(parts.goes_on, known.values["position"][parts.keys], 0)
        return _Stretches(together, starts, silent, contexts, known_now, kept_rows, before)

    def _border(self, watermark: int) -> int | None:
        """No match of events after the watermark starts at this time or before."""
        if has_ended(watermark):
            return END_OF_TIME
        length = self._start_length
        return None if length is None else int(less(np.int64(watermark), length))

    def _kept(
        self, state: BucketState, segments: Segments, known: KnownKeys, parts: Parts
    ) -> tuple[KeptEvents, np.ndarray]:
        """The kept events that the parts continue, the oldest segment first, and their parts."""
        part_of_key = np.full(len(known.values), -1, np.int64)
        places = np.flatnonzero(parts.goes_on)
        part_of_key[parts.keys[places]] = places
        found, found_parts = [], [np.zeros(0, np.int64)]
        for segment in state.of_kind(KEPT):
            kept = segments.kept(segment, known.hashes[parts.keys[places]])
            codes = known.numbers_of(kept.rows, self._layout)
            of_rows = np.where(codes >= 0, part_of_key[codes], -1)
            index = np.flatnonzero(of_rows >= 0)
            kept, of_rows, codes = (
                taken_events(self._layout, kept, index),
                of_rows[index],
                codes[index],
            )
            times = self._layout.values(kept.rows, self._order.time)
            alive = self.is_alive(known, kept, codes, times)
            if self._window_length is not None and not self._waits:
                begins = parts.begins
                if self._plan.choice.deadlines and state.frontier is not None:
                    # Matches may have waited since then.
                    begins = np.minimum(begins, state.frontier)
                length = self._window_length - self._states.leaves_earlier[segment.values]
                latest = self._states.latest_times(kept.rows)
                alive &= latest >= less(begins, length)[of_rows]
            if not alive.all():
                index = np.flatnonzero(alive)
                kept, of_rows = taken_events(self._layout, kept, index), of_rows[index]
            if len(of_rows):
                found.append(kept)
                found_parts.append(of_rows)
        together, parts_of_rows = joined_events(self._layout, found), np.concatenate(found_parts)
        if len(self._states.leaves_earlier) > 1:
            # Events of one micro-batch are in segments of several groups.
            order = np.argsort(together.positions, kind="stable")
            together = taken_events(self._layout, together, order)
            parts_of_rows = parts_of_rows[order]
        return together, parts_of_rows

    # --- matches ----------------------------------------------------------------------------------

    def _found(
        self,
        step: Step,
        stretches: _Stretches,
        due: np.ndarray,
        watermark: int,
        frontier: int | None,
    ) -> _Found:
        """Run all parts, by each of the queries that share them. due: bool[parts], where deadlines
        may have passed."""
        if self._members is None:
            return self._matches(self._program, step.matches, stretches, watermark, frontier)
        found = self._nothing_found(stretches)
        found.groups = np.full(len(stretches.silent), len(self._states.leaves_earlier) - 1, np.int8)
        rows, positions = stretches.events.rows, stretches.events.positions
        chosen = self._members.chosen(
            self._events(rows, positions), self._layout.codes(rows), stretches.starts[1:]
        )
        for number, (program, index, events, codes) in enumerate(chosen):
            part = _part_of(stretches, index, due, waits=bool(program.plan.choice.deadlines))
            if part is None:
                continue
            index, of_member = part
            read = events.take(pa.array(index)) if len(index) < len(codes) else events
            of_member = of_member._replace(batch=read, codes=codes[index])
            matches = step.of_members.setdefault(number, [])
            told = self._matches(program, matches, of_member, watermark, frontier)
            found.matters[index] |= told.matters
            stays = index[told.matters]
            found.groups[stays] = np.minimum(found.groups[stays], self._members.groups[number])
        return found

    def _nothing_found(self, stretches: _Stretches) -> _Found:
        count = len(stretches.silent)
        return _Found(
            np.zeros(count, np.bool_),
            np.zeros(count if self._has_contexts else 0, np.uint16),
            np.zeros(len(stretches.starts), np.int64),
            np.zeros(len(stretches.starts), np.int64),
            np.zeros(count if self._own_clock else 0, np.int64),
            np.append(stretches.starts[1:], count) - 1,
            np.full(len(stretches.starts), -1, np.int64),
            stretches.kept,
        )

    def _matches(
        self,
        program: Program,
        matches: list[pa.RecordBatch],
        stretches: _Stretches,
        watermark: int,
        frontier: int | None,
    ) -> _Found:
        """Run all parts, some at a time, so that the rows that stand for others fit into memory.

        The watermark is the clock that decides matches, `frontier` the clock before.
        """
        found = self._nothing_found(stretches)
        repeats = self._repeats(program.plan, stretches)
        for first, last in _pieces(stretches.starts, repeats):
            over = has_ended(watermark)
            run = run_of(program, RunOptions(clock=watermark, since=frontier, is_over=over))
            self._run_parts(run, matches, stretches, repeats, found, first, last)
        return found

    def _repeats(self, plan: Plan, stretches: _Stretches) -> np.ndarray:
        """int64: how often each row is read: once, and before that once for each left-out row that
        must be seen."""
        positions = stretches.events.positions
        repeats: np.ndarray = np.ones(len(positions), np.int64)
        if plan.source.relevant is not None:
            return repeats
        gaps = np.diff(positions, prepend=0) - 1
        gaps[stretches.starts] = 0
        if self._in_events:
            window = plan.matching.window
            assert window is not None
            if (
                plan.matching.reaches or plan.choice.deadlines
            ):  # events before the window are kept; a window outlasts no gap
                repeats += np.minimum(gaps, int(window.size) + 1)
                return repeats
            if (np.add.reduceat(gaps, stretches.starts) > window.size).any():
                raise self._states.damaged("an event is too old for the window")
            repeats += gaps
            return repeats
        repeats += np.minimum(gaps, 1)
        return repeats

    def _run_parts(
        self,
        run: Run,
        matches: list[pa.RecordBatch],
        stretches: _Stretches,
        repeats: np.ndarray,
        found: _Found,
        first: int,
        last: int,
    ) -> None:
        start = int(stretches.starts[first])
        end = int(stretches.starts[last]) if last < len(stretches.starts) else len(repeats)
        times_read = repeats[start:end]
        index = np.repeat(np.arange(start, end), times_read)
        places = np.cumsum(times_read) - 1  # of the events themselves
        # A row that stands for the rows before an event is a copy of it, so that times never fall.
        absent = np.ones(len(index), np.bool_)
        absent[places] = False
        own_starts = stretches.starts[first:last] - start
        starts = places[own_starts] - (times_read[own_starts] - 1)
        events = stretches.events
        positions = events.positions[index]
        if self._in_events:
            # The rows before an event have the positions before it.
            positions -= np.repeat(places, times_read) - np.arange(len(index))
        whole = end - start == len(index) == len(repeats)
        if stretches.batch is None or stretches.codes is None:
            rows = events.rows if whole else self._layout.taken(events.rows, index)
            read, codes = self._events(rows, positions), self._layout.codes(rows)
        else:
            read = stretches.batch if whole else stretches.batch.take(pa.array(index))
            codes = stretches.codes[index]
        pushed = Stretches(
            read,
            codes,
            positions,
            starts,
            stretches.silent[index],
            absent,
            stretches.contexts[first:last],
            None if stretches.known is None else stretches.known.of_parts(first, last),
            None if stretches.kept is None else stretches.kept[first:last],
            None if stretches.before is None else stretches.before[first:last],
        )
        matches += run.push_stretches(pushed)
        told = run.behind(pushed)
        found.matters[start:end] = told.matters[places]
        found.firsts[first:last] = told.firsts
        if pushed.known is not None:
            found.after[first:last] = pushed.known.after
            if pushed.known.until is not None:
                found.firsts[first:last] = pushed.known.until
        if self._has_contexts:
            found.contexts[start:end] = told.contexts[places]
            found.behind[first:last] = told.behind
        if self._own_clock:
            found.values[start:end] = told.keys[places]

    def _events(self, rows: Rows, positions: np.ndarray) -> pa.RecordBatch:
        names = [field.name for field in self._layout.fields]
        columns = self._order.columns(rows)
        if self._counted is not None:
            columns[names.index(self._counted)] = pa.array(positions)
        return pa.RecordBatch.from_arrays(columns, names)

    def _check_clock(
        self, known: KnownKeys, parts: Parts, stretches: _Stretches, found: _Found
    ) -> None:
        """Raises EventError if the attribute that the window is measured on has fallen."""
        own = np.flatnonzero(~stretches.silent)
        with_events, places = np.unique(stretches.events.parts[own], return_index=True)
        firsts = own[places]
        before = np.where(parts.goes_on, known.values["value"][parts.keys], NEVER)[with_events]
        if (found.values[firsts] < before).any():
            raise EventError(
                f"query {self._plan.name!r}: WITHIN is measured on "
                f"{self._plan.window_attribute!r}, which falls from one event of a partition to "
                "the next: order the events by it, or measure on another attribute"
            )

    # --- what stays -------------------------------------------------------------------------------

    def _records(
        self,
        known: KnownKeys,
        parts: Parts,
        read: np.ndarray,
        found: _Found | None,
        watermark: int,
    ) -> KeyRecords:
        """What is known of the partitions now; `read`: the parts that `found` is about."""
        old = known.values.take(parts.keys)
        values = np.where(parts.goes_on, old, unknown_keys(1, self._layout))
        values["position"] += parts.counts
        values["frontier"] = np.maximum(watermark, old["frontier"])
        values["last"] = np.where(parts.counts > 0, parts.ends, old["last"])
        values["since"] = np.where(parts.goes_on, old["since"], parts.begins)
        if found is not None:
            values["first"][read] = found.firsts
            values["after"][read] = found.after
            if found.kept is not None:
                values[KEPT_ROWS][read] = found.kept
            if self._has_contexts:
                values["context"][read] = found.behind
            if self._own_clock:
                values["value"][read] = found.values[found.ends]
        is_last = np.flatnonzero(np.append(np.diff(parts.keys) > 0, True))
        keys = self._layout.of_keys.taken(known.rows(), parts.keys[is_last])
        return KeyRecords(keys, values.take(is_last))


def _with_due(parts: Parts, due: np.ndarray, watermark: int) -> Parts:
    """The parts, with those of the partitions (int64) in which deadlines may have passed."""
    if not len(due):
        return parts
    due = np.unique(due)
    more = np.setdiff1d(due, parts.keys)
    none, times = np.zeros(len(more), np.int64), np.full(len(more), watermark)
    columns = (more, np.ones(len(more), np.bool_), none, times, times, none.astype(np.bool_))
    joined = Parts(*(np.concatenate(pair) for pair in zip(parts, columns, strict=True)))
    joined = joined.taken(np.argsort(joined.keys, kind="stable"))
    return joined._replace(due=np.isin(joined.keys, due) & joined.goes_on)


def _part_of(
    stretches: _Stretches, index: np.ndarray | None, due: np.ndarray, *, waits: bool
) -> tuple[np.ndarray, _Stretches] | None:
    """The rows (int64) that a query reads of stretches, and these; None: it has nothing to do.

    index: int64, the rows that can matter to it; None: all. Only parts with new events among them
    are read, and if matches wait for a deadline, those that are due (bool[parts]).
    """
    if index is None:
        index = np.arange(len(stretches.silent))
    parts = stretches.events.parts[index]
    is_read = np.zeros(len(stretches.starts), np.bool_)
    is_read[parts[~stretches.silent[index]]] = True
    if waits:
        is_read |= due
    chosen = is_read[parts]
    index, parts = index[chosen], parts[chosen]
    if not len(index):
        return None
    begins = np.diff(parts, prepend=-1) != 0
    starts = np.flatnonzero(begins)
    events = _Events(stretches.events.rows, stretches.events.positions[index], begins.cumsum() - 1)
    contexts = np.zeros(len(starts), np.int64)
    return index, _Stretches(events, starts, stretches.silent[index], contexts, None, None)


def less(times: np.ndarray | np.int64, length: int) -> np.ndarray:
    """int64: times minus a length, at least `ALWAYS`."""
    found: np.ndarray = np.maximum(times, ALWAYS + length) - length
    return found


def _pieces(starts: np.ndarray, repeats: np.ndarray) -> Iterator[tuple[int, int]]:
    """Parts to run together, as (first, one after the last)."""
    if int(repeats.sum()) <= _ROWS_AT_ONCE:
        yield 0, len(starts)
        return
    read = np.add.reduceat(repeats, starts)
    first, rows = 0, 0
    for part, of_part in enumerate(read.tolist()):
        if rows and rows + of_part > _ROWS_AT_ONCE:
            yield first, part
            first, rows = part, 0
        rows += of_part
    yield first, len(starts)

"""Runs the rows of a bucket after the kept rows of their partitions.

A partition keeps the rows from its first start that is not decided, and those before it that
conditions and measures read. What has been returned behind this start is not kept anywhere: the
kept rows alone, up to the watermark before, give it once more. So nothing has to be written when a
match is returned. With PAST LAST ROW nothing behind it can have been returned, and nothing is run
twice.

Positions are numbers of the bucket's rows, not of a partition's. So a partition of which nothing is
kept needs no record either: its later rows have greater positions than all that were kept of it.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from celc_runtime.program import Program
from celc_runtime.row_pattern.passes import LENGTH, PARTITION
from celc_runtime.row_pattern.passes import START as MATCH_START
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.streams.decided import (
    DecidingRun,
    Since,
    is_closed_by_within,
    reads_numbers,
    rows_before,
)
from celc_runtime.row_pattern.streams.reading import (
    COVERED,
    EMPTY,
    FLAGS,
    NUMBER,
    SOME_DONE,
    START,
    RowSort,
)
from celc_runtime.stream.one_bucket.bucket import BucketReader
from celc_runtime.stream.one_bucket.bucket_run import BucketRun, Parts
from celc_runtime.stream.one_bucket.known_keys import KnownKeys, merged_keys
from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.stored.key_table import grouped
from celc_runtime.stream.stored.known_starts import has_ended
from celc_runtime.stream.stored.rows import RowLayout, Rows
from celc_runtime.stream.stored.state import KEPT, KEYS, BucketState, Segment, StateFormat
from celc_runtime.stream.stored.state_rows import (
    KEPT_ROWS,
    KeptEvents,
    KeyRecords,
    taken_events,
    taken_records,
    unknown_keys,
)


class PatternReader(BucketReader):
    """Advances the buckets of a query from one micro-batch to the next."""

    def __init__(
        self, program: RowProgram, reading: Program, layout: RowLayout, states: StateFormat
    ) -> None:
        super().__init__(reading, layout, states)
        self._order = RowSort(program.plan, reading.plan, layout)
        self._run = PatternRun(program, reading, layout, states, self._order)
        self._waits = True  # for the end of the stream
        if is_closed_by_within(program.plan):
            self._window_length = program.plan.within

    def _merge(self, state: BucketState, segments: Segments, watermark: int | None) -> None:
        super()._merge(state, segments, watermark)
        # A large segment of which little is alive would wait long for others as large.
        kept, keys = state.of_kind(KEPT), state.of_kind(KEYS)
        if self._window_length is None and _is_old(kept, state):
            self._merge_kept(state, segments, kept, 0)
        if _is_old(keys, state):
            self._merge_keys(segments, keys, watermark)

    def _merge_keys(self, segments: Segments, due: list[Segment], watermark: int | None) -> None:
        is_oldest = due[0] is segments.of_kind(KEYS)[0]
        records = merged_keys(self._layout, [segments.keys(s) for s in due])
        if is_oldest:
            # No older record of these partitions is left that would count again.
            left = np.flatnonzero(records.values[KEPT_ROWS][:, FLAGS] & EMPTY == 0)
            records = taken_records(self._layout, records, left)
        for segment in due:
            segments.remove(segment)
        segments.add_keys(records)


_OLD = 256  # segments
"""When this number of segments has come after a segment, its live rows are written again and the
dead ones are dropped. So a live row is written once more for every 256 segments."""


def _is_old(found: list[Segment], state: BucketState) -> bool:
    return bool(found) and found[0].number + _OLD < state.next_segment


class _Rows(NamedTuple):
    """Kept rows and new ones, partition by partition."""

    rows: Rows
    positions: np.ndarray  # int64
    kept: np.ndarray  # bool[rows]
    edges: np.ndarray  # int64[partitions + 1]


class PatternRun(BucketRun):
    """Runs rows of a query's buckets, and keeps those that later matches can read."""

    def __init__(
        self,
        program: RowProgram,
        reading: Program,
        layout: RowLayout,
        states: StateFormat,
        order: RowSort,
    ) -> None:
        super().__init__(reading, layout, states, order, None, None, None)
        self._rows_program = program
        self._sort = order
        self._before = rows_before(program.plan)
        self._is_numbered = reads_numbers(program.plan)

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
        """Run rows; the arguments are those of `BucketRun.run`."""
        is_met = np.zeros(len(known.values), np.bool_)
        is_met[codes] = True
        step.events, step.keys = len(codes), int(np.count_nonzero(is_met))
        is_met[due] = True
        keys, places = np.flatnonzero(is_met), np.cumsum(is_met) - 1
        positions = np.empty(len(codes), np.int64)
        positions[order] = state.next_event + np.arange(len(codes))
        state.next_event += len(codes)
        new = KeptEvents(rows, positions, np.zeros(0, np.uint16))
        self._advance(step, state, segments, known, keys, new, places[codes], order, watermark)

    def settle(
        self, step: Step, state: BucketState, segments: Segments, known: KnownKeys, watermark: int
    ) -> None:
        """Return what the end of the stream decides in partitions without new rows."""
        nothing = KeptEvents(self._layout.nothing, np.zeros(0, np.int64), np.zeros(0, np.uint16))
        keys, none = np.arange(len(known.values)), np.zeros(0, np.int64)
        self._advance(step, state, segments, known, keys, nothing, none, none, watermark)

    def _advance(
        self,
        step: Step,
        state: BucketState,
        segments: Segments,
        known: KnownKeys,
        keys: np.ndarray,
        new: KeptEvents,
        new_parts: np.ndarray,
        order: np.ndarray,
        watermark: int,
    ) -> None:
        """Find what the rows of partitions decide now. keys: int64, their numbers in `known`;
        new_parts: int64[rows], the partition of each new row, by its place in `keys`; order:
        int64[rows], an order in which the new rows of each partition are in theirs."""
        begun = time.perf_counter_ns()
        is_known = known.is_known[keys]
        parts = Parts.of_keys(keys, is_known)
        read = self._read(state, segments, known, parts, new, new_parts, order)
        records = np.where(is_known, known.values[keys], unknown_keys(1, self._layout))
        since = _since(records[KEPT_ROWS], is_known, read)
        sorted_by = time.perf_counter_ns()
        clock = None if has_ended(watermark) else watermark
        going, some_done = self._decide(step, read, since, records, state.frontier, clock)
        taken = time.perf_counter_ns() - sorted_by
        first_kept = np.maximum(going.rows - self._before, read.edges[:-1])
        of_parts = np.repeat(np.arange(len(keys)), np.diff(read.edges))
        stays = np.arange(len(of_parts)) >= first_kept[of_parts]
        chosen = np.flatnonzero(stays & ~read.kept)
        together = KeptEvents(read.rows, read.positions, new.contexts)
        segments.add_kept(taken_events(self._layout, together, chosen))
        after = np.append(read.positions, state.next_event)
        ends = read.edges[1:]
        kept = records[KEPT_ROWS]
        kept[:, NUMBER] = going.numbers
        for place, row in ((START, going.rows), (COVERED, going.covered)):
            kept[:, place] = np.where(row < ends, after[np.minimum(row, ends)], state.next_event)
        is_empty = first_kept >= ends
        forgotten = is_empty & (not self._is_numbered or kept[:, NUMBER] == 0)
        kept[:, FLAGS] = SOME_DONE * some_done + EMPTY * forgotten
        records["first"] = np.where(is_empty, state.next_event, after[np.minimum(first_kept, ends)])
        records["frontier"] = np.maximum(watermark, records["frontier"])
        told = np.flatnonzero(is_known | ~forgotten)
        names = self._layout.of_keys.taken(known.rows(), keys[told])
        segments.add_keys(KeyRecords(names, records.take(told)))
        step.kernel_time += taken
        step.sort_time += time.perf_counter_ns() - begun - taken

    def _read(
        self,
        state: BucketState,
        segments: Segments,
        known: KnownKeys,
        parts: Parts,
        new: KeptEvents,
        new_parts: np.ndarray,
        order: np.ndarray,
    ) -> _Rows:
        kept, kept_parts = self._kept(state, segments, known, parts)
        rows = self._layout.joined([r for r in (kept.rows, new.rows) if len(r.records)])
        count = len(kept_parts)
        by_part, edges = grouped(np.concatenate([kept_parts, new_parts[order]]), len(parts.keys))
        # Rows are copied once, and not into each of the two orders.
        by_part = np.concatenate([np.arange(count), order + count])[by_part]
        positions = np.concatenate([kept.positions, new.positions])[by_part]
        found = _Rows(self._layout.taken(rows, by_part), positions, by_part < count, edges)
        rises = np.diff(positions) > 0
        rises[edges[1:-1][(edges[1:-1] > 0) & (edges[1:-1] < len(positions))] - 1] = True
        if not rises.all():
            raise self._states.damaged("the positions of a partition do not ascend")
        return found

    def _decide(
        self,
        step: Step,
        read: _Rows,
        since: Since,
        records: np.ndarray,
        clock_before: int | None,
        clock: int | None,
    ) -> tuple[Since, np.ndarray]:
        """Add to `step` what is decided and has not been returned before. Returns where partitions
        go on, and bool[partitions], whether something behind that has been returned."""
        none = np.zeros(len(read.edges) - 1, np.bool_)
        if not len(read.positions):
            return since, none
        columns = self._sort.by_number(read.rows)
        bits = self._sort.found(read.rows)
        run = DecidingRun(self._rows_program, columns, read.edges, since, clock, bits)
        told = self._told_before(read, since, records, clock_before)
        starts = []
        for matches, variables in run.matches():
            keys = _keys(matches)
            starts.append(matches[:, [PARTITION, MATCH_START]].copy())
            chosen = matches[~np.isin(keys, told)] if len(told) else matches
            batch = run.result(chosen, variables)
            if len(batch):
                step.matches.append(batch)
        going = run.going_on
        done = none.copy()
        for part, start in map(np.transpose, starts):
            done[part[start >= going.rows[part]]] = True
        return going, done

    def _told_before(
        self,
        read: _Rows,
        since: Since,
        records: np.ndarray,
        clock: int | None,
    ) -> np.ndarray:
        """int64: the matches that the kept rows gave before, as `_keys`."""
        flags = records[KEPT_ROWS][:, FLAGS]
        parts = np.flatnonzero((flags > 0) & (flags & SOME_DONE > 0))
        if not len(parts):
            return np.zeros(0, np.int64)
        of_rows = np.repeat(np.arange(len(flags)), np.diff(read.edges))
        is_part = np.zeros(len(flags), np.bool_)
        is_part[parts] = True
        index = np.flatnonzero(read.kept & is_part[of_rows])
        counts = np.bincount(of_rows[index], minlength=len(flags))[parts]
        edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        moved = edges[:-1] - read.edges[parts]
        before = Since(
            since.rows[parts] + moved, since.numbers[parts], since.covered[parts] + moved
        )
        rows = self._layout.taken(read.rows, index)
        run = DecidingRun(
            self._rows_program,
            self._sort.by_number(rows),
            edges,
            before,
            clock,
            self._sort.found(rows),
        )
        found = [np.zeros(0, np.int64)]
        for matches, _ in run.matches():
            there = matches.copy()
            there[:, MATCH_START] -= edges[there[:, PARTITION]]
            there[:, PARTITION] = parts[there[:, PARTITION]]
            there[:, MATCH_START] += read.edges[there[:, PARTITION]]
            found.append(_keys(there))
        return np.concatenate(found)


def _since(kept: np.ndarray, is_known: np.ndarray, read: _Rows) -> Since:
    """Where partitions go on, as rows of those that are read."""
    edges = read.edges
    of_rows = np.repeat(np.arange(len(kept)), np.diff(edges))

    def row_of(place: int) -> np.ndarray:
        before = read.positions < kept[of_rows, place]
        sums = np.concatenate([[0], np.cumsum(before)])
        found: np.ndarray = edges[:-1] + sums[edges[1:]] - sums[edges[:-1]]
        return np.where(is_known, found, edges[:-1])

    numbers = np.where(is_known, kept[:, NUMBER], 0)
    return Since(row_of(START), numbers, row_of(COVERED))


def _keys(matches: np.ndarray) -> np.ndarray:
    """int64: what tells matches apart, and unmatched rows."""
    return 2 * matches[:, MATCH_START] + (matches[:, LENGTH] < 0)

"""Finds the near misses of a bucket's events, start by start, when nothing can change them.

Events are kept as they come, and nothing is run for them. When the watermark has passed what can
matter to a start (`reading.Lengths`), its partition is read: the near misses of the kept events are
those of the input for the starts that are due, and only these are returned. A partition's record
says up to which start that has been done. So a restart or a longer micro-batch changes nothing, and
no rows have to be kept.

Rejected: the bent queries as units of their own, each with its events and its matches that wait for
those of the query. Their matches would have to be kept until all others of their start are known,
in a form of their own, and the kept events of a partition would be read as often.
"""

from __future__ import annotations

import time
import warnings
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.chain.streams.near.reading import NearUnit, lengths_of
from celc_runtime.many.near.nearest import numbered_parts
from celc_runtime.many.near.on_spark import as_on_spark
from celc_runtime.plan.errors import EventWarning
from celc_runtime.stream.formats import StreamFormats
from celc_runtime.stream.one_bucket.bucket import BucketReader
from celc_runtime.stream.one_bucket.bucket_run import BucketRun, Parts, less
from celc_runtime.stream.one_bucket.event_order import EventSort
from celc_runtime.stream.one_bucket.known_keys import KnownKeys
from celc_runtime.stream.one_bucket.segments import Segments
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.stored.key_table import grouped
from celc_runtime.stream.stored.known_starts import has_ended, known_starts
from celc_runtime.stream.stored.rows import Rows
from celc_runtime.stream.stored.state import BucketState
from celc_runtime.stream.stored.state_rows import KeptEvents, KeyRecords, taken_events

_NO_CONTEXTS = np.zeros(0, np.uint16)


class NearReader(BucketReader):
    """Advances the buckets of near misses from one micro-batch to the next."""

    def __init__(self, unit: NearUnit, formats: StreamFormats) -> None:
        super().__init__(unit.query, formats.events, formats.states)
        self._run = NearRun(unit, formats, self._order)
        self._waits = True
        self._start_length = lengths_of(unit.near).known_after


class _Part(NamedTuple):
    """Kept events, partition by partition."""

    rows: Rows
    positions: np.ndarray  # int64
    times: np.ndarray  # int64
    edges: np.ndarray  # int64[partitions + 1]


class NearRun(BucketRun):
    """Keeps the events of buckets, and finds the near misses of starts that are due."""

    def __init__(self, unit: NearUnit, formats: StreamFormats, order: EventSort) -> None:
        super().__init__(unit.query, formats.events, formats.states, order, None, None, None)
        lengths = lengths_of(unit.near)
        self._unit = unit
        self._waits = self._looks_back = True
        self._start_length = lengths.known_after
        self._before = lengths.before

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
        """Keep events; the arguments are those of `BucketRun.run`."""
        begun = time.perf_counter_ns()
        codes = codes[order]
        parts = self._parts(known, self._layout.values(rows, self._order.time)[order], codes)
        step.events, step.keys = len(codes), int(np.count_nonzero(np.diff(parts.keys)) + 1)
        events, read = self._relevant(state, known, rows, order, parts)
        segments.add_kept(KeptEvents(events.rows, events.positions, _NO_CONTEXTS))
        segments.add_keys(self._records(known, parts, read, None, watermark))
        step.sort_time += time.perf_counter_ns() - begun

    def settle(
        self, step: Step, state: BucketState, segments: Segments, known: KnownKeys, watermark: int
    ) -> None:
        """Return the near misses of the starts that the watermark has passed."""
        begun = time.perf_counter_ns()
        count = len(known.values)
        parts = Parts.of_keys(np.arange(count), np.ones(count, np.bool_))
        read = self._read(state, segments, known, parts)
        border = self._border(watermark)
        starts = known_starts(known.values, read.positions, read.times, read.edges, border)
        assert starts.until is not None
        due = self._due_parts(read, starts.since, starts.until)
        found = self._near_misses(due, starts.since, starts.until, watermark)
        if len(found):
            step.matches += found.combine_chunks().to_batches()
        values = known.values.copy()
        values["frontier"] = np.maximum(watermark, values["frontier"])
        values["first"] = starts.until
        segments.add_keys(KeyRecords(known.rows(), values))
        step.kernel_time += time.perf_counter_ns() - begun

    def _read(
        self, state: BucketState, segments: Segments, known: KnownKeys, parts: Parts
    ) -> _Part:
        kept, of_rows = self._kept(state, segments, known, parts)
        by_part, edges = grouped(of_rows, len(parts.keys))
        kept = taken_events(self._layout, kept, by_part)
        rises = np.diff(kept.positions) > 0
        rises[edges[1:-1] - 1] = True
        if not rises.all():
            raise self._states.damaged("the positions of a partition do not ascend")
        times = self._layout.values(kept.rows, self._order.time)
        return _Part(kept.rows, kept.positions, times, edges)

    def _due_parts(self, read: _Part, since: np.ndarray, until: np.ndarray) -> _Part:
        """What the starts from position `since` to before `until` of each part ask for."""
        of_rows = np.repeat(np.arange(len(since)), np.diff(read.edges))
        is_due = (read.positions >= since[of_rows]) & (read.positions < until[of_rows])
        first = np.full(len(since), np.iinfo(np.int64).max)
        np.minimum.at(first, of_rows[is_due], read.times[is_due])
        index = np.flatnonzero(read.times >= less(first, self._before)[of_rows])
        counts = np.bincount(of_rows[index], minlength=len(since))
        edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = self._layout.taken(read.rows, index)
        return _Part(rows, read.positions[index], read.times[index], edges)

    def _near_misses(
        self, read: _Part, since: np.ndarray, until: np.ndarray, watermark: int
    ) -> pa.Table:
        """The near misses of the starts from position `since` to before `until` of each part."""
        unit, near = self._unit, self._unit.near
        options: dict[str, object] = {}
        if near.plan.waits:
            options = {"at_end": "closed"} if has_ended(watermark) else {"clock": watermark}
        table = self._table(read)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)  # of rows that a stream reads again
            found = near.of_table(unit.given, table, **options)
        of_found = self._parts_of(found, read)
        moved = read.positions[read.edges[of_found]]
        begins = found["start_pos"].to_numpy() + moved
        index = np.flatnonzero((begins >= since[of_found]) & (begins < until[of_found]))
        found = found.take(pa.array(index))
        if near.plan.positions:
            found = _moved(found, moved[index], near.plan.shown)
        return as_on_spark(near.plan, found)

    def _parts_of(self, found: pa.Table, read: _Part) -> np.ndarray:
        """int64[near misses]: their partitions."""
        parts = np.flatnonzero(np.diff(read.edges) > 0)
        names = self._unit.near.answer.plan.source.key_columns
        rows = self._layout.taken(read.rows, read.edges[parts])
        columns = self._events(rows, read.positions[read.edges[parts]])
        keys = found.select(names)
        firsts = [columns.column(name) for name in self._plan.source.key_columns]
        of_parts = pa.table(firsts, names=names).cast(keys.schema) if names else keys
        numbers = numbered_parts([of_parts, keys], len(parts) + len(found))
        places = np.zeros(len(numbers), np.int64)
        places[numbers[: len(parts)]] = parts
        of_found: np.ndarray = places[numbers[len(parts) :]]
        return of_found

    def _table(self, read: _Part) -> pa.Table:
        """Events as they are in the input."""
        source = self._plan.source
        table = pa.Table.from_batches([self._events(read.rows, read.positions)])
        table = table.drop_columns([*source.chosen_columns])
        codes = self._layout.codes(read.rows)
        streams, types = (np.array(one) for one in zip(*source.declared_types, strict=True))
        if source.type_name not in table.column_names:
            table = table.append_column(source.type_name, pa.array(types[codes]))
        if source.stream_column:
            table = table.append_column("stream", pa.array(streams[codes]))
        return table


def _moved(found: pa.Table, by: np.ndarray, labels: tuple[str, ...]) -> pa.Table:
    """Near misses with later positions."""
    for name in ("start_pos", "end_pos"):
        place = found.column_names.index(name)
        found = found.set_column(place, name, pa.array(found[name].to_numpy() + by))
    for name in labels:
        if name not in found.column_names:
            continue
        place, column = found.column_names.index(name), found[name].combine_chunks()
        events = column.values
        moved = np.zeros(len(events), np.int64)
        counts = np.diff(column.offsets.to_numpy())
        start = int(column.offsets[0].as_py())
        moved[start : start + int(counts.sum())] = np.repeat(by, counts)
        arrays = [
            pa.array(events.field(n).to_numpy() + moved) if one.name == "pos" else events.field(n)
            for n, one in enumerate(events.type)
        ]
        events = pa.StructArray.from_arrays(arrays, fields=list(events.type))
        mask = column.is_null() if column.null_count else None
        lists = pa.ListArray.from_arrays(column.offsets, events, type=column.type, mask=mask)
        found = found.set_column(place, found.schema.field(name), lists)
    return found

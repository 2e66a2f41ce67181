"""Packing: the rows of a task become one value for each bucket, before Spark shuffles them.

Rejected: one row for each event, because the row interface makes Python objects of every value, and
pandas has no NULL in a column of whole numbers.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.event_types import type_numbers
from celc_runtime.arrow.events.partition_keys import with_keys
from celc_runtime.arrow.events.paths import received
from celc_runtime.arrow.events.possible_times import WrongTime, possible_times
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, Rows
from celc_runtime.rules.inner import over_events
from celc_runtime.rules.matching import Events, pair_batches
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.formats import StreamOptions, row_layout
from celc_runtime.stream.one_bucket.known_keys import relevant_types
from celc_runtime.stream.rules import all_concern, stream_program
from celc_runtime.stream.stored.blocks import IN_TIME, TOO_FAR, block_of
from celc_runtime.stream.stored.key_table import grouped, hashes_of
from celc_runtime.stream.stored.rows import Keys, RowLayout
from celc_runtime.stream.stored.rows import Rows as PackedRows

PACKED_DDL = "bucket INT, events BINARY"

ROWS_AT_ONCE = 1 << 18
"""Rows that are packed together at least: each value has a fixed cost in Spark."""

PACKED_SCHEMA = pa.schema([("bucket", pa.int32()), ("events", pa.binary())])


def packed(
    program: Program,
    options: StreamOptions,
    batches: Iterable[pa.RecordBatch],
    rules: Rows | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a task, as values of bytes for buckets.

    rules: the rows of a query FOR EACH; each of them gets the events that can concern it.
    """
    plan = stream_program(program).plan
    packer = Packer(plan, options)
    parts: list[Part] = []
    count = 0
    for batch in map(received, batches):
        if not len(batch):
            continue
        read = _read(program.plan if rules is None else over_events(program.plan), options, batch)
        for one in [read] if rules is None else _for_each(all_concern(program.plan), rules, read):
            parts.append(_encoded(plan, packer.layout, options, one))
            count += len(one.codes)
            if count >= ROWS_AT_ONCE:
                yield packer.packed(parts)
                parts, count = [], 0
    if parts:
        yield packer.packed(parts)


class Part(NamedTuple):
    """The events of a batch."""

    rows: PackedRows
    ahead: np.ndarray  # bool, which events are too far ahead of the clock
    undeclared: int  # the number of further rows, of undeclared types


class _Read(NamedTuple):
    """Conforming events."""

    events: pa.RecordBatch
    codes: np.ndarray  # int64, the numbers of their types
    ahead: np.ndarray  # bool, which events are too far ahead of the clock
    undeclared: int  # the number of further rows, of undeclared types


def _read(plan: Plan, options: StreamOptions, batch: pa.RecordBatch) -> _Read:
    """A batch without the rows of undeclared types."""
    ahead = np.zeros(len(batch), np.bool_)
    if options.ahead:
        place = batch.schema.get_field_index(options.ahead)
        ahead = np.asarray(batch.column(place).to_numpy(zero_copy_only=False), np.bool_)
        batch = batch.remove_column(place)
    events = with_keys(plan, conforming(plan, batch))
    for name in plan.source.order_by:
        check_order(plan.name, name, events.column(name))
    if plan.source.uncertain is not None:
        possible_times(events, plan, partial(_wrong_time, plan))
    codes = type_numbers(plan, events, "an event of the stream")
    known = codes >= 0
    undeclared = int(np.count_nonzero(~known))
    if undeclared:
        events, codes, ahead = events.filter(pa.array(known)), codes[known], ahead[known]
    return _Read(events, codes, ahead, undeclared)


def encoded(plan: Plan, layout: RowLayout, options: StreamOptions, batch: pa.RecordBatch) -> Part:
    """The events of a batch of rows, in their order; rows of undeclared types are only counted."""
    return _encoded(plan, layout, options, _read(plan, options, batch))


def encoded_pairs(
    plan: Plan, layout: RowLayout, options: StreamOptions, pairs: pa.RecordBatch, codes: np.ndarray
) -> PackedRows:
    """Pairs of a row and an event as rows of the stream of pairs, whose plan and layout are given;
    codes: int64, the numbers of their types."""
    read = _Read(pairs, codes, np.zeros(len(codes), np.bool_), 0)
    return _encoded(plan, layout, options, read).rows


def _for_each(plan: Plan, rules: Rows, read: _Read) -> Iterator[_Read]:
    """Pairs of a row and an event that can concern it, as events of `over_pairs`."""
    count = len(read.codes)
    nowhere = np.zeros(count, np.int64)
    events = Events(read.events, read.codes.astype(np.int64), nowhere, nowhere)
    undeclared = read.undeclared
    # There may be no pairs: such a micro-batch checks the checkpoint too.
    for _, chosen, batch in pair_batches(plan, rules, events, ROWS_AT_ONCE):
        yield _Read(batch, read.codes[chosen], read.ahead[chosen], undeclared)
        undeclared = 0


def _encoded(plan: Plan, layout: RowLayout, options: StreamOptions, read: _Read) -> Part:
    events, codes, ahead, undeclared = read
    columns = {f.name: plain(events.column(f.name)) for f in layout.fields}
    keys = [f.name for f in layout.keys]
    idle = _idle(plan, options, codes)
    if idle is not None:
        # Only the place of such an event counts, so the other columns need no bytes.
        needed = {*plan.source.order_by, *plan.source.tiebreak, *keys}
        for name in columns.keys() - needed:
            columns[name] = pc.if_else(idle, pa.scalar(None, columns[name].type), columns[name])
    typed = [
        column if column.type == f.arrow_type else column.cast(f.arrow_type)
        for f, column in zip(layout.fields, columns.values(), strict=True)
    ]
    return Part(layout.encoded(typed, codes), ahead, undeclared)


def _idle(plan: Plan, options: StreamOptions, codes: np.ndarray) -> pa.Array | None:
    """bool[rows]: the events whose types cannot matter; None if their values are shown."""
    types = relevant_types(plan)
    if types is None or options.late == "side":
        return None
    idle = ~types[codes]
    return pa.array(idle) if idle.any() else None


class Packer:
    """Packs events for the buckets of a stream."""

    def __init__(
        self,
        plan: Plan,
        options: StreamOptions,
        labels: np.ndarray | None = None,
        spread: Sequence[str] | None = None,
    ) -> None:
        """labels: int32, of the buckets; None: those of a stream of one query. spread: the keys by
        which rows are spread over buckets, in their order; None: all."""
        self.layout = row_layout(plan, options.tiebreak_types)
        self._spread = None
        if spread is not None and [*spread] != [one.name for one in self.layout.keys]:
            keys = {one.name: one for one in self.layout.keys}
            self._spread = RowLayout((), [keys[name] for name in spread], 1)
        self._labels = labels_of(options.buckets) if labels is None else labels
        self.time = [field.name for field in self.layout.fields].index(plan.source.order_by[0])

    def packed(self, parts: Sequence[Part]) -> pa.RecordBatch:
        """A value for each bucket that has rows, and always one for bucket 0.

        There every micro-batch checks the checkpoint, and it has the counts that belong to no
        bucket.
        """
        layout = self.layout
        rows = layout.joined([part.rows for part in parts])
        ahead = np.concatenate([part.ahead for part in parts])
        undeclared = sum(part.undeclared for part in parts)
        count = len(self._labels)
        buckets = (hashes_of(self._keys_of(rows)) % np.uint64(count)).astype(np.int64)
        codes = 2 * buckets + np.where(ahead, TOO_FAR, IN_TIME)
        order, edges = grouped(codes, 2 * count)
        found, blocks = [], []
        for code, of_code in enumerate(layout.cut(layout.taken(rows, order), edges)):
            bucket, kind = divmod(code, 2)
            if len(of_code.records) or code == 0:
                extra = undeclared if code == 0 else 0
                block = block_of(layout, of_code, self.time, kind=kind, undeclared=extra)
                found.append(self._labels[bucket])
                blocks.append(block.data)
        arrays = [pa.array(found, pa.int32()), pa.array(blocks, pa.binary())]
        return pa.RecordBatch.from_arrays(arrays, schema=PACKED_SCHEMA)

    def _keys_of(self, rows: PackedRows) -> Keys:
        """What tells which bucket a row belongs to."""
        if self._spread is None:
            return self.layout.keys_of(rows)
        columns = dict(
            zip((one.name for one in self.layout.fields), self.layout.columns(rows), strict=True)
        )
        of_spread = [columns[one.name] for one in self._spread.keys]
        zeros = np.zeros(len(rows.records), np.int64)
        return self._spread.keys_of(self._spread.encoded(of_spread, zeros))


def check_order(query: str, name: str, column: pa.Array) -> None:
    """Raises EventError where a column of the order is NULL or NaN."""
    is_float = pa.types.is_floating(column.type)
    for what, wrong in (
        ("NULL", column.null_count),
        ("NaN", is_float and pc.any(pc.is_nan(column)).as_py()),
    ):
        if wrong:
            raise EventError(
                f"query {query!r}: the order column {name!r} is {what} in an event of the "
                "stream: filter such rows out before match_stream, or order by another column"
            )


def _wrong_time(plan: Plan, row: int, told: WrongTime) -> EventError:
    return EventError(f"query {plan.name!r}: {told.what} in an event of the stream: {told.mend}")

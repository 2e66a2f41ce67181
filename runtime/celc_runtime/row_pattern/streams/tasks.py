"""The functions that Spark's workers run for a stream, in the three steps of `celc_runtime.stream`:
pack, read, unpack; and `finished`, for the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import in_one_piece
from celc_runtime.program import Program
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.schemas import output_schema
from celc_runtime.row_pattern.streams.bucket import PatternReader
from celc_runtime.row_pattern.streams.early import with_found
from celc_runtime.row_pattern.streams.reading import formats_of, reading_of
from celc_runtime.row_pattern.tables import conforming_table
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.packing import ROWS_AT_ONCE, Packer, Part, check_order
from celc_runtime.stream.tasks import (
    BucketTask,
    filled,
    last_matches,
    options_of,
    refused_message,
    refused_schema,
    rows_in,
    with_kind,
)


def reading_with(program: RowProgram, options: StreamOptions) -> Program:
    """`reading_of` with the tiebreak columns of options."""
    return reading_of(program, options.tiebreak)


def task_of(program: RowProgram, options: StreamOptions) -> BucketTask:
    """The task of a worker."""
    reading = reading_with(program, options)
    formats = formats_of(reading, options)
    reader = PatternReader(program, reading, formats.events, formats.states)
    return BucketTask(reading, options, (formats, reader))


def packed(
    program: RowProgram, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of a task, as values of bytes for buckets."""
    reading = reading_with(program, options).plan
    packer = Packer(reading, options)
    parts: list[Part] = []
    count = 0
    for batch in batches:
        if not len(batch):
            continue
        parts.append(_part(program, packer, options, batch))
        count += len(batch)
        if count >= ROWS_AT_ONCE:
            yield packer.packed(parts)
            parts, count = [], 0
    if parts:
        yield packer.packed(parts)


def _part(
    program: RowProgram, packer: Packer, options: StreamOptions, batch: pa.RecordBatch
) -> Part:
    """The rows of a batch, in their order."""
    plan = program.plan
    ahead = np.zeros(len(batch), np.bool_)
    if options.ahead:
        marked = batch.column(batch.schema.get_field_index(options.ahead))
        ahead = np.asarray(marked.to_numpy(zero_copy_only=False), np.bool_)
    table = conforming_table(plan, pa.Table.from_batches([batch]), derived=True)
    given = {name: in_one_piece(table.column(name)) for name in table.column_names}
    for name in options.tiebreak:
        given.setdefault(name, in_one_piece(batch.column(name)))
    for number, one in enumerate(plan.order_by):
        name = plan.columns[one.column].name
        if number == 0 or one.nulls_first is None:
            check_order(plan.name, name, given[name])
    given = with_found(program, given, options.tiebreak, shown=options.late == "side")
    columns = [
        column if column.type == field.arrow_type else column.cast(field.arrow_type)
        for field in packer.layout.fields
        for column in (given[field.name],)
    ]
    return Part(packer.layout.encoded(columns, np.zeros(len(batch), np.int64)), ahead, 0)


def unpacked(
    program: RowProgram, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches as rows, and with late='side' also the rows that were not run."""
    reading = reading_with(program, options).plan
    of_refused = refused_message(reading, options)
    for batch in batches:
        found = rows_in(batch, "found", output_schema(program.plan))
        if found is not None:
            yield from _told(program, options, found.to_batches())
        refused = rows_in(batch, "refused", of_refused)
        if refused is not None:
            yield from filled(refused, _side_schema(program, options)).to_batches()


def finished(
    program: RowProgram, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What is decided when no more rows come, of states as `stream.tasks.finished` takes them."""
    for matches in last_matches(task_of(program, options), batches):
        yield from _told(program, options, matches)


def _told(
    program: RowProgram, options: StreamOptions, matches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in matches:
        if options.late != "side":
            yield batch
            continue
        schema = _side_schema(program, options)
        yield from with_kind(pa.Table.from_batches([batch]), schema, "match").to_batches()


def _side_schema(program: RowProgram, options: StreamOptions) -> pa.Schema:
    refused = refused_schema(reading_with(program, options).plan, options)
    return pa.schema([refused.field("kind"), *output_schema(program.plan), refused.field("event")])


STEPS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {function.__name__: function for function in (packed, unpacked, finished)}
)


def run_step(
    program: RowProgram,
    step: str,
    options: Mapping[str, Any],
    batches: Iterable[pa.RecordBatch],
) -> Any:
    """A step by its name, as workers run it."""
    return STEPS[step](program, options_of(options), batches)

"""The three functions that Spark's workers run for a stream, one after another.

*Packing* (`mapInArrow`): each batch of rows becomes one row for each partition in it, with the
partition's key and its events as bytes. *Reading* (`transformWithState`): each partition's events
join the waiting events, and the events that the watermark has passed are run; one row for each
partition has the counts, and the matches as bytes. *Unpacking* (`mapInArrow`): the matches become
columns.

So Spark shuffles, hands to Python and keeps bytes of celc: one row for each partition and task
instead of one for each event. Rejected: one row for each event, because the row interface makes
Python objects of every value, and pandas has no NULL in a column of whole numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.conforming import conforming
from celc_runtime.arrow.event_types import type_numbers
from celc_runtime.arrow.partition_keys import with_keys
from celc_runtime.arrow.paths import received
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import ARROW_TYPES, Plan
from celc_runtime.program import Program, Route
from celc_runtime.stream.partition import END_OF_TIME, PartitionReader, Step, key_layout, row_layout
from celc_runtime.stream.rows import RowLayout, Rows, groups, key_columns, row_bytes
from celc_runtime.stream.state import StateFormat

PACKED_DDL = "key BINARY, events BINARY"

STEP_DDL = (
    "events BIGINT, matches BIGINT, late BIGINT, ahead BIGINT, waiting BIGINT, kept BIGINT, "
    "found BINARY, refused BINARY"
)
"""The outcome of a partition in a micro-batch: counts, and as Arrow messages its matches and the
events that were not run."""

_IN_TIME, _TOO_FAR = 0, 1

_BLOCK = struct.Struct("<BI")  # _IN_TIME or _TOO_FAR, number of events

_PACKED_SCHEMA = pa.schema([("key", pa.binary()), ("events", pa.binary())])


class StreamOptions(NamedTuple):
    """How a query is run on a stream; sent to workers as a plain dictionary.

    tiebreak_types: the types of the tiebreak columns that are not attributes. key_ttl: in
    microseconds. has_types: whether rows have a column of event types. ahead: the column that says
    whether an event's time is too far ahead of the clock; empty: there is no such limit.
    """

    tiebreak_types: dict[str, str]
    late: str = "drop"
    key_ttl: int | None = None
    has_types: bool = True
    ahead: str = ""


class StreamFormats:
    """The layouts of a query's events, partitions and states."""

    def __init__(self, program: Program, options: StreamOptions) -> None:
        self.events: RowLayout = row_layout(program.plan, options.tiebreak_types)
        self.keys: RowLayout = key_layout(program.plan)
        self.states = StateFormat(
            program.plan, self.events, program.text, program.contexts, sees_all=program.sees_all
        )


# --- packing --------------------------------------------------------------------------------------


def packed(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """One row for each partition in each batch."""
    formats = StreamFormats(program, options)
    for batch in map(received, batches):
        if len(batch):
            found = _packed_batch(program.plan, formats, options, batch)
            if found:
                keys, blocks = zip(*found, strict=True)
                arrays = [pa.array(keys, pa.binary()), pa.array(blocks, pa.binary())]
                yield pa.RecordBatch.from_arrays(arrays, schema=_PACKED_SCHEMA)


def _packed_batch(
    plan: Plan, formats: StreamFormats, options: StreamOptions, batch: pa.RecordBatch
) -> list[tuple[bytes, bytes]]:
    ahead = np.zeros(len(batch), np.bool_)
    if options.ahead:
        place = batch.schema.get_field_index(options.ahead)
        ahead = np.asarray(batch.column(place).to_numpy(zero_copy_only=False), np.bool_)
        batch = batch.remove_column(place)
    events = with_keys(plan, conforming(plan, batch))
    for name in plan.order_by:
        _check_order(plan, name, events.column(name))
    codes = type_numbers(plan, events, "an event of the stream")
    known = codes >= 0
    if not known.all():
        events, codes, ahead = events.filter(pa.array(known)), codes[known], ahead[known]
    columns = [plain(events.column(f.name)) for f in formats.events.fields]
    columns = [
        column if column.type == f.arrow_type else column.cast(f.arrow_type)
        for f, column in zip(formats.events.fields, columns, strict=True)
    ]
    rows = formats.events.encoded(columns, codes)
    keys = key_columns([events.column(name) for name in plan.key_columns])
    by = [pa.array(ahead), *keys] if ahead.any() else keys
    order, edges = groups(by, len(events))
    first = pa.array(order[edges[:-1]])
    of_keys = formats.keys.encoded(
        [key.take(first) for key in keys], np.zeros(len(first), np.int64)
    )
    one_by_one = np.arange(len(first) + 1)
    parts = formats.events.cut(formats.events.taken(rows, order), edges)
    found = []
    for key, part, row in zip(
        formats.keys.cut(of_keys, one_by_one), parts, order[edges[:-1]].tolist(), strict=True
    ):
        kind = _TOO_FAR if ahead[row] else _IN_TIME
        block = _BLOCK.pack(kind, len(part.records)) + row_bytes(part)
        found.append((row_bytes(key), block))
    return found


def _check_order(plan: Plan, name: str, column: pa.Array) -> None:
    is_float = pa.types.is_floating(column.type)
    for what, wrong in (
        ("NULL", column.null_count),
        ("NaN", is_float and pc.any(pc.is_nan(column)).as_py()),
    ):
        if wrong:
            raise EventError(
                f"query {plan.name!r}: the order column {name!r} is {what} in an event of the "
                "stream: filter such rows out before match_stream, or order by another column"
            )


# --- reading --------------------------------------------------------------------------------------


class PartitionTask:
    """The steps of the operator's processor, without Spark's own objects."""

    def __init__(self, program: Program, options: StreamOptions) -> None:
        self._program = program
        self._options = options
        self._formats = formats = StreamFormats(program, options)
        self._reader = PartitionReader(
            program, formats.events, formats.states, key_ttl=options.key_ttl
        )

    def step(
        self, key: bytes, state: bytes | None, blocks: Sequence[bytes], watermark: int
    ) -> tuple[Step, dict[str, Any]]:
        """The step of a partition, and its row of the operator's output.

        `watermark` in milliseconds; 0: there is none yet.
        """
        arrived: list[Rows] = []
        ahead: list[Rows] = []
        for block in blocks:
            kind, count = _BLOCK.unpack_from(block)
            rows, _ = self._formats.events.read(block, _BLOCK.size, count, checked=False)
            (ahead if kind == _TOO_FAR else arrived).append(rows)
        step = self._reader.advance(key, state, arrived, 1000 * watermark or None)
        too_far = self._formats.events.joined(ahead)
        if self._options.late == "error":
            self._refuse(step.late, too_far, watermark)
        row = {
            "events": step.events,
            "matches": step.match_count,
            "late": len(step.late.records),
            "ahead": len(too_far.records),
            "waiting": step.waiting,
            "kept": step.kept,
            "found": _message(step.matches),
            "refused": None,
        }
        if self._options.late == "side" and (row["late"] or row["ahead"]):
            row["refused"] = self._refused(key, step.late, too_far)
        return step, row

    def _refuse(self, late: Rows, ahead: Rows, watermark: int) -> None:
        plan = self._program.plan
        for rows, what, remedy in (
            (late, "late: events up to its time have been run", "a longer watermark delay"),
            (ahead, "too far ahead of the clock (max_event_time_skew)", "a larger skew"),
        ):
            if len(rows.records):
                names = [f.name for f in self._formats.events.fields]
                columns = self._formats.events.columns(rows)
                time = columns[names.index(plan.order_by[0])][0]
                at = pa.scalar(1000 * watermark, pa.timestamp("us", tz="UTC"))
                raise EventError(
                    f"query {plan.name!r}: an event of {time} is {what}; the watermark is at {at} "
                    f"(choose {remedy}, late='drop' or late='side')"
                )

    def _refused(self, key: bytes, late: Rows, ahead: Rows) -> bytes:
        kinds = ["late"] * len(late.records) + ["ahead"] * len(ahead.records)
        rows = self._formats.events.joined([r for r in (late, ahead) if len(r.records)])
        schema = refused_schema(self._program.plan, self._options)
        columns = dict(
            zip(
                (f.name for f in self._formats.events.fields),
                self._formats.events.columns(rows),
                strict=True,
            )
        )
        plan = self._program.plan
        if plan.partition_by:
            of_key, _ = self._formats.keys.read(key, 0, 1)
            for f, column in zip(
                self._formats.keys.fields, self._formats.keys.columns(of_key), strict=True
            ):
                columns[f.name] = pa.repeat(column[0], len(kinds))
        types = plan.declared_types
        declared = [types[code] for code in self._formats.events.codes(rows)]
        columns[plan.type_name] = pa.array([name for _, name in declared])
        columns["stream"] = pa.array([stream for stream, _ in declared])
        event = schema.field("event").type
        struct = pa.StructArray.from_arrays(
            [columns[field.name] for field in event], fields=list(event)
        )
        batch = pa.RecordBatch.from_arrays([pa.array(kinds), struct], schema=schema)
        return bytes(batch.serialize())


def refused_schema(plan: Plan, options: StreamOptions) -> pa.Schema:
    """The columns of events that were not run: `kind` (late, ahead), and the event as a struct."""
    fields = []
    if options.has_types:
        fields.append(pa.field(plan.type_name, pa.string()))
    if plan.stream_column:
        fields.append(pa.field("stream", pa.string()))
    fields += [pa.field(a.name, ARROW_TYPES[a.type]) for a in plan.attributes]
    known = {field.name for field in fields}
    fields += [
        pa.field(f.name, f.arrow_type)
        for f in row_layout(plan, options.tiebreak_types).fields
        if f.name not in known
    ]
    return pa.schema([pa.field("kind", pa.string()), pa.field("event", pa.struct(fields))])


def _message(batches: Sequence[pa.RecordBatch]) -> bytes | None:
    if not batches:
        return None
    if len(batches) > 1:
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return bytes(batches[0].serialize())


# --- unpacking ------------------------------------------------------------------------------------


def unpacked(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches as rows, and with late='side' also the events that were not run."""
    schema = side_schema(program.plan, options) if options.late == "side" else program.output_schema
    of_refused = refused_schema(program.plan, options)
    for batch in batches:
        matches = [
            pa.ipc.read_record_batch(message.as_buffer(), program.output_schema)
            for message in batch.column("found")
            if message.is_valid
        ]
        if matches:
            table = pa.Table.from_batches(matches).combine_chunks()
            if options.late == "side":
                table = _with_kind(table, schema, "match")
            yield from table.to_batches()
        refused = [
            pa.ipc.read_record_batch(message.as_buffer(), of_refused)
            for message in batch.column("refused")
            if message.is_valid
        ]
        if refused:
            table = pa.Table.from_batches(refused).combine_chunks()
            yield from _filled(table, schema).to_batches()


def finished(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches that end in waiting events; the batches have rows of `key` and `state`."""
    formats = StreamFormats(program, options)
    reader = PartitionReader(program, formats.events, formats.states, key_ttl=options.key_ttl)
    for batch in batches:
        for key, state in zip(
            batch.column("key").to_pylist(), batch.column("state").to_pylist(), strict=True
        ):
            for matches in reader.advance(key, state, [], END_OF_TIME).matches:
                table = pa.Table.from_batches([matches])
                if options.late == "side":
                    table = _with_kind(table, side_schema(program.plan, options), "match")
                yield from table.to_batches()


def side_schema(plan: Plan, options: StreamOptions) -> pa.Schema:
    """The columns of matches and late events together."""
    refused = refused_schema(plan, options)
    return pa.schema([refused.field("kind"), *plan.output_schema(), refused.field("event")])


def _with_kind(table: pa.Table, schema: pa.Schema, kind: str) -> pa.Table:
    kinds = pa.array([kind] * len(table))
    return _filled(table.append_column("kind", kinds), schema)


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with NULL in the columns that it lacks."""
    columns = [
        (
            table.column(field.name)
            if field.name in table.schema.names
            else pa.nulls(len(table), field.type)
        )
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


# --- as Spark's workers run it --------------------------------------------------------------------


def packing_route(program: Program) -> Route:
    """The function before the shuffle: from options and batches of rows to packed batches."""
    return _route(program, "stream_packing_route", packed)


def task_route(program: Program) -> Route:
    """The function that makes the `PartitionTask` of a worker, from options."""
    return _route(program, "stream_task_route", PartitionTask)


def unpacking_route(program: Program) -> Route:
    """The function behind the operator: from options and its batches to batches of matches."""
    return _route(program, "stream_unpacking_route", unpacked)


def finishing_route(program: Program) -> Route:
    """The function of `finish`: from options and batches of states to batches of matches."""
    return _route(program, "stream_finishing_route", finished)


def _route(program: Program, name: str, function: Callable[..., Any]) -> Route:
    def run(program: Program, options: Mapping[str, Any], *batches: Any) -> Any:
        return function(program, options_of(options), *batches)

    return Route(program, name, run)


def check_state(program: Program, options: Mapping[str, Any], state: bytes) -> None:
    """Raises StateError where bytes are not a state of this query with these options."""
    StreamFormats(program, options_of(options)).states.read(state)


def options_of(values: Mapping[str, Any]) -> StreamOptions:
    """The options from the dictionary that is sent to workers."""
    return StreamOptions(**values)

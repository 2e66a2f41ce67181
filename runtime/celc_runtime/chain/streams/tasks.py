"""The functions that Spark's workers run for a stream of several queries, as in `stream.tasks`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.paths import received
from celc_runtime.chain.streams.bucket import Asked, ModuleStep
from celc_runtime.chain.streams.operators import Operator, Wanted, operator_of
from celc_runtime.chain.streams.unit_rows import UnitRows
from celc_runtime.engine.arena.nodes import NEVER
from celc_runtime.many.answers import QUERY
from celc_runtime.plan.errors import StateError
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.spark.worker.workers import settle, settled_after
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.packing import PACKED_SCHEMA, ROWS_AT_ONCE, Packer, Part, encoded
from celc_runtime.stream.processor import HEADER
from celc_runtime.stream.stored.blocks import IN_TIME, TOO_FAR, Block
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.texts import bytes_of, text_of
from celc_runtime.stream.tasks import (
    counts_of,
    filled,
    options_of,
    refuse,
    refused_events,
    refused_schema,
    with_kind,
    with_matches,
)

_UNIT = struct.Struct("<H")  # before each block: the number of the unit whose events it has
_INPUT = 0xFFFF  # or this: events as they are in the input, for late='side'


class ModuleTask:
    """The steps of the operator's processor, without Spark's own objects; as `BucketTask`."""

    text_of = staticmethod(text_of)
    bytes_of = staticmethod(bytes_of)

    def __init__(self, operator: Operator, options: StreamOptions) -> None:
        self._operator = operator
        self._options = options
        self._labels = {label: n for n, label in enumerate(labels_of(options.buckets).tolist())}
        self._reader = operator.reader(options)
        self._input = Packer(operator.input, options) if options.late == "side" else None

    def step(
        self,
        label: int,
        header: bytes | None,
        load: Callable[[int], bytes | None],
        blocks: Sequence[bytes],
        watermark: int,
    ) -> tuple[ModuleStep, list[dict[str, Any]]]:
        """The step of the bucket with a label, and its rows of the operator's output.

        watermark: in milliseconds; 0: there is none yet.
        """
        number = self._number(label)
        arrived: list[list[Block]] = [[] for _ in self._reader.units]
        ahead: list[list[Block]] = [[] for _ in self._reader.units]
        of_input: list[Block] = []
        for block in blocks:
            (unit,) = _UNIT.unpack_from(block)
            found = Block.of(block[_UNIT.size :])
            if unit == _INPUT:
                of_input.append(found)
            else:
                (arrived if found.kind == IN_TIME else ahead)[unit].append(found)
        clock = 1000 * watermark or None
        asked = self._asked(of_input, clock)
        step = self._reader.advance(number, header, load, arrived, clock, asked)
        too_far = [
            self._reader.counted(
                place, one.layout.joined([b.rows(one.layout) for b in ahead[place]])
            )
            for place, one in enumerate(self._reader.units)
        ]
        if self._options.late == "error":
            for place, one in enumerate(self._reader.units):
                plan = one.unit.program.plan
                refuse(plan, one.layout, step.late[place], too_far[place], watermark)
        received_blocks = [block for of_unit in (*arrived, *ahead) for block in of_unit]
        row = counts_of(
            _summed(step.units),
            received_blocks,
            sum(len(rows.records) for rows in step.late),
            sum(len(rows.records) for rows in too_far),
        )
        if self._input is not None:
            layout, plan = self._input.layout, self._operator.input
            far = layout.joined([b.rows(layout) for b in of_input if b.kind == TOO_FAR])
            assert step.late_input is not None
            row["late"], row["ahead"] = len(step.late_input.records), len(far.records)
            if row["late"] or row["ahead"]:
                row["refused"] = refused_events(plan, layout, self._options, step.late_input, far)
        answers = [(n, step.matches[name]) for n, name in enumerate(self._operator.outputs)]
        row["matches"] = sum(len(batch) for _, batches in answers for batch in batches)
        return step, with_matches(row, answers)

    def close(self) -> None:
        settle()

    def last_matches(
        self, label: int, header: bytes, load: Callable[[int], bytes | None]
    ) -> dict[str, list[pa.RecordBatch]]:
        """The matches of a bucket that end in waiting events, by query, when no more events
        come."""
        nothing: list[list[Block]] = [[] for _ in self._reader.units]
        step = self._reader.advance(self._number(label), header, load, nothing, END_OF_TIME)
        return {name: step.matches[name] for name in self._operator.outputs}

    def _asked(self, blocks: Sequence[Block], watermark: int | None) -> Asked | None:
        """The events as they are in the input that may be late; None: nobody asks for them."""
        if self._input is None:
            return None
        layout = self._input.layout
        rows = layout.joined([b.rows(layout) for b in blocks if b.kind == IN_TIME])
        times = layout.values(rows, self._input.time)
        behind = np.flatnonzero(times <= (NEVER if watermark is None else watermark))
        return Asked(layout, layout.taken(rows, behind), times[behind])

    def _number(self, label: int) -> int:
        number = self._labels.get(label)
        if number is None:
            raise StateError(
                f"queries {self._operator.name}: there is no bucket {label}: the checkpoint was "
                "begun with another number of buckets; name it (buckets=…), or begin a new "
                "checkpoint"
            )
        return number


def _summed(steps: Sequence[Step]) -> Step:
    """The counts of all units."""
    total = Step(late=steps[0].late)
    for step in steps:
        for name in ("events", "keys", "waiting", "kept", "pending", "known", "size"):
            setattr(total, name, getattr(total, name) + getattr(step, name))
        for name in ("sort_time", "kernel_time", "state_time"):
            setattr(total, name, getattr(total, name) + getattr(step, name))
    return total


# --- packing --------------------------------------------------------------------------------------


class ModulePacker:
    """Packs the rows of the tasks of an operator."""

    def __init__(self, operator: Operator, options: StreamOptions) -> None:
        self._operator = operator
        self._options = options
        self._packers: dict[int, Packer] = {}
        self._rows: dict[int, UnitRows] = {}
        for place, unit in enumerate(operator.units):
            packer = Packer(unit.program.plan, unit.options(options))
            self._packers[place] = packer
            self._rows[place] = UnitRows(unit, packer.layout, options)
        if options.late == "side":
            self._packers[_INPUT] = Packer(operator.input, options)

    def packed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a task, as values of bytes for buckets and units."""
        parts: dict[int, list[Part]] = {place: [] for place in self._packers}
        count = 0
        for batch in map(received, batches):
            if not len(batch):
                continue
            for place, of_unit in self._parts(batch):
                parts[place] += of_unit
            count += len(batch)
            if count >= ROWS_AT_ONCE:
                yield from self._packed(parts)
                parts, count = {place: [] for place in self._packers}, 0
        if count:
            yield from self._packed(parts)

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Iterable[Part]]]:
        options = self._options
        table = pa.Table.from_batches([batch])
        for place, packer in self._packers.items():
            if place == _INPUT:
                yield place, [encoded(self._operator.input, packer.layout, options, batch)]
                continue
            wanted = options.wanted[place] if options.wanted else ""
            rows = table.filter(table.column(wanted)) if wanted else table
            yield place, self._rows[place].of_input(rows)

    def _packed(self, parts: Mapping[int, list[Part]]) -> Iterator[pa.RecordBatch]:
        for place, of_unit in parts.items():
            if not of_unit:
                continue
            if place:
                # Rows of undeclared types are counted once.
                of_unit = [part._replace(undeclared=0) for part in of_unit]
            found = self._packers[place].packed(of_unit)
            events = [_UNIT.pack(place) + events.as_py() for events in found.column("events")]
            arrays = [found.column("bucket"), pa.array(events, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, schema=PACKED_SCHEMA)


def packed(
    operator: Operator, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of a task, as values of bytes for buckets and units."""
    return ModulePacker(operator, options).packed(batches)


# --- unpacking ------------------------------------------------------------------------------------


def unpacked(
    operator: Operator, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches as rows, and with late='side' also the events that were not run."""
    of_refused = refused_schema(operator.input, options) if options.late == "side" else None
    schema = answer_schema(operator, options)
    schemas = [operator.programs[name].output_schema for name in operator.outputs]
    for batch in batches:
        found: dict[str, list[pa.RecordBatch]] = {}
        numbers = batch.column("query").to_pylist()
        for number, message in zip(numbers, batch.column("found"), strict=True):
            if message.is_valid:
                rows = pa.ipc.read_record_batch(message.as_buffer(), schemas[number])
                found.setdefault(operator.outputs[number], []).append(rows)
        yield from _answers(operator, options, found)
        if of_refused is None:
            continue
        refused = [
            pa.ipc.read_record_batch(message.as_buffer(), of_refused)
            for message in batch.column("refused")
            if message.is_valid
        ]
        if refused:
            yield from filled(pa.Table.from_batches(refused).combine_chunks(), schema).to_batches()


def finished(
    operator: Operator, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches that end in waiting events; batches as for `stream.tasks.finished`."""
    task = ModuleTask(operator, options)
    for batch in batches:
        for row in batch.to_pylist():
            stored = {piece["place"]: bytes_of(piece["data"]) for piece in row["state"]}
            found = task.last_matches(row["bucket"], stored[HEADER], stored.get)
            yield from _answers(operator, options, found)


def answer_schema(operator: Operator, options: StreamOptions) -> pa.Schema:
    """The columns of the stream."""
    if options.late != "side":
        return operator.schema
    refused = refused_schema(operator.input, options)
    return pa.schema([refused.field("kind"), *operator.schema, refused.field("event")])


_MOST_ROWS = 1 << 13  # of a batch with a column for each query, most of them NULL


def _answers(
    operator: Operator, options: StreamOptions, found: Mapping[str, Sequence[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The matches of queries as rows of the stream."""
    tables = {
        name: pa.Table.from_batches(batches).combine_chunks()
        for name, batches in found.items()
        if batches
    }
    if not tables:
        return
    table = next(iter(tables.values())) if operator.columns is None else _wide(operator, tables)
    if options.late == "side":
        table = with_kind(table, answer_schema(operator, options), "match")
    yield from table.to_batches(max_chunksize=None if operator.columns is None else _MOST_ROWS)


def _wide(operator: Operator, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of several queries: in each, the columns of all other queries are NULL."""
    total = sum(map(len, tables.values()))
    names = pa.concat_arrays(
        [pa.repeat(pa.scalar(name, pa.string()), len(rows)) for name, rows in tables.items()]
    )
    columns = [names]
    for field in list(operator.schema)[1:]:
        rows = tables.get(field.name)
        if rows is None:
            columns.append(pa.nulls(total, field.type))
            continue
        before = sum(len(one) for name, one in _before(tables, field.name))
        own = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in rows.columns], fields=list(field.type)
        )
        parts = [pa.nulls(before, field.type), own]
        parts.append(pa.nulls(total - before - len(rows), field.type))
        columns.append(pa.concat_arrays(parts))
    return pa.table(columns, names=[QUERY, *(field.name for field in list(operator.schema)[1:])])


def _before(tables: Mapping[str, pa.Table], name: str) -> Iterator[tuple[str, pa.Table]]:
    for other, rows in tables.items():
        if other == name:
            return
        yield other, rows


# --- as Spark's workers run it --------------------------------------------------------------------


def module_step(program: Program, step: str) -> Any:
    """One of the functions `packed`, `unpacked` and `finished`: (names of queries, options,
    batches) → batches."""
    return partial(ShippedFunction(program, "match_stream", _run_step), step)


def module_task(program: Program) -> ShippedFunction:
    """The function that makes the `ModuleTask` of a worker, from names of queries and options."""
    return ShippedFunction(program, "match_stream", _new_task)


def check_header(operator: Operator, options: StreamOptions, label: int, header: bytes) -> None:
    """Raises StateError if the header of the bucket with a label does not fit these queries."""
    labels = labels_of(options.buckets).tolist()
    number = labels.index(label) if label in labels else -1
    operator.reader(options).check(number, header)


@dataclass(frozen=True, eq=False)
class _Kept:
    """What a worker keeps of an operator between micro-batches; it depends on no event."""

    operator: Operator
    options: StreamOptions

    @cached_property
    def packer(self) -> ModulePacker:
        return ModulePacker(self.operator, self.options)

    @cached_property
    def task(self) -> ModuleTask:
        return ModuleTask(self.operator, self.options)


_MOST_KEPT = 8
_KEPT: dict[tuple[Any, ...], tuple[Program, _Kept]] = {}


def _kept(program: Program, wanted: Sequence[Any], options: Mapping[str, Any]) -> _Kept:
    """The operator of a program that was sent, the same one while a process lives: a module with
    hundreds of queries takes long to read.

    Programs of one module share its globals. Those of all its queries have no options but these.
    """
    key = id(program.module), "" if wanted[0] else repr(program.plan), repr(wanted), repr(options)
    if key not in _KEPT:
        while len(_KEPT) >= _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        found = _Kept(operator_of(program, Wanted.of(wanted)), options_of(options))
        _KEPT[key] = program, found  # the program, so that its module stays
    return _KEPT[key][1]


def _new_task(program: Program, wanted: Sequence[Any], options: Mapping[str, Any]) -> ModuleTask:
    return _kept(program, wanted, options).task


def _run_step(
    program: Program,
    step: str,
    wanted: Sequence[Any],
    options: Mapping[str, Any],
    batches: Iterable[pa.RecordBatch],
) -> Any:
    kept = _kept(program, wanted, options)
    if step == "packed":
        return settled_after(kept.packer.packed(batches))
    function = unpacked if step == "unpacked" else finished
    return settled_after(function(kept.operator, kept.options, batches))

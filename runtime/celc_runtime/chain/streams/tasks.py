"""The functions that Spark's workers run for a stream of several queries, as in `stream.tasks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.chain.streams.bucket import Asked, ModuleStep, dropped
from celc_runtime.chain.streams.operators import Group, Served, Wanted, group_of
from celc_runtime.chain.streams.packers import INPUT, UNIT, GroupPacker, packed, packers_of
from celc_runtime.engine.arena.nodes import NEVER
from celc_runtime.many.answers import QUERY
from celc_runtime.many.rules import parted
from celc_runtime.plan.errors import StateError
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.stream.buckets import group_of_label, labels_of_group
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.packing import Packer
from celc_runtime.stream.processor import HEADER
from celc_runtime.stream.stored.blocks import IN_TIME, TOO_FAR, Block
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.rows import Rows
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


class GroupTask:
    """The steps of the buckets of a group; as `BucketTask`.

    first: the number of the group's first query among all that the operator returns.
    """

    def __init__(self, group: Group, options: StreamOptions, first: int = 0) -> None:
        self.group = group
        self._options = options
        self._first = first
        labels = labels_of_group(group.number, options.buckets)
        self._labels = {label: n for n, label in enumerate(labels.tolist())}
        self._reader = group.reader(options)
        self._input = Packer(group.input, options) if options.late == "side" else None

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
            (unit,) = UNIT.unpack_from(block)
            found = Block.of(block[UNIT.size :])
            if unit == INPUT:
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
            layout, plan = self._input.layout, self.group.input
            far = layout.joined([b.rows(layout) for b in of_input if b.kind == TOO_FAR])
            assert step.late_input is not None
            row["late"], row["ahead"] = len(step.late_input.records), len(far.records)
            if row["late"] or row["ahead"]:
                row["refused"] = refused_events(plan, layout, self._options, step.late_input, far)
        answers = [
            (n, step.matches[name]) for n, name in enumerate(self.group.outputs, self._first)
        ]
        row["matches"] = sum(len(batch) for _, batches in answers for batch in batches)
        return step, with_matches(row, answers)

    def last_matches(
        self, label: int, header: bytes, load: Callable[[int], bytes | None]
    ) -> dict[str, list[pa.RecordBatch]]:
        """The matches of a bucket that end in waiting events, by query, when no more events
        come."""
        nothing: list[list[Block]] = [[] for _ in self._reader.units]
        step = self._reader.advance(self._number(label), header, load, nothing, END_OF_TIME)
        return {name: step.matches[name] for name in self.group.outputs}

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
                f"queries {self.group.name}: there is no bucket {label}: the checkpoint was "
                "begun with another number of buckets; name it (buckets=…), or begin a new "
                "checkpoint"
            )
        return number


class OperatorTask:
    """The steps of the operator's processor, without Spark's own objects; as `BucketTask`."""

    text_of = staticmethod(text_of)
    bytes_of = staticmethod(bytes_of)

    def __init__(self, served: Served) -> None:
        self._groups: dict[int, GroupTask] = {}
        self._served = served
        first = 0
        for group, options in served:
            self._groups[group.number] = GroupTask(group, options, first)
            first += len(group.outputs)

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
        task = self._groups.get(group_of_label(label))
        if task is not None:
            return task.step(label, header, load, blocks, watermark)
        # Only a timer calls it: no query of this group is left, and no event comes to it.
        assert header is not None
        names = [name for group, _ in self._served for name in group.outputs]
        changes = any(group.goes_on is not None for group, _ in self._served)
        step = dropped(names, header, changes=changes)
        step.removed.append(HEADER)
        return step, [counts_of(_summed([]), [], 0, 0)]

    def last_matches(
        self, label: int, header: bytes, load: Callable[[int], bytes | None]
    ) -> dict[str, list[pa.RecordBatch]]:
        """The matches of a bucket that end in waiting events, by query, when no more events
        come."""
        task = self._groups.get(group_of_label(label))
        return {} if task is None else task.last_matches(label, header, load)


_NO_ROWS = Rows(np.zeros(0, np.uint8), np.zeros(0, np.uint8))


def _summed(steps: Sequence[Step]) -> Step:
    """The counts of all units."""
    total = Step(late=_NO_ROWS)
    for step in steps:
        for name in ("events", "keys", "waiting", "kept", "pending", "known", "size"):
            setattr(total, name, getattr(total, name) + getattr(step, name))
        for name in ("sort_time", "kernel_time", "state_time"):
            setattr(total, name, getattr(total, name) + getattr(step, name))
    return total


# --- unpacking ------------------------------------------------------------------------------------


def unpacked(served: Served, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches as rows, and with late='side' also the events that were not run."""
    group, options = served[0]
    of_refused = refused_schema(group.input, options) if options.late == "side" else None
    schema = answer_schema(group, options)
    outputs = [(name, one.schema_of(name)) for one, _ in served for name in one.outputs]
    for batch in batches:
        found: dict[str, list[pa.RecordBatch]] = {}
        numbers = batch.column("query").to_pylist()
        for number, message in zip(numbers, batch.column("found"), strict=True):
            if message.is_valid:
                name, columns = outputs[number]
                rows = pa.ipc.read_record_batch(message.as_buffer(), columns)
                found.setdefault(name, []).append(rows)
        yield from _answers(group, options, found)
        if of_refused is None:
            continue
        refused = [
            pa.ipc.read_record_batch(message.as_buffer(), of_refused)
            for message in batch.column("refused")
            if message.is_valid
        ]
        if refused:
            yield from filled(pa.Table.from_batches(refused).combine_chunks(), schema).to_batches()


def finished(served: Served, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches that end in waiting events; batches as for `stream.tasks.finished`."""
    task = OperatorTask(served)
    group, options = served[0]
    for batch in batches:
        for row in batch.to_pylist():
            stored = {piece["place"]: bytes_of(piece["data"]) for piece in row["state"]}
            found = task.last_matches(row["bucket"], stored[HEADER], stored.get)
            yield from _answers(group, options, found)


def answer_schema(group: Group, options: StreamOptions) -> pa.Schema:
    """The columns of the stream."""
    if options.late != "side":
        return pa.schema([_KIND, *group.schema]) if group.tells_kinds else group.schema
    refused = refused_schema(group.input, options)
    return pa.schema([_KIND, *group.schema, refused.field("event")])


_KIND = pa.field("kind", pa.string())


_MOST_ROWS = 1 << 13  # of a batch with a column for each query, most of them NULL


def _answers(
    group: Group, options: StreamOptions, found: Mapping[str, Sequence[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The matches of queries as rows of the stream."""
    tables = {
        name: pa.Table.from_batches(batches).combine_chunks()
        for name, batches in found.items()
        if batches
    }
    if not tables:
        return
    if group.columns is not None:
        tables = {group.name: _wide(group.columns, group.schema, tables)}
    for name, table in tables.items():
        if group.tells_kinds or options.late == "side":
            is_near = group.tells_kinds and name == group.outputs[-1]
            kind = "near" if is_near else "match"
            table = with_kind(table, answer_schema(group, options), kind)
        yield from table.to_batches(max_chunksize=None if group.columns is None else _MOST_ROWS)


def _wide(
    programs: Mapping[str, Program], schema: pa.Schema, tables: Mapping[str, pa.Table]
) -> pa.Table:
    """Rows of several queries, some of other groups: in each, the columns of all other queries are
    NULL. `programs` are all of the module."""
    total = sum(map(len, tables.values()))
    asked = [parted(programs[name], rows) for name, rows in tables.items()]
    tables = {name: rows for name, (_, rows) in zip(tables, asked, strict=True)}
    columns = [pa.concat_arrays([names for names, _ in asked])]
    for field in list(schema)[1:]:
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
    return pa.table(columns, names=[QUERY, *(field.name for field in list(schema)[1:])])


def _before(tables: Mapping[str, pa.Table], name: str) -> Iterator[tuple[str, pa.Table]]:
    for other, rows in tables.items():
        if other == name:
            return
        yield other, rows


# --- as Spark's workers run it --------------------------------------------------------------------

Sent = Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]]
"""The groups of an operator as they are sent: `Wanted.plain`, and the options as a dictionary."""


def module_step(program: Program, step: str) -> Any:
    """One of the functions `packed`, `unpacked` and `finished`: (groups as `Sent`, batches) →
    batches."""
    return partial(ShippedFunction(program, "match_stream", _run_step), step)


def module_task(program: Program) -> ShippedFunction:
    """The function that makes the `OperatorTask` of a worker, from groups as `Sent`."""
    return ShippedFunction(program, "match_stream", _new_task)


def check_header(served: Served, label: int, header: bytes) -> None:
    """Raises StateError if the header of the bucket with a label does not fit these queries."""
    for group, options in served:
        if group.number == group_of_label(label):
            labels = labels_of_group(group.number, options.buckets).tolist()
            number = labels.index(label) if label in labels else -1
            group.reader(options).check(number, header)


class _Kept:
    """What a worker keeps of an operator between micro-batches; it depends on no event."""

    def __init__(self, served: Served) -> None:
        self.served = served

    @cached_property
    def packers(self) -> list[GroupPacker]:
        return packers_of(self.served)

    @cached_property
    def task(self) -> OperatorTask:
        return OperatorTask(self.served)


_MOST_KEPT = 8
_KEPT: dict[tuple[Any, ...], tuple[Program, _Kept]] = {}


def _kept(program: Program, groups: Sent) -> _Kept:
    """The operator of a program that was sent, the same one while a process lives: a module with
    hundreds of queries takes long to read.

    Programs of one module share its globals. Those of all its queries have no options but these.
    """
    of_module = all(wanted[0] for wanted, _ in groups)
    key = id(program.module), "" if of_module else repr(program.plan), repr(groups)
    if key not in _KEPT:
        while len(_KEPT) >= _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        served = [
            (group_of(program, Wanted.of(wanted)), options_of(options))
            for wanted, options in groups
        ]
        _KEPT[key] = program, _Kept(served)  # the program, so that its module stays
    return _KEPT[key][1]


def _new_task(program: Program, groups: Sent) -> OperatorTask:
    return _kept(program, groups).task


def _run_step(program: Program, step: str, groups: Sent, batches: Iterable[pa.RecordBatch]) -> Any:
    kept = _kept(program, groups)
    if step == "packed":
        return packed(kept.packers, batches)
    function = unpacked if step == "unpacked" else finished
    return function(kept.served, batches)

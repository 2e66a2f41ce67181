"""The functions that Spark's workers run for a stream after the shuffle.

*Reading* (`transformWithState`): the events of each bucket join the waiting events, and the events
that the watermark has passed are run. Rows of the outcome have the counts, and the matches as
bytes. *Unpacking* (`mapInArrow`): the matches become columns.

So Spark shuffles, passes to Python and stores celc's own bytes: a few values for each bucket and
task instead of one for each event.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type, output_schema
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.program import Rows as Rules
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.emitted import emitting
from celc_runtime.stream.formats import StreamFormats, StreamOptions, row_layout
from celc_runtime.stream.one_bucket.bucket import BucketReader
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.packing import packed
from celc_runtime.stream.processor import HEADER
from celc_runtime.stream.rules import stream_program, with_rows_again
from celc_runtime.stream.stored.blocks import IN_TIME, TOO_FAR, Block
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.rows import RowLayout, Rows
from celc_runtime.stream.stored.texts import bytes_of, text_of

STEP_DDL = (
    "rows BIGINT, undeclared BIGINT, events BIGINT, matches BIGINT, late BIGINT, ahead BIGINT, "
    "waiting BIGINT, kept BIGINT, pending BIGINT, keys BIGINT, known BIGINT, bytes BIGINT, "
    "sort_us BIGINT, kernel_us BIGINT, state_us BIGINT, query INT, found BINARY, refused BINARY"
)
"""The outcome of a micro-batch for a bucket: the counts of `Step`, microseconds, the number of a
query in its operator, and as Arrow messages its matches and the events that were not run. Many
matches, and those of other queries, take further rows, which have only matches."""

COUNTS = tuple(name.split()[0] for name in STEP_DDL.split(", ") if name.endswith("BIGINT"))
"""The counts among them."""

_MESSAGE = 1 << 24
"""About the most bytes of matches in a row."""


class BucketTask:
    """The steps of the operator's processor, without Spark's own objects.

    text_of, bytes_of: convert bytes for Spark's store, and back. made: the formats of the bucket
    and what advances it; None: those of a query of CEL.
    """

    text_of = staticmethod(text_of)
    bytes_of = staticmethod(bytes_of)

    def __init__(
        self,
        program: Program,
        options: StreamOptions,
        made: tuple[StreamFormats, BucketReader] | None = None,
    ) -> None:
        self._asked = program.plan
        program = stream_program(program)
        self._program = program
        self._options = options
        self._labels = {label: n for n, label in enumerate(labels_of(options.buckets).tolist())}
        if made is None:
            parameters = self._asked.source.parameters
            formats = StreamFormats(program, options, is_recorded=True)
            made = formats, BucketReader(
                program,
                formats.events,
                formats.states,
                key_ttl=options.key_ttl,
                counted=None if parameters is None else parameters.position,
            )
        self._formats, self._reader = made

    def step(
        self,
        label: int,
        header: bytes | None,
        load: Callable[[int], bytes | None],
        blocks: Sequence[bytes],
        watermark: int,
    ) -> tuple[Step, list[dict[str, Any]]]:
        """The step of the bucket with a label, and its rows of the operator's output.

        watermark: in milliseconds; 0: there is none yet.
        """
        number = self._number(label, header)
        received = [Block.of(block) for block in blocks]
        arrived = [block for block in received if block.kind == IN_TIME]
        ahead = [block for block in received if block.kind == TOO_FAR]
        step = self._reader.advance(number, header, load, arrived, 1000 * watermark or None)
        layout = self._formats.events
        too_far = layout.joined([block.rows(layout) for block in ahead])
        if self._options.late == "error":
            refuse(self._program.plan, layout, step.late, too_far, watermark)
        row = counts_of(step, received, len(step.late.records), len(too_far.records))
        if self._options.late == "side" and (row["late"] or row["ahead"]):
            row["refused"] = refused_events(self._asked, layout, self._options, step.late, too_far)
        return step, with_matches(row, [(0, step.matches)])

    def last_matches(
        self, label: int, header: bytes, load: Callable[[int], bytes | None]
    ) -> list[pa.RecordBatch]:
        """The matches of a bucket that end in waiting events, when no more events come."""
        number = self._number(label, header)
        return self._reader.advance(number, header, load, [], END_OF_TIME).matches

    def _number(self, label: int, header: bytes | None) -> int:
        """The number of the bucket with a label."""
        number = self._labels.get(label)
        if number is None:
            # A timer of a bucket that this stream does not have. Its header says why.
            if header is not None:
                self._formats.states.read(header, -1)
            raise self._formats.states.damaged(f"there is no bucket {label}")
        return number


def counts_of(step: Step, received: Sequence[Block], late: int, ahead: int) -> dict[str, Any]:
    """The row of a step with its counts, without matches."""
    undeclared = sum(block.undeclared for block in received)
    return {
        "rows": undeclared + sum(block.events for block in received),
        "undeclared": undeclared,
        "events": step.events,
        "matches": step.match_count,
        "late": late,
        "ahead": ahead,
        "waiting": step.waiting,
        "kept": step.kept,
        "pending": step.pending,
        "keys": step.keys,
        "known": step.known,
        "bytes": step.size,
        "sort_us": step.sort_time // 1000,
        "kernel_us": step.kernel_time // 1000,
        "state_us": step.state_time // 1000,
        "query": 0,
        "found": None,
        "refused": None,
    }


def refuse(plan: Plan, layout: RowLayout, late: Rows, ahead: Rows, watermark: int) -> None:
    """Raises EventError if there are events that are not run; watermark: milliseconds."""
    for rows, what, remedy in (
        (late, "late: events up to its time have been run", "a longer watermark delay"),
        (ahead, "too far ahead of the clock (max_event_time_skew)", "a larger skew"),
    ):
        if len(rows.records):
            names = [f.name for f in layout.fields]
            columns = layout.columns(rows)
            time = columns[names.index(plan.source.order_by[0])][0]
            at = pa.scalar(1000 * watermark, pa.timestamp("us", tz="UTC"))
            raise EventError(
                f"query {plan.name!r}: an event of {time} is {what}; the watermark is at {at} "
                f"(choose {remedy}, late='drop' or late='side')"
            )


def refused_events(
    plan: Plan, layout: RowLayout, options: StreamOptions, late: Rows, ahead: Rows
) -> bytes:
    """The events that are not run as an Arrow message of `refused_message`.

    plan: of the query as it was asked; of a query FOR EACH, events are those of its pairs.
    """
    kinds = ["late"] * len(late.records) + ["ahead"] * len(ahead.records)
    rows = layout.joined([r for r in (late, ahead) if len(r.records)])
    schema = refused_message(plan, options)
    columns = dict(zip((f.name for f in layout.fields), layout.columns(rows), strict=True))
    types = plan.source.declared_types
    declared = [types[code] for code in layout.codes(rows)]
    if options.has_types:
        columns[plan.source.type_name] = pa.array([name for _, name in declared])
    if plan.source.stream_column:
        columns["stream"] = pa.array([stream for stream, _ in declared])
    event = schema.field("event").type
    struct = pa.StructArray.from_arrays(
        [columns[field.name] for field in event], fields=list(event)
    )
    arrays = [pa.array(kinds), struct, *(columns[name] for name in schema.names[2:])]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return bytes(batch.serialize())


def refused_message(plan: Plan, options: StreamOptions) -> pa.Schema:
    """`refused_schema`; of a query FOR EACH, also the numbers of the rows."""
    schema, parameters = refused_schema(plan, options), plan.source.parameters
    return schema if parameters is None else schema.append(pa.field(parameters.number, pa.int64()))


def refused_schema(plan: Plan, options: StreamOptions) -> pa.Schema:
    """The columns of events that were not run: `kind` (late, ahead), and the event as a struct."""
    fields = []
    if options.has_types:
        fields.append(pa.field(plan.source.type_name, pa.string()))
    if plan.source.stream_column:
        fields.append(pa.field("stream", pa.string()))
    fields += [pa.field(a.name, arrow_type(a.type)) for a in plan.source.attributes]
    known = {field.name for field in fields} | {*plan.source.chosen_columns}
    fields += [
        pa.field(f.name, f.arrow_type)
        for f in row_layout(plan, options.tiebreak_types).fields
        if f.name not in known
    ]
    return pa.schema([pa.field("kind", pa.string()), pa.field("event", pa.struct(fields))])


def with_matches(
    row: dict[str, Any], answers: Iterable[tuple[int, Sequence[pa.RecordBatch]]]
) -> list[dict[str, Any]]:
    """The rows of a step: the first has its counts, and all have matches, of one query each.

    answers: the numbers of queries, with their matches.
    """
    rows = [row]
    for query, batches in answers:
        together: list[pa.RecordBatch] = []
        size = 0
        for number, batch in enumerate(batches):
            together.append(batch)
            size += batch.nbytes
            if size >= _MESSAGE or number + 1 == len(batches):
                whole = pa.Table.from_batches(together).combine_chunks().to_batches()
                for part in whole:
                    if rows[-1]["found"] is not None:
                        rows.append(dict.fromkeys(row, 0) | {"found": None, "refused": None})
                    rows[-1]["query"], rows[-1]["found"] = query, bytes(part.serialize())
                together, size = [], 0
    return rows


# --- unpacking ------------------------------------------------------------------------------------


def unpacked(
    program: Program,
    options: StreamOptions,
    batches: Iterable[pa.RecordBatch],
    rules: Rules | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matches as rows, and with late='side' also the events that were not run.

    rules: the rows of a query FOR EACH.
    """
    of_matches = stream_program(program).output_schema
    of_refused = refused_message(program.plan, options)
    for batch in batches:
        matches = rows_in(batch, "found", of_matches)
        if matches is not None:
            yield from _told(program, options, rules, matches.to_batches())
        table = rows_in(batch, "refused", of_refused)
        if table is not None:
            if rules is not None:
                table = _with_rows_of_late(program, rules, table)
            yield from filled(table, side_schema(program.plan, options)).to_batches()


def rows_in(batch: pa.RecordBatch, name: str, schema: pa.Schema) -> pa.Table | None:
    """The rows of all Arrow messages in a column of the operator's output; None: there is none."""
    found = [
        pa.ipc.read_record_batch(message.as_buffer(), schema)
        for message in batch.column(name)
        if message.is_valid
    ]
    return pa.Table.from_batches(found).combine_chunks() if found else None


def _told(
    program: Program,
    options: StreamOptions,
    rules: Rules | None,
    matches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Matches of the operator as rows of the stream."""
    for batch in with_rows_again(program, rules, matches):
        if options.late != "side":
            yield batch
            continue
        schema = side_schema(program.plan, options)
        yield from with_kind(pa.Table.from_batches([batch]), schema, "match").to_batches()


def _with_rows_of_late(program: Program, rules: Rules, table: pa.Table) -> pa.Table:
    """Events that are not run, with the columns of the rows for which they are late."""
    parameters = program.plan.source.parameters
    assert parameters is not None
    type = program.output_schema.field(parameters.name).type
    numbers = table.column(parameters.number).combine_chunks()
    shown = [rules.columns[field.name].take(numbers) for field in type]
    structs = pa.array([{}] * len(table), type)
    if shown:
        structs = pa.StructArray.from_arrays(shown, fields=list(type))
    return table.append_column(parameters.name, structs)


def finished(
    program: Program,
    options: StreamOptions,
    batches: Iterable[pa.RecordBatch],
    rules: Rules | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matches that end in waiting events.

    The batches have a row for each bucket: its label `bucket`, and `state`, a list of structs of
    `place` and `data`, the pieces of its state in Spark's store. rules: the rows of a query FOR
    EACH.
    """
    for matches in last_matches(BucketTask(program, options), batches):
        yield from _told(program, options, rules, matches)


def last_matches(
    task: BucketTask, batches: Iterable[pa.RecordBatch]
) -> Iterator[list[pa.RecordBatch]]:
    """The matches that end in waiting events, bucket by bucket, of states as `finished` takes
    them."""
    for batch in batches:
        for row in batch.to_pylist():
            stored = {piece["place"]: bytes_of(piece["data"]) for piece in row["state"]}
            yield task.last_matches(row["bucket"], stored[HEADER], stored.get)


def side_schema(plan: Plan, options: StreamOptions) -> pa.Schema:
    refused = refused_schema(plan, options)
    return pa.schema([refused.field("kind"), *output_schema(plan), refused.field("event")])


def with_kind(table: pa.Table, schema: pa.Schema, kind: str) -> pa.Table:
    kinds = pa.array([kind] * len(table))
    return filled(table.append_column("kind", kinds), schema)


def filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
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


def packing_route(program: Program) -> Any:
    """The function before the shuffle: (options, the rows of a query FOR EACH as a batch, batches
    of events) → packed batches."""
    return partial(_step_route(program), "packed")


def task_route(program: Program) -> ShippedFunction:
    """The function that makes the `BucketTask` of a worker, from options."""
    return ShippedFunction(program, "match_stream", _new_task)


def _new_task(program: Program, options: Mapping[str, Any]) -> BucketTask:
    found = options_of(options)
    return BucketTask(emitting(program, found.emit), found)


def unpacking_route(program: Program) -> Any:
    """The function after the operator: (options, rows as above, its batches) → batches of
    matches."""
    return partial(_step_route(program), "unpacked")


def finishing_route(program: Program) -> Any:
    """The function of `finish`: (options, rows as above, batches of states) → batches of
    matches."""
    return partial(_step_route(program), "finished")


def _step_route(program: Program) -> ShippedFunction:
    return ShippedFunction(program, "match_stream", _run_step)


_STEPS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {function.__name__: function for function in (packed, unpacked, finished)}
)


def _run_step(
    program: Program,
    step: str,
    options: Mapping[str, Any],
    table: pa.RecordBatch | None,
    batches: Iterable[pa.RecordBatch],
) -> Any:
    rules = None if table is None else Rules.of_batch(table)
    found = options_of(options)
    # Programs are shipped by their texts and options, which do not say when rows come.
    program = emitting(program, found.emit)
    return _STEPS[step](program, found, batches, rules)


def check_header(program: Program, options: Mapping[str, Any], label: int, header: bytes) -> None:
    """Raises StateError if the header of the bucket with a label does not fit this query and
    options."""
    found = options_of(options)
    labels = labels_of(found.buckets).tolist()
    number = labels.index(label) if label in labels else -1
    formats_of(program, found).states.read(header, number)


def formats_of(program: Program, options: StreamOptions) -> StreamFormats:
    """The formats of the events and states of one query."""
    return StreamFormats(stream_program(program), options, is_recorded=True)


def options_of(values: Mapping[str, Any]) -> StreamOptions:
    """The options from the dictionary that is sent to workers."""
    return StreamOptions(**values)

"""A query FOR EACH on a stream whose table is a stream as well: the operator of a bucket.

A *row* is a row of that table, and a *pair* is an event together with a row that it can concern. An
event is paired when the watermark passes it, because until then a row can come that concerns it. So
events wait unpaired, and each bucket holds all rows (`held_rules`).

Pairs are the events of a second, ordinary stream (`one_bucket`). The operator runs this stream of
pairs in the same micro-batch, so pairs never wait.

The state of a bucket is the state of its stream of pairs, and more segments with numbers below 0:
they hold the waiting events and the rows. The header begins with a note of them (`_Note`), and the
header of the stream of pairs follows.

Rejected: pairs made before the shuffle, as for a fixed table. All rows would have to be there
before the event comes. Also rejected: a join by Spark. It would hold both streams a second time,
and its output has a watermark of its own.

Long: the state, the operator on it, and the functions of workers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.paths import received
from celc_runtime.arrow.tables.known_times import known_of, longest_absence
from celc_runtime.plan.errors import StateError
from celc_runtime.plan.plan import DECIDED_TIME
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.rules.inner import over_events, parameters_of
from celc_runtime.rules.matching import Events, pair_batches, with_rows
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.buckets import labels_of
from celc_runtime.stream.emitted import emitting
from celc_runtime.stream.formats import StreamFormats, StreamOptions, row_layout
from celc_runtime.stream.held_rules import Told
from celc_runtime.stream.one_bucket.bucket import set_timer
from celc_runtime.stream.one_bucket.step import Step
from celc_runtime.stream.packing import PACKED_SCHEMA, ROWS_AT_ONCE, encoded_pairs, packed
from celc_runtime.stream.rule_places import attributes_of_keys, places_of
from celc_runtime.stream.rule_versions import RulesNote, RulesStore, Version, sum_of
from celc_runtime.stream.rules import all_concern, stream_program
from celc_runtime.stream.stored.blocks import IN_TIME, RULES, TOO_FAR, Block, block_of, stored_rows
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.rows import Rows as PackedRows
from celc_runtime.stream.tasks import (
    BucketTask,
    counts_of,
    last_matches,
    options_of,
    refuse,
    rows_in,
    with_matches,
)

OWN_DDL = "rules BIGINT, rules_added BIGINT, rules_ended BIGINT, rules_late BIGINT"
"""The counts of a micro-batch besides those of every stream: the rows that are held, that came,
whose time the watermark has passed, and that came late.

Every bucket holds all rows, so one bucket reports them."""

OWN_COUNTS = ("rules", "rules_added", "rules_ended", "rules_late")

_FIRST_PLACE = -2  # the number of the first segment; the next ones are lower
_MOST_SEGMENTS = 16  # of waiting events; more are merged into one
_HEAD = struct.Struct("<BIQ")  # the version, the length of the note, its checksum
_VERSION = 2


# --- the state ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Note:
    """What the header says of the rows and of the events that wait unpaired."""

    next_place: int = _FIRST_PLACE  # the number of the next segment
    watermark: int | None = None  # of the last micro-batch, in microseconds
    rules: RulesNote = RulesNote()
    waiting: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """The segments of waiting events, each as (its number, its checksum, its bytes, how many events
    it has, the earliest time among them in microseconds)."""

    def bytes(self) -> bytes:
        """The note as the first part of a header."""
        text = json.dumps(
            [self.next_place, self.watermark, self.rules, self.waiting], separators=(",", ":")
        ).encode()
        return _HEAD.pack(_VERSION, len(text), sum_of(text)) + text


def split_header(header: bytes | None) -> tuple[_Note, bytes | None]:
    """The note of a header, and the header of the stream of pairs behind it.

    Raises StateError if the header is damaged, or of another kind of stream.
    """
    if header is None:
        return _Note(), None
    if len(header) < _HEAD.size or header[0] != _VERSION:
        raise StateError(
            "the checkpoint is not of a stream whose table of parameters is a stream, or damaged: "
            "its header has another beginning; begin a new checkpoint"
        )
    _, size, known = _HEAD.unpack_from(header)
    text = header[_HEAD.size : _HEAD.size + size]
    if len(text) < size or sum_of(text) != known:
        raise StateError("the checkpoint is damaged: the note of its rules has another sum")
    next_place, watermark, rules, waiting = json.loads(text)
    note = _Note(next_place, watermark, RulesNote.of(rules), [*map(tuple, waiting)])
    return note, header[_HEAD.size + size :]


def _loaded(load: Callable[[int], bytes | None], segment: tuple[int, ...]) -> bytes:
    """The content of a stored segment; raises StateError if it is missing or damaged."""
    place, known, size, *_ = segment
    data = load(place)
    if data is None or len(data) != size or sum_of(data) != known:
        raise StateError(f"the checkpoint is damaged: segment {place} has another sum")
    return data


@dataclass(slots=True)
class _Opened:
    """The waiting events and the rows of a bucket, during one micro-batch."""

    note: _Note
    load: Callable[[int], bytes | None]  # the content of a stored segment, by its number
    version: Version  # the rows with which events are paired
    written: dict[int, bytes] = field(default_factory=dict)  # new segments by their numbers
    removed: list[int] = field(default_factory=list)  # the numbers of stored ones to be deleted

    def store(self, data: bytes) -> tuple[int, int, int]:
        """Store a new segment: (its number, its checksum, its bytes)."""
        place = self.note.next_place
        self.note.next_place -= 1
        self.written[place] = data
        return place, sum_of(data), len(data)

    def remove(self, place: int) -> None:
        """Delete a segment."""
        if place in self.written:
            del self.written[place]
        else:
            self.removed.append(place)

    def data(self, segment: tuple[int, ...]) -> bytes:
        """The content of a segment, also of one that this micro-batch wrote."""
        found = self.written.get(segment[0])
        return found or _loaded(self.load, segment)


# --- the operator ---------------------------------------------------------------------------------


class ChangingTask(BucketTask):
    """The steps of the operator's processor; `program` is the query FOR EACH."""

    def __init__(self, program: Program, options: StreamOptions) -> None:
        super().__init__(program, options)
        self._query = program
        self._parameters = parameters_of(program.plan)
        self._all = all_concern(program.plan)
        self._outer = row_layout(over_events(program.plan), options.tiebreak_types)
        order = program.plan.source.order_by[0]
        self._time = [one.name for one in self._outer.fields].index(order)
        self._store = RulesStore(
            f"{program.name} of {program.text}", self._parameters, stays_of(program)
        )

    def step(
        self,
        label: int,
        header: bytes | None,
        load: Callable[[int], bytes | None],
        blocks: Sequence[bytes],
        watermark: int,
    ) -> tuple[Step, list[dict[str, Any]]]:
        """As `BucketTask.step`. The late events in the step are late pairs."""
        received = [Block.of(block) for block in blocks]
        step, own = self._advanced(label, header, load, received, 1000 * watermark or None)
        ahead = self._outer.joined(
            [block.rows(self._outer) for block in received if block.kind == TOO_FAR]
        )
        if self._options.late == "error":
            refuse(self._program.plan, self._formats.events, step.late, ahead, watermark)
        events = [block for block in received if block.kind != RULES]
        row = counts_of(step, events, len(step.late.records), len(ahead.records))
        # Every bucket holds all rows.
        row |= own if self._labels[label] == 0 else dict.fromkeys(own, 0)
        return step, with_matches(row, [(0, step.matches)])

    def last_matches(
        self, label: int, header: bytes, load: Callable[[int], bytes | None]
    ) -> list[pa.RecordBatch]:
        """As `BucketTask.last_matches`, with the column of the rows."""
        return self._advanced(label, header, load, [], END_OF_TIME)[0].matches

    def _advanced(
        self,
        label: int,
        header: bytes | None,
        load: Callable[[int], bytes | None],
        received: Sequence[Block],
        watermark: int | None,
    ) -> tuple[Step, dict[str, int]]:
        note, of_pairs = split_header(header)
        number = self._number(label, of_pairs)
        opened = self._opened(note, load)
        own, leave_rules = self._take_rules(opened, received, watermark)
        events = [block for block in received if block.kind == IN_TIME and block.events]
        behind = self._receive(opened, events, watermark)
        passed = self._passed(opened, watermark)
        bucket = self._reader.opened(number, of_pairs, load)
        layout, time = self._formats.events, self._order
        arrived = block_of(layout, self._pairs(opened, behind), time)
        self._reader.receive(bucket, [arrived] if arrived.events else [], watermark)
        self._reader.run(bucket, watermark, never_late=self._pairs(opened, passed))
        found = [self._shown(opened, batch) for batch in bucket.step.matches]
        leave_rules()
        if watermark is not None:
            note.watermark = watermark if note.watermark is None else max(note.watermark, watermark)
        due = self._reader.store(bucket, watermark)
        if opened.note.waiting:
            least = min(segment[4] for segment in opened.note.waiting)
            waits = max(1, -(-min(least, END_OF_TIME - 1000) // 1000))
            due = waits if due is None else min(due, waits)
        set_timer(bucket.step, bucket.state, due, watermark)
        step = self._reader.closed(bucket)
        step.matches = found
        step.header = opened.note.bytes() + step.header
        step.is_changed = step.header != header
        step.written |= opened.written
        step.removed += opened.removed
        step.waiting += sum(segment[3] for segment in opened.note.waiting)
        step.size += sum(segment[2] for segment in opened.note.waiting)
        step.size += opened.note.rules.size
        return step, own

    @property
    def _order(self) -> int:
        """The place of the time in the events of pairs."""
        order = self._program.plan.source.order_by[0]
        return [one.name for one in self._formats.events.fields].index(order)

    # --- rows -------------------------------------------------------------------------------------

    def _opened(self, note: _Note, load: Callable[[int], bytes | None]) -> _Opened:
        return _Opened(note, load, self._store.opened(note.rules, partial(_loaded, load)))

    def _take_rules(
        self, opened: _Opened, received: Sequence[Block], watermark: int | None
    ) -> tuple[dict[str, int], Callable[[], None]]:
        """Take in the rows that arrive. Returns their counts, and a function that stores the rows;
        it is called after the events of the micro-batch have been run."""
        blocks = [block for block in received if block.kind == RULES]
        own, left = dict.fromkeys(OWN_COUNTS, 0), _nothing
        if blocks:
            told = [Told.read(self._parameters, block.content) for block in blocks]
            before, arrived = opened.version, Told.joined(told)
            opened.version, found, entry = self._store.taken(
                opened.note.rules, before, arrived, watermark
            )
            own["rules_added"], own["rules_late"] = found
            left = partial(self._leave, opened, before, entry, watermark)
        own["rules_ended"] = opened.version.held.ended(opened.note.watermark, watermark)
        own["rules"] = self._store.counted(opened.version.held, watermark)
        return own, left

    def _leave(self, opened: _Opened, before: Version, entry: bytes, watermark: int | None) -> None:
        opened.note.rules = self._store.left(
            opened.note.rules, before, opened.version, entry, watermark, opened
        )

    # --- events -----------------------------------------------------------------------------------

    def _receive(
        self, opened: _Opened, blocks: Sequence[Block], watermark: int | None
    ) -> PackedRows:
        """Store the events that the watermark has not passed, to wait. Returns the others."""
        waits = [block for block in blocks if watermark is None or block.least > watermark]
        behind = self._outer.nothing
        if watermark is not None:
            rows = [block.rows(self._outer) for block in blocks if block.least <= watermark]
            fresh, behind = self._parted(self._outer.joined(rows), watermark)
            waits += [block_of(self._outer, fresh, self._time)] if len(fresh.records) else []
        self._wait(opened, waits)
        return behind

    def _wait(self, opened: _Opened, blocks: Sequence[Block]) -> None:
        if not blocks:
            return
        segment = opened.store(b"".join(block.data for block in blocks))
        count = sum(block.events for block in blocks)
        opened.note.waiting.append((*segment, count, min(block.least for block in blocks)))
        if len(opened.note.waiting) > _MOST_SEGMENTS:
            rows = [
                one for waiting in [*opened.note.waiting] for one in self._taken(opened, waiting)
            ]
            self._wait(opened, [block_of(self._outer, self._outer.joined(rows), self._time)])

    def _taken(self, opened: _Opened, segment: tuple[int, int, int, int, int]) -> list[PackedRows]:
        """The events of a segment, which is removed."""
        rows = stored_rows(opened.data(segment), self._outer)
        opened.note.waiting.remove(segment)
        opened.remove(segment[0])
        return rows

    def _passed(self, opened: _Opened, watermark: int | None) -> PackedRows:
        """Take out the waiting events that the watermark has passed by now."""
        if watermark is None:
            return self._outer.nothing
        due = [segment for segment in opened.note.waiting if segment[4] <= watermark]
        rows = [one for segment in due for one in self._taken(opened, segment)]
        left, passed = self._parted(self._outer.joined(rows), watermark)
        if len(left.records):
            self._wait(opened, [block_of(self._outer, left, self._time)])
        return passed

    def _parted(self, rows: PackedRows, watermark: int) -> tuple[PackedRows, PackedRows]:
        """The events after the watermark, and the others."""
        later = self._outer.values(rows, self._time) > watermark
        return (
            self._outer.taken(rows, np.flatnonzero(later)),
            self._outer.taken(rows, np.flatnonzero(~later)),
        )

    # --- pairs ------------------------------------------------------------------------------------

    def _pairs(self, opened: _Opened, rows: PackedRows) -> PackedRows:
        """The pairs of events with rows that they can concern, as events of the stream below."""
        layout = self._formats.events
        count = len(rows.records)
        if not count:
            return layout.nothing
        names = [one.name for one in self._outer.fields]
        columns = pa.RecordBatch.from_arrays(self._outer.columns(rows), names)
        codes = self._outer.codes(rows).astype(np.int64)
        nowhere = np.zeros(count, np.int64)
        events = Events(columns, codes, nowhere, nowhere)
        parts = [
            self._encoded(batch, numbers[places], codes[chosen], is_held[places])
            for (numbers, of_part), is_held in opened.version.paired
            for places, chosen, batch in pair_batches(self._all, of_part, events, ROWS_AT_ONCE)
        ]
        return layout.joined(parts)

    def _encoded(
        self, batch: pa.RecordBatch, numbers: np.ndarray, codes: np.ndarray, is_held: np.ndarray
    ) -> PackedRows:
        """Pairs as rows of the stream below. numbers: int64[pairs], of their rows; is_held:
        bool[pairs], which of these have not been forgotten."""
        name = self._parameters.number
        batch = batch.set_column(batch.schema.get_field_index(name), name, pa.array(numbers))
        if not is_held.all():
            batch, codes = batch.filter(pa.array(is_held)), codes[is_held]
        plan = self._program.plan
        return encoded_pairs(plan, self._formats.events, self._options, batch, codes)

    def _shown(self, opened: _Opened, matches: pa.RecordBatch) -> pa.RecordBatch:
        """Matches of pairs as matches of the query."""
        place = 0 if self._query.plan.answer.match_id is None else 1
        found, places = np.unique(np.asarray(matches.column(place)), return_inverse=True)
        held = opened.version.held
        rows = held.rows_at(held.places_of(found))
        numbers = pa.array(places.astype(np.int64))
        matches = matches.set_column(place, matches.schema.field(place), numbers)
        return with_rows(self._query, rows, matches)


def _nothing() -> None:
    return


def stays_of(program: Program) -> int | None:
    """How long after the end of a row's time an answer of the row can still come, in microseconds.

    A bucket holds the row for so long. None: for ever.
    """
    totals = program.plan.answer.totals
    if why_not(program, Route.UNTIL) is not None:
        return None
    known = known_of(program)
    later = known.later
    if known.column == DECIDED_TIME:
        later += longest_absence(program.plan)
    if totals is not None and isinstance(totals.per, int):
        later += totals.per
    return int(later)


# --- as Spark's workers run it --------------------------------------------------------------------


def packed_rules(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of the table that a task reads, as values of bytes for buckets."""
    parameters, labels = parameters_of(program.plan), labels_of(options.buckets)
    keys = row_layout(over_events(program.plan), options.tiebreak_types).of_keys
    named = attributes_of_keys(all_concern(program.plan), keys)
    for batch in map(received, batches):
        if not len(batch):
            continue
        table = pa.Table.from_batches([batch])
        rows = rows_of(program.name, replace(parameters, valid=None), table)
        found, blocks = [], []
        told = Told.of(parameters, rows)
        for bucket, of_bucket in places_of(parameters, named, keys, told, len(labels)):
            content = bytes(of_bucket.batch.serialize())
            found.append(labels[bucket])
            blocks.append(Block.of_content(RULES, of_bucket.rows.count, content).data)
        arrays = [pa.array(found, pa.int32()), pa.array(blocks, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, schema=PACKED_SCHEMA)


def packed_events(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The events that a task reads, unpaired."""
    return packed(replace(program, plan=over_events(program.plan)), options, batches)


def unpacked_matches(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches of the operator as rows."""
    for batch in batches:
        matches = rows_in(batch, "found", program.output_schema)
        if matches is not None:
            yield from matches.to_batches()


def finished_matches(
    program: Program, options: StreamOptions, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches that end in waiting events; `batches` as of `tasks.finished`."""
    for matches in last_matches(ChangingTask(program, options), batches):
        yield from matches


def task_route(program: Program) -> ShippedFunction:
    """What a worker calls with the options of a stream to make its `ChangingTask`."""
    return ShippedFunction(program, "match_stream", _new_task)


def _new_task(program: Program, options: Mapping[str, Any]) -> ChangingTask:
    found = options_of(options)
    return ChangingTask(emitting(program, found.emit), found)


def step_route(program: Program, step: str) -> Any:
    """A function for `mapInArrow`, by the name of one above: (options, batches) → batches."""
    return partial(ShippedFunction(program, "match_stream", _run_step), step)


_STEPS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {one.__name__: one for one in (packed_rules, packed_events, unpacked_matches, finished_matches)}
)


def _run_step(
    program: Program, step: str, options: Mapping[str, Any], batches: Iterable[pa.RecordBatch]
) -> Any:
    found = options_of(options)
    return _STEPS[step](emitting(program, found.emit), found, batches)


def check_header(program: Program, options: Mapping[str, Any], label: int, header: bytes) -> None:
    """Raises StateError if the header of the bucket with a label does not fit this query and
    options."""
    found = options_of(options)
    labels = labels_of(found.buckets).tolist()
    number = labels.index(label) if label in labels else -1
    _, of_pairs = split_header(header)
    assert of_pairs is not None
    StreamFormats(stream_program(program), found).states.read(of_pairs, number)

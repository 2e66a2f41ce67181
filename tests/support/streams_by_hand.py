"""Streams without Spark: rows packed, run bucket by bucket, and unpacked, as workers do it.

`Operator` stands for Spark's part: it keeps the state of each bucket as bytes, and its timer.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.arrow.tables.derived import with_derived
from celc_runtime.arrow.tables.slices import Slice, slice_of
from celc_runtime.program import Rows
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.packing import packed
from celc_runtime.stream.processor import HEADER
from celc_runtime.stream.rules import hash_of_rows
from celc_runtime.stream.stored import sections
from celc_runtime.stream.stored.known_starts import END_OF_TIME
from celc_runtime.stream.stored.texts import text_of
from celc_runtime.stream.tasks import BucketTask, finished, unpacked
from engines import Event, Row, batches_of, key_of, table_of

AFTER_ALL = END_OF_TIME // 1000
"""The watermark of a stream that has ended, in milliseconds."""

EVENT_TIME = "event_time"

_PIECES = pa.list_(pa.struct([("place", pa.int64()), ("data", pa.string())]))
STATES = pa.schema([("bucket", pa.int32()), ("state", _PIECES)])


def instant(milliseconds: int) -> dt.datetime:
    """A time so long after 1970."""
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=milliseconds)


def timed(text: str) -> str:
    """A query over events that have an event time besides."""
    return re.sub(r"(EVENT\s+\w+\s*{[^}]*?)\s*}", rf"\1, {EVENT_TIME}: TIMESTAMP }}", text)


def in_milliseconds(text: str) -> str:
    """A `timed` query whose windows of `ts` are windows of the event time."""
    return re.sub(r"([\d.]+) \[ts\]", rf"\1 MILLISECONDS [{EVENT_TIME}]", timed(text))


class Operator:
    """The stateful operator of a stream: what it is given, in micro-batches, and what it answers.

    Rows go through all three steps of a worker. What a partition asks of its timers is held
    against what Spark allows.
    """

    def __init__(
        self,
        query: Any,
        options: StreamOptions | None = None,
        *,
        rng: random.Random | None = None,
        rules: Rows | None = None,
    ) -> None:
        self.query = query
        self.options = options or StreamOptions({})
        self.rules = rules
        self.task = self._task()
        self.headers: dict[int, bytes] = {}
        self.segments: dict[int, dict[int, bytes]] = {}
        self.timers: dict[int, set[int]] = {}
        self.watermark = 0
        self.counts = dict.fromkeys(("events", "matches", "late", "ahead"), 0)
        self.kept: dict[int, dict[str, int]] = {}
        self.written = 0
        self._rng = rng or random.Random(0)

    def advance(self, events: pa.Table | None, watermark: int) -> list[dict[str, Any]]:
        """One micro-batch: its rows, and the watermark (in milliseconds) that it sees.

        Returns the rows that come out.
        """
        self.watermark = max(self.watermark, watermark)
        blocks: dict[int, list[bytes]] = {}
        if events is not None:
            for batch in self._packed(self._batches(events)):
                for row in batch.to_pylist():
                    blocks.setdefault(row["bucket"], []).append(row["events"])
        told = [row for label, of_label in blocks.items() for row in self._step(label, of_label)]
        # A timer of the very time of the watermark may go off, or in the next micro-batch.
        border = self.watermark + self._rng.randint(0, 1)
        due = [(label, t) for label, timers in self.timers.items() for t in timers if t < border]
        # One that is unset meanwhile may be told of all the same.
        for label, timer in due:
            told += self._step(label, [], expired=timer)
        return self._unpacked(told)

    def sum(self, name: str) -> int:
        """A count of all buckets, as of the last step of each: `waiting`, `kept`, `known`."""
        return sum(row[name] for row in self.kept.values())

    @property
    def stored(self) -> int:
        """The bytes of all states."""
        pieces = (data for of_label in self.segments.values() for data in of_label.values())
        return sum(map(len, (*self.headers.values(), *pieces)))

    def fixed_bytes(self) -> int:
        """The bytes of all headers but their entries of segments: what stands before them, and the
        record of what the query needs."""
        states = StreamFormats(self.query.program, self.options).states
        labels = self.task._labels
        records = (states.read(one, labels[at]).record for at, one in self.headers.items())
        return sum(112 + 4 + len(record) for record in records)

    def finish(self) -> list[dict[str, Any]]:
        """What is left when no more events come: as a last micro-batch would tell it, or as what
        ends a stream reads it from the states."""
        if self._rng.random() < 0.5:
            states = [
                {
                    "bucket": label,
                    "state": [
                        {"place": place, "data": text_of(data)}
                        for place, data in {HEADER: header, **self.segments[label]}.items()
                    ],
                }
                for label, header in self.headers.items()
            ]
            batch = pa.RecordBatch.from_pylist(states, schema=STATES)
            return [row for found in self._finished(batch) for row in found.to_pylist()]
        self.watermark = AFTER_ALL
        return self._unpacked([row for label in [*self.headers] for row in self._step(label, [])])

    def _batches(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        """Cut at random, texts coded this or that way."""
        return batches_of(events, self._rng)

    def _step(
        self, label: int, blocks: Sequence[bytes], *, expired: int | None = None
    ) -> list[dict[str, Any]]:
        stored = self.segments.setdefault(label, {})
        step, rows = self.task.step(
            label, self.headers.get(label), stored.get, blocks, self.watermark
        )
        self.timers = noted_timers(self.timers, label, step, expired, self.watermark)
        if step.is_changed:
            self.headers[label] = step.header
            self.written += len(step.header)
        for place in step.removed:
            del stored[place]
        for place, data in step.written.items():
            assert place not in stored, "a segment is never changed"
            stored[place] = data
            self.written += len(data)
        for name in self.counts:
            self.counts[name] += sum(row[name] for row in rows)
        self.kept[label] = rows[0]
        return rows

    def _unpacked(self, told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        if not told:
            return []
        batch = pa.RecordBatch.from_pydict(
            {
                name: pa.array([row[name] for row in told], pa.binary())
                for name in ("found", "refused")
            }
        )
        return [row for found in self._of_messages(batch) for row in found.to_pylist()]

    # --- the steps of a worker, which other kinds of queries have in other forms ------------------

    def _task(self) -> BucketTask:
        return BucketTask(self.query.program, self.options)

    def _packed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return packed(self.query.program, self.options, batches, self.rules)

    def _of_messages(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return unpacked(self.query.program, self.options, [batch], self.rules)

    def _finished(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return finished(self.query.program, self.options, [batch], self.rules)


def noted_timers(
    known: dict[int, set[int]], label: int, step: Any, expired: int | None, watermark: int
) -> dict[int, set[int]]:
    """The timers of all buckets after a step of one, held against what Spark allows."""
    timers = set(known.get(label, ()))
    if expired is not None:
        # Spark takes an expired timer away by itself once its handler has returned.
        timers.discard(expired)
    for timer in step.unset_timers:
        assert timer in timers or timer == expired, "no such timer is set"
        timers.discard(timer)
    for timer in step.set_timers:
        assert timer not in timers, "the timer is set already"
        assert timer > watermark, "a timer would go off at once"
        timers.add(timer)
    assert len(timers) <= 1, "timers gather"
    others = {one: of_one for one, of_one in known.items() if one != label}
    return {**others, label: timers} if timers else others


def shuffled(times: Sequence[int], delay: int, rng: random.Random) -> list[int]:
    """The numbers of times (microseconds) in an order in which none comes behind one that is later
    by `delay` (milliseconds) or more."""
    moved = [time + rng.random() * 1000 * delay for time in times]
    return sorted(range(len(times)), key=lambda number: (moved[number], number))


def streamed(
    query: CompiledQuery,
    events: Sequence[Event],
    rng: random.Random,
    *,
    options: StreamOptions | None = None,
    largest: int = 3,
    time: str = EVENT_TIME,
    rules: Rows | None = None,
) -> list[dict[str, Any]]:
    """The rows that come out of events, which are in the order of `time`, in micro-batches of up to
    `largest`, in an order that the watermark's delay allows, which is drawn too. Half of the
    streams have segments of few rows with sections, where few partitions are busy. `rules`: the
    rows of a query FOR EACH."""
    with perhaps_in_sections(rng):
        return _streamed(query, events, rng, options, largest, time, rules)


@contextmanager
def perhaps_in_sections(rng: random.Random) -> Iterator[None]:
    """Half of the time, segments of few rows have sections."""
    with pytest.MonkeyPatch.context() as patch:
        if rng.random() < 0.5:
            patch.setattr(sections, "WHOLE", 2)
            patch.setattr(sections, "_ROWS", 1)
        yield


def _streamed(
    query: CompiledQuery,
    events: Sequence[Event],
    rng: random.Random,
    options: StreamOptions | None,
    largest: int,
    time: str,
    rules: Rows | None,
) -> list[dict[str, Any]]:
    # As Spark makes them, before Python.
    table = with_derived(query.plan, table_of(query.plan, events))
    return streamed_table(query, table, rng, options, largest, time, rules)


def streamed_table(
    query: CompiledQuery,
    table: pa.Table,
    rng: random.Random,
    options: StreamOptions | None,
    largest: int = 3,
    time: str = EVENT_TIME,
    rules: Rows | None = None,
) -> list[dict[str, Any]]:
    """The rows of `streamed` events that are a table already, with their derived columns."""
    operator = Operator(query, options, rng=rng, rules=rules)
    times = [microseconds(one) for one in table.column(time).to_pylist()]
    # An event of the very time of the watermark would be late.
    delays = (0, 1, 2, 5, 1000) if len(set(times)) == len(times) else (1, 2, 5, 1000)
    delay = rng.choice(delays)
    rows: list[dict[str, Any]] = []
    for chosen, watermark in micro_batches(times, delay, rng, largest):
        rows += operator.advance(table.take(chosen) if chosen else None, watermark)
    rows += operator.finish()
    assert not operator.counts["late"], "no event was late"
    return rows


def micro_batches(
    times: Sequence[int], delay: int, rng: random.Random, largest: int
) -> Iterator[tuple[list[int], int]]:
    """The events of each micro-batch, by number, and its watermark in milliseconds. No event is
    late; some micro-batches are empty, the last one perhaps. times: in microseconds."""
    order = shuffled(times, delay, rng)
    place = latest = 0
    while place < len(order):
        count = 0 if rng.random() < 0.1 else rng.randint(1, largest)
        chosen = order[place : place + count]
        # As in Spark, a micro-batch sees the watermark of what came before it.
        yield chosen, max(0, latest - delay)
        latest = max([latest, *(times[number] // 1000 for number in chosen)])
        place += count
    if rng.random() < 0.5:
        yield [], max(0, latest - delay)


class Heard(NamedTuple):
    """What came of a stream of which some events were late, and the others, in their order."""

    rows: list[Row]
    events: list[Event]


def streamed_behind(
    query: CompiledQuery,
    events: Sequence[Event],
    rng: random.Random,
    *,
    buckets: int = 1,
    source: str | None = None,
    rules: Rows | None = None,
) -> Heard:
    """The rows that come out of events of which many come behind the watermark, and not for that
    are late: a partition can begin when the deadlines, the window and the span of its first events
    have passed already.

    Each source has a delay of its own, often one that is longer than that of the watermark. It is a
    partition, or has one value of the column `source`. Events are in their order, and `row` tells
    them apart. `rules`: the rows of a query FOR EACH, whose late events are known where each event
    concerns one of the rows.
    """
    delay, delays = rng.choice((0, 0, 1, 3)), dict[Any, int]()
    moved = []
    for event in events:
        key = key_of(query.plan, event) if source is None else event[source]
        behind = delays.setdefault(key, rng.choice((0, 0, 2, 6, 15, 40)))
        time = microseconds(event[EVENT_TIME])
        moved.append(time + 1000 * (behind + rng.random() * (delay + 1)))
    order = sorted(range(len(events)), key=moved.__getitem__)
    # A query FOR EACH does not hand back its late events. There the count tells of a single one.
    late, of_rules = ("side", 0) if rules is None else ("drop", hash_of_rows(rules))
    options = StreamOptions({"row": "LONG"}, late=late, buckets=buckets, rules=of_rules)
    table, told, refused = table_of(query.plan, events), list[Row](), set[int]()
    with perhaps_in_sections(rng):
        operator = Operator(query, options, rng=rng, rules=rules)
        place = latest = 0
        while place < len(order):
            count = rng.choice((0, 1, 1, 1, 2, 4)) if rules is None else 1
            chosen = order[place : place + count]
            counted = operator.counts["late"]
            watermark = max(0, latest - delay)
            told += operator.advance(table.take(chosen) if chosen else None, watermark)
            if rules is not None and operator.counts["late"] > counted:
                refused.update(events[number]["row"] for number in chosen)
            times = [microseconds(events[number][EVENT_TIME]) // 1000 for number in chosen]
            latest = max([latest, *times])
            place += count
        told += operator.finish()
    matches = [row for row in told if row.get("kind", "match") == "match"]
    refused.update(row["event"]["row"] for row in told if row.get("kind") == "late")
    names = query.output_schema.names
    return Heard(
        [{name: row[name] for name in names} for row in matches],
        [event for event in events if event["row"] not in refused],
    )


class SlicedStream(NamedTuple):
    """A query and events as `match_stream` with `after` or `until` reads them: it goes on behind
    `until`, and passes on what is known in between."""

    query: CompiledQuery
    slice: Slice

    @classmethod
    def of(cls, query: CompiledQuery, after: Any, until: Any) -> SlicedStream:
        """Raises EventError where the query has no such slices."""
        found = slice_of(query.program.on_spark, after, until, goes_on=True)
        assert found is not None
        return cls(CompiledQuery(found.program), found)

    def events_of(self, table: pa.Table) -> pa.Table:
        """The events that are read."""
        stretch = replace(self.slice.read, high=None)
        return stretch.of_events(self.query.plan, table)

    def rows_of(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that are passed on."""
        if not rows:
            return []
        schema = self.query.output_schema
        batches = pa.Table.from_pylist([*rows], schema).combine_chunks().to_batches()
        return [row for batch in self.slice.keeps(batches) for row in batch.to_pylist()]


def microseconds(time: dt.datetime) -> int:
    """How long a time is after 1970."""
    return (time - instant(0)) // dt.timedelta(microseconds=1)


def same_rows(found: Iterable[Row], wanted: Iterable[Row]) -> str:
    """What tells rows apart, whatever their order; empty where they are the same."""
    left, right = Counter(map(repr, found)), Counter(map(repr, wanted))
    lines = [f"missing: {row}" for row in (right - left).elements()]
    lines += [f"too many: {row}" for row in (left - right).elements()]
    return "\n".join(lines)


def in_order(query: CompiledQuery, rows: Sequence[Row]) -> bool:
    """Whether the matches of each partition come in the order of their last events."""
    end = "end_pos" if query.plan.answer.positions else "end_time"
    last: dict[str, Any] = {}
    for row in rows:
        key = repr([row[name] for name in query.plan.source.partition_by])
        if row[end] < last.get(key, row[end]):
            return False
        last[key] = row[end]
    return True

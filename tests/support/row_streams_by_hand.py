"""Streams of MATCH_RECOGNIZE by hand: the three steps of a worker, with states as bytes."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from celc_runtime.row_pattern.streams.tasks import finished, packed, task_of, unpacked
from celc_runtime.row_pattern.tables import conforming_table
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.tasks import BucketTask
from engines import interpreted
from row_cases import compiled
from streams_by_hand import Operator, micro_batches, microseconds, perhaps_in_sections


class RowOperator(Operator):
    """The operator of a stream of MATCH_RECOGNIZE. Every step is that of a new task, which knows
    nothing but the bytes of the buckets."""

    def _task(self) -> BucketTask:
        return task_of(self.query.program, self.options)

    def _packed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return packed(self.query.program, self.options, batches)

    def _of_messages(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return unpacked(self.query.program, self.options, [batch])

    def _finished(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return finished(self.query.program, self.options, [batch])

    def _batches(self, events: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from events.to_batches()

    def advance(self, events: pa.Table | None, watermark: int) -> list[dict[str, Any]]:
        """One micro-batch, after a restart."""
        self.task = self._task()
        return super().advance(events, watermark)


def query_of(text: str) -> Any:
    """The query of a text, interpreted."""
    with interpreted():
        return compiled(text).queries["q"]


def row_options(query: Any, rng: random.Random, **options: Any) -> StreamOptions:
    """Options of a stream, with a random number of buckets."""
    buckets = rng.choice((1, 2, 7)) if query.plan.partition_by else 1
    return StreamOptions(
        options.pop("tiebreak_types", {}), has_types=False, buckets=buckets, **options
    )


def as_read(query: Any, table: pa.Table) -> pa.Table:
    """The columns that a query reads of a table, as Spark makes them before Python."""
    return conforming_table(query.plan, table, derived=False)


def row_streamed(
    query: Any, table: pa.Table, rng: random.Random, *, largest: int = 3
) -> list[dict[str, Any]]:
    """The rows that come out of a table in micro-batches of up to `largest` rows, in an order that
    the watermark's delay allows."""
    with perhaps_in_sections(rng):
        operator = RowOperator(query, row_options(query, rng), rng=rng)
        times = times_of(query, table)
        delays = (0, 1, 1000, 60_000, 200_000) if len(set(times)) == len(times) else (1, 1000)
        order = pa.array(sorted(range(len(times)), key=times.__getitem__), pa.int64())
        table = as_read(query, table).take(order)
        found: list[dict[str, Any]] = []
        for chosen, watermark in micro_batches(sorted(times), rng.choice(delays), rng, largest):
            found += operator.advance(table.take(chosen) if chosen else None, watermark)
        found += operator.finish()
        assert not operator.counts["late"], "no row was late"
    return found


def times_of(query: Any, table: pa.Table) -> list[int]:
    """The times of rows in microseconds, by the first order column."""
    name = query.order_by[0]
    column = table.column(name) if name in table.column_names else as_read(query, table)[name]
    values: Sequence[dt.datetime] = column.cast(pa.timestamp("us", "UTC")).to_pylist()
    return [microseconds(value) for value in values]

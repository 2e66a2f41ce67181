"""Time ranges on workers: runs that begin in the middle of a stream or of a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.paths import received
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import ARROW_TYPES
from celc_runtime.program import Program, Route
from celc_runtime.run.run import Run

ShippedRange: TypeAlias = tuple[int | float | None, int, int]
"""The value at which a range's own events begin (None: with its first event), the position of its
first event, and how many events it has; times as whole numbers."""


def ranges_route(program: Program) -> Route:
    """The function of Spark tasks that read time ranges: from the name of the column that numbers
    them (empty: there is one range), the ranges, and batches."""

    def match_ranges(
        program: Program,
        column: str,
        ranges: tuple[ShippedRange, ...],
        batches: Iterable[pa.RecordBatch],
    ) -> Iterator[pa.RecordBatch]:
        return matches_in_ranges(program, column, ranges, map(received, batches))

    return Route(program, "ranges_route", match_ranges)


def matches_in_ranges(
    program: Program,
    column: str,
    ranges: tuple[ShippedRange, ...],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The matches of one task.

    Without the name of a column the task reads one range. Else the column has the number of each
    row's range, counted from 1, and 0 for keys that are read as a whole; the rows of a range stand
    one after another.
    """
    if not column:
        reader = _RangeReader(program, ranges[0])
        for batch in batches:
            yield from reader.push(batch)
        reader.finish()
        return
    whole = Run(program, ties_are_errors=True)
    of_range: _RangeReader | None = None
    number = 0
    for batch in batches:
        place = batch.schema.get_field_index(column)
        in_ranges = np.asarray(batch.column(place))
        events = batch.remove_column(place)
        for start, end in _stretches(in_ranges):
            part = events.slice(start, end - start)
            if in_ranges[start] == 0:
                yield from whole.push(part)
                continue
            if in_ranges[start] != number:
                if of_range is not None:
                    of_range.finish()
                number = int(in_ranges[start])
                of_range = _RangeReader(program, ranges[number - 1])
            assert of_range is not None
            yield from of_range.push(part)
    if of_range is not None:
        of_range.finish()
    whole.finish()


def _stretches(numbers_of_rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """The first row of each stretch of equal numbers, and the row behind it."""
    if not len(numbers_of_rows):
        return
    cuts = np.flatnonzero(np.diff(numbers_of_rows)) + 1
    edges = [0, *cuts.tolist(), len(numbers_of_rows)]
    yield from pairwise(edges)


class _RangeReader:
    """Reads one range; no match that ends before its own events is listed."""

    def __init__(self, program: Program, shipped: ShippedRange) -> None:
        self._program = program
        self._start, first_position, self._expected = shipped
        self._run = Run(
            program, ties_are_errors=True, first_position=first_position, continues=True
        )
        self._run.lists_matches = self._start is None
        self._seen = 0

    def push(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not len(events):
            return
        self._seen += len(events)
        if not self._run.lists_matches:
            early = self._early(events)
            if early:
                yield from self._run.push(events.slice(0, early))
            if early == len(events):
                return
            self._run.forget_undeclared()  # another range reads these as its own
            self._run.lists_matches = True
            events = events.slice(early)
        yield from self._run.push(events)

    def _early(self, events: pa.RecordBatch) -> int:
        """How many events at the beginning of a batch are before the range's own events."""
        plan = self._program.plan
        name = plan.order_by[0]
        column = events.column(name).cast(ARROW_TYPES[plan.type_of(name)])
        values, known = numbers(column)
        return int(np.count_nonzero((values < self._start) & known))

    def finish(self) -> None:
        """End the range, with its warnings. Raises EventError where its events are not as many as
        were counted, because positions and the ranges of other tasks would not fit them."""
        found = self._seen - self._run.dropped
        if found != self._expected:
            raise EventError(
                f"query {self._program.name!r}: a time range had {self._expected:,} events when "
                f"they were counted and {found:,} when they were read: the DataFrame does not give "
                "the same rows each time; write it to files or cache it first, or use "
                "match(df, ranges=1)"
            )
        self._run.finish()

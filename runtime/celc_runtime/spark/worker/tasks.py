"""What a task of a batch job does with its rows: runs from the first event of a partition, and runs
that begin in the middle of a stream or of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.events.event_order import tie_error
from celc_runtime.arrow.events.paths import received
from celc_runtime.arrow.shown import shown
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.run.feeding import NewRun, ReadsRanges
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.answers.wire import Wire
from celc_runtime.spark.worker.rows_between import RowsBetween
from celc_runtime.spark.worker.sorted_rows import sorted_rows
from celc_runtime.spark.worker.task_columns import COUNTED, TIED, TaskColumns

ShippedRange: TypeAlias = tuple[int | float | None, int, int | None, int | float | None]
"""The value at which a range's own events begin (None: with its first event), the position of its
first event, how many events it has (None: that is not checked), and the value from which on they
are not its own (None: there is none); times as whole numbers."""


class Task:
    """What `mapInArrow` gets: the work of a task, with all that the driver has chosen."""

    def __init__(
        self,
        program: Program,
        wire: Wire,
        columns: tuple[Any, ...],
        ranges: tuple[ShippedRange, ...] = (),
    ) -> None:
        """columns: of `TaskColumns.shipped`, since a worker reads a pickle before it has this
        runtime."""
        self._program = program
        self._wire = wire
        self._columns = columns
        self._ranges = ranges

    def __call__(self, batches):  # type: ignore[no-untyped-def]
        # No annotation; see `ShippedFunction`.
        undecided: list[int] = []
        found = matches_of_task(
            self._program,
            TaskColumns.of(self._columns),
            self._ranges,
            map(received, batches),
            undecided.append,
            self._wire.new_run,
        )
        return self._wire.pack(found, undecided)

    def __reduce__(self) -> Any:
        made = ShippedFunction(self._program, "match", Task)
        return made, (self._wire, self._columns, self._ranges)


def matches_of_task(
    program: Program,
    columns: TaskColumns,
    ranges: tuple[ShippedRange, ...],
    batches: Iterable[pa.RecordBatch],
    tell_undecided: Callable[[int], object] | None = None,
    new_run: NewRun = run_of,
) -> Iterator[pa.RecordBatch]:
    """The matches of one task, which reads one of `ranges`, or several told apart by a column, or
    whole partitions. In the end `tell_undecided` is told how many matches were left undecided.
    `new_run` makes a run of the program.

    Raises EventError where two rows of a partition are equal in their order, and where a range has
    not as many rows as were counted.
    """
    # If rows are numbered, marks say which rows are tied: the run need not compare them.
    options = RunOptions(ties_are_errors=not columns.number)

    def reader_of(of_range: ShippedRange) -> _RangeReader:
        _, first, _, _ = of_range
        run = new_run(program, replace(options, first_position=first, continues=True))
        return _RangeReader(program, of_range, run)

    whole = _WholeReader(program, new_run(program, options))
    alone = reader_of(ranges[0]) if ranges and not columns.range else None
    reader, number, undecided = alone or whole, 0, 0
    for batch in sorted_rows(program.plan, columns, batches):
        rows = _Rows.of(program.plan, columns, batch)
        for start, end in stretches_of(rows.ranges):
            in_range = int(rows.ranges[start])
            if in_range != number:
                yield from reader.rest()
                undecided += reader.finish()
                of_range = ranges[in_range - 1] if in_range else None
                reader = whole if of_range is None else reader_of(of_range)
                number = in_range
            yield from reader.push(rows.slice(start, end))
    yield from reader.rest()
    undecided += reader.finish()
    whole.warn()
    if tell_undecided is not None:
        tell_undecided(undecided + whole.undecided)


class _Rows(NamedTuple):
    """Events, with the numbers and marks that Spark gave them (None: it gave none), and the numbers
    of their ranges (0 where no column tells)."""

    events: pa.RecordBatch
    numbers: np.ndarray | None
    marks: np.ndarray | None
    ranges: np.ndarray

    @classmethod
    def of(cls, plan: Plan, columns: TaskColumns, batch: pa.RecordBatch) -> _Rows:
        """The rows of a batch. Raises EventError where two are equal in their order."""
        given = {name: np.asarray(batch.column(name)) for name in columns[:3] if name}
        events = batch.drop_columns(list(given)) if given else batch
        marks = given.get(columns.mark)
        if marks is not None and (tied := marks == TIED).any():
            raise tie_error(plan, _order_of(plan, batch, int(tied.argmax())))
        ranges = given.get(columns.range, np.zeros(len(batch), np.int32))
        return cls(events, given.get(columns.number), marks, ranges)

    def slice(self, start: int, end: int) -> _Rows:
        """The rows from one on and before another."""
        part = slice(start, end)
        return _Rows(
            self.events.slice(start, end - start),
            None if self.numbers is None else self.numbers[part],
            None if self.marks is None else self.marks[part],
            self.ranges[part],
        )

    def where(self, wanted: np.ndarray) -> _Rows:
        """The rows for which `wanted`, bool[rows], is true."""
        if wanted.all():
            return self
        return _Rows(
            self.events.filter(pa.array(wanted)),
            None if self.numbers is None else self.numbers[wanted],
            None if self.marks is None else self.marks[wanted],
            self.ranges[wanted],
        )


def _order_of(plan: Plan, batch: pa.RecordBatch, row: int) -> str:
    names = dict.fromkeys((*plan.source.order_by, *plan.source.tiebreak))
    return ", ".join(f"{name}={shown(batch.column(name)[row])}" for name in names)


def stretches_of(values: np.ndarray) -> Iterator[tuple[int, int]]:
    """The first row of each stretch of equal values, and the row behind it."""
    if not len(values):
        return
    cuts = np.flatnonzero(np.diff(values)) + 1
    edges = [0, *cuts.tolist(), len(values)]
    yield from pairwise(edges)


def _pushed(
    run: ReadsRanges, rows: _Rows, between: RowsBetween | None, *, first_position: int
) -> Iterator[pa.RecordBatch]:
    """The matches that end in rows; `between` puts back those that were left out."""
    if rows.numbers is None:
        yield from run.push(rows.events)
    elif between is None:
        yield from run.push(rows.events, first_position - 1 + rows.numbers)
    else:
        for events, absent in between.filled(rows.events, rows.numbers):
            yield from run.push(events, absent=absent)


class _WholeReader:
    """Reads whole partitions, one after another."""

    def __init__(self, program: Program, run: ReadsRanges) -> None:
        self._run = run
        self._between = (
            None if program.plan.source.told_apart is None else RowsBetween(program.plan)
        )

    def push(self, rows: _Rows) -> Iterator[pa.RecordBatch]:
        yield from _pushed(self._run, rows, self._between, first_position=0)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The matches that wait for more events: a range or nothing comes next."""
        return self._run.rest()

    def finish(self) -> int:
        """Do nothing, because more partitions may follow a range; 0: no match is undecided."""
        return 0

    @property
    def undecided(self) -> int:
        """The number of matches that are undecided so far."""
        return self._run.undecided

    def warn(self) -> None:
        """End the task, with its warnings."""
        self._run.finish()


class _RangeReader:
    """Reads one range; only matches that end in its own events are listed."""

    def __init__(self, program: Program, shipped: ShippedRange, run: ReadsRanges) -> None:
        self._program = program
        self._start, self._first_position, self._expected, self._later = shipped
        self._run = run
        self._between = (
            None if program.plan.source.told_apart is None else RowsBetween(program.plan)
        )
        self._seen = 0
        self._is_in_own: bool | None = None
        self._numbered = False

    def push(self, rows: _Rows) -> Iterator[pa.RecordBatch]:
        if not len(rows.events):
            return
        if rows.numbers is None:
            self._seen += len(rows.events)
        else:
            assert rows.marks is not None
            self._numbered = True
            self._seen = max(self._seen, int(rows.numbers.max()))
            rows = rows.where(rows.marks != COUNTED)
        for is_own, part in self._parts(rows):
            if is_own != self._is_in_own:
                yield from self._run.end_of_instant()
                self._run.lists_matches = self._is_in_own = is_own
                # The range that reads these rows as its own counts those of undeclared types. If
                # rows are numbered, no other range has got these.
                self._run.undeclared.counts = is_own or rows.numbers is not None
            yield from self._push(part)

    def _parts(self, rows: _Rows) -> Iterator[tuple[bool, _Rows]]:
        """The stretches of rows that are the range's own, and those that are before these or
        behind them."""
        if self._start is None and self._later is None:
            yield True, rows
            return
        plan = self._program.plan
        name = plan.source.order_by[0]
        column = rows.events.column(name).cast(arrow_type(plan.source.type_of(name)))
        values, known = numbers(column)
        is_own = np.ones(len(values), np.bool_)
        if self._start is not None:
            is_own &= ~known | (values >= self._start)
        if self._later is not None:
            is_own &= ~known | (values < self._later)
        for start, end in stretches_of(is_own):
            yield bool(is_own[start]), rows.slice(start, end)

    def _push(self, rows: _Rows) -> Iterator[pa.RecordBatch]:
        if not len(rows.events):
            return
        yield from _pushed(self._run, rows, self._between, first_position=self._first_position)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The matches that wait for more events: the range is over."""
        return self._run.rest()

    def finish(self) -> int:
        """End the range, with its warnings; returns how many of its matches were left undecided.
        Raises EventError where its events are not as many as were counted, because positions and
        the ranges of other tasks would not fit them."""
        seen = self._seen if self._numbered else self._seen - self._run.undeclared.rows
        if self._expected is not None and seen != self._expected:
            found = f"{seen:,}"
            if self._numbered:
                # The row with the last number is not there, or one with a greater number is.
                found = "fewer" if seen < self._expected else "more"
            raise EventError(
                f"query {self._program.name!r}: a time range had {self._expected:,} events when "
                f"they were counted and {found} when they were read: the DataFrame does not give "
                "the same rows each time; write it to files or cache it first, or use "
                "match(df, ranges=1)"
            )
        self._run.finish()
        return self._run.undecided

"""The matches of events that one process reads, from batches or from a table.

A query FOR EACH row of a table has another run than others (`new_run`). Whatever runs one query
makes its run here, so that every batch route has FOR EACH. What such a query alone needs is
imported for its first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from celc_runtime.arrow.events.sorting import Sorted, order_for
from celc_runtime.arrow.matches.compact import schema_of
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.pieces import TINY, joined
from celc_runtime.arrow.tables.event_tables import batches_of, entered, table_of
from celc_runtime.arrow.tables.few_rows import MOST_ROWS_READ, FewRows, few_rows
from celc_runtime.arrow.tables.pandas_frames import frame_of
from celc_runtime.arrow.tables.slices import EventsBetween, Slice, slice_of
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.rules.inner import over_events
from celc_runtime.run.choice.deadlines import latest_time
from celc_runtime.run.feeding import Reads, ReadsParts, ReadsRanges, read_all, read_with_positions
from celc_runtime.run.parts import (
    ROWS_THAT_PAY,
    NewRun,
    answer_of_parts,
    latest_of,
    parts_of,
    threads_of,
)
from celc_runtime.run.prefilter import LEAST_ROWS, can_prefilter, prefiltered
from celc_runtime.run.run_of import compact_run, run_of
from celc_runtime.run.seen import warn_at_the_end
from celc_runtime.run.small_run import matches_of_few
from celc_runtime.run.source.run_options import PLAIN, RunOptions
from celc_runtime.run.threads import workers_of
from celc_runtime.run.walk.compact import are_graphs
from celc_runtime.run.walk.walks import NOTED_ROWS

if TYPE_CHECKING:
    import pandas

_ROWS = 1 << 22  # of a batch


def new_run(
    program: Program, options: RunOptions = PLAIN, *, is_compact: bool = False
) -> ReadsRanges:
    """A new run of a program, to be fed batch by batch.

    Of a query FOR EACH it yields the matches row by row. is_compact: it returns graphs. Raises
    TypeError for a query FOR EACH without its table.
    """
    if program.plan.source.parameters is not None:
        from celc_runtime.rules.run import ForEachRun

        return ForEachRun(program, options, is_compact=is_compact)
    return compact_run(program, options) if is_compact else run_of(program, options)


def ordered_run(
    program: Program, options: RunOptions = PLAIN, *, is_compact: bool = False
) -> ReadsParts:
    """A new run as `new_run`; that of a query FOR EACH gives its matches in the order of tables
    (`OrderedForEach`)."""
    if program.plan.source.parameters is not None:
        from celc_runtime.rules.tables import OrderedForEach

        return OrderedForEach(program, options, is_compact=is_compact)
    return compact_run(program, options) if is_compact else run_of(program, options)


def given_run(program: Program, options: RunOptions = PLAIN) -> Reads[pa.RecordBatch]:
    """A run that is fed batches as they are given, and derives the columns that functions make."""
    run = new_run(program, options)
    return run if program.plan.source.is_as_given else _Derives(program, run)


class _Derives:
    """Derives the columns of a query's functions before its run reads them."""

    def __init__(self, program: Program, run: ReadsRanges) -> None:
        self._program, self._run = program, run
        self._rows = 0
        self.rest, self.finish = run.rest, run.finish

    def push(self, events: pa.RecordBatch, /) -> Iterator[pa.RecordBatch]:
        for batch in entered(self._program, pa.Table.from_batches([events]), self._rows):
            yield from self._run.push(batch)
        self._rows += len(events)


def read_plan(program: Program) -> Plan:
    """The plan by which the events of a program are sorted and read."""
    plan = program.plan
    return plan if plan.source.parameters is None else over_events(plan)


Keeps: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Passes on some rows of batches."""


def between(
    program: Program, events: Any, after: object, until: object
) -> tuple[Program, Any, Keeps | None]:
    """The program, the events to read, and what passes on the rows of a slice (None: all are).

    Raises the errors of `slice_of`.
    """
    slice = slice_of(program, after, until)
    if slice is None:
        return program, events, None
    slice.tell()
    return slice.program, EventsBetween(events, slice.read), slice.keeps


def sliced_run(
    program: Program,
    bounds: tuple[object, object],
    new: Callable[[Program], Reads[pa.RecordBatch]],
    read: Callable[[Program], Program],
) -> Reads[pa.RecordBatch]:
    """A run of `new` that reads and yields a slice; without bounds, as it is. read: what a program
    reads of the declared streams."""
    slice = slice_of(program, *bounds)
    if slice is None:
        return new(program)
    slice.tell()
    return _Sliced(slice, new(slice.program), read(slice.program))


class _Sliced:
    """Feeds the events of a slice to a run, and passes on its rows."""

    def __init__(self, slice: Slice, run: Reads[pa.RecordBatch], read: Program) -> None:
        self._slice, self._run, self._read = slice, run, read
        self._rows = 0
        self.finish = run.finish

    def push(self, events: pa.RecordBatch, /) -> Iterator[pa.RecordBatch]:
        read = pa.Table.from_batches([events])
        if not self._read.plan.source.is_as_given:
            # The order column may be one that is derived.
            read = pa.Table.from_batches(entered(self._read, read, self._rows))
        mask = self._slice.read.mask(self._read.plan, read, self._rows)
        self._rows += len(events)
        inside = events if mask is None else events.filter(mask.combine_chunks())
        yield from self._slice.keeps(self._run.push(inside))

    def rest(self) -> Iterator[pa.RecordBatch]:
        return self._slice.keeps(self._run.rest())


def matches_of_events(
    program: Program, events: Any, *, after: object = None, until: object = None, **tables: Any
) -> Iterator[pa.RecordBatch]:
    """The matches of events in any form; see `CompiledQuery.match_arrow`."""
    program, events, keeps = between(with_tables(program, tables), events, after, until)
    batches = batches_of(program, events)
    options, batches = _with_clock(program, RunOptions(), batches)
    found = read_all(ordered_run(program, options), batches)
    return found if keeps is None else keeps(found)


def matches_of_table(
    program: Program,
    events: Any,
    first: FirstMatches,
    options: RunOptions = PLAIN,
    *,
    threads: int | None = 1,
) -> pa.Table:
    """The matches of a table, in one table; see `CompiledQuery.match_table`."""
    plan, schema = read_plan(program), program.output_schema
    table = table_of(program, events)
    if len(table) <= MOST_ROWS_READ and options is PLAIN and not first.ends_early:
        found = _of_few(program, table, first)
        if found is not None:
            return found
    prefilters = options is PLAIN and not first.ends_early
    rows, count = _ordered(program, plan, table, threads, prefilters=prefilters)
    # A search that ends after some matches is one that begins with the first event.
    answer = None if first.ends_early else _in_parts(program, rows, options, count, ordered_run)
    if answer is not None:
        return pa.Table.from_batches(first.of(answer), schema)
    options, batches = _as_one_run(program, rows, options)
    if program.plan.source.parameters is not None:
        from celc_runtime.rules.run import ForEachRun
        from celc_runtime.rules.tables import in_order

        # Row by row, so that a call for a few matches ends early.
        place = unused_name("place", schema.names)
        run = ForEachRun(program, options, place=place)
        found = first.of(read_all(run, batches))
        matches = pa.Table.from_batches(found, schema.append(pa.field(place, pa.int64())))
        return in_order(program.plan, matches, place)
    # In several batches, rows that a later partition decides would come last of all.
    # Where rows were left out, the greatest time may be that of one of them.
    late = rows.positions is not None or (rows.size > NOTED_ROWS and bool(plan.source.key_columns))
    options, batches = _with_clock(program, options, batches, rows, late=late)
    answers = read_with_positions(run_of(program, options), batches, rows.positions)
    return pa.Table.from_batches(first.of(answers), schema)


def _of_few(program: Program, table: pa.Table, first: FirstMatches) -> pa.Table | None:
    """The matches of few rows that one kernel can take in; None: they take the way of all."""
    few = _read_as_few(program, table.schema)
    rows = None if few is None else few.read(table)
    if rows is None:
        return None
    found = list(first.of(matches_of_few(program, rows)))
    if not found:
        return program.no_rows
    return pa.Table.from_batches(found, program.output_schema)


def _read_as_few(program: Program, schema: pa.Schema) -> FewRows | None:
    """How few rows of a schema are read; None: by the way of all."""
    known = program.kept.get("few")
    if known is None or not known[0].equals(schema):
        known = program.kept["few"] = schema, few_rows(program, schema)
    found: FewRows | None = known[1]
    return found


def _ordered(
    program: Program, plan: Plan, table: pa.Table, threads: int | None, *, prefilters: bool = False
) -> tuple[Sorted, int]:
    """A table of events in the order of the plan by which they are read, and the number of threads
    that sort and read it, of those that are given (None: as many as pay). prefilters: rows that
    cannot matter may be left out."""
    table = joined(table, TINY)
    count = threads_of(len(table), threads, ROWS_THAT_PAY)
    workers = workers_of(count)
    if prefilters and len(table) >= LEAST_ROWS and can_prefilter(program):
        found = prefiltered(program, table, workers)
        if found is not None:
            return found, count
    return order_for(plan, table, program.kept, workers), count


def _as_one_run(
    program: Program, rows: Sorted, options: RunOptions
) -> tuple[RunOptions, Iterable[pa.RecordBatch]]:
    """The options of one run over rows, and its batches."""
    if program.plan.source.parameters is not None:  # its runs read pairs
        options = options.of_rows(rows.numbered, None, None)
    else:
        options = options.of_rows(rows.numbered, rows.arranged, rows.size)
        if rows.few is not None and rows.arranged is not None:
            return options, [rows.few]
    return options, rows.batches(0, rows.size, _ROWS)


def _in_parts(
    program: Program, rows: Sorted, options: RunOptions, count: int, new: NewRun
) -> list[pa.RecordBatch] | None:
    """The answer, found by `count` threads with runs that `new` makes; None: one run has to read
    the whole table."""
    if count == 1:
        return None
    plan = program.plan
    is_given = options.clock is not None or plan.choice.clock is not None
    if plan.source.parameters is not None and plan.asks_for_clock and not is_given:
        try:
            batches = rows.batches(0, rows.size, _ROWS)
            options = replace(options, clock=latest_time(read_plan(program), batches))
        except EventError:
            return None  # one run says what is wrong
    parts = parts_of(program, rows, count)
    answer = answer_of_parts(program, rows, parts, options, count, new) if parts else None
    if answer is None:
        return None
    warn_at_the_end(plan, *answer.seen)
    return answer.batches


def with_tables(program: Program, tables: Mapping[str, Any]) -> Program:
    """A program with the tables that a call gives for parameter sets (`given_rows`); without any,
    as it is."""
    if not tables:
        return program
    from celc_runtime.rules.rows import given_rows

    return replace(program, rows=given_rows(program, tables))


def _with_clock(
    program: Program,
    options: RunOptions,
    batches: Iterable[pa.RecordBatch],
    rows: Sorted | None = None,
    *,
    late: bool = False,
) -> tuple[RunOptions, Iterable[pa.RecordBatch]]:
    """The options with the greatest time of all events, if it must be known before they are read;
    a run FOR EACH finds it itself. rows: what the batches are of. late: also where a run could find
    it in the batches as it reads them."""
    source, choice = program.plan.source, program.plan.choice
    asks = program.compares_late or (late and program.plan.asks_for_clock)
    if source.parameters is not None or choice.clock is not None or not asks:
        return options, batches
    if rows is not None and rows.positions is not None:
        return replace(options, clock=latest_of(program.plan, rows)), batches
    batches = list(batches)
    try:
        clock = latest_time(program.plan, batches)
    except EventError:
        return options, batches  # the run says what is wrong, and names the row as it was given
    return replace(options, clock=clock), batches


def compact_of_events(
    program: Program, events: Any, *, after: object = None, until: object = None, **tables: Any
) -> Iterator[pa.RecordBatch]:
    """The compact answers of events in any form; see `CompiledQuery.match_compact_arrow`."""
    program, events, keeps = between(with_tables(program, tables), events, after, until)
    found = read_all(ordered_run(program, is_compact=True), batches_of(program, events))
    return found if keeps is None else keeps(found)


def compact_of_table(
    program: Program, events: Any, keeps: Keeps | None = None, *, threads: int | None = 1
) -> pa.Table:
    """The compact answers of a table, those that `keeps` passes on; see
    `CompiledQuery.match_compact`."""
    table = table_of(program, events)
    rows, count = _ordered(program, read_plan(program), table, threads, prefilters=True)
    batches: Iterable[pa.RecordBatch] | None
    batches = _in_parts(program, rows, PLAIN, count, partial(ordered_run, is_compact=True))
    if batches is None:
        options, read = _as_one_run(program, rows, PLAIN)
        run = ordered_run(program, options, is_compact=True)
        batches = read_with_positions(run, read, rows.positions)
    if keeps is not None:
        batches = keeps(batches)
    return pa.Table.from_batches(batches, schema_of(program.plan, listed=not are_graphs(program)))


def matches_of_frame(
    program: Program,
    frame: pandas.DataFrame,
    *,
    after: object = None,
    until: object = None,
    **tables: Any,
) -> pandas.DataFrame:
    """The matches of a frame as a frame; see `CompiledQuery.match_pandas`."""
    program, events, keeps = between(with_tables(program, tables), frame, after, until)
    return frame_of(matches_of_table(program, events, FirstMatches(None, keeps=keeps)))

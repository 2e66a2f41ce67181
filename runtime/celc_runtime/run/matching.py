"""The matches of events that one process reads, from batches or from a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.arrow.matches.compact import schema_of
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.tables.event_tables import batches_of, table_of
from celc_runtime.arrow.tables.pandas_frames import frame_of
from celc_runtime.program import Program
from celc_runtime.run.choice.deadlines import compares_late, latest_time
from celc_runtime.run.feeding import read_all
from celc_runtime.run.run_of import compact_run, run_of
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.walk.compact import are_graphs

if TYPE_CHECKING:
    import pandas


def matches_of_events(program: Program, events: Any) -> Iterator[pa.RecordBatch]:
    """The matches of events in any form; see `CompiledQuery.match_arrow`."""
    batches = batches_of(program, events)
    if program.plan.choice.clock is None and compares_late(program):
        batches = list(batches)
        options = RunOptions(clock=latest_time(program, batches))
        return read_all(run_of(program, options), batches)
    return read_all(run_of(program), batches)


def matches_of_table(program: Program, events: Any, first: FirstMatches) -> pa.Table:
    """The matches of a table, in one table; see `CompiledQuery.match_table`."""
    table, numbered = sorted_for(program.plan, table_of(program, events))
    batches = table.to_batches(max_chunksize=1 << 22)
    late = program.plan.choice.clock is None and compares_late(program)
    clock = latest_time(program, batches) if late else None
    run = run_of(program, RunOptions(numbered=numbered, clock=clock))
    matches = first.of(read_all(run, batches))
    return pa.Table.from_batches(matches, program.output_schema)


def compact_of_events(program: Program, events: Any) -> Iterator[pa.RecordBatch]:
    """The compact answers of events in any form; see `CompiledQuery.match_compact_arrow`."""
    return read_all(compact_run(program), batches_of(program, events))


def compact_of_table(program: Program, events: Any) -> pa.Table:
    """The compact answers of a table; see `CompiledQuery.match_compact`."""
    table, numbered = sorted_for(program.plan, table_of(program, events))
    run = compact_run(program, RunOptions(numbered=numbered))
    batches = read_all(run, table.to_batches(max_chunksize=1 << 22))
    return pa.Table.from_batches(batches, schema_of(program.plan, listed=not are_graphs(program)))


def matches_of_frame(program: Program, frame: pandas.DataFrame) -> pandas.DataFrame:
    """The matches of a frame as a frame; see `CompiledQuery.match_pandas`."""
    return frame_of(matches_of_table(program, frame, FirstMatches(None)))

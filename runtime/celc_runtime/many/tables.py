"""Many queries over a table, on one machine."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.arrow.tables.event_tables import batches_of, table_of
from celc_runtime.many.groups import ReadingGroup, of_inputs, reading_all, reading_groups
from celc_runtime.many.runs import ManyRuns
from celc_runtime.program import Program
from celc_runtime.run.choice.deadlines import latest_time
from celc_runtime.run.feeding import read_all
from celc_runtime.run.source.run_options import RunOptions

_ROWS = 1 << 20  # rows of a batch: so many that the fixed cost of a query is small


def matches_of_all(programs: Mapping[str, Program], events: Any) -> dict[str, pa.Table]:
    """The answer of each query to a table of events; see `match_all_table` of a module."""
    found: dict[str, list[pa.RecordBatch]] = {name: [] for name in programs}
    for name, answer in answers_of_all(programs, events):
        found[name].append(answer)
    return {
        name: pa.Table.from_batches(found[name], program.output_schema)
        for name, program in programs.items()
    }


def answers_of_all(
    programs: Mapping[str, Program], events: Any
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The same in batches, each with the name of its query."""
    groups = reading_groups(programs.values())
    if len(groups) > 1 and not isinstance(events, pa.Table):
        # A source that can be read only once is read here.
        events = table_of(of_inputs(reading_all(programs)), events)
    if isinstance(events, pa.Table):
        events = _with_coded_texts(events, groups)
    for group in groups:
        table, numbered = sorted_for(group.plan, table_of(group.reading, events))
        batches = table.to_batches(max_chunksize=_ROWS)
        clocks = {
            name: latest_time(program.plan, batches)
            for name, program in group.programs.items()
            if program.plan.choice.clock is None
            and program.plan.source.parameters is None
            and program.compares_late
        }
        runs = ManyRuns(group, RunOptions(numbered=numbered), clocks)
        yield from read_all(runs, batches)


def answers_of_sorted(
    group: ReadingGroup, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The answers of a group to events in its order, in bounded memory. No query of it asks for a
    time that is known before (`Program.compares_late`)."""
    return read_all(ManyRuns(group), batches_of(group.reading, batches))


def _with_coded_texts(events: pa.Table, groups: Iterable[ReadingGroup]) -> pa.Table:
    """A table with its texts as codes: each group sorts it, and moves less then."""
    read = {name for group in groups for name in names_read(group.plan)}
    for place, name in enumerate(events.column_names):
        if name in read and pa.types.is_string(events.schema.types[place]):
            events = events.set_column(place, name, events.column(place).dictionary_encode())
    return events

"""The matches of a table of events FOR EACH row of a parameter table, on one machine."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, plain, sortable
from celc_runtime.arrow.events.sorting import is_sorted, sorted_for
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.rules.inner import over_events
from celc_runtime.rules.rows import given_rows
from celc_runtime.rules.run import ForEachRun
from celc_runtime.run.feeding import read_all
from celc_runtime.run.source.run_options import RunOptions


def matches_for_each(
    program: Program, events: Any, tables: Mapping[str, Any], first: FirstMatches
) -> pa.Table:
    """The matches of a table for each row of a parameter table; see `CompiledQuery.match_table`."""
    rows = given_rows(program, tables)
    table, numbered = sorted_for(over_events(program.plan), table_of(program, events))
    schema = program.output_schema
    place = unused_name("place", schema.names)
    run = ForEachRun(program, RunOptions(numbered=numbered), rows=rows, place=place)
    found = first.of(read_all(run, table.to_batches(max_chunksize=1 << 22)))
    matches = pa.Table.from_batches(found, schema.append(pa.field(place, pa.int64())))
    return _in_order(program.plan, matches, place).drop_columns([place])


def _in_order(plan: Plan, matches: pa.Table, place: str) -> pa.Table:
    """Matches in the order of their ends in each part, those of the same end in the order of
    rows."""
    ends = [name for name in ("end_pos", "span_start", "end_time") if name in matches.column_names]
    columns = [
        sortable(plain(in_one_piece(matches.column(name))))
        for name in (*plan.source.partition_by, *ends[:1], place)
    ]
    if not len(matches) or is_sorted(columns):
        return matches
    keys: list[pa.Array] = []
    for column in columns:
        keys += [column.is_valid(), column] if column.null_count else [column]
    names = list(map(str, range(len(keys))))
    order = pc.sort_indices(pa.table(keys, names=names), [(name, "ascending") for name in names])
    return matches.take(order)

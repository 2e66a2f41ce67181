"""The matches of a table of events FOR EACH row of a parameter table, on one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.event_tables import table_of
from celc_runtime.arrow.output import FirstMatches
from celc_runtime.arrow.sorting import sorted_for
from celc_runtime.program import Program
from celc_runtime.rules.inner import over_events
from celc_runtime.rules.rows import given_rows
from celc_runtime.rules.run import ForEachRun


def matches_for_each(
    program: Program, events: Any, tables: Mapping[str, Any], first: FirstMatches
) -> pa.Table:
    """The matches of a table for each row of a parameter table; see `CompiledQuery.match_table`."""
    rows = given_rows(program, tables)
    table, numbered = sorted_for(over_events(program.plan), table_of(program, events))
    run = ForEachRun(program, rows, numbered=numbered)

    def found() -> Iterator[pa.RecordBatch]:
        for batch in table.to_batches(max_chunksize=1 << 22):
            yield from run.push(batch)
        yield from run.rest()
        run.finish()

    return pa.Table.from_batches(first.of(found()), program.output_schema)

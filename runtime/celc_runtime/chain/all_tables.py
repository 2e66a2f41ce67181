"""All queries of a module over a table, on one machine: each is run once.

Queries of declared streams share readings (`many`). A query that reads others gets their rows from
the answers that are there.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.chain.clocks import with_clock_of_rows
from celc_runtime.chain.columns import as_run, source_of, types_of_chain
from celc_runtime.chain.rows import declared_rows, event_table, rows_for
from celc_runtime.chain.tables import check_order, conforming_batches, joined, latest_of
from celc_runtime.many.groups import of_inputs, reading_all, reading_groups
from celc_runtime.many.tables import matches_of_all
from celc_runtime.program import Program
from celc_runtime.rules.any_query import matches_of_table


def matches_of_module(programs: Mapping[str, Program], events: Any) -> dict[str, pa.Table]:
    """The answer of each query to a table of events; see `match_all_table` of a module."""
    readers = {name: one for name, one in programs.items() if one.plan.source.reads}
    if not readers:
        return matches_of_all(programs, events)
    for program in readers.values():
        check_order(program)
    table = table_of(reading_together(programs), events)
    types = frozenset().union(*map(types_of_chain, programs.values()))
    found: dict[str, pa.Table] = {}
    plain = [one for name, one in programs.items() if name not in readers]
    for group in reading_groups(plain):
        found |= matches_of_all(group.programs, rows_for(group.reading, table, types))
    for name, program in readers.items():
        own = joined(list(conforming_batches(program, table.to_batches())))
        if own is None:
            own = source_of(program).file_schema.empty_table()
        below = {one.name: _as_read(programs[one.name], found[one.name]) for one in program.levels}
        rows = event_table(program, declared_rows(program, own), below)
        program = with_clock_of_rows(program, partial(latest_of, program, own))
        found[name] = matches_of_table(as_run(program), rows, FirstMatches(None))
    return {name: found[name] for name in programs}


def reading_together(programs: Mapping[str, Program]) -> Program:
    """A program that reads what all queries of a module need of declared streams, directly or
    through others; it is never run.

    Raises EventError if two queries read a column in two types.
    """
    return reading_all({name: of_inputs(source_of(one)) for name, one in programs.items()})


def _as_read(program: Program, answer: pa.Table) -> pa.Table:
    """The answer of a query as another reads it: keys come first."""
    return answer if program.plan.answer.match_id is None else answer.remove_column(0)

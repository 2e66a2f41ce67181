"""A chain of queries over a table, on one machine: each query is run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.event_tables import table_of
from celc_runtime.arrow.output import FirstMatches
from celc_runtime.chain.columns import as_run, levels_of, source_of, types_of_chain
from celc_runtime.chain.rows import declared_rows, event_table, rows_for
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program
from celc_runtime.run.matching import matches_of_table


def chain_of_table(
    program: Program, events: Any, first: FirstMatches, *, ties_are_errors: bool = False
) -> pa.Table:
    """The matches of a query that reads others, in a table of the declared streams below them; see
    `CompiledQuery.match_table`. ties_are_errors: two events that the order leaves equal are."""
    check_order(program)
    table = table_of(source_of(program), events)
    types = types_of_chain(program)
    answers: dict[str, pa.Table] = {}
    for name, level in levels_of(program).items():
        if level.plan.reads:
            run, rows = as_run(level), event_table(level, declared_rows(level, table), answers)
        else:
            run, rows = level, rows_for(level, table, types)
        wanted = first if name == program.name else FirstMatches(None)
        answers[name] = matches_of_table(run, rows, wanted, ties_are_errors=ties_are_errors)
    return answers[program.name]


def chain_of_events(program: Program, events: Any) -> Iterator[pa.RecordBatch]:
    """The same for `CompiledQuery.match_arrow`, which reads all events first."""
    yield from chain_of_table(program, events, FirstMatches(None)).to_batches()


def check_order(program: Program) -> None:
    """Raises EventError where a query of the chain has another order, which with_options can do."""
    order = program.plan.order_by
    for name, level in levels_of(program).items():
        if level.plan.order_by != order:
            raise EventError(
                f"query {name!r} is ordered by {', '.join(level.plan.order_by) or 'no column'}, "
                f"and {program.name!r}, which reads it, by {', '.join(order)}"
            )

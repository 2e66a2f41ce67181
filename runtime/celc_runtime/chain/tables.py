"""A chain of queries over a table, on one machine: each query is run once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.tables.event_tables import batches_of, table_of
from celc_runtime.chain.columns import as_run, levels_of, source_of, types_of_chain
from celc_runtime.chain.rows import declared_rows, event_table, rows_for
from celc_runtime.chain.run import ChainRun, why_gathered
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program
from celc_runtime.rules.any_query import matches_of_table
from celc_runtime.run.feeding import read_all


def chain_of_table(program: Program, events: Any, first: FirstMatches) -> pa.Table:
    """The matches of a query that reads others, from a table of the declared streams below them.

    See `CompiledQuery.match_table`.
    """
    check_order(program)
    return _answer(program, table_of(source_of(program), events).to_batches(), first)


def _answer(program: Program, events: Iterable[pa.RecordBatch], first: FirstMatches) -> pa.Table:
    """The matches of a query that reads others; each level runs once on all events."""
    # In the declared types at once, because a column may have only one reader.
    table = _joined(list(conforming_batches(program, events)))
    if table is None:
        table = source_of(program).file_schema.empty_table()
    types = types_of_chain(program)
    answers: dict[str, pa.Table] = {}
    for name, level in levels_of(program).items():
        if level.plan.source.reads:
            run, rows = as_run(level), event_table(level, declared_rows(level, table), answers)
        else:
            run, rows = level, rows_for(level, table, types)
        wanted = first if name == program.name else FirstMatches(None)
        answers[name] = matches_of_table(run, rows, wanted)
    return answers[program.name]


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.Table | None:
    """The batches as one table; None: there is none.

    Texts lose their dictionaries if only some batches have these.
    """
    if any(batch.schema != batches[0].schema for batch in batches):
        batches = [
            pa.RecordBatch.from_arrays(
                [
                    one.dictionary_decode() if pa.types.is_dictionary(one.type) else one
                    for one in batch.columns
                ],
                batch.schema.names,
            )
            for batch in batches
        ]
    return pa.Table.from_batches(batches) if batches else None


def chain_of_events(program: Program, events: Any) -> Iterator[pa.RecordBatch]:
    """The same for `CompiledQuery.match_arrow`.

    It needs bounded memory if the chain can run batch by batch. Otherwise all events are read
    first.
    """
    check_order(program)
    batches = batches_of(source_of(program), events)
    if why_gathered(program):
        yield from _answer(program, batches, FirstMatches(None)).to_batches()
        return
    yield from read_all(ChainRun(program), conforming_batches(program, batches))


def conforming_batches(
    program: Program, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The columns that a chain reads, in their declared types; raises EventError for other
    types."""
    plan, rows = source_of(program).plan, 0
    for batch in batches:
        yield conforming(plan, batch, rows)
        rows += len(batch)


def check_order(program: Program) -> None:
    """Raises EventError if a query of the chain has another order, by `with_options`."""
    order = program.plan.source.order_by
    for name, level in levels_of(program).items():
        own = level.plan.source.order_by
        if own != order:
            raise EventError(
                f"query {name!r} is ordered by {', '.join(own) or 'no column'}, "
                f"and {program.name!r}, which reads it, by {', '.join(order)}"
            )

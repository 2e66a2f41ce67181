"""A chain of queries over a table, on one machine: each query is run once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.tables.event_tables import batches_of, table_of
from celc_runtime.arrow.tables.pandas_frames import frame_of
from celc_runtime.chain.clocks import with_clock_of_rows
from celc_runtime.chain.columns import Types, as_run, levels_of, source_of, types_of_chain
from celc_runtime.chain.rows import declared_rows, event_table, of_types, rows_for
from celc_runtime.chain.run import ChainRun, why_gathered
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program
from celc_runtime.rules.any_query import (
    Keeps,
    between,
    compact_of_table,
    matches_of_table,
    with_tables,
)
from celc_runtime.run.feeding import Reads, read_all
from celc_runtime.run.source.run_options import PLAIN, RunOptions

if TYPE_CHECKING:
    import pandas


def chain_of_table(
    program: Program, events: Any, first: FirstMatches, threads: int | None = 1
) -> pa.Table:
    """The matches of a query that reads others, from a table of the declared streams below them.

    See `CompiledQuery.match_table`.
    """
    check_order(program)
    batches = table_of(source_of(program), events).to_batches()
    return _answer(program, batches, first, threads=threads)


def chain_compact(
    program: Program, events: Any, keeps: Keeps | None, threads: int | None = 1
) -> pa.Table:
    """The compact answers of a query that reads others, those that `keeps` passes on; see
    `CompiledQuery.match_compact`."""
    check_order(program)
    batches = table_of(source_of(program), events).to_batches()
    found = _answer(program, batches, is_compact=True, threads=threads)
    if keeps is None:
        return found
    return pa.Table.from_batches(keeps(iter(found.to_batches())), found.schema)


def chain_compact_of_events(
    program: Program, events: Any, *, after: object = None, until: object = None, **tables: Any
) -> Iterator[pa.RecordBatch]:
    """The compact answers of a query that reads others, in batches; see
    `CompiledQuery.match_compact_arrow`."""
    program, events, keeps = between(with_tables(program, tables), events, after, until)
    run = chain_run(program, is_compact=True)
    found = read_all(run, batches_of(source_of(program), events))
    return found if keeps is None else keeps(found)


def _answer(
    program: Program,
    events: Iterable[pa.RecordBatch],
    first: FirstMatches | None = None,
    options: RunOptions = PLAIN,
    *,
    is_compact: bool = False,
    threads: int | None = 1,
) -> pa.Table:
    """The matches of a query that reads others; each level runs once on all events.

    first: which matches of the last query are wanted (None: all). options: for the queries of
    declared streams. is_compact: the last query returns graphs.
    """
    # In the declared types at once, because a column may have only one reader.
    table = joined(list(conforming_batches(program, events)))
    if table is None:
        table = source_of(program).file_schema.empty_table()
    types = types_of_chain(program)
    answers: dict[str, pa.Table] = {}
    for name, level in levels_of(program).items():
        if level.plan.source.reads:
            rows = event_table(level, declared_rows(level, table), answers)
            level = with_clock_of_rows(level, partial(latest_of, program, table))
            if name == program.name and is_compact:
                return compact_of_table(as_run(level), rows, threads=threads)
            wanted = first if name == program.name and first else FirstMatches(None)
            answers[name] = matches_of_table(as_run(level), rows, wanted, threads=threads)
        else:
            rows = rows_for(level, table, types)
            every = FirstMatches(None)
            answers[name] = matches_of_table(level, rows, every, options, threads=threads)
    return answers[program.name]


def latest_of(program: Program, table: pa.Table, types: Types) -> int | float | None:
    """The greatest time in the rows of some types (`Latest`), of a table that a chain reads."""
    plan = source_of(program).plan
    rows = of_types(plan, table, types)
    column = table.column(plan.source.order_by[0])
    latest = pc.max(column if rows is None else column.filter(pc.fill_null(rows, False)))
    if not latest.is_valid:
        return None
    if pa.types.is_floating(latest.type) or pa.types.is_integer(latest.type):
        number: int | float = latest.as_py()
        return number
    return int(latest.cast(arrow_type(plan.source.type_of(plan.source.order_by[0]))).value)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.Table | None:
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


class GatheredChain:
    """Feeds batches to a query that reads others, where the chain cannot run batch by batch
    (`why_gathered`): all events wait for the end."""

    def __init__(
        self, program: Program, options: RunOptions = PLAIN, *, is_compact: bool = False
    ) -> None:
        self._program = program
        self._options = options
        self._is_compact = is_compact
        self._batches: list[pa.RecordBatch] = []

    def push(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields nothing."""
        self._batches.append(events)
        yield from ()

    def rest(self) -> Iterator[pa.RecordBatch]:
        batches, self._batches = self._batches, []
        found = _answer(self._program, batches, options=self._options, is_compact=self._is_compact)
        yield from found.to_batches()

    def finish(self) -> None:
        """The queries have warned as each of them ended."""


def chain_run(
    program: Program, options: RunOptions = PLAIN, *, is_compact: bool = False
) -> Reads[pa.RecordBatch]:
    """A new run of a query that reads others, to be fed batches of the declared streams.

    It needs bounded memory if the chain can run batch by batch. Otherwise all events are read
    first. options: for the queries of declared streams. is_compact: the last one returns graphs.
    """
    check_order(program)
    kind = GatheredChain if why_gathered(program) else ChainRun
    return kind(program, options, is_compact=is_compact)


def chain_of_events(
    program: Program, events: Any, *, after: object = None, until: object = None, **tables: Any
) -> Iterator[pa.RecordBatch]:
    """The matches of a query that reads others, in batches; see `CompiledQuery.match_arrow`."""
    program, events, keeps = between(with_tables(program, tables), events, after, until)
    found = read_all(chain_run(program), batches_of(source_of(program), events))
    return found if keeps is None else keeps(found)


def chain_of_frame(
    program: Program,
    frame: pandas.DataFrame,
    *,
    after: object = None,
    until: object = None,
    **tables: Any,
) -> pandas.DataFrame:
    """The matches of a query that reads others, as a frame; see `CompiledQuery.match_pandas`."""
    program, events, keeps = between(with_tables(program, tables), frame, after, until)
    return frame_of(chain_of_table(program, events, FirstMatches(None, keeps=keeps)))


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

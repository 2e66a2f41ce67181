"""A chain of queries over a stream of batches: all levels run together, batch by batch.

A query that reads others gets the rows of one time when no more of them can come. This is known up
to the *horizon*. Rows of the declared streams come in order, so everything that ends before the
last row of a batch has been read. A query that reads declared streams returns the rows that end
before the horizon while it reads. Each query passes its rows on before its readers run.

So only the rows at the horizon wait, and the memory is that of the runs. It needs one PARTITION BY
for the whole chain, because partitions come one after another, and matches that are known at their
ends (`why_gathered`).
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, plain, plain_batch
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.partition_keys import codes_of_keys, key_tuples
from celc_runtime.arrow.tables.event_tables import entered
from celc_runtime.chain.columns import as_run, declared_types, levels_of, source_of, types_of_chain
from celc_runtime.chain.rows import declared_rows, event_table, rows_for
from celc_runtime.program import Program
from celc_runtime.rules.any_query import ordered_run
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.run_options import PLAIN, RunOptions


def why_gathered(program: Program) -> str:
    """Why a chain cannot run batch by batch; empty if it can."""
    plans = [level.plan for level in levels_of(program).values()]
    if len({plan.source.partition_by for plan in plans}) > 1:
        return "the queries have different PARTITION BY"
    if any(plan.source.made.intersection(plan.source.partition_by) for plan in plans):
        return "a key of PARTITION BY is computed"
    if any(plan.source.chosen_keys for plan in plans):
        return "a key of PARTITION BY is another attribute for each event type"
    if any(plan.interleaves for plan in plans):
        return "CONSUME BY ANY reads all partitions in one order"
    if any(plan.choice.deadlines for plan in plans):
        return "matches with an absence at their end are decided later than they end"
    if any(plan.choice.per_start is not None for plan in plans):
        return "which match is the longest from its start is known later than it ends"
    return ""


class _Level:
    """One query of a chain: its run, and the rows that wait for the horizon, by their source.

    Sources are the declared streams, and each query that it reads. is_compact: it returns graphs.
    """

    def __init__(self, program: Program, options: RunOptions, *, is_compact: bool = False) -> None:
        self.program = program
        self.reads = bool(program.plan.source.reads)
        self.run = (
            ordered_run(as_run(program), is_compact=is_compact)
            if self.reads
            else run_of(program, options)
        )
        self.declared: list[pa.Table] = []
        self.answers: dict[str, list[pa.RecordBatch]] = {level.name: [] for level in program.levels}

    @property
    def waiting(self) -> int:
        return sum(map(len, self.declared)) + sum(
            len(batch) for batches in self.answers.values() for batch in batches
        )

    def due(self, horizon: pa.Scalar | None) -> pa.Table | None:
        """The sorted events before the horizon (None: all); the rest waits."""
        declared = None
        order = self.program.plan.source.order_by[0]
        if self.declared:
            table = pa.concat_tables(self.declared)
            declared, rest = _cut(table, order, horizon)
            self.declared = [rest]
        answers = {}
        for level in self.program.levels:
            batches, schema = self.answers[level.name], level.output_schema
            table, rest = _cut(pa.Table.from_batches(batches, schema), "end_time", horizon)
            self.answers[level.name] = rest.to_batches()
            answers[level.name] = table
        if declared is None:
            declared = source_of(self.program).file_schema.empty_table()
        found = event_table(self.program, declared, answers)
        return found if len(found) else None


def _cut(table: pa.Table, name: str, horizon: pa.Scalar | None) -> tuple[pa.Table, pa.Table]:
    if horizon is None or not len(table):
        return table, table.slice(0, 0)
    column = table.column(name)
    before = pc.less(column, horizon.cast(column.type))
    # A row without a time is an error. The run of the query raises it.
    before = pc.fill_null(before, True)
    return table.filter(before), table.filter(pc.invert(before))


class ChainRun:
    """Feeds batches of the declared streams to all queries of a chain; yields those of the last
    one.

    Events come as for `Run`. The chain must be able to run batch by batch. Each query has a run,
    because it reads rows of other queries at other times than these return them. options: for the
    queries of declared streams. is_compact: the last one returns graphs.
    """

    def __init__(
        self, program: Program, options: RunOptions = PLAIN, *, is_compact: bool = False
    ) -> None:
        self._program = program
        self._levels = {
            name: _Level(level, options, is_compact=is_compact and name == program.name)
            for name, level in levels_of(program).items()
        }
        self._types = types_of_chain(program)
        self._source = source_of(program).plan
        self._rows = 0
        self._key: tuple[object, ...] | None = None

    @property
    def waiting(self) -> int:
        return sum(level.waiting for level in self._levels.values())

    def push(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Read a batch; yields the matches that are known to end before its last row.

        Raises EventError where its columns do not fit the chain.
        """
        events = conforming(self._source, events, self._rows)
        self._rows += len(events)
        for part in self._parts(pa.Table.from_batches([events])):
            if not len(part):
                yield from self._read_up_to(None)  # a partition is over
                continue
            yield from self._read(part)

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield from self._read_up_to(None, is_over=True)

    def finish(self) -> None:
        """Warn for each query, as `Run.finish` does."""
        for level in self._levels.values():
            level.run.finish()

    def _parts(self, table: pa.Table) -> Iterator[pa.Table]:
        """The rows of each partition, and an empty table at the end of each."""
        names = self._program.plan.source.partition_by
        if not len(table):
            return
        if not names:
            yield table
            return
        columns = [plain(in_one_piece(table.column(name))) for name in names]
        codes = codes_of_keys(columns, len(table))
        begins = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(table)]
        firsts = pa.array(begins[:-1])
        keys = key_tuples([column.take(firsts) for column in columns])
        for place, key in enumerate(keys):
            if self._key not in (None, key):
                yield table.slice(0, 0)
            self._key = key
            yield table.slice(begins[place], begins[place + 1] - begins[place])

    def _read(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for name, level in self._levels.items():
            if not level.reads:
                rows = rows_for(level.program, table, self._types)
                for batch in entered(level.program, rows):
                    yield from self._hand_on(name, level.run.push(batch))
            elif declared_types(level.program):
                rows = declared_rows(level.program, table)
                # Texts can be coded in one batch and not in the next.
                plain_rows = list(map(plain_batch, rows.to_batches()))
                if plain_rows:
                    level.declared.append(pa.Table.from_batches(plain_rows))
        last = table.column(self._program.plan.source.order_by[0])[len(table) - 1]
        yield from self._read_up_to(last)

    def _read_up_to(
        self, horizon: pa.Scalar | None, *, is_over: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Let each level read what comes before the horizon.

        None: everything; the partition is over, or the whole input (`is_over`).
        """
        for name, level in self._levels.items():
            batches: Iterable[pa.RecordBatch] = ()
            if level.reads:
                table = level.due(horizon)
                run = as_run(level.program)
                batches = () if table is None else entered(run, table.combine_chunks())
            if level.reads or horizon is None:
                pushed = chain.from_iterable(map(level.run.push, batches))
                # Totals of a partition wait for the next partition, or for the end of the input.
                waited = level.run.rest() if is_over else level.run.end_of_instant()
                yield from self._hand_on(name, chain(pushed, waited))

    def _hand_on(self, name: str, matches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass the matches of a query to all its readers; those of the last query are the
        answer."""
        readers = [one.answers[name] for one in self._levels.values() if name in one.answers]
        for batch in matches:
            for waiting in readers:
                waiting.append(batch)
            if name == self._program.name:
                yield batch

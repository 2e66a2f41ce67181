"""The answer of a query FOR EACH row of a table in the order of answers.

A run finds matches row by row (`ForEachRun`). Here they are put in the order of their ends in each
partition, and of those with one end in the order of their rows.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, plain, sortable
from celc_runtime.arrow.events.ascending import is_sorted
from celc_runtime.arrow.events.undeclared import Undeclared
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.rules.run import ForEachRun
from celc_runtime.run.seen import Seen
from celc_runtime.run.source.run_options import PLAIN, RunOptions


class OrderedForEach:
    """Feeds batches to a query FOR EACH row of a table; yields its answer in order.

    Partitions come as they end, and a stream without PARTITION BY at its end.
    """

    def __init__(
        self, program: Program, options: RunOptions = PLAIN, *, is_compact: bool = False
    ) -> None:
        self._plan = program.plan
        self._place = unused_name("place", program.output_schema.names)
        self._run = ForEachRun(program, options, place=self._place, is_compact=is_compact)
        self.lists_matches = True

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self._run.schema

    @property
    def undeclared(self) -> Undeclared:
        return self._run.undeclared

    @property
    def undecided(self) -> int:
        return self._run.undecided

    @property
    def seen(self) -> Seen:
        """What `finish` warns of."""
        return self._run.seen

    def turn(self, *, is_own: bool) -> Iterator[pa.RecordBatch]:
        """As `Run.turn`: parts of a table are whole partitions, so all rows are their own."""
        assert is_own
        yield from ()

    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the answer for partitions that are over."""
        yield from self._in_order(list(self._run.push(events, positions, absent)))

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        yield from ()

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield from self._in_order(list(self._run.rest()))

    def finish(self) -> None:
        """Warn as `Run.finish` does."""
        self._run.finish()

    def _in_order(self, found: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not found:
            return
        ordered = in_order(self._plan, pa.Table.from_batches(found), self._place)
        yield from pa.Table.from_arrays(ordered.columns, schema=self.schema).to_batches()


def in_order(plan: Plan, found: pa.Table, place: str) -> pa.Table:
    """The rows of an answer in order; `place`: the column with the indices of rows in their table,
    which is left out."""
    ends = [name for name in ("end_pos", "span_start", "end_time") if name in found.column_names]
    columns = [
        sortable(plain(in_one_piece(found.column(name))))
        for name in (*plan.source.partition_by, *ends[:1], place)
    ]
    found = found.drop_columns([place])
    if not len(found) or is_sorted(columns):
        return found
    keys: list[pa.Array] = []
    for column in columns:
        keys += [column.is_valid(), column] if column.null_count else [column]
    names = list(map(str, range(len(keys))))
    order = pc.sort_indices(pa.table(keys, names=names), [(name, "ascending") for name in names])
    return found.take(order)

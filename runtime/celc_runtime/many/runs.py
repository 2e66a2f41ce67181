"""The runs of many queries over the same sorted batches."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import coded, whole_numbers
from celc_runtime.arrow.events.columns import Columns, Prepared
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.many.groups import ReadingGroup
from celc_runtime.many.relevant_rows import RelevantRows
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.plan import Plan
from celc_runtime.rules.any_query import ordered_run
from celc_runtime.run.feeding import ReadsRanges
from celc_runtime.run.source.run_options import PLAIN, RunOptions
from celc_runtime.spark.input.parameters import planned
from celc_runtime.spark.numbering import why_not_numbered
from celc_runtime.values.warned import warn

_LARGE_PART = 0.5
"""Share of a batch. If more rows can matter, to pass on the whole batch is cheaper than to copy."""


class ManyRuns:
    """Feeds batches to the queries of a group; each gets the rows that can matter to it.

    Events are checked once for all queries, on all rows. Each query has a run, because the queries
    share no state, and their answers are different tables. clocks: by query, for those whose
    matches a time decides that is known before (`Deadlines`).
    """

    def __init__(
        self,
        group: ReadingGroup,
        options: RunOptions = PLAIN,
        clocks: Mapping[str, int | None] | None = None,
    ) -> None:
        self._plan = group.plan
        self._options = options
        self._columns = Columns(
            self._plan, ties_are_errors=options.ties_are_errors, numbered=options.numbered
        )
        self._programs = dict(group.programs)
        # Those of queries FOR EACH say which events their rows can concern.
        self._plans = {name: planned(program) for name, program in group.programs.items()}
        self._clocks = clocks or {}
        self._runs: dict[str, ReadsRanges] = {}
        self._next_position = 0

    def push(
        self, batch: pa.RecordBatch, *, every_row: bool = False
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Read a batch of events; yields rows of answers, with the names of their queries.

        every_row: each query reads all rows, also those that cannot matter to it.
        """
        prepared = self._columns.prepare(batch)
        events = with_coded_texts(prepared.events)
        if not len(events):
            return
        positions = self._positions(prepared)
        relevant = RelevantRows(self._plan, events, prepared.parts)
        for name, plan in self._plans.items():
            part = events.select(self._read(plan, events))
            meets_rules = plan.source.parameters is not None
            if positions is None or not can_do_without_rows(plan, meets_rules=meets_rules):
                found = self._run(name).push(part)
            else:
                rows = np.arange(len(events)) if every_row else relevant.of(plan)
                if plan.asks_for_clock:
                    # The greatest time decides matches, whatever the event is.
                    rows = np.union1d(
                        rows, whole_numbers(part.column(plan.source.order_by[0])).argmax()
                    )
                if not len(rows):
                    continue
                if every_row or len(rows) < _LARGE_PART * len(events):
                    found = self._run(name).push(part.take(pa.array(rows)), positions[rows])
                else:
                    found = self._run(name).push(part, positions)
            for answer in found:
                yield name, answer

    def rest(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        for name, run in self._runs.items():
            for answer in run.rest():
                yield name, answer

    def finish(self) -> None:
        """Warn of rows of undeclared types and of undecided matches; call it at the end."""
        for run in self._runs.values():
            run.finish()
        undeclared = self._columns.undeclared
        if undeclared.total:
            declared = [name for _, name in self._plan.source.declared_types]
            warn(
                f"{undeclared.total:,} of the rows have a type that none of the streams declares: "
                f"{undeclared.words(declared)}; they are not part of the streams of "
                f"{', '.join(self._programs)}",
                EventWarning,
            )

    def _run(self, name: str) -> ReadsRanges:
        """The run of a query, which is made for its first rows.

        Its memory takes a quarter of a millisecond, and many queries may have no rows.
        """
        if name not in self._runs:
            options = replace(self._options, clock=self._clocks.get(name), parts_checked=True)
            self._runs[name] = ordered_run(self._programs[name], options)
            self._runs[name].undeclared.counts = False  # `finish` warns once for all
        return self._runs[name]

    def _read(self, plan: Plan, events: pa.RecordBatch) -> list[str]:
        """The columns of a query, at least one, because it gives the number of rows."""
        read = {*names_read(plan), self._options.numbered}
        return [name for name in events.schema.names if name in read] or events.schema.names[:1]

    def _positions(self, prepared: Prepared) -> np.ndarray | None:
        """int64[rows]: the positions of the rows in their partitions; None: these interleave."""
        if self._plan.interleaves:
            return None
        count = len(prepared.events)
        firsts = np.concatenate([[-self._next_position], prepared.parts])
        lengths = np.diff(prepared.parts, prepend=0, append=count)
        positions: np.ndarray = np.arange(count) - np.repeat(firsts, lengths)
        self._next_position = int(positions[-1]) + 1
        return positions


def with_coded_texts(events: pa.RecordBatch) -> pa.RecordBatch:
    """The same events with texts that are coded once, and not again by each query."""
    columns = [
        coded(column) if pa.types.is_string(column.type) else column for column in events.columns
    ]
    return pa.RecordBatch.from_arrays(columns, events.schema.names)


def can_do_without_rows(plan: Plan, *, meets_rules: bool = False) -> bool:
    """Whether a run needs only the relevant rows, if it gets their positions.

    meets_rules: events that concern no row of the plan's table are never read, but for their time.
    """
    return (
        plan.source.relevant is not None
        and (meets_rules or not plan.choice.deadlines)
        and not why_not_numbered(plan)
    )

"""The events that can matter to a query or to its bent forms, which these read in place of all.

Most events are far from every bound. They are left out once for all queries, before any of these
reads: a bent query then costs what its events cost.

Not taken: one run that keeps for each partial match the part that it has used up. The
bounds of all parts would be tested at each event, and what a `:`, an absence or a count asks for is
another automaton, so most queries would need the bent forms beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.many.relevant_rows import RelevantRows
from celc_runtime.many.runs import can_do_without_rows, with_coded_texts
from celc_runtime.plan.near.queries import ROW, TOUCHED
from celc_runtime.program import Program
from celc_runtime.run.run_of import run_of

_NO_PARTS = np.zeros(0, np.int64)


class FewRows:
    """Events of a table that can matter to one of some queries, with their positions."""

    def __init__(
        self, reading: Program, programs: Mapping[str, Program], batch: pa.RecordBatch
    ) -> None:
        """reading: reads all columns that the queries, `programs` by name, read, but for whether a
        match has an event: that is not known yet. batch: all events, sorted."""
        prepared = Columns(reading.plan, ties_are_errors=False).prepare(batch)
        events = with_coded_texts(prepared.events)
        relevant = RelevantRows(reading.plan, events, prepared.parts)
        rows = np.flatnonzero(relevant.marks([one.plan for one in programs.values()], TOUCHED))
        self._positions = rows
        if len(prepared.parts):
            begins = np.concatenate([[0], prepared.parts])
            self._positions = rows - begins[np.searchsorted(prepared.parts, rows, side="right")]
        self._bare = events.take(pa.array(rows))
        self._plan, self._programs = reading.plan, programs
        self.touch(np.zeros(len(batch), np.bool_))

    def touch(self, touched: np.ndarray) -> None:
        """Say which rows of the table are events of matches (bool[rows])."""
        of_rows = np.zeros(len(self._bare), np.bool_)
        if ROW in self._bare.schema.names:  # a query without labels reads no numbers of rows
            of_rows = touched[self._bare.column(ROW).to_numpy()]
        self._events = self._bare.append_column(TOUCHED, pa.array(of_rows))
        self._relevant = RelevantRows(self._plan, self._events, _NO_PARTS)

    def matches(self, name: str) -> pa.Table | None:
        """The matches of one of the queries; None: it is not one of these."""
        if name not in self._programs:
            return None
        program = self._programs[name]
        read = set(names_read(program.plan))
        columns = [one for one in self._events.schema.names if one in read]
        rows = np.flatnonzero(self._relevant.marks([program.plan]))
        run = run_of(program)
        events = self._events.select(columns or self._events.schema.names[:1]).take(pa.array(rows))
        found = [*run.push(events, self._positions[rows]), *run.rest()]
        return pa.Table.from_batches(found, program.output_schema)


def takes_few(program: Program) -> bool:
    """Whether a query can read some of the events, with their positions."""
    return can_do_without_rows(program.plan) and not program.plan.interleaves

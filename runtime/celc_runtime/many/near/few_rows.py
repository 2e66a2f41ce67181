"""The events that can matter to a query or to its bent forms, which these read in place of all.

Most events are far from every bound. They are left out once for all queries, before any of these
reads. Of the others most are far in time from what a match needs besides them: where no dry reading
is within the window, no hot one matters. So a bent query costs what its candidates cost.

Not taken: one run that keeps for each partial match the part that it has used up. Which events
matches have is known only when all have been read, so it lists the matches that share an event with
one as well: 65,352 in place of 35,873 for `keyed` of `benchmarks/near.py`. Measured as one query,
OR over the bent forms and the straight one, on the few events: 12.9 ms, where the four runs take
11.1 ms. What a `:`, an absence or a count asks for is another automaton, and in `+` some event has
to bend and not each, so most queries would need the bent forms beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import numbers
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.jit.kernels import njit
from celc_runtime.many.relevant_rows import RelevantRows
from celc_runtime.many.runs import can_do_without_rows, with_coded_texts
from celc_runtime.plan.near.queries import ROW, TOUCHED
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.run_of import run_of

Needs: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""Groups of event types as (stream, type), of each of which every match has an event."""

_NO_PARTS = np.zeros(0, np.int64)


class FewRows:
    """Events of a table that can matter to one of some queries, with their positions."""

    def __init__(
        self,
        reading: Program,
        programs: Mapping[str, Program],
        needs: Mapping[str, Needs],
        batch: pa.RecordBatch,
    ) -> None:
        """reading: reads all columns that the queries, `programs` by name, read, but for whether a
        match has an event: that is not known yet. needs: as in `NearPlan`. batch: all events,
        sorted."""
        prepared = Columns(reading.plan, ties_are_errors=False).prepare(batch)
        events = with_coded_texts(prepared.events)
        relevant = RelevantRows(reading.plan, events, prepared.parts)
        rows = np.flatnonzero(relevant.marks([one.plan for one in programs.values()], TOUCHED))
        self._parts = np.searchsorted(prepared.parts, rows, side="right")
        self._positions = rows - np.concatenate([[0], prepared.parts])[self._parts]
        self._needs = needs
        self._bare = pc.take(events, pa.array(rows), boundscheck=False)
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
        rows = self._near_to_all(program.plan, self._needs.get(name, ()))
        run = run_of(program)
        events = self._events.select(columns or self._events.schema.names[:1])
        events = pc.take(events, pa.array(rows), boundscheck=False)
        found = [*run.push(events, self._positions[rows]), *run.rest()]
        return pa.Table.from_batches(found, program.output_schema)

    def _near_to_all(self, plan: Plan, needs: Needs) -> np.ndarray:
        """int64: the events that can matter to a query, without those that are farther than its
        window from all events of a group that each match needs.

        What makes a match, and what can keep it from being one, is within its window.
        """
        rows = np.flatnonzero(self._relevant.marks([plan]))
        window = plan.whole_window
        if not needs or window is None or plan.measured_on(window) != plan.source.order_by[0]:
            return rows
        order = plan.source.order_by[0]
        if plan.source.type_of(order) not in ("TIMESTAMP", "LONG", "INT"):
            return rows
        times = numbers(self._events.column(order))[0].astype(np.int64, copy=False)[rows]
        parts, size = self._parts[rows], math.floor(window.size)
        kept = np.ones(len(rows), np.bool_)
        with np.errstate(over="ignore"):
            for types in needs:
                reach(times, parts, self._relevant.in_matches(plan, types)[rows], size, kept)
        found: np.ndarray = rows[kept]
        return found


@njit(nogil=True, cache=True)
def reach(times, parts, has, size, kept):  # type: ignore[no-untyped-def]
    """Unmark rows of which no row that `has` something is within `size`, before or after, in their
    part. times: int64, ascending in each of `parts`."""
    rows = len(times)
    near, part, last = False, -1, np.int64(0)
    found = np.zeros(rows, np.bool_)
    for row in range(rows):
        if parts[row] != part:
            near, part = False, parts[row]
        if has[row]:
            near, last = True, times[row]
        # A difference that is too large for its type keeps the row.
        found[row] = near and times[row] - last <= size
    near, part = False, -1
    for row in range(rows - 1, -1, -1):
        if parts[row] != part:
            near, part = False, parts[row]
        if has[row]:
            near, last = True, times[row]
        if not found[row] and not (near and last - times[row] <= size):
            kept[row] = False


def takes_few(program: Program) -> bool:
    """Whether a query can read some of the events, with their positions."""
    return can_do_without_rows(program.plan) and not program.plan.interleaves

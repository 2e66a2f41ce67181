"""The events of a run as its kernels read them, batch by batch, with their positions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Columns, Prepared
from celc_runtime.arrow.events.instants import WholeInstants
from celc_runtime.arrow.events.layout import Layout
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.engine.definition.instants import Instants, instant_rows, write_symbols
from celc_runtime.program import Program
from celc_runtime.run.source.odd_events import OddEvents
from celc_runtime.run.source.positions import GivenPositions, InterleavedPositions, Positions
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.source.stretches import Stretches


class Reading(NamedTuple):
    """A batch to read: its classified events, and their positions."""

    prepared: Prepared
    positions: Positions


class EventSource:
    """Takes in the events of one run: checks them, finds their symbols, and counts positions.

    instants: how the update knows events by their places in instants; None: it does not.
    """

    def __init__(self, program: Program, instants: Instants | None, options: RunOptions) -> None:
        plan = program.plan
        self._plan = plan
        self._classify = program.classify
        self._instants = instants
        self._columns = Columns(
            plan,
            ties_are_errors=options.ties_are_errors,
            continues=options.continues,
            parts_checked=options.parts_checked,
            numbered=options.numbered,
            batches_wait=bool(plan.choice.deadlines),
            rows_before=options.rows_before or 0,
            layout=Layout.of(program),
            arranged=options.arranged,
        )
        self.undeclared = self._columns.undeclared
        """What is known of the rows of undeclared types."""
        self.odd = OddEvents(plan, options)
        """What is known of ties, and of NULL in PARTITION BY."""
        self._whole = None if plan.source.ties is None else WholeInstants(plan)
        # For a partition that goes on, the position of a row is its number minus this.
        self._shift = -options.first_position
        # If partitions interleave, the next position of each.
        self._counts = np.array((options.first_position,), np.int64)

    def row_name(self, events: pa.RecordBatch, row: int) -> str:
        """The name of a row of the last prepared batch, for messages."""
        return self._columns.row_name(events, row)

    def batches(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None,
        absent: np.ndarray | None,
        most_rows: int | None,
    ) -> Iterator[Reading]:
        """A batch in parts of at most `most_rows` rows; the arguments are those of `Run.push`.

        If instants matter, each part has whole instants, and the last instant waits.
        """
        if most_rows is not None and len(events) > most_rows:
            for start in range(0, len(events), most_rows):
                part = slice(start, start + most_rows)
                yield from self.batches(
                    events.slice(start, most_rows),
                    None if positions is None else positions[part],
                    None if absent is None else absent[part],
                    most_rows,
                )
        elif self._whole is None:
            yield from self._taken(events, positions, absent)
        else:
            events = self._columns.conforming(events, self._whole.rows)
            for whole, given in self._whole.of(events, positions):
                yield from self._taken(whole, given, conforms=True)

    def rest(self) -> Iterator[Reading]:
        """The instant that waits. No more events of it come."""
        if self._whole is not None:
            for events, positions in self._whole.rest():
                yield from self._taken(events, positions, conforms=True)

    def parts(
        self, events: pa.RecordBatch, codes: np.ndarray, parts: np.ndarray, positions: np.ndarray
    ) -> Reading:
        """Whole partitions; the arguments are those of `Run.push_parts`."""
        none_absent = np.zeros(len(events), np.bool_)
        prepared = self._columns.prepare_stretches(events, codes, parts, none_absent)
        self._find_symbols(prepared)
        return Reading(prepared, GivenPositions(prepared, positions))

    def taken(self, events: LateRows) -> Reading:
        """All rows of a run, which have been checked when they were read (`LateRows.taken`)."""
        prepared = self._columns.prepare(events)
        self._find_symbols(prepared)
        if prepared.tied is not None:
            self.odd.begin_again()
            first = self.odd.look(prepared.events, prepared.batch.symbols, prepared.tied)
            if first >= 0:
                self.odd.name(self._columns.row_name(prepared.events, first))
        return Reading(prepared, Positions(prepared, 0))

    def stretches(self, stretches: Stretches) -> Reading:
        prepared = self._columns.prepare_stretches(
            stretches.events, stretches.codes, stretches.starts, stretches.absent
        )
        self._find_symbols(prepared)
        prepared.batch.symbols[stretches.absent] = 0
        return Reading(prepared, GivenPositions(prepared, stretches.positions))

    def _taken(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None,
        absent: np.ndarray | None = None,
        *,
        conforms: bool = False,
    ) -> Iterator[Reading]:
        prepared = self._columns.prepare(events, conforms=conforms)
        if not len(prepared.events):
            return
        self._find_symbols(prepared)
        known = prepared.known
        if absent is not None:
            prepared.batch.symbols[absent if known is None else absent[known]] = 0
        first = self.odd.look(prepared.events, prepared.batch.symbols, prepared.tied)
        if first >= 0:
            self.odd.name(self._columns.row_name(prepared.events, first))
        if positions is None:
            yield Reading(prepared, self._counted(prepared))
        else:
            given = positions if known is None else positions[known]
            yield Reading(prepared, GivenPositions(prepared, given))

    def _find_symbols(self, prepared: Prepared) -> None:
        """Find the symbols of a batch, and what the update needs to know of its instants."""
        symbols = prepared.batch.symbols
        self._classify(*self._columns.arguments(prepared.events), symbols)
        if self._instants is not None:
            write_symbols(self._instants.symbols, prepared.instants, symbols)
        elif len(prepared.instants):
            prepared.instant_rows = instant_rows(prepared.instants)
            prepared.batch = prepared.batch._replace(instants=prepared.instant_rows.numbers)

    def _counted(self, prepared: Prepared) -> Positions:
        """The positions of a batch all of whose rows come."""
        if self._plan.interleaves:
            counts = np.zeros(max(self._columns.partitions_seen, len(self._counts)), np.int64)
            counts[: len(self._counts)] = self._counts
            found = InterleavedPositions(prepared, counts)
            self._counts = counts + np.bincount(prepared.batch.slots, minlength=len(counts))
            return found
        counted = Positions(prepared, self._shift)
        if len(prepared.parts):
            self._shift = int(prepared.parts[-1])
        self._shift -= len(prepared.events)
        return counted

"""The events of a unit as packed rows: of the input's rows, and of the rows of other queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.tables.event_tables import entered
from celc_runtime.chain.rows import (
    declared_events,
    declared_rows,
    row_events,
    rows_for,
    told_apart_by,
)
from celc_runtime.chain.streams.units import Unit
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.packing import Part, encoded
from celc_runtime.stream.stored.rows import RowLayout, Rows


class UnitRows:
    """Makes the events of a unit; `options` are those of the stream."""

    def __init__(self, unit: Unit, layout: RowLayout, options: StreamOptions) -> None:
        self._unit = unit
        self._layout = layout
        self._ahead = options.ahead
        self._options = options
        self._own = unit.options(options)

    def of_input(self, table: pa.Table) -> Iterator[Part]:
        """The events among the rows of the input."""
        unit = self._unit
        plan = unit.program.plan
        if not unit.reads:
            rows = rows_for(unit.query, table, unit.others)
            for name, type in unit.absent:
                # Perhaps another query reads one of this name, in another type.
                others = [one for one in rows.column_names if one != name]
                missing = pa.nulls(len(rows), arrow_type(type))
                rows = rows.select(others).append_column(name, missing)
            for batch in rows.combine_chunks().to_batches():
                yield encoded(plan, self._layout, self._own, batch)
            return
        rows = declared_rows(unit.query, table) if unit.declared else table.slice(0, 0)
        if not len(rows):
            return
        events = declared_events(unit.query, rows)
        events = self._with_place(events, 0)
        for name, own in unit.ties.items():
            events = events.append_column(own, rows.column(name))
        for name, type in unit.added.items():
            events = events.append_column(name, pa.nulls(len(events), arrow_type(type)))
        ahead = np.zeros(len(rows), np.bool_)
        if self._ahead:
            ahead = np.asarray(rows.column(self._ahead).to_numpy(), np.bool_)
        part = self._encoded(events)
        yield part._replace(ahead=ahead)

    def of_answer(self, level: Program, number: int, answers: Sequence[pa.RecordBatch]) -> Rows:
        """The rows of a query as events. number: its place among the queries that are read, from
        1."""
        unit = self._unit
        table = pa.Table.from_batches(answers, level.output_schema)
        if level.plan.answer.match_id is not None:
            table = table.remove_column(0)
        if not len(table):
            return self._layout.nothing
        events = self._with_place(row_events(unit.query, level.plan, table), number)
        types = unit.options(self._options).tiebreak_types
        for own in unit.ties.values() if unit.declared else ():
            events = events.append_column(own, pa.nulls(len(events), arrow_type(types[own])))
        told_by = {unit.numbers[level.name, name][0]: name for name in told_apart_by(level.plan)}
        for name, type in unit.added.items():
            shown = table.column(told_by[name]) if name in told_by else pa.nulls(len(events))
            events = events.append_column(name, shown.cast(arrow_type(type)))
        return self._encoded(events).rows

    def _with_place(self, events: pa.Table, number: int) -> pa.Table:
        places = pa.array(np.full(len(events), number, np.int32))
        return events.append_column(self._unit.place, places)

    def _encoded(self, events: pa.Table) -> Part:
        """Events in the order of the table."""
        program = self._unit.program
        (batch,) = pa.Table.from_batches(entered(program, events)).combine_chunks().to_batches()
        return encoded(program.plan, self._layout, self._own, batch)

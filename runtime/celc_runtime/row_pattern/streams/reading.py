"""Describes the table of a MATCH_RECOGNIZE query as a stream of events of one type.

The code of streams (`celc_runtime.stream`) packs, stores and sorts events. It reads four things of
a plan of CEL: the columns, the keys, the order, and when kept rows are due. So a query of
MATCH_RECOGNIZE gets such a plan as well, which is never run. A second code of streams for rows was
rejected: the two would have stored the same states in two formats.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Answer, Choice, Deadline, Matching, Plan, Source, Window
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.program import Program
from celc_runtime.row_pattern.arranged import keys_of_order
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.streams.early import columns_behind, found_attribute
from celc_runtime.stream.formats import StreamFormats, StreamOptions
from celc_runtime.stream.one_bucket.event_order import EventSort
from celc_runtime.stream.stored.rows import RowLayout, Rows
from celc_runtime.stream.stored.state_rows import KEPT_ROWS

# The columns of `KEPT_ROWS`: what a stream remembers of a partition. The *open start* is the first
# row of the partition of which it is not decided yet whether a match begins there.
NUMBER = 0  # of matches that begin before the open start
START = 1  # the position of the open start
COVERED = 2  # the position behind the last row that these matches cover
FLAGS = 3  # SOME_DONE and EMPTY, added
KNOWN = 4  # the number of these columns

SOME_DONE = 1  # a match behind the open start has been returned
EMPTY = 2  # no row is kept


def reading_of(program: RowProgram, tiebreak: Iterable[str] = ()) -> Program:
    """The table of a query as a program of CEL, which is never run.

    A kept row is due when the watermark has passed all rows that a match may take which begins
    there. If the first column of ORDER BY is a DATE, the program has it as a TIMESTAMP, the
    beginning of the day in UTC.
    """
    plan = program.plan
    time = plan.columns[plan.order_by[0].column].name
    attributes = tuple(
        replace(one, type="TIMESTAMP") if one.name == time and one.type == "DATE" else one
        for one in plan.attributes_read
    )
    found = found_attribute(plan)
    if found is not None:
        attributes += (found,)
    names = [one.name for one in attributes]
    deadlines: tuple[Deadline, ...] = ()
    windows: tuple[Window, ...] = ()
    if plan.within:
        # The room of streams decides after a deadline, and a start is closed at it.
        windows = (Window("MICROSECONDS", plan.within - 1, None),)
        deadlines = (Deadline(0, from_start=False),)
    reading = Plan(
        name=plan.name,
        source=Source(
            types=((plan.name, plan.name),),
            type_name=unused_name("celc_type", names),
            attributes=attributes,
            partition_by=tuple(plan.columns[number].name for number in plan.partition_by),
            order_by=(time,),
            tiebreak=tuple(tiebreak),
        ),
        matching=Matching(local_windows=windows),
        choice=Choice(deadlines=deadlines),
        # Rows of a stream without ids are kept without the columns that only ids read.
        answer=Answer(positions=False, match_id=tuple(names) if plan.match_id else None),
    )
    nothing: Any = None
    return Program(reading, nothing, nothing, nothing, program.module)


def formats_of(reading: Program, options: StreamOptions) -> StreamFormats:
    """The formats of the rows and states of such a program."""
    values = ("position", "frontier", "first", KEPT_ROWS)
    return StreamFormats(reading, options, values=values, most_kept=KNOWN)


class RowSort(EventSort):
    """Sorts rows by ORDER BY of the query, and then by tiebreak columns."""

    def __init__(self, row_plan: RowPlan, reading: Plan, layout: RowLayout) -> None:
        super().__init__(reading, layout)
        self._row_plan = row_plan
        names = [field.name for field in layout.fields]
        found = found_attribute(row_plan)
        self._numbers = {
            number: names.index(row_plan.columns[number].name)
            for number in (row_plan.columns_read if found is None else columns_behind(row_plan))
        }
        self._found = None if found is None else names.index(found.name)
        self._tiebreak = [names.index(one) for one in reading.source.tiebreak]
        self._ordered = [
            (one, names.index(row_plan.columns[one.column].name)) for one in row_plan.order_by
        ]

    def _sort_keys(self, rows: Rows) -> list[np.ndarray]:
        columns = self.columns(rows)
        keys: list[np.ndarray] = []
        for order, place in self._ordered:
            keys += keys_of_order(self._row_plan, order, columns[place])
        return keys + self._keys_of(rows, self._tiebreak)

    def _refuse_tie(self, rows: Rows, row: int) -> None:
        plan = self._row_plan
        names = [plan.columns[one.column].name for one, _ in self._ordered]
        names += [self._layout.fields[place].name for place in self._tiebreak]
        one = self._layout.taken(rows, np.array([row]))
        time = self.columns(one)[self.time][0]
        raise EventError(
            f"query {plan.name!r}: two rows of a partition are equal in {', '.join(names)} "
            f"({names[0]} is {time}), and a stream has no order of its own: name a column that "
            "tells them apart, as in match_stream(df, tiebreak='id'), or one more in ORDER BY"
        )

    def found(self, rows: Rows) -> np.ndarray | None:
        """uint8[rows] or int64[rows]: a bit for each local condition that holds; None if the
        conditions were not evaluated before the rows were stored."""
        if self._found is None:
            return None
        bits = self._layout.values(rows, self._found)
        return bits.view(np.uint8) if bits.dtype == np.int8 else bits

    def by_number(self, rows: Rows) -> dict[int, pa.Array]:
        """The columns of rows, by their numbers in the plan of the query."""
        columns = self._row_plan.columns
        found = dict(zip(self._numbers, self.columns(rows, self._numbers.values()), strict=True))
        first = self._row_plan.order_by[0].column
        if columns[first].type == "DATE":
            found[first] = found[first].cast(pa.date32())
        return found

"""Slices of an answer on Spark: the rows that become known after one time and up to another.

A slice is two filters. One, on the order column of the events, chooses the events that are read;
Spark uses it to skip partitions and files. The other, on the answer, chooses the rows of the slice.
Both are Column expressions alone, so they run on Spark Connect and on streams as well.

The events of a stream are not cut at `until`: its watermark has to pass `until`. The rows that are
known later are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from celc_runtime.arrow.tables.slices import (
    Slice,
    Stretch,
    common_stretch,
    shown_bound,
    slice_of,
)
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.program import Program
from celc_runtime.spark.input.columns import column_named, needed_columns
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.pipelines import is_stream

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

QUERY = "query"
"""The column of the answers of all queries with the name of each."""

KIND = "kind"
"""The column that late='side' adds to the rows of a stream. Rows that are no matches are in every
slice."""


Keeps: TypeAlias = Callable[["DataFrame"], "DataFrame"]
"""The filter on an answer: it takes the answer and returns the rows of the slice."""


def slicing(
    program: Program, events: DataFrame, bounds: tuple[object, object]
) -> tuple[Program, DataFrame, Keeps | None]:
    """The program, the events to read, and the filter on its answer (None: all rows stay).

    bounds: after and until. Raises the errors of `slice_of`.
    """
    slice = slice_of(program, *bounds, goes_on=is_stream(events))
    if slice is None:
        return program, events, None
    slice.tell()
    return slice.program, events_of(slice, events), partial(rows_of, slice)


def slicing_all(
    programs: Mapping[str, Program], events: DataFrame, bounds: tuple[object, object]
) -> tuple[Mapping[str, Program], DataFrame, Keeps | None]:
    """As `slicing`, for all queries of a module, whose answers are in one DataFrame
    (`many.answers`)."""
    slices = {
        name: slice_of(one, *bounds, goes_on=is_stream(events)) for name, one in programs.items()
    }
    made = {name: one for name, one in slices.items() if one is not None}
    if not made:
        return programs, events, None
    for slice in made.values():
        slice.tell()
    plan = next(iter(made.values())).program.plan
    read = within(plan, common_stretch(made.values()), events)
    return {name: one.program for name, one in made.items()}, read, partial(_rows_of_all, made)


def events_of(slice: Slice, events: DataFrame) -> DataFrame:
    """The events that a slice reads, and those whose order is NULL, which the run refuses."""
    return within(slice.program.plan, slice.read, events)


def within(plan: Plan, stretch: Stretch, events: DataFrame) -> DataFrame:
    """The events of a stretch of the order column that the plan declares.

    Raises EventError where the column is missing or of another type.
    """
    if is_stream(events):
        stretch = replace(stretch, high=None)
    if stretch.is_all:
        return events
    made = {one.name: one.sql for one in plan.source.derived}
    wanted = replace(
        plan.source,
        attributes=tuple(one for one in plan.source.attributes if one.name == stretch.column),
        derived=tuple(one for one in plan.source.derived if one.name == stretch.column),
        tiebreak=(),
        type_column=False,
        stream_column=False,
        rest=(),
    )
    from pyspark.sql import functions

    # The column alone is prepared, to know its type, and to raise the errors that it causes.
    alone = needed_columns(replace(plan, source=wanted), events)
    found = alone.schema[stretch.column].dataType.simpleString()
    if stretch.column in made:
        column = functions.expr(f"({made[stretch.column]})")
    elif stretch.column in events.columns:
        column = column_named(stretch.column)
    else:
        column = functions.col(".".join(map(quoted, stretch.column.split("."))))
    order = OrderColumn(stretch.column, stretch.type, found)
    return events.where(column.isNull() | _inside(stretch, order, column))


def rows_of(slice: Slice, rows: DataFrame) -> DataFrame:
    """The rows of a slice among those of the answer."""
    stretch = slice.rows
    found = rows.schema[stretch.column].dataType.simpleString()
    order = OrderColumn(stretch.column, stretch.type, found)
    inside = _inside(stretch, order, order.column)
    if KIND in rows.columns and KIND not in slice.program.output_schema.names:
        inside = inside | (column_named(KIND) != "match")
    return rows.where(inside)


def _rows_of_all(slices: Mapping[str, Slice], rows: DataFrame) -> DataFrame:
    inside = column_named(QUERY).isNull()  # rows that are no matches stay
    types = {field.name: field.dataType for field in rows.schema.fields}
    for name, slice in slices.items():
        stretch = slice.rows
        found = types[name][stretch.column].dataType.simpleString()
        order = OrderColumn(stretch.column, stretch.type, found)
        known = _inside(stretch, order, column_named(name)[stretch.column])
        inside = inside | ((column_named(QUERY) == name) & known)
    return rows.where(inside)


def _inside(stretch: Stretch, order: OrderColumn, column: Column) -> Column:
    """The condition that a column lies in a stretch: after its low bound, up to its high one."""
    from pyspark.sql import functions

    inside = functions.lit(True)
    if stretch.low is not None:
        inside = column > _border(order, stretch.low)
    if stretch.high is not None:
        below = column <= _border(order, stretch.high)
        inside = below if stretch.low is None else inside & below
    return inside


def _border(order: OrderColumn, bound: int | float) -> Column:
    """A bound as a constant; raises ValueError for one that no literal holds."""
    if not order.can_cut(bound):
        raise ValueError(
            f"Spark compares no column with {shown_bound(bound, order.declared)}: give after and "
            "until that are farther from the ends of time, and none in October 1582"
        )
    return order.border(bound)

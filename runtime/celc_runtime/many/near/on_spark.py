"""Near misses on Spark: each part of the stream is one task, and a stream without parts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from celc_runtime.plan.near.queries import NearPlan
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.routes.rules import Route
from celc_runtime.spark.match import check_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_POSITIONS = ("start_pos", "end_pos")


def on_spark(
    of_part: ShippedFunction, given: Program, schema: pa.Schema, plan: NearPlan, events: DataFrame
) -> DataFrame:
    """The near misses of a DataFrame. `of_part` finds those of a part, `given` is the query with
    its parameters, `schema` that of the answer on one machine.

    Raises EventError where the query names no order column, and where a column is missing.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    check_events(given, events, Route.SPARK)
    source = given.plan.source
    # A key that is made of others has no column that the rows could be grouped by.
    keys = () if source.chosen_keys or source.made & {*source.key_columns} else source.key_columns
    columns = from_arrow_schema(as_on_spark(plan, schema.empty_table()).schema)
    return events.groupBy(*keys).applyInArrow(of_part, columns)


def as_on_spark(plan: NearPlan, found: pa.Table) -> pa.Table:
    """Near misses with the columns that they have on Spark: positions only if asked for, and
    without them no column of a label that shows nothing else."""
    if plan.positions:
        return found
    found = found.drop_columns([name for name in _POSITIONS if name in found.column_names])
    for name in plan.shown:
        if name not in found.column_names:
            continue
        place = found.column_names.index(name)
        column = _without_positions(found[name].combine_chunks())
        found = found.remove_column(place)
        if column is not None:
            found = found.add_column(place, name, column)
    return found


def _without_positions(column: pa.ListArray) -> pa.ListArray | None:
    """A column of lists of events without their positions; None: nothing is left."""
    events = column.values
    kept = [field for field in events.type if field.name != "pos"]
    if not kept:
        return None
    arrays = [events.field(field.name) for field in kept]
    rest = pa.StructArray.from_arrays(arrays, fields=kept)
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(column.offsets, rest, mask=mask)

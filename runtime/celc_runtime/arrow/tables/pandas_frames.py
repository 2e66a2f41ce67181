"""pandas frames in and out: for one machine, and for `applyInPandas` on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.arrow.events.conforming import is_required, not_found_error
from celc_runtime.arrow.tables.untyped import fitted
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program

if TYPE_CHECKING:
    import pandas


def frame_of(matches: pa.Table) -> pandas.DataFrame:
    """Matches as a frame. Its times have no zone, like the times in the frames of events."""
    naive = [_naive(column) for column in matches.columns]
    # In a column with NULL, whole numbers would become floats, which cannot hold large ones.
    return pa.table(naive, names=matches.column_names).to_pandas(integer_object_nulls=True)


def frame_table(program: Program, frame: pandas.DataFrame) -> pa.Table:
    """The columns of a frame that a query reads; index levels count as columns.

    Raises EventError if a column is missing, is there twice, or does not fit its type.
    """
    found = {}
    for field in program.file_schema:
        column = _frame_column(frame, field.name)
        if column is not None:
            found[field.name] = fitted(program, field.name, column, field.type)
        elif is_required(program.plan, field.name):
            raise not_found_error(program.plan, field.name, [str(name) for name in frame.columns])
    # A query that reads no column still counts rows.
    return pa.table(found or {"*": pa.nulls(len(frame))})


def _frame_column(frame: pandas.DataFrame, name: str) -> pandas.Series[Any] | None:
    """The column or index level of that name, or the struct field at that path; None: none."""
    names = list(frame.columns)
    if names.count(name) > 1:
        raise EventError(
            f"the column {name!r} occurs more than once in the frame (drop or rename all but one)"
        )
    if name in names:
        return frame[name]
    if list(frame.index.names).count(name) == 1:
        return frame.index.get_level_values(name).to_series()
    for dot in reversed([place for place, letter in enumerate(name) if letter == "."]):
        if names.count(name[:dot]) == 1:
            column = frame[name[:dot]]
            for field in name[dot + 1 :].split("."):
                # Structs come as dictionaries, or as Spark's rows, which also take a name.
                column = column.map(lambda value, field=field: _frame_field(value, field))
            return column
    return None


def _frame_field(value: Any, name: str) -> Any:
    if value is None or value != value:
        return None
    try:
        return value[name]
    except (KeyError, TypeError, ValueError, IndexError):
        raise EventError(
            f"{value!r} has no field {name!r}: a name with a dot is a field of a struct where "
            "no column is called so"
        ) from None


def _naive(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with times without a zone, as Spark and pandas exchange them."""
    return column.cast(without_zone(column.type))


def without_zone(type: pa.DataType) -> pa.DataType:
    """A type without the zones of its time stamps."""
    if pa.types.is_timestamp(type):
        return pa.timestamp(type.unit)
    if pa.types.is_list(type):
        return pa.list_(without_zone(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, without_zone(field.type)) for field in type])
    return type

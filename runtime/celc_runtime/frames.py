"""pandas frames in and out, for the grouped-map route on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.errors import EventError

if TYPE_CHECKING:
    import pandas

    from celc_runtime.query import CompiledQuery


def pandas_matches(query: CompiledQuery, frame: pandas.DataFrame) -> pandas.DataFrame:
    """The matches of a frame as a frame; see `CompiledQuery.match_pandas`."""
    arrays = []
    fields = []
    for field in query.file_schema:
        column = _frame_column(frame, field.name)
        if column is None:
            continue
        fields.append(field)
        wanted = None if pa.types.is_null(field.type) else field.type
        if wanted is not None and pa.types.is_timestamp(wanted):
            wanted = pa.timestamp("us", tz=getattr(column.dtype, "tz", None))
        try:
            arrays.append(pa.Array.from_pandas(column, type=wanted))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise EventError(
                f"query {query.name!r} declares {field.name!r} as {field.type}, which the column "
                f"does not fit: {problem}"
            ) from None
    table = pa.table(arrays, names=[field.name for field in fields])
    matches = query.match_table(table)
    naive = [_naive(column) for column in matches.columns]
    # Whole numbers with a NULL among them would become real ones, and large ones others.
    return pa.table(naive, names=matches.column_names).to_pandas(integer_object_nulls=True)


def _frame_column(frame: pandas.DataFrame, name: str) -> pandas.Series[Any] | None:
    """The column of that name, or the field of structs that the name is the path of."""
    names = list(frame.columns)
    if names.count(name) > 1:
        raise EventError(
            f"the column {name!r} occurs more than once in the frame (drop or rename all but one)"
        )
    if name in names:
        return frame[name]
    for dot in reversed([place for place, letter in enumerate(name) if letter == "."]):
        if names.count(name[:dot]) == 1:
            column = frame[name[:dot]]
            for field in name[dot + 1 :].split("."):
                # Structs come as dictionaries, or as Spark's rows, which take a name as well.
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
    """Times as Spark takes them back from pandas: without zone, as it gave them."""
    return column.cast(without_zone(column.type))


def without_zone(type: pa.DataType) -> pa.DataType:
    """A type in which every time stamp has lost its zone."""
    if pa.types.is_timestamp(type):
        return pa.timestamp(type.unit)
    if pa.types.is_list(type):
        return pa.list_(without_zone(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, without_zone(field.type)) for field in type])
    return type

"""Rows for people, as values of Python: what Python lacks gets another form.

Python has DOUBLEs alone, and the DOUBLE next to the FLOAT 55.6 is written 55.599998474121094. The
DOUBLE that is made of the FLOAT's own text is written 55.6. Times of Python have the years 1 to
9999; others are texts.
"""

from typing import Any

import pyarrow as pa


def shown_rows(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows to be written as text."""
    columns = [shown_values(column) for column in rows.columns]
    names = rows.schema.names
    if not columns:
        return [{} for _ in range(len(rows))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def shown_values(column: pa.Array) -> list[Any]:
    """The values of a column to be written as text."""
    column = short_floats(column)
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # of a time
        return list(map(shown_value, column))
    return values


def shown_value(value: pa.Scalar) -> Any:
    """A value to be written as text."""
    if isinstance(value, pa.StructScalar) and value.is_valid:
        return {name: shown_value(part) for name, part in value.items()}
    if isinstance(value, pa.ListScalar | pa.LargeListScalar) and value.is_valid:
        return list(map(shown_value, value.values))
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        text: str = value.cast(pa.string()).as_py()
        return text.replace("Z", "+00:00").replace(".000000", "")


def short_floats(column: pa.Array) -> pa.Array:
    """A column to be written as text: each FLOAT, also inside lists, as the DOUBLE of its text."""
    if not _has_floats(column.type):
        return column
    return column.cast(_with(column.type, pa.string())).cast(_with(column.type, pa.float64()))


def _has_floats(type: pa.DataType) -> bool:
    if pa.types.is_map(type):
        return _has_floats(type.item_type)
    inside = [type.field(place).type for place in range(type.num_fields)]
    return pa.types.is_float32(type) or any(map(_has_floats, inside))


def _with(type: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type with another one in place of FLOAT."""
    if pa.types.is_float32(type):
        return other
    if pa.types.is_map(type):
        return pa.map_(type.key_type, _with(type.item_type, other))
    if pa.types.is_struct(type):
        fields = [type.field(place) for place in range(type.num_fields)]
        return pa.struct([field.with_type(_with(field.type, other)) for field in fields])
    if pa.types.is_large_list(type):
        return pa.large_list(_with(type.value_type, other))
    if pa.types.is_list(type):
        return pa.list_(_with(type.value_type, other))
    return type

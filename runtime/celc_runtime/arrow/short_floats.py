"""FLOATs for people: the shortest number of their own type.

Python has DOUBLEs alone, and the DOUBLE next to the FLOAT 55.6 is written 55.599998474121094. The
DOUBLE that is made of the FLOAT's own text is written 55.6.
"""

import pyarrow as pa


def with_short_floats(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows to be written as text, with DOUBLEs of the text of each FLOAT, also inside lists."""
    columns = list(map(short_floats, rows.columns))
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


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

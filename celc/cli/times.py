"""Times in files that have no type for them: CSV and JSON.

They are parsed as texts first, because Arrow takes times with a zone or those without one, and a
file may have both.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def readable(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types to parse columns as: times as texts, and none where any type will do."""
    return {
        field.name: pa.string() if pa.types.is_temporal(field.type) else field.type
        for field in schema
        if not pa.types.is_null(field.type)
    }


def with_times(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the texts of columns that `schema` declares as times read as such."""
    for field in schema:
        if pa.types.is_temporal(field.type) and field.name in batch.schema.names:
            index = batch.schema.get_field_index(field.name)
            parse = _times if pa.types.is_timestamp(field.type) else _days
            batch = batch.set_column(index, field, parse(batch.column(index), field))
    return batch


def _days(texts: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid as problem:
        raise pa.ArrowInvalid(f"column {field.name!r}: {str(problem).splitlines()[0]}") from None


def _times(texts: pa.Array, field: pa.Field) -> pa.Array:
    zoned = pc.match_substring_regex(texts, r"(Z|[+-]\d\d(:?\d\d)?)$")
    dated = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d$")
    plain = pc.and_(pc.invert(zoned), True)
    plain = pc.or_(plain, dated)
    try:
        local = pc.if_else(plain, texts, None).cast(pa.timestamp("us")).cast(field.type)
        return pc.coalesce(pc.if_else(plain, None, texts).cast(field.type), local)
    except pa.ArrowInvalid as problem:
        raise pa.ArrowInvalid(f"column {field.name!r}: {str(problem).splitlines()[0]}") from None

"""The columns of a table as its reader knows them → types by column, as in CREATE TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OF_ARROW = {
    "bool": "BOOLEAN",
    "int8": "INT",
    "int16": "INT",
    "int32": "INT",
    "int64": "LONG",
    "uint8": "INT",
    "uint16": "INT",
    "uint32": "LONG",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "large_string": "STRING",
    "string_view": "STRING",
    "date32[day]": "DATE",
}
_OF_SPARK = {
    "boolean": "BOOLEAN",
    "tinyint": "INT",
    "smallint": "INT",
    "int": "INT",
    "bigint": "LONG",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "date": "DATE",
}
_KNOWN = ("BOOLEAN", "INT", "INTEGER", "LONG", "BIGINT", "FLOAT", "DOUBLE", "STRING", "TIMESTAMP")


def types_by_column(schema: Any) -> dict[str, str]:
    """The columns that MATCH_RECOGNIZE can read, with their types; it sees no others.

    schema: a mapping from names to types as CREATE TABLE writes them, an Arrow schema, the schema
    of a Spark DataFrame, or anything with one of the last two as its `schema`. Raises ValueError
    for a type that a mapping misspells, TypeError for what has no columns.
    """
    if isinstance(schema, Mapping):
        for name, type in schema.items():
            if str(type).upper() not in (*_KNOWN, "DATE"):
                raise ValueError(
                    f"schema: column {name!r} has the type {type!r}; types are "
                    f"{', '.join((*_KNOWN, 'DATE'))}"
                )
        return {str(name): str(type) for name, type in schema.items()}
    fields = getattr(schema, "fields", None)
    if fields is not None:
        found = {field.name: _OF_SPARK.get(field.dataType.simpleString()) for field in fields}
        return {name: type for name, type in found.items() if type is not None}
    if hasattr(schema, "names") and hasattr(schema, "field"):
        return _of_arrow(schema)
    if hasattr(schema, "schema"):
        return types_by_column(schema.schema)
    raise TypeError(
        "schema: give a dictionary of types by column, an Arrow schema, or that of a DataFrame"
    )


def _of_arrow(schema: Any) -> dict[str, str]:
    found = {}
    for field in schema:
        type = field.type
        text = str(getattr(type, "value_type", type)) if str(type).startswith("dict") else str(type)
        known = "TIMESTAMP" if text.startswith("timestamp") else _OF_ARROW.get(text)
        if known is not None:
            found[field.name] = known
    return found

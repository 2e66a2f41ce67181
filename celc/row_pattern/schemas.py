"""The columns of a table as its reader knows them → types by column, as in CREATE TABLE."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from celc_runtime.plan.frozen import frozen

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


@frozen
class TableColumns:
    """The columns of a table: of those that MATCH_RECOGNIZE can read the `types` as CREATE TABLE
    writes them, and of the `others` the types as the reader of the table calls them."""

    types: Mapping[str, str]
    others: Mapping[str, str] = field(default_factory=dict)


def columns_of(schema: Any) -> TableColumns:
    """The columns of a table.

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
        return TableColumns({str(name): str(type) for name, type in schema.items()})
    fields = getattr(schema, "fields", None)
    if fields is not None:
        of_spark = ((field.name, field.dataType.simpleString()) for field in fields)
        return _sorted_out((name, text, _OF_SPARK.get(text)) for name, text in of_spark)
    if hasattr(schema, "names") and hasattr(schema, "field"):
        return _sorted_out(_of_arrow(schema))
    if hasattr(schema, "schema"):
        return columns_of(schema.schema)
    raise TypeError(
        "schema: give a dictionary of types by column, an Arrow schema, or that of a DataFrame"
    )


def _sorted_out(columns: Iterable[tuple[str, str, str | None]]) -> TableColumns:
    """columns: names, types as the reader calls them, and those of the language, if it has them."""
    types: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, given, known in columns:
        if known is None:
            others[name] = given
        else:
            types[name] = known
    return TableColumns(types, others)


def _of_arrow(schema: Any) -> Iterable[tuple[str, str, str | None]]:
    for column in schema:
        type = column.type
        text = str(getattr(type, "value_type", type)) if str(type).startswith("dict") else str(type)
        known = "TIMESTAMP" if text.startswith("timestamp") else _OF_ARROW.get(text)
        yield column.name, text, known

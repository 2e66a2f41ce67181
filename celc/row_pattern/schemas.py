"""The columns of a table as its reader knows them → types by column, as in CREATE TABLE."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import DataType


@frozen
class TableColumns:
    """The columns of a table: of those that MATCH_RECOGNIZE can read the `types`, and of the
    `others` the types as the reader of the table calls them; empty: not known."""

    types: Mapping[str, DataType]
    others: Mapping[str, str] = field(default_factory=dict)


def columns_of(schema: Any) -> TableColumns:
    """The columns of a table.

    schema: a mapping from names to types as CREATE TABLE writes them, an Arrow schema, the schema
    of a Spark DataFrame, or anything with one of the last two as its `schema`; `TableColumns` stay
    as they are. Raises ValueError for a type that a mapping misspells, TypeError for what has no
    columns.
    """
    if isinstance(schema, TableColumns):
        return schema
    from celc.resolve.types import schemas  # which loads the parser of CEL

    types: dict[str, DataType] = {}
    others: dict[str, str] = {}
    for column in schemas.columns_of(schema):
        if column.type is None:
            others[column.name] = column.given
        elif column.type is DataType.TIMESTAMP and _has_no_zone(column.given):
            types[column.name] = DataType.TIMESTAMP_NTZ  # comes out as it went in
        else:
            types[column.name] = column.type
    return TableColumns(types, others)


def _has_no_zone(given: str) -> bool:
    """Whether a TIMESTAMP has none: Arrow's `timestamp[us]`, Spark's `timestamp_ntz`."""
    return given == "timestamp_ntz" or (given.startswith("timestamp[") and "tz=" not in given)

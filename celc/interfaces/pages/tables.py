"""Tables of any library → Arrow, for a report."""

from typing import Any

import pyarrow as pa
from celc_runtime.arrow.tables.event_tables import is_a
from celc_runtime.plan.plan import MATCH_ID

MOST_COLLECTED = 1_000_000  # rows of a Spark DataFrame that are collected


class TooManyRowsError(ValueError):
    """A Spark table has more rows than a report collects."""


def arrow_table(given: Any, what: str) -> pa.Table:
    """The rows of a table that `_table_of` accepts, in types that Arrow can sort and take."""
    table = _table_of(given, what)
    columns = [_simple(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def first_key(schema: pa.Schema) -> int:
    """The place of the first partition key among the columns of matches."""
    has_id = schema.names[:1] == [MATCH_ID] and pa.types.is_binary(schema.types[0])
    return int(has_id)


def _simple(column: pa.ChunkedArray) -> pa.ChunkedArray:
    simple = _simple_type(column.type)
    return column if simple == column.type else column.cast(simple)


def _simple_type(type: pa.DataType) -> pa.DataType:
    """A type without views and large lists, which other libraries make."""
    if pa.types.is_string_view(type):
        return pa.large_string()
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(_simple_type(type.value_type))
    if pa.types.is_struct(type):
        return pa.struct([(field.name, _simple_type(field.type)) for field in type])
    return type


def _table_of(given: Any, what: str) -> pa.Table:
    """The rows of a table of Arrow, pandas, polars or DuckDB, of a dictionary of columns, or of a
    Spark DataFrame, which is collected.

    `what` names the argument, for messages. Raises TypeError where `given` is not a table. Raises
    TooManyRowsError for a DataFrame with more than `MOST_COLLECTED` rows: positions count all
    events, so a part of the rows would give other matches.
    """
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, dict):
        return pa.table(given)
    if is_a(given, "pandas", "DataFrame"):
        table = pa.Table.from_pandas(given, preserve_index=False)
        return table.replace_schema_metadata(None)
    if type(given).__module__.partition(".")[0] == "pyspark" and hasattr(given, "toArrow"):
        return _collected(given, what)
    if hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    raise TypeError(
        f"{what} is a {type(given).__name__}, which is no table: give a pyarrow Table, a data "
        "frame of pandas, polars or Spark, or a dictionary of columns"
    )


def _collected(frame: Any, what: str) -> pa.Table:
    if frame.isStreaming:
        raise TypeError(f"{what} is a stream, which has no end: give a table that it has written")
    table: pa.Table = frame.limit(MOST_COLLECTED + 1).toArrow()
    if len(table) > MOST_COLLECTED:
        raise TooManyRowsError(
            f"{what} is a Spark DataFrame of more than {MOST_COLLECTED:,} rows, the most that a "
            "report collects: choose some partitions, or a time, with where()"
        )
    return table

"""Keys of PARTITION BY that are another attribute for each event type: `[src, dst]`.

Such a key becomes a column of its own at the entrance of each route, and everything behind sees an
ordinary partition column. Here is all that makes one: of events in Arrow, and of Spark's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.plan.plan import ARROW_TYPES, ChosenKey, Plan, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def columns_of_keys(plan: Plan, keys: Iterable[ChosenKey]) -> list[str]:
    """The columns that keys are read from: attributes, and those that tell types and streams."""
    names = [plan.type_name, *(["stream"] if plan.stream_column else [])]
    names += [attribute for key in keys for attribute, _ in key.ways]
    return list(dict.fromkeys(names))


def key_values(plan: Plan, key: ChosenKey, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The key of each event; NULL for one of an undeclared type.

    columns: those of `columns_of_keys`, in the types that are declared and not dictionary-coded.
    """
    values = pa.nulls(len(columns[plan.type_name]), ARROW_TYPES[key.type])
    for attribute, types in key.ways:
        values = pc.if_else(_are_of(plan, types, columns), columns[attribute], values)
    return values


def _are_of(
    plan: Plan, types: tuple[tuple[str, str], ...], columns: Mapping[str, pa.Array]
) -> pa.Array:
    """bool[rows]: whether an event is of one of these types; never NULL."""
    if not plan.stream_column:
        return _is_in(columns[plan.type_name], [name for _, name in types])
    of_streams: dict[str, list[str]] = {}
    for stream, name in types:
        of_streams.setdefault(stream, []).append(name)
    found = pa.repeat(pa.scalar(False), len(columns[plan.type_name]))
    for stream, names in of_streams.items():
        of_stream = pc.and_(
            _is_in(columns["stream"], [stream]), _is_in(columns[plan.type_name], names)
        )
        found = pc.or_(found, of_stream)
    return found


def _is_in(column: pa.Array, texts: list[str]) -> pa.Array:
    return pc.is_in(column, value_set=pa.array(texts, column.type))


# --- on Spark -------------------------------------------------------------------------------------


def with_key_columns(plan: Plan, rows: DataFrame) -> DataFrame:
    """Rows of the columns that a query reads, with those that are made for its keys."""
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    for name, key in plan.chosen.items():
        rows = rows.withColumn(name, _key_expression(plan, key, types))
    return rows


def _key_expression(plan: Plan, key: ChosenKey, types: Mapping[str, str]) -> Column:
    from pyspark.sql import functions

    chosen = functions.when(functions.lit(False), _as_declared(plan, key, key.ways[0][0], types))
    for attribute, of_types in key.ways:
        chosen = chosen.when(
            _are_rows_of(plan, of_types), _as_declared(plan, key, attribute, types)
        )
    # Rows of undeclared types are dropped, but moved first: not all of them to one task.
    attributes = [_as_declared(plan, key, attribute, types) for attribute, _ in key.ways]
    return chosen.otherwise(functions.coalesce(*attributes))


def _as_declared(plan: Plan, key: ChosenKey, attribute: str, types: Mapping[str, str]) -> Column:
    """An attribute's column in the type that is declared: those of a key are of one type then."""
    from pyspark.sql import functions

    column = functions.col(quoted(attribute))
    if types[attribute] == "timestamp_ntz":
        return utc_instant(column)
    return column.cast({"LONG": "bigint"}.get(key.type, key.type.lower()))


def utc_instant(column: Column) -> Column:
    """The instants of times without a zone, which are UTC."""
    from pyspark.sql import functions

    epoch = functions.lit("1970-01-01").cast("timestamp_ntz")
    passed = functions.timestamp_diff("MICROSECOND", epoch, column)
    return functions.timestamp_micros(passed)


def _are_rows_of(plan: Plan, types: tuple[tuple[str, str], ...]) -> Column:
    from pyspark.sql import functions

    # Without its collation: the workers tell types apart byte by byte.
    column = functions.col(quoted(plan.type_name)).cast("string")
    if not plan.stream_column:
        return column.isin([name for _, name in types])
    streams = functions.col("stream").cast("string")
    pairs = [
        (streams == functions.lit(stream)) & (column == functions.lit(name))
        for stream, name in types
    ]
    return reduce(lambda one, other: one | other, pairs)

"""Keys of PARTITION BY that are another attribute for each event type, as columns of Spark's rows.

The same for events in Arrow is `arrow/events/chosen_keys`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from celc_runtime.plan.plan import ChosenKey, Plan
from celc_runtime.spark.input.columns import column_named
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.pipelines import still_known
from celc_runtime.values.types import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_key_columns(plan: Plan, rows: DataFrame) -> DataFrame:
    """The columns that a query reads, and `plan.source.chosen_columns` behind them."""
    if not plan.source.chosen_columns:
        return rows
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    made = {name: key.type for name, key in plan.source.chosen_columns.items()}
    found = rows
    for name, key in plan.source.chosen_columns.items():
        # Not by `withColumn`: see `pipelines`.
        found = found.select("*", _key_expression(plan, key, types).alias(name))
    return still_known(found, rows, [*types, *made], made)


def _key_expression(plan: Plan, key: ChosenKey, types: Mapping[str, str]) -> Column:
    from pyspark.sql import functions

    value = functions.when(functions.lit(False), _as_declared(key, key.ways[0][0], types))
    for attribute, of_types in key.ways:
        value = value.when(is_of_types(plan, of_types), _as_declared(key, attribute, types))
    # Rows of undeclared types are dropped after they are moved: not all of them to one task.
    attributes = [_as_declared(key, attribute, types) for attribute, _ in key.ways]
    return value.otherwise(functions.coalesce(*attributes))


def _as_declared(key: ChosenKey, attribute: str, types: Mapping[str, str]) -> Column:
    """An attribute's column in the type of the key, so that all ways of a key have one type."""
    column = column_named(attribute)
    if types[attribute] == "timestamp_ntz" and key.type != "TIMESTAMP_NTZ":
        return utc_instant(column)
    return column.cast(ddl_of(key.type).lower())


def utc_instant(column: Column) -> Column:
    """The instants of times without a zone, which are UTC."""
    from pyspark.sql import functions

    epoch = functions.lit("1970-01-01").cast("timestamp_ntz")
    passed = functions.timestamp_diff("MICROSECOND", epoch, column)
    return functions.timestamp_micros(passed)

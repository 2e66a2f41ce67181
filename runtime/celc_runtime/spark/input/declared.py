"""The columns that a query declares, of a DataFrame whose own nobody may ask for (`pipelines`).

Their types are compared by expressions that Spark folds before the run: where one does not fit, the
run ends with the words of `needed_columns`. A column that is not there Spark refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.plan.schemas import input_schema
from celc_runtime.spark.input.columns import SPARK_TYPES, spark_type
from celc_runtime.spark.input.key_columns import utc_instant
from celc_runtime.spark.input.pipelines import NOT_ASKED, in_query_function, schema_of, with_types
from celc_runtime.values.types import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def declared_events(plan: Plan, events: DataFrame) -> DataFrame:
    """In a query function, the columns that a query reads, as it declares them, and that of types;
    elsewhere the DataFrame as it is.

    Where there is no column of types, all rows are of the query's only type, as elsewhere. Raises
    EventError for a tiebreak column that is no attribute, because its type is not known.
    """
    if not in_query_function(events.sparkSession):
        return events
    from pyspark.sql import functions

    source = plan.source
    known = {one.name: one.type for one in source.order_candidates}
    types = {}
    for name in dict.fromkeys([*input_schema(plan).names, *source.tiebreak]):
        if name in source.tiebreak and name not in input_schema(plan).names and name not in known:
            raise EventError(
                f"query {plan.name!r} orders events by the tiebreak column {name!r}, whose type is "
                f"not known, and {NOT_ASKED}: declare it as an attribute of each event type that "
                "the query reads"
            )
        types[name] = known.get(name) or source.input_type(name)
    typed = source.type_column or len(source.declared_types) != 1
    columns = [
        checked(plan.name, functions.col(".".join(map(quoted, name.split(".")))), name, type)
        for name, type in types.items()
    ]
    if not typed:
        (_, only), *_ = source.declared_types
        columns.append(_type_or(events, source.type_name, only).alias(source.type_name))
        types[source.type_name] = "STRING"
    return with_types(events.select(*columns), types)


def declared_rows(plan: RowPlan, rows: DataFrame) -> DataFrame:
    """In a query function, the columns that MATCH_RECOGNIZE reads of a table, as they are declared;
    elsewhere the DataFrame as it is."""
    if not in_query_function(rows.sparkSession):
        return rows
    from pyspark.sql import functions

    types = {one.name: one.type for one in plan.attributes_of_table}
    columns = [
        checked(plan.name, functions.col(quoted(name)), name, type) for name, type in types.items()
    ]
    return with_types(rows.select(*columns), types)


def _type_or(events: DataFrame, name: str, only: str) -> Column:
    """The column of types where there is one, else the only type.

    A name as a pattern stands for none or one column; what has it as a part tells which.
    """
    from pyspark.sql import functions

    found = events.colRegex(quoted(name))
    is_there = functions.typeof(functions.struct(functions.lit(0), found)) != "struct<col1:int>"
    value = functions.get(functions.array(found), functions.lit(0)).cast("string")
    return functions.when(is_there, value).otherwise(functions.lit(only))


def checked(query: str, column: Column, name: str, type: str) -> Column:
    """A column in the type that is declared. Spark folds the comparison of types, and a run of
    another type ends with its message."""
    from pyspark.sql import functions

    found = functions.typeof(column)
    wrong = functions.raise_error(
        functions.concat(
            functions.lit(
                f"query {query!r} declares {name!r} as {type}, but the column's type is "
            ),
            found,
            functions.lit(f": cast the column to {spark_type(type)}"),
        )
    )
    if type not in SPARK_TYPES:
        own = schema_of({name: type})[name].dataType.simpleString()
        nothing = functions.when(found == "void", functions.lit(None).cast(own))
        return nothing.when(found == own, column).otherwise(wrong).alias(name)
    fits = found.isin(*SPARK_TYPES[type], "void")
    if type == "STRING":
        fits = fits | found.startswith("string collate ")
    value = column.cast(ddl_of(type))
    if type == "TIMESTAMP":
        naive = utc_instant(column.cast("timestamp_ntz"))
        return (
            functions.when(found == "timestamp_ntz", naive)
            .when(fits, value)
            .otherwise(wrong)
            .alias(name)
        )
    return functions.when(fits, value).otherwise(wrong).alias(name)

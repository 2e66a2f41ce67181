"""MATCH_RECOGNIZE on Spark: partitions spread by key, sorted, and mapped as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.spark.input.columns import column_named
from celc_runtime.spark.input.ddl import schema_of_ddl
from celc_runtime.spark.input.pipelines import still_known
from celc_runtime.spark.sql import check_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def matched_frame(plan: RowPlan, match: Any, rows: DataFrame) -> DataFrame:
    """The result for a DataFrame, whose batches are given to `match`. Raises EventError where a
    column is missing, or has a dot in its name."""
    chosen = with_derived(plan, rows_read(plan, rows))
    keys, order = _sort(plan)
    spread = chosen.repartition(*keys) if keys else chosen.repartition(1)
    ordered = spread.sortWithinPartitions(*keys, *order) if keys or order else spread
    return ordered.mapInArrow(match, schema_of_ddl(plan.output_ddl()))


def plan_text(plan: RowPlan, rows: DataFrame) -> str:
    """The plan in words."""
    keys = [plan.columns[number].name for number in plan.partition_by]
    columns_of(plan, rows)
    spread = (
        f"rows are spread by {', '.join(keys)}, and each partition is read by one task"
        if keys
        else "one task reads all rows, because the query has no PARTITION BY"
    )
    return f"{spread}\n{kernel_text(plan)}"


def kernel_text(plan: RowPlan) -> str:
    """How matches are found, in words."""
    if plan.searches:
        registers = any(plan.live) or not plan.remembers
        told = "the path" if registers else "the start of the match"
        return f"matches are found by a search, because conditions read {told}"
    if plan.within is not None:
        return "two passes over the rows: the earliest end by row and state, then forwards"
    return "two passes over the rows: viable states backwards, then forwards"


def columns_of(plan: RowPlan, rows: DataFrame) -> list[Any]:
    """The columns that the query reads of a table, under its own names. Raises EventError where one
    is missing, or has a dot in its name."""
    from pyspark.sql import functions

    found = []
    for name in (one.name for one in plan.attributes_of_table):
        same = [one for one in rows.columns if one.casefold() == name.casefold()]
        if len(same) != 1:
            told = "is missing" if not same else "occurs more than once"
            raise EventError(
                f"query {plan.name!r} reads the column {name!r}, which {told}; the columns are: "
                f"{', '.join(map(repr, rows.columns)) or 'none'}"
            )
        if "." in name:
            # PySpark's mapInArrow takes what stands before the dot for a column, and reads a field.
            raise EventError(
                f"query {plan.name!r} reads the column {name!r}, and PySpark cannot give a column "
                "with a dot in its name to Python: rename it before, as by withColumnRenamed"
            )
        quoted = "`" + same[0].replace("`", "``") + "`"
        found.append(functions.col(quoted).alias(name))
    return found


def rows_read(plan: RowPlan, rows: DataFrame, extra: Sequence[str] = ()) -> DataFrame:
    """The columns that the query reads of a table, and further ones. Raises the errors of
    `columns_of`."""
    names = [*(one.name for one in plan.attributes_of_table), *extra]
    found = rows.select(*columns_of(plan, rows), *map(column_named, extra))
    return still_known(found, rows, names)


def with_derived(plan: RowPlan, rows: DataFrame, also: Iterable[str] = ()) -> DataFrame:
    """The columns that the query reads; those that are made of others by Spark's expressions. And
    the columns `also`."""
    if not plan.derived:
        return rows
    made = {one.name: one.sql for one in plan.derived}
    names = [*(one.name for one in plan.attributes_read), *also]
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in names}
    found = rows.selectExpr(
        *(f"{made[name]} AS {text}" if name in made else text for name, text in quoted.items())
    )
    types = {one.name: one.type for one in plan.attributes_read if one.name in made}
    return still_known(found, rows, names, types)


def _sort(plan: RowPlan) -> tuple[list[Any], list[Any]]:
    from pyspark.sql import functions

    def column(number: int) -> Any:
        return functions.col("`" + plan.columns[number].name.replace("`", "``") + "`")

    keys = [column(number) for number in plan.partition_by]
    order = []
    for one in plan.order_by:
        chosen = column(one.column)
        if one.descending:
            first = one.nulls_first
            order.append(chosen.desc_nulls_first() if first else chosen.desc_nulls_last())
        else:
            last = one.nulls_first is False
            order.append(chosen.asc_nulls_last() if last else chosen.asc_nulls_first())
    return keys, order


def registered(plan: RowPlan, match: Any, spark: SparkSession, name: str | None) -> Any:
    """The query as a table function of SQL, whose partitions are given to `match`."""
    from pyspark.sql import functions

    called = plan.name if name is None else name
    check_function(spark, called, "shapes")
    handler = _handler(match)
    function: Any = functions.arrow_udtf(handler, returnType=plan.output_ddl())
    # Spark refuses others below LATERAL.
    return spark.udtf.register(called, function.asDeterministic())


def _handler(match: Any) -> type:
    """The class of which Spark makes an instance for each partition.

    Rows are gathered until the partition ends: a match is known then.
    """

    class Matches:
        def __init__(self) -> None:
            self.batches: list[pa.RecordBatch] = []

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            self.batches.append(rows)
            return iter(())

        def terminate(self) -> Iterator[pa.RecordBatch]:
            return match(iter(self.batches))  # type: ignore[no-any-return]

    return Matches

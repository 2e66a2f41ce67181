"""Batch routes on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celc_runtime.errors import EventError
from celc_runtime.plan import quoted
from celc_runtime.table import sort_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from celc_runtime.query import CompiledQuery


def spark_matches(query: CompiledQuery, events: DataFrame) -> DataFrame:
    """All matches of a DataFrame as a DataFrame.

    With PARTITION BY: one shuffle by the partition attributes, a sort inside each Spark partition,
    and `mapInArrow`, which reads all keys of a Spark partition as one sorted stream; its cost does
    not depend on the number of keys. Without, or with CONSUME BY ANY: the same in one partition.

    Raises EventError where the query names no order column, because a distributed table has no
    order of its own, and where the DataFrame lacks a column.
    """
    from pyspark.sql import functions

    plan = query.plan
    if not plan.order_by:
        raise EventError(
            f"query {plan.name!r} has no order column, and a distributed table has no order of its "
            "own: compile it with --order-by, or use with_options(order_by=…)"
        )
    needed = list(dict.fromkeys([*plan.input_schema().names, *plan.tiebreak]))
    if not plan.type_column and "type" in events.columns:
        needed.append("type")
    missing = [name for name in needed if name not in events.columns]
    if missing:
        raise EventError(
            f"query {plan.name!r} reads columns that the DataFrame lacks: "
            f"{', '.join(map(repr, missing))}; its columns are: {', '.join(events.columns)}"
        )
    columns = {name: functions.col(quoted(name)) for name in needed}
    narrow = events.select(*columns.values())
    if plan.partition_by and not plan.interleaves:
        spread = narrow.repartition(*(columns[name] for name in plan.partition_by))
    else:
        spread = narrow.coalesce(1)
    ordered = spread.sortWithinPartitions(*(columns[name] for name in sort_columns(plan)))
    return ordered.mapInArrow(query.match_arrow_without_ties, query.output_ddl)

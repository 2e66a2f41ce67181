"""Batch routes on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celc_runtime.plan import quoted
from celc_runtime.spark_input import Counting, mapped, needed_columns, without_order
from celc_runtime.table import sort_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from celc_runtime.query import CompiledQuery


def spark_matches(
    query: CompiledQuery, events: DataFrame, counting: Counting | None = None
) -> DataFrame:
    """All matches of a DataFrame as a DataFrame; `counting` sees the rows that are read.

    With PARTITION BY: one shuffle by the partition attributes, a sort inside each Spark partition,
    and `mapInArrow`, which reads all keys of a Spark partition as one sorted stream; its cost does
    not depend on the number of keys. Without, or with CONSUME BY ANY: the same in one partition.

    Raises EventError where the query names no order column, because a distributed table has no
    order of its own, and where the DataFrame's columns are not those that the query reads.
    """
    from pyspark.sql import functions

    plan = query.plan
    if not plan.order_by:
        raise without_order(plan)
    narrow = needed_columns(plan, events)
    if plan.partition_by and not plan.interleaves:
        spread = narrow.repartition(*(functions.col(quoted(name)) for name in plan.partition_by))
    else:
        spread = narrow.coalesce(1)
    ordered = spread.sortWithinPartitions(
        *(functions.col(quoted(name)) for name in sort_columns(plan))
    )
    return mapped(ordered, query.match_arrow_without_ties, query.output_ddl, counting)

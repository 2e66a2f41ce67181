"""MATCH_RECOGNIZE on Spark: partitions spread by key, sorted, and mapped as Arrow batches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.plan.errors import EventError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from celc_runtime.row_pattern.query import RowPatternQuery

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def matched_frame(query: RowPatternQuery, rows: DataFrame) -> DataFrame:
    """The result for a DataFrame. Raises EventError where a column is missing, NotImplementedError
    for a stream."""
    if rows.isStreaming:
        query.match_stream(rows)
    chosen = rows.select(*_columns(query, rows))
    keys, order = _sort(query)
    spread = chosen.repartition(*keys) if keys else chosen.repartition(1)
    ordered = spread.sortWithinPartitions(*keys, *order) if keys or order else spread
    return ordered.mapInArrow(query.match_arrow, query.output_ddl)


def plan_text(query: RowPatternQuery, rows: DataFrame) -> str:
    """The plan in words."""
    keys = [query.plan.columns[number].name for number in query.plan.partition_by]
    _columns(query, rows)
    spread = (
        f"rows are spread by {', '.join(keys)}, and each partition is read by one task"
        if keys
        else "one task reads all rows, because the query has no PARTITION BY"
    )
    return f"{spread}\n{kernel_text(query)}"


def kernel_text(query: RowPatternQuery) -> str:
    """How matches are found, in words."""
    plan = query.plan
    if plan.searches:
        registers = any(plan.live) or not plan.remembers
        told = "the path" if registers else "the start of the match"
        return f"matches are found by a search, because conditions read {told}"
    if plan.within is not None:
        return "two passes over the rows: the earliest end by row and state, then forwards"
    return "two passes over the rows: viable states backwards, then forwards"


def _columns(query: RowPatternQuery, rows: DataFrame) -> list[Any]:
    from pyspark.sql import functions

    found = []
    for number in query.plan.columns_read:
        name = query.plan.columns[number].name
        same = [one for one in rows.columns if one.casefold() == name.casefold()]
        if len(same) != 1:
            told = "is missing" if not same else "occurs more than once"
            raise EventError(
                f"query {query.name!r} reads the column {name!r}, which {told}; the columns are: "
                f"{', '.join(map(repr, rows.columns)) or 'none'}"
            )
        quoted = "`" + same[0].replace("`", "``") + "`"
        found.append(functions.col(quoted).alias(name))
    return found


def _sort(query: RowPatternQuery) -> tuple[list[Any], list[Any]]:
    from pyspark.sql import functions

    plan = query.plan

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


def registered(query: RowPatternQuery, spark: SparkSession, name: str | None) -> Any:
    """The query as a table function of SQL."""
    from pyspark.sql import functions

    if not hasattr(functions, "arrow_udtf"):
        from pyspark import __version__

        raise RuntimeError(
            f"a table function for SQL needs PySpark 4.1 or newer, and this is {__version__}: "
            "install a newer one, or use match(df) and register its result as a view"
        )
    called = query.name if name is None else name
    if not _IDENTIFIER.fullmatch(called):
        raise ValueError(
            f"SQL cannot call a function {called!r}: choose a name of letters, digits and _, as in "
            "register(spark, name='shapes')"
        )
    if hasattr(spark.tvf, called.lower()):
        raise ValueError(
            f"Spark SQL has a table function {called!r} of its own, which this one would replace: "
            "choose another name"
        )
    handler = _handler(query.table_function)
    function: Any = functions.arrow_udtf(handler, returnType=query.output_ddl)
    return spark.udtf.register(called, function)


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

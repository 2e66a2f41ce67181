"""Rows that cannot matter stay in the JVM although positions count them.

A position is the number of a row among its partition's rows in their order, so all rows have to be
sorted; but only those that can matter have to reach Python. Spark numbers the sorted rows itself,
in a window over each partition, and they are filtered behind it. Before the shuffle a row that
cannot matter loses all attributes but those that it is sorted by.

Two rows that the order leaves equal are an error, because their positions would be chance. A row
whose rank is not its number is equal to the row before it, so it is kept as well, and marked.

Rejected: `monotonically_increasing_id`, which costs less than the window, but says neither where a
partition begins nor that two rows are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import shown
from celc_runtime.arrow.event_order import tie_error
from celc_runtime.arrow.paths import received
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, Route
from celc_runtime.run.run import Run
from celc_runtime.spark.columns import column_named
from celc_runtime.spark.event_types import is_of_types
from celc_runtime.spark.pushdown import can_matter, why_all_matter

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class NumberColumns(NamedTuple):
    """The names of the columns that numbering adds: the number of a row in its partition, and
    whether the order leaves it equal to the row before it."""

    number: str
    tied: str


def why_not_numbered(plan: Plan) -> str:
    """Why all rows reach Python; empty where those that cannot matter need not."""
    if not set(plan.order_by) - set(plan.key_columns):
        return "all events of a partition are at one place of the order"
    if plan.interleaves:
        return "with CONSUME BY ANY partitions are read side by side"
    for name in (plan.window_attribute, *plan.local_attributes):
        if name not in (None, plan.order_by[0]):
            return f"a window is measured on {name!r}, which must not fall from one row to the next"
    return why_all_matter(plan)


def numbered(
    plan: Plan, rows: DataFrame, keys: Sequence[Column], order: Sequence[Column]
) -> tuple[DataFrame, NumberColumns]:
    """The rows that can matter, sorted within partitions, with the two columns last.

    keys: what rows are partitioned by, so that one task reads all of a partition; empty: one task
    reads all. order: what they are sorted by within a partition.
    """
    from pyspark.sql import Window, functions

    names = rows.columns
    declared, rest, *found = (
        unused_name(name, names) for name in ("declared", "rest", "number", "tied")
    )
    of_numbers = NumberColumns(*found)
    needed = {*plan.key_columns, *plan.order_by, *plan.tiebreak}
    moved = [name for name in names if name in needed]
    left = [name for name in names if name not in needed]
    whole = functions.struct(*map(column_named, left)) if left else functions.lit(True)
    thin = rows.select(
        *map(column_named, moved),
        _is_declared(plan, rows).alias(declared),
        functions.when(can_matter(plan, rows.schema), whole).alias(rest),
    )
    # Rows of undeclared types have no positions; they are numbered by themselves.
    window = Window.partitionBy(*keys, column_named(declared)).orderBy(*order)
    # Spark's own numbers of rows end at 2 ** 31.
    number = functions.count(functions.lit(1)).over(
        window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    row, rank = functions.row_number().over(window), functions.rank().over(window)
    together = thin.repartition(*keys) if keys else thin.coalesce(1)
    spread = together.withColumn(of_numbers.number, number)
    tied = column_named(declared) & (rank != row)
    spread = spread.withColumn(of_numbers.tied, tied)
    kept = spread.where(column_named(rest).isNotNull() | column_named(of_numbers.tied))
    columns = [
        column_named(name) if name in needed else column_named(rest).getField(name).alias(name)
        for name in names
    ]
    return kept.select(*columns, *map(column_named, of_numbers)), of_numbers


def _is_declared(plan: Plan, rows: DataFrame) -> Column:
    from pyspark.sql import functions

    if plan.type_name not in rows.columns:
        return functions.lit(True)
    return functions.coalesce(is_of_types(plan, plan.declared_types), functions.lit(True))


def numbered_route(program: Program) -> Route:
    """The function of Spark tasks that read numbered rows: from the names of the columns and
    batches."""

    def match_numbered(
        program: Program, columns: tuple[str, str], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return matches_of_numbered(program, NumberColumns(*columns), map(received, batches))

    return Route(program, "numbered_route", match_numbered)


def numbered_reader(program: Program, columns: NumberColumns) -> Any:
    """The function that `mapInArrow` gets."""
    return partial(numbered_route(program), tuple(columns))


def _order_of(plan: Plan, batch: pa.RecordBatch, row: int) -> str:
    names = dict.fromkeys((*plan.order_by, *plan.tiebreak))
    return ", ".join(f"{name}={shown(batch.column(name)[row])}" for name in names)


def matches_of_numbered(
    program: Program, columns: NumberColumns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches of rows that Spark has numbered. Raises EventError where two rows of a partition
    are equal in their order."""
    run = Run(program, ties_are_errors=True)
    for batch in batches:
        number, tied = (batch.schema.get_field_index(name) for name in columns)
        wrong = np.asarray(batch.column(tied).to_numpy(zero_copy_only=False), np.bool_)
        if wrong.any():
            raise tie_error(program.plan, _order_of(program.plan, batch, int(wrong.argmax())))
        positions = np.asarray(batch.column(number), np.int64) - 1
        yield from run.push(batch.drop_columns([columns.number, columns.tied]), positions=positions)
    run.finish()

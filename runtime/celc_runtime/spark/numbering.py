"""Rows that cannot matter stay in the JVM although positions count them.

A position is the number of a row among its partition's rows in their order, so all rows have to be
sorted; but only those that can matter have to reach Python. Spark numbers the sorted rows itself,
in a window over each partition, and they are filtered behind it. Before the sort a row that cannot
matter loses all attributes but those that it is sorted by. The tasks sort and number in Spark's
place if they can hold the rows and these are no time ranges (`task_sort`).

Two rows that the order leaves equal are an error, because their positions would be chance. A row
whose rank is not its number is equal to the row before it, so it is kept as well, and marked. A
time range is to have as many rows as were counted: of its rows the one with the last number is
kept, and all behind it.

Where one task reads one partition, `monotonically_increasing_id` counts the sorted rows, which
costs less than to count them in the window. With keys it says nowhere where a partition begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from celc_runtime.arrow.events.sorting import sort_columns_without_order
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.spark.input.columns import column_named
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.pushdown import can_matter, why_all_are_read
from celc_runtime.spark.worker.task_columns import COUNTED, MATTERS, TIED, TaskColumns
from celc_runtime.spark.worker.task_sort import together

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

_LOW_BITS = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of a Spark partition."""

_BITS_OF_A_RANK = (1 << 32) - 1


class RangeColumns(NamedTuple):
    """What numbering has to know of time ranges.

    rows: how many rows the row's range has, NULL for rows of no range. is_foreign: whether the row
    is before its range's own events, or behind them; never NULL.
    """

    rows: Column
    is_foreign: Column


def why_not_numbered(plan: Plan) -> str:
    """Why all rows reach Python; empty where those that cannot matter need not."""
    if not set(plan.source.order_by) - set(plan.source.key_columns):
        return "all events of a partition are at one place of the order"
    if plan.source.uncertain is not None:
        return "events of one least time are told apart by all columns"
    if plan.source.ties is not None:
        return "a match starts at the first event of its first instant, whatever that is"
    if plan.interleaves:
        return "with CONSUME BY ANY partitions are read side by side"
    for name in (plan.window_attribute, *plan.local_attributes):
        if name not in (None, plan.source.order_by[0]):
            return f"a window is measured on {name!r}, which must not fall from one row to the next"
    if plan.source.told_apart is not None and plan.source.chosen_keys:
        return "a key is another attribute for each event type, and rows that only count have none"
    return why_all_are_read(plan)


def numbered_columns(names: Sequence[str], range_name: str = "") -> TaskColumns:
    """The columns of rows that Spark numbers, of `names`; `range_name`: the one with the number of
    a row's range, empty where all rows are of one range."""
    return TaskColumns(range_name, unused_name("number", names), unused_name("mark", names))


class Numbering:
    """Numbers rows in the order of each partition, and leaves out those that cannot matter.

    Its columns are made once for all time ranges, because each takes hundreds of calls of Java. The
    DataFrame whose parts the ranges are is made once, because Spark analyses each new one anew.
    """

    def __init__(
        self,
        plan: Plan,
        keys: Sequence[str],
        columns: TaskColumns,
        rows: DataFrame,
    ) -> None:
        """keys: the columns that rows are partitioned by, so that one task reads all of a
        partition; empty: one task reads all. columns: of `numbered_columns`. rows: has the columns
        of all rows."""
        from pyspark.sql import Window, functions

        names = rows.columns
        undeclared, rest, rank = (
            unused_name(name, names) for name in ("undeclared", "rest", "rank")
        )
        number, mark = columns.number, columns.mark
        moved = _moved(plan, names, columns.range)
        matters = can_matter(plan, rows.schema)
        self._keys = keys
        self._rows = rows.select(
            *_light(matters, names, moved, rest),
            _is_undeclared(plan, rows, matters).alias(undeclared),
        )
        # Rows of undeclared types have no positions. They are sorted apart from the others and
        # behind them, so that the numbers of these begin with 1.
        order = [n for n in sort_columns_without_order(plan) if n not in plan.source.key_columns]
        window = Window.partitionBy(*map(column_named, (*keys, undeclared)))
        window = window.orderBy(*map(column_named, order))
        self._counters = [
            (rank, functions.rank().over(window)),
            (number, _number(window) if keys else _number_in_task()),
        ]
        # As text, which takes fewer calls of the JVM than columns do.
        rank, number, mark, rest = map(quoted, (rank, number, mark, rest))
        declared, has_rest = f"NOT {quoted(undeclared)}", f"{rest} IS NOT NULL"
        # A rank has 32 bits.
        differs = f"(CAST({rank} AS BIGINT) ^ {number}) & {_BITS_OF_A_RANK}"
        tied = f"{declared} AND ({differs}) != 0"
        self._declared, self._number, self._kept = declared, number, f"{has_rest} OR ({tied})"
        self._found = [
            *(
                quoted(name) if name in moved else f"{rest}.{quoted(name)} AS {quoted(name)}"
                for name in names
            ),
            f"CASE WHEN {declared} THEN {number} ELSE 0 END AS {number}",
            f"CAST(CASE WHEN {tied} THEN {TIED} WHEN {has_rest} THEN {MATTERS} ELSE {COUNTED} END "
            f"AS TINYINT) AS {mark}",
        ]

    def of(self, ranges: RangeColumns | None = None, within: Column | None = None) -> DataFrame:
        """The rows that can matter, sorted within partitions, with the columns of numbers and marks
        last. within: a condition on the columns that rows are sorted by, of the rows that are
        numbered; None: all are."""
        from pyspark.sql import functions

        wanted = self._rows if within is None else self._rows.where(within)
        counted = together(wanted, self._keys)
        for name, column in self._counters:
            # One after the other: Spark would move the second one below the window of the first.
            counted = counted.withColumn(name, column)
        if ranges is None:
            return counted.where(self._kept).selectExpr(*self._found)
        kept, declared, number = map(functions.expr, (self._kept, self._declared, self._number))
        kept = kept | (declared & (number >= ranges.rows))
        kept = kept & (declared | ~ranges.is_foreign)
        return counted.where(kept).selectExpr(*self._found)


def _number(window: WindowSpec) -> Column:
    from pyspark.sql import Window, functions

    # Spark's own numbers of rows end at 2 ** 31.
    rows_so_far = window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return functions.count(functions.lit(1)).over(rows_so_far)


def _number_in_task() -> Column:
    from pyspark.sql import functions

    return functions.monotonically_increasing_id().bitwiseAND(_LOW_BITS) + 1


def _moved(plan: Plan, names: Sequence[str], range_name: str) -> list[str]:
    """The columns that a shuffle moves even for rows that cannot matter."""
    needed = {*plan.source.key_columns, *plan.source.order_by, *plan.source.tiebreak, range_name}
    return [name for name in names if name in needed]


def _light(matters: Column, names: Sequence[str], moved: Sequence[str], rest: str) -> list[Column]:
    """The columns that each row keeps (`moved`), and all others in one struct called `rest`. It is
    NULL if the row cannot matter.

    Rejected: to keep all columns where there is no shuffle. Spark's window copies the rows that it
    reads: with 1 % that can matter this took 1.5 times as long, with 30 % 1.1 times.
    """
    from pyspark.sql import functions

    left = [name for name in names if name not in moved]
    # As text, which takes fewer calls of the JVM than columns do.
    whole = functions.expr(f"struct({', '.join(map(quoted, left))})" if left else "TRUE")
    return [*map(column_named, moved), functions.when(matters, whole).alias(rest)]


def _is_undeclared(plan: Plan, rows: DataFrame, matters: Column) -> Column:
    """Whether the type of a row is not declared.

    A row that cannot matter has a declared type, so only the others are compared with the relevant
    types. Spark evaluates a condition once, even if a projection has it twice.
    """
    from pyspark.sql import functions

    if plan.source.type_name not in rows.columns:
        return functions.lit(False)
    assert plan.source.events_read is not None
    relevant = is_of_types(plan, [(r.stream, r.type) for r in plan.source.events_read])
    known = functions.coalesce(relevant, functions.lit(True))
    return functions.when(matters, ~known).otherwise(functions.lit(False))

"""The steps of a plan: what becomes of a DataFrame, and what the plan says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from celc_runtime.arrow.events.sorting import sort_columns_without_order
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.ranges import TimeRange
from celc_runtime.spark.answers.wire import Wire
from celc_runtime.spark.hot_keys import HotKey, range_numbers
from celc_runtime.spark.input.columns import Counting, column_named, mapped
from celc_runtime.spark.input.order_column import OrderColumn, ValueColumn
from celc_runtime.spark.numbering import Numbering, RangeColumns
from celc_runtime.spark.time_ranges import is_outside, later_of, start_of, within
from celc_runtime.spark.worker.task_columns import TaskColumns
from celc_runtime.spark.worker.task_sort import together
from celc_runtime.spark.worker.tasks import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Step(NamedTuple):
    """What becomes of a DataFrame, and a line that says so; empty: no line does."""

    apply: Callable[[DataFrame], DataFrame]
    line: str = ""


def told(line: str) -> Step:
    """A step that is a line only."""
    return Step(lambda rows: rows, line)


def applied(steps: Iterable[Step], rows: DataFrame) -> DataFrame:
    """The DataFrame behind some steps."""
    return reduce(lambda made, step: step.apply(made), steps, rows)


def sorted_by_spark(plan: Plan, keys: Sequence[str], rows: DataFrame) -> DataFrame:
    """The rows of each key in one task, in their order; without keys, all in one."""
    sort = dict.fromkeys((*keys, *sort_columns_without_order(plan)))
    return together(rows, keys).sortWithinPartitions(*map(column_named, sort))


def cut_by_time(
    plan: Plan,
    order: OrderColumn,
    parts: Sequence[TimeRange],
    columns: TaskColumns,
    tasks: Sequence[Step],
    rows: DataFrame,
) -> DataFrame:
    """What the task of each time range makes of its rows; they are numbered if `columns` say so."""
    from pyspark.sql import functions

    # Once for all ranges: see `Numbering`.
    numbering = Numbering(plan, (), columns, rows) if columns.number else None
    made = []
    for part, task in zip(parts, tasks, strict=True):
        inside = within(order, part)
        if numbering is None:
            found = sorted_by_spark(plan, (), rows.where(inside))
        else:
            foreign = is_outside(order, start_of(order, part), later_of(order, part))
            found = numbering.of(RangeColumns(functions.lit(part.rows), foreign), inside)
        made.append(task.apply(found))
    return _side_by_side(reduce(lambda one, other: one.unionAll(other), made))


def _side_by_side(united: DataFrame) -> DataFrame:
    """The union with one more part, which has no rows and no Spark partition.

    From Spark 4.1 on, a union of parts with one Spark partition each has one partition, which a
    single task would read (`spark.sql.unionOutputPartitioning`). A part of another kind prevents
    that. Its columns are NULL, but depend on a number: of a constant Spark would find out that the
    filter of a job leaves no row, and would take the part away.
    """
    from pyspark.sql import functions

    nulls = functions.array(functions.lit(None).cast(united.schema))
    row = functions.get(nulls, functions.col("id").cast("int"))
    nothing = united.sparkSession.range(0).select(row.alias("row")).select("row.*")
    return united.unionAll(nothing)


def cut_by_key_and_time(
    plan: Plan,
    order: OrderColumn,
    keys: Sequence[ValueColumn],
    hot: Sequence[HotKey],
    columns: TaskColumns,
    rows: DataFrame,
) -> DataFrame:
    """The rows of each key in one task, and of a hot key those of each range, whose number is in
    the column `columns.range`."""
    from pyspark.sql import functions

    numbers = functions.explode(range_numbers(keys, order, hot))
    in_ranges = rows.withColumn(columns.range, numbers)
    by_key = [*plan.source.key_columns, columns.range]
    if not columns.number:
        return sorted_by_spark(plan, by_key, in_ranges)
    # One look into an array, however many ranges there are; NULL for range 0, which is none.
    ranges = [part for key in hot for part in key.ranges]
    size, start, later = (
        functions.get(functions.array(*values), column_named(columns.range) - 1)
        for values in (
            [functions.lit(part.rows) for part in ranges],
            [start_of(order, part) for part in ranges],
            [later_of(order, part) for part in ranges],
        )
    )
    numbering = Numbering(plan, by_key, columns, in_ranges)
    return numbering.of(RangeColumns(size, is_outside(order, start, later)))


def task_step(
    program: Program,
    wire: Wire,
    counting: Counting | None,
    columns: TaskColumns,
    ranges: Sequence[TimeRange],
) -> Step:
    """The step in which tasks find matches. Rows come spread; they are sorted, or the tasks sort
    them."""
    task = Task(program, wire, columns.shipped(), tuple(part.shipped for part in ranges))
    chosen = program.plan.source.chosen_columns

    def sent(rows: DataFrame) -> DataFrame:
        if chosen:
            kept = [name for name in rows.columns if name not in chosen]
            rows = rows.select(*map(column_named, kept))
        return mapped(rows, task, wire.ddl, counting)

    return Step(sent)

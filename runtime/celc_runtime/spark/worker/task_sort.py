"""Rows that a task sorts itself, in place of Spark's sort: after a shuffle by key, or all of them.

Spark sorts rows by comparing them in memory, row against row, wherever their first column is equal,
as it is for all rows of a key. A task has the columns to sort by as arrays of numbers, which are
sorted many times as fast. Measured with 10⁷ rows in no order, a hundred of each key, 1 % of which
can matter: `match` took 2.6 to 3.3 µs of CPU a row with Spark's sort, 1.5 to 2.5 µs with this.

Without a key one task sorts all rows. Measured with 30 % that can matter, CPU of the whole job
beside that with Spark's sort: a million rows 0.8 where they lie in their order, 0.5 where they lie
in none; four million 1.3 and 0.5. Nobody knows beforehand how rows lie.

A task holds the columns that it sorts by while it does so, and its rows in memory or in a file; so
this is for no more rows than `MOST_ROWS`. Rows that cannot matter come without their other
attributes; they are numbered, and left out before the query sees them (see `numbering`).

Arrow has a price for each column of each row, whatever it holds: so the column of types says which
rows can matter. A column of its own made a job of a million rows with six others dearer by a tenth
of what Arrow takes. Numbers in place of the types' names made no difference.

Rejected: their attributes in one struct, which is NULL where a row cannot matter. Arrow writes each
field of a NULL struct all the same, and the whole job took 1.1 times as much CPU. And to let Spark
sort by a hash of the key alone, by which a task would read one key after another and hold the rows
of one: that sort took as long as the shuffle and the sort here together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from celc_runtime.arrow.events.sorting import sort_columns
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.spark.input.columns import INTERVALS
from celc_runtime.spark.input.pushdown import can_matter
from celc_runtime.spark.worker.task_columns import TaskColumns, Unsorted, no_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_ROWS = 1 << 24
"""A task that is expected to read more rows than this leaves the sort to Spark, which needs no
memory for all of them. Measured beside the rows in their file: 24 or 25 bytes a row where key, time
and place fit into one number, 32 where they do not, so 0.5 GB for all."""

_ORDERED = (
    *("tinyint", "smallint", "int", "bigint", "boolean", "string"),
    *("date", "timestamp", "timestamp_ntz", *INTERVALS),
)


def why_spark_sorts(plan: Plan, types: dict[str, str]) -> str:
    """Why tasks cannot sort the rows of a query; empty where they can. types: of the columns, as
    Spark spells them."""
    if plan.interleaves:
        return "with CONSUME BY ANY partitions are read side by side"
    if plan.source.takes_ties:
        return "events of one time are sorted by all columns"
    if plan.source.chosen_columns:
        return "a key is another attribute for each event type"
    for name in plan.source.key_columns:
        if types[name] not in _ORDERED or types[name] in INTERVALS:
            return f"the key {name!r} is of type {types[name]}"
    for name in sort_columns(plan):
        if name not in plan.source.key_columns and types[name] not in _ORDERED:
            return f"the order column {name!r} is of type {types[name]}"
    return ""


def unsorted_columns(plan: Plan, names: Sequence[str], *, numbered: bool) -> TaskColumns:
    """The columns of rows on their way to the tasks that sort them; `names`: of the events.

    numbered: the tasks number them as well, and leave out those that cannot matter.
    """
    if not numbered:
        return TaskColumns(unsorted=Unsorted(tuple(names), ""))
    matters, number, mark = (unused_name(name, names) for name in ("matters", "number", "mark"))
    if plan.source.type_name in names and plan.source.type_name not in sort_columns(plan):
        matters = plan.source.type_name
    return TaskColumns("", number, mark, Unsorted(tuple(names), matters))


def unsorted_rows(
    plan: Plan, keys: Sequence[str], columns: TaskColumns, rows: DataFrame
) -> DataFrame:
    """The rows on their way to the tasks that sort them; without keys, to one task. columns: of
    `unsorted_columns`."""
    assert columns.unsorted is not None
    names, told = columns.unsorted
    if not told:
        return together(rows, keys)
    matters = unused_name("matters", names)
    # As text, which takes fewer calls of the JVM than columns do.
    light = [
        shown if name in sort_columns(plan) else f"IF({matters}, {shown}, NULL) AS {shown}"
        for name, shown in zip(names, map(quoted, names), strict=True)
    ]
    if told in names:
        type = quoted(told)
        # Without a collation, as a text beside it has none.
        text = f"COALESCE(CAST({type} AS STRING), '{no_type(plan)}')"
        light[names.index(told)] = f"IF({matters}, {text}, NULL) AS {type}"
    else:
        light.append(matters)
    known = rows.withColumn(matters, can_matter(plan, rows.schema))
    return together(known.selectExpr(*light), keys)


def together(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of each key in one task; without keys, all in one."""
    return rows.repartition(*map(quoted, keys)) if keys else rows.coalesce(1)

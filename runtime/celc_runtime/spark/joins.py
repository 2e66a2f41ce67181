"""`match(df, plan="joins")`: a query as joins of Spark, without a Python worker.

The statement is that of `celc compile --to spark-sql`, over the DataFrame in place of a table.
Columns get the types that the query declares, because the statement relies on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celc_runtime.plan.joins import Joins, NotJoined, check_joined, joins_text
from celc_runtime.plan.plan import DDL_TYPES, Plan
from celc_runtime.plan.strategy import Keyed
from celc_runtime.program import Program
from celc_runtime.spark.columns import Counting, column_named, needed_columns
from celc_runtime.spark.pushdown import can_matter, why_not_filtered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TABLE = "celc_events"


def why_kernel(program: Program, ranges: int | None, *, presorted: bool) -> str:
    """Why `match` finds the matches by the query's own code; empty where joins are faster.

    The rule is measured (`benchmarks/joins.py`). The kernel compares all events of a window that no
    key ties, and joins compare those in a narrow band alone.
    """
    joins = program.joins
    if joins.why_not:
        return f"it cannot be run as joins: {joins.why_not}"
    if ranges is not None or presorted:
        return "ranges and presorted say how its own code reads the events"
    if not joins.bands:
        return "no condition ABS(x.a - y.b) < c keeps two events in a narrow band"
    if isinstance(program.update, Keyed):
        return "equal keys tie its events, and its own code finds these at once"
    if program.plan.window is None or not joins.unit:
        return "it has no window of time"
    try:
        check_joined(program.plan, joins)
    except NotJoined as problem:
        return str(problem)
    return ""


def joined(
    program: Program, events: DataFrame, why: str, counting: Counting | None = None
) -> tuple[DataFrame, list[str]]:
    """The matches of a DataFrame, and lines that say how they are found; `why`: the reason.

    Raises NotJoined where the query, or its options, are none for joins.
    """
    plan, joins = program.plan, program.joins
    check_joined(plan, joins)
    narrow = needed_columns(plan, events)
    unfiltered = why_not_filtered(plan)
    rows = narrow if unfiltered else narrow.where(can_matter(plan, narrow.schema))
    typed = plan.type_name in rows.columns
    rows = _with_declared_types(plan, joins, rows)
    if counting is not None:
        rows = counting(rows)
    # The session formats the text.
    text = joins_text(plan, joins, "\0", typed=typed).replace("{", "{{").replace("}", "}}")
    found = events.sparkSession.sql(text.replace("\0", f"{{{_TABLE}}}"), **{_TABLE: rows})
    numbered = plan.positions or joins.counts
    lines = [
        f"columns: {', '.join(narrow.columns)} ({len(narrow.columns)} of the DataFrame's "
        f"{len(events.columns)})",
        (
            f"rows: all are read, because {unfiltered}"
            if unfiltered
            else "rows: those that can change nothing are filtered before they are moved"
        ),
        (
            "numbers: Spark sorts and numbers the rows of each partition; "
            "with_options(positions=False) does without"
            if plan.positions
            else (
                "numbers: Spark sorts and numbers the rows, because the query counts events"
                if numbered
                else "numbers: none, because the output has no positions"
            )
        ),
        f"plan: joins of Spark, without Python, because {why}",
    ]
    return found, lines


def _with_declared_types(plan: Plan, joins: Joins, rows: DataFrame) -> DataFrame:
    """The rows with the types that the query declares.

    A column that stands in the statement alone decides nothing: the compiler has seen that.
    """
    from pyspark.sql import functions

    declared = {one.name: one.type for one in plan.attributes}
    columns = []
    for field in rows.schema.fields:
        found, name = field.dataType.simpleString(), field.name
        wanted = declared.get(name)
        columns.append(
            column_named(name) if wanted is None else _converted(name, found, wanted).alias(name)
        )
    columns += [
        functions.lit(None).cast(DDL_TYPES.get(type, type)).alias(name)
        for name, type in joins.reads
        if name not in rows.columns
    ]
    return rows.select(*columns)


def _converted(name: str, found: str, wanted: str) -> Column:
    """A column in the type that its attribute declares; every value is kept."""
    from pyspark.sql import functions

    column = column_named(name)
    if found == "timestamp_ntz":
        # A time without a zone is one of UTC, whatever the zone of the session.
        date = (functions.year(column), functions.month(column), functions.day(column))
        clock = (functions.hour(column), functions.minute(column))
        second = functions.extract(functions.lit("SECOND"), column)
        return functions.make_timestamp_ltz(*date, *clock, second, functions.lit("UTC"))
    type = DDL_TYPES.get(wanted, wanted)
    return column if found.upper() == type else column.cast(type)

"""`match(df, plan="joins")`: a query as joins of Spark, without a Python worker.

The statement is that of `celc compile --to spark-sql`, over the DataFrame in place of a table.
Columns get the types that the query declares, because the statement relies on them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.joins import Joins, joins_text
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Keyed
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check, why_not
from celc_runtime.spark.answers.undecided import leaves_undecided
from celc_runtime.spark.facts import with_clock
from celc_runtime.spark.input.columns import (
    Counting,
    column_named,
    needed_columns,
    struct_fields,
)
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.key_columns import with_key_columns
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.probe import asked, size_of, why_not_read_twice
from celc_runtime.spark.input.pushdown import (
    can_matter,
    positions_line,
    why_all_matter,
    why_not_filtered,
)
from celc_runtime.values.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    ddl_of,
    type_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TABLE = "celc_events"

_UNDECIDED = (
    "undecided: matches whose absence at the end is not certain yet are left out; "
    "with_options(at_end='closed') decides them all"
)

_FEW_COMPARED = 50_000_000
_FEW_FOR_EACH = 500
"""Joins are faster where the query's own code compares more pairs of events than the first number
and this multiple of its events. Measured by `benchmarks/joins.py`, over windows of several lengths:
both ways were equal at 110,000,000 pairs of 130,000 events, and between 180,000,000 and 440,000,000
of 530,000."""


def why_kernel(program: Program, events: DataFrame, ranges: int | None, *, presorted: bool) -> str:
    """Why `match` finds the matches by the query's own code; empty where joins are faster.

    `benchmarks/joins.py` measures both ways. The query's own code compares all events of a
    window that no key ties, and joins compare those in a narrow band alone, but begin with a sort.
    The size of the window is known by a job over the order and partition columns.
    """
    plan, joins = program.plan, program.joins
    if (reason := why_not(program, Route.JOINS)) is not None:
        return f"the query cannot be run as joins: {reason.why}"
    if ranges is not None or presorted:
        return "ranges and presorted say how its own code reads the events"
    if not joins.bands:
        return "no condition ABS(x.a - y.b) < c keeps two events in a narrow band"
    bands = joins.untied if isinstance(program.update, Keyed) else joins.bands
    if not bands:
        return "equal keys tie the events in a narrow band, and its own code finds these at once"
    if plan.matching.window is None:
        return "it has no window"
    rows = needed_columns(plan, events)
    if why := why_not_read_twice(rows):
        return f"{why} (to see how many events a window has)"
    most = size_of(rows).most_rows
    if most is not None and len(bands) * most * most < _FEW_COMPARED:
        return f"its own code compares the pairs of hardly more than {most:,} events, which are few"
    compared, count = _compared(plan, bands, rows)
    if compared < _FEW_COMPARED + _FEW_FOR_EACH * count:
        return (
            f"its own code compares about {compared:,.0f} pairs of {count:,} events, which are few"
        )
    return ""


def _compared(
    plan: Plan, bands: Sequence[Sequence[tuple[str, ...]]], rows: DataFrame
) -> tuple[float, int]:
    """About how many pairs of events lie in one window of one partition and are compared by a
    condition of a band, and the number of events."""
    from pyspark.sql import functions

    assert plan.matching.window is not None
    typed = plan.source.type_name in rows.columns
    if typed:
        rows = rows.where(is_of_types(plan, plan.source.types))
    if not why_all_matter(plan):
        rows = rows.where(can_matter(plan, rows.schema))
    rows = with_key_columns(plan, rows)
    name = plan.source.order_by[0]
    order = OrderColumn(name, plan.source.type_of(name), rows.schema[name].dataType.simpleString())
    keys = [column_named(key) for key in plan.source.key_columns]
    parts = functions.approx_count_distinct(functions.struct(*keys)) if keys else functions.lit(1)
    first, last = functions.min(order.column), functions.max(order.column)
    of_bands = {types for band in bands for types in band} if typed else set()
    counted = {
        types: functions.count(functions.when(column_named(plan.source.type_name).isin(*types), 1))
        for types in sorted(of_bands)
    }
    everything = functions.count(functions.lit(1))
    ends = order.portable(first), order.portable(last)
    found = asked(
        rows.agg(everything, *ends, parts, *counted.values()), "how many events a window has"
    )[0]
    count, partitions = int(found[0]), max(1, int(found[3]))
    numbers = order.numbers([found[1], found[2]])
    span = max(numbers, default=0) - min(numbers, default=0)
    if plan.source.type_of(name) == "DATE":
        span *= MICROSECONDS_PER_DAY
    if plan.matching.window.unit == "EVENTS":
        span = count / partitions
    share = min(1.0, plan.matching.window.size / span) if span > 0 else 1.0
    numbers_of = dict(zip(counted, found[4:], strict=True))
    pairs = sum(
        int(numbers_of.get(one, count)) * int(numbers_of.get(other, count)) for one, other in bands
    )
    return pairs * share / partitions, count


def joined(
    program: Program, events: DataFrame, why: str, counting: Counting | None = None
) -> tuple[DataFrame, list[str]]:
    """The matches of a DataFrame, and lines that say how they are found; `why`: the reason.

    Raises NotJoined where the query, or its options, are none for joins.
    """
    plan, joins = program.plan, program.joins
    check(program, Route.JOINS)
    narrow, clock = needed_columns(plan, events), ""
    if plan.asks_for_clock:
        # Of all events, also of those that the statement need not read.
        program, clock = with_clock(program, narrow)
        plan = program.plan
    unfiltered = why_not_filtered(plan)
    rows = narrow if unfiltered else narrow.where(can_matter(plan, narrow.schema))
    typed = plan.source.type_name in rows.columns
    rows = _with_declared_types(plan, joins, rows)
    if counting is not None:
        rows = counting(rows)
    # The session formats the text. No text or name of a query has this mark.
    mark = uuid.uuid4().hex
    # The rows have the columns that are derived.
    plan = replace(plan, source=replace(plan.source, derived=()))
    text = joins_text(plan, joins, mark, typed=typed).replace("{", "{{").replace("}", "}}")
    found = events.sparkSession.sql(text.replace(mark, f"{{{_TABLE}}}"), **{_TABLE: rows})
    lines = [
        f"columns: {', '.join(narrow.columns)} ({len(narrow.columns)} of the DataFrame's "
        f"{len(events.columns)})",
        (
            f"rows: all are read, because {unfiltered}"
            if unfiltered
            else "rows: those that can change nothing are filtered before they are moved"
        ),
        *([clock] if clock else []),
        *([_UNDECIDED] if leaves_undecided(plan) else []),
        positions_line(plan),
        (
            "numbers: Spark sorts and numbers the rows of each partition"
            if plan.answer.positions or joins.counts
            else "numbers: none, because the query does not count events"
        ),
        f"plan: joins of Spark, without Python, because {why}",
    ]
    return found, lines


def _with_declared_types(plan: Plan, joins: Joins, rows: DataFrame) -> DataFrame:
    """The rows with the types that the query declares.

    A column that stands in the statement alone decides nothing: the compiler has seen that.
    """
    from pyspark.sql import functions

    declared = {one.name: one.type for one in plan.source.attributes}
    columns = []
    for field in rows.schema.fields:
        name = field.name
        wanted = declared.get(name)
        columns.append(
            column_named(name) if wanted is None else _converted(field, wanted).alias(name)
        )
    columns += [
        functions.lit(None).cast(ddl_of(type)).alias(name)
        for name, type in joins.reads
        if name not in rows.columns
    ]
    return rows.select(*columns)


def _converted(field: Any, wanted: str) -> Column:
    """A column in the type that its attribute declares; every value is kept."""
    return _in_type(column_named(field.name), field.dataType, type_of(wanted))


def _in_type(column: Column, found: Any, wanted: DataType) -> Column:
    from pyspark.sql import functions

    text, type = found.simpleString(), ddl_of(wanted.value)
    if text == type.lower():
        return column
    if text == "void":
        return column.cast(type)
    match wanted:
        case ArrayType(element=element):
            return functions.transform(
                column, lambda one: _in_type(one, found.elementType, element)
            )
        case MapType(element=element):
            return functions.transform_values(
                column, lambda _, one: _in_type(one, found.valueType, element)
            )
        case StructType(fields=fields):
            # By their names: a cast would go by their places.
            types = dict(struct_fields(found))
            inner = (
                _in_type(column.getField(name), types[name], one).alias(name)
                for name, one in fields
            )
            return functions.when(column.isNotNull(), functions.struct(*inner))
        case _:
            pass
    if text == "timestamp_ntz":
        # A time without a zone is one of UTC, whatever the zone of the session.
        date = (functions.year(column), functions.month(column), functions.day(column))
        clock = (functions.hour(column), functions.minute(column))
        second = functions.extract(functions.lit("SECOND"), column)
        return functions.make_timestamp_ltz(*date, *clock, second, functions.lit("UTC"))
    return column.cast(type)

"""A chain of queries over a DataFrame of Spark.

If all queries of the chain have the same PARTITION BY, one stage runs them: one scan, one shuffle,
one sort. The rows of a partition are in one task anyway, and so are the rows of its queries.
Otherwise each query is a DataFrame, read by the next, with a shuffle between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from celc_runtime.arrow.events.paths import received
from celc_runtime.chain.clocks import with_clock_of_rows
from celc_runtime.chain.columns import (
    Types,
    as_run,
    declared_part,
    declared_types,
    levels_of,
    source_of,
    types_of_chain,
)
from celc_runtime.chain.rows import numbering_columns, told_apart_by
from celc_runtime.chain.run import ChainRun, why_gathered
from celc_runtime.chain.tables import check_order
from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, ShippedFunction, growth_line
from celc_runtime.routes.rules import Route
from celc_runtime.run.feeding import read_all
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.answers.wire import wire_of
from celc_runtime.spark.in_numbers import ALL, RowNumbers
from celc_runtime.spark.input.columns import column_named, mapped, needed_columns
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.key_columns import utc_instant
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.pipelines import with_parts
from celc_runtime.spark.input.probe import UNKNOWN, told_rows
from celc_runtime.spark.match import AUTO, KERNEL, check_events, spark_plan
from celc_runtime.values.types import ddl_of
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@frozen
class ChainPlan:
    """How a chain runs on a DataFrame: its matches, the choice with its reasons, and warnings."""

    matches: DataFrame
    text: str
    rows: Callable[[], RowNumbers]
    warnings: tuple[str, ...] = ()


def chain_plan(
    program: Program,
    events: DataFrame,
    ranges: int | None,
    *,
    presorted: bool,
    route: Route = Route.SPARK,
) -> ChainPlan:
    """The plan of a query that reads others; see `CompiledQuery.match`.

    ranges: as for `match`, if each query is a DataFrame. route: matches, or compact answers.
    Raises EventError if the DataFrame does not fit the queries, ValueError for options that a chain
    does not have.
    """
    if presorted:
        raise ValueError("a query that reads other queries sorts its events: leave out presorted")
    check_order(program)
    for level in levels_of(program).values():
        check_events(level, events, Route.SPARK)
    names = ", ".join(levels_of(program))
    apart = why_apart(program)
    if not apart and ranges is None:
        lines = [
            f"query {program.name!r} reads {' and '.join(map(repr, program.plan.source.reads))}",
            f"one stage: {names} have the same PARTITION BY, so each task runs all of them on the "
            "partitions that it has, and no row of a query is moved",
        ]
        slow = [one for one in levels_of(program).values() if one.growth]
        lines += [f"query {one.name!r}: {growth_line(one)}" for one in slow]
        return ChainPlan(
            _in_one_stage(program, events, route),
            "\n".join(lines),
            lambda: RowNumbers(told_rows(events), ALL, ALL),
        )
    return _level_by_level(program, events, ranges, apart or "ranges were asked for", route)


def chain_matches(
    program: Program,
    events: DataFrame,
    ranges: int | None,
    *,
    presorted: bool,
    progress: bool | TextIO,
) -> DataFrame:
    """The matches of `chain_plan`; raises the same errors."""
    if progress is not False:
        raise ValueError(f"query {program.name!r} reads other queries: leave out progress")
    plan = chain_plan(program, events, ranges, presorted=presorted)
    for text in plan.warnings:
        warn(text, PlanWarning)
    return plan.matches


def chain_compact_on_spark(
    program: Program, events: DataFrame, ranges: int | None, *, presorted: bool
) -> DataFrame:
    """The compact answers of a chain, by the plan of its matches; see
    `CompiledQuery.match_compact`. Raises the same errors."""
    plan = chain_plan(program, events, ranges, presorted=presorted, route=Route.COMPACT)
    for text in plan.warnings:
        warn(text, PlanWarning)
    return plan.matches


def latest_time(program: Program, events: DataFrame) -> int | float:
    """The greatest time of all events that a query reads, directly or through others, as a plan
    holds it; a job finds it. Raises EventError where the query has no order, where there is no
    event, and where the DataFrame does not have the columns."""
    name = program.plan.name
    if not program.plan.source.order_by:
        raise EventError(f"query {name!r} has no order column that a clock could show")
    found = _latest(program, events, types_of_chain(program))
    if found is None:
        raise EventError(f"query {name!r}: the DataFrame for its clock has no event")
    return found


def why_apart(program: Program) -> str:
    """Why the queries of a chain cannot share one stage; empty if they can."""
    if not any(level.plan.source.partition_by for level in levels_of(program).values()):
        return "there is no PARTITION BY that would spread the events"
    return why_gathered(program)


# --- one stage ------------------------------------------------------------------------------------


def _in_one_stage(program: Program, events: DataFrame, route: Route) -> DataFrame:
    read, source = source_of(program).plan, program.plan.source
    rows = needed_columns(read, events)
    if read.source.type_name in rows.columns:
        rows = rows.where(is_of_types(read, sorted(types_of_chain(program))))
    keys = source.partition_by
    order = sort_of_stage(program, rows.columns, rows.columns)
    spread = rows.repartition(*(column_named(name) for name in keys))
    ordered = spread.sortWithinPartitions(*(column_named(name) for name in order))
    if route is Route.COMPACT:
        sent = ShippedFunction(program, "match_compact", _compact_of_task)
        wire = wire_of(program, is_compact=True)
        return wire.unpack(mapped(ordered, sent, wire.ddl))
    return mapped(ordered, ShippedFunction(program, "match", _matches_of_task), program.output_ddl)


def sort_of_stage(program: Program, read: Iterable[str], there: Sequence[str]) -> tuple[str, ...]:
    """The columns by which the rows of a chain in one stage are sorted: keys, order, and then the
    columns `read` of those that are there, so that equal rows alone are in any order."""
    source = program.plan.source
    names = (*source.partition_by, *source.order_by, *source.tiebreak, *read)
    return tuple(name for name in dict.fromkeys(names) if name in there)


def _matches_of_task(
    program: Program, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches of a chain in one stage, from whole, sorted partitions."""
    run = ChainRun(program, RunOptions(ties_are_errors=True))
    yield from read_all(run, map(received, batches))


def _compact_of_task(
    program: Program, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches of a chain in one stage, as graphs, from whole, sorted partitions."""
    run = ChainRun(program, RunOptions(ties_are_errors=True), is_compact=True)
    found = read_all(run, map(received, batches))
    yield from wire_of(program, is_compact=True).pack(found, ())


# --- level by level -------------------------------------------------------------------------------


def _level_by_level(
    program: Program, events: DataFrame, ranges: int | None, apart: str, route: Route
) -> ChainPlan:
    answers: dict[str, DataFrame] = {}
    found: dict[str, None] = {}
    texts = [
        f"query {program.name!r} reads {' and '.join(map(repr, program.plan.source.reads))}",
        f"level by level: {apart}; the rows of a query are shuffled to the query that reads them",
    ]
    types = types_of_chain(program)
    for name, level in levels_of(program).items():
        own = declared_types(level)
        if level.plan.source.reads:
            frame, run = _event_frame(level, events, answers)
            run = with_clock_of_rows(run, partial(_latest, level, events))
            of_last = route if name == program.name else Route.SPARK
            how = KERNEL if of_last is Route.COMPACT else AUTO
            plan = spark_plan(run, frame, None, presorted=False, how=how, route=of_last)
        else:
            foreign = sorted(types - own)
            frame = events
            if foreign and level.plan.source.type_name in events.columns:
                frame = events.where(~_is_foreign(level.plan, foreign, events))
            plan = spark_plan(level, frame, ranges, presorted=False)
        answers[name] = plan.matches
        texts.append(plan.text)
        if plan.warning:
            found[plan.warning] = None
    return ChainPlan(
        answers[program.name],
        "\n\n".join(texts),
        lambda: RowNumbers(told_rows(events), UNKNOWN, UNKNOWN),
        tuple(found),
    )


def _latest(program: Program, events: DataFrame, types: Types) -> int | float | None:
    """The greatest time in the events of some types (`Latest`), which a job finds."""
    plan = source_of(program).plan
    rows = needed_columns(plan, events)
    if plan.source.type_name in rows.columns:
        rows = rows.where(is_of_types(plan, sorted(types)))
    name = plan.source.order_by[0]
    found = rows.schema[name].dataType.simpleString()
    return OrderColumn(name, plan.source.type_of(name), found).latest(rows)


def _is_foreign(plan: Plan, types: list[tuple[str, str]], events: DataFrame) -> Column:
    from pyspark.sql import functions

    told = replace(plan, source=replace(plan.source, stream_column="stream" in events.columns))
    return functions.coalesce(is_of_types(told, types), functions.lit(False))


def _event_frame(
    program: Program, events: DataFrame, answers: dict[str, DataFrame]
) -> tuple[DataFrame, Program]:
    """The events of a query that reads others, and the query in the form that reads them."""
    from pyspark.sql import functions

    plan, source = program.plan, program.plan.source
    taken = [source.type_name, "stream", *(one.name for one in source.input_attributes)]
    place = unused_name("source", taken)
    ties = {name: unused_name(f"tie {name}", taken) for name in source.tiebreak}
    kinds: dict[str, str] = {}
    of_ties: dict[str, Any] = {}
    numbers = numbering_columns(program, taken)
    added = {name: ddl_of(type).lower() for name, type in numbers.values() if name not in taken}
    frames = []
    own = declared_types(program)
    if own:
        part = declared_part(program).plan
        rows = needed_columns(part, events)
        if part.source.type_name in rows.columns:
            rows = rows.where(is_of_types(part, sorted(own)))
        types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
        values = {name: _instant(name, types) for name in source.declared if name in types}
        values[str(source.begin)] = _instant(source.order_by[0], types)
        (_, only), *_ = sorted(own)
        named = part.source.type_name
        told = column_named(named) if named in types else functions.lit(only)
        kinds = {name: types[name] for name in source.tiebreak}
        of_ties = {ties[name]: rows.schema[name].dataType for name in source.tiebreak}
        told_apart = [column_named(name).alias(tie) for name, tie in ties.items()]
        columns = (*_columns(plan, told, values), functions.lit(0).alias(place))
        frames.append(rows.select(*columns, *told_apart, *_without(added)))
    for number, level in enumerate(program.levels, 1):
        answer = answers[level.name]
        values = {name: column_named(name) for name in level.plan.source.partition_by}
        values |= {one.name: column_named(one.name) for one in level.plan.answer.expressions}
        values |= {source.order_by[0]: column_named("end_time")}
        values |= {n: column_named("start_time") for n in ("start_time", str(source.begin))}
        told = functions.lit(level.name)
        columns = (*_columns(plan, told, values), functions.lit(number).alias(place))
        without = _without({ties[name]: type for name, type in kinds.items()})
        told_by = {numbers[level.name, name][0]: name for name in told_apart_by(level.plan)}
        more = [
            column_named(told_by[name]).alias(name) if name in told_by else nothing
            for name, nothing in zip(added, _without(added), strict=True)
        ]
        frames.append(answer.select(*columns, *without, *more))
    read = {source.type_name: "STRING"} | {one.name: one.type for one in source.input_attributes}
    further = {name: type for name, type in numbers.values() if name in added}
    frame = with_parts(
        reduce(lambda one, other: one.unionAll(other), frames),
        {**read, place: "INT"},
        of_ties,
        further,
    )
    apart = (place, *(ties[name] for name in kinds))
    return frame, _run_by(program, apart, [name for name, _ in numbers.values()])


def _run_by(program: Program, apart: Sequence[str], numbers: Sequence[str]) -> Program:
    """The query in the form that reads events. These columns tell events of one time apart:
    as in a table on one machine (`rows`), their order numbers them."""
    run = as_run(program)
    tiebreak = (*apart, str(program.plan.source.start_of_rows), *numbers)
    own_order = replace(run.plan.source, tiebreak=tiebreak, relevant=None)
    return replace(run, plan=replace(run.plan, source=own_order))


def _without(columns: Mapping[str, str]) -> list[Column]:
    """NULLs for columns that some rows lack, given by names and types."""
    from pyspark.sql import functions

    return [functions.lit(None).cast(type).alias(name) for name, type in columns.items()]


def _columns(plan: Plan, told: Column, values: dict[str, Column]) -> list[Column]:
    from pyspark.sql import functions

    found = [told.cast("string").alias(plan.source.type_name)]
    for one in plan.source.input_attributes:
        value = values.get(one.name, functions.lit(None))
        found.append(value.cast(ddl_of(one.type).lower()).alias(one.name))
    return found


def _instant(name: str, types: dict[str, str]) -> Column:
    column = column_named(name)
    return utc_instant(column) if types[name] == "timestamp_ntz" else column

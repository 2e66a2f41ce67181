"""Several queries on Structured Streaming: the plan, made on the driver.

A stream has an operator for all queries whose partitions are alike: the same PARTITION BY and
order. Each operator is that of `stream.match`, with several units in a bucket. A query FOR EACH has
an operator of its own, because the number of a row is one of its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

from celc_runtime.chain.all_on_spark import read_plan, wide
from celc_runtime.chain.streams.header import first_unit
from celc_runtime.chain.streams.operators import Operator, Wanted, operator_for, operator_of
from celc_runtime.chain.streams.rearranged import rearranged
from celc_runtime.chain.streams.tasks import check_header, module_step, module_task
from celc_runtime.chain.tables import check_order
from celc_runtime.many.answers import check_names
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.program import Program
from celc_runtime.spark.input.columns import needed_columns
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.pushdown import can_matter, why_not_filtered
from celc_runtime.stream.finish import (
    check_checkpoint,
    first_header,
    last_steps,
    remember_plan,
)
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.match import (
    check_buckets,
    check_late,
    check_stream,
    chosen_api,
    default_buckets,
    duration,
    in_buckets,
    instant_of,
    side_ddl,
    stream_matches,
    tiebreak_types,
    watermarked,
)
from celc_runtime.stream.processor import STATE
from celc_runtime.stream.session import prepare
from celc_runtime.stream.stored.state import buckets_in
from celc_runtime.stream.tasks import refused_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class Call(NamedTuple):
    """The options of `match_stream` and `match_all_stream`."""

    watermark: str
    late: str
    api: str | None
    allow_unbounded_state: bool
    max_event_time_skew: str | None
    buckets: int | None
    checkpoint: str | None


def chain_stream(program: Program, events: DataFrame, call: Call) -> DataFrame:
    """All matches of a query that reads others; see `CompiledQuery.match_stream`."""
    check_order(program)
    check_stream(program, events, allow_unbounded_state=call.allow_unbounded_state)
    operator = operator_of(program, Wanted())
    return _stream(program, [(operator, Wanted())], events, call)


def module_stream(
    programs: Mapping[str, Program], events: DataFrame, tiebreak: Sequence[str] | None, call: Call
) -> DataFrame:
    """The matches of all queries of a module; see `match_all_stream` of a module."""
    check_names(programs)
    for program in programs.values():
        check_stream(program, events, allow_unbounded_state=call.allow_unbounded_state)
        if program.plan.source.reads:
            check_order(program)
    first = next(iter(programs.values()))
    given = None if tiebreak is None else tuple(tiebreak)
    groups = rearranged(programs, groups_of(programs), events.sparkSession, call.checkpoint)
    wanted = [Wanted(names, given, goes_on) for names, goes_on in groups]
    operators = [(operator_for(programs, one), one) for one in wanted]
    return _stream(first, operators, events, call)


def groups_of(programs: Mapping[str, Program]) -> list[tuple[str, ...]]:
    """The queries of each operator, in the order of their first query."""
    found: dict[Any, list[str]] = {}
    for name, program in programs.items():
        source = program.plan.source
        types = tuple(source.type_of(key) for key in source.key_columns)
        keys: tuple[Any, ...] = source.partition_by, source.chosen_keys, types, source.order_by
        if source.parameters is not None:
            keys = (*keys, name)
        found.setdefault(keys, []).append(name)
    return [tuple(names) for names in found.values()]


def _stream(
    program: Program,
    operators: Sequence[tuple[Operator, Wanted]],
    events: DataFrame,
    call: Call,
) -> DataFrame:
    """The operators of a stream, whose rows come together."""
    named = _named(operators)
    columns = [name for operator, _ in operators for name in operator.schema.names]
    check_late(call.late, named, columns)
    duration(call.watermark, "watermark")
    check_buckets(call.buckets)
    if call.late == "side":
        _check_side(operators, named)
    api = chosen_api(call.api)
    spark = events.sparkSession
    prepare(spark)
    found: list[DataFrame] = []
    last: dict[str, Any] = {}
    checks: dict[str, Any] = {}
    for number, (operator, wanted) in enumerate(operators):
        variable = f"{STATE}_{number}" if number else STATE
        if any(one.plan.source.parameters is not None for one in operator.programs.values()):
            one = _for_each(operator, events, call, variable)
            found.append(one)
            last |= last_steps(one)
            continue
        rows, options = _rows_of(operator, events, call, variable, len(operators))
        sent = options._asdict()
        route = partial(module_step, program)
        matches = in_buckets(
            rows,
            partial(route("packed"), wanted.plain, sent),
            partial(module_task(program), wanted.plain, sent),
            partial(route("unpacked"), wanted.plain, sent),
            _ddl(operator, options),
            api=api,
            metrics=_metrics(operator, number),
            state=variable,
        )
        found.append(matches)
        last[variable] = partial(route("finished"), wanted.plain, sent)
        checks[variable] = partial(check_header, operator, options)
    if call.checkpoint is not None:
        check_checkpoint(spark, call.checkpoint, named, checks, len(operators))
    matches = reduce(lambda one, other: one.unionAll(other), found)
    return remember_plan(matches, named, last)


def _named(operators: Sequence[tuple[Operator, Wanted]]) -> str:
    names = [name for operator, _ in operators for name in operator.outputs]
    return f"query {names[0]!r}" if len(names) == 1 else f"queries {', '.join(names)}"


def _metrics(operator: Operator, number: int) -> str:
    if operator.columns is None:
        return operator.name
    return f"match_all_{number}" if number else "match_all"


def _check_side(operators: Sequence[tuple[Operator, Wanted]], named: str) -> None:
    if len(operators) > 1:
        groups = "; ".join(", ".join(operator.outputs) for operator, _ in operators)
        raise EventError(
            f"{named}: late='side' returns each late event once, and these queries are "
            f"{len(operators)} groups with partitions or an order of their own ({groups}), each "
            "with events that are late for it: use late='drop' or late='error'"
        )
    ((operator, _),) = operators
    if any(one.plan.source.parameters is not None for one in operator.programs.values()):
        raise EventError(
            f"{named} has an answer for each row of a table, and an event that is late is late for "
            "each of its rows: use late='drop' or late='error'"
        )


def _for_each(operator: Operator, events: DataFrame, call: Call, variable: str) -> DataFrame:
    """The operator of a query FOR EACH, its rows as those of all queries."""
    (program,) = operator.programs.values()
    matches = stream_matches(
        program,
        events,
        watermark=call.watermark,
        late=call.late,
        api=call.api,
        allow_unbounded_state=call.allow_unbounded_state,
        max_event_time_skew=call.max_event_time_skew,
        key_ttl=None,
        buckets=call.buckets,
        checkpoint=None,
        state=variable,
    )
    assert operator.columns is not None
    return remember_plan(
        wide(operator.columns, program.name, matches), program.name, last_steps(matches)
    )


def _rows_of(
    operator: Operator, events: DataFrame, call: Call, variable: str, operators: int
) -> tuple[DataFrame, StreamOptions]:
    """The rows of the input with a watermark, and how they are run."""
    programs = operator.programs
    plain = {name: one for name, one in programs.items() if not one.plan.source.reads}
    if len(operator.units) > 1:
        for name, program in programs.items():
            if program.plan.source.rest:
                raise EventError(
                    f"query {name!r}: EVENT OTHER stands for other types in queries of other "
                    f"streams: run it alone, as in module.{name}.match_stream(df)"
                )
    read = read_plan(plain, programs)
    rows = needed_columns(read, events)
    types = {f.name: f.dataType.simpleString() for f in rows.schema.fields}
    order = operator.input.source.order_by[0]
    instant = instant_of(OrderColumn(order, "TIMESTAMP", types[order]))
    rows, moment = watermarked(
        rows, instant, call.watermark, call.max_event_time_skew, partial(_kept, operator)
    )
    wanted = []
    for number, condition in enumerate(_conditions(operator, rows)):
        wanted.append("")
        if condition is not None and len(operator.units) > 1:
            wanted[-1] = unused_name(f"celc_wanted_{number}", rows.columns)
            rows = rows.withColumn(wanted[-1], condition)
    ties: dict[str, str] = {}
    for program in programs.values():
        ties |= _tie_types(program, types)
    options = StreamOptions(
        tiebreak_types=ties,
        late=call.late,
        has_types=operator.input.source.type_name in types,
        ahead=moment,
        wanted=tuple(wanted),
        buckets=_buckets(operator, events.sparkSession, call, variable, operators),
    )
    return rows, options


def _tie_types(program: Program, types: dict[str, str]) -> dict[str, str]:
    """The types of the tiebreak columns of a query, also of those that it reads as attributes:
    another query of the operator may not."""
    bare = replace(program.plan.source, attributes=())
    named = replace(program.plan, source=bare)
    return tiebreak_types(named, types)


def _kept(operator: Operator, rows: DataFrame) -> Column | None:
    """A condition on the rows that can matter to a query; None: all can."""
    conditions = _conditions(operator, rows)
    known = [one for one in conditions if one is not None]
    return reduce(or_, known) if len(known) == len(conditions) else None


def _conditions(operator: Operator, rows: DataFrame) -> list[Column | None]:
    """For each unit, a condition on the rows that can matter to it; None: all can."""
    from pyspark.sql import functions

    found: list[Column | None] = []
    for unit in operator.units:
        plans = [one.plan for one in unit.programs]
        if unit.reads and not unit.declared:
            found.append(functions.lit(False))
        elif unit.reads and operator.input.source.type_name in rows.columns:
            stream = replace(operator.input.source, stream_column="stream" in rows.columns)
            plan = replace(operator.input, source=stream)
            found.append(is_of_types(plan, sorted(unit.declared)))
        elif unit.reads or any(map(why_not_filtered, plans)):
            found.append(None)
        else:
            each = [can_matter(plan, rows.schema) for plan in plans]
            found.append(reduce(or_, each))
    return found


def _buckets(
    operator: Operator, spark: SparkSession, call: Call, variable: str, operators: int
) -> int:
    first = next(iter(operator.programs.values()))
    if not first.plan.source.key_columns:
        return 1  # there is only one partition
    if call.buckets is not None:
        return call.buckets
    header = None
    if call.checkpoint is not None:
        header = first_header(spark, call.checkpoint, variable, operators)
    recorded = None if header is None else buckets_in(first_unit(header))
    return recorded or default_buckets(spark, operator.buckets_of_task)


def _ddl(operator: Operator, options: StreamOptions) -> str:
    if options.late != "side":
        return operator.ddl
    return side_ddl(operator.ddl, refused_schema(operator.input, options))

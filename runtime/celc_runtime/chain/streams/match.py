"""Several queries on Structured Streaming: the plan, made on the driver.

An operator is that of `stream.match`, with several units in a bucket. It serves all groups of
queries, each with a PARTITION BY and buckets of its own, so that the input is read and shuffled
once. Queries with another event time have an operator of their own, since an operator has one
watermark; so has a query FOR EACH, because the number of a row is one of its keys, and one with
EVENT OTHER, which reads rows of all types.

Rejected: an operator for each PARTITION BY, whose rows come together in a union. The input is read
as often, and Spark has the costs of as many operators, tasks and states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

from celc_runtime.chain.all_on_spark import read_plan, wide
from celc_runtime.chain.columns import declared_types
from celc_runtime.chain.streams.header import first_unit
from celc_runtime.chain.streams.near.reading import refused
from celc_runtime.chain.streams.operators import (
    Group,
    Wanted,
    group_for,
    group_of,
    near_group,
    plain_query,
)
from celc_runtime.chain.streams.rearranged import rearranged
from celc_runtime.chain.streams.tasks import check_header, module_step, module_task
from celc_runtime.chain.tables import check_order
from celc_runtime.many.answers import check_names
from celc_runtime.many.near.query import NearRuns
from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.near.queries import TOLD
from celc_runtime.program import Program
from celc_runtime.spark.input.columns import column_named, needed_columns
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.pipelines import still_known
from celc_runtime.spark.input.pushdown import can_matter_to_one, why_not_filtered
from celc_runtime.stream.buckets import group_of_label
from celc_runtime.stream.finish import (
    LastRows,
    check_checkpoint,
    headers_of,
    last_steps,
    remember_plan,
)
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.going_on import telling_way_out
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
from celc_runtime.values.types import ddl_of
from celc_runtime.values.warned import warn

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
    with telling_way_out([program], events, call.checkpoint):
        return _stream(program, [[(group_of(program, Wanted()), Wanted())]], events, call)


def module_stream(
    programs: Mapping[str, Program], events: DataFrame, tiebreak: Sequence[str] | None, call: Call
) -> DataFrame:
    """The matches of all queries of a module; see `match_all_stream` of a module."""
    check_names(programs)
    for program in programs.values():
        check_stream(program, events, allow_unbounded_state=call.allow_unbounded_state)
        if program.plan.source.reads:
            check_order(program)
    with telling_way_out([*programs.values()], events, call.checkpoint):
        return _of_module(programs, events, tiebreak, call)


def _of_module(
    programs: Mapping[str, Program], events: DataFrame, tiebreak: Sequence[str] | None, call: Call
) -> DataFrame:
    first = next(iter(programs.values()))
    given = None if tiebreak is None else tuple(tiebreak)
    operators = []
    for served in rearranged(
        programs, operators_of(programs), events.sparkSession, call.checkpoint
    ):
        types = frozenset[tuple[str, str]]().union(
            *(declared_types(programs[name]) for one in served for name in one.names)
        )
        wanted = [Wanted(one.names, given, one.goes_on, one.number, types) for one in served]
        operators.append([(group_for(programs, one), one) for one in wanted])
    return _stream(first, operators, events, call)


def near_stream(
    near: NearRuns,
    given: Program,
    events: DataFrame,
    tiebreak: tuple[str, ...] | None,
    call: Call,
) -> DataFrame:
    """The matches and near misses of a query; see `NearQuery.match_stream`. `given` is the program
    of the answer with its parameters."""
    source = given.plan.source
    check_stream(plain_query(near), events, allow_unbounded_state=False)
    why = None
    if source.rest:
        why = "EVENT OTHER stands for rows of any type"
    elif source.made & {*source.partition_by, *source.order_by}:
        why = "a column of its PARTITION BY or its order is computed"
    if why is not None:
        raise refused(near.plan, f"{why}:", near.plan.place)
    group = near_group(near, given, tiebreak)
    if any(name.casefold() == "kind" for name in group.schema.names):
        raise EventError(
            f"query {near.plan.query!r}: there is a column 'kind', and near misses on a stream add "
            "one: choose another name with AS, or for the query"
        )
    operators: list[list[tuple[Group, Wanted]]]
    operators = [[(group, Wanted(tiebreak=tiebreak, near=True))]]
    if given.rows is not None:
        plain = replace(plain_query(near).with_options(tiebreak=tiebreak), rows=given.rows)
        operators.insert(0, [(Group({plain.name: plain}, (plain.name,), None), Wanted())])
    return _stream(given, operators, events, call)


def operators_of(programs: Mapping[str, Program]) -> list[list[tuple[str, ...]]]:
    """The queries of each group of each operator, in the order of their first query."""
    groups: dict[Any, list[str]] = {}
    for name, chain in _chains(programs).items():
        source = programs[name].plan.source
        types = tuple(source.type_of(key) for key in source.key_columns)
        keys: tuple[Any, ...] = source.partition_by, source.chosen_keys, types, source.order_by
        if len({programs[one].plan.source.partition_by for one in chain}) > 1:
            keys = chain
        if source.parameters is not None:
            keys = (name,)
        groups.setdefault(keys, []).append(name)
    operators: dict[Any, list[tuple[str, ...]]] = {}
    for names in groups.values():
        sources = [programs[name].plan.source for name in names]
        place: tuple[str, ...] = sources[0].order_by[:1]
        if any(one.parameters is not None or one.rest for one in sources):
            place = (*place, names[0])
        operators.setdefault(place, []).append(tuple(names))
    return [*operators.values()]


def _chains(programs: Mapping[str, Program]) -> dict[str, tuple[str, ...]]:
    """For each query, those that it is connected with, because one reads the other."""
    found = {name: [name] for name in programs}
    for name, program in programs.items():
        for read in program.plan.source.reads:
            if found[read] is not found[name]:
                found[name] += found[read]
                for one in found[read]:
                    found[one] = found[name]
    return {name: tuple(chain) for name, chain in found.items()}


_Planned = Sequence[tuple[Group, Wanted]]
"""The groups of an operator."""


def _stream(
    program: Program, operators: Sequence[_Planned], events: DataFrame, call: Call
) -> DataFrame:
    """The operators of a stream, whose rows come together."""
    named = _named(operators)
    columns = [name for planned in operators for name in planned[0][0].schema.names]
    check_late(call.late, named, columns)
    duration(call.watermark, "watermark")
    check_buckets(call.buckets)
    if call.late == "side":
        _check_side(operators, named)
    for planned in operators:
        for group, _ in planned:
            _tell_of_one_task(group)
    api = chosen_api(call.api)
    spark = events.sparkSession
    prepare(spark)
    found: list[DataFrame] = []
    last: dict[str, Any] = {}
    checks: dict[str, Any] = {}
    for number, planned in enumerate(operators):
        variable = f"{STATE}_{number}" if number else STATE
        groups = [group for group, _ in planned]
        if any(_is_for_each(group) for group in groups):
            one = _for_each(groups[0], events, call, variable)
            found.append(one)
            last |= last_steps(one)
            continue
        rows, options = rows_of(groups, events, call, variable, len(operators))
        sent = tuple(
            (wanted.plain, own._asdict()) for (_, wanted), own in zip(planned, options, strict=True)
        )
        route = partial(module_step, program)
        matches = in_buckets(
            rows,
            partial(route("packed"), sent),
            partial(module_task(program), sent),
            partial(route("unpacked"), sent),
            _ddl(groups[0], options[0]),
            api=api,
            metrics=_metrics(groups[0], number),
            state=variable,
        )
        found.append(matches)
        last[variable] = partial(route("finished"), sent)
        checks[variable] = partial(check_header, [*zip(groups, options, strict=True)])
    if call.checkpoint is not None:
        check_checkpoint(spark, call.checkpoint, named, checks, len(operators))
    matches = reduce(lambda one, other: one.unionAll(other), found)
    return remember_plan(matches, named, last)


def _tell_of_one_task(group: Group) -> None:
    if group.keys or group.has_one_key:
        return
    warn(
        f"one task runs {', '.join(group.programs)}, because they read each other, and no key is "
        "in the PARTITION BY of all: add one that all of them have, or write the rows that are "
        "read to a table by a stream of their own, and read this as a stream",
        PlanWarning,
    )


def _is_for_each(group: Group) -> bool:
    return any(one.plan.source.parameters is not None for one in group.programs.values())


def _named(operators: Sequence[_Planned]) -> str:
    names = [name for planned in operators for group, _ in planned for name in group.outputs]
    return f"query {names[0]!r}" if len(names) == 1 else f"queries {', '.join(names)}"


def _metrics(group: Group, number: int) -> str:
    if group.columns is None:
        return group.name
    return f"match_all_{number}" if number else "match_all"


def _check_side(operators: Sequence[_Planned], named: str) -> None:
    groups = [group for planned in operators for group, _ in planned]
    if len(groups) > 1 and not any(map(_is_for_each, groups)):
        told = "; ".join(", ".join(group.outputs) for group in groups)
        raise EventError(
            f"{named}: late='side' returns each late event once, and these queries are "
            f"{len(groups)} groups with partitions or an order of their own ({told}), each "
            "with events that are late for it: use late='drop' or late='error'"
        )
    if any(map(_is_for_each, groups)):
        raise EventError(
            f"{named} has an answer for each row of a table, and an event that is late is late for "
            "each of its rows: use late='drop' or late='error'"
        )


def _for_each(group: Group, events: DataFrame, call: Call, variable: str) -> DataFrame:
    """The operator of a query FOR EACH, its rows as those of all queries, or as the matches of a
    stream with near misses."""
    (program,) = group.programs.values()
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
    form = _as_matches if group.columns is None else partial(wide, group.columns, program.name)
    last = {
        variable: LastRows(function, matches.schema, form)
        for variable, function in last_steps(matches).items()
    }
    return remember_plan(form(matches), program.name, last)


def _as_matches(matches: DataFrame) -> DataFrame:
    """Matches as rows of a stream with near misses."""
    from pyspark.sql import functions

    kind = functions.lit("match").alias("kind")
    nothing = functions.lit(None)
    told = (nothing.cast(ddl_of(type)).alias(name) for name, type in TOLD.items())
    return matches.select(kind, *map(column_named, matches.columns), *told)


def rows_of(
    groups: Sequence[Group], events: DataFrame, call: Call, variable: str, operators: int
) -> tuple[DataFrame, list[StreamOptions]]:
    """The rows of the input with a watermark, and how each group runs them."""
    programs = {name: one for group in groups for name, one in group.programs.items()}
    plain = {name: one for name, one in programs.items() if not one.plan.source.reads}
    several = sum(len(group.units) for group in groups) > 1
    if several:
        for name, program in programs.items():
            if program.plan.source.rest:
                raise EventError(
                    f"query {name!r}: EVENT OTHER stands for other types in queries of other "
                    f"streams: run it alone, as in module.{name}.match_stream(df)"
                )
    read = read_plan(plain, programs)
    rows = needed_columns(read, events)
    types = {f.name: f.dataType.simpleString() for f in rows.schema.fields}
    order = groups[0].input.source.order_by[0]
    instant = instant_of(OrderColumn(order, "TIMESTAMP", types[order]))
    conditions = [_conditions(group, rows) for group in groups]
    # Each condition is tested once: before the watermark, behind which rows are filtered by it.
    wanted: list[list[str]] = []
    for number, of_group in enumerate(conditions):
        wanted.append([""] * len(of_group))
        for place, condition in enumerate(of_group):
            if condition is not None and several:
                name = unused_name(f"celc_wanted_{number}_{place}", rows.columns)
                more = still_known(
                    rows.withColumn(name, condition), rows, [*rows.columns, name], {name: "BOOLEAN"}
                )
                rows, wanted[number][place] = more, name
                of_group[place] = column_named(name)
    every = [one for of_group in conditions for one in of_group]
    known = [one for one in every if one is not None]
    kept = reduce(or_, known) if len(known) == len(every) else None
    rows, moment = watermarked(
        rows, instant, call.watermark, call.max_event_time_skew, lambda _: kept
    )
    ties: dict[str, str] = {}
    for program in programs.values():
        ties |= _tie_types(program, types)
    recorded = _recorded_buckets(events.sparkSession, call, variable, operators)
    options = [
        StreamOptions(
            tiebreak_types=ties,
            late=call.late,
            has_types=group.input.source.type_name in types,
            ahead=moment,
            wanted=tuple(of_group),
            buckets=_buckets(group, events.sparkSession, call, recorded.get(group.number)),
            rules=group.rules,
        )
        for group, of_group in zip(groups, wanted, strict=True)
    ]
    return rows, options


def _tie_types(program: Program, types: dict[str, str]) -> dict[str, str]:
    """The types of the tiebreak columns of a query, also of those that it reads as attributes:
    another query of the operator may not."""
    bare = replace(program.plan.source, attributes=())
    named = replace(program.plan, source=bare)
    return tiebreak_types(named, types)


def _conditions(group: Group, rows: DataFrame) -> list[Column | None]:
    """For each unit, a condition on the rows that can matter to it; None: all can."""
    from pyspark.sql import functions

    found: list[Column | None] = []
    for unit in group.units:
        plans = [one.plan for one in unit.programs]
        if unit.reads and not unit.declared:
            found.append(functions.lit(False))
        elif unit.reads and group.input.source.type_name in rows.columns:
            stream = replace(group.input.source, stream_column="stream" in rows.columns)
            plan = replace(group.input, source=stream)
            found.append(is_of_types(plan, sorted(unit.declared)))
        elif unit.reads or any(map(why_not_filtered, plans)):
            found.append(None)
        else:
            found.append(can_matter_to_one(plans, rows.schema))
    return found


def _recorded_buckets(
    spark: SparkSession, call: Call, variable: str, operators: int
) -> dict[int, int]:
    """The number of buckets that a checkpoint has for each group that it knows."""
    if call.buckets is not None or call.checkpoint is None:
        return {}
    found: dict[int, int] = {}
    for label, header in headers_of(spark, call.checkpoint, variable, operators):
        number = buckets_in(first_unit(header))
        if number is not None:
            found[group_of_label(label)] = number
    return found


def _buckets(group: Group, spark: SparkSession, call: Call, recorded: int | None) -> int:
    if not group.keys:
        return 1  # there is only one partition, or none of the keys is that of all queries
    return call.buckets or recorded or default_buckets(spark, group.buckets_of_task)


def _ddl(group: Group, options: StreamOptions) -> str:
    if options.late != "side":
        return f"kind STRING, {group.ddl}" if group.tells_kinds else group.ddl
    return side_ddl(group.ddl, refused_schema(group.input, options))

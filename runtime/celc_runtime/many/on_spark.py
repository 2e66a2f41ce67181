"""Many queries over a DataFrame of Spark: one scan, one shuffle, one pass over sorted rows.

Rows carry the number of the group whose queries read them (`ReadingGroup`). A row that matters to
several groups is there once for each. Rows are distributed by this number and the keys of the
group, and sorted by both and the order of the group. So one shuffle serves queries with different
PARTITION BY, and without. Rejected: a union of one DataFrame for each group, which scans the events
as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.gathering import gathered
from celc_runtime.arrow.events.paths import received
from celc_runtime.arrow.events.sorting import sort_columns_without_order
from celc_runtime.many.answers import WideRows, check_names, ddl_of
from celc_runtime.many.groups import ReadingGroup, reading_all, reading_groups
from celc_runtime.many.runs import ManyRuns
from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.plan.names import unused_name
from celc_runtime.program import Program, Rows, ShippedFunction
from celc_runtime.routes.rules import Route
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.facts import with_clock
from celc_runtime.spark.input.columns import column_named, mapped, needed_columns
from celc_runtime.spark.input.key_columns import with_key_columns
from celc_runtime.spark.input.parameters import planned
from celc_runtime.spark.input.pushdown import can_matter, why_not_filtered
from celc_runtime.spark.match import check_events
from celc_runtime.spark.worker.tasks import stretches_of
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def matches_of_all_on_spark(programs: Mapping[str, Program], events: DataFrame) -> DataFrame:
    """The answers of all queries to a DataFrame; see `match_all` of a module."""
    check_names(programs)
    for program in programs.values():
        check_events(program, events, Route.ALL)
    groups = reading_groups(programs.values())
    for name, program in programs.items():
        if len(groups) > 1 and program.plan.source.rest:
            raise EventError(
                f"query {name!r}: match_all: EVENT OTHER stands for other types in queries of "
                f"other streams: run it alone, as in module.{name}.match(df)"
            )
    reading = reading_all(programs)
    rows = needed_columns(reading.plan, events)
    clocks: dict[str, int | float] = {}
    for name, program in programs.items():
        if program.plan.asks_for_clock:
            clock = with_clock(program, rows)[0].plan.choice.clock
            if clock is not None:
                clocks[name] = clock
    for group in groups:
        if not group.plan.source.partition_by or group.plan.interleaves:
            warn(
                (
                    f"one task reads all events of {', '.join(group.programs)}, which have no "
                    "PARTITION BY that would spread them"
                    if not group.plan.source.partition_by
                    else f"one task reads all events of {', '.join(group.programs)}, because of "
                    "CONSUME BY ANY"
                ),
                PlanWarning,
            )
    wanted = [_can_matter(group, rows) for group in groups]
    for group in groups:
        rows = with_key_columns(group.plan, rows)
    made = {name for group in groups for name in group.plan.source.chosen_columns}
    number = ""
    if len(groups) > 1:
        number = unused_name("group", rows.columns)
    ordered = _sorted(groups, rows, wanted, number)
    if made:
        ordered = ordered.select(*(column_named(n) for n in ordered.columns if n not in made))
    names = tuple(tuple(group.programs) for group in groups)
    first = next(iter(programs.values()))
    route = ShippedFunction(first, "match_all", _answers_of_task)
    tables = tuple(
        (name, program.rows.batch) for name, program in programs.items() if program.rows is not None
    )
    reader = partial(route, names, tuple(clocks.items()), tables, number)
    return mapped(ordered, reader, ddl_of(programs))


def _can_matter(group: ReadingGroup, rows: DataFrame) -> Column:
    """A condition on the rows that can matter to a query of the group."""
    from pyspark.sql import functions

    plans = [planned(program) for program in group.programs.values()]
    if any(map(why_not_filtered, plans)):
        return functions.lit(True)
    return reduce(lambda one, other: one | other, [can_matter(p, rows.schema) for p in plans])


def _sorted(
    groups: list[ReadingGroup], rows: DataFrame, wanted: list[Column], number: str
) -> DataFrame:
    """The rows of each group in its order.

    number: the column of the groups' numbers; empty: there is only one group.
    """
    from pyspark.sql import functions

    if not number:
        plan = groups[0].plan
        rows = rows.where(wanted[0])
        keys = [] if plan.interleaves else [column_named(name) for name in plan.source.key_columns]
        spread = rows.repartition(*keys) if keys else rows.coalesce(1)
        sort = [column_named(name) for name in sort_columns_without_order(plan)]
        return spread.sortWithinPartitions(*sort)
    places = [functions.when(condition, functions.lit(n)) for n, condition in enumerate(wanted)]
    each = functions.explode(functions.array_compact(functions.array(*places)))
    rows = rows.withColumn(number, each)

    def of_group(place: int, names: Iterable[str]) -> list[Column]:
        is_of = functions.col(number) == functions.lit(place)
        return [functions.when(is_of, column_named(name)) for name in names]

    keys, sort = [functions.col(number)], [functions.col(number)]
    for place, group in enumerate(groups):
        plan = group.plan
        keys += of_group(place, () if plan.interleaves else plan.source.key_columns)
        sort += of_group(place, sort_columns_without_order(plan))
    return rows.repartition(*keys).sortWithinPartitions(*sort)


def _by_groups(
    batches: Iterable[pa.RecordBatch], number: str
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The indices of groups, each with a batch of its rows."""

    def stretches() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in map(received, batches):
            places = np.zeros(len(batch), np.int64)
            if number:
                places = np.asarray(batch.column(number)).astype(np.int64)
                batch = batch.drop_columns([number])
            for start, end in stretches_of(places):
                yield int(places[start]), batch.slice(start, end - start)

    for place, of_group in groupby(stretches(), key=itemgetter(0)):
        for rows in gathered(batch for _, batch in of_group):
            yield place, rows


def _answers_of_task(
    program: Program,
    names: tuple[tuple[str, ...], ...],
    clocks: tuple[tuple[str, Any], ...],
    tables: tuple[tuple[str, pa.RecordBatch], ...],
    number: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of `match_all` that one task finds.

    names: of queries, by group. clocks: by query. tables: those of queries FOR EACH, by query.
    number: the column of the groups' numbers.
    """
    queries = program.module["QUERIES"]
    programs = {
        name: query.program.on_spark.with_options(clock=dict(clocks).get(name))
        for name, query in queries.items()
    }
    for name, batch in tables:
        programs[name] = replace(programs[name], rows=Rows.of_batch(batch))
    wide = WideRows(programs)
    groups: list[ManyRuns | None] = [None] * len(names)

    def runs_of(place: int) -> ManyRuns:
        runs = groups[place]
        if runs is None:
            (group,) = reading_groups(programs[name] for name in names[place])
            runs = groups[place] = ManyRuns(group, RunOptions(ties_are_errors=True))
        return runs

    for place, rows in _by_groups(batches, number):
        for name, answer in runs_of(place).push(rows):
            yield from wide.of(name, answer)
    for runs in groups:
        if runs is not None:
            for name, answer in runs.rest():
                yield from wide.of(name, answer)
            runs.finish()

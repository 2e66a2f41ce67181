"""All queries of a module over a DataFrame of Spark: one scan, one shuffle, one pass over sorted
rows.

Rows carry the number of the part of the job that reads them: a group of queries that share their
reading (`ReadingGroup`), or a query that reads others, with all of its chain. A row that matters to
several is there once for each. Rows are distributed by this number and the keys of the part, and
sorted by both and its order. So one shuffle serves queries with different PARTITION BY, and
without. Rejected: a union of one DataFrame for each group, which scans the events as often.

Such a union is what is left for a query that reads others in another PARTITION BY, or whose matches
are decided late (`chain_plan`): it is a job of its own beside the others. A query that is read is
run again for each of its readers, because a task has all of their rows anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.gathering import gathered
from celc_runtime.arrow.events.paths import received
from celc_runtime.arrow.events.sorting import sort_columns_without_order
from celc_runtime.chain.all_tables import reading_together
from celc_runtime.chain.columns import source_of, types_of_chain
from celc_runtime.chain.on_spark import chain_matches, sort_of_stage, why_apart
from celc_runtime.chain.run import ChainRun
from celc_runtime.chain.tables import check_order
from celc_runtime.many.answers import QUERY, WideRows, check_names, ddl_of
from celc_runtime.many.groups import ReadingGroup, reading_all, reading_groups
from celc_runtime.many.rules import answer_ddl, names_column, programs_of
from celc_runtime.many.runs import ManyRuns
from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, Rows, ShippedFunction
from celc_runtime.routes.rules import Route
from celc_runtime.run.feeding import Reads
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.facts import with_clock
from celc_runtime.spark.input.columns import column_named, mapped, needed_columns
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.key_columns import with_key_columns
from celc_runtime.spark.input.parameters import planned
from celc_runtime.spark.input.pushdown import can_matter_to_one, why_not_filtered
from celc_runtime.spark.match import check_events
from celc_runtime.spark.worker.tasks import stretches_of
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def matches_of_module_on_spark(programs: Mapping[str, Program], events: DataFrame) -> DataFrame:
    """The answers of all queries to a DataFrame; see `match_all` of a module."""
    check_names(programs)
    for program in programs.values():
        check_events(program, events, Route.ALL)
        if program.plan.source.reads:
            check_order(program)
    apart = {name: one for name, one in programs.items() if _is_apart(one)}
    together = {name: one for name, one in programs.items() if name not in apart}
    found = [_in_one_job(programs, together, events)] if together else []
    for name, program in apart.items():
        matches = chain_matches(program, events, None, presorted=False, progress=False)
        found.append(wide(programs, name, matches))
    return reduce(lambda one, other: one.unionAll(other), found)


def _is_apart(program: Program) -> bool:
    return bool(program.plan.source.reads and why_apart(program))


def wide(programs: Mapping[str, Program], name: str, matches: DataFrame) -> DataFrame:
    """The matches of one query as rows of the answers of all."""
    from pyspark.sql import functions

    rules = names_column(programs[name].plan)
    of_rule = functions.lit(name)
    if rules is not None:
        (attribute,) = matches.schema[rules].dataType.names
        of_rule = column_named(rules)[attribute]
    columns = [of_rule.alias(QUERY)]
    for other, program in programs.items():
        type = f"struct<{answer_ddl(program)}>"
        kept = [column for column in matches.columns if column != rules]
        own = functions.struct(*map(column_named, kept))
        value = own if other == name else functions.lit(None)
        columns.append(value.cast(type).alias(other))
    return matches.select(*columns)


# --- the job --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """What one group of queries, or one chain, reads of the rows, and how."""

    names: tuple[str, ...]  # of its queries
    wanted: Column  # whether a row can matter to it
    keys: tuple[str, ...]  # the columns by which rows are spread
    sort: tuple[str, ...]


def _in_one_job(
    programs: Mapping[str, Program], together: Mapping[str, Program], events: DataFrame
) -> DataFrame:
    """The answers of the queries `together` among all `programs`."""
    plain = {name: one for name, one in together.items() if not one.plan.source.reads}
    groups = reading_groups(plain.values())
    chains = [one for one in together.values() if one.plan.source.reads]
    for name, program in together.items():
        if len(groups) + len(chains) > 1 and program.plan.source.rest:
            raise EventError(
                f"query {name!r}: match_all: EVENT OTHER stands for other types in queries of "
                f"other streams: run it alone, as in module.{name}.match(df)"
            )
    rows = needed_columns(read_plan(plain, together), events)
    clocks: dict[str, int | float] = {}
    for name, program in plain.items():
        if program.plan.asks_for_clock:
            clock = with_clock(program, rows)[0].plan.choice.clock
            if clock is not None:
                clocks[name] = clock
    for group in groups:
        _tell_of_one_task(group)
    wanted = [_can_matter(group, rows) for group in groups]
    wanted += [_is_read(one, rows) for one in chains]
    for group in groups:
        rows = with_key_columns(group.plan, rows)
    parts = [_part_of(*one) for one in zip(groups, wanted[: len(groups)], strict=True)]
    for program, condition in zip(chains, wanted[len(groups) :], strict=True):
        sort = sort_of_stage(program, source_of(program).file_schema.names, rows.columns)
        parts.append(_Part((program.name,), condition, program.plan.source.partition_by, sort))
    made = {name for group in groups for name in group.plan.source.chosen_columns}
    number = unused_name("part", rows.columns) if len(parts) > 1 else ""
    ordered = _sorted(parts, rows, number)
    if made:
        ordered = ordered.select(*(column_named(n) for n in ordered.columns if n not in made))
    names = tuple(part.names for part in parts)
    first = next(iter(programs.values()))
    route = ShippedFunction(first, "match_all", _answers_of_task)
    is_slice = all(one.positions is False for one in programs.values())
    tables = tuple(
        (name, program.rows.batch) for name, program in together.items() if program.rows is not None
    )
    reader = partial(route, names, tuple(clocks.items()), tables, number, is_slice)
    return mapped(ordered, reader, ddl_of(programs))


def read_plan(plain: Mapping[str, Program], together: Mapping[str, Program]) -> Plan:
    """What the queries read of the rows. Columns are derived for those that read no others; a chain
    derives its own, of the columns that it reads."""
    if len(plain) == len(together):
        return reading_all(plain).plan
    inputs = reading_together(together).plan
    derived = reading_all(plain).plan.source.derived if plain else ()
    return replace(inputs, source=replace(inputs.source, derived=derived))


def _tell_of_one_task(group: ReadingGroup) -> None:
    if group.plan.source.partition_by and not group.plan.interleaves:
        return
    why = "which have no PARTITION BY that would spread them"
    if group.plan.source.partition_by:
        why = "because of CONSUME BY ANY"
    warn(f"one task reads all events of {', '.join(group.programs)}, {why}", PlanWarning)


def _can_matter(group: ReadingGroup, rows: DataFrame) -> Column:
    """A condition on the rows that can matter to a query of the group."""
    from pyspark.sql import functions

    plans = [planned(program) for program in group.programs.values()]
    if any(map(why_not_filtered, plans)):
        return functions.lit(True)
    return can_matter_to_one(plans, rows.schema)


def _is_read(program: Program, rows: DataFrame) -> Column:
    """A condition on the rows of the types that a chain reads."""
    from pyspark.sql import functions

    plan = source_of(program).plan
    if plan.source.type_name not in rows.columns:
        return functions.lit(True)
    return is_of_types(plan, sorted(types_of_chain(program)))


def _part_of(group: ReadingGroup, wanted: Column) -> _Part:
    keys = () if group.plan.interleaves else tuple(group.plan.source.key_columns)
    return _Part(tuple(group.programs), wanted, keys, sort_columns_without_order(group.plan))


def _sorted(parts: list[_Part], rows: DataFrame, number: str) -> DataFrame:
    """The rows of each part in its order.

    number: the column of the parts' numbers; empty: there is only one.
    """
    from pyspark.sql import functions

    if not number:
        (part,) = parts
        rows = rows.where(part.wanted)
        keys = list(map(column_named, part.keys))
        spread = rows.repartition(*keys) if keys else rows.coalesce(1)
        return spread.sortWithinPartitions(*map(column_named, part.sort))
    places = [functions.when(one.wanted, functions.lit(n)) for n, one in enumerate(parts)]
    each = functions.explode(functions.array_compact(functions.array(*places)))
    rows = rows.withColumn(number, each)

    def of_part(place: int, names: Iterable[str]) -> list[Column]:
        is_of = functions.col(number) == functions.lit(place)
        return [functions.when(is_of, column_named(name)) for name in names]

    keys, sort = [functions.col(number)], [functions.col(number)]
    for place, part in enumerate(parts):
        keys += of_part(place, part.keys)
        sort += of_part(place, part.sort)
    return rows.repartition(*keys).sortWithinPartitions(*sort)


# --- a task ---------------------------------------------------------------------------------------


class _ChainAnswers:
    """Feeds batches to a query that reads others; yields its matches with its name."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._run = ChainRun(program, RunOptions(ties_are_errors=True))
        self.finish = self._run.finish

    def push(self, events: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        return self._named(self._run.push(events))

    def rest(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        return self._named(self._run.rest())

    def _named(self, found: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        return ((self._program.name, batch) for batch in found)


def _by_parts(
    batches: Iterable[pa.RecordBatch], number: str
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The numbers of parts, each with a batch of its rows."""

    def stretches() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in map(received, batches):
            places = np.zeros(len(batch), np.int64)
            if number:
                places = np.asarray(batch.column(number)).astype(np.int64)
                batch = batch.drop_columns([number])
            for start, end in stretches_of(places):
                yield int(places[start]), batch.slice(start, end - start)

    for place, of_part in groupby(stretches(), key=itemgetter(0)):
        for rows in gathered(batch for _, batch in of_part):
            yield place, rows


def _answers_of_task(
    program: Program,
    names: tuple[tuple[str, ...], ...],
    clocks: tuple[tuple[str, Any], ...],
    tables: tuple[tuple[str, pa.RecordBatch], ...],
    number: str,
    is_slice: bool,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of `match_all` that one task finds.

    names: of queries, by part. clocks: by query. tables: those of queries FOR EACH, by query.
    number: the column of the parts' numbers. is_slice: the queries have the options of `program`
    that a slice changes.
    """
    queries = programs_of(program.module["QUERIES"])
    changed: dict[str, Any] = {}
    if is_slice:
        changed = {"positions": False, "at_end": program.plan.choice.at_end}
    programs = {
        name: query.on_spark.with_options(clock=dict(clocks).get(name), **changed)
        for name, query in queries.items()
    }
    for name, batch in tables:
        programs[name] = replace(programs[name], rows=Rows.of_batch(batch))
    wide = WideRows(programs)
    runs: dict[int, Reads[tuple[str, pa.RecordBatch]]] = {}

    def runs_of(place: int) -> Reads[tuple[str, pa.RecordBatch]]:
        if place not in runs:
            of_part = [programs[name] for name in names[place]]
            if of_part[0].plan.source.reads:
                runs[place] = _ChainAnswers(of_part[0])
            else:
                (group,) = reading_groups(of_part)
                runs[place] = ManyRuns(group, RunOptions(ties_are_errors=True))
        return runs[place]

    for place, rows in _by_parts(batches, number):
        for name, answer in runs_of(place).push(rows):
            yield from wide.of(name, answer)
    for place in sorted(runs):
        for name, answer in runs[place].rest():
            yield from wide.of(name, answer)
        runs[place].finish()

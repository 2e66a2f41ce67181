"""The groups of queries that an operator runs, as the driver and workers make them of one program
and a few names.

A *group* is the queries of a module with the same PARTITION BY and order. Queries that read each
other are in one group too, with the keys that all of them have. Each group has buckets of its own,
and an operator serves several groups: the input is read and shuffled once for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from celc_runtime.chain.columns import Types, declared_types, levels_of, source_of
from celc_runtime.chain.streams.bucket import ModuleReader
from celc_runtime.chain.streams.checkpoint import BEGINS_ANEW, GOES_ON
from celc_runtime.chain.streams.near.reading import NearUnit, reading_of
from celc_runtime.chain.streams.units import GoesOn, Shared, Unit, UnitOf, units_of
from celc_runtime.many.answers import QUERY
from celc_runtime.many.groups import of_inputs, reading_all
from celc_runtime.many.near.on_spark import as_on_spark
from celc_runtime.many.near.query import NearRuns
from celc_runtime.many.rules import answer_ddl, answer_schema, programs_of
from celc_runtime.plan.near.queries import TOLD
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.program import Program
from celc_runtime.stream.buckets import FOR_EACH_TASK
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from celc_runtime.values.types import ddl_of

_FEW_QUERIES = 8


class Wanted(NamedTuple):
    """The queries of a group, in a form that is sent to workers; empty: the program that is
    sent is a query that reads others, and is run with these."""

    names: tuple[str, ...] = ()
    tiebreak: tuple[str, ...] | None = None  # as of `with_options`
    goes_on: GoesOn | None = None  # None: the queries of the checkpoint are these
    number: int = 0  # of the group
    others: Types = frozenset()  # as of `Group`
    near: bool = False  # the query and its near misses, by a module of these

    @property
    def plain(self) -> tuple[Any, ...]:
        """These values in tuples alone, which a worker reads before it has celc's own classes."""
        rest = self.number, tuple(sorted(self.others)), self.near
        if self.goes_on is None:
            return self.names, self.tiebreak, None, *rest
        units = tuple(
            (one.number, one.names, one.shared and tuple(one.shared)) for one in self.goes_on.units
        )
        goes_on = units, self.goes_on.next_unit
        return self.names, self.tiebreak, goes_on, *rest

    @classmethod
    def of(cls, plain: Sequence[Any]) -> Wanted:
        """What `plain` made tuples of."""
        names, tiebreak, goes_on, number, types, near = plain
        others = frozenset((stream, type) for stream, type in types)
        if goes_on is None:
            return cls(names, tiebreak, None, number, others, near)
        units = tuple(
            UnitOf(unit, of, shared and Shared(*shared)) for unit, of, shared in goes_on[0]
        )
        return cls(names, tiebreak, GoesOn(units, goes_on[1]), number, others, near)


@dataclass(frozen=True, eq=False)
class Group:
    """Queries with the same PARTITION BY and order, or that read each other. They share buckets."""

    programs: dict[str, Program]  # each after those whose rows it reads
    outputs: tuple[str, ...]  # whose rows are returned
    columns: dict[str, Program] | None
    """Of `match_all_stream`: all queries of the module, each a column. None: the rows are those of
    one query."""
    goes_on: GoesOn | None = None  # as of `Wanted`
    number: int = 0  # by which its buckets are labelled, for as long as the checkpoint lives
    others: Types = frozenset()  # event types that only other groups of the operator read

    @cached_property
    def units(self) -> list[Unit]:
        return units_of(self.programs, self.goes_on, self.others)

    def reader(self, options: StreamOptions) -> ModuleReader:
        """What runs the units in their buckets."""
        remedy = BEGINS_ANEW if self.columns is None else GOES_ON
        return ModuleReader(
            self.units,
            options,
            changes=self.goes_on is not None,
            remedy=remedy,
            one_key=self.has_one_key,
        )

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys that all queries have, by which events are spread over buckets. So all
        partitions of a query with more keys that a reader sees are in one bucket."""
        sources = [one.plan.source for one in self.programs.values()]
        if sources[0].chosen_keys:
            return tuple(sources[0].key_columns)  # then all have the same
        common = set.intersection(*({*source.partition_by} for source in sources))
        return tuple(name for name in sources[0].partition_by if name in common)

    @cached_property
    def has_one_key(self) -> bool:
        """Whether all queries have the same PARTITION BY."""
        return len({one.plan.source.partition_by for one in self.programs.values()}) == 1

    @property
    def buckets_of_task(self) -> int:
        """Buckets for each task, by default. Each query has a fixed cost in each bucket, so many
        queries have fewer."""
        return FOR_EACH_TASK if len(self.programs) <= _FEW_QUERIES else 1

    @property
    def name(self) -> str:
        """For messages: of the query, or of all."""
        return self.outputs[0] if self.columns is None else ", ".join(self.outputs)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        if self.columns is None:
            return self.programs[self.outputs[0]].output_schema
        fields = [pa.field(n, pa.struct(answer_schema(p))) for n, p in self.columns.items()]
        return pa.schema([pa.field(QUERY, pa.string()), *fields])

    def schema_of(self, name: str) -> pa.Schema:
        """The columns of the answer of one of its queries."""
        return self.programs[name].output_schema

    @property
    def rules(self) -> int:
        """As of `StreamOptions`."""
        return 0

    @property
    def tells_kinds(self) -> bool:
        """Whether its rows have a column `kind`, whatever happens to late events."""
        return False

    @property
    def ddl(self) -> str:
        """The columns of its rows in Spark's notation, without `kind`."""
        if self.columns is None:
            return self.programs[self.outputs[0]].output_ddl
        columns = [f"{quoted(n)} STRUCT<{answer_ddl(p)}>" for n, p in self.columns.items()]
        return ", ".join([f"{QUERY} STRING", *columns])

    @cached_property
    def input(self) -> Plan:
        """What all queries read of the input; it is never run. Partitions are those of the
        operator."""
        first = next(iter(self.programs.values())).plan.source
        found = reading_all({n: of_inputs(source_of(p)) for n, p in self.programs.items()}).plan
        types = dict.fromkeys(
            one for p in self.programs.values() for one in source_of(p).plan.source.declared_types
        )
        source = replace(
            found.source,
            types=tuple(types),
            other_types=(),
            streams=tuple(dict.fromkeys(stream for stream, _ in types)),
            type_column=found.source.type_column or len(types) > 1,
            stream_column=found.source.stream_column
            or len({name for _, name in types}) < len(types),
            partition_by=first.partition_by if self.has_one_key else self.keys,
            chosen_keys=first.chosen_keys,
            derived=(),
            reads=(),
            begin=None,
        )
        return replace(found, name=self.name, source=source)


@dataclass(frozen=True, eq=False, kw_only=True)
class NearGroup(Group):
    """A query and its near misses; of a query FOR EACH the near misses alone. given: as of
    `NearUnit`."""

    near: NearRuns
    given: Program

    @cached_property
    def units(self) -> list[Unit]:
        plain = {n: one for n, one in self.programs.items() if n != self.outputs[-1]}
        units = units_of(plain) if plain else []
        types: Types = frozenset()
        query = self.programs[self.outputs[-1]]
        return [*units, NearUnit(query, 0, types, len(units), near=self.near, given=self.given)]

    @property
    def name(self) -> str:
        # Its counts are another operator's beside those of a query FOR EACH.
        return self.outputs[0]

    @property
    def rules(self) -> int:
        rows = self.given.rows
        return 0 if rows is None else hash_of_rows(in_one_order(rows))

    @cached_property
    def schema(self) -> pa.Schema:
        return as_on_spark(self.near.plan, self.near.output_schema.empty_table()).schema

    def schema_of(self, name: str) -> pa.Schema:
        return self.schema if name == self.outputs[-1] else super().schema_of(name)

    @property
    def tells_kinds(self) -> bool:
        return True

    @property
    def ddl(self) -> str:
        told = (f"{quoted(name)} {ddl_of(type)}" for name, type in TOLD.items())
        return ", ".join([plain_query(self.near).output_ddl, *told])


def plain_query(near: NearRuns) -> Program:
    """The query whose rows are the matches of a stream with near misses."""
    return near.queries[near.plan.query].program.with_options(positions=near.plan.positions)


def near_group(near: NearRuns, given: Program, tiebreak: tuple[str, ...] | None) -> NearGroup:
    """The group of a query and its near misses; `given` is the program of the answer with its
    parameters."""
    reading, plain = reading_of(near), plain_query(near)
    if tiebreak is not None:
        reading, plain = (one.with_options(tiebreak=tiebreak) for one in (reading, plain))
    programs = {plain.name: plain, reading.name: reading}
    if given.plan.source.parameters is not None:
        del programs[plain.name]
    return NearGroup(programs, tuple(programs), None, near=near, given=given)


Served = Sequence[tuple[Group, StreamOptions]]
"""The groups of an operator, with the options of the stream as they are for each."""


def group_of(program: Program, wanted: Wanted) -> Group:
    """The group that a program and the names of queries stand for."""
    if wanted.near:
        return near_group(program.module["NEAR_MISSES"], program, wanted.tiebreak)
    if not wanted.names:
        return Group(levels_of(program), (program.name,), None)
    queries = {
        name: query.with_options(tiebreak=wanted.tiebreak).on_spark
        for name, query in programs_of(program.module["QUERIES"]).items()
    }
    return group_for(queries, wanted)


def group_for(queries: Mapping[str, Program], wanted: Wanted) -> Group:
    """The group of some of a module's queries."""
    programs = {name: queries[name] for name in wanted.names}
    own = frozenset().union(*map(declared_types, programs.values()))
    return Group(
        programs,
        wanted.names,
        dict(queries),
        wanted.goes_on,
        wanted.number,
        wanted.others - own,
    )

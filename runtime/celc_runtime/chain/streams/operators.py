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
from celc_runtime.chain.streams.units import GoesOn, Shared, Unit, UnitOf, units_of
from celc_runtime.many.answers import QUERY
from celc_runtime.many.groups import of_inputs, reading_all
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.program import Program
from celc_runtime.stream.buckets import FOR_EACH_TASK
from celc_runtime.stream.formats import StreamOptions

_FEW_QUERIES = 8


class Wanted(NamedTuple):
    """The queries of a group, in a form that is sent to workers; empty: the program that is
    sent is a query that reads others, and is run with these."""

    names: tuple[str, ...] = ()
    tiebreak: tuple[str, ...] | None = None  # as of `with_options`
    goes_on: GoesOn | None = None  # None: the queries of the checkpoint are these
    number: int = 0  # of the group
    others: Types = frozenset()  # as of `Group`

    @property
    def plain(self) -> tuple[Any, ...]:
        """The same in tuples alone, which a worker reads before it has celc's own classes."""
        if self.goes_on is None:
            return self.names, self.tiebreak, None, self.number, tuple(sorted(self.others))
        units = tuple(
            (one.number, one.names, one.shared and tuple(one.shared)) for one in self.goes_on.units
        )
        goes_on = units, self.goes_on.next_unit
        return self.names, self.tiebreak, goes_on, self.number, tuple(sorted(self.others))

    @classmethod
    def of(cls, plain: Sequence[Any]) -> Wanted:
        """What `plain` made tuples of."""
        names, tiebreak, goes_on, number, types = plain
        others = frozenset((stream, type) for stream, type in types)
        if goes_on is None:
            return cls(names, tiebreak, None, number, others)
        units = tuple(
            UnitOf(unit, of, shared and Shared(*shared)) for unit, of, shared in goes_on[0]
        )
        return cls(names, tiebreak, GoesOn(units, goes_on[1]), number, others)


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
        fields = [pa.field(n, pa.struct(p.output_schema)) for n, p in self.columns.items()]
        return pa.schema([pa.field(QUERY, pa.string()), *fields])

    @property
    def ddl(self) -> str:
        """The same in Spark's notation."""
        if self.columns is None:
            return self.programs[self.outputs[0]].output_ddl
        columns = [f"{quoted(n)} STRUCT<{p.output_ddl}>" for n, p in self.columns.items()]
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


Served = Sequence[tuple[Group, StreamOptions]]
"""The groups of an operator, with the options of the stream as they are for each."""


def group_of(program: Program, wanted: Wanted) -> Group:
    """The group that a program and the names of queries stand for."""
    if not wanted.names:
        return Group(levels_of(program), (program.name,), None)
    queries = {
        name: query.program.with_options(tiebreak=wanted.tiebreak).on_spark
        for name, query in program.module["QUERIES"].items()
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

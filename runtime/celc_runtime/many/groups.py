"""Queries that can share one reading of the events, and the plan of that reading."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.expressions import Derived
from celc_runtime.plan.plan import Attribute, Plan
from celc_runtime.program import Program


@dataclass(frozen=True, eq=False)
class ReadingGroup:
    """Queries whose events have the same order, partitions and positions."""

    programs: Mapping[str, Program]  # by name
    reading: Program  # reads all their attributes; it is never run

    @property
    def plan(self) -> Plan:
        return self.reading.plan


def reading_groups(programs: Iterable[Program]) -> list[ReadingGroup]:
    """The groups of queries, in the order of their first query."""
    found: dict[Any, dict[str, Program]] = {}
    for program in programs:
        found.setdefault(_reading(program.plan), {})[program.name] = program
    return [ReadingGroup(group, reading_all(group)) for group in found.values()]


def _reading(plan: Plan) -> tuple[Any, ...]:
    """What plans that read their events in the same way have in common."""
    order = tuple(a for a in plan.source.attributes if a.name in plan.source.order_by)
    types = (
        frozenset(plan.source.declared_types),
        plan.source.type_column,
        plan.source.stream_column,
        plan.source.type_name,
    )
    keys = plan.source.partition_by, plan.source.chosen_keys, plan.interleaves
    # Not the clock: on Spark, only queries whose matches wait have one.
    times = plan.source.ties, plan.source.uncertain is not None, plan.source.begin
    return types, keys, order, plan.source.order_by, plan.source.tiebreak, times, plan.choice.at_end


def of_inputs(program: Program) -> Program:
    """A program that reads what a query needs of the input, before columns are derived; it is
    never run."""
    return replace(program, plan=program.plan.of_inputs)


def reading_all(programs: Mapping[str, Program]) -> Program:
    """A program that reads all columns that any of the queries reads; it is never run.

    Raises EventError if two queries read a column in two types.
    """
    first = next(iter(programs.values()))
    attributes: dict[str, Attribute] = {}
    reader: dict[str, str] = {}
    tiebreak: dict[str, None] = {}
    derived: dict[str, Derived] = {}
    for program in programs.values():
        for made in program.plan.source.derived:
            if derived.setdefault(made.name, made) != made:
                raise EventError(
                    f"query {program.name!r} computes {made.name!r} in another way than a query "
                    "that is run together with it: rename the attribute in one of their streams"
                )
        tiebreak |= dict.fromkeys(program.plan.source.tiebreak)
        for a in program.plan.source.attributes:
            if attributes.setdefault(a.name, a) != a:
                raise EventError(
                    f"query {program.name!r} reads {a.name!r} as {a.type}, and query "
                    f"{reader[a.name]!r} as {attributes[a.name].type}: queries that are run "
                    "together have one type for a column; rename the attribute in one of them"
                )
            reader.setdefault(a.name, program.name)
    # Types are only distinguished, and no row is left out.
    plan = replace(
        first.plan,
        source=replace(
            first.plan.source,
            attributes=tuple(attributes.values()),
            derived=tuple(derived.values()),
            tiebreak=tuple(tiebreak),
            type_column=any(program.plan.source.type_column for program in programs.values()),
            stream_column=any(program.plan.source.stream_column for program in programs.values()),
            relevant=None,
        ),
        matching=replace(first.plan.matching, window=None, local_windows=()),
        choice=replace(first.plan.choice, deadlines=(), ruled_out=()),
    )
    return replace(first, plan=plan)

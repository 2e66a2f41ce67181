"""The units of a group: its queries, each after those whose rows it reads.

A query that reads others is run as on any stream: its events wait until the watermark has passed
them. Rows of another query come when they are known, which can be later than their ends: matches
with an absence at their end wait for it, and those of LONGEST and DISJOINT for their window. So
the watermark of a reader is behind that of the stream by the longest of these times (`lag`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from celc_runtime.chain.columns import Types, as_run, declared_types
from celc_runtime.chain.rows import numbering_columns
from celc_runtime.many.groups import reading_all, reading_groups
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Attribute, Deadline, Window
from celc_runtime.plan.relevance import Relevant
from celc_runtime.program import Program
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.one_bucket.known_keys import (
    deadline_lengths,
    key_values,
    start_length,
    window_length,
)
from celc_runtime.stream.stored.known_starts import has_ended


class Shared(NamedTuple):
    """The form in which queries of a unit share events. It is that of the unit's first
    micro-batch, also when some of the queries are gone: the events of its state are stored so."""

    attributes: tuple[tuple[str, str], ...]  # names and types of columns, in their order
    types: tuple[tuple[str, str], ...]  # streams and event types, as they are numbered
    window: int  # microseconds
    groups: int  # how many groups of kept events there are


class UnitOf(NamedTuple):
    """A unit as a checkpoint has it."""

    number: int  # under which its state is stored
    names: tuple[str, ...]  # of its queries
    shared: Shared | None  # None: it is a query by itself


class GoesOn(NamedTuple):
    """What a group goes on with from a checkpoint."""

    units: tuple[UnitOf, ...]
    next_unit: int  # the least number that no unit of the checkpoint has had


@dataclass(frozen=True, eq=False)
class Unit:
    """A query of a group, or several that share their events."""

    query: Program  # as it is compiled; of several: a program that reads for all, and is never run
    lag: int  # microseconds by which its watermark is behind that of the stream
    others: Types  # event types of declared streams that only other queries of the operator read
    number: int  # under which its state is stored, for as long as the checkpoint lives
    members: tuple[Program, ...] = ()  # of several
    shared: Shared | None = None  # of several, from an earlier run; None: as they are now

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def programs(self) -> tuple[Program, ...]:
        """The queries whose rows it finds."""
        return self.members or (self.query,)

    @property
    def absent(self) -> list[tuple[str, str]]:
        """The columns, with their types, that only queries of an earlier run have read."""
        if self.shared is None:
            return []
        read = {a.name for one in self.members for a in one.plan.source.attributes}
        read |= {*self.query.plan.source.tiebreak}
        return [column for column in self.shared.attributes if column[0] not in read]

    @cached_property
    def place(self) -> str:
        """Of a query that reads others: the column with the number of a row's source, 0 for
        declared streams."""
        return unused_name("source", self._names)

    @cached_property
    def ties(self) -> dict[str, str]:
        """Of a query that reads others: the columns for the tiebreak columns of the declared
        streams."""
        return {
            name: unused_name(f"tie {name}", self._names)
            for name in self.query.plan.source.tiebreak
        }

    @cached_property
    def numbers(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Of a query that reads others: by query and column, the column that numbers its rows of
        one time and start, and its type."""
        return numbering_columns(self.query, [*self._names, self.place, *self.ties.values()])

    @property
    def added(self) -> dict[str, str]:
        """Those of them that are no attributes, with their types."""
        names = {*self._names}
        return {name: type for name, type in self.numbers.values() if name not in names}

    @property
    def _names(self) -> list[str]:
        source = self.query.plan.source
        return [source.type_name, "stream", *(one.name for one in source.input_attributes)]

    @cached_property
    def program(self) -> Program:
        """The query in the form that runs over its events, in the order of section "Positions" of
        the language: rows of declared streams come first, then those of queries."""
        if not self.query.plan.source.reads:
            return self.query
        run, source = as_run(self.query), self.query.plan.source
        ties = [self.ties[name] for name in source.tiebreak] if self.declared else []
        numbers = dict.fromkeys(name for name, _ in self.numbers.values())
        order = (self.place, *ties, str(source.start_of_rows), *numbers)
        return replace(run, plan=replace(run.plan, source=replace(run.plan.source, tiebreak=order)))

    @property
    def declared(self) -> Types:
        """The event types of declared streams that it reads itself."""
        return declared_types(self.query)

    @property
    def reads(self) -> tuple[str, ...]:
        """The queries whose rows are its events."""
        return self.query.plan.source.reads

    def options(self, options: StreamOptions) -> StreamOptions:
        """The options of the stream as they are for this query. Its rows have its own tiebreak
        columns."""
        source = self.query.plan.source
        if not source.reads:
            return options
        types = {self.place: "INT", str(source.start_of_rows): source.type_of(source.order_by[0])}
        types |= {
            own: options.tiebreak_types.get(name) or source.type_of(name)
            for name, own in self.ties.items()
        }
        types |= self.added
        return options._replace(tiebreak_types=types, has_types=True, ahead="")

    def watermark(self, watermark: int | None) -> int | None:
        """The time (microseconds) up to which all of its events are known."""
        if watermark is None or has_ended(watermark):
            return watermark
        return watermark - self.lag


def units_of(
    programs: Mapping[str, Program], goes_on: GoesOn | None = None, others: Types = frozenset()
) -> list[Unit]:
    """The units of a group of these queries; they are ordered, each after those whose
    rows it reads.

    goes_on: with units of a checkpoint, whose queries are among these; None: it is begun with these
    queries. New ones are units of their own, so that they read the events that come from now on.
    others: event types that only queries of other groups read.
    """
    recorded, first = goes_on or ((), 0)
    types = others.union(*map(declared_types, programs.values()))
    new = [one for name, one in programs.items() if all(name not in of.names for of in recorded)]
    places = {name: place for place, name in enumerate(programs)}
    found: list[tuple[UnitOf, list[Program]]] = [
        (one, [programs[name] for name in one.names]) for one in recorded
    ]
    for number, group in enumerate(_groups(new), first):
        found.append((UnitOf(number, tuple(one.name for one in group), None), group))
    found.sort(key=lambda one: places[one[1][0].name] if one[1][0].plan.source.reads else -1)
    known: dict[str, int] = {}  # how much later than its end a row is known
    units = []
    for of, group in found:
        is_shared = of.shared is not None or len(group) > 1
        query = reading_of(group, of.shared) if is_shared else group[0]
        lag = max((known[read] for read in query.plan.source.reads), default=0)
        known |= {program.name: lag + _known_after(program) for program in group}
        members = tuple(group) if is_shared else ()
        units.append(Unit(query, lag, types - declared_types(query), of.number, members, of.shared))
    return units


def _groups(programs: Iterable[Program]) -> list[list[Program]]:
    """The queries of each unit, in an order in which each is after those whose rows it reads."""
    alone = [[one] for one in programs if not can_share(one)]
    shared = []
    for reads_all in (False, True):
        # Queries that ask which rows are neighbours read all of them.
        alike = [one for one in programs if can_share(one)]
        alike = [one for one in alike if (one.plan.source.relevant is None) == reads_all]
        shared += [[*group.programs.values()] for group in reading_groups(alike)]
    readers = [group for group in alone if group[0].plan.source.reads]
    return [*shared, *(group for group in alone if not group[0].plan.source.reads), *readers]


def can_share(program: Program) -> bool:
    """Whether a query can share its events with others: whether nothing has to be known of a
    partition but how far it has been run, and events leave by their time alone."""
    plan = program.plan
    return (
        not plan.source.reads
        and plan.source.parameters is None
        and plan.source.uncertain is None
        and not plan.answer.positions
        and not plan.choice.waits
        and plan.choice.rate is None
        and (plan.answer.totals is None or plan.answer.totals.per == "END")
        and set(key_values(program, None)) <= {"position", "frontier"}
        and window_length(program) is not None
    )


def reading_of(programs: Sequence[Program], shared: Shared | None = None) -> Program:
    """A program that reads and keeps what each of some queries does; it is never run.

    Its window is the longest, and it has all deadlines. So an event stays as long as it can matter
    to the query that needs it longest. shared: the form that its events have in a state.
    """
    found = reading_all({one.name: one for one in programs})
    plans = [one.plan for one in programs]
    windows: list[Window] = []
    deadlines: list[Deadline] = []
    for plan in plans:
        for one in plan.choice.deadlines:
            deadlines.append(replace(one, window=len(windows)))
            windows.append(plan.matching.local_windows[one.window])
    longest = max(int(whole.size) for plan in plans if (whole := plan.whole_window) is not None)
    order = found.plan.source.order_by[0]
    wanted: dict[tuple[str, str], None] | None = {}
    for plan in plans:
        if plan.source.relevant is None:
            wanted = None
            break
        assert wanted is not None
        wanted |= dict.fromkeys((one.stream, one.type) for one in plan.source.relevant)
    relevant = None
    if wanted is not None:
        relevant = tuple(Relevant(stream, type) for stream, type in wanted)
    plan = found.plan
    source = replace(plan.source, relevant=relevant)
    if shared is not None:
        longest = shared.window
        attributes = tuple(Attribute(name, type) for name, type in shared.attributes)
        source = replace(source, attributes=attributes, types=shared.types, other_types=())
    return replace(
        found,
        plan=replace(
            plan,
            name=", ".join(one.name for one in programs),
            source=source,
            matching=replace(
                plan.matching,
                window=Window("MICROSECONDS", longest, order),
                local_windows=tuple(windows),
                reaches=(),
                one_event=False,
            ),
            choice=replace(plan.choice, deadlines=tuple(deadlines), per_start=None, limit=None),
        ),
    )


def shared_form(unit: Unit, groups: int) -> Shared | None:
    """The form in which the queries of a unit share their events; None: it is one query by itself.
    groups: of kept events."""
    if not unit.members or unit.shared is not None:
        return unit.shared
    plan = unit.query.plan
    assert plan.matching.window is not None
    return Shared(
        tuple((a.name, a.type) for a in plan.source.attributes),
        plan.source.declared_types,
        int(plan.matching.window.size),
        groups,
    )


def _known_after(program: Program) -> int:
    """The microseconds after which a row is known, from its end on."""
    if program.plan.choice.waits:
        # Nobody reads a query without such a window: the table of routes refuses that.
        return start_length(program) or 0
    lengths = deadline_lengths(program.plan)
    return 1 + lengths[-1] if lengths else 0

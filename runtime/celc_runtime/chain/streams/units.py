"""The units of an operator: the queries that it runs, each after those whose rows it reads.

A query that reads others is run as on any stream: its events wait until the watermark has passed
them. Rows of another query come when they are known, which can be later than their ends: matches
with an absence at their end wait for it, and those of LONGEST and DISJOINT for their window. So
the watermark of a reader is behind that of the stream by the longest of these times (`lag`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from celc_runtime.chain.columns import Types, as_run, declared_types
from celc_runtime.plan.names import unused_name
from celc_runtime.program import Program
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.one_bucket.known_keys import deadline_lengths, window_length
from celc_runtime.stream.stored.known_starts import has_ended


@dataclass(frozen=True, eq=False)
class Unit:
    """A query of an operator."""

    query: Program  # as it is compiled
    lag: int  # microseconds by which its watermark is behind that of the stream
    others: Types  # event types of declared streams that only other queries of the operator read

    @property
    def name(self) -> str:
        return self.query.name

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
        order = (self.place, *ties, str(source.start_of_rows), *source.partition_by)
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
        return options._replace(tiebreak_types=types, has_types=True, ahead="")

    def watermark(self, watermark: int | None) -> int | None:
        """The time (microseconds) up to which all of its events are known."""
        if watermark is None or has_ended(watermark):
            return watermark
        return watermark - self.lag


def units_of(programs: Mapping[str, Program]) -> list[Unit]:
    """The units of an operator that runs these queries; they are ordered, each after those whose
    rows it reads.
    """
    known: dict[str, int] = {}  # how much later than its end a row is known
    types = frozenset().union(*map(declared_types, programs.values()))
    found = []
    for name, program in programs.items():
        lag = max((known[read] for read in program.plan.source.reads), default=0)
        known[name] = lag + _known_after(program)
        found.append(Unit(program, lag, types - declared_types(program)))
    return found


def _known_after(program: Program) -> int:
    """The microseconds after which a row is known, from its end on."""
    if program.plan.choice.waits:
        # Nobody reads a query without such a window: the table of routes refuses that.
        return window_length(program) or 0
    lengths = deadline_lengths(program.plan)
    return 1 + lengths[-1] if lengths else 0

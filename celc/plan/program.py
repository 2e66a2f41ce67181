"""All that code is generated from, for one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from celc.automata.automaton import Automaton
from celc.automata.predicates import Alphabet
from celc.core import formula as core
from celc.plan.strategy import (
    All,
    ByDefinition,
    Checked,
    EarliestInWindow,
    InRuns,
    InWindow,
    Latest,
    Listing,
    Update,
)
from celc.plan.tables import Kind, Tables


@dataclass(frozen=True, slots=True)
class Program:
    """A query, the tables that its update follows, and how it is run."""

    query: core.Query
    automaton: Automaton
    alphabet: Alphabet
    tables: Tables
    update: Update
    listing: Listing

    @property
    def output_kinds(self) -> tuple[Kind, ...]:
        """The kinds of the events of the matches that are listed."""
        kinds = self.tables.kinds
        match self.listing:
            case EarliestInWindow(tables=tables):
                return tables.kinds
            case InWindow(tables=selection):
                return selection.tables.kinds
            case Latest():
                # Twice: an event that can be the first of a match, but is not.
                return (*kinds, *(Kind(kind.marks, starts=False) for kind in kinds))
            case All() | InRuns() | Checked() | ByDefinition():
                return kinds
            case _:
                assert_never(self.listing)

    @property
    def kind_bits(self) -> int:
        """How many bits a kind takes."""
        most = max(len(self.tables.kinds), len(self.output_kinds))
        return max(1, (most - 1).bit_length())

    @property
    def consumes(self) -> bool:
        """Whether the update itself forgets what a match consumes: not where the listing decides
        whether what it finds is a match."""
        match self.listing:
            case Checked() | ByDefinition():
                return False
            case All() | InRuns() | InWindow() | EarliestInWindow() | Latest():
                return self.query.consume_by != "NONE"
            case _:
                assert_never(self.listing)

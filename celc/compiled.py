"""All that code is generated from, for one query."""

from __future__ import annotations

from dataclasses import dataclass

from celc import formula as core
from celc.automaton import Automaton
from celc.earliest import EarliestTables
from celc.joins import Joins
from celc.normal_form import NormalForm
from celc.piles import StraightLine
from celc.predicates import Alphabet
from celc.roles import Checks
from celc.tables import Kind, SelectionTables, Tables


@dataclass(frozen=True, slots=True)
class Compiled:
    """All that code is generated from, for one query."""

    query: core.Query
    automaton: Automaton
    alphabet: Alphabet
    tables: Tables
    straight_line: StraightLine | None
    selection: SelectionTables | EarliestTables | None = None
    """A selector under WITHIN that is run over each window."""
    greedy: bool = False
    """SELECT LAST under WITHIN, found from the latest event back."""
    definition: NormalForm | None = None
    """The formula with its conditions across events, where only the definitions decide them."""
    joins: Joins | None = None
    """Equalities that are decided by keys of states."""
    checks: Checks | None = None
    """Conditions across events that are decided while matches are listed."""
    max_work: int = 0
    """Steps that these may take, or the definitions."""

    @property
    def output_kinds(self) -> tuple[Kind, ...]:
        """The kinds of the events of the matches that are listed."""
        if isinstance(self.selection, EarliestTables):
            return self.selection.kinds
        if self.selection is not None:
            return self.selection.tables.kinds
        if self.greedy:
            # Twice: an event that can be the first of a match, but is not.
            inside = tuple(Kind(kind.marks, starts=False) for kind in self.tables.kinds)
            return (*self.tables.kinds, *inside)
        return self.tables.kinds

    @property
    def kind_bits(self) -> int:
        """How many bits a kind takes."""
        most = max(len(self.tables.kinds), len(self.output_kinds))
        return max(1, (most - 1).bit_length())

    @property
    def consumes(self) -> bool:
        """Whether the update itself forgets what a match consumes: not where what it finds need
        not be a match."""
        return self.query.consume_by != "NONE" and not (self.definition or self.checks)

"""The result of planning: a query and how it is run."""

from typing import assert_never

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.strategy import All, InRuns, Latest, United

from celc.automata.automaton import Automaton
from celc.automata.predicates import Alphabet
from celc.core import formula as core
from celc.plan.strategy import (
    ByDefinition,
    Checked,
    Counted,
    EarliestInWindow,
    InWindow,
    InWorlds,
    Listing,
    LongestRuns,
    Update,
)
from celc.plan.tables import Kind, Tables


@frozen
class Program:
    """All that code is generated from, for one query: its tables, and how it is run."""

    query: core.Query
    automaton: Automaton
    alphabet: Alphabet
    tables: Tables
    update: Update
    listing: Listing
    listed_because: str

    @property
    def output_kinds(self) -> tuple[Kind, ...]:
        """The kinds of the events that the listing writes, by their numbers.

        Most listings write the numbers that the update put into the arena. A selector in a window
        has an automaton of its own, which numbers the kinds in its own way.
        """
        kinds = self.tables.kinds
        match self.listing:
            case EarliestInWindow(tables=tables):
                return tables.kinds
            case InWindow(tables=selection):
                return selection.tables.kinds
            case Latest():
                # Each kind has two numbers; the second is for events that do not begin their match.
                return (*kinds, *(Kind(kind.marks, starts=False) for kind in kinds))
            case (
                All()
                | InRuns()
                | Checked()
                | United()
                | Counted()
                | LongestRuns()
                | ByDefinition()
                | InWorlds()
            ):
                return kinds
            case _:
                assert_never(self.listing)

    @property
    def per_start(self) -> core.PerStart | None:
        """The choice among matches with one start that is left to the run; None: nothing is.

        SELECT FIRST is left to the run only if the listing decides conditions, or events are
        simultaneous. Otherwise the automaton has chosen already. With CONSUME BY there is nothing
        to choose, because the first match of a start is also its last.
        """
        chosen = self.query.per_start
        if chosen is None or chosen.disjoint or chosen.end == "LONGEST" or self.query.simultaneous:
            return chosen
        is_exact = isinstance(self.listing, All | InRuns) or self.query.consume_by != "NONE"
        return None if is_exact else chosen

    @property
    def kind_bits(self) -> int:
        """The number of bits of an event's tag that hold its kind."""
        most = max(len(self.tables.kinds), len(self.output_kinds))
        return max(1, (most - 1).bit_length())

    @property
    def consumes(self) -> bool:
        """Whether the update forgets the partial matches that a match consumes.

        It cannot do so if only the listing finds out whether there is a match.
        """
        match self.listing:
            case Checked() | LongestRuns() | ByDefinition() | InWorlds():
                return False
            case (
                All() | InRuns() | InWindow() | EarliestInWindow() | Latest() | United() | Counted()
            ):
                return self.query.consume_by != "NONE"
            case _:
                assert_never(self.listing)

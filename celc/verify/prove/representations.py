"""The representations of one compiled query, which the steps of its proof compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan

from celc.automata.automaton import Automaton
from celc.automata.determinize import DeterministicAutomaton
from celc.automata.predicates import Alphabet
from celc.core.formula import Query, Window
from celc.normal.divide import Division
from celc.normal.normal_form import NormalForm
from celc.plan.program import Program
from celc.verify.prove.labellings import Labels
from celc.verify.prove.matches import Match, Stream
from celc.verify.prove.streams import Classes, classes_of


class KnownMatches:
    """The matches of a query's normal form on the streams that its steps have met: one step
    finds them, and the next one reads them.

    A stream is known by its events, since those of one class are one object. Both steps count their
    own evaluation alone, so what is known here lets the second one look at longer streams.
    """

    def __init__(self) -> None:
        self.labels = Labels()
        self._classes: dict[tuple[Window, ...], Classes] = {}
        self._found: dict[tuple[int, ...], frozenset[Match]] = {}

    def __len__(self) -> int:
        """How many ends of streams have known matches."""
        return len(self._found)

    def classes(self, query: Query, windows: Iterable[Window]) -> Classes:
        """The classes of the events of the query, the same objects for the same windows. Raises
        NotUnderstoodError for values that no class has."""
        asked = tuple(dict.fromkeys(windows))
        if asked not in self._classes:
            self._classes[asked] = classes_of(query, asked)
        return self._classes[asked]

    def matches(
        self, stream: Stream, end: int, make: Callable[[int], frozenset[Match]]
    ) -> frozenset[Match]:
        """The matches of the normal form that end at a position of a stream; `make` finds those
        that are not known."""
        key = (end, *map(id, stream.events))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = make(end)
        return found


@frozen
class Representations:
    """All results of the passes for one query, from the core formula to the text of the module."""

    query: Query
    normal_form: NormalForm
    division: Division
    alphabet: Alphabet
    automaton: Automaton
    full: DeterministicAutomaton
    minimal: DeterministicAutomaton
    program: Program
    plan: Plan
    module: str  # the text of the whole module, in which `query.name` has its code
    known: KnownMatches = field(default_factory=KnownMatches, init=False)
    """Not handed on: with another normal form in their place, the matches are other ones."""

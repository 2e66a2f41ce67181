"""Complex event automata: the nondeterministic model of the CEL paper, section 6.

A transition reads one event that satisfies its predicate and marks it with a set of labels. Where
the paper's automata mark with •, ours mark with the label set itself, as the second-order paper's
do; reading without a mark (○) is the empty set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from celc.formula import EventType
from celc.normal_form import Event, EventClause

State = NewType("State", int)


@dataclass(frozen=True, slots=True)
class EventPredicate:
    """Events of one type that satisfy every clause."""

    type: EventType
    clauses: tuple[EventClause, ...]


@dataclass(frozen=True, slots=True)
class Transition:
    """Read an event that satisfies `predicate` (None: any event), mark it, go to `target`.

    `event` is the atom of the normal form that the transition reads, None for the skipping of
    events between the parts of a sequence.
    """

    source: State
    predicate: EventPredicate | None
    marks: tuple[str, ...]
    target: State
    event: Event | None


@dataclass(frozen=True, slots=True)
class Automaton:
    """A complex event automaton.

    A run from `initial` to `final` over positions i to j stands for the complex event (i, j, μ).
    No transition enters `initial` and none leaves `final`, so i is the first event a run reads and
    j the last.
    """

    states: int
    initial: State
    final: State
    transitions: tuple[Transition, ...]

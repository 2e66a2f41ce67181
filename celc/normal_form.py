"""LP-normal form: formulas whose conditions all sit on single events, and whose labels do too.

Definition 3 of the CEL paper calls a formula locally parametrized when every filter is applied to
`R AS x`. This form goes one step further: AS, renaming and PROJECT are gone as well, because each
is a function on the label set of an event and can be applied when the event is read. What is left
is a regular expression over marked events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from celc.formula import EventType, Predicate
from celc.source import Span

EVENT = ""
"""The label that predicates of an event condition use for the event itself."""


def _span() -> Span:
    return field(compare=False, repr=False)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class EventClause:
    """An OR of predicates about one event, each of which names it `EVENT`; empty is FALSE."""

    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of `type` that satisfies every clause and is marked with `labels` (sorted).

    `name` is the atom as written, for people. No labels means that the event belongs to the match
    (it may start or end it) but is shown nowhere.
    """

    type: EventType
    clauses: tuple[EventClause, ...]
    labels: tuple[str, ...]
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Sequence:
    """Operands one after another; `contiguous[k]` says that nothing lies in gap k."""

    operands: tuple[NormalForm, ...]
    contiguous: tuple[bool, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Iteration:
    """One or more rounds of the operand, with nothing between two where `contiguous`."""

    operand: NormalForm
    contiguous: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Any of the operands; without operands it has no match."""

    operands: tuple[NormalForm, ...]
    span: Span = _span()


NormalForm: TypeAlias = Event | Sequence | Iteration | Disjunction


def labels_of(form: NormalForm) -> frozenset[str]:
    """All labels that some event of the form carries."""
    match form:
        case Event():
            return frozenset(form.labels)
        case Iteration():
            return labels_of(form.operand)
        case Sequence() | Disjunction():
            return frozenset[str]().union(*map(labels_of, form.operands))


def count_events(form: NormalForm) -> int:
    """The size of a form: how many events are written in it."""
    match form:
        case Event():
            return 1
        case Iteration():
            return count_events(form.operand)
        case Sequence() | Disjunction():
            return sum(map(count_events, form.operands))

"""LP-normal form: formulas whose conditions and labels all stand on single events.

Definition 3 of the CEL paper calls a formula locally parametrized when every filter is applied to
`R AS x`. This form goes one step further: AS, renaming and PROJECT are gone as well, because each
is a function on the label set of an event and can be applied when the event is read. The result is
a regular expression over marked events, with operators that regular expressions lack (AND, ALL,
UNLESS, absence, selectors). A condition or a change of labels on the choice of a selector stays
above the selector (`Where`, `Relabel`), because a selector compares matches before both.

Conditions on more than one event at a time (`Correlated`) stay where they are written, with the
scopes in which they look for labels (`Scope`). So do windows of parts of the formula (`Within`),
which compare the first event of a match with its last, and absences before a part and after a match
(`AbsenceBefore`, `AbsenceAfter`), which look at events outside it.

Long: the nodes are one closed union.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final, Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core.formula import ROLE, Clause, EventType, Predicate, Window
from celc.diagnostics.source import Span

EVENT = ""  # the label by which predicates of an event condition name the event itself


def _span() -> Span:
    return field(compare=False, repr=False)  # type: ignore[no-any-return]


@frozen
class EventClause:
    """An OR of predicates about one event, each of which names it `EVENT`. Empty: FALSE."""

    predicates: tuple[Predicate, ...]


@frozen
class Event:
    """One event of `type` that satisfies every clause and is marked with `labels` (sorted). An
    event without labels belongs to the match (it may start or end it) but is not shown."""

    type: EventType
    clauses: tuple[EventClause, ...]
    labels: tuple[str, ...]
    name: str  # the atom as written, for people
    span: Span = _span()
    simultaneous: bool = False
    """Events of one instant are simultaneous. Then a match of this form reaches from the first
    event of the instant to its last. So one match ends before another starts exactly if its last
    instant is earlier than the other's first."""


@frozen
class Sequence:
    """Operands one after another. `contiguous[k]`: no event lies in gap k."""

    operands: tuple[NormalForm, ...]
    contiguous: tuple[bool, ...]
    span: Span = _span()


@frozen
class Iteration:
    """Rounds of the operand, without events between two rounds where `contiguous`."""

    operand: NormalForm
    contiguous: bool
    span: Span = _span()
    number: int | None = None
    """The number of the iteration, while its rounds get marks (`flatten`)."""
    least: int = 1  # 1 or more
    most: int | None = None
    """2 or more, because a single round is the operand; None: there is no limit."""

    @property
    def written_out(self) -> int:
        """How often the operand stands in the automaton."""
        return self.least if self.most is None else self.most


@frozen
class Disjunction:
    """Any of the operands; without operands it has no match."""

    operands: tuple[NormalForm, ...]
    span: Span = _span()


@frozen
class Conjunction:
    """The matches of both: the same events with the same labels."""

    left: NormalForm
    right: NormalForm
    span: Span = _span()


@frozen
class All:
    """The union of a match of each; both may lie anywhere."""

    left: NormalForm
    right: NormalForm
    span: Span = _span()


@frozen
class Unless:
    """The matches of `left` that have no match of `right` inside them, end points included."""

    left: NormalForm
    right: NormalForm
    span: Span = _span()
    sees: tuple[str, ...] = ()
    """Labels of the left side that conditions on the right name (`Correlated`)."""


@frozen
class Absence:
    """`left`, then `right`, with no match of `middle` strictly between the two."""

    left: NormalForm
    middle: NormalForm
    right: NormalForm
    span: Span = _span()
    sees: tuple[str, ...] = ()
    """Labels of the two neighbours that conditions in the middle name (`Correlated`)."""


@frozen
class ThenFirst:
    """`left`, then in each of `least` to `most` rounds (None: no limit) the matches of `chosen`,
    behind what was taken before, that end first. Each event of a match is behind the one before.

    `absent` has no match between a round and what is before it, `gap` none between the left side
    and the first round.
    """

    left: NormalForm
    chosen: NormalForm
    span: Span = _span()
    least: int = 1
    most: int | None = 1
    absent: NormalForm | None = None
    gap: NormalForm | None = None
    sees: tuple[str, ...] = ()
    """Labels of the left side, and of earlier rounds, that conditions in `chosen` and `absent`
    name (`Correlated`), and that nothing further to the left binds."""
    around: tuple[str, ...] = ()
    """Labels in these conditions that the scope around binds further to the left: they are what is
    to the left of the round."""
    own: tuple[str, ...] = ()  # labels of a round that conditions in `absent` name
    gap_sees: tuple[str, ...] = ()
    """Labels that conditions in `gap` name, and that the left side or the only round binds."""
    gap_rounds: tuple[str, ...] = ()  # those that several rounds bind, all of which count

    @property
    def written_out(self) -> int:
        """How often a round stands in the automaton."""
        return self.least if self.most is None else self.most


Strategy: TypeAlias = Literal["STRICT", "NXT", "LAST", "MAX", "FIRST_OF_START", "NXT_OF_ENDS"]
"""The selectors of the language, which compare the matches with one end, and two more. NXT_OF_ENDS
chooses among the matches with one start and one end, as NXT does. FIRST_OF_START does so among the
matches with one start and the least end."""

INSIDE_MATCHES: Final = frozenset({"STRICT", "FIRST_OF_START", "NXT_OF_ENDS"})
"""Strategies that look at no event before the start of a match."""


@frozen
class Selected:
    """The choice of a selection strategy among the operand's matches, by their supports."""

    strategy: Strategy
    operand: NormalForm
    span: Span = _span()


@frozen
class Relabel:
    """The operand's matches; the changes map the label set of each event, one after another."""

    operand: NormalForm
    changes: tuple[LabelChange, ...]
    span: Span = _span()


@frozen
class Where:
    """The operand's matches for which the fact is true."""

    operand: NormalForm
    fact: Fact
    span: Span = _span()


@frozen
class Correlated:
    """The operand's matches for which every clause holds, for every choice of positions.

    Conditions on more than one event at a time stay here: comparisons across labels, PREV, PRIOR
    and most functions of a label's set.
    """

    operand: NormalForm
    clauses: tuple[Clause, ...]
    own: tuple[str, ...]
    """Labels that the operand binds, which clauses see as they are here; other labels are those of
    a scope."""
    span: Span = _span()


@frozen
class Scope:
    """The operand's matches. Clauses inside that look for one of `labels` find it here."""

    operand: NormalForm
    labels: tuple[str, ...]
    span: Span = _span()


@frozen
class Within:
    """The operand's matches that fit a window, from their first event to their last."""

    operand: NormalForm
    window: Window
    span: Span = _span()


@frozen
class AbsenceBefore:
    """The operand's matches with no match of `absent` before them, as far back as `length`."""

    operand: NormalForm
    absent: NormalForm
    length: Window
    span: Span = _span()
    sees: tuple[str, ...] = ()
    """Labels of the operand that conditions in `absent` name (`Correlated`)."""


@frozen
class AbsenceAfter:
    """The operand's matches with no match of `absent` after them, within `length` from their end.
    With `from_start` the length is counted from their start."""

    operand: NormalForm
    absent: NormalForm
    length: Window
    from_start: bool
    span: Span = _span()
    sees: tuple[str, ...] = ()
    """Labels of the operand that conditions in `absent` name (`Correlated`)."""


@frozen
class MarkedEnds:
    """The operand's matches, with additional marks on their first event and on their last."""

    operand: NormalForm
    first: tuple[str, ...]
    last: tuple[str, ...]
    span: Span = _span()


NormalForm: TypeAlias = (
    Event
    | Sequence
    | Iteration
    | Disjunction
    | Conjunction
    | All
    | Unless
    | Absence
    | ThenFirst
    | Selected
    | Relabel
    | Where
    | Correlated
    | Scope
    | Within
    | AbsenceBefore
    | AbsenceAfter
    | MarkedEnds
)

# --- changes of label sets ------------------------------------------------------------------------


@frozen
class AddLabel:
    """AS: the label goes to every event that carries one."""

    label: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        return labels | {self.label} if shown(labels) else labels


@frozen
class RenameLabel:
    """`[old -> new]`."""

    old: str
    new: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        return (labels - {self.old}) | {self.new} if self.old in labels else labels


@frozen
class KeepLabels:
    """PROJECT."""

    labels: tuple[str, ...]
    _kept: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", frozenset(self.labels))

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        return (labels & self._kept) | (labels - shown(labels))


@frozen
class KeepSupport:
    """Keep these labels, and `SUPPORT` on every event that carried any label.

    Labels that SELECT projects away still count where a selector compares supports.
    """

    labels: tuple[str, ...]

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        if not shown(labels):
            return labels
        return KeepLabels(self.labels)(labels) | {SUPPORT}


@frozen
class AddToAll:
    """The role goes to every event."""

    role: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        return labels | {self.role}


@frozen
class AddRole:
    """The role goes to every event that carries the label."""

    label: str
    role: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        return labels | {self.role} if self.label in labels else labels


SUPPORT = ""  # a mark that is not a label: the event is in the support; no label is spelled like it


def shown(labels: frozenset[str]) -> frozenset[str]:
    """The labels among the marks of an event."""
    if not any(label.startswith(ROLE) for label in labels):
        return labels
    return frozenset(label for label in labels if not label.startswith(ROLE))


LabelChange: TypeAlias = AddLabel | RenameLabel | KeepLabels | KeepSupport | AddToAll | AddRole


def changed(labels: Iterable[str], changes: Iterable[LabelChange]) -> tuple[str, ...]:
    found = frozenset(labels)
    for change in changes:
        found = change(found)
    return tuple(sorted(found))


# --- facts: finite-state conditions on the labels of a match --------------------------------------


@frozen
class SomeEvent:
    """Some event with the label satisfies the clause (`holds`), or does not satisfy it."""

    label: str
    clause: EventClause
    holds: bool = True


@frozen
class EndEvent:
    """The first (last) event with the label satisfies the clause. False where there is no event."""

    end: Literal["FIRST", "LAST"]
    label: str
    clause: EventClause


@frozen
class CountOf:
    """How many events have the label: `truths[n]` for n events, the last entry for all larger
    numbers."""

    label: str
    truths: tuple[bool, ...]


@frozen
class Not:
    """The fact is not true."""

    fact: Fact


@frozen
class AnyOf:
    """Some of the facts are true. Without facts it is false."""

    facts: tuple[Fact, ...]


SimpleFact: TypeAlias = SomeEvent | EndEvent | CountOf
Fact: TypeAlias = SimpleFact | Not | AnyOf

ALWAYS_TRUE = Not(AnyOf(()))
NEVER_TRUE = AnyOf(())


def all_of(facts: Iterable[Fact]) -> Fact:
    return Not(AnyOf(tuple(map(negated, facts))))


def negated(fact: Fact) -> Fact:
    return fact.fact if isinstance(fact, Not) else Not(fact)


def simple_facts(fact: Fact) -> tuple[SimpleFact, ...]:
    """The simple facts in a fact, each once, in order of appearance."""
    match fact:
        case Not():
            return simple_facts(fact.fact)
        case AnyOf():
            return tuple(dict.fromkeys(s for part in fact.facts for s in simple_facts(part)))
        case _:
            return (fact,)

"""LP-normal form: formulas whose conditions all sit on single events, and whose labels do too.

Definition 3 of the CEL paper calls a formula locally parametrized when every filter is applied to
`R AS x`. This form goes one step further: AS, renaming and PROJECT are gone as well, because each
is a function on the label set of an event and can be applied when the event is read. What is left
is a regular expression over marked events, together with the operators that a regular expression
has no word for (both, anyhow, unless, absence, selectors). Two things stay above those, because
they cannot pass them: a condition or a change of labels on what a selector has chosen (`Where`,
`Relabel`), since a selector compares matches before either.

Conditions on more than one event at a time (`Correlated`) stay where they are written, with the
scopes in which they look for labels (`Scope`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, assert_never

from celc.core.formula import Clause, EventType, Predicate
from celc.core.terms import labels_of_clause
from celc.diagnostics.source import Span

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
    number: int | None = None
    """Which one it is, while marks are put on its rounds (`roles`)."""


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Any of the operands; without operands it has no match."""

    operands: tuple[NormalForm, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """The matches of both: the same events with the same labels."""

    left: NormalForm
    right: NormalForm
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class All:
    """The union of a match of each, placed anyhow."""

    left: NormalForm
    right: NormalForm
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unless:
    """The matches of `left` that have no match of `right` inside them, end points included."""

    left: NormalForm
    right: NormalForm
    span: Span = _span()
    sees: tuple[str, ...] = ()
    """Labels of the left side that conditions on the right name (`Correlated`)."""


@dataclass(frozen=True, slots=True)
class Absence:
    """`left`, then `right`, with no match of `middle` strictly between the two."""

    left: NormalForm
    middle: NormalForm
    right: NormalForm
    span: Span = _span()
    sees: tuple[str, ...] = ()
    """Labels of the two neighbours that conditions in the middle name (`Correlated`)."""


Strategy: TypeAlias = Literal["STRICT", "NXT", "LAST", "MAX"]


@dataclass(frozen=True, slots=True)
class Selected:
    """What a selection strategy chooses among the operand's matches, by their supports."""

    strategy: Strategy
    operand: NormalForm
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Relabel:
    """The operand's matches, the label set of each event mapped by one change after another."""

    operand: NormalForm
    changes: tuple[LabelChange, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Where:
    """The operand's matches of which the fact is true."""

    operand: NormalForm
    fact: Fact
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Correlated:
    """The operand's matches for which every clause holds, for every choice of positions.

    What cannot be asked of one event at a time stays here: comparisons across labels, PREV, PRIOR
    and most functions of a label's set. `own` are the labels that the operand binds, which the
    clauses see as they are here; their other labels are those of a scope around it.
    """

    operand: NormalForm
    clauses: tuple[Clause, ...]
    own: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Scope:
    """The operand's matches; clauses inside that look for one of `labels` find it here."""

    operand: NormalForm
    labels: tuple[str, ...]
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
    | Selected
    | Relabel
    | Where
    | Correlated
    | Scope
)

# --- changes of label sets ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddLabel:
    """AS: the label goes to every event that carries one."""

    label: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        """The new label set."""
        return labels | {self.label} if shown(labels) else labels


@dataclass(frozen=True, slots=True)
class RenameLabel:
    """`[old -> new]`."""

    old: str
    new: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        """The new label set."""
        return (labels - {self.old}) | {self.new} if self.old in labels else labels


@dataclass(frozen=True, slots=True)
class KeepLabels:
    """PROJECT."""

    labels: tuple[str, ...]
    _kept: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", frozenset(self.labels))

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        """The new label set."""
        return (labels & self._kept) | (labels - shown(labels))


@dataclass(frozen=True, slots=True)
class KeepSupport:
    """Keep these labels, and `SUPPORT` on every event that carried any label.

    What SELECT projects away still counts where a selector compares supports.
    """

    labels: tuple[str, ...]

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        """The new label set."""
        if not shown(labels):
            return labels
        return KeepLabels(self.labels)(labels) | {SUPPORT}


@dataclass(frozen=True, slots=True)
class AddRole:
    """The role goes to every event that carries the label."""

    label: str
    role: str

    def __call__(self, labels: frozenset[str]) -> frozenset[str]:
        """The new label set."""
        return labels | {self.role} if self.label in labels else labels


SUPPORT = ""
"""A mark that is no label: the event is in the support. No label is spelled like it."""

ROLE = "\0\ud800"
"""How marks begin that are no labels, but roles in conditions across events (`roles`). No label
does: half of a character (a surrogate) is an error wherever it stands in a query."""


def shown(labels: frozenset[str]) -> frozenset[str]:
    """The labels among the marks of an event."""
    if not any(label.startswith(ROLE) for label in labels):
        return labels
    return frozenset(label for label in labels if not label.startswith(ROLE))


LabelChange: TypeAlias = AddLabel | RenameLabel | KeepLabels | KeepSupport | AddRole


def changed(labels: Iterable[str], changes: Iterable[LabelChange]) -> tuple[str, ...]:
    """A label set after some changes, sorted."""
    found = frozenset(labels)
    for change in changes:
        found = change(found)
    return tuple(sorted(found))


# --- facts: what a match's labels hold, as far as it is finite-state ------------------------------


@dataclass(frozen=True, slots=True)
class SomeEvent:
    """Some event with the label satisfies the clause (`holds`), or does not satisfy it."""

    label: str
    clause: EventClause
    holds: bool = True


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The first (last) event with the label satisfies the clause; false where there is none."""

    end: Literal["FIRST", "LAST"]
    label: str
    clause: EventClause


@dataclass(frozen=True, slots=True)
class CountOf:
    """How many events carry the label: `truths[n]` for n of them, the last for all above."""

    label: str
    truths: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The fact is not true."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some of the facts are true; none of no facts is."""

    facts: tuple[Fact, ...]


SimpleFact: TypeAlias = SomeEvent | EndEvent | CountOf
Fact: TypeAlias = SimpleFact | Not | AnyOf

ALWAYS_TRUE = Not(AnyOf(()))
NEVER_TRUE = AnyOf(())


def all_of(facts: Iterable[Fact]) -> Fact:
    """All of the facts are true."""
    return Not(AnyOf(tuple(map(negated, facts))))


def negated(fact: Fact) -> Fact:
    """The fact is not true."""
    return fact.fact if isinstance(fact, Not) else Not(fact)


def simple_facts(fact: Fact) -> tuple[SimpleFact, ...]:
    """What a fact is made of, each once, in order of appearance."""
    match fact:
        case Not():
            return simple_facts(fact.fact)
        case AnyOf():
            return tuple(dict.fromkeys(s for part in fact.facts for s in simple_facts(part)))
        case _:
            return (fact,)


# --- looking at forms -----------------------------------------------------------------------------


def operands_of(form: NormalForm) -> tuple[NormalForm, ...]:
    """The forms that a form is made of, from left to right."""
    match form:
        case Event():
            return ()
        case Sequence() | Disjunction():
            return form.operands
        case Iteration() | Selected() | Relabel() | Where() | Correlated() | Scope():
            return (form.operand,)
        case Conjunction() | All() | Unless():
            return (form.left, form.right)
        case Absence():
            return (form.left, form.middle, form.right)
        case _:
            assert_never(form)


def forms_in(form: NormalForm) -> Iterator[NormalForm]:
    """A form and all within it, outer before inner, left before right."""
    waiting = [form]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(operands_of(part)))


def events_of(form: NormalForm) -> Iterator[Event]:
    """The events written in a form, from left to right."""
    return (part for part in forms_in(form) if isinstance(part, Event))


def with_operands(form: NormalForm, change: Callable[[NormalForm], NormalForm]) -> NormalForm:
    """The form made of changed operands."""
    match form:
        case Event():
            return form
        case Sequence() | Disjunction():
            return replace(form, operands=tuple(map(change, form.operands)))
        case Iteration() | Selected() | Relabel() | Where() | Correlated() | Scope():
            return replace(form, operand=change(form.operand))
        case Conjunction() | All() | Unless():
            return replace(form, left=change(form.left), right=change(form.right))
        case Absence():
            left, middle, right = map(change, (form.left, form.middle, form.right))
            return replace(form, left=left, middle=middle, right=right)
        case _:
            assert_never(form)


def labels_of(form: NormalForm) -> frozenset[str]:
    """All labels that some event of the form's matches carries (or more, under AND)."""
    match form:
        case Event():
            return frozenset(form.labels)
        case Relabel():
            # A label set's image is within the image of all labels together, but for AS and
            # KeepSupport, which never look at which labels there are.
            return frozenset(changed(labels_of(form.operand), form.changes))
        case Unless():
            return labels_of(form.left)
        case Absence():
            return labels_of(form.left) | labels_of(form.right)
        case _:
            return frozenset[str]().union(*map(labels_of, operands_of(form)))


def types_of(form: NormalForm, label: str) -> tuple[EventType, ...]:
    """The event types that a label can be on in the form's matches, in order of appearance."""
    match form:
        case Event():
            return (form.type,) if label in form.labels else ()
        case Relabel():
            inner = [
                old for old in labels_of(form.operand) if label in changed([old], form.changes)
            ]
            parts = [types_of(form.operand, old) for old in sorted(inner)]
        case Unless():
            parts = [types_of(form.left, label)]
        case Absence():
            parts = [types_of(form.left, label), types_of(form.right, label)]
        case _:
            parts = [types_of(operand, label) for operand in operands_of(form)]
    return tuple(dict.fromkeys(event_type for part in parts for event_type in part))


def count_events(form: NormalForm) -> int:
    """The size of a form: how many events are written in it."""
    return sum(isinstance(part, Event) for part in forms_in(form))


def open_labels(form: NormalForm) -> frozenset[str]:
    """The labels that conditions inside a form look for around it."""
    match form:
        case Correlated():
            named = frozenset[str]().union(*map(labels_of_clause, form.clauses))
            return open_labels(form.operand) | (named - {*form.own})
        case Scope():
            return open_labels(form.operand) - {*form.labels}
        case Unless():
            return open_labels(form.left) | (open_labels(form.right) - {*form.sees})
        case Absence():
            outside = open_labels(form.middle) - {*form.sees}
            return open_labels(form.left) | open_labels(form.right) | outside
        case _:
            return frozenset[str]().union(*map(open_labels, operands_of(form)))


def is_correlated(form: NormalForm) -> bool:
    """Whether some condition in a form is more than a question to single events."""
    return any(isinstance(part, Correlated) for part in forms_in(form))

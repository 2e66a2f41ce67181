"""The parts of LP-normal forms, and the labels and conditions in them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from celc.core.formula import EventType
from celc.core.terms import labels_of_clause
from celc.normal import normal_form as lp


def operands_of(form: lp.NormalForm) -> tuple[lp.NormalForm, ...]:
    """The forms that a form is made of, from left to right."""
    match form:
        case lp.Event():
            return ()
        case lp.Sequence() | lp.Disjunction():
            return form.operands
        case (
            lp.Iteration()
            | lp.Selected()
            | lp.Relabel()
            | lp.Where()
            | lp.Correlated()
            | lp.Scope()
        ):
            return (form.operand,)
        case lp.Within() | lp.MarkedEnds():
            return (form.operand,)
        case lp.Conjunction() | lp.All() | lp.Unless():
            return (form.left, form.right)
        case lp.Absence():
            return (form.left, form.middle, form.right)
        case lp.ThenFirst():
            parts = (form.left, form.gap, form.absent, form.chosen)
            return tuple(part for part in parts if part is not None)
        case lp.AbsenceBefore():
            return (form.absent, form.operand)
        case lp.AbsenceAfter():
            return (form.operand, form.absent)
        case _:
            assert_never(form)


def forms_in(form: lp.NormalForm) -> Iterator[lp.NormalForm]:
    """A form and all within it, outer before inner, left before right."""
    waiting = [form]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(operands_of(part)))


def events_of(form: lp.NormalForm) -> Iterator[lp.Event]:
    """The events written in a form, from left to right."""
    return (part for part in forms_in(form) if isinstance(part, lp.Event))


def with_operands(
    form: lp.NormalForm, change: Callable[[lp.NormalForm], lp.NormalForm]
) -> lp.NormalForm:
    """The form made of changed operands."""
    match form:
        case lp.Event():
            return form
        case lp.Sequence() | lp.Disjunction():
            return replace(form, operands=tuple(map(change, form.operands)))
        case (
            lp.Iteration()
            | lp.Selected()
            | lp.Relabel()
            | lp.Where()
            | lp.Correlated()
            | lp.Scope()
        ):
            return replace(form, operand=change(form.operand))
        case lp.Within() | lp.MarkedEnds():
            return replace(form, operand=change(form.operand))
        case lp.Conjunction() | lp.All() | lp.Unless():
            return replace(form, left=change(form.left), right=change(form.right))
        case lp.Absence():
            left, middle, right = map(change, (form.left, form.middle, form.right))
            return replace(form, left=left, middle=middle, right=right)
        case lp.ThenFirst():
            return replace(
                form,
                left=change(form.left),
                chosen=change(form.chosen),
                absent=None if form.absent is None else change(form.absent),
                gap=None if form.gap is None else change(form.gap),
            )
        case lp.AbsenceBefore() | lp.AbsenceAfter():
            return replace(form, operand=change(form.operand), absent=change(form.absent))
        case _:
            assert_never(form)


def labels_of(form: lp.NormalForm) -> frozenset[str]:
    """All labels of some event of the form's matches; under AND there may be more."""
    match form:
        case lp.Event():
            return frozenset(form.labels)
        case lp.Relabel():
            # A label set's image is within the image of all labels together. (AS and KeepSupport
            # differ, but they never look at single labels.)
            return frozenset(lp.changed(labels_of(form.operand), form.changes))
        case lp.Unless():
            return labels_of(form.left)
        case lp.Absence():
            return labels_of(form.left) | labels_of(form.right)
        case lp.ThenFirst():
            return labels_of(form.left) | labels_of(form.chosen)
        case lp.AbsenceBefore() | lp.AbsenceAfter():
            return labels_of(form.operand)
        case lp.MarkedEnds():
            return labels_of(form.operand) | {*form.first, *form.last}
        case _:
            return frozenset[str]().union(*map(labels_of, operands_of(form)))


def types_of(form: lp.NormalForm, label: str) -> tuple[EventType, ...]:
    """The event types that a label can have in the form's matches, in order of appearance."""
    match form:
        case lp.Event():
            return (form.type,) if label in form.labels else ()
        case lp.Relabel():
            inner = [
                old for old in labels_of(form.operand) if label in lp.changed([old], form.changes)
            ]
            parts = [types_of(form.operand, old) for old in sorted(inner)]
        case lp.Unless():
            parts = [types_of(form.left, label)]
        case lp.Absence():
            parts = [types_of(form.left, label), types_of(form.right, label)]
        case lp.ThenFirst():
            parts = [types_of(form.left, label), types_of(form.chosen, label)]
        case lp.AbsenceBefore() | lp.AbsenceAfter():
            parts = [types_of(form.operand, label)]
        case _:
            parts = [types_of(operand, label) for operand in operands_of(form)]
    return tuple(dict.fromkeys(event_type for part in parts for event_type in part))


def count_events(form: lp.NormalForm) -> int:
    """The size of a form: how many events are written in it. Rounds count separately."""
    waiting, found = [(form, 1)], 0
    while waiting:
        part, times = waiting.pop()
        found += times * isinstance(part, lp.Event)
        times *= part.written_out if isinstance(part, lp.Iteration | lp.ThenFirst) else 1
        waiting += [(operand, times) for operand in operands_of(part)]
    return found


def open_labels(form: lp.NormalForm) -> frozenset[str]:
    """The labels that conditions inside a form look for around it."""
    match form:
        case lp.Correlated():
            named = frozenset[str]().union(*map(labels_of_clause, form.clauses))
            return open_labels(form.operand) | (named - {*form.own})
        case lp.Scope():
            return open_labels(form.operand) - {*form.labels}
        case lp.Unless():
            return open_labels(form.left) | (open_labels(form.right) - {*form.sees})
        case lp.Absence():
            outside = open_labels(form.middle) - {*form.sees}
            return open_labels(form.left) | open_labels(form.right) | outside
        case lp.ThenFirst():
            chosen = open_labels(form.chosen)
            if form.absent is not None:
                chosen |= open_labels(form.absent) - {*form.own}
            gap = frozenset[str]() if form.gap is None else open_labels(form.gap)
            return (
                open_labels(form.left)
                | (chosen - {*form.sees})
                | (gap - {*form.gap_sees, *form.gap_rounds})
            )
        case lp.AbsenceBefore() | lp.AbsenceAfter():
            return open_labels(form.operand) | (open_labels(form.absent) - {*form.sees})
        case _:
            return frozenset[str]().union(*map(open_labels, operands_of(form)))


def is_correlated(form: lp.NormalForm) -> bool:
    """Whether some condition in a form is about more than single events.

    A window of a part is about two: the first event of the part and its last. An absence before a
    part or after a match is about events that are not in the match.
    """
    asking = lp.Correlated | lp.Within | lp.AbsenceBefore | lp.AbsenceAfter
    return any(isinstance(part, asking) for part in forms_in(form))


def always_binds(form: lp.NormalForm, label: str) -> bool:
    """Whether every match of a form has an event with a label, as far as the form shows."""
    match form:
        case lp.Event():
            return label in form.labels
        case lp.Sequence():
            return any(always_binds(operand, label) for operand in form.operands)
        case lp.Disjunction():
            return all(always_binds(operand, label) for operand in form.operands)
        case lp.Conjunction() | lp.All() | lp.Absence():
            return always_binds(form.left, label) or always_binds(form.right, label)
        case lp.ThenFirst():
            return always_binds(form.left, label) or always_binds(form.chosen, label)
        case lp.Unless():
            return always_binds(form.left, label)
        case lp.Relabel():
            return False
        case (
            lp.Iteration() | lp.Selected() | lp.Where() | lp.Correlated() | lp.Scope() | lp.Within()
        ):
            return always_binds(form.operand, label)
        case lp.AbsenceBefore() | lp.AbsenceAfter() | lp.MarkedEnds():
            return always_binds(form.operand, label)
        case _:
            assert_never(form)

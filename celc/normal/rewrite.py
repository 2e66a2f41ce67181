"""Rewriting of LP-normal forms: conditions and label changes are moved to events.

A condition moves down as far as its meaning allows: through sequences, iterations, OR, AND, ALL,
the left side of UNLESS and the outer parts of an absence. It does not move through a selector, nor
through a condition or a change of labels that stands on a selector.
"""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from operator import itemgetter
from typing import assert_never

from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.formula import Expression, Predicate
from celc.core.traversal import Leaf, map_leaves
from celc.diagnostics.deadline import look
from celc.diagnostics.source import Span
from celc.normal import normal_form as lp
from celc.normal.conditions.facts import every_event
from celc.normal.conditions.truths import MOST_COMPARED, can_hold_together
from celc.normal.constructors import (
    absence,
    all_placed,
    beside_absence,
    conjunction,
    disjunction,
    is_empty,
    rounds_of,
    sequence,
    unless,
    within,
)
from celc.normal.traversal import labels_of

Parts = Mapping[str, tuple[Predicate, ...]]
"""A clause by label: it holds if all positions of one label satisfy that label's predicates. The
clause that nothing satisfies stands under EVENT."""


def restrict(form: lp.NormalForm, parts: Parts) -> lp.NormalForm:
    """The matches of a form that satisfy one clause, given by label."""
    look()
    if lp.EVENT in parts:
        return lp.Disjunction((), form.span)
    if not parts.keys() <= labels_of(form):
        # A label without positions: the clause holds trivially.
        return form
    match form:
        case lp.Event():
            return _restrict_event(form, tuple(p for part in parts.values() for p in part))
        case lp.Disjunction():
            return disjunction(tuple(restrict(o, parts) for o in form.operands), form.span)
        case lp.Where():
            # Not `where`, which would move the fact inside again, past the condition just added.
            operand = restrict(form.operand, parts)
            truth = truth_of(form.fact, labels_of(operand))  # a label may have lost its events
            if truth is None:
                return lp.Where(operand, form.fact, form.span)
            return operand if truth else lp.Disjunction((), form.span)
        case lp.Correlated() | lp.Scope() | lp.Within() | lp.MarkedEnds():
            operand = restrict(form.operand, parts)
            return operand if is_empty(operand) else replace(form, operand=operand)
        case lp.Unless():
            return unless(restrict(form.left, parts), form.right, form.span, form.sees)
        case lp.AbsenceBefore() | lp.AbsenceAfter():
            return beside_absence(form, restrict(form.operand, parts))
        case lp.ThenFirst() if not parts.keys() & labels_of(form.chosen):
            # What is chosen behind one match of the left side does not depend on the others.
            left = restrict(form.left, parts)
            return left if is_empty(left) else replace(form, left=left)
        case lp.Selected() | lp.Relabel() | lp.ThenFirst():
            facts = tuple(every_event(label, part) for label, part in parts.items())
            return lp.Where(form, lp.AnyOf(facts) if len(facts) > 1 else facts[0], form.span)
        case lp.Iteration() if len(parts) == 1:
            return rounds_of(form, restrict(form.operand, parts))
        case lp.Conjunction() if len(parts) == 1:
            return conjunction(restrict(form.left, parts), restrict(form.right, parts), form.span)
        case lp.All() if len(parts) == 1:
            return all_placed(restrict(form.left, parts), restrict(form.right, parts), form.span)
        case lp.Absence() if len(parts) == 1:
            left, right = restrict(form.left, parts), restrict(form.right, parts)
            return absence(left, form.middle, right, form.span, form.sees)
        case lp.Sequence() if len(parts) == 1:
            return sequence(
                tuple(restrict(o, parts) for o in form.operands), form.contiguous, form.span
            )
        case lp.Sequence():
            binding = [k for k, o in enumerate(form.operands) if labels_of(o) & parts.keys()]
            if len(binding) == 1:
                operands = list(form.operands)
                operands[binding[0]] = restrict(operands[binding[0]], parts)
                return sequence(tuple(operands), form.contiguous, form.span)
        case lp.Iteration() | lp.Conjunction() | lp.All() | lp.Absence():
            pass
        case _:
            assert_never(form)
    return disjunction(tuple(restrict(form, {label: parts[label]}) for label in parts), form.span)


def restrict_each(
    form: lp.NormalForm, asked: SequenceOf[tuple[str, tuple[Predicate, ...]]]
) -> lp.NormalForm:
    """The matches of a form that satisfy several clauses, each on the events of one label. The same
    as `restrict` for one clause after another, but in one pass over the form."""
    by_label: dict[str, list[_Asked]] = {}
    for number, (label, predicates) in enumerate(asked):
        by_label.setdefault(label, []).append((number, predicates))
    return _restrict_each(form, by_label)


_Asked = tuple[int, tuple[Predicate, ...]]
"""A clause on the events of one label, with its number among the clauses that are asked."""


def _restrict_each(form: lp.NormalForm, asked: Mapping[str, list[_Asked]]) -> lp.NormalForm:
    look(form.span)
    here = {label: asked[label] for label in labels_of(form) if label in asked}
    if not here:
        return form
    match form:
        case lp.Event():
            clauses = _Clauses(form)
            for _, predicates in sorted(
                (one for of_label in here.values() for one in of_label), key=itemgetter(0)
            ):
                if not clauses.add(predicates):
                    return lp.Disjunction((), form.span)
            return clauses.event()
        case lp.Disjunction():
            return disjunction(tuple(_restrict_each(o, here) for o in form.operands), form.span)
        case lp.Sequence():
            operands = tuple(_restrict_each(o, here) for o in form.operands)
            return sequence(operands, form.contiguous, form.span)
        case lp.Iteration():
            return rounds_of(form, _restrict_each(form.operand, here))
        case _:
            each = [(number, label, p) for label in here for number, p in here[label]]
            for _, label, predicates in sorted(each, key=itemgetter(0)):
                form = restrict(form, {label: predicates})
            return form


def _restrict_event(event: lp.Event, predicates: tuple[Predicate, ...]) -> lp.NormalForm:
    clauses = _Clauses(event)
    return clauses.event() if clauses.add(predicates) else lp.Disjunction((), event.span)


class _Clauses:
    """The clauses on an event while others are added: no clause follows from another. Clauses are
    looked up by their predicates, so the time is linear in their number."""

    def __init__(self, event: lp.Event) -> None:
        self._event = event
        self._kept = dict(enumerate(event.clauses))
        self._next = len(event.clauses)
        self._numbers: dict[Predicate, list[int]] = {}
        for number, clause in self._kept.items():
            self._enter(number, clause)

    def _enter(self, number: int, clause: lp.EventClause) -> None:
        for predicate in clause.predicates:
            self._numbers.setdefault(predicate, []).append(number)

    def event(self) -> lp.Event:
        """The event with all clauses."""
        event, clauses = self._event, tuple(self._kept.values())
        if clauses == event.clauses:
            return event
        return replace(event, clauses=clauses)

    def add(self, predicates: tuple[Predicate, ...]) -> bool:
        """Ask for an OR of predicates as well; False where no event satisfies all clauses."""
        look()
        clause = clause_on_type(lp.EventClause(predicates), self._event.type)
        if isinstance(clause, bool):
            return clause
        new = set(clause.predicates)
        near = {n for p in new for n in self._numbers.get(p, ()) if n in self._kept}
        if any(new.issuperset(self._kept[number].predicates) for number in near):
            return True  # it follows from a clause that is there
        for number in near:
            if new.issubset(self._kept[number].predicates):
                del self._kept[number]
        self._kept[self._next] = clause
        self._enter(self._next, clause)
        self._next += 1
        return len(self._kept) > MOST_COMPARED or can_hold_together(tuple(self._kept.values()))


def on_type(predicate: Predicate, event_type: core.EventType) -> Predicate:
    """The predicate on an event of a type. Attributes that the type lacks are NULL, and the type is
    known."""

    def known(node: Leaf) -> Expression:
        assert node.attribute is not None
        if node.attribute == core.TYPE:
            return core.Constant(core.text_of_type(event_type), node.type, node.span)
        if event_type.type_of(node.attribute) is not None:
            return node
        return core.Constant(None, node.type, node.span)

    return map_leaves(predicate, known)


def clause_on_type(clause: lp.EventClause, event_type: core.EventType) -> lp.EventClause | bool:
    """A clause on events of a type; True where all of them satisfy it, False where none does."""
    known: list[Predicate] = []
    for predicate in dict.fromkeys(on_type(p, event_type) for p in clause.predicates):
        truth = fold_predicate(predicate)
        if truth is True:
            return True
        if truth is None:
            known.append(predicate)
    return lp.EventClause(tuple(known)) if known else False


def where(form: lp.NormalForm, fact: lp.Fact, span: Span) -> lp.NormalForm:
    """The matches for which a fact is true, as conditions on single events where these are
    enough."""
    truth = truth_of(fact, labels_of(form))
    if truth is not None:
        return form if truth else lp.Disjunction((), span)
    if isinstance(fact, lp.Not) and isinstance(fact.fact, lp.SomeEvent) and not fact.fact.holds:
        return restrict(form, {fact.fact.label: fact.fact.clause.predicates})
    if isinstance(form, lp.Disjunction):
        return disjunction(tuple(where(operand, fact, span) for operand in form.operands), span)
    if isinstance(form, lp.Within):
        return within(where(form.operand, fact, span), form.window, form.span)
    if isinstance(form, lp.AbsenceBefore | lp.AbsenceAfter):
        return beside_absence(form, where(form.operand, fact, span))
    return lp.Where(form, fact, span)


def truth_of(fact: lp.Fact, labels: frozenset[str]) -> bool | None:
    """The truth of a fact about matches that bind only these labels; None if open."""
    match fact:
        case lp.Not():
            truth = truth_of(fact.fact, labels)
            return None if truth is None else not truth
        case lp.AnyOf():
            truths = [truth_of(part, labels) for part in fact.facts]
            if True in truths:
                return True
            return None if None in truths else False
        case lp.SomeEvent() | lp.EndEvent():
            return None if fact.label in labels else False
        case lp.CountOf():
            if len(set(fact.truths)) == 1 or fact.label not in labels:
                return fact.truths[0]
            return None
        case _:
            assert_never(fact)


def relabel(form: lp.NormalForm, change: lp.LabelChange) -> lp.NormalForm:
    """The same matches with another label set on each event.

    Every change maps a union of label sets to the union of their images, so it moves through ALL
    too. It does not move through AND, which compares label sets, nor through a selector or a
    condition, which look at labels before the change. A condition in an absent formula counts too.
    """
    look()
    match form:
        case lp.Event():
            return replace(form, labels=lp.changed(form.labels, [change]))
        case lp.Iteration():
            return replace(form, operand=relabel(form.operand, change))
        case lp.Sequence():
            return lp.Sequence(
                tuple(relabel(o, change) for o in form.operands), form.contiguous, form.span
            )
        case lp.Disjunction():
            return disjunction(tuple(relabel(o, change) for o in form.operands), form.span)
        case lp.All():
            return lp.All(relabel(form.left, change), relabel(form.right, change), form.span)
        case lp.Unless() if not form.sees:
            return replace(form, left=relabel(form.left, change))
        case lp.Absence() if not form.sees:
            left, right = relabel(form.left, change), relabel(form.right, change)
            return replace(form, left=left, right=right)
        case lp.Within() | lp.MarkedEnds():
            return replace(form, operand=relabel(form.operand, change))
        case lp.ThenFirst() if not (form.sees or form.own or form.gap_sees or form.gap_rounds):
            left, chosen = relabel(form.left, change), relabel(form.chosen, change)
            return replace(form, left=left, chosen=chosen)
        case lp.AbsenceBefore() | lp.AbsenceAfter() if not form.sees:
            return replace(form, operand=relabel(form.operand, change))
        case lp.Where() | lp.Relabel() if isinstance(change, lp.AddToAll):
            # Neither looks at roles. Above them the role would also go to events in between: a
            # graph does not distinguish an event that has lost its labels from one that is skipped.
            return replace(form, operand=relabel(form.operand, change))
        case lp.Relabel():
            return lp.Relabel(form.operand, (*form.changes, change), form.span)
        case lp.Conjunction() | lp.Selected() | lp.Where() | lp.Correlated() | lp.Scope():
            return lp.Relabel(form, (change,), form.span)
        case lp.Unless() | lp.Absence() | lp.AbsenceBefore() | lp.AbsenceAfter() | lp.ThenFirst():
            # The conditions of the absent formula look at labels before the change.
            return lp.Relabel(form, (change,), form.span)
        case _:
            assert_never(form)

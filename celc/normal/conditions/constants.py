"""An attribute that equals another one, whose value a condition gives, equals that value.

`a.ip = '10.1.1.1' AND b.ip = a.ip` compares two events, which is left to the listing of matches:
until then every b is kept. `b.ip = '10.1.1.1'` says the same and is decided at the event. So a
comparison of two labels gives way to one with the value, a constant or an attribute of the row of a
parameter set. The label whose value is known must have an event in each match, because over a label
without events a comparison says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from celc.core import formula as core
from celc.core.formula import AttributeValue, Clause, Expression

_Term = tuple[str, str]
"""A label and an attribute."""


def with_values(
    clauses: tuple[Clause, ...], operand: core.Formula, of_rows: frozenset[str]
) -> tuple[Clause, ...]:
    """The clauses of a FILTER with values in place of attributes that equal them. `of_rows` are the
    columns of events that hold the attributes of the set's row."""
    if not any(_two_labels(one) for one in clauses):
        return clauses
    always, known = labels_always_bound(operand), dict[_Term, Expression]()
    for one in clauses:
        for term, value in _values(one, of_rows):
            if term[0] in always:
                known.setdefault(term, value)
    found = [*clauses]
    is_new = bool(known)
    while is_new:
        is_new = False
        for place, one in enumerate(found):
            told = _told(one, known)
            if told is not None:
                term, found[place] = told
                is_new = True
                for _, value in _values(found[place], of_rows):
                    if term[0] in always:
                        known.setdefault(term, value)
    return tuple(found)


def labels_always_bound(formula: core.Formula) -> frozenset[str]:
    """Labels that have an event in every match of a formula; perhaps not all of them."""
    match formula:
        case core.Atom(label=label):
            return frozenset({label})
        case core.As(operand=operand, label=label):
            return labels_always_bound(operand) | {label}
        case core.Sequence(operands=operands):
            return frozenset[str]().union(*map(labels_always_bound, operands))
        case core.Disjunction(operands=operands):
            return frozenset[str].intersection(*map(labels_always_bound, operands))
        case core.Iteration(operand=operand, least=least) if least > 0:
            return labels_always_bound(operand)
        case core.Conjunction() | core.All() | core.Absence():
            return labels_always_bound(formula.left) | labels_always_bound(formula.right)
        case core.Unless():
            return labels_always_bound(formula.left)
        case core.Filter() | core.Within() | core.AbsenceBefore() | core.AbsenceAfter():
            return labels_always_bound(formula.operand)
        case _:
            return frozenset()


def _comparison(clause: Clause) -> core.Comparison | None:
    """The equality that is the whole of a clause."""
    match clause.predicates:
        case (core.Comparison(operator="=", beside=()) as asked,):
            return asked
    return None


def _two_labels(clause: Clause) -> bool:
    return _equal_terms(clause) is not None


def _equal_terms(clause: Clause) -> tuple[AttributeValue, AttributeValue] | None:
    """The attributes of two labels that a clause says to be equal."""
    asked = _comparison(clause)
    if asked is None:
        return None
    left, right = asked.left, asked.right
    if not isinstance(left, AttributeValue) or not isinstance(right, AttributeValue):
        return None
    is_type = core.TYPE in (left.attribute, right.attribute)
    return None if is_type or left.label == right.label else (left, right)


def _values(clause: Clause, of_rows: frozenset[str]) -> Iterator[tuple[_Term, Expression]]:
    """The attributes to which a clause gives a value."""
    asked = _comparison(clause)
    if asked is None:
        return
    for one, other in ((asked.left, asked.right), (asked.right, asked.left)):
        if not isinstance(one, AttributeValue) or one.attribute in of_rows:
            continue
        match other:
            case core.Constant(value=value):
                is_given = value is not None
            case AttributeValue(label=label, attribute=attribute):
                is_given = label == one.label and attribute in of_rows
            case _:
                continue
        if is_given and one.type == other.type:
            yield (one.label, one.attribute), other


def _told(clause: Clause, known: dict[_Term, Expression]) -> tuple[_Term, Clause] | None:
    """A clause on two labels, with the value of one of them: (the other one, the clause about
    it)."""
    terms = _equal_terms(clause)
    if terms is None:
        return None
    for one, other in (terms, terms[::-1]):
        value = known.get((one.label, one.attribute))
        if value is None or value.type != other.type:
            continue
        if isinstance(value, AttributeValue):
            value = replace(value, label=other.label)
        asked = core.Comparison("=", other, value, clause.predicates[0].span)
        return (other.label, other.attribute), Clause((asked,), (other.label,), clause.span)
    return None

"""Clauses that are one equality between two labels. Keys are made of these."""

from typing import TypeAlias

from celc_runtime.values import decimals

from celc.core import formula as core
from celc.core.formula import Clause, Expression

MAX_KEY = 3  # terms in a key, as many as the runtime's tables take

Term: TypeAlias = tuple[str, Expression]
"""A label (or a role), and the expression for the value of its event, without the label."""


def equality_of(clause: Clause) -> tuple[Term, Term] | None:
    """The two sides of a clause that is one equality of two labels; None for any other clause."""
    if len(clause.predicates) != 1:
        return None
    (predicate,) = clause.predicates
    if not isinstance(predicate, core.Comparison) or predicate.operator != "=":
        return None
    left, right = _term(predicate.left), _term(predicate.right)
    if left is None or right is None or left[0] == right[0]:
        return None
    if {*clause.labels} != {left[0], right[0]}:
        return None  # it also asks for an event of another label
    return left, right


def equality(left: Term, right: Term, clause: Clause) -> Clause:
    """The clause that two terms are equal, with the place in the text of another clause."""
    sides = _labelled(left), _labelled(right)
    labels = tuple(dict.fromkeys((left[0], right[0])))
    return Clause((core.Comparison("=", *sides, clause.span),), labels, clause.span)


def _term(expression: Expression) -> Term | None:
    """An attribute, widened or not, as its label and the expression without that label."""
    match expression:
        case core.AttributeValue():
            plain = core.AttributeValue("", expression.attribute, expression.type, expression.span)
            return expression.label, plain
        case core.Cast(operand=core.AttributeValue() as value) if expression.type.is_numeric:
            is_real = expression.type is core.DataType.DOUBLE
            if is_real and isinstance(value.type, core.DecimalType):
                return None
            if isinstance(expression.type, core.DecimalType):
                given = decimals.as_decimal(value.type)
                if given is None or given.scale > expression.type.scale:
                    return None  # the runtime does not round keys
            found = _term(value)
            assert found is not None
            return found[0], core.Cast(found[1], expression.type, expression.span)
        case _:
            return None


def _labelled(term: Term) -> Expression:
    label, plain = term
    if isinstance(plain, core.Cast):
        return core.Cast(_labelled((label, plain.operand)), plain.type, plain.span)
    assert isinstance(plain, core.AttributeValue)
    return core.AttributeValue(label, plain.attribute, plain.type, plain.span)

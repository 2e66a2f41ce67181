"""Conditions on sums of a whole match → weights of its events, and limits of their sums.

SUM and COUNT of labels, multiplied by constants and added up, are linear in the events of a match.
A comparison of two such expressions says that weights, one for each event and role, add up to more
than a limit. AVG(x.a) > c alone is linear too: the sum of x.a − c is greater than 0. The listing
uses this to leave out what cannot reach the limit (`sum_bounds` in the runtime). The condition
itself still decides each match, so a bound is only a necessary condition.
"""

from __future__ import annotations

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.formula import DataType, Expression
from celc.normal.flat_form import RoleClause

_NUMBERS = frozenset({DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE})
# types in which sums are computed; FLOAT is rounded more coarsely than the bounds allow, and INT
# wraps earlier
_ADDED_IN = frozenset({DataType.LONG, DataType.DOUBLE})


@frozen
class Weight:
    """The weight of an event of a role: factor · attribute + constant, where the attribute is not
    NULL.

    Without an attribute it is the constant alone. `size` is at least |factor| at every step of the
    computation.
    """

    role: str
    attribute: str | None
    factor: float
    constant: float
    size: float


@frozen
class SumBound:
    """The weights of the events of a match add up to `limit` at least."""

    weights: tuple[Weight, ...]
    limit: float


@frozen
class _Term:
    function: core.Aggregate
    factor: float
    size: float


@frozen
class _Linear:
    """Terms and a constant, to be added up."""

    terms: tuple[_Term, ...]
    constant: float

    def times(self, factor: float) -> _Linear:
        """All of it multiplied. Sizes never become smaller."""
        terms = (
            _Term(term.function, term.factor * factor, max(term.size, term.size * abs(factor)))
            for term in self.terms
        )
        return _Linear(tuple(terms), self.constant * factor)

    def plus(self, other: _Linear) -> _Linear:
        return _Linear((*self.terms, *other.terms), self.constant + other.constant)


def sum_bounds_of(clause: RoleClause) -> tuple[SumBound, ...]:
    """What must hold of sums where a clause is TRUE; empty where it is about anything else."""
    if clause.when != "complete" or clause.clause.labels or len(clause.clause.predicates) != 1:
        return ()
    (predicate,) = clause.clause.predicates
    if not isinstance(predicate, core.Comparison) or predicate.beside:
        return ()
    left, right = _linear(predicate.left), _linear(predicate.right)
    if left is None or right is None:
        return ()
    rises, falls = left.plus(right.times(-1.0)), right.plus(left.times(-1.0))
    match predicate.operator:
        case ">" | ">=":
            found = [_bound(rises)]
        case "<" | "<=":
            found = [_bound(falls)]
        case "=":
            found = [_bound(rises), _bound(falls)]
        case _:
            found = []
    return tuple(bound for bound in found if bound is not None)


def _bound(linear: _Linear) -> SumBound | None:
    """The bound that a linear expression is 0 or greater; None where it is not linear in the
    events."""
    if not linear.terms:
        return None
    averages = [term for term in linear.terms if term.function.function == "AVG"]
    if not averages:
        return SumBound(tuple(map(_weight, linear.terms)), -linear.constant)
    if len(linear.terms) > 1:
        return None
    (term,) = averages
    function = term.function
    weight = Weight(function.label, function.attribute, term.factor, linear.constant, term.size)
    return SumBound((weight,), 0.0)


def _weight(term: _Term) -> Weight:
    function = term.function
    if function.attribute is None:
        return Weight(function.label, None, 0.0, term.factor, term.size)
    return Weight(function.label, function.attribute, term.factor, 0.0, term.size)


def _linear(expression: Expression) -> _Linear | None:
    match expression:
        case core.Constant(value=int() | float() as value) if expression.type in _NUMBERS:
            return _Linear((), float(value))
        case core.Aggregate(function="SUM" | "AVG" | "COUNT", prior=False):
            if expression.type not in _ADDED_IN:
                return None
            return _Linear((_Term(expression, 1.0, 1.0),), 0.0)
        case core.Cast(operand=operand, type=DataType.LONG | DataType.DOUBLE):
            return _linear(operand) if operand.type in _NUMBERS else None
        case core.Negation(operand=operand, type=DataType.LONG | DataType.DOUBLE):
            inner = _linear(operand)
            return None if inner is None else inner.times(-1.0)
        case core.Arithmetic(type=DataType.LONG | DataType.DOUBLE):
            return _arithmetic(expression)
        case _:
            return None


def _arithmetic(expression: core.Arithmetic) -> _Linear | None:
    left, right = _linear(expression.left), _linear(expression.right)
    if left is None or right is None:
        return None
    match expression.operator:
        case "+":
            return left.plus(right)
        case "-":
            return left.plus(right.times(-1.0))
        case "*" if not right.terms:
            return left.times(right.constant)
        case "*" if not left.terms:
            return right.times(left.constant)
        case "/" if not right.terms and right.constant:
            return left.times(1.0 / right.constant)
        case _:
            return None

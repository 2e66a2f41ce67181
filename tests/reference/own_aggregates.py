"""The meaning of aggregates of one's own: values from position to position, as AGGREGATE says.

`STATE` gives the first values, `STEP` those after each position without a NULL among the arguments,
all computed from the values before, and `RESULT` the value of the aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import functions
from .nodes import (
    Binary,
    Both,
    Call,
    Case,
    Choice,
    Comparison,
    Condition,
    Either,
    Expression,
    Literal,
    Not,
    OwnAggregate,
    Unary,
    Variable,
)
from .values import (
    CelError,
    Datum,
    Kind,
    absolute,
    arithmetic,
    common_kind,
    compare,
    contains,
    convert,
    in_common,
    is_distinct,
    like,
    moment,
    negate,
    rlike,
)

Variables = Mapping[str, Datum]
Value = Callable[[Expression, Any], Datum]

_ORDERS = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def own_value(own: OwnAggregate, rows: Sequence[tuple[Datum, ...]]) -> Datum:
    """The value of an aggregate over positions in stream order, given its arguments at each."""
    state = {name: in_kind(value(first, {}), kind) for name, kind, first in own.state}
    kinds = {name: kind for name, kind, _ in own.state}
    for row in rows:
        if len(row) != len(own.parameters):
            raise CelError(f"{own.name} takes {len(own.parameters)} attributes")
        given = {
            name: in_kind(datum, kind)
            for (name, kind), datum in zip(own.parameters, row, strict=True)
        }
        if all(datum.value is not None for datum in given.values()):
            # All from the state before.
            state |= {
                name: in_kind(value(step, {**given, **state}), kinds[name])
                for name, step in own.steps
            }
    return in_kind(value(own.result, state), own.kind)


def in_kind(datum: Datum, kind: Kind) -> Datum:
    """The datum widened to a kind; CelError where the kind does not hold what it can be."""
    if common_kind([datum.kind, kind]) is not kind:
        raise CelError(f"{datum.kind.value} is no {kind.value}")
    if datum.value is None or datum.kind is kind:
        return Datum(kind, datum.value)
    found = convert(datum, kind)
    return Datum(kind, moment(found) if kind is Kind.TIMESTAMP else found)


def value(expression: Expression, variables: Variables) -> Datum:
    """The value of an expression of an aggregate."""
    match expression:
        case Literal():
            return expression.datum
        case Variable():
            if expression.name not in variables:
                raise CelError(f"nothing here is called {expression.name}")
            return variables[expression.name]
        case Binary():
            left, right = value(expression.left, variables), value(expression.right, variables)
            return arithmetic(expression.operator, left, right)
        case Unary():
            operand = value(expression.operand, variables)
            return negate(operand) if expression.operator == "-" else absolute(operand)
        case Choice() | Case() | Call():
            return of_values(expression, variables, value)
    raise CelError("an expression of one event, or of an aggregate, names no labels")


def of_values(expression: Choice | Case | Call, variables: Any, value_of: Value) -> Datum:
    """The value of a function, given the meaning of what it is taken of."""
    if isinstance(expression, Case):
        # All, because the kind of the result is common to all.
        ways = [value_of(one, variables) for _, one in expression.branches]
        ways.append(value_of(expression.otherwise, variables))
        _, ways = in_common(ways)
        asked = (one for one, _ in expression.branches)
        chosen = (n for n, one in enumerate(asked) if holds(one, variables, value_of) is True)
        return ways[next(chosen, -1)]
    operands = [value_of(one, variables) for one in expression.operands]
    if isinstance(expression, Choice):
        return functions.chosen(expression.function, operands)
    return functions.call(expression.function, operands, expression.zone, expression.kind)


def holds(
    condition: Condition,
    variables: Any,
    value_of: Value = value,
) -> bool | None:
    """The truth of a condition; None is SQL's unknown."""
    match condition:
        case Comparison():
            truth = truth_of(
                condition.operator, [value_of(one, variables) for one in condition.operands]
            )
            return None if truth is None else truth != condition.negated
        case Not():
            truth = holds(condition.body, variables, value_of)
            return None if truth is None else not truth
        case Both() | Either():
            sides = [holds(side, variables, value_of) for side in (condition.left, condition.right)]
            decisive = isinstance(condition, Either)
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive


def truth_of(operator: str, operands: Sequence[Datum]) -> bool | None:
    """A comparison without its NOT; None is SQL's unknown."""
    first, *others = operands
    if operator == "ISNULL":
        return first.value is None
    if operator == "LIKE":
        return like(first, others[0])
    if operator == "RLIKE":
        return rlike(first, others[0])
    if operator == "DISTINCT":
        return is_distinct(first, others[0])
    if operator == "IN":
        return contains(first, others)
    if operator == "BETWEEN":
        above = _ordered(">=", first, others[0])
        below = _ordered("<=", first, others[1])
        if above is False or below is False:
            return False
        return None if above is None or below is None else True
    return _ordered(operator, first, others[0])


def _ordered(operator: str, left: Datum, right: Datum) -> bool | None:
    order = compare(left, right)
    return None if order is None else _ORDERS[operator](order)

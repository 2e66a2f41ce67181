"""Conditions that further events of a role keep TRUE, and bounds on numbers of different values.

`COUNT(DISTINCT x.a) >= 3`, `MAX(x.a) >= y.b`, and SUM of values that are not below 0 *grow*: a
match that satisfies them still does with one more event of x. So of two matches that differ only in
such events, a selector never needs the smaller one, and no subsets are searched
(`engine.walk.latest_checked`).

The number of different values also has its own bounds, as sums have (`sum_bounds`): a match can add
at most all values that the events below a node bring.
"""

import math
from collections.abc import Set

from celc_runtime.plan.frozen import frozen
from celc_runtime.values.types import is_wide

from celc.core import formula as core
from celc.core.formula import DataType, Expression, Predicate, text_of_type
from celc.core.terms import nodes_written_in
from celc.core.traversal import nodes_of
from celc.normal import normal_form as lp
from celc.normal.flat_form import RoleClause
from celc.normal.traversal import events_of, forms_in, operands_of

MANY = 2**31  # different values; no match has as many events


@frozen
class VarietyBound:
    """A condition on a match: the events of a role have `least` to `most` different values."""

    role: str
    attribute: str
    is_text: bool
    least: int
    most: int
    asked: str | None
    """The bound is only for matches of one branch of an OR, whose events all have this role. None:
    it is for all matches."""


def variety_bound_of(clause: RoleClause) -> VarietyBound | None:
    """The bound that a clause sets. None where the clause does not count different values, or where
    the numbers that it admits are not one interval."""
    found = _sides(clause)
    if found is None:
        return None
    function, operator, limit = found
    if function.function != "DISTINCT" or function.attribute is None or function.prior:
        return None
    least, most = 0, MANY
    match operator:
        case ">" | ">=":
            least = math.floor(limit) + 1 if operator == ">" else math.ceil(limit)
        case "<" | "<=":
            most = math.ceil(limit) - 1 if operator == "<" else math.floor(limit)
        case "=":
            least, most = math.ceil(limit), math.floor(limit)
        case _:
            return None
    asked = clause.clause.labels[0] if clause.clause.labels else None
    is_text = function.read == (DataType.STRING,)
    if any(map(is_wide, function.read)):
        return None  # its columns are of pairs, which are not compared by one instruction
    return VarietyBound(function.label, function.attribute, is_text, max(0, least), most, asked)


def _sides(clause: RoleClause) -> tuple[core.Aggregate, core.ComparisonOperator, float] | None:
    """The parts of a clause that compares a function of a whole match with a number; else None."""
    labels, predicates = clause.clause.labels, clause.clause.predicates
    if clause.when != "complete" or len(predicates) != 1 or len(labels) > 1:
        return None
    (predicate,) = predicates
    if not isinstance(predicate, core.Comparison) or predicate.beside:
        return None
    left, operator, right = predicate.left, predicate.operator, predicate.right
    if isinstance(left, core.Constant):
        left, operator, right = right, core.MIRRORED[operator], left
    function = _uncast(left)
    if not isinstance(function, core.Aggregate) or not isinstance(right, core.Constant):
        return None
    value = right.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MANY:
        return None
    if any(iterations for iterations in clause.iterations):
        return None
    return function, operator, float(value)


def _uncast(expression: Expression) -> Expression:
    """An expression without casts to wider types, in which no two values change their order."""
    while isinstance(expression, core.Cast) and (
        expression.type is DataType.DOUBLE
        or (expression.type is DataType.LONG and expression.operand.type is DataType.INT)
    ):
        expression = expression.operand
    return expression


def keeps(clause: RoleClause, roles: frozenset[str], summed: Set[tuple[str, str]]) -> bool:
    """Whether a clause stays TRUE of a match that gets one more event, between two of its events.

    `roles` are those of the new event; `summed` is the result of `never_negative`.
    """
    named = {
        node.label
        for predicate in clause.clause.predicates
        for node in nodes_written_in(predicate)
        if isinstance(node, core.Aggregate | core.AttributeValue | core.Previous)
    }
    if not roles & (named | {*clause.clause.labels}):
        return True
    if clause.when != "complete" or any(iterations for iterations in clause.iterations):
        return False
    # A role of the clause that no term names tells which branch the clause belongs to. The match
    # has events of that role already, so one more changes nothing.
    if roles & {*clause.clause.labels} & named:
        return False
    return all(_grows(predicate, roles, summed) for predicate in clause.clause.predicates)


def _grows(predicate: Predicate, roles: frozenset[str], summed: Set[tuple[str, str]]) -> bool:
    named = {
        node.label
        for node in nodes_written_in(predicate)
        if isinstance(node, core.Aggregate | core.AttributeValue | core.Previous)
    }
    if not roles & named:
        return True
    if not isinstance(predicate, core.Comparison) or predicate.beside:
        return False
    left, operator, right = predicate.left, predicate.operator, predicate.right
    if not _names(left, roles):
        left, operator, right = right, core.MIRRORED[operator], left
    if _names(right, roles):
        return False
    function = _uncast(left)
    if not isinstance(function, core.Aggregate) or function.prior:
        return False
    match function.function:
        case "COUNT" | "DISTINCT" | "MAX":
            return operator in (">", ">=")
        case "MIN":
            return operator in ("<", "<=")
        case "SUM" if function.attribute is not None:
            return operator in (">", ">=") and (function.label, function.attribute) in summed
        case _:
            return False


def _names(expression: Expression, roles: frozenset[str]) -> bool:
    return any(
        isinstance(node, core.Aggregate | core.AttributeValue | core.Previous)
        and node.label in roles
        for node in nodes_of(expression)
    )


def never_negative(form: lp.NormalForm) -> frozenset[tuple[str, str]]:
    """The (role, attribute) pairs whose sum no further event makes smaller.

    A condition on each event of the role says that no value is below 0. Sums of LONG are left out,
    because they wrap around. Sums of INT have no room for enough events to wrap, and rounding keeps
    sums in order.
    """
    events: dict[str, list[lp.Event]] = {}
    for event in events_of(form):
        for mark in event.labels:
            events.setdefault(mark, []).append(event)
    return frozenset(
        (mark, attribute.name)
        for mark, carriers in events.items()
        for attribute in carriers[0].type.attributes
        if attribute.type in (DataType.INT, DataType.FLOAT, DataType.DOUBLE)
        and all(_is_never_negative(event, attribute.name) for event in carriers)
    )


def _is_never_negative(event: lp.Event, attribute: str) -> bool:
    return event.type.type_of(attribute) is None or any(
        len(clause.predicates) == 1 and _excludes_negatives(clause.predicates[0], attribute)
        for clause in event.clauses
    )


def _excludes_negatives(predicate: Predicate, attribute: str) -> bool:
    if not isinstance(predicate, core.Comparison):
        return False
    left, operator, right = predicate.left, predicate.operator, predicate.right
    if isinstance(left, core.Constant):
        left, operator, right = right, core.MIRRORED[operator], left
    if not isinstance(right, core.Constant) or not isinstance(right.value, int | float):
        return False
    left = _uncast(left)
    if not isinstance(left, core.AttributeValue):
        return False
    is_it = left.label == lp.EVENT and left.attribute == attribute
    return is_it and operator in (">", ">=", "=") and right.value >= 0


def takes_all(form: lp.NormalForm) -> bool:
    """Whether a match can take all events of a role that lie between its beginning and its end.

    Each round must be a single event, the number of rounds must have no limit, and each role must
    have one place in the formula.
    """
    found: list[str] = []
    waiting = [form]
    while waiting:
        part = waiting.pop()
        match part:
            case lp.Iteration(contiguous=False, most=None):
                inside = tuple(forms_in(part.operand))
                if not all(isinstance(one, lp.Event | lp.Disjunction | lp.Scope) for one in inside):
                    return False
                found += {mark for event in events_of(part) for mark in event.labels}
            case lp.Event():
                found += part.labels
            case lp.Sequence() | lp.Disjunction() | lp.Scope():
                waiting += operands_of(part)
            case _:
                return False
    roles = [mark for mark in found if mark.startswith(core.ROLE)]
    return len(roles) == len({*roles})


def free_rounds(form: lp.NormalForm) -> frozenset[str]:
    """The labels that all rounds of a formula's only `+` have, if its rounds are free.

    They are free if each set of events that fit the `+` makes a match with the same events around
    it. No event may fit both the `+` and the formula around it; then the type of an event tells
    where it belongs. Empty where the rounds are not free.
    """
    inside: list[lp.Event] = []
    around: list[lp.Event] = []
    waiting = [form]
    while waiting:
        part = waiting.pop()
        match part:
            case lp.Iteration(contiguous=False, least=1, most=None) if not inside:
                inside += events_of(part)
            case lp.Event():
                around.append(part)
            case lp.Scope():
                waiting.append(part.operand)
            case lp.Sequence() if not any(part.contiguous):
                waiting += part.operands
            case _:
                return frozenset()
    types = {text_of_type(event.type) for event in inside}
    if len(types) < len(inside) or any(text_of_type(event.type) in types for event in around):
        return frozenset()
    labels = [frozenset(event.labels) for event in inside]
    return labels[0].intersection(*labels) if labels else frozenset()

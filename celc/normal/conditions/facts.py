"""Predicates on functions of a label's set → facts that an automaton can keep track of.

COUNT, MIN, MAX, FIRST and LAST against constants are finite-state: the automaton remembers a truth
or a small number. Sums, averages, PREV, and comparisons across labels or between two functions are
not, or not simply. `fact_of` has no fact for them.
"""

import math

from celc.core import formula as core
from celc.core.cnf import clauses_of, size_of
from celc.core.complement import complement
from celc.core.fold import fold_predicate
from celc.core.formula import MAX_COUNT, DataType, Expression, Predicate
from celc.core.terms import constants_of, looks_back, nodes_named_in
from celc.core.traversal import Leaf, map_leaves, predicates_of
from celc.normal import normal_form as lp


class CountTooLargeError(Exception):
    """COUNT is compared with a number beyond `MAX_COUNT`."""


def every_event(label: str, predicates: tuple[Predicate, ...]) -> lp.Fact:
    """The fact that each event of a label satisfies one of the predicates, which name it EVENT."""
    return lp.Not(lp.SomeEvent(label, lp.EventClause(predicates), holds=False))


def fact_of(predicate: Predicate) -> lp.Fact | None:
    """The fact that a predicate states, if it names labels only inside aggregates. None for
    predicates that are not finite-state. Raises CountTooLargeError."""
    if isinstance(predicate, core.Quantified):
        return _quantified_fact(predicate)
    nodes = nodes_named_in(predicate)
    aggregates = [node for node in nodes if isinstance(node, core.Aggregate)]
    if any(isinstance(node, core.Previous | core.AttributeValue) for node in nodes):
        return None
    if any(aggregate.prior for aggregate in aggregates):
        return None
    functions = {aggregate.function for aggregate in aggregates}
    labels = {aggregate.label for aggregate in aggregates}
    if len(functions) != 1 or len(labels) != 1:
        return None
    (function,), (label,) = functions, labels
    if function == "FIRST" or function == "LAST":
        return _end_fact(function, label, predicate)
    if not _is_plain(predicate):
        return None
    if function == "COUNT":
        return lp.CountOf(label, _count_truths(predicate))
    if function == "MIN" or function == "MAX":
        return _extreme_fact(function, label, predicate)
    return None


_MOST_CLAUSES = 32  # of one SOME or EVERY; each is a truth that the automaton keeps


def _quantified_fact(predicate: core.Quantified) -> lp.Fact | None:
    """The fact of a SOME or EVERY of one label whose events decide it one by one: all of them
    satisfy each clause of the condition, or one of them fails a clause of the complement."""
    condition = predicate.condition
    members = predicates_of(condition)
    if any(isinstance(one, core.Quantified) or looks_back(one) for one in members):
        return None
    nodes = [node for one in members for node in nodes_named_in(one) if isinstance(node, Leaf)]
    if not all(isinstance(node, core.AttributeValue) for node in nodes):
        return None
    if len({node.label for node in nodes} | {*predicate.labels}) != 1:
        return None
    (label,) = predicate.labels
    of_all = condition if predicate.every else complement(condition)
    if max(size_of(condition).clauses, size_of(of_all).clauses) > _MOST_CLAUSES:
        return None
    if not predicate.every and len(asked := clauses_of(condition)) == 1:
        # One clause alone is asked of some event as it stands.
        clause = lp.EventClause(_undecided(asked[0].predicates))
        some: lp.Fact = lp.SomeEvent(label, clause)
        if any(map(fold_predicate, asked[0].predicates)):
            some = lp.Not(lp.CountOf(label, (True, False)))
        return lp.negated(some) if predicate.negated else some
    clauses = [
        _undecided(clause.predicates)
        for clause in clauses_of(of_all)
        if not any(map(fold_predicate, clause.predicates))
    ]
    known = [every_event(label, clause) for clause in clauses]
    fact = known[0] if len(known) == 1 else lp.all_of(known)
    return fact if predicate.every != predicate.negated else lp.negated(fact)


def _undecided(predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """The predicates that events decide, on one event."""
    return tuple(on_event(one) for one in predicates if fold_predicate(one) is None)


def _of_event(node: Leaf) -> Expression:
    """The attribute of one event in place of an attribute or aggregate of its label."""
    assert node.attribute is not None
    return core.AttributeValue(lp.EVENT, node.attribute, node.type, node.span)


def on_event(predicate: Predicate) -> Predicate:
    """The predicate on one event, from which its attributes and FIRST, LAST, MIN, MAX are read."""
    return map_leaves(predicate, _of_event)


# --- FIRST and LAST: any predicate at all, of one event -------------------------------------------


def _end_fact(end: core.AggregateFunction, label: str, predicate: Predicate) -> lp.Fact:
    assert end == "FIRST" or end == "LAST"
    of_nothing = map_leaves(predicate, lambda node: core.Constant(None, node.type, node.span))
    event = on_event(predicate)
    truth = fold_predicate(event)
    clause = lp.EventClause(() if truth is False else (event,))
    bound: lp.Fact = lp.EndEvent(end, label, clause)
    if truth is True:
        bound = lp.Not(lp.CountOf(label, (True, False)))
    if fold_predicate(of_nothing):
        return lp.AnyOf((bound, lp.CountOf(label, (True, False))))
    return bound


# --- COUNT, MIN, MAX against constants ------------------------------------------------------------


def _is_plain(predicate: Predicate) -> bool:
    """Whether an aggregate itself is compared with constants, without arithmetic on it."""

    def is_aggregate(expression: Expression) -> bool:
        while isinstance(expression, core.Cast):
            expression = expression.operand
        return isinstance(expression, core.Aggregate)

    match predicate:
        case core.Comparison(left=left, right=core.Constant()):
            return is_aggregate(left)
        case core.Comparison(left=core.Constant(), right=right):
            return is_aggregate(right)
        case core.Membership() | core.NullTest():
            return is_aggregate(predicate.operand)
        case _:
            return False


def _count_truths(predicate: Predicate) -> tuple[bool, ...]:
    numbers = [
        number
        for number in constants_of(predicate)
        if isinstance(number, int | float)
        and not (isinstance(number, float) and math.isnan(number))
    ]
    # Infinity is above every count, and above MAX_COUNT too, so it is refused like a large number.
    above = max((0 if number < 0 else number for number in numbers), default=0)
    if above > MAX_COUNT:
        raise CountTooLargeError
    truths = [
        bool(
            fold_predicate(
                map_leaves(
                    predicate, lambda node, n=n: core.Constant(n, DataType.LONG, node.span)  # type: ignore[misc]
                )
            )
        )
        for n in range(math.ceil(above) + 2)
    ]
    while len(truths) > 1 and truths[-1] == truths[-2]:
        truths.pop()
    return tuple(truths)


def _extreme_fact(function: core.AggregateFunction, label: str, predicate: Predicate) -> lp.Fact:
    """The fact of a MIN or MAX. The values that occur decide it; NULL is skipped, NaN is largest.

    "Some event is below c" and "some event is at c" express each comparison of the minimum with c.
    For instance, the minimum is above c if some value occurs and none is at c or below.
    """
    occurs = lp.SomeEvent(label, lp.EventClause((_not_null(predicate),)))
    match predicate:
        case core.NullTest():
            return occurs if predicate.negated else lp.Not(occurs)
        case core.Membership():
            equal = [
                _compared_fact(function, label, occurs, "=", predicate.operand, constant)
                for constant in _constants_of_list(predicate)
            ]
            if not predicate.negated:
                return lp.AnyOf(tuple(equal))
            if predicate.has_null:
                return lp.NEVER_TRUE
            return lp.all_of([occurs, *map(lp.Not, equal)])
        case core.Comparison():
            left, right, operator = predicate.left, predicate.right, predicate.operator
            if isinstance(left, core.Constant):
                left, right, operator = right, left, core.MIRRORED[operator]
            assert isinstance(right, core.Constant)
            if right.value is None:
                return lp.NEVER_TRUE
            return _compared_fact(function, label, occurs, operator, left, right)
        case _:
            raise AssertionError("only plain predicates come here")


def _compared_fact(
    function: core.AggregateFunction,
    label: str,
    occurs: lp.Fact,
    operator: core.ComparisonOperator,
    operand: Expression,
    constant: core.Constant,
) -> lp.Fact:
    beyond: core.Comparison = _event_comparison(
        "<" if function == "MIN" else ">", operand, constant
    )
    further = lp.SomeEvent(label, lp.EventClause((beyond,)))
    equal = lp.SomeEvent(label, lp.EventClause((_event_comparison("=", operand, constant),)))
    if function == "MAX":
        operator = core.MIRRORED[operator]  # > is for the maximum what < is for the minimum
    match operator:
        case "<":
            return further
        case "<=":
            return lp.AnyOf((further, equal))
        case ">":
            return lp.all_of([occurs, lp.Not(further), lp.Not(equal)])
        case ">=":
            return lp.all_of([occurs, lp.Not(further)])
        case "=":
            return lp.all_of([equal, lp.Not(further)])
        case _:
            return lp.all_of([occurs, lp.Not(lp.all_of([equal, lp.Not(further)]))])


def _event_comparison(
    operator: core.ComparisonOperator, operand: Expression, constant: core.Constant
) -> core.Comparison:
    comparison = on_event(core.Comparison(operator, operand, constant, operand.span))
    assert isinstance(comparison, core.Comparison)
    return comparison


def _constants_of_list(predicate: core.Membership) -> list[core.Constant]:
    type_ = predicate.operand.type
    return [core.Constant(value, type_, predicate.span) for value in predicate.values]


def _not_null(predicate: Predicate) -> Predicate:
    (aggregate,) = [node for node in nodes_named_in(predicate) if isinstance(node, core.Aggregate)]
    return on_event(core.NullTest(aggregate, True, predicate.span))

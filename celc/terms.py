"""What conditions are made of: the expressions in a predicate, and the labels they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, assert_never

from celc import formula as core
from celc.fold import operands_of
from celc.formula import Clause, Expression, Predicate

Leaf: TypeAlias = core.AttributeValue | core.Aggregate | core.Previous


def nodes_of(expression: Expression) -> list[Expression]:
    """An expression and all within it."""
    match expression:
        case core.Arithmetic():
            return [expression, *nodes_of(expression.left), *nodes_of(expression.right)]
        case core.Negation() | core.Absolute() | core.Cast():
            return [expression, *nodes_of(expression.operand)]
        case _:
            return [expression]


def nodes_named_in(predicate: Predicate) -> list[Expression]:
    """All expressions within a predicate."""
    return [node for operand in operands_of(predicate) for node in nodes_of(operand)]


def labels_named(predicate: Predicate) -> set[str]:
    """The labels that a predicate names, inside functions too."""
    return {
        node.label
        for node in nodes_named_in(predicate)
        if isinstance(node, core.AttributeValue | core.Aggregate | core.Previous)
    }


def labels_of_clause(clause: Clause) -> frozenset[str]:
    """The labels that a clause names, inside functions too."""
    return frozenset[str]({*clause.labels}).union(*map(labels_named, clause.predicates))


def labels_in_order(clause: Clause) -> tuple[str, ...]:
    """The labels of a clause: those chosen from, then those in functions alone."""
    return (*clause.labels, *sorted(labels_of_clause(clause) - {*clause.labels}))


def looks_back(predicate: Predicate) -> bool:
    """Whether a predicate asks with PREV or PRIOR for what came before a position."""
    return bool(labels_looked_back_at(predicate))


def labels_looked_back_at(predicate: Predicate) -> set[str]:
    """The labels of which a predicate takes PREV or PRIOR, or the comparison that it is a part of:
    it counts as TRUE at their first positions."""
    beside = predicate.beside if isinstance(predicate, core.Comparison | core.Membership) else ()
    return {
        node.label
        for operand in (*operands_of(predicate), *beside)
        for node in nodes_of(operand)
        if isinstance(node, core.Previous) or (isinstance(node, core.Aggregate) and node.prior)
    }


def map_expression(node: Expression, change: Callable[[Leaf], Expression]) -> Expression:
    """The expression with each attribute and function replaced."""
    match node:
        case core.Arithmetic():
            left, right = map_expression(node.left, change), map_expression(node.right, change)
            return core.Arithmetic(node.operator, left, right, node.type, node.span)
        case core.Negation() | core.Absolute() | core.Cast():
            return replace(node, operand=map_expression(node.operand, change))
        case core.Constant():
            return node
        case core.AttributeValue() | core.Aggregate() | core.Previous():
            return change(node)
        case _:
            assert_never(node)


def map_leaves(predicate: Predicate, change: Callable[[Leaf], Expression]) -> Predicate:
    """The predicate with each attribute and function replaced, those beside it left out."""
    match predicate:
        case core.Comparison():
            left, right = (map_expression(e, change) for e in (predicate.left, predicate.right))
            return replace(predicate, left=left, right=right, beside=())
        case core.Membership():
            return replace(predicate, operand=map_expression(predicate.operand, change), beside=())
        case core.PatternMatch() | core.NullTest():
            return replace(predicate, operand=map_expression(predicate.operand, change))
        case _:
            assert_never(predicate)

"""What conditions are made of: the expressions in a predicate, and the labels they name."""

from __future__ import annotations

from celc import formula as core
from celc.fold import operands_of
from celc.formula import Clause, Expression, Predicate


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


def looks_back(predicate: Predicate) -> bool:
    """Whether a predicate asks with PREV or PRIOR for what came before a position."""
    return any(
        isinstance(node, core.Previous) or (isinstance(node, core.Aggregate) and node.prior)
        for node in nodes_named_in(predicate)
    )

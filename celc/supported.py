"""What this version cannot compile yet, with its places: the parts that `normalize` refuses."""

from __future__ import annotations

from typing import assert_never

from celc import formula as core
from celc.errors import Diagnostic, error
from celc.facts import (
    MAX_COUNT,
    CountTooLargeError,
    fact_of,
    nodes_of,
)
from celc.fold import operands_of
from celc.formula import Clause, Expression, Predicate
from celc.source import Span


def _unsupported(span: Span, what: str) -> Diagnostic:
    return error(
        "not-supported",
        span,
        f"{what} not supported yet",
        help=(
            "supported so far in conditions: attributes of one event, and COUNT, MIN, MAX, FIRST "
            "or LAST of one label compared with constants",
        ),
    )


def unsupported_in(formula: core.Formula) -> list[Diagnostic]:
    """The places of a formula that this version cannot compile, in the order of the text."""
    match formula:
        case core.Atom():
            return []
        case core.As() | core.Rename() | core.Project() | core.Iteration() | core.Selector():
            return unsupported_in(formula.operand)
        case core.Filter():
            return [
                *unsupported_in(formula.operand),
                *(found for clause in formula.clauses for found in _unsupported_clause(clause)),
            ]
        case core.Sequence() | core.Disjunction():
            return [found for operand in formula.operands for found in unsupported_in(operand)]
        case core.Absence():
            return [
                *unsupported_in(formula.left),
                *unsupported_in(formula.middle),
                *unsupported_in(formula.right),
            ]
        case core.Conjunction() | core.All() | core.Unless():
            return [*unsupported_in(formula.left), *unsupported_in(formula.right)]
        case _:
            assert_never(formula)


def _unsupported_clause(clause: Clause) -> list[Diagnostic]:
    found = []
    for predicate in clause.predicates:
        nodes = nodes_named_in(predicate)
        functions = [node for node in nodes if isinstance(node, core.Aggregate)]
        previous = [node for node in nodes if isinstance(node, core.Previous)]
        labels = labels_named(predicate)
        try:
            if functions and fact_of(predicate) is not None:
                continue
        except CountTooLargeError:
            found.append(
                error(
                    "count-too-large",
                    predicate.span,
                    f"COUNT can be compared with numbers up to {MAX_COUNT:,} only",
                    help=(
                        "each number up to it is a state of the automaton: use a smaller one, or "
                        "count in the rows of the output",
                    ),
                )
            )
            continue
        for node in functions:
            name = f"{node.function}(PRIOR …)" if node.prior else f"{node.function}(…)"
            where = "" if node.prior or node.function in ("SUM", "AVG") else " of this shape"
            found.append(_unsupported(node.span, f"{name} in a condition{where} is"))
        found.extend(_unsupported(node.span, "PREV in a condition is") for node in previous)
        if not functions and not previous and len(labels) > 1:
            names = " and ".join(f"'{label}'" for label in sorted(labels))
            found.append(_unsupported(predicate.span, f"a condition that compares {names} is"))
    return found


def nodes_named_in(predicate: Predicate) -> list[Expression]:
    """All expressions within a predicate."""
    return [node for operand in operands_of(predicate) for node in nodes_of(operand)]


def labels_named(predicate: Predicate) -> set[str]:
    """The labels that a predicate names, inside aggregates too."""
    return {
        node.label
        for node in nodes_named_in(predicate)
        if isinstance(node, core.AttributeValue | core.Aggregate | core.Previous)
    }

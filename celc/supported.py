"""What cannot be compiled, with its places: COUNT against numbers that are too large."""

from __future__ import annotations

from typing import assert_never

from celc import formula as core
from celc.errors import Diagnostic, error
from celc.facts import MAX_COUNT, CountTooLargeError, fact_of
from celc.formula import Clause


def unsupported_in(formula: core.Formula) -> list[Diagnostic]:
    """The places of a formula that cannot be compiled, in the order of the text."""
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
        try:
            fact_of(predicate)
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
    return found

"""What cannot be compiled, with its places: COUNT against numbers that are too large."""

from __future__ import annotations

from celc.core import formula as core
from celc.core.formula import Clause
from celc.core.traversal import formulas_in
from celc.diagnostics.errors import Diagnostic, error
from celc.normal.facts import CountTooLargeError, fact_of


def unsupported_in(formula: core.Formula) -> list[Diagnostic]:
    """The places of a formula that cannot be compiled, in the order of the text."""
    filters = [part for part in formulas_in(formula) if isinstance(part, core.Filter)]
    clauses = [clause for part in reversed(filters) for clause in part.clauses]
    return [found for clause in clauses for found in _unsupported_clause(clause)]


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
                    f"COUNT can be compared with numbers up to {core.MAX_COUNT:,} only",
                    help=(
                        "each number up to it is a state of the automaton: use a smaller one, or "
                        "count in the rows of the output",
                    ),
                )
            )
    return found

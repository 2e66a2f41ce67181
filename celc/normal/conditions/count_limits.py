"""The largest numbers that COUNT can be compared with, and the places that exceed them."""

from celc.core import formula as core
from celc.core.formula import Clause
from celc.core.traversal import formulas_in
from celc.diagnostics.errors import Diagnostic, error
from celc.normal.conditions.facts import CountTooLargeError, fact_of


def counts_too_large_in(formula: core.Formula) -> list[Diagnostic]:
    """An error for each COUNT that is compared with too large a number, in text order."""
    filters = [part for part in formulas_in(formula) if isinstance(part, core.Filter)]
    clauses = [clause for part in reversed(filters) for clause in part.clauses]
    return [found for clause in clauses for found in _counts_too_large(clause)]


def _counts_too_large(clause: Clause) -> list[Diagnostic]:
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
                    "each number up to it is a state of the automaton: use a smaller one, or "
                    "count in the rows of the output",
                )
            )
    return found

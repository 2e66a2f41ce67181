"""Warnings about the way a query is run, which is known when it has been compiled."""

from __future__ import annotations

from celc.diagnostics.errors import Diagnostic, warning
from celc.diagnostics.source import Span


def totals_by_listing(purpose: str, reason: str, span: Span) -> Diagnostic:
    """`SELECT TOTAL COUNT(*) AS n WHERE A+ ; B FILTER …` with a condition across events."""
    return warning(
        "totals-by-listing",
        span,
        f"the matches are listed to be {purpose}, because {reason}, and that takes as long as the "
        "same query with SELECT *",
        help=("conditions on single events, or a shorter WITHIN, make the list shorter",),
    )

"""Messages about the way a query is run, which is known when it has been compiled."""

from collections.abc import Sequence

from celc.diagnostics.errors import Diagnostic, error, warning
from celc.diagnostics.source import Span


def totals_by_listing(
    purpose: str, reasons: Sequence[str], instead: tuple[str, ...], span: Span
) -> Diagnostic:
    """`SELECT TOTAL COUNT(*) AS n WHERE A+ ; B FILTER …` with a condition across events."""
    return warning(
        "totals-by-listing",
        span,
        f"the matches are listed to be {purpose}, and that takes as long as the same query with "
        f"SELECT *: {'; '.join(reasons)}",
        *instead,
        "conditions on single events, or a shorter WITHIN, make the list shorter",
    )


def by_definition(reason: str, growth: str, *, bounded: bool, span: Span) -> Diagnostic:
    """`SELECT * WHERE A AS x ; !(B AS y ; C AS z FILTER y.id < z.id) ; A`.

    `growth`: of the time, as `grows with the square of …`. `bounded`: by a window."""
    fewer = ("a shorter WITHIN leaves fewer events to look at",) if bounded else ()
    return warning(
        "by-definition",
        span,
        f"matches are found by the definition of the formula, in plain Python, because {reason}; "
        f"the time {growth}",
        "conditions on single events, and equalities between labels, are compiled in more "
        "places than other conditions: see docs/costs.md",
        *fewer,
    )


def not_joins(what: str, span: Span) -> Diagnostic:
    """`SELECT * WHERE A+ ; B`, compiled `--to spark-sql`"""
    return error(
        "not-joins",
        span,
        f"this query cannot be written as joins: {what}",
        "joins find sequences (`;`) and ALL of up to six single events, with FILTER, UNLESS "
        "and `!` of a single event, `{m,n}`, OR, and a window on the order column",
        "without --to, celc compiles any query to a module",
    )

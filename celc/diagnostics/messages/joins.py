"""Errors of queries that cannot be written as joins."""

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.source import Span


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

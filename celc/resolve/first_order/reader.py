"""The first-order reading of all queries of a file, with the warnings that it changes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.source import Source, Span
from celc.resolve.first_order.bounds import Bounds
from celc.resolve.first_order.checks import check
from celc.resolve.first_order.rewriting import ONE_POSITION, safe_query

MAX_EVENTS = 20_000
"""How many events the cases of one part of a formula may have together."""


def read_first_order(
    queries: tuple[core.Query, ...],
    warnings: tuple[Diagnostic, ...],
    source: Source,
    *,
    max_events: int = MAX_EVENTS,
) -> tuple[tuple[core.Query, ...], tuple[Diagnostic, ...]]:
    """The queries of a file with safe formulas, and all warnings about them.

    `warnings` are those of the resolver; the warnings about labels as sets are dropped. A formula
    without a match becomes an OR of nothing. Raises CelError where a formula goes beyond the
    first-order reading, or where its cases have more than `max_events` events.
    """
    found = Diagnostics(source)
    bounds = [Bounds(query) for query in queries]
    checked = [check(query, bound, found) for query, bound in zip(queries, bounds, strict=True)]
    judged = frozenset[Span]().union(*(findings.judged for findings in checked))
    found.extend(_still_true(warnings, judged))
    found.raise_errors()
    safe = tuple(
        safe_query(query, bound, findings.confused, found, max_events)
        for query, bound, findings in zip(queries, bounds, checked, strict=True)
    )
    found.raise_errors()
    return safe, found.in_order()


def _still_true(warnings: Iterable[Diagnostic], judged: frozenset[Span]) -> Iterator[Diagnostic]:
    """The resolver's warnings, except those that are errors or wrong in the first-order reading."""
    for warning in warnings:
        match warning.code:
            case "unsafe-label" | "first-instead":
                continue
            case "maybe-unbound" if warning.span in judged:
                continue
            case "single-position":
                yield replace(warning, help=(ONE_POSITION,))
            case _:
                yield warning

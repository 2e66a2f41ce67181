"""Queries that ask for an order of simultaneous events (`ties="simultaneous"`)."""

from collections.abc import Sequence

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import quote, quoted, written
from celc.diagnostics.source import Span

_OTHERWISE = (
    "without --ties simultaneous events have one order each: name a column that tells equal ones "
    "apart with --tiebreak"
)


_OF_READERS = "in a query that reads queries, events that end at one time are simultaneous"


def _otherwise(*, reads: bool) -> str:
    return _OF_READERS if reads else _OTHERWISE


def needs_order(part: str, span: Span, *, reads: bool) -> Diagnostic:
    """`SELECT LAST`, `NXT(…)`, `LIMIT 1` or `CONSUME BY ANY` with `--ties simultaneous`; `reads`:
    in a query that reads queries."""
    message = f"{part} chooses by the order of events, and simultaneous events have none"
    return error("simultaneous-order", span, message, "leave it out", _otherwise(reads=reads))


def window_of_events(span: Span, *, reads: bool) -> Diagnostic:
    """`WITHIN 3 EVENTS` or `!B FOR 3 EVENTS ; A` with `--ties simultaneous`; `reads` as above."""
    return error(
        "simultaneous-window",
        span,
        "EVENTS are counted in their order, and simultaneous events have none",
        "measure it on an order column: 10 SECONDS, or 10 [ts]",
        _otherwise(reads=reads),
    )


def window_off_order(name: str, order_by: Sequence[str], span: Span, *, reads: bool) -> Diagnostic:
    """`WITHIN 3 [mileage]` with `--order-by ts --ties simultaneous`; `reads` as above."""
    by_both = f"order by it too: --order-by {','.join(map(written, (*order_by, name)))}"
    return error(
        "window-off-order",
        span,
        f"this window or length is measured on {quote(name)}, in which simultaneous events can "
        "differ",
        f"measure it on an order column ({quoted(order_by)})",
        _OF_READERS if reads else by_both,
    )


def other_event(span: Span) -> Diagnostic:
    """`NOT(A FILTER a.x > 1)` with `--ties simultaneous`."""
    message = "NOT(…) of more than an event type looks at all events of an instant, and not at one"
    hint = "write the events that it stands for: other types, or the opposite condition"
    return error("simultaneous-not", span, message, hint)


def no_order_columns(span: Span) -> Diagnostic:
    """`--ties simultaneous` without order columns."""
    message = "no order columns tell which events are simultaneous"
    hint = "name them: --order-by ts, or order_by='ts' in Python"
    return error("simultaneous-without-order", span, message, hint)

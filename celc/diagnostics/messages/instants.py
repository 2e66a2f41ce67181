"""Queries that ask for an order of simultaneous events (`ties="simultaneous"`)."""

from collections.abc import Sequence

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import quote, quoted, written
from celc.diagnostics.source import Span

_OTHERWISE = (
    "without --ties simultaneous events have one order each: name a column that tells equal ones "
    "apart with --tiebreak"
)


_OF_LASTING = "where events last, those that end at one time are simultaneous"


def _otherwise(*, lasts: bool) -> str:
    return _OF_LASTING if lasts else _OTHERWISE


def needs_order(
    part: str, span: Span, *, consumes: bool = False, lasts: bool = False
) -> Diagnostic:
    """`SELECT LAST`, `NXT(…)`, `LIMIT 1` or, with `consumes`, `CONSUME BY ANY` with
    `--ties simultaneous`; `lasts`: among events that last."""
    why, hint = "chooses by the order of events, and simultaneous events have none", "leave it out"
    if consumes:
        why = "begins anew at the next event, and simultaneous events have none"
    if lasts:
        why = (
            "begins anew at the event after a match, and where events last, one that ends after a "
            "match can have begun before its end"
        )
        hint = "leave it out, or choose matches that do not overlap with SELECT FIRST DISJOINT"
    return error("simultaneous-order", span, f"{part} {why}", hint, _otherwise(lasts=lasts))


def window_of_events(span: Span, *, lasts: bool) -> Diagnostic:
    """`WITHIN 3 EVENTS` or `!B FOR 3 EVENTS ; A` with `--ties simultaneous`; `lasts` as above."""
    return error(
        "simultaneous-window",
        span,
        "EVENTS are counted in their order, and simultaneous events have none",
        "measure it on an order column: 10 SECONDS, or 10 [ts]",
        _otherwise(lasts=lasts),
    )


def window_off_order(name: str, order_by: Sequence[str], span: Span, *, lasts: bool) -> Diagnostic:
    """`WITHIN 3 [mileage]` with `--order-by ts --ties simultaneous`; `lasts` as above."""
    told = f"this window or length is measured on {quote(name)}"
    by_both = f"order by it too: --order-by {','.join(map(written, (*order_by, name)))}"
    by_end = "it begins at the start of a match all the same"
    return error(
        "window-off-order",
        span,
        (
            f"{told}, and one of events that last goes from a start to an end"
            if lasts
            else f"{told}, in which simultaneous events can differ"
        ),
        f"measure it on an order column ({quoted(order_by)})",
        by_end if lasts else by_both,
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

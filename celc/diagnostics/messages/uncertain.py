"""Messages about streams whose events have uncertain times, and about WITH CONFIDENCE.

Each docstring shows what causes the message; the times of `Readings` are [low, high] BY 1 SECOND.
"""

from collections.abc import Sequence

from celc.diagnostics.errors import Diagnostic, Related, error
from celc.diagnostics.messages.wording import available, guess, guessed, quote, quoted, written
from celc.diagnostics.source import Span

_POSSIBLE = (
    "with uncertain time a formula is made of event types, `;`, `; ! ;`, `+`, `{…}`, `?`, OR, AND, "
    "ALL, UNLESS, WITHIN[…], AS, PROJECT, renaming and FILTER"
)


def two_times(span: Span) -> Diagnostic:
    """`UNCERTAIN [low] BY 1` and `UNCERTAIN [low, low] BY 1`."""
    message = "UNCERTAIN needs two attributes: the least time of an event, and the greatest"
    return error("uncertain-times", span, message, "write UNCERTAIN [low, high] BY 1 SECOND")


def lacking_time(name: str, event_type: str, offered: Sequence[str], span: Span) -> Diagnostic:
    """`UNCERTAIN [low, high]` where an event type has no attribute high."""
    return error(
        "uncertain-attribute",
        span,
        f"event type {quote(event_type)} has no attribute {quote(name)}",
        *guess(name, offered),
        "every event type of the stream declares the attributes of UNCERTAIN and WEIGHTED",
        *available("attributes", offered),
        fixes=guessed(name, offered, span),
    )


def time_types(low: str, high: str, span: Span) -> Diagnostic:
    """`UNCERTAIN [low, high]` where low is a LONG and high an INT, or both are DOUBLE."""
    return error(
        "uncertain-type",
        span,
        f"the two times are {low} and {high}; they must be of one type, and that LONG, INT, "
        "TIMESTAMP or DATE",
        "declare both as LONG, INT, TIMESTAMP or DATE",
    )


def wrong_step(type: str, span: Span) -> Diagnostic:
    """`BY 1 SECOND` between whole numbers, `BY 0`, `BY 0.5`, `BY 1 HOUR` between DATEs."""
    needed = {
        "TIMESTAMP": "a duration, such as BY 1 SECOND",
        "DATE": "whole days, such as BY 1 DAY",
    }.get(type, "a whole number from 1 on, such as BY 1")
    message = f"the step between two possible times of type {type} must be {needed}"
    return error("uncertain-step", span, message, f"write {needed.rpartition(' as ')[2]}")


def no_weights(name: str, type: str, event_type: str, span: Span) -> Diagnostic:
    """`WEIGHTED value` where value is a DOUBLE."""
    return error(
        "uncertain-weights",
        span,
        f"the weights of the possible times of an event are an ARRAY<DOUBLE>, one for each time; "
        f"{quote(name)} of {quote(event_type)} is {type}",
        f"declare it as {written(name)}: ARRAY<DOUBLE>",
    )


def weights_elsewhere(name: str, span: Span) -> Diagnostic:
    """`a.w[0] > 0.5`, `SELECT a[w]` and `PARTITION BY w` where the stream is WEIGHTED w."""
    return error(
        "uncertain-weights-elsewhere",
        span,
        f"{quote(name)} has the weights of the possible times of an event, and may stand in "
        "nothing else",
        "give the table a second column with these values",
    )


def goes_by_order(text: str, label: str, span: Span) -> Diagnostic:
    """`SELECT LAST(b.v) AS last WHERE B+ AS b` over Readings."""
    return error(
        "uncertain-value",
        span,
        f"{quote(text)} goes by the order of the events of {quote(label)}, which is not the same "
        "in all worlds of a row",
        "MIN, MAX, SUM, AVG and COUNT have one value in all of them",
    )


def other_streams(names: Sequence[str], span: Span) -> Diagnostic:
    """`FROM Readings, Alarms` where the times of Alarms are certain, or others."""
    return error(
        "uncertain-streams",
        span,
        f"the streams {quoted(names)} do not say in the same way when their events are",
        "give all streams that the query reads the same UNCERTAIN [low, high] BY …",
        "an event of certain time has low = high",
    )


def not_possible(part: str, span: Span) -> Diagnostic:
    """`A : B`, `A ; !B`, `SELECT LAST *`, `LIMIT 1`, … over Readings."""
    message = f"{part} has no meaning where the time of events is uncertain"
    return error("uncertain-part", span, message, _POSSIBLE)


def not_expected(text: str, span: Span) -> Diagnostic:
    """`SELECT TOTAL SUM(b.v) AS s` over Readings."""
    message = f"of matches with uncertain time TOTAL has their expected number, and no {text}"
    return error("uncertain-total", span, message, "write COUNT(*): it is a DOUBLE here")


def threshold_of_total(span: Span) -> Diagnostic:
    """`SELECT TOTAL COUNT(*) AS n … WITH CONFIDENCE >= 0.5`."""
    message = "the expected number of matches is that of all of them, likely or not"
    hint = "leave out WITH CONFIDENCE, or add up the column `confidence` of SELECT *"
    return error("uncertain-total-confidence", span, message, hint)


def uncertain_spans(span: Span) -> Diagnostic:
    """`SELECT TOTAL COUNT(*) AS n … PER 1 HOUR` over Readings."""
    message = "a match can end in several of these spans, because its time is uncertain"
    return error("uncertain-total-span", span, message, "write PER END or PER PARTITION")


def other_window(low: str, is_time: bool, span: Span) -> Diagnostic:
    """`WITHIN 3 EVENTS` and `WITHIN 3 [value]` over Readings; `is_time`: low is a time and no whole
    number."""
    example = "WITHIN 10 SECONDS" if is_time else f"WITHIN 10 [{written(low)}]"
    message = "a window over uncertain time is a length of that time"
    return error("uncertain-window", span, message, f"write it as in {example}")


def other_order(low: str, span: Span) -> Diagnostic:
    """`--order-by ts` and `--ties simultaneous` over Readings."""
    return error(
        "uncertain-order",
        span,
        f"events of uncertain time are ordered by {quote(low)}, and events of one time are "
        "simultaneous in each possible order",
        "leave out --order-by and --ties",
    )


def unlabelled(event_type: str, span: Span) -> Diagnostic:
    """`SELECT B … WHERE A ; B` over Readings."""
    return error(
        "uncertain-label",
        span,
        f"no label that SELECT keeps says which {quote(event_type)} takes part, and the confidence "
        "is that of the events of a match",
        "SELECT *, or name a label of each event",
    )


def confidence_operator(operator: str, span: Span) -> Diagnostic:
    """`WITH CONFIDENCE < 0.5`."""
    message = f"CONFIDENCE {operator} does not bound it from below"
    return error("confidence-operator", span, message, "write WITH CONFIDENCE >= 0.5, or > 0.5")


def confidence_range(span: Span) -> Diagnostic:
    """`WITH CONFIDENCE >= 80`."""
    message = "a confidence is a number from 0 to 1"
    return error("confidence-range", span, message, "write 0.8 for 80 percent")


def certain_time(streams: Sequence[str], span: Span, declared: Span | None) -> Diagnostic:
    """`WITH CONFIDENCE >= 0.5` over a stream that is not UNCERTAIN."""
    related = () if declared is None else (Related(declared, "declared here"),)
    return error(
        "confidence-of-certain-time",
        span,
        f"the time of the events of {quoted(streams)} is certain, so every match is",
        "leave WITH CONFIDENCE out, or declare two times for each event: CREATE STREAM S "
        "UNCERTAIN [low, high] BY 1 SECOND { … }",
        related=related,
    )

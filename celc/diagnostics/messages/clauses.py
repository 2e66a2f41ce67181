"""Clauses that cannot be: order columns, windows, partitions, limits, and formulas too deep."""

from collections.abc import Collection, Sequence

from celc.diagnostics.errors import Diagnostic, Fix, Related, error
from celc.diagnostics.messages.wording import (
    available,
    quote,
    quoted,
    type_as_value,
    unknown,
    written,
)
from celc.diagnostics.source import Span

# --- order columns --------------------------------------------------------------------------------


def unknown_order_column(name: str, attributes: Collection[str], span: Span) -> Diagnostic:
    """`--order-by tz` where no event type has it."""
    return unknown(
        "unknown-order-column",
        span,
        f"the order column {quote(name)} is not an attribute of these streams",
        name,
        "attributes that every event type has",
        attributes,
    )


def partial_order_column(name: str, lacking: Collection[str], span: Span) -> Diagnostic:
    """`--order-by ts` where some event types lack it."""
    return error(
        "partial-order-column",
        span,
        f"events of type {quoted(lacking)} have no attribute {quote(name)}, so it cannot order the "
        "stream",
        "order by an attribute of all event types, or declare it for these too",
    )


def repeated_order_column(name: str, span: Span) -> Diagnostic:
    """`--order-by ts,ts`."""
    message = f"the order column {quote(name)} is named twice"
    return error("repeated-order-column", span, message, "name each order column once")


# --- windows --------------------------------------------------------------------------------------


def unknown_window_attribute(name: str, attributes: Collection[str], span: Span) -> Diagnostic:
    """`WITHIN 3 [tz]` where no event type has it."""
    return unknown(
        "unknown-window-attribute",
        span,
        f"no event type of these streams has an attribute {quote(name)} to measure the window on",
        name,
        "attributes that every event type has",
        attributes,
    )


def partial_window_attribute(name: str, lacking: Collection[str], span: Span) -> Diagnostic:
    """`WITHIN 3 [ts]` where some event types lack it."""
    return error(
        "partial-window-attribute",
        span,
        f"events of type {quoted(lacking)} have no attribute {quote(name)}, so no window can be "
        "measured on it",
        "measure on an attribute of all event types, or declare it for these too",
    )


_AS_TIMESTAMP = (
    "declare the attribute as TIMESTAMP, which reads a column without a zone as UTC: windows of "
    "time are measured on points of time"
)


def duration_on_other_type(
    name: str, type: str, numeric: bool, times: Collection[str], span: Span
) -> Diagnostic:
    """`WITHIN 10 SECONDS [id]`; `times` are attributes that would do."""
    advice = [f"a number measures it: WITHIN 10 [{name}]"] if numeric else []
    if type == "TIMESTAMP_NTZ":
        advice = [_AS_TIMESTAMP]
    return error(
        "duration-on-other-type",
        span,
        f"a duration needs a TIMESTAMP or DATE, but {quote(name)} is {type}",
        *advice,
        *available("attributes of all event types that hold a time", times),
        fixes=tuple(Fix(span, written(one)) for one in times),
    )


def number_on_other_type(
    name: str, type: str, is_time: bool, numbers: Collection[str], span: Span
) -> Diagnostic:
    """`WITHIN 10 [ts]`; `numbers` are attributes that would do."""
    advice = [f"a duration measures it: WITHIN 10 SECONDS [{name}]"] if is_time else []
    needed = "a numeric attribute"
    if type.startswith("DECIMAL"):
        needed = "an attribute of type BYTE, SHORT, INT, LONG, FLOAT or DOUBLE"
        advice = [
            "declare an attribute that is computed from it, "
            f"size: DOUBLE = CAST({written(name)} AS DOUBLE), and measure on that: WITHIN … [size]"
        ]
    return error(
        "number-on-other-type",
        span,
        f"a plain number needs {needed}, but {quote(name)} is {type}",
        *advice,
        *available("attributes of all event types that hold a number", numbers),
        fixes=tuple(Fix(span, written(one)) for one in numbers),
    )


def unmeasured_window(
    order_column: str | None, type: str | None, times: Collection[str], span: Span
) -> Diagnostic:
    """`WITHIN 10 SECONDS` without a first order column that is a time."""
    if order_column is None:
        message = "nothing says which attribute measures this window"
    else:
        message = (
            f"this window is measured on the first order column, {quote(order_column)}, which is "
            f"{type} and no time"
        )
    if times:
        example = next(iter(times))
        advice = (
            f"name a TIMESTAMP or DATE attribute after the duration, [{example}], or order the "
            f"stream by it, --order-by {example}"
        )
    else:
        advice = "declare a TIMESTAMP or DATE attribute for every event type, and name it here"
    help = (_AS_TIMESTAMP, advice) if type == "TIMESTAMP_NTZ" else (advice,)
    fixes = tuple(Fix(Span(span.end, span.end), f" [{written(one)}]") for one in times)
    return error("unmeasured-window", span, message, *help, fixes=fixes)


def whole_window(span: Span) -> Diagnostic:
    """`WITHIN 1.5 EVENTS`."""
    message = "a window of events needs a whole number"
    hint = "WITHIN 3 EVENTS admits a span of four events, WITHIN 0 EVENTS single events"
    return error("whole-window", span, message, hint)


def window_too_large(span: Span) -> Diagnostic:
    """`WITHIN 1e300 DAYS`."""
    message = "this window is too large: sizes go up to 2^62 events, microseconds or units"
    hint = "leave WITHIN out where matches of any length are wanted"
    return error("window-too-large", span, message, hint)


def fraction_of_microsecond(span: Span) -> Diagnostic:
    """`WITHIN 0.0001 MILLISECONDS`."""
    message = "this duration is not a whole number of microseconds"
    return error("fraction-of-microsecond", span, message, "times have microseconds, nothing finer")


# --- the other clauses ----------------------------------------------------------------------------


def limit_range(span: Span) -> Diagnostic:
    """`LIMIT 0`."""
    message = "LIMIT needs a whole number from 1 to 2^62"
    hint = "it is the most matches that one end position reports; leave it out for all"
    return error("limit-range", span, message, hint)


def unknown_partition_attribute(name: str, attributes: Collection[str], span: Span) -> Diagnostic:
    """`PARTITION BY nmae` where no event type has it."""
    message = f"no event type of these streams has an attribute {quote(name)} to partition by"
    what, more = "attributes that every event type has", tuple[str, ...]()
    if name.upper() == "TYPE":
        message = "the type of an event is no attribute"
        more = (f"{type_as_value('A')}; all events of a match are of one type then",)
    return unknown("unknown-partition-attribute", span, message, name, what, attributes, *more)


def partial_partition_attribute(
    name: str, lacking: Collection[str], span: Span, declared: Span
) -> Diagnostic:
    """`PARTITION BY name` where some event types lack it."""
    return error(
        "partial-partition-attribute",
        span,
        f"events of type {quoted(lacking)} have no attribute {quote(name)}, so they would belong "
        "to no partition",
        "partition by an attribute of all event types, or read only streams whose types have " "it",
        "where an event type has it under another name, write both into brackets: PARTITION BY "
        "[src, dst] is the one of these that an event has",
        related=(Related(declared, "a type that lacks it"),),
    )


def ambiguous_partition_key(
    alternatives: Sequence[str],
    event_type: str,
    has: Sequence[str],
    offers: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
    span: Span,
) -> Diagnostic:
    """`PARTITION BY [a, b]` where one event type has both; `has` are those that it has, `offers`
    what can be written instead: attributes that are keys of their own, and those of one key."""
    listed = ", ".join(map(written, alternatives))
    several = [", ".join(map(written, names)) for names in offers[0]]
    single = [_key(names) for names in offers[1]]
    count = "two" if len(alternatives) == 2 else str(len(alternatives))
    help = [f"for {count} keys write PARTITION BY {text}" for text in several]
    if single:
        help.append(f"for one write {' or '.join(f'PARTITION BY {text}' for text in single)}")
    elif not several:
        help.append("write one attribute of each event type into the brackets")
    return error(
        "ambiguous-partition-key",
        span,
        f"[{listed}] is one key, the attribute of these that an event has, but events of type "
        f"{quote(event_type)} have {quoted(has)}",
        *tuple(help),
        fixes=tuple(Fix(span, text) for text in (*several, *single)),
    )


def _key(names: Sequence[str]) -> str:
    listed = ", ".join(map(written, names))
    return f"[{listed}]" if len(names) > 1 else listed


def partial_alternatives(
    alternatives: Sequence[str], lacking: Collection[str], span: Span
) -> Diagnostic:
    """`PARTITION BY [a, b]` where an event type has neither."""
    return error(
        "partial-partition-key",
        span,
        f"events of type {quoted(lacking)} have none of the attributes {quoted(alternatives)}, so "
        "they would belong to no partition",
        "add an attribute of these types to the brackets, or read fewer streams",
    )


def partition_key_type(type: str, span: Span) -> Diagnostic:
    """`PARTITION BY tags`."""
    message = f"values of the type {type} cannot be compared, so they are no keys"
    hint = "partition by a part that is compared, as in PARTITION BY a.b or PARTITION BY a[0]"
    return error("partition-key-type", span, message, hint)


def order_column_type(name: str, type: str, span: Span) -> Diagnostic:
    """The caller's `order_by=["tags"]`."""
    message = f"{quote(name)} is {type}, which has no order"
    hint = "order by a number, a time or a text"
    return error("order-column-type", span, message, hint)


def partition_key_types(
    alternatives: tuple[str, str], types: tuple[str, str], span: Span
) -> Diagnostic:
    """`PARTITION BY [a, b]` where a is an INT and b a STRING."""
    first, other = alternatives
    return error(
        "partition-key-types",
        span,
        f"{quote(first)} is {types[0]} and {quote(other)} is {types[1]}, but the attributes of one "
        "key have one type",
        f"declare both as {types[0]}, or both as {types[1]}, and cast the column",
    )


def repeated_key(alternatives: Sequence[str], span: Span, first: Span) -> Diagnostic:
    """`PARTITION BY [a, b], [b, a]`."""
    listed = ", ".join(map(written, alternatives))
    message = f"[{listed}] is the same key as one before it"
    hint = "leave it out: events that are equal in one are equal in the other"
    related = (Related(first, "first written here"),)
    return error("repeated-partition-key", span, message, hint, related=related)


def repeated_key_column(alternatives: Sequence[str], span: Span, first: Span) -> Diagnostic:
    """`PARTITION BY [a, b], [a, c]`: the columns of both would be called a."""
    listed = ", ".join(map(written, alternatives))
    return error(
        "repeated-key-column",
        span,
        f"[{listed}] makes the column {quote(alternatives[0])}, and another key makes one already",
        "a key's column is called like the first attribute in the brackets: write another one "
        "first",
        related=(Related(first, "the other key"),),
    )


def formula_too_deep(depth: int, limit: int, span: Span) -> Diagnostic:
    """`A ; !B ; A ; !B ; …`, too many times."""
    return error(
        "formula-too-deep",
        span,
        f"this formula is nested {depth:,} levels deep, and more than {limit} are refused",
        "each ';' after a '!', and each change between AND and ALL, is a level of its own: "
        "split the formula over several queries",
    )


def formula_too_large(limit: int, span: Span) -> Diagnostic:
    """`(A ; B ; C){10000}`, and `A ; B? ; C? ; …` with many operands that may be missing."""
    return error(
        "formula-too-large",
        span,
        f"written out, this part of the formula has more than {limit:,} events",
        "each round counts the events of its operand, and each further '?' in a row doubles "
        "the ways to leave operands out: ask for fewer rounds, or put an operand without '?' "
        "between others",
    )


# --- one match for each start ---------------------------------------------------------------------


def consume_before_known(policy: str, choice: str, span: Span) -> Diagnostic:
    """`SELECT LONGEST * … CONSUME BY PARTITION`."""
    return error(
        "consume-per-start",
        span,
        f"CONSUME BY {policy} begins anew at the end of a match, and SELECT {choice} knows its "
        "matches only later",
        "leave out CONSUME BY: DISJOINT keeps matches that follow each other",
        "SELECT FIRST knows each match at its end",
    )

"""Messages about SELECT TOTAL with PER and HAVING, about SELECT COLLAPSED, and LIMIT … PER.

Each docstring shows what causes the message.
"""

from collections.abc import Collection, Sequence

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.messages.wording import available, quote, unknown, written
from celc.diagnostics.source import Span

TOTALS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "APPROX_COUNT")
_FORMS = "totals are COUNT(*), COUNT(x), SUM(x.a), AVG, MIN, MAX and APPROX_COUNT(*)"

# --- beside TOTAL and COLLAPSED -------------------------------------------------------------------


def choice_among_all(together: str, choice: str, span: Span, change: Fix) -> Diagnostic:
    """`SELECT NXT TOTAL COUNT(*) AS n`, `SELECT COLLAPSED ANY *`, and either with LIMIT; `change`
    leaves `choice` out."""
    hints = [f"leave {choice} out"]
    if choice == "LIMIT" and together == "TOTAL":
        hints.append("the answer has one row for each group: HAVING says which of them stay")
    elif choice == "LIMIT":
        hints.append("the answer has one row for each end position as it is")
    elif choice in ("STRICT", "NXT", "LAST", "MAX"):
        hints.append(f"a selector can stand in the formula: WHERE {choice}(…)")
    message = f"{choice} chooses among matches, and {together} is about all of them"
    return error("choice-among-all", span, message, *hints, fixes=(change,))


def expression_in_collapsed(text: str, span: Span) -> Diagnostic:
    """`SELECT COLLAPSED x, COUNT(x) AS n`."""
    return error(
        "expression-in-collapsed",
        span,
        f"{text} belongs to one match, and a row of COLLAPSED stands for many",
        "COLLAPSED takes labels, or *",
        "for sums over all matches write a second query, SELECT TOTAL",
    )


# --- items of TOTAL -------------------------------------------------------------------------------


def label_in_total(label: str, name: str, span: Span) -> Diagnostic:
    """`SELECT TOTAL x` and `SELECT TOTAL x[a]`; `name` is one for the number of its events."""
    mended = f"COUNT({written(label)}) AS {written(name)}"
    return error(
        "label-in-total",
        span,
        f"{quote(label)} is a label, and a row of TOTAL has no events of one match",
        f"for the number of its events in all matches write {mended}",
        _FORMS,
        fixes=(Fix(span, mended),),
    )


def attribute_in_total(text: str, choices: Sequence[str], span: Span) -> Diagnostic:
    """`SELECT TOTAL x.a AS a`; `choices` are totals of it."""
    help = (f"write {' or '.join(choices)}",) if choices else (_FORMS,)
    return error(
        "attribute-in-total",
        span,
        f"{text} is a value of one match, and a row of TOTAL stands for all matches of a group",
        *help,
        fixes=tuple(Fix(span, choice) for choice in choices),
    )


def all_in_total(span: Span, *, is_star: bool) -> Diagnostic:
    """`SELECT TOTAL *` and `SELECT TOTAL NONE`."""
    word = "*" if is_star else "NONE"
    return error(
        "labels-in-total",
        span,
        f"{word} says which labels of a match are kept, and a row of TOTAL has none",
        "for the number of matches write COUNT(*) AS n",
        _FORMS,
        fixes=(Fix(span, "COUNT(*) AS n"),),
    )


def constant_in_total(text: str, span: Span) -> Diagnostic:
    """`SELECT TOTAL 1 AS one`."""
    message = f"{text} is the same for all rows: an item of TOTAL says something of matches"
    return error("constant-in-total", span, message, _FORMS)


def function_in_total(function: str, span: Span) -> Diagnostic:
    """`SELECT TOTAL FIRST(x.a) AS f`, and a call of an aggregate of one's own."""
    message = f"{function} cannot be taken over all matches of a group"
    return error("function-in-total", span, message, _FORMS)


def labels_in_approximation(function: str, call: Span) -> Diagnostic:
    """`APPROX_COUNT(x)`."""
    mended = f"{function}(*)"
    message = f"{function} counts matches, and takes a * alone"
    return error("approximate-count", call, message, f"write {mended}", fixes=(Fix(call, mended),))


# --- COUNT(*) elsewhere ---------------------------------------------------------------------------


def star_argument(function: str, label: str | None, star: Span, call: Span) -> Diagnostic:
    """`FILTER COUNT(*) > 3`, `SELECT COUNT(*) AS n`, and SUM(*) anywhere; `label` is one that is
    bound there."""
    total = f"the number of matches is a total: SELECT TOTAL {function}(*) AS n"
    mended: str | None = None
    if function.upper() == "COUNT":
        takes, mended = "COUNT takes a label here, not a *", f"{function}({written(label or 'x')})"
        hints = [f"for the number of events of a label write {mended}", total]
    elif function.upper() == "APPROX_COUNT":
        takes, hints = "APPROX_COUNT is about all matches, and stands after TOTAL alone", [total]
    else:
        takes = f"{function} takes an attribute, not a *"
        hints = [f"such as {function}({written(label or 'x')}.a)"]
    fixes = (Fix(call, mended),) if label is not None and mended is not None else ()
    return error("star-argument", star, takes, *hints, fixes=fixes)


# --- PER ------------------------------------------------------------------------------------------


def unknown_group(text: str, span: Span) -> Diagnostic:
    """`PER 10 EVENTS` and `PER 10 [mileage]`."""
    return error(
        "unknown-group",
        span,
        f"after PER stands END, PARTITION or a duration, but {text} is none",
        "PER END is a row for each event at which matches end, PER PARTITION one for each part "
        "of the stream, PER 1 HOUR one for each hour",
    )


def span_attribute(attribute: str, duration: str, span: Span) -> Diagnostic:
    """`PER 1 HOUR [ts]`."""
    return error(
        "span-attribute",
        span,
        "spans are always of the first order column, so that none is named after PER",
        f"write PER {duration}",
        f"the order column is named at the call: --order-by {attribute}",
        fixes=(Fix(span, duration),),
    )


def empty_span(span: Span) -> Diagnostic:
    """`PER 0 SECONDS`."""
    message = "a span of no time has no events in it"
    hint = "write a longer duration, or PER END for a row for each event"
    return error("empty-span", span, message, hint)


def unmeasured_span(
    order_column: str | None, type: str | None, times: Collection[str], span: Span
) -> Diagnostic:
    """`PER 1 HOUR` without a first order column that is a time."""
    if order_column is None:
        message = "PER a duration needs the time of each event, and the stream has no order column"
    else:
        message = (
            f"PER a duration is measured on the first order column, {quote(order_column)}, which "
            f"is {type} and no time"
        )
    advice = "declare a TIMESTAMP or DATE attribute for every event type, and order by it"
    if times:
        advice = f"order the stream by a TIMESTAMP or DATE: --order-by {next(iter(times))}"
    return error("unmeasured-span", span, message, advice, "PER END and PER PARTITION need no time")


# --- HAVING ---------------------------------------------------------------------------------------


def unknown_item(name: str, items: Collection[str], span: Span) -> Diagnostic:
    """`SELECT TOTAL COUNT(*) AS n … HAVING m > 1`."""
    message = f"HAVING names {quote(name)}, but no item of TOTAL is called so"
    return unknown("unknown-item", span, message, name, "items", items)


def label_in_having(label: str, items: Collection[str], span: Span) -> Diagnostic:
    """`HAVING x.a > 1`, `HAVING x[a > 1]` and `HAVING x IS R`."""
    return error(
        "label-in-having",
        span,
        f"{quote(label)} cannot be a label here: a row of totals stands for many matches",
        "a condition on the events of each match stands in the formula, after FILTER",
        *available("items", items),
    )


def function_in_having(call: str, item: str | None, span: Span) -> Diagnostic:
    """`HAVING COUNT(*) > 1`; `item` is the name of an item that says the same."""
    mended = call if item is None else written(item)
    hint = (
        f"write {mended}" if item is not None else f"make an item of it, {call} AS n, and write n"
    )
    message = "HAVING is about the items of TOTAL, by their names"
    fixes = () if item is None else (Fix(span, mended),)
    return error("function-in-having", span, message, hint, fixes=fixes)


# --- LIMIT n PER … --------------------------------------------------------------------------------

_AFTER_PER = "after LIMIT … PER stands a duration or PARTITION"


def per_end(count: str, span: Span) -> Diagnostic:
    """`LIMIT 2 PER END`."""
    return error(
        "limit-per-end",
        span,
        f"{_AFTER_PER}, and not END",
        f"LIMIT {count} alone is for each event at which matches end",
        fixes=(Fix(span, f"LIMIT {count}"),),
    )


def per_events(text: str, span: Span) -> Diagnostic:
    """`LIMIT 1 PER 10 EVENTS`."""
    return error(
        "limit-per-events",
        span,
        f"{_AFTER_PER}, but {text} is no time",
        "write a duration, as in LIMIT 1 PER 10 MINUTES",
    )


def per_attribute(attribute: str, length: str, span: Span) -> Diagnostic:
    """`LIMIT 1 PER 1 HOUR [ts]`."""
    return error(
        "limit-per-attribute",
        span,
        "LIMIT … PER is always measured on the first order column, so that none is named here",
        f"write PER {length}",
        f"the order column is named at the call: --order-by {attribute}",
        fixes=(Fix(span, length),),
    )


def length_too_large(span: Span) -> Diagnostic:
    """`LIMIT 1 PER 1e300`."""
    message = "this length is too large: lengths go up to 2^62 microseconds or units"
    return error("limit-too-long", span, message, "LIMIT n PER PARTITION is for the whole part")


def without_order(is_number: bool, columns: Collection[str], span: Span) -> Diagnostic:
    """`LIMIT 1 PER 1 HOUR` without an order column."""
    kind = "a number" if is_number else "a TIMESTAMP or DATE"
    advice = f"declare {kind} as an attribute of every event type, and order by it"
    if columns:
        advice = f"order the stream by {kind}: --order-by {next(iter(columns))}"
    return error(
        "unmeasured-limit",
        span,
        "LIMIT … PER needs the time at which a row is known, and the stream has no order column",
        advice,
        "LIMIT n PER PARTITION needs no time",
    )


def other_order(order_column: str, type: str, is_time: bool, span: Span) -> Diagnostic:
    """`LIMIT 1 PER 1 HOUR` where the order column is a number, and `LIMIT 1 PER 3` where it is a
    time."""
    instead = "write a duration, as in PER 10 MINUTES"
    if not is_time:
        instead = "write a number without a unit, or order the stream by a TIMESTAMP or DATE"
    return error(
        "limit-on-order",
        span,
        f"LIMIT … PER is measured on the first order column, {quote(order_column)}, which is "
        f"{type}: this length is not one of it",
        instead,
    )


def never_known(has_window: bool, span: Span) -> Diagnostic:
    """`SELECT LONGEST * … LIMIT 1 PER 1 HOUR` without a window of time."""
    why = "without a window, the longest match of a start is known only when the input ends"
    if has_window:
        why = (
            "the window of this query is not measured on the first order column, so that it gives "
            "no time at which the longest match of a start is known"
        )
    return error(
        "limit-before-known",
        span,
        f"LIMIT … PER takes rows in the order in which they are known, and {why}",
        "give the query a window of time (WITHIN), or use SELECT FIRST",
    )

"""Warnings about queries that are allowed, but seldom meant or costlier than they look."""

import re
import shlex
from collections.abc import Collection, Sequence

from celc.diagnostics.errors import Diagnostic, Fix, Related, warning
from celc.diagnostics.messages.wording import available, counted, quote, quoted, written
from celc.diagnostics.source import Span


def attribute_case(name: str, other: str, span: Span, first: Span) -> Diagnostic:
    """`EVENT A { id: INT }` and `EVENT B { Id: INT }`."""
    message = f"the attributes {quote(other)} and {quote(name)} differ in case only"
    hint = "Spark reads columns without regard to case: give both the same name, or rename one"
    related = (Related(first, f"{quote(other)} is declared here"),)
    return warning("attribute-case", span, message, hint, related=related)


def stream_not_read(stream: str, event_type: str, span: Span) -> Diagnostic:
    """`FROM S WHERE S>A` where the query reads no other stream."""
    name = written(event_type)
    return warning(
        "stream-not-read",
        span,
        f"{written(stream)}> chooses nothing: the query reads one stream, and looks at no column "
        "'stream'",
        f"write {name}; rows of other streams are filtered out before the query reads a table",
        fixes=(Fix(span, name),),
    )


def like_regex(choices: Sequence[str], span: Span) -> Diagnostic:
    """`x.a LIKE '.*foo.*'`; `choices` are conditions that could be meant."""
    return warning(
        "like-regex",
        span,
        "this pattern looks like a regular expression, but in LIKE only % (any text) and _ (one "
        "character) are special",
        f"write {' or '.join(choices)}" if choices else "write it with % and _",
        fixes=tuple(Fix(span, choice) for choice in choices),
    )


def missing_attribute(
    attribute: str, label: str, lacking: Collection[str], span: Span
) -> Diagnostic:
    """`(A OR B) AS x FILTER x.a = 1` where B has no a."""
    return warning(
        "missing-attribute",
        span,
        f"label {quote(label)} can bind events of type {quoted(lacking)}, which have no attribute "
        f"{quote(attribute)}: it is NULL there",
        "a comparison with NULL is not TRUE, so such events fail it",
    )


def unsafe_label(label: str, operator: str, span: Span, first: Span) -> Diagnostic:
    """`A AS x ; B AS x`."""
    return warning(
        "unsafe-label",
        span,
        f"label {quote(label)} is bound on both sides of {operator}",
        "it then holds all the positions of both, and a condition on it asks the same of all; "
        "use two labels where one event on each side is meant",
        related=(Related(first, "also bound here"),),
    )


def maybe_unbound(label: str, span: Span, bound: Span) -> Diagnostic:
    """`(A AS x OR B) FILTER x.a = 1`."""
    return warning(
        "maybe-unbound",
        span,
        f"label {quote(label)} is not bound in every match that this filter judges",
        "where it has no position, the condition holds: put the filter on the branch that "
        "binds it",
        related=(Related(bound, "bound here"),),
    )


def single_position(what: str, label: str, repeated: bool, span: Span, bound: Span) -> Diagnostic:
    """`what` is PREV, PRIOR or COUNT; `repeated` says whether the filter stands inside a `+`."""
    if what == "COUNT":
        message = f"label {quote(label)} has at most one position here, so this can never hold"
    else:
        message = (
            f"label {quote(label)} has at most one position here, so {what} finds nothing before "
            "it and the comparison holds always"
        )
    return warning(
        "single-position",
        span,
        message,
        (
            "put the filter outside the '+', where the label has the positions of all rounds"
            if repeated
            else f"several positions come from '+' below the filter: (… AS {label})+ FILTER …"
        ),
        related=(Related(bound, "bound here"),),
    )


def never_matches(reason: str, advice: str, span: Span, other: Span | None = None) -> Diagnostic:
    """`(A ; C) UNLESS A`; `other` is the place that `span` contradicts."""
    message = f"this can match nothing: {reason}"
    related = () if other is None else (Related(other, "together with this"),)
    return warning("never-matches", span, message, advice, related=related)


_OF_ALL = (
    "for one row that stands for all matches of an event: SELECT TOTAL COUNT(*) AS matches for "
    "their number, SELECT COLLAPSED * for the events in them",
    "for one match of many: SELECT MAX * or SELECT LAST * for each end, SELECT LONGEST DISJOINT * "
    "for the longest ones side by side",
)
"""What to write where an event ends too many matches to read them."""


def exponential_output(sign: str, span: Span) -> Diagnostic:
    """`A+` or `A{2,}` with neither window nor selector; `sign` is that of the rounds."""
    return warning(
        "exponential-output",
        span,
        f"the number of matches can double with every event that this '{sign}' can take",
        "bound it with WITHIN, or report fewer matches with SELECT ANY or LIMIT",
        *_OF_ALL,
    )


def many_choices(label: str, events: int, most: int, span: Span) -> Diagnostic:
    """`(A AS x)+ FILTER COUNT(x) >= 100 WITHIN 1 MINUTE`."""
    return warning(
        "many-choices",
        span,
        f"'+' takes every choice of events that is large enough: of {events:,} events for "
        f"{quote(label)} within the window, more than {most:,} matches end with the last",
        "report fewer with SELECT NXT, LAST, MAX or ANY, or with LIMIT",
        *_OF_ALL,
    )


def exponential_search(why: str, selector: str | None, span: Span) -> Diagnostic:
    """`(A AS x)+ FILTER SUM(x.a) > 3` without a window; `selector` is that of the formula around.

    A selector inside a formula sees the stream without the window.
    """
    if selector is None:
        advice = "bound it with WITHIN"
    else:
        advice = (
            f"WITHIN does not bound what {selector}(…) inside a formula looks at: write SELECT "
            f"{selector} with WITHIN, or use STRICT(…)"
        )
    message = f"the search for matches can grow exponentially: {why}"
    return warning("exponential-search", span, message, advice)


def idle_limit(count: str, most: int, span: Span) -> Diagnostic:
    """`SELECT ANY * … LIMIT 10`; `most` is the largest number of matches of one end."""
    mended = f"LIMIT {count} PER PARTITION"
    return warning(
        "idle-limit",
        span,
        f"LIMIT {count} changes nothing: it is for each end position, and none has more than "
        f"{counted(most, 'match', 'matches')}",
        f"for the first matches of the stream, or of each part of it, write {mended}",
        "for a few rows of the answer: celc run --max-matches, match_table(…, max_matches=…), "
        "limit(…) on Spark",
        fixes=(Fix(span, mended),),
    )


def no_order(times: Collection[str], counts_events: bool, span: Span) -> Diagnostic:
    """`SELECT * FROM S WHERE A ; B` where the events have a time; `times` are the attributes that
    could order them, `counts_events` says that WITHIN is there and names none."""
    first, *others = times
    quoted_first = "`" + first.replace("`", "``") + "`"
    name = first if re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", first) else quoted_first
    advice = f"name the order with --order-by {shlex.quote(first)}"
    if not counts_events:
        advice += f", or bound the query with WITHIN 1 HOUR [{name}] or another time"
    return warning(
        "no-order",
        span,
        "no order is named, so events are taken in the order of the file or table, whatever "
        f"{quote(first)} says",
        advice,
        *available("other attributes that hold a time", others)[: len(others)],
    )


def one_ordered_scan(what: str, whole_stream: bool, span: Span) -> Diagnostic:
    """`NXT(A ; B) ; C`, `CONSUME BY ANY`; of the whole stream, or of each part."""
    if whole_stream:
        cost = "one ordered scan of the whole stream answers this query, and no split by time"
    else:
        cost = "one ordered scan of each part answers this query, and no split by time"
    message = f"{what} can depend on events long before the match"
    return warning("one-ordered-scan", span, message, cost)

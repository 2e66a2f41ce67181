"""Messages about events that last: rows of queries (`FROM rises, Quotes`), and LASTING streams."""

from collections.abc import Collection, Sequence

from celc.diagnostics.errors import Diagnostic, Related, error
from celc.diagnostics.messages.wording import available, guess, guessed, quote, quoted
from celc.diagnostics.source import Span

# --- FROM -----------------------------------------------------------------------------------------


def reads_itself(name: str, span: Span) -> Diagnostic:
    """`QUERY a: SELECT * FROM a WHERE …`."""
    message = f"query {quote(name)} cannot read its own rows"
    hint = "a query reads streams, and queries that stand before it in the file"
    return error("query-reads-itself", span, message, hint)


def reads_later(name: str, span: Span, place: Span) -> Diagnostic:
    """`QUERY a: SELECT * FROM b WHERE …` before `QUERY b: …`."""
    message = f"query {quote(name)} stands later in the file"
    hint = "a query reads queries that stand before it: move this one behind the other"
    related = (Related(place, "the query that is read"),)
    return error("query-order", span, message, hint, related=related)


def unreadable(name: str, why: str, hint: str, span: Span, place: Span) -> Diagnostic:
    """`FROM totals`, where `totals` is a query with TOTAL; `hint`: what to do."""
    message = f"the rows of query {quote(name)} cannot be events, because {why}"
    related = (Related(place, "the query that is read"),)
    return error("unreadable-query", span, message, hint, related=related)


def rest_in_reader(name: str, span: Span) -> Diagnostic:
    """`FROM rises, S` where S has `EVENT OTHER { }`."""
    message = f"a query that reads the rows of {quote(name)} cannot read a stream with EVENT OTHER"
    hint = "read a stream that declares the event types, without EVENT OTHER"
    return error("rest-in-reader", span, message, hint)


def attribute_twice(name: str, attribute: str, span: Span, place: Span) -> Diagnostic:
    """`SELECT x.v AS ts FROM S …` read by another query, in the order of ts."""
    return error(
        "attribute-twice",
        span,
        f"the rows of query {quote(name)} would have attribute {quote(attribute)} twice: they have "
        "the partition attributes, the expressions, the order column and 'start_time'",
        "give the expression another name",
        related=(Related(place, "the other one has the same name"),),
    )


def called_like(name: str, what: str, span: Span, place: Span) -> Diagnostic:
    """`QUERY A: …` beside `EVENT A { … }`."""
    message = f"query {quote(name)} is called like {what}, and its rows are events of that name"
    hint = "give the query another name"
    related = (Related(place, "declared here"),)
    return error("query-called-like", span, message, hint, related=related)


# --- streams whose events last --------------------------------------------------------------------


def two_ends(span: Span) -> Diagnostic:
    """`LASTING [start]` and `LASTING [start, start]`."""
    message = "LASTING needs two attributes: when an event starts, and when it ends"
    return error("lasting-ends", span, message, "write LASTING [start, end]")


def lacking_end(name: str, event_type: str, offered: Sequence[str], span: Span) -> Diagnostic:
    """`LASTING [start, end]` where an event type has no attribute end."""
    return error(
        "lasting-attribute",
        span,
        f"event type {quote(event_type)} has no attribute {quote(name)}",
        *guess(name, offered),
        "every event type of the stream declares both, its start and its end",
        *available("attributes", offered),
        fixes=guessed(name, offered, span),
    )


def types_of_ends(start: str, end: str, span: Span) -> Diagnostic:
    """`LASTING [start, end]` where start is a LONG and end a TIMESTAMP, or both are STRING."""
    return error(
        "lasting-type",
        span,
        f"the start is {start} and the end {end}; they must be of one type, a number or a time",
        "declare both as TIMESTAMP, DATE, LONG or another type of numbers",
    )


def order_of_lasting(end: str, span: Span, declared: Span) -> Diagnostic:
    """`--order-by ts` where events last."""
    return error(
        "lasting-order",
        span,
        f"events that last come in the order of their ends, {quote(end)}, and the call names an "
        "order too",
        "leave out --order-by, and order_by= in Python",
        related=(Related(declared, "the order is declared here"),),
    )


def other_end(end: str, other: str, span: Span, place: Span) -> Diagnostic:
    """`FROM Jobs, Runs` where the streams are LASTING [start, end] and LASTING [begin, stop]."""
    return error(
        "lasting-other-end",
        span,
        f"the streams of a query are in one order, and their ends are called {quote(end)} and "
        f"{quote(other)}",
        "give the ends one name in all streams that the query reads",
        related=(Related(place, "the other end"),),
    )


def without_end(
    lacking: tuple[str, str], end: str, type: str, span: Span, place: Span
) -> Diagnostic:
    """`FROM Jobs, Marks` where a type of Marks has no attribute like the end of Jobs."""
    stream, event_type = lacking
    return error(
        "lasting-beside",
        span,
        f"event type {quote(event_type)} of stream {quote(stream)} has no attribute {quote(end)} "
        f"of type {type}, which orders the events that last",
        f"declare {quote(end)} there too: its events start when they end",
        related=(Related(place, "declared here"),),
    )


# --- what a query over events that last cannot have -----------------------------------------------


def no_single_order(count: int, span: Span) -> Diagnostic:
    """A query that reads queries, without `--order-by`."""
    told = "no order column is named" if not count else f"there are {count} order columns"
    message = f"rows of queries come in the order of one column, and {told}"
    hint = "name one for all queries of the file: --order-by ts, or order_by='ts' in Python"
    return error("query-without-order", span, message, hint)


def other_order(name: str, own: str, other: Sequence[str], span: Span, place: Span) -> Diagnostic:
    """A query ordered by `ts` that reads one ordered by `at`."""
    told = f"by {quoted(other)}" if other else "by no column"
    message = f"query {quote(name)} is ordered {told}, and the query that reads it by {quote(own)}"
    hint = "name one column for all queries of the file: --order-by ts"
    related = (Related(place, "the query that is read"),)
    return error("query-of-other-order", span, message, hint, related=related)


def order_of_texts(name: str, type: str, usable: Collection[str], span: Span) -> Diagnostic:
    """A query that reads queries, ordered by a STRING."""
    return error(
        "query-order-type",
        span,
        f"rows of queries last from one time to another, and {quote(name)} is {type}",
        "order by a number or a time",
        *available("such attributes of all types", usable),
    )


def absence_at_end(name: str, span: Span) -> Diagnostic:
    """`rises ; !falls FOR 5 MINUTES`, where a rise is known after three more EVENTS."""
    message = (
        "a time decides an absence after a match, and no time tells when all rows of "
        f"{quote(name)} are known, because of an absence at the end of its formula"
    )
    hint = "measure that absence on the order column: FOR 5 MINUTES, or FOR 5 [ts]"
    return error("absence-of-rows", span, message, hint)

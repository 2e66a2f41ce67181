"""Messages about queries that read the rows of other queries (`FROM rises, Quotes`)."""

from collections.abc import Collection, Sequence

from celc.diagnostics.errors import Diagnostic, Related, error
from celc.diagnostics.messages.wording import available, quote, quoted
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


def unreadable(name: str, why: str, span: Span, place: Span) -> Diagnostic:
    """`FROM totals`, where `totals` is a query with TOTAL."""
    message = f"the rows of query {quote(name)} cannot be events, because {why}"
    hint = "read a query with an ordinary SELECT list"
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


# --- what a query that reads queries cannot have --------------------------------------------------


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


def contiguous(span: Span) -> Diagnostic:
    """`rises : falls`, or `rises:+`."""
    message = "rows of queries last and can overlap, so that none is the next one"
    hint = "write ; or +, with conditions or a window that say how near they are"
    return error("contiguous-rows", span, message, hint)


def absence_at_end(span: Span) -> Diagnostic:
    """`rises ; !falls FOR 5 MINUTES`."""
    message = "an absence with a length is not supported in a query that reads queries"
    hint = "write the absence between two events (a ; !b ; c), or in the query that is read"
    return error("absence-of-rows", span, message, hint)


def for_each(span: Span) -> Diagnostic:
    """`FROM rises FOR EACH rule`."""
    message = "FOR EACH is not supported in a query that reads queries"
    return error("rows-for-each", span, message, "leave it out, or write the pattern as one query")

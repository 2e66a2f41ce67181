"""Events that last: those of LASTING streams, and the rows of one query that the next reads.

A query that reads another sees a declared stream with one event type, both called like the query
that is read. Its events have a start and an end. Where the formula asks whether one match ends
before another starts, the order of the table (that of ends) is not enough: so each event has an
attribute that is its start (`Query.begin`), and every window one more place to measure from.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.formula import AttributeDeclaration, EventType, Stream
from celc.core.traversal import formulas_in, with_types_and_windows
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import queries as messages
from celc.diagnostics.messages.wording import quoted
from celc.diagnostics.source import Span
from celc.parse import syntax

START_TIME = "start_time"
"""The attribute of a row that says when its match starts."""

_ORDINARY = "read a query with an ordinary SELECT list"

ORDERED = (*core.NUMBERS, *core.TIMES)
"""The types of order columns that tell how long an event lasts."""


@frozen
class QueryRows:
    """The rows of a query as events: `stream` has one event type; `places` are those of its
    attributes. `why_not` says why the rows cannot be read, and what to do; else both are empty."""

    stream: Stream
    places: Mapping[str, Span]
    order_by: tuple[AttributeDeclaration, ...]
    place: Span
    why_not: tuple[str, str] = ("", "")
    twice: str = ""
    off_clock: bool = False
    """Whether no time of the order column tells when they are known, because of an absence."""


def rows_of(query: core.Query, node: syntax.Query, read: Mapping[str, QueryRows]) -> QueryRows:
    """The rows of a resolved query; `read` has those of the queries before it."""
    place = node.span if node.name is None else node.name.span
    attributes: dict[str, AttributeDeclaration] = {}
    places: dict[str, Span] = {}
    twice = ""
    own = {START_TIME, *(one.name.lower() for one in query.order_by[:1])}
    taken: set[str] = set()
    for attribute, span in _attributes(query, place):
        name = attribute.name.lower()
        is_own = attribute in query.order_by[:1] or (span is place and name == START_TIME)
        if name in taken or (name in own and not is_own):
            twice, places[attribute.name] = twice or attribute.name, span
            continue
        taken.add(name)
        attributes[attribute.name], places[attribute.name] = attribute, span
    event_type = EventType(query.name, query.name, tuple(attributes.values()))
    stream = Stream(query.name, (event_type,))
    off_clock = _is_off_clock(query) or any(read[name].off_clock for name in query.reads)
    why_not = why_rows_are_not_read(query)
    return QueryRows(stream, places, query.order_by, place, why_not, twice, off_clock)


def _is_off_clock(query: core.Query) -> bool:
    """Whether an absence at the end is measured in EVENTS, or not on the first order column."""
    lengths = [
        part.length for part in formulas_in(query.formula) if isinstance(part, core.AbsenceAfter)
    ]
    order = {None, *(one.name for one in query.order_by[:1])}
    return any(
        one.unit is core.WindowUnit.EVENTS
        or (None if one.attribute is None else one.attribute.name) not in order
        for one in lengths
    )


def _attributes(query: core.Query, place: Span) -> Iterator[tuple[AttributeDeclaration, Span]]:
    for key in query.partition_by:
        yield AttributeDeclaration(key.name, key.type), place
    for item in query.output:
        if isinstance(item, core.OutputExpression) and not isinstance(item.value, core.Collection):
            yield AttributeDeclaration(item.name, item.value.type), item.span
    for order in query.order_by[:1]:
        yield order, place
        yield AttributeDeclaration(START_TIME, order.type), place


def columns_of_rows(query: core.Query) -> tuple[AttributeDeclaration, ...]:
    """The attributes that the rows of a query have for a reader; a name can stand there twice, and
    then no query can read it."""
    return tuple(attribute for attribute, _ in _attributes(query, query.span))


def why_rows_are_not_read(query: core.Query) -> tuple[str, str]:
    """Why no query can read the rows of this kind of query, and what to do; empty where one can."""
    if query.total is not None:
        return "they are totals (TOTAL) and no matches", _ORDINARY
    if query.uncertain is not None:
        return (
            "each has a confidence (uncertain time)",
            "read a query over streams without UNCERTAIN",
        )
    if query.collapsed:
        return "each stands for many matches (COLLAPSED)", _ORDINARY
    if query.parameters is not None:
        return (
            "each belongs to a row of a parameter set (FOR EACH)",
            "read a query without FOR EACH",
        )
    rest = [one.name for one in query.streams if any(event.is_rest for event in one.event_types)]
    if rest:
        return (
            "its streams have EVENT OTHER, which would stand for the types of other queries",
            f"leave EVENT OTHER {{}} out of stream {quoted(rest)}: declare the event types",
        )
    return "", ""


# --- streams whose events last --------------------------------------------------------------------


@frozen
class Lasting:
    """LASTING: the attributes of a stream that say when an event starts, and when it ends."""

    start: AttributeDeclaration
    end: AttributeDeclaration
    place: Span


def lasting_of(
    clause: syntax.LastingClause, event_types: Sequence[EventType], found: Diagnostics
) -> Lasting | None:
    """When the events of a stream start and end; None where that is declared wrongly."""
    if len({name.text for name in clause.names}) != 2 or len(clause.names) != 2:
        found.add(messages.two_ends(clause.span))
        return None
    types: list[core.DataType] = []
    for name in clause.names:
        for one in event_types:
            found_type = one.type_of(name.text)
            if found_type is None:
                offered = [attribute.name for attribute in one.attributes]
                found.add(messages.lacking_end(name.text, one.name, offered, name.span))
                return None
            types.append(found_type)
    if not types:
        return None
    if len(set(types)) > 1 or types[0] not in ORDERED:
        span = clause.names[0].span.to(clause.names[1].span)
        found.add(messages.types_of_ends(types[0].value, types[-1].value, span))
        return None
    start, end = (AttributeDeclaration(name.text, types[0]) for name in clause.names)
    return Lasting(start, end, clause.span)


def lasting_of_query(
    node: syntax.Query,
    streams: Sequence[Stream],
    known: Mapping[str, Lasting | None],
    order_by: tuple[str, ...] | None,
    found: Diagnostics,
) -> Mapping[str, Lasting] | None:
    """The LASTING streams among those that a query reads itself; None where they cannot be read
    together, which is reported. `order_by` are the columns of the call."""
    declared = {one.name: known[one.name] for one in streams if one.name in known}
    lasting = {name: one for name, one in declared.items() if one is not None}
    if len(lasting) < len(declared):
        return None  # a wrong declaration has been reported
    if not lasting:
        return lasting
    place = node.formula.span
    if node.streams:
        place = node.streams[0].span.to(node.streams[-1].span)
    first, *others = lasting.values()
    end = first.end
    if order_by is not None:
        found.add(messages.order_of_lasting(end.name, place, first.place))
    for other in others:
        if other.end != end:
            found.add(messages.other_end(end.name, other.end.name, other.place, first.place))
            return None
    for stream in streams:
        for one in stream.event_types if stream.name not in lasting else ():
            if one.type_of(end.name) is not end.type:
                lacking = (stream.name, one.name)
                found.add(
                    messages.without_end(lacking, end.name, end.type.value, place, first.place)
                )
                return None
    return lasting


# --- queries over events that last ----------------------------------------------------------------


def check_reader(
    read: Sequence[tuple[syntax.Name, QueryRows]],
    order_by: tuple[AttributeDeclaration, ...] | None,
    usable: Sequence[str],
    found: Diagnostics,
) -> None:
    """Report a query that reads others in another order than theirs.

    `read` are the queries that it reads, by the names in FROM; `order_by` its order columns, None
    where some of them was refused; `usable` the attributes of all types that tell how long an event
    lasts.
    """
    if order_by is not None:
        _check_order(read, order_by, usable, found)


def check_lasting(
    formula: core.Formula,
    read: Sequence[tuple[syntax.Name, QueryRows]],
    found: Diagnostics,
) -> None:
    """Report all parts of a query that have no meaning where events last; `read` as above."""
    late = [name for name, rows in read if rows.off_clock]
    for part in formulas_in(formula):
        if late and isinstance(part, core.AbsenceAfter):
            found.add(messages.absence_at_end(late[0].text, part.span))


def _check_order(
    read: Sequence[tuple[syntax.Name, QueryRows]],
    order_by: tuple[AttributeDeclaration, ...],
    usable: Sequence[str],
    found: Diagnostics,
) -> None:
    first = read[0][0].span
    if len(order_by) != 1:
        found.add(messages.no_single_order(len(order_by), first))
        return
    (order,) = order_by
    for name, rows in read:
        if [one.name for one in rows.order_by] != [order.name]:
            others = [one.name for one in rows.order_by]
            place = rows.place
            found.add(messages.other_order(name.text, order.name, others, name.span, place))
    if order.type not in ORDERED:
        found.add(messages.order_of_texts(order.name, order.type.value, usable, first))


def over_queries(query: core.Query, reads: tuple[str, ...]) -> core.Query:
    """The query over rows of queries, which have a start, and not only an end."""
    order = query.order_by[0]
    types = [event_type for stream in query.streams for event_type in stream.event_types]
    name, taken = "#start", {one.name for each in types for one in each.attributes}
    while name in taken:
        name = f"#{name}"
    begin = AttributeDeclaration(name, order.type)

    def typed(types: tuple[EventType, ...]) -> tuple[EventType, ...]:
        return tuple(replace(one, attributes=(*one.attributes, begin)) for one in types)

    streams = tuple(
        replace(stream, event_types=typed(stream.event_types)) for stream in query.streams
    )
    formula = with_types_and_windows(query.formula, typed, lambda window: window)
    return with_starts(replace(query, streams=streams, formula=formula, reads=reads), begin)


def with_starts(query: core.Query, begin: AttributeDeclaration) -> core.Query:
    """The query over events that start at the attribute `begin`, which their types have.

    The window of the clause is measured from the start of a match as well. It stays where it is
    too, as the events that matter: no match in it begins with an event that ended before the
    window. Absences before a match look farther back, so it is longer by their length.
    """

    def lasting(window: core.Window) -> core.Window:
        return replace(window, begin=begin)

    def of_absence(absence: core.AbsenceBefore | core.AbsenceAfter) -> core.Window:
        if isinstance(absence, core.AbsenceBefore):
            return replace(absence.length, begin=begin, to_start=True)
        # From the start of the match, else from its end.
        return lasting(absence.length) if absence.from_start else absence.length

    formula, window, rate = query.formula, query.window, query.rate
    if window is not None:
        if rate is not None and query.per_start is not None and query.per_start.end == "LONGEST":
            rate = replace(rate, known_after=window)
        before = (one for one in formulas_in(formula) if isinstance(one, core.AbsenceBefore))
        lengths = [one.length.size for one in before]
        formula = core.Within(formula, window, window.span)
        window = replace(window, size=window.size + max(lengths, default=0))
    changed = with_types_and_windows(formula, lambda types: types, lasting, of_absence)
    return replace(query, formula=changed, window=window, rate=rate, begin=begin)

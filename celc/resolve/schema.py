"""Declarations and FROM: the streams of a file, and the part of them that one query sees.

A query asks often which event types a label can bind and which of them have an attribute. So sets
of event types are bit masks over the types of FROM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.bits import bits_of
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import names, warnings
from celc.diagnostics.messages import parameters as parameter_messages
from celc.diagnostics.messages import queries as messages
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.derived import DerivedColumns
from celc.resolve.parameters import ForEach, ParameterSet, for_each_of
from celc.resolve.readers import Lasting, QueryRows, lasting_of
from celc.resolve.types.tables import RESERVED_ATTRIBUTES, KnownTable, stream_of_table
from celc.resolve.types.written import is_primary_time, type_of_written
from celc.resolve.uncertain import UncertainStreams, uncertainty_of


@frozen
class Declarations:
    """The streams of a file in order, and the places of their parts."""

    streams: Mapping[str, core.Stream]
    places: Mapping[tuple[str, ...], Span]
    """The keys are (stream,), (stream, type) and (stream, type, attribute)."""
    untyped: frozenset[str]
    """Attributes whose type is unknown: they are declared, but in none of the streams."""
    primary: Mapping[tuple[str, str], str]
    """For (stream, type), the attribute that is declared as its time, if there is one."""
    aggregates: Mapping[str, core.OwnAggregate | None] = field(default_factory=dict)
    """The aggregates that the file declares; None for a wrong declaration."""
    functions: Mapping[str, core.OwnFunction | None] = field(default_factory=dict)
    """The functions that the file declares; None for a wrong declaration."""
    parameters: Mapping[str, ParameterSet] = field(default_factory=dict)
    """The file's parameter sets."""
    rows: Mapping[str, QueryRows] = field(default_factory=dict)
    """The rows of earlier queries that some query reads."""
    queries: Mapping[str, Span] = field(default_factory=dict)
    """The places of the names of all queries."""
    uncertain: UncertainStreams = field(default_factory=lambda: UncertainStreams({}, {}))
    """The streams whose events have uncertain times."""
    lasting: Mapping[str, Lasting | None] = field(default_factory=dict)
    """The streams whose events last; None for a wrong declaration."""
    derived: Mapping[tuple[str, str, str], core.Expression] = field(default_factory=dict)
    """The values of derived attributes, by stream, type and attribute."""

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the file's aggregates and functions."""
        return (*self.aggregates, *self.functions)

    def stands_later(self, name: syntax.Name) -> bool:
        """Whether a name in FROM is that of this query or of a later one."""
        known = name.text in self.streams or name.text in self.rows
        return name.text in self.queries and not known

    def with_rows(self, rows: QueryRows) -> Declarations:
        """These declarations and the rows of one more query, for the queries after it."""
        stream = rows.stream
        (event_type,) = stream.event_types
        names = (stream.name, event_type.name)
        places = {**self.places, (stream.name,): rows.place, names: rows.place}
        places |= {(*names, attribute): span for attribute, span in rows.places.items()}
        return replace(self, rows={**self.rows, stream.name: rows}, places=places)


def with_table(
    query: syntax.Query, declarations: Declarations, table: KnownTable | None, found: Diagnostics
) -> Declarations:
    """The declarations with the table that FROM of a query names without any, if `table` is
    known."""
    declared = declarations.streams
    taken = {*declared, *declarations.rows, *declarations.queries}
    named = {name.text: name for name in reversed(query.streams or ())}
    undeclared = [name for text, name in named.items() if text not in taken]
    if table is None or not undeclared:
        return declarations
    first, *more = sorted(undeclared, key=lambda name: name.span.start)
    for name in more:
        found.add(names.several_tables(name.text, first.text, name.span, first.span))
    known = {**{name: one.stream for name, one in declarations.rows.items()}, **declared}
    read = [known[name.text] for name in query.streams or () if name.text in known]
    others = [one for stream in read for one in stream.event_types]
    streams, places, untyped = {**declared}, {**declarations.places}, declarations.untyped
    for name in (first, *more):
        stream, flawed = stream_of_table(name, query, table, others, found)
        streams[stream.name], untyped = stream, untyped | flawed
        places[stream.name,] = name.span
        for one in stream.event_types:
            _check_name_of_type(one, declarations, name.span, found)
            places[stream.name, one.name] = name.span
            for attribute in one.attributes:
                places[stream.name, one.name, attribute.name] = name.span
    return replace(declarations, streams=streams, places=places, untyped=untyped)


def _check_name_of_type(
    event_type: core.EventType, declarations: Declarations, place: Span, found: Diagnostics
) -> None:
    """Report a query or a parameter set that is called like an event type of a table."""
    name = event_type.name
    if name in declarations.queries:
        span = declarations.queries[name]
        found.add(messages.called_like(name, "an event type", span, place))
    if name in declarations.parameters:
        span = declarations.parameters[name].place
        found.add(parameter_messages.event_type_and_set(name, span, place))


def declare(streams: Iterable[syntax.StreamDeclaration], found: Diagnostics) -> Declarations:
    """Read the declarations of a file; of two with one name the first counts."""
    declared: dict[str, core.Stream] = {}
    places: dict[tuple[str, ...], Span] = {}
    primary: dict[tuple[str, str], str] = {}
    times: dict[str, core.Uncertainty | None] = {}
    lasting: dict[str, Lasting | None] = {}
    for stream in streams:
        name = stream.name.text
        if name in declared:
            found.add(names.duplicate_stream(name, stream.name.span, places[name,]))
            continue
        places[name,] = stream.name.span
        event_types: dict[str, core.EventType] = {}
        for event, is_rest in with_rest(stream.events):
            key = (name, event.name.text)
            if key in places:
                found.add(names.duplicate_event_type(key[1], name, event.name.span, places[key]))
                continue
            places[key] = event.name.span
            attributes = _attributes(event, key, places, found)
            time = _primary_time(event, found)
            if time is not None:
                primary[key] = time
            event_types[key[1]] = core.EventType(name, key[1], attributes, is_rest)
        declared[name] = core.Stream(name, tuple(event_types.values()))
        if isinstance(stream.times, syntax.UncertainClause):
            times[name] = uncertainty_of(stream, stream.times, declared[name].event_types, found)
        elif stream.times is not None:
            lasting[name] = lasting_of(stream.times, declared[name].event_types, found)
    named = {key[0]: place for key, place in places.items() if len(key) == 1}
    uncertain = UncertainStreams(times, named)
    return Declarations(
        declared,
        places,
        _untyped(places, declared),
        primary,
        uncertain=uncertain,
        lasting=lasting,
    )


def with_rest(
    events: Sequence[syntax.EventDeclaration],
) -> list[tuple[syntax.EventDeclaration, bool]]:
    """The declarations of a stream, each with whether it is `EVENT OTHER { }`, which gets the
    attributes that all others declare alike: keys and the order of the events are among them."""
    declared = [one.attributes for one in events if not one.is_rest]
    if len(declared) == len(events):
        return [(one, False) for one in events]
    in_all = frozenset[syntax.AttributeDeclaration]().union(*declared[:1]).intersection(*declared)
    shared = tuple(one for one in declared[0] if one in in_all) if declared else ()
    return [
        (replace(one, attributes=shared) if one.is_rest else one, one.is_rest) for one in events
    ]


def _untyped(
    places: Mapping[tuple[str, ...], Span], streams: Mapping[str, core.Stream]
) -> frozenset[str]:
    typed = {
        (stream.name, event_type.name, attribute.name)
        for stream in streams.values()
        for event_type in stream.event_types
        for attribute in event_type.attributes
    }
    return frozenset(key[2] for key in places if len(key) == 3 and key not in typed)


def _primary_time(event: syntax.EventDeclaration, found: Diagnostics) -> str | None:
    times = [one for one in event.attributes if is_primary_time(one.type)]
    for one in times[1:]:
        first = times[0].type.span
        found.add(names.repeated_primary_time(event.name.text, one.type.span, first))
    return times[0].name.text if times else None


def _attributes(
    event: syntax.EventDeclaration,
    owner: tuple[str, str],
    places: dict[tuple[str, ...], Span],
    found: Diagnostics,
) -> tuple[core.AttributeDeclaration, ...]:
    declared = []
    for attribute in event.attributes:
        name, span = attribute.name.text, attribute.name.span
        key = (*owner, name)
        if key in places:
            found.add(names.duplicate_attribute(name, owner[1], span, places[key]))
            continue
        places[key] = span
        if name.lower() in RESERVED_ATTRIBUTES:
            found.add(names.reserved_attribute(name, span))
        is_time = is_primary_time(attribute.type)
        data_type = core.DataType.TIMESTAMP if is_time else type_of_written(attribute.type, found)
        if data_type is not None:
            declared.append(core.AttributeDeclaration(name, data_type))
    return tuple(declared)


@frozen
class Schema:
    """The event types and attributes of one query; bit k of a mask stands for `event_types[k]`."""

    declarations: Declarations
    streams: tuple[core.Stream, ...]
    event_types: tuple[core.EventType, ...]
    masks: Mapping[str, int]  # the event types by name
    types: Mapping[str, core.DataType]  # the type of each attribute
    having: Mapping[str, int]  # for each attribute the event types that have it
    flawed: frozenset[str]  # attributes with a wrong declaration, which has been reported
    order: Mapping[tuple[str, str], int]  # the numbers of the declarations of event types
    for_each: ForEach | None = None  # the parameter set
    made: DerivedColumns = field(default_factory=DerivedColumns)
    """The columns that are made of others, so far."""
    read: tuple[tuple[syntax.Name, QueryRows], ...] = ()
    """The queries whose rows are among the streams, by their names in FROM."""

    @property
    def everything(self) -> int:
        return (1 << len(self.event_types)) - 1

    def types_of(self, mask: int) -> tuple[core.EventType, ...]:
        """The event types of a mask, in the order of FROM."""
        if mask == self.everything:
            return self.event_types
        return tuple(self.event_types[k] for k in bits_of(mask))

    def names_of(self, mask: int) -> tuple[str, ...]:
        """The distinct names of the event types of a mask."""
        return tuple(dict.fromkeys(one.name for one in self.types_of(mask)))

    def primary_time(self) -> str | None:
        """The attribute that all event types declare as their time, or that orders the queries that
        are read. None where there is no such attribute."""
        orders = {order.name for _, rows in self.read for order in rows.order_by[:1]}
        if len(orders) == 1 and orders.issubset(self.shared()):
            return orders.pop()
        named = {self.declarations.primary.get((one.stream, one.name)) for one in self.event_types}
        return named.pop() if len(named) == 1 else None

    def attributes_of(self, mask: int) -> tuple[core.AttributeDeclaration, ...]:
        """The attributes of the event types of a mask, in order of first declaration, each once."""
        wanted = sorted(self.types_of(mask), key=lambda one: self.order[one.stream, one.name])
        found: dict[str, None] = {}
        for one in wanted:
            found.update(dict.fromkeys(item.name for item in one.attributes))
        return tuple(core.AttributeDeclaration(name, self.types[name]) for name in found)

    def shared(self, *, of: Iterable[core.DataType] | None = None) -> tuple[str, ...]:
        """The names of the attributes that every event type has, of the given types only."""
        return tuple(
            name
            for name, mask in self.having.items()
            if mask == self.everything and (of is None or self.types[name] in of)
        )

    def attribute(self, name: str) -> core.AttributeDeclaration:
        """An attribute that some event type has."""
        return core.AttributeDeclaration(name, self.types[name])

    def lacking(self, name: str) -> int:
        """The event types without an attribute of that name."""
        return self.everything & ~self.having.get(name, 0)

    def place_of_type(self, name: str) -> Span:
        """Where the first event type of that name is declared."""
        first = self.types_of(self.masks[name])[0]
        return self.declarations.places[first.stream, first.name]


def schema_of(query: syntax.Query, declarations: Declarations, found: Diagnostics) -> Schema:
    """The event types and attributes in a query's FROM.

    Where FROM is wrong, all declared streams are used. The query's other names can then be judged
    without errors that only follow from this one.
    """
    streams = _streams(query, declarations, found)
    event_types = tuple(one for stream in streams for one in stream.event_types)
    masks: dict[str, int] = {}
    types: dict[str, core.DataType] = {}
    having: dict[str, int] = {}
    owners: dict[str, core.EventType] = {}
    flawed = set(declarations.untyped)
    for k, event_type in enumerate(event_types):
        look()
        masks[event_type.name] = masks.get(event_type.name, 0) | 1 << k
        for attribute in event_type.attributes:
            owner = owners.setdefault(attribute.name, event_type)
            data_type = types.setdefault(attribute.name, attribute.type)
            having[attribute.name] = having.get(attribute.name, 0) | 1 << k
            if data_type is not attribute.type:
                places = declarations.places
                flawed.add(attribute.name)
                found.add(
                    names.conflicting_attribute(
                        attribute.name,
                        (data_type.value, attribute.type.value),
                        (owner.name, event_type.name),
                        places[event_type.stream, event_type.name, attribute.name],
                        places[owner.stream, owner.name, attribute.name],
                    )
                )
    _warn_of_case(owners, declarations, found)
    known = [*declarations.streams.values(), *(one.stream for one in declarations.rows.values())]
    declared = (one for stream in known for one in stream.event_types)
    order = {(one.stream, one.name): number for number, one in enumerate(declared)}
    for_each = for_each_of(query, declarations.parameters, types, found)
    return Schema(
        declarations,
        streams,
        event_types,
        masks,
        types,
        having,
        frozenset(flawed),
        order,
        for_each,
        read=_read(query, declarations),
    )


def _read(
    query: syntax.Query, declarations: Declarations
) -> tuple[tuple[syntax.Name, QueryRows], ...]:
    """The queries that a query names in FROM, each once, in the order of the file."""
    written = {name.text: name for name in reversed(query.streams or ())}
    return tuple(
        (written[name], rows)
        for name, rows in declarations.rows.items()
        if name in written and name not in declarations.streams
    )


def _warn_of_case(
    owners: Mapping[str, core.EventType], declarations: Declarations, found: Diagnostics
) -> None:
    by_lower: dict[str, str] = {}
    for name, owner in owners.items():
        other = by_lower.setdefault(name.lower(), name)
        if other != name:
            first = owners[other]
            found.add(
                warnings.attribute_case(
                    name,
                    other,
                    declarations.places[owner.stream, owner.name, name],
                    declarations.places[first.stream, first.name, other],
                )
            )


def _streams(
    query: syntax.Query, declarations: Declarations, found: Diagnostics
) -> tuple[core.Stream, ...]:
    declared = declarations.streams
    everything = tuple(declared.values())
    if query.streams is None:
        if not declared:
            found.add(names.no_streams(_events_in(query.formula), query.formula.span))
        return everything
    rows = declarations.rows
    known = {**{name: one.stream for name, one in rows.items()}, **declared}
    named: dict[str, Span] = {}
    for name in query.streams:
        text = name.text
        if text in named:
            found.add(names.repeated_stream(text, name.span, named[text]))
        elif declarations.stands_later(name):
            own = query.name is not None and query.name.text == text
            later = messages.reads_later(text, name.span, declarations.queries[text])
            found.add(messages.reads_itself(text, name.span) if own else later)
        elif text not in known:
            readable, events = _readable(query, declarations), _events_in(query.formula)
            found.add(names.unknown_stream(text, readable, events, name.span))
        elif text not in declared:
            _check_rows(rows[text], name, found)
        named.setdefault(text, name.span)
    if not named.keys() <= known.keys():
        read = (one.stream for name, one in rows.items() if name in named and name not in declared)
        return (*everything, *read)
    return tuple(known[name] for name in named)


def _events_in(node: object) -> list[str]:
    """The event types that a formula names, in order of first appearance."""
    if isinstance(node, syntax.EventAtom):
        return [node.type.text]
    parts = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        parts = tuple(getattr(node, one.name) for one in fields(node))
    return list(dict.fromkeys(name for part in parts for name in _events_in(part)))


def _readable(query: syntax.Query, declarations: Declarations) -> list[str]:
    """The names that FROM of a query can have: streams and earlier queries."""
    before = [n for n, place in declarations.queries.items() if place.start < query.span.start]
    return [*declarations.streams, *before]


def _check_rows(rows: QueryRows, name: syntax.Name, found: Diagnostics) -> None:
    """Report why the rows of a query cannot be read."""
    if any(rows.why_not):
        found.add(messages.unreadable(name.text, *rows.why_not, name.span, rows.place))
    elif rows.twice:
        place = rows.places[rows.twice]
        found.add(messages.attribute_twice(name.text, rows.twice, name.span, place))

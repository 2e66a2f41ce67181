"""Tables that are read without a declaration: FROM names one, and its columns are known.

Such a table becomes a stream that the query alone reads, so later passes see no difference. The
formula names values of the type column, and each of them is an event type. A table without a type
column has one event type, with the name of the table. Every event type has all columns as
attributes.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import names as messages
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.parse.trees import nodes_of
from celc.resolve.types.schemas import TableColumn, columns_of

RESERVED_ATTRIBUTES = frozenset({"pos", "type", "stream"})
_TYPE = "type"


@frozen
class KnownTable:
    """A table that queries may read without a declaration."""

    schema: Any  # its columns, in a form that `columns_of` takes
    type_column: str | None  # the column of the event types; None: `type`, if there is one


def stream_of_table(
    name: syntax.Name,
    query: syntax.Query,
    table: KnownTable,
    others: Collection[core.EventType],
    found: Diagnostics,
) -> tuple[core.Stream, frozenset[str]]:
    """(the table that a query calls `name`, as a stream; the attributes that are no attributes of
    it, whose errors are reported here).

    others: the event types of the other streams of the query. A name without a stream means theirs
    if they have it. found: gets the errors.
    """
    known = {one.name: one for one in columns_of(table.schema)}
    named = _types_named(name, query, {one.name for one in others})
    given = _TYPE if table.type_column is None and _TYPE in known else table.type_column
    if given is None:
        foreign = [one for one in named if one.text != name.text]
        for one in foreign[:1]:
            shown = [*known]
            found.add(messages.no_type_column(one.text, name.text, shown, one.span))
        types = [one.text for one in foreign] or [name.text]
    else:
        _check_types(given, known, name, found)
        types = [one.text for one in named]
        if not types:
            read = [one.text for one in query.streams or () if one is not name]
            found.add(messages.no_event_of_table(name.text, read, name.span))
            types = [name.text]
    asked = _attributes_named(query)
    attributes, unreadable = _attributes(known, asked, given)
    for attribute, type in unreadable.items():
        found.add(messages.unreadable_attribute(attribute, type, asked[attribute]))
    found_types = dict.fromkeys(types)
    stream = core.Stream(
        name.text, tuple(core.EventType(name.text, one, attributes) for one in found_types)
    )
    return stream, frozenset(unreadable)


def _check_types(
    column: str, known: Mapping[str, TableColumn], table: syntax.Name, found: Diagnostics
) -> None:
    if column not in known:
        found.add(messages.unknown_type_column(column, table.text, [*known], table.span))
    elif known[column].type is not core.DataType.STRING:
        found.add(messages.types_are_no_texts(column, known[column].given, table.span))


def _types_named(
    table: syntax.Name, query: syntax.Query, others: Collection[str]
) -> list[syntax.Name]:
    """The event types that a query names and that are this table's, in the order of the text."""
    named = [
        one.type
        for one in nodes_of(query)
        if isinstance(one, syntax.EventAtom | syntax.TypeTest)
        and (one.type.text not in others if one.stream is None else one.stream.text == table.text)
    ]
    return sorted(named, key=lambda one: one.span.start)


def _attributes_named(query: syntax.Query) -> dict[str, Span]:
    """The attributes that a query names, each with a place where it does."""
    return {one.text: one.span for one in _names_of_attributes(query)}


def _names_of_attributes(query: syntax.Query) -> Iterator[syntax.Name]:
    for node in nodes_of(query):
        match node:
            case syntax.Attribute(attribute=name):
                yield name
            case syntax.LabelItem(attributes=tuple(names)):
                yield from names
            case syntax.Alternatives(names=names):
                yield from names
            case syntax.DurationWindow(attribute=syntax.Name() as name):
                yield name
            case syntax.ValueWindow(attribute=name):
                yield name
    yield from (key for key in query.partition_by or () if isinstance(key, syntax.Name))


def _attributes(
    known: Mapping[str, TableColumn], asked: Collection[str], type_column: str | None
) -> tuple[tuple[core.AttributeDeclaration, ...], dict[str, str]]:
    """(the attributes: columns, and the fields of structs that are asked for; the types of the
    columns that are asked for and that no attribute can hold, by their names)."""
    declared: list[core.AttributeDeclaration] = []
    unreadable: dict[str, str] = {}
    for one in known.values():
        if one.name == type_column or one.name.lower() in RESERVED_ATTRIBUTES or not one.name:
            continue
        if one.type is not None:
            declared.append(core.AttributeDeclaration(one.name, one.type))
        elif one.name in asked:
            unreadable[one.name] = one.given
    types = {one.name: one.type for one in declared}
    inner = ((name, _field(name, types)) for name in asked if name not in known)
    fields = (core.AttributeDeclaration(name, type) for name, type in inner if type is not None)
    return (*declared, *sorted(fields, key=lambda one: one.name)), unreadable


def _field(name: str, types: Mapping[str, core.DataType]) -> core.DataType | None:
    """The type of the field that a name with dots leads to; None: there is no such field.

    Columns and fields may have dots in their names, so the longest name is tried first.
    """
    if name in types:
        return types[name]
    for dot in range(len(name) - 1, 0, -1):
        inner = types.get(name[:dot])
        if name[dot] == "." and isinstance(inner, core.StructType):
            found = _field(name[dot + 1 :], dict(inner.fields))
            if found is not None:
                return found
    return None

"""The clauses around a formula: order columns, WITHIN, PARTITION BY, CONSUME BY and LIMIT."""

import math
from collections.abc import Callable, Collection
from typing import Literal, assert_never

from celc_runtime.plan.frozen import frozen

from celc.core.formula import (
    NUMBERS,
    TIMES,
    AttributeDeclaration,
    DataType,
    PartitionKey,
    Window,
    WindowUnit,
)
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import clauses, names, warnings
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.ends import lengths_of_absences
from celc.resolve.schema import Schema
from celc.resolve.types import literals
from celc.resolve.types.own_event import key_of_event


@frozen
class QueryClauses:
    """The clauses around the formula of a query, and the order columns named at the call."""

    order_by: tuple[AttributeDeclaration, ...]
    order_is_known: bool  # no order column was refused
    window: Window | None
    partition_by: tuple[PartitionKey, ...]
    consume_by: Literal["NONE", "ANY", "PARTITION"]
    limit: int | None


def clauses_of_query(
    node: syntax.Query, order_by: tuple[str, ...] | None, schema: Schema, found: Diagnostics
) -> QueryClauses:
    """The clauses of a query; with `order_by` None the query itself says its order."""
    measure = _measure_of(node)
    columns = order_columns(order_by, measure, schema, _from_span(node), found)
    order_is_known = order_by is None or len(columns) == len(order_by)
    counts = isinstance(node.window, syntax.EventsWindow | None)
    if order_by is None and not columns and counts and measure is None:
        times = [name for name in schema.shared(of=TIMES) if name not in schema.flawed]
        if times:
            found.add(warnings.no_order(times, node.window is not None, _from_span(node)))
    window = window_of(node.window, columns, order_is_known, schema, found)
    partition_by = partition_keys(node.partition_by, schema, found)
    consume_by = node.consume.policy if node.consume is not None else "NONE"
    if node.consume is not None and consume_by != "NONE":
        whole = consume_by == "ANY" or not partition_by
        what = f"what is left after CONSUME BY {consume_by}"
        found.add(warnings.one_ordered_scan(what, whole, node.consume.span))
    return QueryClauses(
        columns, order_is_known, window, partition_by, consume_by, limit_of(node.limit, found)
    )


def _from_span(node: syntax.Query) -> Span:
    if node.streams:
        return node.streams[0].span.to(node.streams[-1].span)
    return node.span if node.name is None else node.name.span


def _measure_of(node: syntax.Query) -> syntax.Name | None:
    """The attribute that orders the events of a query if the caller names no order column.

    WITHIN names it. Without WITHIN, the lengths of the absences do, if all name the same one.
    """
    written = [node.window, *lengths_of_absences(node.formula)]
    names = [
        None if isinstance(one, syntax.EventsWindow | None) else one.attribute for one in written
    ]
    first, *others = names
    if first is not None:
        return first
    named = {name.text: name for name in others if name is not None}
    # With two attributes, neither is the order.
    return next(iter(named.values())) if len(named) == 1 else None


_Unknown = Callable[[str, Collection[str], Span], Diagnostic]


def _shared_attribute(
    name: str,
    span: Span,
    schema: Schema,
    found: Diagnostics,
    *,
    unknown: _Unknown,
    partial: _Unknown,
) -> AttributeDeclaration | None:
    """The attribute of this name, which every event type of FROM must have; None after an error.

    `unknown` makes the error for a name that no event type has, `partial` the one for a name that
    only some have.
    """
    if name in schema.flawed:
        return None
    if name not in schema.having:
        if schema.event_types:
            found.add(unknown(name, schema.shared(), span))
        return None
    lacking = schema.lacking(name)
    if lacking:
        found.add(partial(name, schema.names_of(lacking), span))
        return None
    return schema.attribute(name)


def order_columns(
    order_by: tuple[str, ...] | None,
    attribute: syntax.Name | None,
    schema: Schema,
    span: Span,
    found: Diagnostics,
) -> tuple[AttributeDeclaration, ...]:
    """The order columns.

    They are those that the call names, else the attribute on which WITHIN or an absence is
    measured, else the attribute of the type PRIMARY_TIME.
    """
    if order_by is None:
        if attribute is None:
            primary = schema.primary_time()
            return () if primary is None else (schema.attribute(primary),)
        # A wrong attribute is reported with what is measured on it.
        if attribute.text not in schema.shared():
            return ()
        return (schema.attribute(attribute.text),)
    columns: dict[str, AttributeDeclaration | None] = {}
    for name in order_by:
        if name in columns:
            found.add(clauses.repeated_order_column(name, span))
            continue
        column = columns[name] = _shared_attribute(
            name,
            span,
            schema,
            found,
            unknown=clauses.unknown_order_column,
            partial=clauses.partial_order_column,
        )
        if column is not None and not column.type.is_ordered:
            found.add(clauses.order_column_type(name, column.type.value, span))
            columns[name] = None
    return tuple(column for column in columns.values() if column is not None)


def window_of(
    node: syntax.Window | None,
    order_by: tuple[AttributeDeclaration, ...],
    order_is_known: bool,
    schema: Schema,
    found: Diagnostics,
) -> Window | None:
    """WITHIN; `order_is_known` says that no order column was refused."""
    match node:
        case None:
            return None
        case syntax.EventsWindow():
            return _events_window(node, found)
        case syntax.DurationWindow():
            return _duration_window(node, order_by, order_is_known, schema, found)
        case syntax.ValueWindow():
            return _value_window(node, schema, found)
        case _:
            assert_never(node)


def _events_window(node: syntax.EventsWindow, found: Diagnostics) -> Window | None:
    if not isinstance(node.size, syntax.IntegerLiteral):
        found.add(clauses.whole_window(node.size.span))
        return None
    if node.size.value > literals.LARGEST_SIZE:
        found.add(clauses.window_too_large(node.size.span))
        return None
    return Window(WindowUnit.EVENTS, node.size.value, None, node.span)


def _window_attribute(
    node: syntax.Name, schema: Schema, found: Diagnostics
) -> AttributeDeclaration | None:
    return _shared_attribute(
        node.text,
        node.span,
        schema,
        found,
        unknown=clauses.unknown_window_attribute,
        partial=clauses.partial_window_attribute,
    )


def _duration_window(
    node: syntax.DurationWindow,
    order_by: tuple[AttributeDeclaration, ...],
    order_is_known: bool,
    schema: Schema,
    found: Diagnostics,
) -> Window | None:
    size = literals.duration(node.parts, found)
    times = schema.shared(of=TIMES)
    attribute = None
    if node.attribute is not None:
        attribute = _window_attribute(node.attribute, schema, found)
        if attribute is None:
            return None
        if attribute.type not in TIMES:
            name, data_type = attribute.name, attribute.type
            found.add(
                clauses.duration_on_other_type(
                    name, data_type.value, data_type.is_numeric, times, node.attribute.span
                )
            )
            return None
    elif not order_by:
        if order_is_known:
            found.add(clauses.unmeasured_window(None, None, times, node.span))
        return None
    elif order_by[0].type not in TIMES:
        first = order_by[0]
        found.add(clauses.unmeasured_window(first.name, first.type.value, times, node.span))
        return None
    return None if size is None else Window(WindowUnit.MICROSECONDS, size, attribute, node.span)


def _value_window(node: syntax.ValueWindow, schema: Schema, found: Diagnostics) -> Window | None:
    attribute = _window_attribute(node.attribute, schema, found)
    if math.isinf(node.size.value) or node.size.value > literals.LARGEST_SIZE:
        found.add(clauses.window_too_large(node.size.span))
        return None
    if attribute is None:
        return None
    if attribute.type not in NUMBERS:
        name, data_type = attribute.name, attribute.type
        found.add(
            clauses.number_on_other_type(
                name,
                data_type.value,
                data_type in TIMES,
                schema.shared(of=NUMBERS),
                node.attribute.span,
            )
        )
        return None
    return Window(WindowUnit.VALUE, node.size.value, attribute, node.span)


def check_window_length(window: Window | None, length: int, span: Span, found: Diagnostics) -> None:
    """Warn where no match of at least `length` events fits a window that counts events."""
    if window is None or window.unit is not WindowUnit.EVENTS or window.size >= length - 1:
        return
    found.add(
        warnings.never_matches(
            f"a match has at least {length} events, so it does not fit the window",
            f"the window must admit a distance of {length - 1} from first to last event",
            window.span,
            span,
        )
    )


def partition_keys(
    nodes: tuple[syntax.Key, ...] | None,
    schema: Schema,
    found: Diagnostics,
) -> tuple[PartitionKey, ...]:
    """The keys of PARTITION BY."""
    written: dict[frozenset[str], Span] = {}
    columns: dict[str, Span] = {}
    keys = []
    for node in nodes or ():
        if isinstance(node, syntax.KeyExpression):
            made = key_of_event(node, schema, found)
            if made is not None and _is_key(made.type, node.span, found):
                columns[made.name] = node.span
                keys.append(PartitionKey(made.name, made.type))
            continue
        first, *others = (node,) if isinstance(node, syntax.Name) else node.names
        texts = (first.text, *(name.text for name in others))
        before = written.setdefault(frozenset(texts), node.span)
        if before is not node.span:
            repeated = clauses.repeated_key(texts, node.span, before)
            if not others:
                repeated = names.repeated_attribute(first.text, "PARTITION BY", node.span, before)
            found.add(repeated)
            continue
        if isinstance(node, syntax.Alternatives) and others:
            key = _chosen_key(node, schema, found)
        else:
            key = _plain_key(first, schema, found)
        if key is None:
            continue
        if key.name in columns:
            found.add(clauses.repeated_key_column(texts, node.span, columns[key.name]))
            continue
        columns[key.name] = node.span
        keys.append(key)
    return tuple(keys)


def _plain_key(name: syntax.Name, schema: Schema, found: Diagnostics) -> PartitionKey | None:
    attribute = _shared_attribute(
        name.text,
        name.span,
        schema,
        found,
        unknown=clauses.unknown_partition_attribute,
        partial=lambda name, lacking, span: clauses.partial_partition_attribute(
            name, lacking, span, schema.place_of_type(next(iter(lacking)))
        ),
    )
    if attribute is None or not _is_key(attribute.type, name.span, found):
        return None
    return PartitionKey(attribute.name, attribute.type)


def _is_key(data_type: DataType, span: Span, found: Diagnostics) -> bool:
    """Whether values of a type can be keys; if not, that is reported."""
    if not data_type.is_compared:
        found.add(clauses.partition_key_type(data_type.value, span))
    return data_type.is_compared


def _chosen_key(
    node: syntax.Alternatives, schema: Schema, found: Diagnostics
) -> PartitionKey | None:
    """The key `[a, b]`. Each event type must have exactly one of these attributes: its key."""
    places = _places_of_alternatives(node, schema, found)
    if places is None:
        return None
    listed = list(places)
    types: dict[str, list[tuple[str, str]]] = {name: [] for name in listed}
    lacking = []
    for k, event_type in enumerate(schema.event_types):
        has = [name for name in listed if schema.having[name] >> k & 1]
        if len(has) > 1:
            offers = _unambiguous(listed, has, schema)
            found.add(
                clauses.ambiguous_partition_key(listed, event_type.name, has, offers, node.span)
            )
            return None
        if has:
            types[has[0]].append((event_type.stream, event_type.name))
        else:
            lacking.append(event_type.name)
    if lacking:
        found.add(clauses.partial_alternatives(listed, dict.fromkeys(lacking), node.span))
        return None
    first = schema.types[listed[0]]
    for other in listed[1:]:
        if schema.types[other] is not first:
            both = (first.value, schema.types[other].value)
            found.add(clauses.partition_key_types((listed[0], other), both, places[other]))
            return None
    if not _is_key(first, node.span, found):
        return None
    ways = tuple((attribute, tuple(having)) for attribute, having in types.items())
    return PartitionKey(listed[0], first, ways)


def _places_of_alternatives(
    node: syntax.Alternatives, schema: Schema, found: Diagnostics
) -> dict[str, Span] | None:
    """The attributes in brackets, with their places; None after an error about one of them."""
    places: dict[str, Span] = {}
    for name in node.names:
        if name.text in places:
            repeated = names.repeated_attribute(name.text, "[…]", name.span, places[name.text])
            found.add(repeated)
            return None
        places[name.text] = name.span
        if name.text not in schema.having and name.text not in schema.flawed:
            if schema.event_types:
                offered = schema.shared()
                found.add(clauses.unknown_partition_attribute(name.text, offered, name.span))
            return None
    return places if schema.flawed.isdisjoint(places) else None


def _unambiguous(
    listed: list[str], has: list[str], schema: Schema
) -> tuple[list[list[str]], list[list[str]]]:
    """What can be written instead of an ambiguous key: lists of separate keys, and single keys."""

    def serves(names: list[str]) -> bool:
        masks = [schema.having[name] for name in names]
        apart = all(one & other == 0 for k, one in enumerate(masks) for other in masks[:k])
        one_type = len({schema.types[name] for name in names}) == 1
        return one_type and apart and sum(masks) == schema.everything

    several = [listed] if all(serves([name]) for name in listed) else []
    fewer = ([name for name in listed if name not in has or name == kept] for kept in has)
    return several, [names for names in fewer if serves(names)]


def limit_of(node: syntax.LimitClause | None, found: Diagnostics) -> int | None:
    if node is None:
        return None
    count = node.count
    if isinstance(count, syntax.IntegerLiteral) and 1 <= count.value <= literals.LARGEST_SIZE:
        return count.value
    found.add(clauses.limit_range(count.span))
    return None

"""Expressions of one event, whose attributes have no label: derived attributes, and keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from celc_runtime.values.functions import FUNCTIONS

from celc.core import formula as core
from celc.core.traversal import map_expression, nodes_of
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.messages.wording import names_with_signs_around
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.readers import START_TIME, Lasting
from celc.resolve.schema import Declarations, Schema, with_rest
from celc.resolve.scopes import Frame
from celc.resolve.types import functions as calls
from celc.resolve.types.conditions import condition
from celc.resolve.types.conversions import common_type, convert, is_null, literal_type
from celc.resolve.types.expressions import absolute, expression
from celc.resolve.types.parts import part
from celc.resolve.types.site import Site

_NO_STREAMS = Schema(Declarations({}, {}, frozenset(), {}), (), (), {}, {}, {}, frozenset(), {})

Types = Mapping[str, core.DataType]


class _Attributes:
    """The attributes of an event, by their names alone."""

    def __init__(self, types: Types, flawed: frozenset[str]) -> None:
        self._types = types
        self._flawed = flawed

    def value(
        self,
        node: syntax.OfSite,
        site: Site,
    ) -> core.Expression | None:
        """The meaning of a name or a call."""
        match node:
            case syntax.Attribute(label=None):
                return self._attribute(node.attribute, site)
            case syntax.Attribute():
                self._labelled(node.attribute, node.span, site)
                return None
            case syntax.Conditional():
                return calls.conditional(node, site, expression)
            case syntax.Cast():
                return calls.cast(node, site, expression)
            case syntax.Field(operand=syntax.Attribute(label=None, attribute=name)) if (
                name.text not in self._types
            ):
                self._labelled(node.name, node.span, site)
                return None
            case syntax.Field() | syntax.Element() | syntax.JsonValue():
                return part(node, site, expression)
            case syntax.Call() if node.function.text.upper() == "ABS" and not node.more:
                return absolute(node, site)
            case syntax.Call() if node.function.text.upper() in FUNCTIONS:
                return calls.function_call(
                    FUNCTIONS[node.function.text.upper()], node, site, expression
                )
            case _:
                name = node.function
                site.found.add(messages.not_of_one_event(name.text, [*FUNCTIONS, "ABS"], name.span))
                return None

    def _labelled(self, name: syntax.Name, span: Span, site: Site) -> None:
        unlabelled = messages.label_in_brackets(name.text, span)
        site.found.add(self._whole(span, site) or unlabelled)

    def _whole(self, span: Span, site: Site) -> Diagnostic | None:
        """The error about a name of several words, one of which is at a place."""
        text = site.found.source.text
        return names_with_signs_around(text, span, self._types, after_label=False)

    def no_label(self, label: str, span: Span, site: Site) -> None:
        raise AssertionError("names in a value of one event are attributes")

    def pattern(self, asked: core.PatternMatch) -> core.Truth:
        return asked

    def _attribute(self, name: syntax.Name, site: Site) -> core.Expression | None:
        if name.text in self._types:
            return core.AttributeValue("", name.text, self._types[name.text], name.span)
        if whole := self._whole(name.span, site):
            site.found.add(whole)
        elif name.text not in self._flawed:
            site.found.add(messages.unknown_in_event(name.text, self._types, name.span))
        return None


def value_of_event(
    node: syntax.Expression, types: Types, flawed: frozenset[str], found: Diagnostics
) -> core.Expression | None:
    """An expression over the attributes of one event, whose types are given. `flawed` are
    attributes with a wrong declaration."""
    frame = Frame({}, None, None)
    names = _Attributes(types, flawed)
    site = Site(_NO_STREAMS, frame, {}, found, "event", condition, declared=names)
    return expression(node, site)


# --- derived attributes ---------------------------------------------------------------------------


def derived_attributes(
    streams: Iterable[syntax.StreamDeclaration], declarations: Declarations, found: Diagnostics
) -> Mapping[tuple[str, str, str], core.Expression]:
    """The values of derived attributes, by stream, type and attribute. They are made of columns of
    the input, also where they name other derived attributes."""
    values: dict[tuple[str, str, str], core.Expression] = {}
    for stream in streams:
        for event, _ in with_rest(stream.events):
            owner = (stream.name.text, event.name.text)
            declared = _types_of(declarations, owner)
            for name, value in _values(event.attributes, declared, declarations, found).items():
                values[*owner, name] = value
    return values


def _types_of(declarations: Declarations, owner: tuple[str, str]) -> Types:
    stream = declarations.streams.get(owner[0])
    types = () if stream is None else stream.event_types
    return {a.name: a.type for one in types if one.name == owner[1] for a in one.attributes}


def _values(
    attributes: Sequence[syntax.AttributeDeclaration],
    types: Types,
    declarations: Declarations,
    found: Diagnostics,
) -> dict[str, core.Expression]:
    written: dict[str, core.Expression] = {}
    for one in attributes:
        if one.value is None or one.name.text not in types:
            continue
        value = value_of_event(one.value, types, declarations.untyped, found)
        wanted = types[one.name.text]
        if value is None:
            continue
        type = literal_type(value) if isinstance(wanted, core.DecimalType) else value.type
        if not is_null(value) and common_type(type, wanted) is not wanted:
            text = found.source.slice(one.value.span)
            found.add(messages.derived_type(text, value.type.value, wanted.value, one.value.span))
            continue
        written[one.name.text] = convert(value, wanted)
    return {
        name: made
        for name in written
        if (made := _of_columns(name, written, (), found)) is not None
    }


def _of_columns(
    name: str, written: Mapping[str, core.Expression], around: tuple[str, ...], found: Diagnostics
) -> core.Expression | None:
    """The value of a derived attribute, with the values of others in place of their names."""
    value = written[name]
    named = [n for n in nodes_of(value) if isinstance(n, core.AttributeValue)]
    for node in named:
        if node.attribute in (name, *around):
            found.add(messages.derived_of_itself(node.attribute, node.span))
            return None
    inner = {
        node.attribute: _of_columns(node.attribute, written, (name, *around), found)
        for node in named
        if node.attribute in written
    }
    if None in inner.values():
        return None

    def known(leaf: core.Expression) -> core.Expression:
        assert isinstance(leaf, core.AttributeValue)
        return inner.get(leaf.attribute) or leaf

    return map_expression(value, known)


def enter_derived(schema: Schema) -> None:
    """Tell a query's schema the columns of its derived attributes."""
    declared = schema.declarations.derived
    if not declared:
        return
    for name in schema.types:
        ways: dict[core.Expression | None, list[core.EventType]] = {}
        for one in schema.types_of(schema.having[name]):
            ways.setdefault(declared.get((one.stream, one.name, name)), []).append(one)
        if set(ways) != {None}:
            schema.made.declare(name, _combined(name, schema.types[name], ways))


def _combined(
    name: str, type: core.DataType, ways: Mapping[core.Expression | None, list[core.EventType]]
) -> core.Expression:
    """The value of an attribute that event types derive in different ways; None: the column."""
    span = Span(0, 0)
    column = core.AttributeValue("", name, type, span)
    values = [(column if way is None else way, types) for way, types in ways.items()]
    otherwise, _ = values[-1]
    if len(values) == 1:
        return otherwise
    of_type = core.AttributeValue("", core.TYPE, core.DataType.STRING, span)
    branches = tuple(
        (
            core.Membership(of_type, tuple(map(core.text_of_type, types)), False, False, span),
            value,
        )
        for value, types in values[:-1]
    )
    return core.Conditional(branches, otherwise, type, span)


def start_of(
    schema: Schema, lasting: Mapping[str, Lasting], reads: Sequence[str]
) -> core.AttributeDeclaration:
    """The column that says when each event starts, where some `lasting` streams are read: one of
    the table where all streams have the same, else one that is made. Rows of the queries in `reads`
    have a start as well; other events start when they end."""
    end = next(iter(lasting.values())).end
    of_rows = core.AttributeDeclaration(START_TIME, end.type)
    ways: dict[core.Expression | None, list[core.EventType]] = {}
    starts: dict[str, core.AttributeDeclaration] = {}
    for one in schema.event_types:
        start = lasting[one.stream].start if one.stream in lasting else end
        start = of_rows if one.stream in reads else start
        starts[start.name] = start
        column = core.AttributeValue("", start.name, start.type, Span(0, 0))
        ways.setdefault(schema.made.value_of(start.name) or column, []).append(one)
    if len(starts) == 1 and not reads:
        return next(iter(starts.values()))
    value = _combined("", end.type, ways)
    name = schema.made.name_of(value, frozenset(schema.types))
    return core.AttributeDeclaration(name, end.type)


# --- keys -----------------------------------------------------------------------------------------


def key_of_event(
    node: syntax.KeyExpression, schema: Schema, found: Diagnostics
) -> core.AttributeDeclaration | None:
    """The column that an expression in PARTITION BY is; None after an error."""
    match node.value:
        case syntax.Field(operand=syntax.Attribute(label=None, attribute=label)) if (
            label.text not in schema.types
        ):
            found.add(messages.labelled_key(node.value.name.text, node.span))
            return None
    types = {name: schema.types[name] for name in schema.shared()}
    value = value_of_event(node.value, types, schema.flawed, found)
    if value is None:
        return None
    made = schema.made

    def known(leaf: core.Expression) -> core.Expression:
        assert isinstance(leaf, core.AttributeValue)
        return made.value_of(leaf.attribute) or replace(leaf, label="")

    name = made.name_of(map_expression(value, known), frozenset(schema.types))
    return core.AttributeDeclaration(name, value.type)

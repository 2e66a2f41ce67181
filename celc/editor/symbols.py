"""The names in a text: what each of them means, and where else the same thing is named.

An attribute is a column. So attributes with one name are the same thing in all streams that a query
reads together. A label is the same thing everywhere in its query, wherever the formula binds it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.parse import syntax

SymbolKind = Literal[
    "stream", "type", "attribute", "label", "query", "parameters", "parameter", "aggregate",
    "function", "variable", "column", "table", "measure", "unknown",
]  # fmt: skip


Scope: TypeAlias = tuple[str, ...]
"""What a thing belongs to, such as a query or a parameter set; empty: to the whole file."""


@frozen
class Symbol:
    """A thing with a name. `scope` distinguishes things of one kind and name."""

    kind: SymbolKind
    scope: Scope
    name: str


@frozen
class Occurrence:
    """A place where a thing is named."""

    span: Span
    symbol: Symbol
    declares: bool = False  # whether the thing gets its name here


def occurrences(file: syntax.File) -> tuple[Occurrence, ...]:
    """All names of a `.cel` file in order. Names without a declaration are `unknown`."""
    collector = _File(file)
    collector.collect()
    return tuple(sorted(collector.found, key=lambda one: one.span))


def occurrence_at(found: Iterable[Occurrence], offset: int) -> Occurrence | None:
    """The name that contains or ends at an offset."""
    return next((one for one in found if one.span.start <= offset <= one.span.end), None)


class _Groups:
    """Which streams and queries are read together: disjoint sets, each known by one member."""

    def __init__(self) -> None:
        self._leader: dict[Scope, Scope] = {}

    def of(self, member: Scope) -> Scope:
        while (above := self._leader.get(member, member)) != member:
            member = above
        return member

    def join(self, members: Iterable[Scope]) -> None:
        leaders = sorted({self.of(member) for member in members})
        for leader in leaders[1:]:
            self._leader[leader] = leaders[0]


def _own(index: int) -> Scope:
    """The scope of the query with this number. Names do not tell queries apart: one can be missing,
    or be given twice."""
    return ("query", str(index))


class _File:
    """Collects the names of a file in `found`."""

    def __init__(self, file: syntax.File) -> None:
        self._file = file
        self.found: list[Occurrence] = []
        self._streams = {stream.name.text for stream in file.streams}
        self._queries = {query.name.text for query in file.queries if query.name}
        self._sets = {one.name.text for one in file.parameters}  # parameter sets
        self._called: dict[str, SymbolKind] = {one.name.text: "function" for one in file.functions}
        self._called |= {one.name.text: "aggregate" for one in file.aggregates}
        self._groups = _Groups()
        # A query is in one group with the streams that it reads and with the queries that read it.
        self._reads = {_own(n): self._read_by(query) for n, query in enumerate(file.queries)}
        by_name = {one.name.text: n for n, one in enumerate(file.queries) if one.name is not None}
        for own, names in self._reads.items():
            self._groups.join([own, *(("name", name) for name in names)])
            for name in names:
                if name in by_name:
                    self._groups.join([own, _own(by_name[name])])
        self._read = {name for names in self._reads.values() for name in names}
        self._types = {
            (self._groups.of(("name", stream.name.text)), event.name.text)
            for stream in file.streams
            for event in stream.events
        }

    def _read_by(self, query: syntax.Query) -> list[str]:
        if query.streams is None:
            return [stream.name.text for stream in self._file.streams]
        return [name.text for name in query.streams]

    def collect(self) -> None:
        for stream in self._file.streams:
            group = self._groups.of(("name", stream.name.text))
            self._add("stream", (), stream.name, declares=True)
            for name in () if stream.times is None else stream.times.names:
                self._add("attribute", group, name)
            if isinstance(stream.times, syntax.UncertainClause) and stream.times.weights:
                self._add("attribute", group, stream.times.weights)
            for event in stream.events:
                self._add("type", group, event.name, declares=True)
                for attribute in event.attributes:
                    self._add("attribute", group, attribute.name, declares=True)
        for rows in self._file.parameters:
            self._add("parameters", (), rows.name, declares=True)
            for attribute in rows.attributes:
                self._add("parameter", (rows.name.text,), attribute.name, declares=True)
            for name in () if rows.valid is None else rows.valid.names:
                self._add("parameter", (rows.name.text,), name)
        for aggregate in self._file.aggregates:
            self._aggregate(aggregate)
        for function in self._file.functions:
            self._add("function", (), function.name, declares=True)
        for index, query in enumerate(self._file.queries):
            _Query(self, query, _own(index)).collect()

    def _add(
        self, kind: SymbolKind, scope: Scope, name: syntax.Name, *, declares: bool = False
    ) -> None:
        self.found.append(Occurrence(name.span, Symbol(kind, scope, name.text), declares))

    def _aggregate(self, node: syntax.AggregateDeclaration) -> None:
        own = (node.name.text,)
        self._add("aggregate", (), node.name, declares=True)
        for parameter in node.parameters:
            self._add("variable", own, parameter.name, declares=True)
        for state in node.state:
            self._add("variable", own, state.declared.name, declares=True)
        for step in node.steps:
            self._add("variable", own, step.name)
        values = (*(one.value for one in node.state), *(one.value for one in node.steps))
        for part, _ in _parts([*values, node.result]):
            if isinstance(part, syntax.Attribute) and part.label is None:
                self._add("variable", own, part.attribute)


class _Query:
    """The names of one query."""

    def __init__(self, file: _File, query: syntax.Query, own: Scope) -> None:
        self._file, self._query, self._own = file, query, own
        self._group = file._groups.of(own)
        self._read = [name for name in file._reads[own] if name in file._queries]
        self._set = query.for_each.text if query.for_each is not None else None
        self._labels = set(_labels_bound(query.formula))
        # The columns of a query that others read are attributes of their events.
        is_read = query.name is not None and query.name.text in file._read
        self._columns: tuple[SymbolKind, Scope] = (
            ("attribute", self._group) if is_read else ("column", self._own)
        )

    def collect(self) -> None:
        query = self._query
        if query.name is not None:
            self._file._add("query", (), query.name, declares=True)
        for name in query.streams or ():
            self._stream(name)
        if query.for_each is not None:
            self._known(self._file._sets, "parameters", query.for_each)
        for key in query.partition_by or ():
            if isinstance(key, syntax.KeyExpression):
                self._attributes(_names_in(key.value))
            else:
                self._attributes(key.names if isinstance(key, syntax.Alternatives) else (key,))
        parts: list[Any] = [query.formula, query.window]
        if query.per is not None:
            parts.append(query.per.group)
        if query.select is not None and isinstance(query.select.items, tuple):
            parts += query.select.items
        for part, inside in _parts(parts):
            self._part(part, inside)
        having = [] if query.having is None else [query.having.condition]
        for part, inside in _parts(having):
            if isinstance(part, syntax.Attribute) and part.label is None:
                self._file._add(*self._columns, part.attribute)
            else:
                self._part(part, inside)

    def _part(self, part: Any, inside: bool) -> None:
        match part:
            case syntax.EventAtom():
                self._type(part.stream, part.type)
            case syntax.As():
                self._file._add("label", self._own, part.label, declares=True)
            case syntax.Rename():
                self._label(part.old)
                self._file._add("label", self._own, part.new, declares=True)
            case syntax.Project():
                for label in part.labels:
                    self._label(label)
            case syntax.TypeTest():
                self._label(part.label)
                self._type(part.stream, part.type)
            case syntax.EventCondition():
                self._label(part.label)
            case syntax.Quantified():
                for label in part.labels:
                    self._label(label)
            case syntax.Attribute(label=None):
                if inside:
                    self._attributes((part.attribute,))
                else:
                    self._label(part.attribute)
            case syntax.Attribute(label=label) if label is not None:
                self._label(label)
                if label.text == self._set and label.text not in self._labels:
                    self._file._add("parameter", (label.text,), part.attribute)
                else:
                    self._attributes((part.attribute,))
            case syntax.Call():
                if (kind := self._file._called.get(part.function.text)) is not None:
                    self._file._add(kind, (), part.function)
            case syntax.LabelItem():
                self._label(part.label)
                if part.label.text == self._set and part.label.text not in self._labels:
                    for name in part.attributes or ():
                        self._file._add("parameter", (part.label.text,), name)
                else:
                    self._attributes(part.attributes or ())
            case syntax.ExpressionItem(name=name) if name is not None:
                self._file._add(*self._columns, name, declares=True)
            case syntax.DurationWindow() | syntax.ValueWindow():
                if part.attribute is not None:
                    self._attributes((part.attribute,))

    def _label(self, name: syntax.Name) -> None:
        if name.text in self._labels:
            self._file._add("label", self._own, name)
        elif name.text == self._set:
            self._known(self._file._sets, "parameters", name)
        else:
            self._type(None, name)

    def _type(self, stream: syntax.Name | None, name: syntax.Name) -> None:
        if stream is not None:
            self._stream(stream)
        if name.text in self._read:
            self._file._add("query", (), name)
        elif (self._group, name.text) in self._file._types:
            self._file._add("type", self._group, name)
        else:
            self._file._add("unknown", self._own, name)

    def _stream(self, name: syntax.Name) -> None:
        is_stream = name.text in self._file._streams
        if is_stream:
            self._file._add("stream", (), name)
        else:
            self._known(self._file._queries, "query", name)

    def _attributes(self, names: Iterable[syntax.Name]) -> None:
        for name in names:
            self._file._add("attribute", self._group, name)

    def _known(self, names: set[str], kind: SymbolKind, name: syntax.Name) -> None:
        known = name.text in names
        self._file._add(kind if known else "unknown", () if known else self._own, name)


def _names_in(value: Any) -> Iterator[syntax.Name]:
    """The attributes of one event that an expression names."""
    if isinstance(value, syntax.Attribute):
        yield value.attribute
    elif isinstance(value, tuple):
        for one in value:
            yield from _names_in(one)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _names_in(getattr(value, field.name))


def _labels_bound(formula: syntax.Formula) -> Iterator[str]:
    for part, _ in _parts([formula]):
        if isinstance(part, syntax.As):
            yield part.label.text
        elif isinstance(part, syntax.Rename):
            yield part.new.text


def _parts(nodes: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """The nodes and all nodes below them. The flag says whether a node stands inside CEQL's
    brackets, `x[…]`: there, a name alone is an attribute of x."""
    waiting: list[tuple[Any, bool]] = [(node, False) for node in nodes]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, tuple):
            waiting += [(one, inside) for one in node]
        elif is_dataclass(node) and not isinstance(node, Span | syntax.Name):
            yield node, inside
            is_inside = inside or isinstance(node, syntax.EventCondition)
            waiting += [(getattr(node, one.name), is_inside) for one in fields(node)]


def same_groups(
    before: Iterable[Occurrence], after: Iterable[Occurrence], places: Mapping[Span, Span]
) -> bool:
    """Whether names still mean the same after a text was changed.

    That is so if two names mean one thing in the new text exactly if they did in the old one.
    places: the place of each name in the old text → its place in the new one.
    """
    one = {places[each.span]: each.symbol for each in before}
    other = {each.span: each.symbol for each in after}
    if one.keys() != other.keys():
        return False
    pairs = {(one[span], other[span]) for span in one}
    return len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs})

"""Names of a text with MATCH_RECOGNIZE and what they mean; their case does not count."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from celc.diagnostics.source import Span
from celc.editor.symbols import Occurrence, Symbol, SymbolKind
from celc.row_pattern import syntax


def row_occurrences(query: syntax.Query) -> tuple[Occurrence, ...]:
    """All names of a text in order; what has no declaration is `unknown`."""
    found = [
        Occurrence(name.span, _symbol(query, kind, name), declares)
        for kind, name, declares in _names(query)
    ]
    return tuple(sorted(found, key=lambda one: one.span))


def _symbol(query: syntax.Query, kind: SymbolKind, name: syntax.Name) -> Symbol:
    declared = query.table is not None
    if kind == "column" and not declared:
        kind = "unknown"
    return Symbol(kind, (), name.key)


def _names(query: syntax.Query) -> Iterator[tuple[SymbolKind, syntax.Name, bool]]:
    named = (one.name for one in (*query.partition_by, *(o.key for o in query.order_by)))
    measures = {measure.name.key for measure in query.measures}
    measures |= {name.key for name in named if name is not None}
    if query.table is not None:
        yield "table", query.table.name, True
        for column in query.table.columns:
            yield "column", column.name, True
    is_declared = query.table is not None and query.table.name.key == query.source.key
    yield "table" if is_declared else "unknown", query.source, False
    if query.alias is not None:
        yield "label", query.alias, True
    for shown in query.selected or ():
        if shown.table is not None:
            is_alias = query.alias is not None and shown.table.key == query.alias.key
            yield "label" if is_alias else "table" if is_declared else "unknown", shown.table, False
        yield "measure" if shown.column.key in measures else "column", shown.column, False
        if shown.alias is not None:
            yield "stream", shown.alias, True  # a name that nothing else in the text can mean
    keys = (*query.partition_by, *(one.key for one in query.order_by))
    for key in keys:
        if key.name is not None:
            yield "measure", key.name, True  # a column of the result
    for measure in query.measures:
        yield "measure", measure.name, True
    yield from _of_pattern(query)
    expressions = [key.expression for key in keys]
    for part in _parts([expressions, query.measures, query.definitions]):
        yield from _of_expression(part)


def _of_pattern(query: syntax.Query) -> Iterator[tuple[SymbolKind, syntax.Name, bool]]:
    for part in _parts(query.pattern):
        if isinstance(part, syntax.Variable):
            yield "variable", part.name, True
    if query.skip.target is not None:
        yield "variable", query.skip.target, False
    for subset in query.subsets:
        yield "variable", subset.name, True
        for member in subset.members:
            yield "variable", member, False
    for definition in query.definitions:
        yield "variable", definition.name, False


def _of_expression(part: Any) -> Iterator[tuple[SymbolKind, syntax.Name, bool]]:
    match part:
        case syntax.Column(variable=variable, name=name):
            if variable is not None:
                yield "variable", variable, False
            yield "column", name, False
        case syntax.Star(variable=variable) if variable is not None:
            yield "variable", variable, False
        case syntax.Call(function=function, arguments=arguments) if _names_no_column(function):
            for argument in arguments[:1]:
                is_bare = isinstance(argument, syntax.Column) and argument.variable is None
                if is_bare and function.key == "classifier":
                    assert isinstance(argument, syntax.Column)
                    yield "variable", argument.name, False


def _names_no_column(function: syntax.Name) -> bool:
    """Whether a bare name as first argument is a variable, or a unit of time."""
    return function.key in ("classifier", "timestampdiff")


def _parts(nodes: Any) -> Iterator[Any]:
    waiting = [nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple | list):
            waiting += node
        elif is_dataclass(node) and not isinstance(node, Span | syntax.Name):
            yield node
            children = [getattr(node, one.name) for one in fields(node)]
            if isinstance(node, syntax.Call) and _names_no_column(node.function):
                first = node.arguments[:1]
                if first and isinstance(first[0], syntax.Column) and first[0].variable is None:
                    children = [node.arguments[1:]]
            waiting += children

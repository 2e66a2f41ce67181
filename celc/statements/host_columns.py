"""Functions of the host in a clause: what only it knows, of values of one row.

The host computes them before the clause, once for each row, as columns that the clause reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import statements as messages
from celc.diagnostics.source import Span
from celc.parse.syntax import WrittenType
from celc.row_pattern import syntax
from celc.row_pattern.expressions import FUNCTIONS, OF_MATCHES

_KNOWN = frozenset((*FUNCTIONS, "LAG", "LEAD"))
_OF_ROWS = frozenset((*OF_MATCHES, "LAG", "LEAD"))


@frozen
class HostCall:
    """A call that the host computes. variable: whose row it reads, None: the row at hand. prefixes:
    where `v.` stands in it. key: where it is, or is in, a key without a name, the end of that and
    the text that it is called by. cast: the type of the CAST around it, if one is."""

    span: Span
    variable: str | None
    prefixes: tuple[Span, ...]
    key: tuple[int, str] | None
    cast: WrittenType | None


def host_calls(query: syntax.Query, found: Diagnostics) -> list[HostCall]:
    """The outermost calls of functions that celc does not have. Adds errors for those that are
    about several rows."""
    variables = {one.key for one in _variables(query.pattern)}
    variables |= {one.name.key for one in query.subsets}
    keys = [*query.partition_by, *(one.key for one in query.order_by)]
    called = {
        id(key.expression): (key.expression.span.end, key.called.text)
        for key in query.partition_by
        if key.name is None
    }
    roots: list[syntax.Expression] = [key.expression for key in keys]
    roots += [one.expression for one in query.measures]
    roots += [one.condition for one in query.definitions]
    made = []
    for root in roots:
        for call, cast in _outermost(root):
            one = _host_call(call, variables, called.get(id(root)), cast, found)
            if one is not None:
                made.append(one)
    return made


def _host_call(
    call: syntax.Call,
    variables: set[str],
    key: tuple[int, str] | None,
    cast: WrittenType | None,
    found: Diagnostics,
) -> HostCall | None:
    inside = [*_nodes(call)]
    for one in inside:
        if isinstance(one, syntax.Call) and one.function.text.upper() in _OF_ROWS:
            found.add(messages.host_function_of_rows(call.function.text, one.span))
            return None
    columns = [*_columns(call, frozenset())]
    of = {
        one.variable.key
        for one in columns
        if one.variable is not None and one.variable.key in variables
    }
    bare = [one for one in columns if one.variable is None or one.variable.key not in variables]
    if len(of) > 1 or (of and bare):
        found.add(messages.host_function_of_variables(call.function.text, call.span))
        return None
    prefixes = tuple(
        Span(one.variable.span.start, one.name.span.start)
        for one in columns
        if one.variable is not None and one.variable.key in of
    )
    written = next((one.variable for one in columns if one.variable is not None and of), None)
    return HostCall(call.span, None if written is None else written.text, prefixes, key, cast)


def _outermost(
    node: object, cast: WrittenType | None = None
) -> Iterator[tuple[syntax.Call, WrittenType | None]]:
    """The outermost calls for the host, each with the type of the CAST around it."""
    if isinstance(node, syntax.Call) and _is_of_host(node):
        yield node, cast
        return
    inside = node.type if isinstance(node, syntax.Cast) and node.zone is None else None
    for part in _parts(node):
        yield from _outermost(part, inside)


def _is_of_host(call: syntax.Call) -> bool:
    """Whether celc does not have a function, or not for a lambda."""
    is_known = call.function.text.upper() in _KNOWN
    return not is_known or any(isinstance(one, syntax.Lambda) for one in call.arguments)


def _nodes(node: object) -> Iterator[object]:
    for part in _parts(node):
        yield part
        yield from _nodes(part)


def _columns(node: object, bound: frozenset[str]) -> Iterator[syntax.Column]:
    """The columns in an expression, without the parameters of lambdas."""
    if isinstance(node, syntax.Lambda):
        bound |= {name.key for name in node.parameters}
    if isinstance(node, syntax.Column) and (node.variable or node.name).key not in bound:
        yield node
    for part in _parts(node):
        yield from _columns(part, bound)


def _variables(pattern: object) -> Iterator[syntax.Name]:
    if isinstance(pattern, syntax.Variable):
        yield pattern.name
    for part in _parts(pattern):
        yield from _variables(part)


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node) and not isinstance(node, syntax.Name | Span):
        for one in fields(node):
            yield getattr(node, one.name)

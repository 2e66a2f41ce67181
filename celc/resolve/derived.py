"""The columns that a query makes of others of the same event (`celc.resolve.types.derived`)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from celc_runtime.plan.names import unused_name

from celc.core import formula as core
from celc.core.show import show_expression
from celc.core.traversal import with_types_and_windows


class DerivedColumns:
    """The columns that a query makes of others of the same event. dot: what their names have for
    a dot."""

    def __init__(self, dot: str = ".") -> None:
        self._dot = dot
        self._names: dict[core.Expression, str] = {}
        self._values: dict[str, core.Expression] = {}
        self._declared: set[str] = set()

    def declare(self, name: str, value: core.Expression) -> None:
        """Tell the value of an attribute that the file declares."""
        self._values[name] = value
        self._declared.add(name)

    def is_declared(self, name: str) -> bool:
        """Whether the file declares the column as an attribute."""
        return name in self._declared

    def name_of(self, value: core.Expression, taken: frozenset[str]) -> str:
        """The name of the column with a value, whose attributes have no label; `taken` are the
        attributes of the query."""
        name = self._names.get(value)
        if name is None:
            name = unused_name(_text(value).replace(".", self._dot), [*taken, *self._values])
            self._names[value] = name
            self._values[name] = value
        return name

    def value_of(self, name: str) -> core.Expression | None:
        """The value of a column by its name; None: it is no such column."""
        return self._values.get(name)

    @property
    def columns(self) -> tuple[core.Derived, ...]:
        return tuple(core.Derived(*one) for one in self._values.items())


_LONGEST = 80  # characters of a name that a plan can still show in a line


def _text(value: core.Expression) -> str:
    """A name that tells what a value is: two values with one name are the same."""
    text = show_expression(value, exact=True)
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[:_LONGEST]}… {digest}"


def with_derived(query: core.Query, made: DerivedColumns) -> core.Query:
    """The query over streams that have its derived columns."""
    columns = made.columns
    if not columns:
        return query
    added = tuple(
        core.AttributeDeclaration(one.name, one.type)
        for one in columns
        if not made.is_declared(one.name)
    )

    def types(of: tuple[core.EventType, ...]) -> tuple[core.EventType, ...]:
        return tuple(replace(one, attributes=(*one.attributes, *added)) for one in of)

    formula = with_types_and_windows(query.formula, types, lambda window: window)
    streams = tuple(replace(one, event_types=types(one.event_types)) for one in query.streams)
    return replace(query, formula=formula, streams=streams, derived=columns)

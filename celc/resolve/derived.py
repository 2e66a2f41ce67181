"""The columns that a query makes of others of the same event (`celc.resolve.types.derived`)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import assert_never

from celc_runtime.plan.names import unused_name

from celc.core import formula as core
from celc.core.traversal import with_types_and_windows


class DerivedColumns:
    """The columns that a query makes of others of the same event."""

    def __init__(self) -> None:
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
            name = unused_name(_text(value), [*taken, *self._values])
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
    text = _written(value)
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[:_LONGEST]}… {digest}"


def _written(value: core.Expression) -> str:
    match value:
        case core.AttributeValue():
            return value.attribute
        case core.Constant(value=str(text)):
            return "'" + text.replace("'", "''") + "'"
        case core.Constant(value=None):
            return "NULL"
        case core.Constant():
            is_plain = value.type in (core.DataType.INT, core.DataType.DOUBLE)
            return str(value.value) if is_plain else f"{value.type.value} {value.value}"
        case core.Arithmetic():
            return f"({_written(value.left)} {value.operator} {_written(value.right)})"
        case core.Negation():
            return f"-{_written(value.operand)}"
        case core.Absolute():
            return f"ABS({_written(value.operand)})"
        case core.Cast():
            return f"{_written(value.operand)}::{value.type.value}"
        case core.Call(function="CAST" | "TRY_CAST"):
            (operand,) = map(_written, value.operands)
            zone = "" if value.zone in (None, "UTC") else f" AT TIME ZONE '{value.zone}'"
            return f"{value.function}({operand}{zone} AS {value.type.value})"
        case core.TimeDifference():
            ends = f"{_written(value.start)}, {_written(value.end)}"
            return f"TIMESTAMPDIFF({value.unit}, {ends})"
        case core.Call() | core.Choice():
            operands = ", ".join(map(_written, value.operands))
            named = value.zone if isinstance(value, core.Call) else None
            zone = "" if named in (None, "UTC") else f" AT TIME ZONE '{named}'"
            return f"{value.function}({operands}{zone})"
        case core.Conditional():
            ways = (f"WHEN {_asked(one)} THEN {_written(then)}" for one, then in value.branches)
            return f"CASE {' '.join(ways)} ELSE {_written(value.otherwise)} END"
        case _:
            raise AssertionError("a derived column is of one event")


def _asked(truth: core.Truth) -> str:
    match truth:
        case core.Every():
            return "(" + " AND ".join(map(_asked, truth.parts)) + ")"
        case core.Some():
            return "(" + " OR ".join(map(_asked, truth.parts)) + ")"
        case core.Comparison():
            return f"{_written(truth.left)} {truth.operator} {_written(truth.right)}"
        case core.Membership():
            values = [*map(repr, truth.values), *(["NULL"] if truth.has_null else [])]
            sign = "NOT IN" if truth.negated else "IN"
            return f"{_written(truth.operand)} {sign} ({', '.join(values)})"
        case core.PatternMatch():
            sign = f"NOT {truth.operator}" if truth.negated else truth.operator
            return f"{_written(truth.operand)} {sign} {truth.pattern!r}"
        case core.NullTest():
            sign = "IS NOT NULL" if truth.negated else "IS NULL"
            return f"{_written(truth.operand)} {sign}"
        case core.Quantified():
            raise AssertionError("SOME and EVERY are of several events")
        case _:
            assert_never(truth)


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

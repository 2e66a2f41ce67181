"""Expressions in SELECT as constructor calls in a module's plan.

They are a tree in the plan, and no generated code: the runtime evaluates each node once for a whole
batch of matches, so compiled code would save nothing, and a tree can be read. Names and texts of
the query get there as string literals only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from celc import formula as core
from celc.escape import string_literal
from celc.normalize import output_labels
from celc.traversal import nodes_of

EXPRESSION_CONSTRUCTORS = (
    "Absolute",
    "Aggregate",
    "Arithmetic",
    "Cast",
    "Computed",
    "Constant",
    "Negation",
)
"""What the trees are written with."""


def expression_fields(query: core.Query) -> dict[str, str]:
    """The fields of the plan that stand for the expressions of a query; none if it has none."""
    computed = [
        _computed(place, item)
        for place, item in enumerate(query.output)
        if isinstance(item, core.OutputExpression)
    ]
    if not computed:
        return {}
    hidden = output_labels(query)[len(query.output) - len(computed) :]
    fields = {"expressions": _sequence(computed)}
    if hidden:
        fields["hidden"] = _sequence(map(string_literal, hidden))
    return fields


def attributes_in(value: core.Expression | core.Collection) -> set[str]:
    """The attributes that an expression reads."""
    if isinstance(value, core.Collection):
        return {value.attribute}
    return {
        node.attribute
        for node in nodes_of(value)
        if isinstance(node, core.AttributeValue | core.Aggregate) and node.attribute is not None
    }


def _computed(place: int, item: core.OutputExpression) -> str:
    type = item.value.type.value
    if isinstance(item.value, core.Collection):
        type = f"ARRAY<{type}>"
    name = string_literal(item.name)
    return f"Computed({place}, {name}, {string_literal(type)}, {_tree(item.value)})"


def _tree(value: core.Expression | core.Collection) -> str:
    match value:
        case core.Constant():
            return f"Constant({_literal(value.value)}, {string_literal(value.type.value)})"
        case core.AttributeValue():
            # The label has one position in every match: the first is the only one.
            return _aggregate("FIRST", value.label, value.attribute)
        case core.Aggregate():
            return _aggregate(value.function, value.label, value.attribute)
        case core.Collection():
            return _aggregate("COLLECT", value.label, value.attribute)
        case core.Arithmetic():
            operator = string_literal(value.operator)
            return f"Arithmetic({operator}, {_tree(value.left)}, {_tree(value.right)})"
        case core.Negation():
            return f"Negation({_tree(value.operand)})"
        case core.Absolute():
            return f"Absolute({_tree(value.operand)})"
        case core.Cast():
            return f"Cast({_tree(value.operand)}, {string_literal(value.type.value)})"
        case core.Previous():
            raise AssertionError("the resolver refuses PREV in SELECT")
        case _:
            assert_never(value)


def _aggregate(function: str, label: str, attribute: str | None) -> str:
    arguments = [function, label, *([] if attribute is None else [attribute])]
    return f"Aggregate({', '.join(map(string_literal, arguments))})"


def _literal(value: int | float | str | bool | None) -> str:
    return string_literal(value) if isinstance(value, str) else repr(value)


def _sequence(items: Iterable[str]) -> str:
    parts = list(items)
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"

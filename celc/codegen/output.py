"""Expressions in SELECT as constructor calls in a module's plan.

They are a tree in the plan, and no generated code: the runtime evaluates each node once for a whole
batch of matches, so compiled code would save nothing, and a tree can be read. Names and texts of
the query get there as string literals only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from celc.codegen.escape import literal, string_literal, string_tuple, tuple_text
from celc.codegen.imports import Imports
from celc.codegen.own_aggregates import OwnAggregateCode
from celc.core import formula as core
from celc.core.traversal import IN_DECLARATION, IN_TOTAL, nodes_of
from celc.normal.normalize import output_labels


def expression_fields(query: core.Query, imports: Imports, own: OwnAggregateCode) -> dict[str, str]:
    """The fields of the plan for the expressions of a query; no fields where it has none. `own`
    writes the functions of aggregates that the file declares."""
    parameters = query.parameters
    columns = {} if parameters is None else {name: one for one, name in parameters.columns}
    code = _ExpressionCode(imports, own, columns)
    computed = [
        code.computed(place, item)
        for place, item in enumerate(query.output)
        if isinstance(item, core.OutputExpression)
    ]
    if not computed:
        return {}
    hidden = output_labels(query)[len(query.output) - len(computed) :]
    fields = {"expressions": tuple_text(computed)}
    if hidden:
        fields["hidden"] = string_tuple(hidden)
    return fields


def attributes_in(value: core.Expression | core.Collection) -> set[str]:
    """The attributes that an expression reads."""
    if isinstance(value, core.Collection):
        return {value.attribute}
    found: set[str] = set()
    for node in nodes_of(value):
        if isinstance(node, core.AttributeValue):
            found.add(node.attribute)
        elif isinstance(node, core.Aggregate):
            found.update(node.attributes)
    return found


@dataclass(frozen=True, slots=True)
class _ExpressionCode:
    """Writes expressions as constructor calls; `parameters` are the columns of the attributes of
    the parameter set."""

    imports: Imports
    own: OwnAggregateCode
    parameters: Mapping[str, str]

    def computed(self, place: int, item: core.OutputExpression) -> str:
        """The expression that is item number `place` of SELECT."""
        type = item.value.type.value
        if isinstance(item.value, core.Collection):
            type = f"ARRAY<{type}>"
        names = map(string_literal, (item.name, type))
        return self.imports.call("Computed", str(place), *names, self._tree(item.value))

    def _tree(self, value: core.Expression | core.Collection) -> str:
        call = self.imports.call
        match value:
            case core.Constant():
                type = string_literal(value.type.value)
                return call("Constant", literal(value.value), type)
            case core.AttributeValue():
                # The label has one position in every match, which is then the first.
                return self._aggregate("FIRST", value.label, value.attribute)
            case core.Aggregate(function="OWN"):
                return self.own.tree(value)
            case core.Aggregate():
                return self._aggregate(value.function, value.label, value.attribute)
            case core.Collection():
                return self._aggregate("COLLECT", value.label, value.attribute)
            case core.Arithmetic():
                sides = (self._tree(value.left), self._tree(value.right))
                return call("Arithmetic", string_literal(value.operator), *sides, *_checked(value))
            case core.Negation():
                return call("Negation", self._tree(value.operand), *_checked(value))
            case core.Absolute():
                return call("Absolute", self._tree(value.operand), *_checked(value))
            case core.Cast():
                return call("Cast", self._tree(value.operand), string_literal(value.type.value))
            case core.Previous():
                raise AssertionError("the resolver refuses PREV in SELECT")
            case core.Variable():
                type = string_literal(value.type.value)
                return call("ParameterValue", string_literal(self.parameters[value.name]), type)
            case core.Choice() | core.Conditional():
                raise AssertionError(IN_DECLARATION)
            case core.TotalOf():
                raise AssertionError(IN_TOTAL)
            case _:
                assert_never(value)

    def _aggregate(self, function: str, label: str, attribute: str | None) -> str:
        arguments = (function, label, *(() if attribute is None else (attribute,)))
        return self.imports.call("Aggregate", *map(string_literal, arguments))


def _checked(value: core.Arithmetic | core.Negation | core.Absolute) -> tuple[str, ...]:
    """The argument of an operation whose result is NULL where it overflows."""
    return ("checked=True",) if value.type.is_checked else ()

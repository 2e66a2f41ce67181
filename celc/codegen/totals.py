"""SELECT TOTAL as constructor calls in a module's plan: items, groups, and HAVING.

A tree in the plan, for the reasons given in `output`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from celc.codegen.escape import literal, string_literal, tuple_text
from celc.codegen.imports import Imports
from celc.core import formula as core
from celc.core.traversal import IN_DECLARATION, nodes_of


def totals_field(query: core.Query, imports: Imports) -> dict[str, str]:
    """The field of the plan for the totals of a query; no field where it has none."""
    if query.total is None:
        return {}
    return {"totals": _TotalCode(imports).totals(query.total)}


def attributes_in_totals(query: core.Query) -> dict[str, tuple[str, ...]]:
    """The labels that totals name, in order of first appearance, with the attributes that they read
    of each."""
    found: dict[str, dict[str, None]] = {}
    for item in () if query.total is None else query.total.items:
        for node in nodes_of(item.value):
            if isinstance(node, core.TotalOf) and node.label is not None:
                of_label = found.setdefault(node.label, {})
                if node.attribute is not None:
                    of_label[node.attribute] = None
    return {label: tuple(attributes) for label, attributes in found.items()}


@dataclass(frozen=True, slots=True)
class _TotalCode:
    """Writes totals as constructor calls."""

    imports: Imports

    def totals(self, total: core.Total) -> str:
        items = tuple_text(
            self.imports.call(
                "TotalItem",
                string_literal(item.name),
                string_literal(item.value.type.value),
                self._tree(item.value),
            )
            for item in total.items
        )
        arguments = [items, _per(total.per)]
        if total.having is not None:
            arguments.append(self._condition(total.having))
        return self.imports.call("Totals", *arguments)

    def _condition(self, truth: core.Truth) -> str:
        call = self.imports.call
        match truth:
            case core.Every():
                return call("Every", tuple_text(map(self._condition, truth.parts)))
            case core.Some():
                return call("Some", tuple_text(map(self._condition, truth.parts)))
            case core.Comparison():
                sides = (self._tree(truth.left), self._tree(truth.right))
                return call("Compared", string_literal(truth.operator), *sides)
            case core.Membership():
                named = [f"has_null={truth.has_null}"] if truth.has_null else []
                named += [f"negated={truth.negated}"] if truth.negated else []
                values = tuple_text(map(literal, truth.values))
                return call("OneOf", self._tree(truth.operand), values, *named)
            case core.NullTest():
                negated = [f"negated={truth.negated}"] if truth.negated else []
                return call("IsNull", self._tree(truth.operand), *negated)
            case core.PatternMatch():
                raise AssertionError("no item is a text")
            case _:
                assert_never(truth)

    def _tree(self, value: core.Expression) -> str:
        call = self.imports.call
        match value:
            case core.Constant():
                return call("Constant", literal(value.value), string_literal(value.type.value))
            case core.TotalOf():
                return self._function(value)
            case core.Variable():
                return call("ItemValue", string_literal(value.name))
            case core.Arithmetic():
                sides = (self._tree(value.left), self._tree(value.right))
                named = [f"type={string_literal(value.type.value)}"]
                return call("ItemArithmetic", string_literal(value.operator), *sides, *named)
            case core.Negation() | core.Absolute():
                name = "ItemNegation" if isinstance(value, core.Negation) else "ItemAbsolute"
                type = string_literal(value.type.value)
                return call(name, self._tree(value.operand), f"type={type}")
            case core.Cast():
                return call("ItemCast", self._tree(value.operand), string_literal(value.type.value))
            case core.AttributeValue():
                # Of an event the resolver refuses them; this one is of the parameter set.
                type = string_literal(value.type.value)
                return call("ParameterValue", string_literal(value.attribute), type)
            case core.Aggregate() | core.Previous():
                raise AssertionError("the resolver refuses functions of one match in totals")
            case core.Choice() | core.Conditional():
                raise AssertionError(IN_DECLARATION)
            case _:
                assert_never(value)

    def _function(self, value: core.TotalOf) -> str:
        arguments = [string_literal(value.function)]
        if value.label is not None:
            arguments.append(string_literal(value.label))
        if value.attribute is not None:
            arguments.append(string_literal(value.attribute))
        if value.type is not core.DataType.DECIMAL:
            arguments.append(f"type={string_literal(value.type.value)}")
        if value.read is not None:
            arguments.append(f"read={string_literal(value.read.value)}")
        return self.imports.call("TotalOf", *arguments)


def _per(per: core.Per) -> str:
    match per:
        case core.PerEnd():
            return string_literal("END")
        case core.PerPartition():
            return string_literal("PARTITION")
        case core.PerSpan():
            return f"{per.size:_}"
        case _:
            assert_never(per)

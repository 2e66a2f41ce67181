"""SELECT TOTAL → trees of `celc_runtime.plan.totals`."""

from dataclasses import field
from typing import assert_never

from celc_runtime.plan import expressions as plan
from celc_runtime.plan import totals
from celc_runtime.plan.frozen import frozen

from celc.codegen.expressions.trees import Trees, scale_of
from celc.core import formula as core
from celc.core.traversal import IN_ROW_PATTERNS, nodes_of


def totals_of(total: core.Total) -> totals.Totals:
    """The items of SELECT TOTAL, its groups, and HAVING."""
    items = tuple(
        totals.TotalItem(item.name, item.value.type.value, _total(item.value))
        for item in total.items
    )
    having = None if total.having is None else _condition(total.having)
    return totals.Totals(items, _per(total.per), having)


def attributes_in_totals(query: core.Query) -> dict[str, tuple[str, ...]]:
    """The labels that totals name, in order of first appearance, with the attributes that they
    read."""
    found: dict[str, dict[str, None]] = {}
    for item in () if query.total is None else query.total.items:
        for node in nodes_of(item.value):
            if isinstance(node, core.TotalOf) and node.label is not None:
                of_label = found.setdefault(node.label, {})
                if node.attribute is not None:
                    of_label[node.attribute] = None
    return {label: tuple(attributes) for label, attributes in found.items()}


def _condition(truth: core.Truth) -> totals.Having:
    match truth:
        case core.Every():
            return totals.EveryOfItems(tuple(map(_condition, truth.parts)))
        case core.Some():
            return totals.SomeOfItems(tuple(map(_condition, truth.parts)))
        case core.Comparison() if core.DataType.STRING in (truth.left.type, truth.right.type):
            return totals.ItemHolds(_made(core.Asked(truth, truth.span)))
        case core.Comparison():
            return totals.ItemCompared(truth.operator, _total(truth.left), _total(truth.right))
        case core.Membership() if truth.operand.type is core.DataType.STRING:
            return totals.ItemHolds(_made(core.Asked(truth, truth.span)))
        case core.Membership():
            return totals.ItemOneOf(
                _total(truth.operand), truth.values, has_null=truth.has_null, negated=truth.negated
            )
        case core.NullTest():
            return totals.ItemIsNull(_total(truth.operand), negated=truth.negated)
        case core.PatternMatch():
            return totals.ItemHolds(_made(core.Asked(truth, truth.span)))
        case core.Quantified():
            raise AssertionError("HAVING has no labels")
        case _:
            assert_never(truth)


def _total(value: core.Expression) -> totals.TotalTree:
    type = value.type.value
    match value:
        case core.Constant():
            return plan.Constant(value.value, type)
        case core.TotalOf(function=function, label=label, attribute=attribute):
            read = None if value.read is None else value.read.value
            return totals.TotalOf(function, label, attribute, type=type, read=read)
        case core.Variable():
            return totals.ItemValue(value.name)
        case core.Arithmetic(operator=operator):
            sides = None
            if value.type is not core.COUNTS and isinstance(value.type, core.DecimalType):
                sides = (value.left.type.value, value.right.type.value)
            left, right = _total(value.left), _total(value.right)
            return totals.ItemArithmetic(operator, left, right, type, sides)
        case core.Negation():
            return totals.ItemNegation(_total(value.operand), type)
        case core.Absolute():
            return totals.ItemAbsolute(_total(value.operand), type)
        case core.Cast():
            scale = scale_of(value)
            if {value.type, value.operand.type} <= {core.COUNTS, *core.NUMBERS}:
                scale = None
            return totals.ItemCast(_total(value.operand), type, scale)
        case core.AttributeValue():
            # The resolver refuses attributes of events here; this one is of the parameter set.
            return plan.ParameterValue(value.attribute, type)
        case core.Aggregate() | core.Previous() | core.OwnCall():
            raise AssertionError("the resolver refuses functions of one match in totals")
        case (
            core.Call() | core.Choice() | core.Conditional() | core.TimeDifference() | core.Asked()
        ):
            return _made(value)
        case core.InRowPatterns():
            raise AssertionError(IN_ROW_PATTERNS)
        case _:
            assert_never(value)


def _made(value: core.Expression) -> totals.ItemMade:
    """A function of values of groups: its tree, and the columns that the tree reads."""
    trees = _OfGroups()
    tree = trees.of(value)
    columns = [
        totals.ItemColumn(name, _total(read), read.type.value) for read, name in trees.read.items()
    ]
    return totals.ItemMade(tree, tuple(columns), value.type.value)


@frozen
class _OfGroups(Trees):
    """Trees whose leaves are columns; `read` has what each of them holds."""

    read: dict[core.Expression, str] = field(default_factory=dict)

    def of(self, value: core.Expression | core.Collection) -> plan.Tree:
        match value:
            case (
                core.Constant()
                | core.Call()
                | core.Choice()
                | core.Conditional()
                | core.TimeDifference()
                | core.Asked()
            ):
                # Not super(), which has the class before `frozen` made it anew, with slots.
                return Trees.of(self, value)
            case core.Collection():
                raise AssertionError("no item of totals is a list")
            case _:
                name = self.read.setdefault(value, f"value {len(self.read)}")
                return plan.Column(name, value.type.value)


def _per(per: core.Per) -> str | int:
    match per:
        case core.PerEnd():
            return "END"
        case core.PerPartition():
            return "PARTITION"
        case core.PerSpan():
            return per.size
        case _:
            assert_never(per)

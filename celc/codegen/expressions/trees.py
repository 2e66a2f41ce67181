"""Expressions of SELECT, of totals and of HAVING → trees of `celc_runtime.plan`.

They are not generated code. The runtime evaluates each node once for a whole batch of matches, so
compiled code would save nothing, and a tree can be read.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from typing import assert_never

from celc_runtime.plan import expressions as plan
from celc_runtime.plan.frozen import frozen

from celc.codegen.expressions.own_aggregates import OwnAggregateCode
from celc.core import formula as core
from celc.core.like import like_to_regex
from celc.core.traversal import IN_ROW_PATTERNS, IN_TOTAL, OF_SEVERAL_EVENTS, nodes_of


def computed_columns(query: core.Query, own: OwnAggregateCode) -> tuple[plan.Computed, ...]:
    """The expressions of SELECT; `own` writes the functions of the file's own aggregates."""
    parameters = query.parameters
    columns = {} if parameters is None else {name: one for one, name in parameters.columns}
    trees = Trees(own, columns)
    return tuple(
        plan.Computed(place, item.name, _type_of(item.value), trees.of(item.value))
        for place, item in enumerate(query.output)
        if isinstance(item, core.OutputExpression)
    )


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


def _type_of(value: core.Expression | core.Collection) -> str:
    type = value.type.value
    return f"ARRAY<{type}>" if isinstance(value, core.Collection) else type


def tree_of_rows(
    value: core.Expression, leaf: Callable[[core.InRowPatterns], plan.Tree]
) -> plan.Tree:
    """The tree of an expression of MEASURES; `leaf` says what is read of rows."""
    return Trees(leaf=leaf).of(value)


@frozen
class Trees:
    """Expressions of SELECT, `of_event`, or of rows, which have a `leaf`. `parameters` are the
    columns of the parameter set's attributes."""

    own: OwnAggregateCode | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    of_event: bool = False
    leaf: Callable[[core.InRowPatterns], plan.Tree] | None = None

    def of(self, value: core.Expression | core.Collection) -> plan.Tree:
        """The tree of an expression."""
        match value:
            case core.Constant():
                return plan.Constant(value.value, value.type.value)
            case core.AttributeValue() if self.of_event:
                return plan.Column(value.attribute, value.type.value)
            case core.AttributeValue():
                # The label has one position in every match, which is its first.
                return plan.Aggregate("FIRST", value.label, value.attribute)
            case core.Aggregate(function="OWN"):
                assert self.own is not None, "no aggregate is of one event"
                return self.own.tree(value)
            case core.Aggregate():
                return plan.Aggregate(value.function, value.label, value.attribute, value.place)
            case core.OwnCall():
                assert self.own is not None, "no list is of one event"
                return self.own.calls.tree(value)
            case core.Collection():
                return plan.Aggregate("COLLECT", value.label, value.attribute)
            case core.Arithmetic(operator=operator):
                sides = (self.of(value.left), self.of(value.right))
                if isinstance(value.type, core.DecimalType):
                    of = (value.left.type.value, value.right.type.value, value.type.value)
                    return plan.DecimalArithmetic(operator, *sides, of)
                return plan.Arithmetic(operator, *sides, checked=value.type.is_checked)
            case core.Negation():
                return plan.Negation(self.of(value.operand), checked=value.type.is_checked)
            case core.Absolute():
                return plan.Absolute(self.of(value.operand), checked=value.type.is_checked)
            case core.Cast():
                return plan.Cast(self.of(value.operand), value.type.value, scale_of(value))
            case core.Previous():
                raise AssertionError("the resolver refuses PREV in SELECT")
            case core.Variable():
                return plan.ParameterValue(self.parameters[value.name], value.type.value)
            case core.Call():
                operands = tuple(map(self.of, value.operands))
                types = tuple(one.type.value for one in value.operands)
                return plan.Call(value.function, operands, types, value.type.value, value.zone)
            case core.Choice():
                operands = tuple(map(self.of, value.operands))
                return plan.Chosen(value.function, operands, value.type.value)
            case core.Conditional():
                branches = tuple((self.truth(one), self.of(then)) for one, then in value.branches)
                return plan.Conditional(branches, self.of(value.otherwise), value.type.value)
            case core.TotalOf():
                raise AssertionError(IN_TOTAL)
            case core.TimeDifference():
                return plan.TimesBetween(value.unit, self.of(value.start), self.of(value.end))
            case core.Asked():
                return plan.Asked(self.truth(value.condition))
            case core.InRowPatterns():
                assert self.leaf is not None, IN_ROW_PATTERNS
                return self.leaf(value)
            case _:
                assert_never(value)

    def truth(self, asked: core.Truth) -> plan.Truth:
        """The tree of a condition in an expression."""
        match asked:
            case core.Every():
                return plan.Every(tuple(map(self.truth, asked.parts)))
            case core.Some():
                return plan.Some(tuple(map(self.truth, asked.parts)))
            case core.Comparison():
                return plan.Compared(asked.operator, self.of(asked.left), self.of(asked.right))
            case core.NullTest():
                return plan.IsNull(self.of(asked.operand), negated=asked.negated)
            case core.PatternMatch():
                is_like = asked.operator == "LIKE"
                pattern = like_to_regex(asked.pattern) if is_like else asked.pattern
                return plan.Matches(self.of(asked.operand), pattern, negated=asked.negated)
            case core.Membership(operand=core.AttributeValue(attribute=core.TYPE)):
                pairs = (str(value).split(">", 1) for value in asked.values)
                return plan.OfTypes(
                    tuple((stream, name) for stream, name in pairs), negated=asked.negated
                )
            case core.Membership(operand=operand):
                return plan.OneOf(
                    self.of(operand),
                    operand.type.value,
                    asked.values,
                    has_null=asked.has_null,
                    negated=asked.negated,
                )
            case core.Quantified():
                raise AssertionError(OF_SEVERAL_EVENTS)
            case _:
                assert_never(asked)


# --- derived columns ------------------------------------------------------------------------------


def derived_columns(query: core.Query, read: Set[str]) -> tuple[plan.Derived, ...]:
    """Those of a query's derived columns that it reads."""
    wanted = [one for one in query.derived if one.name in read]
    return _derived(wanted, by_stream=query.needs_stream_column)


def derived_of_rows(made: Sequence[core.Derived]) -> tuple[plan.Derived, ...]:
    """The columns that a query of MATCH_RECOGNIZE makes of others of the same row."""
    return _derived(made, by_stream=False)


def _derived(made: Sequence[core.Derived], *, by_stream: bool) -> tuple[plan.Derived, ...]:
    if not made:
        return ()
    # Imported here, because loading sqlglot takes longer than most queries need.
    from celc.relational.derived import sql_of

    return tuple(
        plan.Derived(
            one.name,
            one.type.value,
            tree_of_event(one.value),
            sql_of(one, by_stream=by_stream),
            _inputs(one),
        )
        for one in made
    )


def tree_of_event(value: core.Expression) -> plan.Tree:
    """An expression of one event, over the columns of the input."""
    return Trees(of_event=True).of(value)


def _inputs(derived: core.Derived) -> tuple[tuple[str, str], ...]:
    """The columns of the input that a derived column is made of, with their types."""
    found = {
        node.attribute: node.type.value
        for node in nodes_of(derived.value)
        if isinstance(node, core.AttributeValue) and node.attribute != core.TYPE
    }
    return tuple(found.items())


def scale_of(cast: core.Cast) -> int | None:
    """The decimals of what is cast, where one of both types has decimals."""
    source = cast.operand.type
    if isinstance(source, core.DecimalType):
        return source.scale
    return 0 if isinstance(cast.type, core.DecimalType) else None

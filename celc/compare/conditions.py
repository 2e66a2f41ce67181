"""What the conditions of queries ask of attributes: constants, and which are compared together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from celc.core import formula as core
from celc.core.terms import nodes_named_in
from celc.core.traversal import (
    formulas_in,
    map_expression,
    map_leaves,
    nodes_asked,
    nodes_of,
    predicates_of,
    windows_in,
)
from celc.driver.pipeline import Stages

MAX_REPEATED = 1000  # the largest count for which a stream repeats an event


@dataclass
class Asked:
    """What queries ask of attributes, each by its name.

    `constants`: those that it is compared with, with their types. `patterns`: of LIKE and RLIKE.
    `several`: attributes whose values are compared between events, or shown in computed columns;
    attributes of one group are compared with each other. `counts`: numbers of events. `lengths`:
    durations, in microseconds. `sizes`: of windows of numbers, by attribute. `clocks`: attributes
    that do not decrease along a stream. Attributes of parameter sets are called `set.attribute`.
    """

    constants: dict[str, dict[tuple[core.Value, core.DataType], None]] = field(default_factory=dict)
    patterns: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)
    several: dict[str, None] = field(default_factory=dict)
    together: dict[str, str] = field(default_factory=dict)
    counts: dict[int, None] = field(default_factory=dict)
    lengths: dict[int, None] = field(default_factory=dict)
    sizes: dict[str, dict[float, None]] = field(default_factory=dict)
    clocks: dict[str, core.DataType] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)

    def group_of(self, name: str) -> str:
        """The attribute that stands for all that are compared with this one."""
        while (other := self.together.get(name, name)) != name:
            name = other
        return name

    def compare(self, names: Iterable[str]) -> None:
        """Note that attributes are compared with each other."""
        groups = list(dict.fromkeys(map(self.group_of, names)))
        for other in groups[1:]:
            self.together[other] = groups[0]


def asked_by(read: Iterable[Stages]) -> Asked:
    """What some queries ask."""
    asked = Asked()
    for stages in read:
        _Reader(asked, stages.query).read()
    return asked


def written_out(expression: core.Expression, query: core.Query) -> core.Expression:
    """The expression with what a derived column is made of in its place."""
    made = {one.name: one.value for one in query.derived}

    def change(leaf: core.Expression) -> core.Expression:
        if isinstance(leaf, core.AttributeValue) and leaf.attribute in made:
            label = leaf.label

            def named(inner: core.Expression) -> core.Expression:
                if isinstance(inner, core.AttributeValue):
                    if inner.attribute in made:
                        return change(
                            core.AttributeValue(label, inner.attribute, inner.type, inner.span)
                        )
                    return core.AttributeValue(label, inner.attribute, inner.type, inner.span)
                return inner

            return map_expression(made[leaf.attribute], named)
        return leaf

    return map_expression(expression, change)


def predicate_written_out(predicate: core.Predicate, query: core.Query) -> core.Predicate:
    """The predicate likewise."""
    if not query.derived:
        return predicate
    return map_leaves(predicate, lambda leaf: written_out(leaf, query))


class _Reader:
    def __init__(self, asked: Asked, query: core.Query) -> None:
        self.asked, self.query = asked, query
        parameters = query.parameters
        self.held = (
            {}
            if parameters is None
            else {column: f"{parameters.name}.{name}" for column, name in parameters.columns}
        )
        self.answers = (
            {} if parameters is None else {one.column: one for one in parameters.patterns}
        )

    def read(self) -> None:
        """Note what the query asks."""
        query = self.query
        for formula in formulas_in(query.formula):
            if isinstance(formula, core.Filter):
                for clause in formula.clauses:
                    for predicate in clause.predicates:
                        self._predicate(predicate_written_out(predicate, query))
        for window in (query.window, *windows_in(query.formula)):
            self._window(window)
        if query.rate is not None:
            self._window(query.rate.length)
        for one in query.order_by[:1]:
            self.asked.clocks[one.name] = one.type
        self._output()
        if query.uncertain is not None:
            for bound in (query.uncertain.low, query.uncertain.high):
                self.asked.clocks[bound.name] = bound.type

    def _output(self) -> None:
        query = self.query
        for item in query.output:
            if isinstance(item, core.OutputExpression):
                if isinstance(item.value, core.Collection):
                    self._shown([item.value.attribute])
                else:
                    self._expression(item.value)
        if query.total is None:
            return
        totalled: dict[str, None] = {}
        for total in query.total.items:
            for node in nodes_of(total.value):
                if isinstance(node, core.TotalOf) and node.attribute is not None:
                    totalled[node.attribute] = None
        self._shown(totalled)
        if isinstance(query.total.per, core.PerSpan):
            self.asked.lengths[query.total.per.size] = None
        if query.total.having is not None:
            for node in nodes_asked(query.total.having):
                self._constant(node, totalled)
            for predicate in predicates_of(query.total.having):
                if isinstance(predicate, core.Membership):
                    for value in predicate.values:
                        self._note(value, predicate.operand.type, totalled)

    def _shown(self, names: Iterable[str]) -> None:
        for name in names:
            self.asked.several[name] = None
            self.asked.used[name] = None

    def _expression(self, expression: core.Expression) -> None:
        names = list(self._names([*nodes_of(written_out(expression, self.query))]))
        self._shown(names)
        for node in nodes_of(expression):
            self._constant(node, names)

    def _names(self, nodes: Iterable[core.Expression]) -> Iterator[str]:
        for node in nodes:
            match node:
                case core.AttributeValue() | core.Previous():
                    if node.attribute in self.answers:
                        pattern = self.answers[node.attribute]
                        assert self.query.parameters is not None
                        yield pattern.attribute
                        yield f"{self.query.parameters.name}.{pattern.parameter}"
                    elif node.attribute != core.TYPE:
                        yield self.held.get(node.attribute, node.attribute)
                case core.Aggregate():
                    yield from node.attributes
                case core.Variable():
                    if self.query.parameters is not None:
                        yield f"{self.query.parameters.name}.{node.name}"
                case _:
                    pass

    def _predicate(self, predicate: core.Predicate) -> None:
        nodes = nodes_named_in(predicate)
        if isinstance(predicate, core.Quantified):
            for part in predicates_of(predicate.condition):
                self._predicate(part)
        names = list(dict.fromkeys(self._names(nodes)))
        self.asked.used.update(dict.fromkeys(names))
        labels = {one.label for one in nodes if isinstance(one, core.AttributeValue)}
        looks = any(isinstance(one, core.Aggregate | core.Previous) for one in nodes)
        held = any("." in name for name in names)
        if len(labels) > 1 or looks or held or isinstance(predicate, core.Quantified):
            self.asked.several.update(dict.fromkeys(names))
        if len(names) > 1:
            self.asked.compare(names)
        for node in nodes:
            self._constant(node, names)
        if isinstance(predicate, core.Membership):
            for value in predicate.values:
                self._note(value, predicate.operand.type, names)
        if isinstance(predicate, core.PatternMatch):
            for name in names:
                found = self.asked.patterns.setdefault(name, {})
                found[predicate.operator, predicate.pattern] = None

    def _constant(self, node: core.Expression, names: Iterable[str]) -> None:
        if isinstance(node, core.Constant) and node.value is not None:
            self._note(node.value, node.type, names)

    def _note(self, value: core.Value, type: core.DataType, names: Iterable[str]) -> None:
        if type is core.DataType.INTERVAL:
            assert isinstance(value, int)
            self.asked.lengths[abs(value)] = None
        if isinstance(value, int) and not isinstance(value, bool):
            scale = type.scale if isinstance(type, core.DecimalType) else 0
            if type not in core.TIMES and 0 <= value // 10**scale <= MAX_REPEATED:
                self.asked.counts[value // 10**scale] = None
        for name in names:
            self.asked.constants.setdefault(name, {})[value, type] = None

    def _window(self, window: core.Window | None) -> None:
        if window is None:
            return
        if window.attribute is not None:
            self.asked.clocks[window.attribute.name] = window.attribute.type
        match window.unit:
            case core.WindowUnit.MICROSECONDS:
                self.asked.lengths[int(window.size)] = None
            case core.WindowUnit.VALUE:
                name = self.query.order_by[0].name if self.query.order_by else ""
                if window.attribute is not None:
                    name = window.attribute.name
                self.asked.sizes.setdefault(name, {})[window.size] = None
            case core.WindowUnit.EVENTS:
                self.asked.counts[int(window.size)] = None

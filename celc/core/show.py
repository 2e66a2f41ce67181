"""Core expressions and conditions as text: for dumps, for comments in generated code, and for the
names of derived columns."""

import datetime
from decimal import Decimal
from typing import assert_never

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.terms import type_tested
from celc.core.traversal import IN_ROW_PATTERNS

_LONGEST_LIST = 8


def show_expression(expression: core.Expression, *, exact: bool = False) -> str:
    """An expression in the language's notation, without implicit casts.

    exact: casts and the types of constants are shown, so that two expressions of one event have
    the same text only if they are the same.
    """
    return _Notation(exact).expression(expression)


def show_truth(truth: core.Truth) -> str:
    """A condition in the language's notation."""
    return _Notation(exact=False).truth(truth)


def show_predicate(predicate: core.Predicate) -> str:
    """A predicate in the language's notation. Long lists are cut; their length is shown."""
    return _Notation(exact=False).predicate(predicate)


@frozen
class _Notation:
    exact: bool

    def expression(self, expression: core.Expression) -> str:
        match expression:
            case core.Constant():
                return self._constant(expression)
            case core.AttributeValue():
                return _attribute(expression.label, expression.attribute)
            case core.Arithmetic():
                left, right = self.expression(expression.left), self.expression(expression.right)
                return f"({left} {expression.operator} {right})"
            case core.Negation():
                return f"-{self.expression(expression.operand)}"
            case core.Absolute():
                return f"ABS({self.expression(expression.operand)})"
            case core.Cast():
                operand = self.expression(expression.operand)
                return f"{operand}::{expression.type.value}" if self.exact else operand
            case core.Aggregate():
                names = expression.attributes
                taken = ", ".join(_attribute(expression.label, name) for name in names)
                return call_text(expression, taken or expression.label)
            case core.Previous():
                before = "" if expression.distance == 1 else f", {expression.distance}"
                return f"PREV({_attribute(expression.label, expression.attribute)}{before})"
            case core.TotalOf():
                label = "*" if expression.label is None else expression.label
                name = expression.attribute
                taken = label if name is None else _attribute(label, name)
                return f"{expression.function}({taken})"
            case core.Variable():
                return expression.name
            case core.Choice():
                operands = ", ".join(map(self.expression, expression.operands))
                return f"{expression.function}({operands})"
            case core.Call():
                return self._call(expression)
            case core.OwnCall(operands=lists):
                taken = ", ".join(_attribute(one.label, str(one.attribute)) for one in lists)
                prior = "PRIOR " if lists[0].prior else ""
                return f"{expression.function.name}({prior}{taken})"
            case core.Conditional():
                return self._conditional(expression)
            case core.TimeDifference():
                ends = f"{self.expression(expression.start)}, {self.expression(expression.end)}"
                return f"TIMESTAMPDIFF({expression.unit}, {ends})"
            case core.InRowPatterns():
                raise AssertionError(IN_ROW_PATTERNS)
            case _:
                assert_never(expression)

    def _constant(self, constant: core.Constant) -> str:
        value, type = constant.value, constant.type
        plain = (core.DataType.INT, core.DataType.DOUBLE, core.DataType.STRING)
        if self.exact and value is not None and type not in plain:
            return f"{type.value} {value}"
        return show_constant(value, type)

    def _call(self, call: core.Call) -> str:
        match call:
            case core.Call(function="ELEMENT", operands=(whole, index)):
                return f"{self.expression(whole)}[{self.expression(index)}]"
            case core.Call(function="FIELD", operands=(whole, core.Constant(value=name))):
                return f"{self.expression(whole)}.{name}"
        operands = ", ".join(map(self.expression, call.operands))
        if call.zone not in (None, "UTC"):
            operands += f" AT TIME ZONE '{call.zone}'"
        if call.function in ("CAST", "TRY_CAST"):
            operands += f" AS {call.type.value}"
        return f"{call.function}({operands})"

    def _conditional(self, node: core.Conditional) -> str:
        otherwise = self.expression(node.otherwise)
        branches = [(self.truth(asked), self.expression(then)) for asked, then in node.branches]
        if len(branches) == 1 and not self.exact:
            ((asked, then),) = branches
            return f"IF({asked}, {then}, {otherwise})"
        ways = " ".join(f"WHEN {asked} THEN {then}" for asked, then in branches)
        return f"CASE {ways} ELSE {otherwise} END"

    def truth(self, truth: core.Truth) -> str:
        match truth:
            case core.Every():
                text = " AND ".join(map(self._part, truth.parts))
            case core.Some():
                text = " OR ".join(map(self._part, truth.parts))
            case _:
                return self.predicate(truth)
        return f"({text})" if self.exact else text

    def _part(self, truth: core.Truth) -> str:
        text = self.truth(truth)
        joins = isinstance(truth, core.Every | core.Some)
        return f"({text})" if joins and not self.exact else text

    def predicate(self, predicate: core.Predicate) -> str:
        match predicate:
            case core.Comparison():
                left, right = self.expression(predicate.left), self.expression(predicate.right)
                return f"{left} {predicate.operator} {right}"
            case core.Membership():
                return self._membership(predicate)
            case core.PatternMatch():
                word = f"{'NOT ' if predicate.negated else ''}{predicate.operator}"
                constant = core.Constant(predicate.pattern, core.DataType.STRING, predicate.span)
                return f"{self.expression(predicate.operand)} {word} {self._listed(constant)}"
            case core.NullTest():
                word = "IS NOT NULL" if predicate.negated else "IS NULL"
                return f"{self.expression(predicate.operand)} {word}"
            case core.Quantified():
                word = "EVERY" if predicate.every else "SOME"
                word = f"{'NOT ' if predicate.negated else ''}{word}"
                labels = (label.removeprefix(core.ROLE) for label in predicate.labels)
                return f"({word} {', '.join(labels)}: {self.truth(predicate.condition)})"
            case _:
                assert_never(predicate)

    def _listed(self, constant: core.Constant) -> str:
        """A constant whose type the operand before it tells."""
        return repr(constant.value) if self.exact else show_constant(constant.value, constant.type)

    def _membership(self, predicate: core.Membership) -> str:
        if type_tested(predicate) is not None and not self.exact:
            names = dict.fromkeys(str(value).partition(">")[2] for value in predicate.values)
            word = "IS NOT" if predicate.negated else "IS"
            return f"{type_tested(predicate)} {word} {' or '.join(names)}"
        shown = predicate.values if self.exact else predicate.values[:_LONGEST_LIST]
        type = predicate.operand.type
        values = [self._listed(core.Constant(value, type, predicate.span)) for value in shown]
        if len(predicate.values) > len(shown):
            values.append(f"… {len(predicate.values):,} in all")
        if predicate.has_null:
            values.append("NULL")
        word = "NOT IN" if predicate.negated else "IN"
        return f"{self.expression(predicate.operand)} {word} ({', '.join(values)})"


def call_text(node: core.Aggregate, arguments: str) -> str:
    prior = "PRIOR " if node.prior else ""
    arguments += f", {node.place}" if node.place else ""
    if node.function == "DISTINCT":
        return f"COUNT(DISTINCT {prior}{arguments})"
    return f"{node.function if node.own is None else node.own.name}({prior}{arguments})"


def _attribute(label: str, attribute: str) -> str:
    """An attribute of a label, or of the event that a condition is about."""
    return f"{label}.{attribute}" if label else attribute


def show_constant(value: object, type: core.DataType) -> str:
    match value, type:
        case None, _:
            return "NULL"
        case bool(), _:
            return "TRUE" if value else "FALSE"
        case int(), core.DataType.TIMESTAMP:
            return f"TIMESTAMP '{_timestamp(value)}'"
        case int(), core.DataType.TIMESTAMP_NTZ:
            return f"CAST(TIMESTAMP '{_timestamp(value)}' AS TIMESTAMP_NTZ)"
        case int(), core.DataType.DATE:
            return f"DATE '{_date(value)}'"
        case int(), core.DataType.INTERVAL:
            return show_interval(value)
        case int(), core.DecimalType(scale=scale) if scale:
            return format(Decimal(f"{value}e-{scale}"), "f")
        case str(), _:
            return "'" + value.replace("'", "''") + "'"
        case _:
            return repr(value)


_UNITS = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000))


def show_interval(microseconds: int) -> str:
    if microseconds < 0:
        return f"-({show_interval(-microseconds)})"
    parts, rest = [], microseconds
    for unit, size in (*_UNITS, ("SECOND", 1_000_000), ("MILLISECOND", 1_000)):
        count, rest = divmod(rest, size)
        if unit == "MILLISECOND" and rest:
            parts.append(f"{count}.{rest:03} {unit}S")
        elif count:
            parts.append(f"{count} {unit}{'' if count == 1 else 'S'}")
    return " ".join(parts) or "0 SECONDS"


def _timestamp(microseconds: int) -> str:
    epoch = datetime.datetime(1970, 1, 1)
    return str(epoch + datetime.timedelta(microseconds=microseconds))


def _date(days: int) -> str:
    return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=days))

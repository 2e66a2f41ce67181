"""Conditions on events as Python expressions over columns, for the first pass of the kernel.

Three-valued logic needs no third value here: NOT has been pushed to the predicates, so all that
counts of a predicate is whether it is TRUE, and it is TRUE only where none of its operands is NULL.
Numbers are compared in the generated code. Texts are not: each condition on texts is evaluated
once per distinct value by the runtime, and its truth arrives as a column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from celc.escape import string_literal
from celc.formula import (
    MIRRORED,
    Absolute,
    Aggregate,
    Arithmetic,
    AttributeValue,
    Cast,
    Comparison,
    Constant,
    DataType,
    Expression,
    Membership,
    Negation,
    NullTest,
    PatternMatch,
    Predicate,
    Previous,
)
from celc.like import like_to_regex
from celc.normal_form import EventClause
from celc.traversal import operands_of

_WHOLE = (DataType.INT, DataType.LONG, DataType.TIMESTAMP, DataType.DATE, DataType.BOOLEAN)
_LONGEST_CHAIN = 8
_LONGEST_TUPLE = 1000


@dataclass(slots=True)
class ConditionCode:
    """Turns predicates into expressions; collects the columns, texts and constants they need.

    `query`: the number of the query in its file, which ends the names of `members`.
    `attributes`: name → number of its column. `texts`: Python source of each condition on texts →
    number of its truth column. `members`: name → (values, dtype) of long IN lists. `helpers`: the
    functions of `celc_runtime.numbers` that are called. `read`: attributes that are read besides.
    """

    query: int
    attributes: dict[str, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    members: dict[str, tuple[tuple[int | float, ...], str]] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    text_attributes: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    def clause(self, clause: EventClause) -> str:
        """An expression that is true where the clause is TRUE."""
        parts = [self.predicate(predicate) for predicate in clause.predicates]
        return parts[0] if len(parts) == 1 else "(" + " | ".join(parts) + ")"

    def predicate(self, predicate: Predicate) -> str:
        """An expression that is true where the predicate is TRUE."""
        operands = operands_of(predicate)
        if operands[0].type is DataType.STRING:
            self.text_attributes |= {o.attribute for o in operands if isinstance(o, AttributeValue)}
            return f"text_{self._text(predicate)}[row]"
        known: dict[str, None] = {}
        values = [self._value(operand, known) for operand in operands]
        if isinstance(predicate, NullTest):
            valid = " & ".join(known)
            return f"({valid})" if predicate.negated else f"(not ({valid}))"
        match predicate:
            case Comparison():
                truth = self._comparison(predicate, values[0], values[1])
            case Membership():
                truth = self._membership(predicate, values[0])
            case PatternMatch():
                raise AssertionError("LIKE and RLIKE are about texts")
            case _:
                assert_never(predicate)
        return "(" + " & ".join([*known, truth]) + ")"

    # --- numbers ----------------------------------------------------------------------------------

    def _value(self, expression: Expression, known: dict[str, None]) -> str:
        """The value of an expression; what must be true for it not to be NULL goes to `known`."""
        match expression:
            case Constant():
                return _constant(expression.value, expression.type)
            case AttributeValue():
                number = self.attributes.setdefault(expression.attribute, len(self.attributes))
                known[f"valid_{number}[row]"] = None
                return f"column_{number}[row]"
            case Cast():
                return self._cast(expression, known)
            case Negation():
                value = self._value(expression.operand, known)
                if expression.type is DataType.INT:
                    return self._call("subtract_int", "0", value)
                if expression.type is DataType.LONG:
                    return self._call("subtract_long", "0", value)
                return f"(-{value})"
            case Absolute():
                value = self._value(expression.operand, known)
                if expression.type is DataType.INT:
                    return self._call("absolute_int", value)
                if expression.type is DataType.LONG:
                    return self._call("absolute_long", value)
                return f"abs({value})"
            case Arithmetic():
                return self._arithmetic(expression, known)
            case Aggregate() | Previous():
                raise AssertionError("not a condition on one event")
            case _:
                assert_never(expression)

    def _cast(self, cast: Cast, known: dict[str, None]) -> str:
        value = self._value(cast.operand, known)
        match cast.type:
            case DataType.DOUBLE:
                return f"np.float64({value})"
            case DataType.FLOAT:
                return self._call("whole_to_float", value)
            case DataType.TIMESTAMP:
                return self._call("days_to_microseconds", value)
            case _:
                return value

    def _arithmetic(self, expression: Arithmetic, known: dict[str, None]) -> str:
        left = self._value(expression.left, known)
        right = self._value(expression.right, known)
        if expression.operator in ("/", "%") and not isinstance(expression.right, Constant):
            known[f"({right} != 0)"] = None
        whole = {DataType.INT: "int", DataType.LONG: "long"}.get(expression.type)
        match expression.operator:
            case "/":
                return self._call("divide", left, right)
            case "%":
                if whole:
                    return self._call("remainder_whole", left, right)
                rest = self._call("remainder_real", left, right)
                return f"np.float32({rest})" if expression.type is DataType.FLOAT else rest
            case "+" | "-" | "*" if whole is None:
                return f"({left} {expression.operator} {right})"
            case "+":
                return self._call(f"add_{whole}", left, right)
            case "-":
                return self._call(f"subtract_{whole}", left, right)
            case "*":
                return self._call(f"multiply_{whole}", left, right)
            case _:
                assert_never(expression.operator)

    def _call(self, helper: str, *arguments: str) -> str:
        self.helpers.add(helper)
        return f"{helper}({', '.join(arguments)})"

    def _comparison(self, predicate: Comparison, left: str, right: str) -> str:
        operator = "==" if predicate.operator == "=" else predicate.operator
        if predicate.left.type in _WHOLE:
            return f"({left} {operator} {right})"
        # Spark: NaN = NaN, and NaN is larger than any number. A constant is never NaN, so it is
        # enough to ask the opposite question where IEEE's answer for NaN is the wrong one.
        if isinstance(predicate.right, Constant):
            opposite = {">": "<=", ">=": "<"}.get(operator)
            if opposite:
                return f"(not ({left} {opposite} {right}))"
            return f"({left} {operator} {right})"
        if isinstance(predicate.left, Constant):
            opposite = {"<": ">=", "<=": ">"}.get(operator)
            if opposite:
                return f"(not ({left} {opposite} {right}))"
            return f"({left} {operator} {right})"
        match predicate.operator:
            case "=":
                return self._call("equal_real", left, right)
            case "!=":
                return f"(not {self._call('equal_real', left, right)})"
            case "<":
                return self._call("less_real", left, right)
            case ">":
                return self._call("less_real", right, left)
            case "<=":
                return f"(not {self._call('less_real', right, left)})"
            case ">=":
                return f"(not {self._call('less_real', left, right)})"
            case _:
                assert_never(predicate.operator)

    def _membership(self, predicate: Membership, value: str) -> str:
        type = predicate.operand.type
        if len(predicate.values) <= _LONGEST_CHAIN:
            parts = [f"({value} == {_constant(item, type)})" for item in predicate.values]
            truth = "(" + " | ".join(parts) + ")" if parts else "False"
        else:
            dtype = "float64" if type in (DataType.FLOAT, DataType.DOUBLE) else "int64"
            items = tuple(sorted(item for item in predicate.values if not isinstance(item, str)))
            name = f"VALUES_{len(self.members)}"
            self.members[name] = (items, dtype)
            truth = self._call("is_member", f"{name}_{self.query}", value)
        return f"(not {truth})" if predicate.negated else truth

    # --- texts ------------------------------------------------------------------------------------

    def _text(self, predicate: Predicate) -> int:
        return self.texts.setdefault(text_condition(predicate), len(self.texts))


def _constant(value: object, type: DataType) -> str:
    assert value is not None, "what is NULL for every event is folded away"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and type is DataType.FLOAT:
        return f"np.float32({value!r})"
    return repr(value)


def text_condition(predicate: Predicate) -> str:
    """A condition on the texts of one event as the constructor call that the runtime evaluates."""
    match predicate:
        case NullTest():
            kind = "is_not_null" if predicate.negated else "is_null"
            return f'TextCondition("{kind}", {_name(predicate.operand)})'
        case PatternMatch():
            kind = "not_rlike" if predicate.negated else "rlike"
            pattern = predicate.pattern
            if predicate.operator == "LIKE":
                pattern = like_to_regex(pattern)
            return (
                f'TextCondition("{kind}", {_name(predicate.operand)}, '
                f"({string_literal(pattern)},))"
            )
        case Membership():
            kind = "not_in" if predicate.negated else "in"
            values = _texts([str(value) for value in predicate.values])
            return f'TextCondition("{kind}", {_name(predicate.operand)}, {values})'
        case Comparison():
            return _text_comparison(predicate)
        case _:
            assert_never(predicate)


def _texts(values: list[str]) -> str:
    """A tuple of texts; a long one is cut out of one text, because black would take too long."""
    if len(values) > _LONGEST_TUPLE and not any("\n" in value for value in values):
        return f'tuple({string_literal(chr(10).join(values))}.split("\\n"))'
    return "(" + ", ".join(map(string_literal, values)) + ("," if len(values) == 1 else "") + ")"


def _text_comparison(predicate: Comparison) -> str:
    left, right, operator = predicate.left, predicate.right, predicate.operator
    if isinstance(left, Constant):
        left, right = right, left
        operator = MIRRORED[operator]
    if isinstance(right, Constant):
        return f'TextCondition("{operator}", {_name(left)}, ({string_literal(str(right.value))},))'
    return f'TextComparison("{operator}", {_name(left)}, {_name(right)})'


def _name(expression: Expression) -> str:
    assert isinstance(expression, AttributeValue), "texts have no arithmetic"
    return string_literal(expression.attribute)

"""Expressions → lines of Python that Numba compiles: a value, and whether it is known.

Each expression becomes a variable with its value and, where it can be NULL, a variable with the
truth that it is not. Texts are numbers in the order of the texts, which the runtime gives them, so
they compare, and have a smallest one, as numbers do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from celc.codegen.imports import Imports
from celc.core.formula import Constant, DataType
from celc.row_pattern import core

_WHOLE = (
    *(DataType.INT, DataType.LONG, DataType.BOOLEAN, DataType.STRING),
    *(DataType.TIMESTAMP, DataType.DATE, DataType.INTERVAL),
)
_LONG = (DataType.LONG, DataType.TIMESTAMP, DataType.INTERVAL)
_OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply"}
_SMALLEST = -(2**63)


@dataclass(frozen=True, slots=True)
class Value:
    """The text of a value, and of the truth that it is not NULL; None: it never is."""

    text: str
    known: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """The text of a row's number, and of the truth that there is such a row; None: there is."""

    text: str
    exists: str | None


@dataclass(slots=True)
class Shared:
    """What all functions of a query share: the columns and texts that they read.

    `columns`: number in the table → number among the columns that are read. `texts`: constant →
    its number. `regexes`: expression → its number.
    """

    imports: Imports
    columns: dict[int, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    regexes: dict[str, int] = field(default_factory=dict)


Leaf = Callable[["Lines", core.Expression], Value | None]
"""The value of an expression where a function has it already; None: it is to be computed."""


class Lines:
    """The body of a function. `place` says where a row is, `leaf` what else is known."""

    def __init__(
        self, shared: Shared, place: Callable[[core.Row], Place], leaf: Leaf, indent: int
    ) -> None:
        self.lines: list[str] = []
        self.shared = shared
        self._place = place
        self._leaf = leaf
        self._indent = indent
        self._numbers = itertools.count(1)
        self._done: dict[core.Expression, Value] = {}
        self.columns: set[int] = set()

    def write(self, line: str, deeper: int = 0) -> None:
        """Add a line."""
        self.lines.append("    " * (self._indent + deeper) + line)

    def fresh(self) -> int:
        """A number for new variables."""
        return next(self._numbers)

    def inside(self, deeper: int) -> Lines:
        """Lines of a block within these: it uses no value that they have, and they none of it."""
        inner = Lines(self.shared, self._place, self._leaf, self._indent + deeper)
        inner._numbers, inner.columns = self._numbers, self.columns
        return inner

    # --- values -----------------------------------------------------------------------------------

    def truth(self, node: core.Expression) -> str:
        """The text of the truth that a condition is TRUE."""
        value = self.value(node)
        return value.text if value.known is None else f"({value.known} & {value.text})"

    def value(self, node: core.Expression) -> Value:
        """The value of an expression; it is computed once."""
        if node not in self._done:
            found = self._leaf(self, node)
            self._done[node] = self._computed(node) if found is None else found
        return self._done[node]

    def column(self, column: int, place: Place, type: DataType) -> Value:
        """The value of a column at a row."""
        number = self.shared.columns.setdefault(column, len(self.shared.columns))
        self.columns.add(number)
        new = self.fresh()
        test = " != 0" if type is DataType.BOOLEAN else ""
        values, valid = f"column_{number}[{place.text}]{test}", f"valid_{number}[{place.text}]"
        if place.exists is None:
            self.write(f"v{new}, k{new} = {values}, {valid}")
        else:
            self.write(f"v{new}, k{new} = {self.zero(type)}, False")
            self.write(f"if {place.exists}:")
            self.write(f"v{new}, k{new} = {values}, {valid}", 1)
        return Value(f"v{new}", f"k{new}")

    def zero(self, type: DataType) -> str:
        """A value of a type, for where there is none."""
        match type:
            case DataType.BOOLEAN:
                return "False"
            case DataType.DOUBLE:
                return "0.0"
            case DataType.FLOAT:
                self.shared.imports.use("np")
                return "np.float32(0)"
            case _:
                return "0"

    def _kept(self, text: str, known: str | None) -> Value:
        new = self.fresh()
        self.write(f"v{new} = {text}")
        if known is None:
            return Value(f"v{new}", None)
        self.write(f"k{new} = {known}")
        return Value(f"v{new}", f"k{new}")

    def _computed(self, node: core.Expression) -> Value:
        match node:
            case Constant():
                return self._constant(node)
            case core.ColumnAt():
                return self.column(node.column, self._place(node.row), node.type)
            case core.Existing():
                place = self._place(node.row)
                operand = self.value(node.operand)
                return Value(operand.text, _all(place.exists, operand.known))
            case core.Arithmetic():
                return self._arithmetic(node)
            case core.Negation():
                return self._negation(node)
            case core.Absolute():
                return self._absolute(node)
            case core.Cast():
                return self._cast(node)
            case core.TimeDifference():
                return self._difference(node)
            case core.Comparison():
                left, right = self.value(node.left), self.value(node.right)
                text = self._comparison(node, left.text, right.text)
                return self._kept(text, _all(left.known, right.known))
            case core.Logic():
                return self._logic(node)
            case core.Not():
                operand = self.value(node.operand)
                return self._kept(f"not {operand.text}", operand.known)
            case core.IsNull():
                operand = self.value(node.operand)
                return Value("False" if operand.known is None else f"(not {operand.known})", None)
            case core.TextMatch():
                operand = self.value(node.operand)
                regexes = self.shared.regexes
                number = regexes.setdefault(node.regex, len(regexes))
                return self._kept(f"truths[{number}, {operand.text}]", operand.known)
            case core.Case():
                return self._case(node)
            case core.Coalesce():
                return self._coalesce(node)
            case core.LabelAt() | core.MatchNumber() | core.Aggregate():
                raise AssertionError("a function has these values or cannot be asked for them")
            case _:
                assert_never(node)

    def _constant(self, node: Constant) -> Value:
        if node.value is None:
            return Value(self.zero(node.type), "False")
        if isinstance(node.value, str):
            texts = self.shared.texts
            number = texts.setdefault(node.value, len(texts))
            return Value(f"texts[{number}]", None)
        if node.type is DataType.FLOAT:
            self.shared.imports.use("np")
            return Value(f"np.float32({node.value!r})", None)
        return Value(repr(node.value), None)

    def _call(self, name: str, *arguments: str) -> str:
        return self.shared.imports.call(name, *arguments)

    def _arithmetic(self, node: core.Arithmetic) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        known = [left.known, right.known]
        for side in (node.left, node.right):
            if isinstance(side, core.Cast) and side.type is DataType.TIMESTAMP:
                known.append(self._call("begins_at_time", self.value(side.operand).text))
        if node.type.is_checked:
            operation = f"can_{_OPERATIONS[node.operator]}"
            known.append(self._call(operation, left.text, right.text))
        if node.operator in ("/", "%"):
            known.append(f"({right.text} != 0)")
        return self._kept(self._operation(node, left.text, right.text), _all(*known))

    def _operation(self, node: core.Arithmetic, left: str, right: str) -> str:
        whole = "long" if node.type in _LONG else None
        if node.type is DataType.INT:
            whole = "int"
        if node.operator == "/":
            return self._call("divide", left, right)
        if node.operator == "%":
            if whole:
                return self._call("remainder_whole", left, right)
            rest = self._call("remainder_real", left, right)
            if node.type is DataType.FLOAT:
                self.shared.imports.use("np")
                return f"np.float32({rest})"
            return rest
        if whole is None:
            return f"{left} {node.operator} {right}"
        return self._call(f"{_OPERATIONS[node.operator]}_{whole}", left, right)

    def _negation(self, node: core.Negation) -> Value:
        operand = self.value(node.operand)
        known = operand.known
        if node.type is DataType.INTERVAL:
            known = _all(known, f"({operand.text} != {_SMALLEST})")
        if node.type is DataType.INT:
            return self._kept(self._call("subtract_int", "0", operand.text), known)
        if node.type in _LONG:
            return self._kept(self._call("subtract_long", "0", operand.text), known)
        return self._kept(f"-{operand.text}", known)

    def _absolute(self, node: core.Absolute) -> Value:
        operand = self.value(node.operand)
        known = operand.known
        if node.type is DataType.INTERVAL:
            known = _all(known, f"({operand.text} != {_SMALLEST})")
        if node.type is DataType.INT:
            return self._kept(self._call("absolute_int", operand.text), known)
        if node.type in _LONG:
            return self._kept(self._call("absolute_long", operand.text), known)
        return self._kept(f"abs({operand.text})", known)

    def _cast(self, node: core.Cast) -> Value:
        operand = self.value(node.operand)
        match node.type:
            case DataType.DOUBLE:
                self.shared.imports.use("np")
                return self._kept(f"np.float64({operand.text})", operand.known)
            case DataType.FLOAT:
                return self._kept(self._call("whole_to_float", operand.text), operand.known)
            case DataType.TIMESTAMP:
                return self._kept(self._call("days_to_microseconds", operand.text), operand.known)
            case _:
                return operand

    def _difference(self, node: core.TimeDifference) -> Value:
        start, end = self.value(node.start), self.value(node.end)
        known = _all(start.known, end.known, self._call("can_subtract", end.text, start.text))
        length = self._kept(self._call("subtract_long", end.text, start.text), None).text
        unit = node.unit
        return self._kept(f"{length} // {unit} if {length} >= 0 else -(-{length} // {unit})", known)

    def _comparison(self, node: core.Comparison, left: str, right: str) -> str:
        operator = "==" if node.operator == "=" else node.operator
        if node.left.type in _WHOLE:
            return f"{left} {operator} {right}"
        match node.operator:
            case "=":
                return self._call("equal_real", left, right)
            case "!=":
                return f"not {self._call('equal_real', left, right)}"
            case "<":
                return self._call("less_real", left, right)
            case ">":
                return self._call("less_real", right, left)
            case "<=":
                return f"not {self._call('less_real', right, left)}"
            case ">=":
                return f"not {self._call('less_real', left, right)}"
            case _:
                assert_never(node.operator)

    def _logic(self, node: core.Logic) -> Value:
        values = [self.value(part) for part in node.parts]
        all_known = all(value.known is None for value in values)
        decided = " & " if node.operator == "AND" else " | "
        if all_known:
            return self._kept(decided.join(value.text for value in values), None)
        holds = [_true(value) for value in values]
        fails = [_false(value) for value in values]
        truth = self._kept(decided.join(holds), None).text
        other = " | " if node.operator == "AND" else " & "
        return self._kept(
            truth,
            (
                f"{truth} | {other.join(fails)}"
                if node.operator == "AND"
                else f"{truth} | ({other.join(fails)})"
            ),
        )

    def _case(self, node: core.Case) -> Value:
        tests = [self.truth(test) for test, _ in node.branches]
        values = [self.value(value) for _, value in node.branches]
        last = self.value(node.otherwise)
        new = self.fresh()
        self.write(f"v{new}, k{new} = {last.text}, {last.known or 'True'}")
        for test, value in reversed(list(zip(tests, values, strict=True))):
            self.write(f"if {test}:")
            self.write(f"v{new}, k{new} = {value.text}, {value.known or 'True'}", 1)
        return Value(f"v{new}", f"k{new}")

    def _coalesce(self, node: core.Coalesce) -> Value:
        *before, last = [self.value(part) for part in node.parts]
        new = self.fresh()
        self.write(f"v{new}, k{new} = {last.text}, {last.known or 'True'}")
        for value in reversed(before):
            self.write(f"if {value.known or 'True'}:")
            self.write(f"v{new}, k{new} = {value.text}, True", 1)
        return Value(f"v{new}", f"k{new}")


def _all(*truths: str | None) -> str | None:
    """The text of the truth that all of them hold."""
    kept = list(dict.fromkeys(truth for truth in truths if truth is not None))
    if not kept:
        return None
    return kept[0] if len(kept) == 1 else "(" + " & ".join(kept) + ")"


def _true(value: Value) -> str:
    return value.text if value.known is None else f"({value.known} & {value.text})"


def _false(value: Value) -> str:
    if value.known is None:
        return f"(not {value.text})"
    return f"({value.known} & (not {value.text}))"

"""Expressions → lines of Python that Numba compiles: a value, and whether it is known.

Each expression becomes a variable with its value and, where it can be NULL, a variable with the
truth that it is not. Texts are numbers in the order of the texts, which the runtime gives them, so
they compare, and have a smallest one, as numbers do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeGuard, assert_never

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.row_pattern import LETTERS

from celc.codegen.expressions import decimals
from celc.codegen.expressions.operations import (
    Operation,
    as_float,
    comparison,
    needs,
    operation,
    real,
)
from celc.codegen.text.escape import comment_text
from celc.codegen.text.imports import Imports
from celc.core import formula as core
from celc.core.formula import Constant, DataType
from celc.core.like import like_to_regex
from celc.core.traversal import terms_of

_Held: TypeAlias = core.Expression | core.Truth


@frozen
class Value:
    """The text of a value, and of the truth that it is not NULL; None: it never is."""

    text: str
    known: str | None


@frozen
class Place:
    """The text of a row's number, and of the truth that there is such a row; None: there is."""

    text: str
    exists: str | None


@dataclass(slots=True)
class Shared:
    """What all functions of a query share: the columns and texts that they read.

    `columns`: number in the table, or `LETTERS`, → number among the columns that are read.
    `texts`: constant → its number. `regexes`: expression → its number.
    """

    imports: Imports
    columns: dict[int, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    regexes: dict[str, int] = field(default_factory=dict)


def joins_texts(node: core.Expression) -> TypeGuard[core.Call]:
    """Whether an expression joins texts of several rows, in a condition."""
    return isinstance(node, core.Call) and node.function == "CONCAT"


Leaf = Callable[["Lines", core.Expression], Value | None]
"""The value of an expression that a function has already; None: it must be computed."""


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
        self._done: dict[_Held, Value] = {}
        self.columns: set[int] = set()

    def write(self, line: str, deeper: int = 0) -> None:
        """Add a line."""
        self.lines.append("    " * (self._indent + deeper) + line)

    def comment(self, text: str) -> None:
        """Add a line that says what the following ones compute."""
        self.write(f"# {comment_text(text)}")

    def fresh(self) -> int:
        """A number for new variables."""
        return next(self._numbers)

    def inside(self, deeper: int) -> Lines:
        """Lines of a block within these: it uses no value that they have, and they none of it."""
        inner = Lines(self.shared, self._place, self._leaf, self._indent + deeper)
        inner._numbers, inner.columns = self._numbers, self.columns
        return inner

    # --- values -----------------------------------------------------------------------------------

    def truth(self, asked: core.Truth) -> str:
        """The text of the truth that a condition is TRUE."""
        match asked:
            case core.Every() | core.Some():
                return _joined(_SIGNS[type(asked)], map(self.truth, asked.parts))
            case _:
                return _true(self.asked(asked))

    def value(self, node: core.Expression) -> Value:
        """The value of an expression; it is computed once."""
        if node not in self._done:
            found = self._leaf(self, node)
            self._done[node] = self._computed(node) if found is None else found
        return self._done[node]

    def asked(self, asked: core.Truth) -> Value:
        """A condition as a value, by the logic of three values; it is computed once."""
        if asked not in self._done:
            self._done[asked] = self._asked(asked)
        return self._done[asked]

    def _asked(self, asked: core.Truth) -> Value:
        match asked:
            case core.Every() | core.Some():
                return self._junction(asked)
            case core.Comparison():
                return self._comparison(asked)
            case core.PatternMatch():
                operand = self.value(asked.operand)
                regex = asked.pattern if asked.operator == "RLIKE" else like_to_regex(asked.pattern)
                number = self.shared.regexes.setdefault(regex, len(self.shared.regexes))
                found = f"truths[{number}, {operand.text}]"
                return self._kept(f"not {found}" if asked.negated else found, operand.known)
            case core.NullTest():
                known = self.value(asked.operand).known
                if known is None:
                    return Value(str(asked.negated), None)
                return Value(known if asked.negated else f"(not {known})", None)
            case core.Membership():
                raise AssertionError("IN is written out in MATCH_RECOGNIZE")
            case core.Quantified():
                raise AssertionError("MATCH_RECOGNIZE has no SOME and no EVERY")
            case _:
                assert_never(asked)

    def _comparison(self, asked: core.Comparison) -> Value:
        left, right = self.value(asked.left), self.value(asked.right)
        known = _all(left.known, right.known)
        if joins_texts(asked.left) or joins_texts(asked.right):
            sides = map(self._pieces, (asked.left, asked.right), (left, right))
            number = self._read(LETTERS)
            letters = (f"column_{number}", f"valid_{number}")
            order = self.shared.imports.call("order_of_texts", *letters, *sides)
            operator = "==" if asked.operator == "=" else asked.operator
            return self._kept(f"{order} {operator} 0", known)
        match asked:
            case core.Comparison("=", right=Constant(value=True)):
                return left
            case core.Comparison("!=", right=Constant(value=True)):
                return self._kept(f"not {left.text}", left.known)
            case _:
                text = comparison(asked, left.text, right.text, self.shared.imports)
                return self._kept(text, known)

    def _junction(self, asked: core.Every | core.Some) -> Value:
        values = [self.asked(part) for part in asked.parts]
        sign = _SIGNS[type(asked)]
        if all(value.known is None for value in values):
            return self._kept(_joined(sign, (value.text for value in values)), None)
        truth = self._kept(_joined(sign, map(_true, values)), None).text
        # Known where a part decides, and where all parts are known.
        if isinstance(asked, core.Every):
            return self._kept(truth, _joined(" | ", [truth, *map(_false, values)]))
        return self._kept(truth, f"{truth} | {_joined(' & ', map(_false, values))}")

    def _pieces(self, node: core.Expression, value: Value) -> str:
        """The numbers of the texts that a side of a comparison is joined of."""
        if joins_texts(node):
            return value.text
        self.shared.imports.use("np")
        return f"(np.int64({value.text}),)"

    def _joined(self, node: core.Call) -> Value:
        """Texts of several rows one after another, as the numbers of all."""
        values = [self.value(piece) for piece in node.operands]
        self.shared.imports.use("np")
        text = ", ".join(f"np.int64({value.text})" for value in values)
        return Value(f"({text},)", _all(*(value.known for value in values)))

    def _read(self, column: int) -> int:
        """The number of a column among those that are read."""
        number = self.shared.columns.setdefault(column, len(self.shared.columns))
        self.columns.add(number)
        return number

    def column(self, column: int, place: Place, type: DataType) -> Value:
        """The value of a column at a row."""
        number = self._read(column)
        new = self.fresh()
        values, valid = f"column_{number}[{place.text}]", f"valid_{number}[{place.text}]"
        if type is DataType.BOOLEAN:
            values += " != 0"
        values = decimals.in_column(values, type, self.shared.imports)
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
            case core.DecimalType():
                return decimals.constant(0, type, self.shared.imports)
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
            case core.Cast() | core.Negation() | core.Absolute():
                return self._operation(node)
            case core.Call() if joins_texts(node):
                return self._joined(node)
            case core.Arithmetic() | core.TimeDifference() | core.Call():
                return self._operation(node)
            case core.Asked():
                return self.asked(node.condition)
            case core.Conditional():
                return self._conditional(node)
            case core.Choice(function="COALESCE"):
                return self._coalesce(node)
            case core.Choice():
                return self._least_or_greatest(node)
            case _:
                raise AssertionError(f"no function of rows computes {node!r}")

    def _constant(self, node: Constant) -> Value:
        if node.value is None:
            return Value(self.zero(node.type), "False")
        if isinstance(node.value, str):
            texts = self.shared.texts
            number = texts.setdefault(node.value, len(texts))
            return Value(f"texts[{number}]", None)
        if isinstance(node.type, core.DecimalType):
            assert isinstance(node.value, int)
            return Value(decimals.constant(node.value, node.type, self.shared.imports), None)
        if node.type is DataType.FLOAT:
            assert isinstance(node.value, float)
            return Value(as_float(real(node.value, self.shared.imports), self.shared.imports), None)
        if isinstance(node.value, float):
            return Value(real(node.value, self.shared.imports), None)
        return Value(repr(node.value), None)

    def _operation(self, node: Operation) -> Value:
        operands = [self.value(term) for term in terms_of(node)]

        def text(operand: core.Expression) -> str:
            return self.value(operand).text

        found = operation(node, text, self.shared.imports)
        if found == operands[0].text:
            return operands[0]  # a cast without a change
        known = [operand.known for operand in operands]
        return self._kept(found, _all(*known, *needs(node, text, self.shared.imports)))

    def _conditional(self, node: core.Conditional) -> Value:
        tests = [self.truth(asked) for asked, _ in node.branches]
        values = [self.value(then) for _, then in node.branches]
        return self._chosen(tests, values, self.value(node.otherwise))

    def _coalesce(self, node: core.Choice) -> Value:
        *before, last = [self.value(operand) for operand in node.operands]
        return self._chosen([value.known or "True" for value in before], before, last)

    def _least_or_greatest(self, node: core.Choice) -> Value:
        """The operand that no other one is below (or above), NULL aside."""
        operator: Literal["<", ">"] = "<" if node.function == "LEAST" else ">"
        first, *others = [(one, self.value(one)) for one in node.operands]
        new = self.fresh()
        self.write(f"v{new}, k{new} = {first[1].text}, {first[1].known or 'True'}")
        best = core.Variable(f"v{new}", node.type, node.span)
        for operand, value in others:
            asked = core.Comparison(operator, operand, best, node.span)
            better = comparison(asked, value.text, f"v{new}", self.shared.imports)
            known = "" if value.known is None else f"{value.known} and "
            self.write(f"if {known}(not k{new} or {better}):")
            self.write(f"v{new}, k{new} = {value.text}, True", 1)
        return Value(f"v{new}", f"k{new}")

    def _chosen(self, tests: list[str], values: list[Value], last: Value) -> Value:
        """The value of the first test that is TRUE."""
        new = self.fresh()
        self.write(f"v{new}, k{new} = {last.text}, {last.known or 'True'}")
        for test, value in reversed(list(zip(tests, values, strict=True))):
            self.write(f"if {test}:")
            self.write(f"v{new}, k{new} = {value.text}, {value.known or 'True'}", 1)
        return Value(f"v{new}", f"k{new}")


_SIGNS: dict[type, Literal[" & ", " | "]] = {core.Every: " & ", core.Some: " | "}


def _joined(sign: Literal[" & ", " | "], parts: Iterable[str]) -> str:
    return f"({sign.join(parts)})"


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

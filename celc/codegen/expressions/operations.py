"""Operators and comparisons as text that Numba compiles, and what must hold for their values.

Both languages calculate by what stands here: CEL in conditions on single events and in aggregates
that a file declares, MATCH_RECOGNIZE in conditions on rows and in measures. They differ in what
operands are: a reader gives the text of each.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, assert_never

from celc.codegen.expressions import calls, decimals
from celc.codegen.text.imports import Imports
from celc.core import formula as core

Operation: TypeAlias = (
    core.Arithmetic | core.Negation | core.Absolute | core.Cast | core.TimeDifference | core.Call
)
"""What is calculated from the values of operands, none of which is NULL."""

Text: TypeAlias = Callable[[core.Expression], str]
"""The text of the value of an operand."""

_WHOLE = (
    *(*core.WHOLE_NUMBERS, core.DataType.BOOLEAN, core.DataType.STRING),
    *(core.DataType.TIMESTAMP, core.DataType.TIMESTAMP_NTZ, core.DataType.DATE),
    core.DataType.INTERVAL,
)
"""Types whose values are compared as whole numbers are; texts have numbers in their order."""

_LONG = (
    *(core.DataType.LONG, core.DataType.TIMESTAMP, core.DataType.TIMESTAMP_NTZ),
    core.DataType.INTERVAL,
)
"""Types whose arithmetic is that of 64-bit numbers; for times it is checked beforehand."""

_HALVES = {core.DataType.BYTE: 1 << 7, core.DataType.SHORT: 1 << 15}
"""How many numbers below 0 a type of less than 32 bits has. Its arithmetic is of 64 bits, which
then wrap."""

_OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply"}
_SMALLEST = -(2**63)


def needs(node: Operation, text: Text, imports: Imports) -> Iterator[str]:
    """The truths without which a value is NULL although no operand is."""
    match node:
        case core.Cast() | core.Arithmetic() | core.Call() if isinstance(
            node.type, core.DecimalType
        ):
            yield from decimals.needs(node, text, imports)
        case core.Cast():
            return
        case core.Negation() | core.Absolute():
            if node.type is core.DataType.INTERVAL:
                yield f"({text(node.operand)} != {_SMALLEST})"
        case core.Arithmetic():
            yield from _midnights((node.left, node.right), text, imports)
            if node.type.is_checked:
                operation = f"can_{_OPERATIONS[node.operator]}"
                yield imports.call(operation, text(node.left), text(node.right))
            right = node.right
            divides = node.operator in ("/", "%")
            if divides and not (isinstance(right, core.Constant) and right.value):
                yield f"({text(right)} != 0)"
        case core.Call():
            yield from _midnights(node.operands, text, imports)
            yield from calls.needs(node, text, imports)
        case core.TimeDifference():
            yield from _midnights((node.start, node.end), text, imports)
            yield imports.call("can_subtract", text(node.end), text(node.start))
        case _:
            assert_never(node)


def _midnights(sides: Iterable[core.Expression], text: Text, imports: Imports) -> Iterator[str]:
    """The tests that the midnight of each DATE, cast to TIMESTAMP, is a time."""
    for side in sides:
        if isinstance(side, core.Cast) and side.type is core.DataType.TIMESTAMP:
            yield imports.call("begins_at_time", text(side.operand))


def operation(node: Operation, text: Text, imports: Imports) -> str:
    """The value of an operation where it is not NULL."""
    match node:
        case (
            core.Cast() | core.Negation() | core.Absolute() | core.Arithmetic() | core.Call()
        ) if isinstance(node.type, core.DecimalType):
            return decimals.operation(node, text, imports)
        case core.Cast() if isinstance(node.operand.type, core.DecimalType):
            return decimals.as_double(node.operand, text, imports)
        case core.Cast():
            return _cast(node, text(node.operand), imports)
        case core.Negation():
            value = text(node.operand)
            if node.type in _HALVES:
                return _wrapped(f"-{_wide(value, imports)}", node.type, imports)
            if node.type is core.DataType.INT:
                return imports.call("subtract_int", "0", value)
            if node.type in _LONG:
                return imports.call("subtract_long", "0", value)
            return f"(-{value})"
        case core.Absolute():
            value = text(node.operand)
            if node.type in _HALVES:
                return _wrapped(f"abs({_wide(value, imports)})", node.type, imports)
            if node.type is core.DataType.INT:
                return imports.call("absolute_int", value)
            return imports.call("absolute_long", value) if node.type in _LONG else f"abs({value})"
        case core.Arithmetic():
            return _arithmetic(node, text(node.left), text(node.right), imports)
        case core.Call():
            return calls.operation(node, text, imports)
        case core.TimeDifference():
            return imports.call("units_between", text(node.start), text(node.end), str(node.unit))
        case _:
            assert_never(node)


def _wide(value: str, imports: Imports) -> str:
    imports.use("np")
    return f"np.int64({value})"


def _wrapped(value: str, type: core.DataType, imports: Imports) -> str:
    """A result of 64 bits in a narrower type."""
    return imports.call("wrap_narrow", value, str(_HALVES[type]))


def _cast(node: core.Cast, value: str, imports: Imports) -> str:
    match node.type:
        case core.DataType.DOUBLE:
            imports.use("np")
            return f"np.float64({value})"
        case core.DataType.FLOAT:
            return imports.call("whole_to_float", value)
        case core.DataType.TIMESTAMP:
            return imports.call("days_to_microseconds", value)
        case _:
            return value


def _arithmetic(node: core.Arithmetic, left: str, right: str, imports: Imports) -> str:
    whole = "long" if node.type in _LONG else None
    if node.type is core.DataType.INT:
        whole = "int"
    match node.operator:
        case "/":
            return imports.call("divide", left, right)
        case "%" if whole or node.type in _HALVES:
            return imports.call("remainder_whole", left, right)
        case "%":
            rest = imports.call("remainder_real", left, right)
            return as_float(rest, imports) if node.type is core.DataType.FLOAT else rest
        case "+" | "-" | "*" if node.type in _HALVES:
            wide = f"{_wide(left, imports)} {node.operator} {_wide(right, imports)}"
            return _wrapped(wide, node.type, imports)
        case "+" | "-" | "*" if whole is None:
            return f"({left} {node.operator} {right})"
        case "+" | "-" | "*":
            return imports.call(f"{_OPERATIONS[node.operator]}_{whole}", left, right)
        case _:
            assert_never(node.operator)


def as_float(value: str, imports: Imports) -> str:
    """A value as a FLOAT."""
    imports.use("np")
    return f"np.float32({value})"


def real(value: float, imports: Imports) -> str:
    """A constant of a DOUBLE. What was folded can be NaN or infinite: Python has no word for it."""
    if math.isfinite(value):
        return repr(value)
    imports.use("np")
    return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "(-np.inf)"


def comparison(node: core.Comparison, left: str, right: str, imports: Imports) -> str:
    """The truth of a comparison of two values that are not NULL."""
    operator = "==" if node.operator == "=" else node.operator
    if node.left.type in _WHOLE or isinstance(node.left.type, core.DecimalType):
        return f"({left} {operator} {right})"
    # Spark: NaN = NaN, and NaN is larger than any number. So where the answer of IEEE for NaN is
    # wrong and one side is a number, the opposite question has the right one.
    if _is_number(node.right):
        opposite = {">": "<=", ">=": "<"}.get(operator)
        return _unless(left, opposite, operator, right)
    if _is_number(node.left):
        opposite = {"<": ">=", "<=": ">"}.get(operator)
        return _unless(left, opposite, operator, right)
    match node.operator:
        case "=":
            return imports.call("equal_real", left, right)
        case "!=":
            return f"(not {imports.call('equal_real', left, right)})"
        case "<":
            return imports.call("less_real", left, right)
        case ">":
            return imports.call("less_real", right, left)
        case "<=":
            return f"(not {imports.call('less_real', right, left)})"
        case ">=":
            return f"(not {imports.call('less_real', left, right)})"
        case _:
            assert_never(node.operator)


def _is_number(side: core.Expression) -> bool:
    """Whether a side is a constant, and not NaN."""
    return isinstance(side, core.Constant) and side.value == side.value


def _unless(left: str, opposite: str | None, operator: str, right: str) -> str:
    if opposite is None:
        return f"({left} {operator} {right})"
    return f"(not ({left} {opposite} {right}))"

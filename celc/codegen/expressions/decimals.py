"""Operations on DECIMALs as text.

A DECIMAL of up to 18 digits is an int64, of its smallest unit; a longer one is a pair of words
(`celc_runtime/engine/values/decimals.py`). Scales are known here, so that the text has only whole
numbers. Where the result and both sides have up to 18 digits, nothing can overflow.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from celc_runtime.values import decimals
from celc_runtime.values.types import MOST_DIGITS, MOST_NARROW, DecimalType, is_wide

from celc.codegen.text.imports import Imports
from celc.core import formula as core

_Text: TypeAlias = Callable[[core.Expression], str]
"""Writes the value of an expression."""

_EXACT_DOUBLE = 15
"""The digits with which a DOUBLE holds each whole number, and each lower power of ten, exactly."""


def constant(value: int, type: core.DataType, imports: Imports) -> str:
    """A constant of a DECIMAL type. value: in its smallest unit."""
    if not is_wide(type):
        return repr(value)
    imports.use("np")
    return f"(np.int64({value >> 64}), np.uint64({value & (2**64 - 1)}))"


def in_column(element: str, type: core.DataType, imports: Imports) -> str:
    """The value of an element of a column: an int64, or a pair of words for a wide type."""
    return imports.call("wide_in", element) if is_wide(type) else element


def needs(
    node: core.Cast | core.Arithmetic | core.Call, text: _Text, imports: Imports
) -> Iterator[str]:
    """The condition under which an operation has a value, if there is one: that its type holds the
    result. Elsewhere it is NULL."""
    match node:
        case core.Cast():
            pair = _cast(node, text, imports)
        case core.Arithmetic():
            pair = _arithmetic(node, text, imports)
        case core.Call():
            pair = _called(node, text, imports)
    if pair is not None and not _always_fits(node):
        yield imports.call("is_decimal", pair)
    elif isinstance(node, core.Arithmetic) and node.operator == "%":
        yield f"({text(node.right)} != 0)"


def _always_fits(node: core.Cast | core.Arithmetic | core.Call) -> bool:
    """Whether the type of an operation holds its result for all operands."""
    type = _decimal(node)
    if isinstance(node, core.Call):
        if node.function not in core.ROUNDINGS:
            return False
        source = _decimal(node.operands[0])
        return source.scale > 0 or node.function != "ROUND" or source.precision < type.precision
    if isinstance(node, core.Cast):
        source = _decimal(node.operand)
        spare = type.precision - type.scale - (source.precision - source.scale)
        return spare >= (type.scale < source.scale)
    left, right = _decimal(node.left), _decimal(node.right)
    if node.operator in ("/", "%"):
        return False
    if node.operator == "*":
        return type.precision > left.precision + right.precision
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return type.precision - type.scale > whole and type.scale >= max(left.scale, right.scale)


def operation(
    node: core.Cast | core.Negation | core.Absolute | core.Arithmetic | core.Call,
    text: _Text,
    imports: Imports,
) -> str:
    """The value of an operation where it is not NULL."""
    narrow = None
    match node:
        case core.Negation() | core.Absolute():
            value = text(node.operand)
            if is_wide(node.type):
                negates = isinstance(node, core.Negation)
                return imports.call("negate_decimal" if negates else "absolute_decimal", value)
            if isinstance(node, core.Negation):
                return imports.call("subtract_long", "0", value)
            return imports.call("absolute_long", value)
        case core.Cast():
            pair = _cast(node, text, imports)
            narrow = None if pair else _moved(node.operand, _decimal(node), text, imports)
        case core.Arithmetic():
            pair = _arithmetic(node, text, imports)
            narrow = None if pair else _narrow(node, text, imports)
        case core.Call():
            pair = _called(node, text, imports)
    if pair is None:
        assert narrow is not None
        return narrow
    return pair if is_wide(node.type) else imports.call("narrow_of", pair)


def as_double(operand: core.Expression, text: _Text, imports: Imports) -> str:
    """A DECIMAL as a DOUBLE."""
    type = _decimal(operand)
    if type.precision <= _EXACT_DOUBLE:
        imports.use("np")
        divisor = "" if type.scale == 0 else f" / {float(10**type.scale)!r}"
        return f"(np.float64({text(operand)}){divisor})"
    return imports.call("decimal_to_double", as_pair(operand, text, imports), str(type.scale))


def _decimal(node: core.Expression) -> DecimalType:
    found = decimals.as_decimal(node.type)
    assert found is not None
    return found


def as_pair(node: core.Expression, text: _Text, imports: Imports) -> str:
    """A value as a pair of words."""
    return wide(text(node), node.type, imports)


def wide(value: str, type: core.DataType, imports: Imports) -> str:
    """The text of a value as a pair of words."""
    return value if is_wide(type) else imports.call("wide_of", value)


def _moved(node: core.Expression, to: DecimalType, text: _Text, imports: Imports) -> str:
    """A value of 64 bits in the smallest unit of another type, whose scale is no smaller."""
    power = to.scale - _decimal(node).scale
    value = text(node)
    return imports.call("multiply_long", value, str(10**power)) if power else value


def _cast(node: core.Cast, text: _Text, imports: Imports) -> str | None:
    """A CAST between DECIMALs as a pair of words; None: 64 bits hold both, and no digit is lost."""
    source, type = _decimal(node.operand), _decimal(node)
    power = type.scale - source.scale
    is_narrow = max(source.precision + power, type.precision) <= MOST_NARROW
    if is_narrow and power >= 0 and _always_fits(node):
        return None
    pair = as_pair(node.operand, text, imports)
    if power == 0 and _always_fits(node):
        return pair
    return imports.call("rescale_decimal", pair, str(power), str(type.precision))


def _called(node: core.Call, text: _Text, imports: Imports) -> str:
    """ROUND, FLOOR or CEIL, or a CAST of what is no exact number, as a pair of words."""
    if node.function in core.ROUNDINGS:
        return _rounding(node, text, imports)
    (operand,), type = node.operands, _decimal(node)
    sizes = (str(type.scale), str(type.precision))
    value = text(operand)
    if operand.type is core.DataType.BOOLEAN:
        return imports.call("rescale_decimal", imports.call("wide_of", value), *sizes)
    if operand.type is core.DataType.TIMESTAMP:
        value = f"({value} / 1000000.0)"  # seconds, by way of a DOUBLE as in Spark
    return imports.call("real_to_decimal", value, *sizes)


def _rounding(node: core.Call, text: _Text, imports: Imports) -> str:
    """ROUND, FLOOR or CEIL, as a pair of words."""
    source, type = _decimal(node.operands[0]), _decimal(node)
    pair = as_pair(node.operands[0], text, imports)
    if node.function != "ROUND":
        name = "floor_decimal" if node.function == "FLOOR" else "ceil_decimal"
        return imports.call(name, pair, str(source.scale))
    down, up = decimals.shortening(source.scale, core.digits_of(node))
    if down:
        pair = imports.call("rescale_decimal", pair, str(-down), str(MOST_DIGITS))
    if up:
        pair = imports.call("rescale_decimal", pair, str(up), str(type.precision))
    return pair


def _arithmetic(node: core.Arithmetic, text: _Text, imports: Imports) -> str | None:
    """The result of an operator as a pair of words; None: 64 bits hold it and all on the way."""
    left, right, type = map(_decimal, (node.left, node.right, node))
    scale = max(left.scale, right.scale)
    largest = max(type.precision, left.precision, right.precision)
    match node.operator:
        case "*":
            if largest <= MOST_NARROW:
                return None
            given: list[int] = [left.scale + right.scale - type.scale, type.precision]
            name = "multiply_decimals"
        case "+" | "-":
            if largest <= MOST_NARROW:
                return None
            given = [scale - left.scale, scale - right.scale, scale - type.scale, type.precision]
            name = "add_decimals" if node.operator == "+" else "subtract_decimals"
        case "/":
            given = [type.scale + right.scale - left.scale, type.precision]
            name = "divide_decimals"
        case "%":
            whole = max(left.precision - left.scale, right.precision - right.scale)
            if max(largest, whole + scale) <= MOST_NARROW:
                return None
            given = [scale - left.scale, scale - right.scale]
            name = "remainder_decimals"
    sides = [as_pair(side, text, imports) for side in (node.left, node.right)]
    return imports.call(name, *sides, *map(str, given))


def _narrow(node: core.Arithmetic, text: _Text, imports: Imports) -> str:
    """The result of an operator, where 64 bits hold it and all on the way to it."""
    if node.operator == "*":
        return imports.call("multiply_long", text(node.left), text(node.right))
    scale = max(_decimal(node.left).scale, _decimal(node.right).scale)
    common = core.decimal_of(MOST_DIGITS, scale)
    sides = [_moved(side, common, text, imports) for side in (node.left, node.right)]
    name = {"+": "add_long", "-": "subtract_long", "%": "remainder_whole"}[node.operator]
    return imports.call(name, *sides)

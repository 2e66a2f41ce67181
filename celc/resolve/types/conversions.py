"""The types in which operands are compared or calculated, and the casts to them, as Spark inserts
them."""

from collections.abc import Sequence
from typing import Literal

from celc_runtime.plan.frozen import frozen
from celc_runtime.values import decimals

from celc.core import fold
from celc.core import formula as core
from celc.core.traversal import nodes_of
from celc.diagnostics.source import Span


def is_null(expression: core.Expression) -> bool:
    """Whether it is the literal NULL, which takes the type of the other operand."""
    return isinstance(expression, core.Constant) and expression.value is None


def common_type(left: core.DataType, right: core.DataType) -> core.DataType | None:
    """The type in which Spark SQL compares values of two types; None where it cannot.

    It is the wider of two numbers. FLOAT counts as wider than LONG, although it cannot hold all
    LONG values. A DECIMAL and a whole number meet in a DECIMAL that holds both, a DECIMAL and a
    FLOAT in DOUBLE, a DATE and a TIMESTAMP in TIMESTAMP.
    """
    keys = left.is_compared and right.is_compared
    if not keys or core.DataType.BINARY in (left, right):
        return None
    if left is right:
        return left
    if left.is_numeric and right.is_numeric:
        if isinstance(left, core.DecimalType) or isinstance(right, core.DecimalType):
            one, other = decimals.as_decimal(left), decimals.as_decimal(right)
            if one is None or other is None:
                return core.DataType.DOUBLE
            return decimals.wider(one, other)
        return max(left, right, key=core.NUMBERS.index)
    if left in core.TIMES and right in core.TIMES:
        return core.DataType.TIMESTAMP
    return None


def is_taken_as(data_type: core.DataType, parameter: core.DataType) -> bool:
    """Whether an aggregate or a function of the file takes an attribute for a parameter. None takes
    DECIMALs."""
    is_decimal = isinstance(data_type, core.DecimalType)
    return common_type(data_type, parameter) is parameter and not is_decimal


@frozen
class Misfit:
    """The operand, by its number, whose type has none in common with `before`, that of the operands
    before it."""

    number: int
    before: core.DataType


def meeting_type(operands: Sequence[core.Expression]) -> core.DataType | Misfit | None:
    """The common type of operands, NULL aside; None where all are NULL."""
    found: core.DataType | None = None
    exact = any(map(_is_exact, operands))
    for number, operand in enumerate(operands):
        if is_null(operand):
            continue
        type = literal_type(operand) if exact else operand.type
        common = type if found is None else common_type(found, type)
        if common is None:
            assert found is not None
            return Misfit(number, found)
        found = common
    return found


def _is_exact(expression: core.Expression) -> bool:
    """Whether literals beside an expression are the DECIMALs that they spell: it is a DECIMAL, and
    no number of matches (`COUNT(*) > 2.5` asks for 3)."""
    return isinstance(expression.type, core.DecimalType) and not _is_count(expression)


def _is_count(expression: core.Expression) -> bool:
    """Whether it is a whole number of matches, or a sum of whole numbers over matches."""
    counted = core.TotalOf | core.Variable
    return expression.type is core.COUNTS and any(
        isinstance(node, counted) for node in nodes_of(expression)
    )


def literal_type(expression: core.Expression) -> core.DataType:
    """The type of an operand beside a DECIMAL: of a literal the DECIMAL that it spells."""
    if isinstance(expression, core.Constant):
        if expression.digits is not None:
            return _spelled(expression.digits)[1]
        if isinstance(expression.value, int) and expression.type in core.NUMBERS:
            return core.decimal_of(len(str(abs(expression.value))), 0)
    return expression.type


def _spelled(digits: str) -> tuple[int, core.DataType]:
    """The smallest unit and the type of a number as it is written; DOUBLE: it has too many
    digits."""
    whole, behind = digits.lstrip("-").split(".")
    value, scale = int(whole + behind), len(behind)
    precision = max(len(str(value)), scale)
    if precision > core.MOST_DIGITS:
        return value, core.DataType.DOUBLE
    return -value if digits.startswith("-") else value, core.decimal_of(precision, scale)


def convert(expression: core.Expression, data_type: core.DataType) -> core.Expression:
    """The expression in a type that holds its values. Literals are converted at once, others get a
    Cast."""
    if isinstance(expression, core.Constant):
        if expression.value is None:
            return core.Constant(None, data_type, expression.span)
        if expression.type is data_type:
            return expression
        found, type = expression.value, expression.type
        if isinstance(data_type, core.DecimalType) and expression.digits is not None:
            found, type = _spelled(expression.digits)
        value = fold.cast(found, type, data_type)
        return core.Constant(value, data_type, expression.span)
    if expression.type is data_type:
        return expression
    return core.Cast(expression, data_type, expression.span)


def is_implicit(found: core.DataType, wanted: core.DataType) -> bool:
    """Whether `convert` does what CAST does with a number: it widens it, or makes a DECIMAL of an
    exact one."""
    if isinstance(wanted, core.DecimalType):
        return decimals.as_decimal(found) is not None
    return found.is_numeric and wanted.is_numeric and common_type(found, wanted) is wanted


Operator = Literal["+", "-", "*", "/", "%"]


def arithmetic(
    operator: Operator, left: core.Expression, right: core.Expression, span: Span
) -> core.Expression | None:
    """Arithmetic, where not both sides are NULL; None where it has no meaning."""
    if calculates_with_times(left, right):
        return _time_arithmetic(operator, left, right, span)
    if _is_exact(left) or _is_exact(right):
        found = _decimal_arithmetic(operator, left, right, span)
        if found is not None:
            return found
    data_type = meeting_type([left, right])
    if not isinstance(data_type, core.DataType) or not data_type.is_numeric:
        return None
    if operator == "/":
        data_type = core.DataType.DOUBLE
    return core.Arithmetic(
        operator, convert(left, data_type), convert(right, data_type), data_type, span
    )


def _decimal_arithmetic(
    operator: Operator, left: core.Expression, right: core.Expression, span: Span
) -> core.Arithmetic | None:
    """Arithmetic with a DECIMAL; None where the other side is none beside it."""
    other = right if is_null(left) else left
    types = [literal_type(other if is_null(side) else side) for side in (left, right)]
    one, another = map(decimals.as_decimal, types)
    if one is None or another is None:
        return None
    sides = convert(left, one), convert(right, another)
    return core.Arithmetic(operator, *sides, decimals.result_type(operator, one, another), span)


def calculates_with_times(left: core.Expression, right: core.Expression) -> bool:
    """Whether an operand of arithmetic is a time or a duration."""
    times = (*core.TIMES, core.DataType.TIMESTAMP_NTZ, core.DataType.INTERVAL)
    return any(side.type in times for side in (left, right))


def negation(operand: core.Expression, span: Span) -> core.Expression:
    """`-e` of a number or a duration; of a literal at once."""
    found = core.Negation(operand, operand.type, span)
    if isinstance(operand, core.Constant):
        value = None if operand.value is None else fold.evaluate(found)
        digits = None if operand.digits is None else f"-{operand.digits}".removeprefix("--")
        return core.Constant(value, operand.type, span, digits)
    return found


def aggregated_type(function: str, data_type: core.DataType) -> core.DataType:
    """The type of SUM, AVG and other functions of values of a type that they take."""
    if function == "COUNT":
        return core.DataType.LONG
    if function in ("SUM", "AVG", "MEDIAN") and data_type is core.DataType.INTERVAL:
        return data_type
    if isinstance(data_type, core.DecimalType) and function in ("SUM", "AVG"):
        return (decimals.sum_type if function == "SUM" else decimals.average_type)(data_type)
    if function in ("AVG", "VARIANCE", "STDDEV", "MEDIAN"):
        return core.DataType.DOUBLE
    if function == "SUM":
        whole = data_type in core.WHOLE_NUMBERS
        return core.DataType.LONG if whole else core.DataType.DOUBLE
    return data_type


_READ_AS = {
    core.DataType.DATE: core.DataType.TIMESTAMP,
    **dict.fromkeys(core.WHOLE_NUMBERS, core.DataType.LONG),
}


def _time_arithmetic(
    operator: Operator,
    left: core.Expression,
    right: core.Expression,
    span: Span,
) -> core.Arithmetic | None:
    """Arithmetic with a time or a duration on some side; None where it has no meaning. NULL gets
    the first type that makes sense with the other side."""
    if operator == "-" and left.type is right.type is core.DataType.DATE:
        # Exact where a midnight would be beyond 64 bits of microseconds.
        long = core.DataType.LONG
        days = core.Arithmetic("-", convert(left, long), convert(right, long), long, span)
        day = core.Constant(fold.MICROSECONDS_PER_DAY, core.DataType.INTERVAL, span)
        return core.Arithmetic("*", days, day, core.DataType.INTERVAL, span)
    first, second = (None if is_null(s) else _READ_AS.get(s.type, s.type) for s in (left, right))
    for (sign, one, other), data_type in core.TIME_OPERANDS.items():
        if sign == operator and first in (None, one) and second in (None, other):
            return core.Arithmetic(
                operator, convert(left, one), convert(right, other), data_type, span
            )
    return None

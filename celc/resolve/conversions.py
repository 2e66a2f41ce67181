"""The types in which operands are compared or calculated, and the casts to them, as Spark inserts
them."""

from typing import Literal

from celc.core import fold
from celc.core import formula as core
from celc.diagnostics.source import Span


def is_null(expression: core.Expression) -> bool:
    """Whether it is the literal NULL, which takes the type of the other operand."""
    return isinstance(expression, core.Constant) and expression.value is None


def common_type(left: core.DataType, right: core.DataType) -> core.DataType | None:
    """The type in which Spark SQL compares values of two types; None where it cannot.

    It is the wider of two numbers. FLOAT counts as wider than LONG, although it cannot hold all
    LONG values. For a FLOAT and a DECIMAL it is DOUBLE, for a DATE and a TIMESTAMP it is TIMESTAMP.
    """
    if left is right:
        return left
    if left.is_numeric and right.is_numeric and core.DataType.DECIMAL in (left, right):
        whole = (core.DataType.INT, core.DataType.LONG, core.DataType.DECIMAL)
        return core.DataType.DECIMAL if left in whole and right in whole else core.DataType.DOUBLE
    if left.is_numeric and right.is_numeric:
        return max(left, right, key=core.NUMBERS.index)
    if left in core.TIMES and right in core.TIMES:
        return core.DataType.TIMESTAMP
    return None


def convert(expression: core.Expression, data_type: core.DataType) -> core.Expression:
    """The expression in a type that holds its values. Literals are converted at once, others get a
    Cast."""
    if isinstance(expression, core.Constant):
        if expression.value is None:
            return core.Constant(None, data_type, expression.span)
        if expression.type is data_type:
            return expression
        value = fold.cast(expression.value, expression.type, data_type)
        return core.Constant(value, data_type, expression.span)
    if expression.type is data_type:
        return expression
    return core.Cast(expression, data_type, expression.span)


_READ_AS = {core.DataType.DATE: core.DataType.TIMESTAMP, core.DataType.INT: core.DataType.LONG}


def time_arithmetic(
    operator: Literal["+", "-", "*", "/", "%"],
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

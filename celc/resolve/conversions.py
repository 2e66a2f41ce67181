"""The types in which operands meet, and the casts that bring them there, as Spark inserts them."""

from __future__ import annotations

from typing import Literal

from celc.core import fold
from celc.core.formula import (
    NUMBERS,
    TIME_OPERANDS,
    TIMES,
    Arithmetic,
    Cast,
    Constant,
    DataType,
    Expression,
)
from celc.diagnostics.source import Span


def is_null(expression: Expression) -> bool:
    """Whether it is the literal NULL, which takes the type of the other operand."""
    return isinstance(expression, Constant) and expression.value is None


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type in which Spark SQL compares values of two types; None where it cannot.

    The wider of two numbers, where FLOAT counts as wider than LONG although it cannot hold all of
    its values, and DOUBLE is that of a FLOAT and a DECIMAL; TIMESTAMP of a DATE and a TIMESTAMP.
    """
    if left is right:
        return left
    if left.is_numeric and right.is_numeric and DataType.DECIMAL in (left, right):
        whole = (DataType.INT, DataType.LONG, DataType.DECIMAL)
        return DataType.DECIMAL if left in whole and right in whole else DataType.DOUBLE
    if left.is_numeric and right.is_numeric:
        return max(left, right, key=NUMBERS.index)
    if left in TIMES and right in TIMES:
        return DataType.TIMESTAMP
    return None


def convert(expression: Expression, data_type: DataType) -> Expression:
    """The expression in a type that holds its values: literals at once, others with a Cast."""
    if isinstance(expression, Constant):
        if expression.value is None:
            return Constant(None, data_type, expression.span)
        if expression.type is data_type:
            return expression
        value = fold.cast(expression.value, expression.type, data_type)
        return Constant(value, data_type, expression.span)
    if expression.type is data_type:
        return expression
    return Cast(expression, data_type, expression.span)


_READ_AS = {DataType.DATE: DataType.TIMESTAMP, DataType.INT: DataType.LONG}


def time_arithmetic(
    operator: Literal["+", "-", "*", "/", "%"], left: Expression, right: Expression, span: Span
) -> Arithmetic | None:
    """Arithmetic with a time or a duration on some side; None where it has no meaning.

    NULL has the first type that makes sense beside the other side.
    """
    if operator == "-" and left.type is right.type is DataType.DATE:
        # Exact where a midnight would be beyond 64 bits of microseconds.
        long = DataType.LONG
        days = Arithmetic("-", convert(left, long), convert(right, long), long, span)
        day = Constant(fold.MICROSECONDS_PER_DAY, DataType.INTERVAL, span)
        return Arithmetic("*", days, day, DataType.INTERVAL, span)
    first, second = (None if is_null(s) else _READ_AS.get(s.type, s.type) for s in (left, right))
    for (sign, one, other), data_type in TIME_OPERANDS.items():
        if sign == operator and first in (None, one) and second in (None, other):
            return Arithmetic(operator, convert(left, one), convert(right, other), data_type, span)
    return None

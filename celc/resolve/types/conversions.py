"""The types in which operands are compared or calculated, and the casts to them, as Spark inserts
them."""

from collections.abc import Sequence
from typing import Literal

from celc_runtime.plan.frozen import frozen

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
    if not (is_compared(left) and is_compared(right)) or core.DataType.BINARY in (left, right):
        return None
    if left is right:
        return left
    if left.is_numeric and right.is_numeric and core.COUNTS in (left, right):
        whole = (core.DataType.INT, core.DataType.LONG, core.COUNTS)
        return core.COUNTS if left in whole and right in whole else core.DataType.DOUBLE
    if left.is_numeric and right.is_numeric:
        return max(left, right, key=core.NUMBERS.index)
    if left in core.TIMES and right in core.TIMES:
        return core.DataType.TIMESTAMP
    return None


def is_compared(data_type: core.DataType) -> bool:
    """Whether two values of a type are keys: of PARTITION BY, or, BINARY aside, in conditions."""
    is_counted = data_type is core.COUNTS or not isinstance(data_type, core.DecimalType)
    return is_counted and data_type.is_compared


def is_number(data_type: core.DataType) -> bool:
    """Whether values of a type can be calculated with."""
    return data_type.is_numeric and is_compared(data_type)


@frozen
class Misfit:
    """The operand, by its number, whose type has none in common with `before`, that of the operands
    before it."""

    number: int
    before: core.DataType


def meeting_type(operands: Sequence[core.Expression]) -> core.DataType | Misfit | None:
    """The common type of operands, NULL aside; None where all are NULL."""
    found: core.DataType | None = None
    for number, operand in enumerate(operands):
        if is_null(operand):
            continue
        common = operand.type if found is None else common_type(found, operand.type)
        if common is None:
            assert found is not None
            return Misfit(number, found)
        found = common
    return found


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


Operator = Literal["+", "-", "*", "/", "%"]


def arithmetic(
    operator: Operator, left: core.Expression, right: core.Expression, span: Span
) -> core.Expression | None:
    """Arithmetic, where not both sides are NULL; None where it has no meaning."""
    if calculates_with_times(left, right):
        return _time_arithmetic(operator, left, right, span)
    data_type = meeting_type([left, right])
    if not isinstance(data_type, core.DataType) or not data_type.is_numeric:
        return None
    if operator == "/":
        data_type = core.DataType.DOUBLE
    return core.Arithmetic(
        operator, convert(left, data_type), convert(right, data_type), data_type, span
    )


def calculates_with_times(left: core.Expression, right: core.Expression) -> bool:
    """Whether an operand of arithmetic is a time or a duration."""
    return any(side.type in (*core.TIMES, core.DataType.INTERVAL) for side in (left, right))


def negation(operand: core.Expression, span: Span) -> core.Expression:
    """`-e` of a number or a duration; of a literal at once."""
    found = core.Negation(operand, operand.type, span)
    if isinstance(operand, core.Constant):
        value = None if operand.value is None else fold.evaluate(found)
        return core.Constant(value, operand.type, span)
    return found


def aggregated_type(function: str, data_type: core.DataType) -> core.DataType:
    """The type of SUM, AVG and other functions of values of a type that they take."""
    if function == "COUNT":
        return core.DataType.LONG
    if function in ("SUM", "AVG", "MEDIAN") and data_type is core.DataType.INTERVAL:
        return data_type
    if function in ("AVG", "VARIANCE", "STDDEV", "MEDIAN"):
        return core.DataType.DOUBLE
    if function == "SUM":
        whole = data_type in (core.DataType.INT, core.DataType.LONG)
        return core.DataType.LONG if whole else core.DataType.DOUBLE
    return data_type


_READ_AS = {core.DataType.DATE: core.DataType.TIMESTAMP, core.DataType.INT: core.DataType.LONG}


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

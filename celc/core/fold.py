"""Predicates that no event can change, decided as Spark SQL decides them.

Whole numbers wrap. Division and remainder by zero are NULL, and so is a time or duration beyond 64
bits of microseconds. A comparison with NULL is not TRUE.
"""

import math
import struct
from decimal import Context, Decimal
from typing import TypeGuard, assert_never

from celc_runtime.values import decimals

from celc.core import formula as core
from celc.core.like import like_to_regex
from celc.core.terms import distances_looked_back
from celc.core.traversal import Leaf, nodes_of, operands_of, predicates_of

Value = int | float | str | bool | None

_EXACT = Context(prec=core.MOST_DIGITS)

MICROSECONDS_PER_DAY = 86_400_000_000


def is_constant(expression: core.Expression) -> bool:
    """Whether an expression has the same value for every event."""
    return not any(
        isinstance(node, Leaf | core.Variable | core.TotalOf | core.InRowPatterns)
        for node in nodes_of(expression)
    )


def is_always_null(expression: core.Expression) -> bool:
    """Whether an expression is NULL for every event: an operand is, or it is divided by zero."""
    if is_constant(expression):
        return evaluate(expression) is None
    match expression:
        case core.Arithmetic():
            if is_always_null(expression.left) or is_always_null(expression.right):
                return True
            divides = expression.operator in ("/", "%") and is_constant(expression.right)
            return divides and evaluate(expression.right) == 0
        case core.Negation() | core.Absolute() | core.Cast():
            return is_always_null(expression.operand)
        case _:
            return False


def fold_predicate(predicate: core.Predicate) -> bool | None:
    """Whether a predicate is TRUE for all events, or for none; None where events decide. Besides
    constants this recognises expressions that are NULL for every event."""
    if isinstance(predicate, core.Quantified):
        return _fold_quantified(predicate)
    values = operands_of(predicate)
    if all(is_constant(value) for value in values):
        return _truth(predicate, tuple(evaluate(value) for value in values))
    null = any(map(is_always_null, values))
    if isinstance(predicate, core.NullTest):
        return not predicate.negated if null else None
    if null:
        return False
    if isinstance(predicate, core.Membership):
        if predicate.negated and predicate.has_null:
            return False
        if not predicate.values and not predicate.negated:
            return False
    return None


def _fold_quantified(predicate: core.Quantified) -> bool | None:
    """A condition that is not TRUE of any event is so of none; one that is TRUE of all, of every
    one. Where it looks back, some events decide."""
    if any(map(distances_looked_back, predicates_of(predicate.condition))):
        return None
    truth = holds(predicate.condition)
    return truth != predicate.negated if truth is predicate.every else None


def _truth(predicate: core.Predicate, values: tuple[Value, ...]) -> bool:
    if isinstance(predicate, core.NullTest):
        return (values[0] is None) != predicate.negated
    if any(value is None for value in values):
        return False
    match predicate:
        case core.Comparison():
            order = compare(values[0], values[1])
            return {
                "=": order == 0,
                "!=": order != 0,
                "<": order < 0,
                "<=": order <= 0,
                ">": order > 0,
                ">=": order >= 0,
            }[predicate.operator]
        case core.Membership():
            found = any(compare(values[0], value) == 0 for value in predicate.values)
            return (not found and not predicate.has_null) if predicate.negated else found
        case core.PatternMatch():
            return _matches(predicate, str(values[0])) != predicate.negated
        case core.Quantified():
            raise AssertionError("it names labels")
        case _:
            assert_never(predicate)


def _matches(predicate: core.PatternMatch, text: str) -> bool:
    # RE2 through Arrow, so that a constant and a column never disagree.
    import pyarrow as pa
    import pyarrow.compute as pc

    pattern = (
        like_to_regex(predicate.pattern) if predicate.operator == "LIKE" else predicate.pattern
    )
    return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1 as Spark orders two non-NULL values of one type.

    NaN equals itself and is larger than any number. −0.0 equals 0.0, FALSE is less than TRUE, and
    texts are ordered by their UTF-8 bytes.
    """
    assert left is not None
    assert right is not None
    if isinstance(left, str):
        assert isinstance(right, str)
        left_bytes, right_bytes = left.encode(), right.encode()
        return (left_bytes > right_bytes) - (left_bytes < right_bytes)
    assert not isinstance(right, str)
    left_nan, right_nan = left != left, right != right
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return (left > right) - (left < right)


def evaluate(expression: core.Expression) -> Value:
    match expression:
        case core.Constant():
            return expression.value
        case core.Negation():
            value = evaluate(expression.operand)
            return None if value is None else fit(-_number(value), expression.type)
        case core.Absolute():
            value = evaluate(expression.operand)
            return None if value is None else fit(abs(_number(value)), expression.type)
        case core.Cast():
            return cast(evaluate(expression.operand), expression.operand.type, expression.type)
        case core.Arithmetic():
            return _arithmetic(expression)
        case core.Call():
            return _called(expression)
        case core.Choice():
            return _chosen(expression)
        case core.Conditional():
            taken = (then for asked, then in expression.branches if holds(asked))
            return evaluate(next(taken, expression.otherwise))
        case core.TimeDifference():
            return _units_between(evaluate(expression.start), evaluate(expression.end), expression)
        case (
            core.AttributeValue()
            | core.Aggregate()
            | core.OwnCall()
            | core.Previous()
            | core.Variable()
            | core.TotalOf()
            | core.InRowPatterns()
        ):
            raise AssertionError("only constant expressions are evaluated while compiling")
        case _:
            assert_never(expression)


def _units_between(start: Value, end: Value, node: core.TimeDifference) -> Value:
    if start is None or end is None:
        return None
    micros = fit(_number(end) - _number(start), core.DataType.INTERVAL)
    return None if micros is None else _truncated_quotient(int(micros), node.unit)


def holds(truth: core.Truth) -> bool | None:
    """Whether a condition is TRUE; None where events decide."""
    match truth:
        case core.Every() | core.Some():
            decisive = isinstance(truth, core.Some)
            parts = [holds(part) for part in truth.parts]
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        case _:
            return fold_predicate(truth)


def _called(call: core.Call) -> Value:
    """The value of a function, by the code that columns go through."""
    # Imported here, because loading Arrow takes longer than compiling most queries.
    import pyarrow as pa
    from celc_runtime.plan.schemas import arrow_type
    from celc_runtime.values.code import called

    def scalar(one: core.Expression) -> pa.Scalar:
        value = evaluate(one)
        if isinstance(one.type, core.DecimalType) and isinstance(value, int):
            exact = Decimal(value).scaleb(-one.type.scale, _EXACT)
            return pa.scalar(exact, arrow_type(one.type.value))
        return pa.scalar(value, arrow_type(one.type.value))

    operands = [scalar(one) for one in call.operands]
    found = called(call.function, operands, 1, call.zone, call.type.value)[0]
    if pa.types.is_temporal(found.type):
        found = found.cast(pa.int32() if pa.types.is_date32(found.type) else pa.int64())
    value = found.as_py()
    if isinstance(value, Decimal):
        return int(value.scaleb(found.type.scale, _EXACT))
    known: Value = value
    return known


def _chosen(choice: core.Choice) -> Value:
    best: Value = None
    wanted = {"LEAST": -1, "GREATEST": 1}.get(choice.function)
    for value in map(evaluate, choice.operands):
        if best is None or (
            wanted is not None and value is not None and compare(value, best) == wanted
        ):
            best = value
    return best


def _number(value: Value) -> int | float:
    assert isinstance(value, int | float)
    return value


def _arithmetic(expression: core.Arithmetic) -> Value:
    left_value, right_value = evaluate(expression.left), evaluate(expression.right)
    if left_value is None or right_value is None:
        return None
    left, right = _number(left_value), _number(right_value)
    types = expression.left.type, expression.right.type, expression.type
    if _are_decimals(types):
        return decimals.calculated(expression.operator, int(left), int(right), types)
    match expression.operator:
        case "+":
            return fit(left + right, expression.type)
        case "-":
            return fit(left - right, expression.type)
        case "*":
            return fit(left * right, expression.type)
        case "/":
            return None if right == 0 else _divide(float(left), float(right))
        case "%":
            return None if right == 0 else fit(_remainder(left, right), expression.type)
        case _:
            assert_never(expression.operator)


def _are_decimals(
    types: tuple[core.DataType, core.DataType, core.DataType],
) -> TypeGuard[tuple[core.DecimalType, core.DecimalType, core.DecimalType]]:
    return all(isinstance(type, core.DecimalType) for type in types)


def _divide(left: float, right: float) -> float:
    try:
        return left / right
    except OverflowError:
        return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _remainder(left: int | float, right: int | float) -> int | float:
    if isinstance(left, int) and isinstance(right, int):
        return left - right * _truncated_quotient(left, right)
    if math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def _truncated_quotient(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BITS = {
    core.DataType.BYTE: 8,
    core.DataType.SHORT: 16,
    core.DataType.INT: 32,
    core.DataType.LONG: 64,
}


def fit(value: int | float, type: core.DataType) -> int | float | None:
    """A result as a value of its type: whole numbers wrap, FLOAT is rounded to 32 bits, times and
    durations beyond 64 bits are NULL."""
    match type:
        case core.DataType() if type.is_checked:
            return int(value) if -(2**63) <= value < 2**63 else None
        case core.DataType() if type in _BITS:
            half: int = 2 ** (_BITS[type] - 1)
            return (int(value) + half) % (2 * half) - half
        case core.DecimalType():
            return decimals.fitting(int(value), type.precision)
        case core.DataType.FLOAT:
            return round_to_float(value)
        case _:
            return float(value)


def round_to_float(value: int | float) -> float:
    """The nearest 32-bit number; infinity where the value is too large."""
    if isinstance(value, int):
        # A large number would be rounded twice, to 53 bits first. So the bits below the highest 50
        # become one bit: whether any of them is set is all that matters.
        below = max(0, abs(value).bit_length() - 50)
        rest = value & ((1 << below) - 1)
        value = float((value >> below | (rest != 0)) << below)
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def cast(value: Value, source: core.DataType, target: core.DataType) -> Value:
    """A constant after one of the implicit casts (wider numbers, DATE to TIMESTAMP in UTC); NULL
    where a DECIMAL does not hold it."""
    if value is None or source is target:
        return value
    if source is core.DataType.DATE and target is core.DataType.TIMESTAMP:
        return int(_number(value)) * MICROSECONDS_PER_DAY
    if isinstance(source, core.DecimalType) and not isinstance(target, core.DecimalType):
        return fit(int(_number(value)) / 10**source.scale, target)
    if isinstance(target, core.DecimalType):
        scale = source.scale if isinstance(source, core.DecimalType) else 0
        return fit(decimals.moved(int(_number(value)), target.scale - scale), target)
    return fit(_number(value), target)

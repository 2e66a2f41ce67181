"""The numbers of DECIMALs: the types of results, as Spark derives them, and exact operations.

A value is the whole number of its smallest unit. A result is rounded HALF_UP, once, and None where
it has more digits than its type.
"""

from typing import Literal

from celc_runtime.values.types import MOST_DIGITS, DataType, DecimalType, decimal_of

_FEWEST_DECIMALS = 6
"""Decimals that stay where a result would have more than 38 digits."""

_WHOLE = {
    DataType.BYTE: decimal_of(3, 0),
    DataType.SHORT: decimal_of(5, 0),
    DataType.INT: decimal_of(10, 0),
    DataType.LONG: decimal_of(20, 0),
}


# --- types ----------------------------------------------------------------------------------------


def as_decimal(type: DataType) -> DecimalType | None:
    """The DECIMAL that holds all values of a type; None where no DECIMAL does."""
    return type if isinstance(type, DecimalType) else _WHOLE.get(type)


def wider(one: DecimalType, other: DecimalType) -> DecimalType:
    """The type in which two DECIMALs are compared: beyond 38 digits decimals are given up."""
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    over = max(0, whole + scale - MOST_DIGITS)
    return decimal_of(whole + scale - over, scale - over)


def result_type(
    operator: Literal["+", "-", "*", "/", "%"], one: DecimalType, other: DecimalType
) -> DecimalType:
    """The type of arithmetic on two DECIMALs."""
    scale = max(one.scale, other.scale)
    whole, other_whole = one.precision - one.scale, other.precision - other.scale
    match operator:
        case "+" | "-":
            return _adjusted(max(whole, other_whole) + scale + 1, scale)
        case "*":
            return _adjusted(one.precision + other.precision + 1, one.scale + other.scale)
        case "/":
            scale = max(_FEWEST_DECIMALS, one.scale + other.precision + 1)
            return _adjusted(whole + other.scale + scale, scale)
        case "%":
            return _adjusted(min(whole, other_whole) + scale, scale)


def _adjusted(precision: int, scale: int) -> DecimalType:
    if precision > MOST_DIGITS:
        fewest = min(scale, _FEWEST_DECIMALS)
        precision, scale = MOST_DIGITS, max(MOST_DIGITS - (precision - scale), fewest)
    return decimal_of(precision, scale)


def sum_type(type: DecimalType) -> DecimalType:
    """The type of SUM of values of one label."""
    return decimal_of(min(type.precision + 10, MOST_DIGITS), type.scale)


def average_type(type: DecimalType) -> DecimalType:
    """The type of AVG of values of one label."""
    return decimal_of(min(type.precision + 4, MOST_DIGITS), min(type.scale + 4, MOST_DIGITS))


def rounded_type(type: DecimalType, digits: int) -> DecimalType:
    """The type of ROUND to `digits` digits behind the point."""
    # Rounded up, a number can have one digit more.
    whole, scale = type.precision - type.scale + 1, max(0, min(type.scale, digits))
    precision = max(whole, 1 - digits) if digits < 0 else whole + scale
    return decimal_of(min(precision, MOST_DIGITS), scale)


def whole_type(type: DecimalType) -> DecimalType:
    """The type of FLOOR and CEIL."""
    return rounded_type(type, 0) if type.scale else type


# --- values ---------------------------------------------------------------------------------------


def rounded(value: int, divisor: int) -> int:
    """A quotient, HALF_UP; the divisor is positive."""
    size = (2 * abs(value) + divisor) // (2 * divisor)
    return -size if value < 0 else size


def moved(value: int, power: int) -> int:
    """A number times 10 to a power, HALF_UP where that is negative."""
    return value * 10**power if power >= 0 else rounded(value, 10**-power)


def shortening(scale: int, digits: int) -> tuple[int, int]:
    """(the power of ten by which ROUND divides a number, the power by which it then multiplies it).

    scale: the decimals of the number. digits: those behind the point after ROUND.
    """
    up = min(max(-digits, 0), MOST_DIGITS + 1)
    return (scale + up if up else max(scale - digits, 0)), up


def whole_part(value: int, scale: int, *, up: bool) -> int:
    """FLOOR, or with `up` CEIL, of a number with `scale` decimals."""
    divisor: int = 10**scale
    return -(-value // divisor) if up else value // divisor


def fitting(value: int, digits: int) -> int | None:
    """The number if it has at most `digits` digits, else None."""
    return value if abs(value) < 10**digits else None


def quotient(left: int, right: int, up: int) -> int | None:
    """left · 10^up / right; None: by zero."""
    if right == 0:
        return None
    left *= 10**up
    return rounded(-left, -right) if right < 0 else rounded(left, right)


def remainder(left: int, right: int) -> int | None:
    """The rest of left by right, with the sign of left; None: by zero."""
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def calculated(
    operator: str,
    left: int,
    right: int,
    types: tuple[DecimalType, DecimalType, DecimalType],
) -> int | None:
    """left operator right; `types` are those of both sides and of the result."""
    one, other, type = types
    scale = max(one.scale, other.scale)
    found: int | None
    match operator:
        case "+" | "-" | "%":
            left, right = moved(left, scale - one.scale), moved(right, scale - other.scale)
            if operator == "%":
                found = remainder(left, right)
            else:
                found = moved(left + right if operator == "+" else left - right, type.scale - scale)
        case "*":
            found = moved(left * right, type.scale - one.scale - other.scale)
        case _:
            found = quotient(left, right, type.scale + other.scale - one.scale)
    return None if found is None else fitting(found, type.precision)

"""Functions of numbers."""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from celc_runtime.values import decimals
from celc_runtime.values.operands import Operand, column_of, each, values_of
from celc_runtime.values.types import DecimalType, decimal_of


def _real(code: Callable[..., np.ndarray]) -> Callable[..., pa.Array]:
    """A function of DOUBLEs."""

    def found(*operands: Operand, rows: int) -> pa.Array:
        columns = [values_of(one, rows) for one in operands]
        known = np.logical_and.reduce([one[1] for one in columns])
        return pa.array(code(*(one[0] for one in columns)), pa.float64(), mask=~known)

    return found


def _logarithm(code: Callable[[np.ndarray], np.ndarray]) -> Callable[..., pa.Array]:
    """A logarithm, which is NULL of what is not above 0. NaN is above all."""

    def found(operand: Operand, rows: int) -> pa.Array:
        values, known = values_of(operand, rows)
        known = known & ~(values <= 0)
        return pa.array(code(np.where(known, values, 1.0)), pa.float64(), mask=~known)

    return found


def _power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """As in Java: NaN for an exponent that is NaN, and for ±1 to the power of ±∞."""
    found = np.power(base, exponent)
    wrong = np.isnan(exponent) | ((np.abs(base) == 1) & np.isinf(exponent))
    nan: np.ndarray = np.where(wrong, np.nan, found)
    return nan


def _sign(values: np.ndarray) -> np.ndarray:
    # −0.0 stays what it is, as in Java.
    found: np.ndarray = np.where(values == 0, values, np.sign(values))
    return found


def _whole(code: Callable[[np.ndarray], np.ndarray], *, up: bool) -> Callable[..., pa.Array]:
    """A DOUBLE as a LONG. As in Java NaN is 0, and what is too large the last LONG. A DECIMAL
    stays one."""

    def found(operand: Operand, rows: int) -> pa.Array:
        if pa.types.is_decimal(operand.type):
            type = decimal_of(operand.type.precision, operand.type.scale)
            return _of_units(
                lambda units: decimals.whole_part(units, type.scale, up=up),
                operand,
                decimals.whole_type(type),
                rows,
            )
        values, known = values_of(operand, rows)
        values = np.nan_to_num(code(values), nan=0.0, posinf=np.inf, neginf=-np.inf)
        small, large = values <= -(2.0**63), values >= 2.0**63
        inside = np.where(small | large, 0.0, values).astype(np.int64)
        whole = np.where(small, -(2**63), np.where(large, 2**63 - 1, inside))
        return pa.array(whole, pa.int64(), mask=~known)

    return found


def _of_units(
    code: Callable[[int], int], operand: Operand, type: DecimalType, rows: int
) -> pa.Array:
    """A function from smallest units to those of another type; NULL where that has too few
    digits."""
    scale, unit = operand.type.scale, Decimal((0, (1,), -type.scale))

    def found(value: Decimal) -> Decimal | None:
        units = code(int(value.scaleb(scale, _WIDE)))
        within = decimals.fitting(units, type.precision)
        return None if within is None else _WIDE.multiply(Decimal(within), unit)

    column = column_of(operand, rows)
    return each(found, pa.decimal128(type.precision, type.scale), column, rows=rows)


_WIDE = Context(prec=800)  # digits: more than a DOUBLE and its shift can have
_MOST_PLACES = 22  # 10²² is the largest power of ten that a DOUBLE holds exactly


def _round(operand: Operand, places: Operand | None = None, *, rows: int) -> pa.Array:
    """The number as the shortest text of a DOUBLE says it, rounded with halves away from 0.

    Most numbers are far from a half: then whole numbers of 53 bits and one division by a power of
    ten, which is correctly rounded, give the nearest DOUBLE. The others are rounded as texts.
    """
    digits = 0 if places is None else places.as_py()
    if pa.types.is_decimal(operand.type):
        type = decimal_of(operand.type.precision, operand.type.scale)
        wanted = decimals.rounded_type(type, digits or 0)
        if digits is None:
            return pa.nulls(rows, pa.decimal128(wanted.precision, wanted.scale))
        down, up = decimals.shortening(type.scale, digits)
        return _of_units(lambda units: decimals.moved(units, -down) * 10**up, operand, wanted, rows)
    if digits is None:
        return pa.nulls(rows, operand.type)
    values, known = values_of(operand, rows)
    if values.dtype.kind != "f":
        return pa.array(rounded_wholes(values, digits), operand.type, mask=~known)
    wide = values.astype(np.float64)
    found = wide.copy()
    if 0 <= digits <= _MOST_PLACES and values.dtype == np.float64:
        scaled = np.abs(wide) * 10.0**digits
        floor = np.floor(scaled)
        rest = scaled - floor
        # The product and the text are each at most half a number away.
        sure = (scaled < 2.0**41) & (np.abs(rest - 0.5) > 1e-3)
        nearest = np.where(rest > 0.5, floor + 1, floor) / 10.0**digits
        found = np.where(sure, np.copysign(nearest, wide), found)
    else:
        sure = np.zeros(rows, np.bool_)
    for row in np.flatnonzero(~sure & np.isfinite(wide) & known):
        found[row] = rounded_real(wide[row], digits)
    # A negative number that is rounded to 0 is 0.0: the text of a number has no −0.
    found = np.where(found == 0, 0.0, found)
    return pa.array(found.astype(values.dtype), operand.type, mask=~known)


def rounded_real(value: np.floating, digits: int) -> float:
    """ROUND of a DOUBLE or FLOAT, of any size."""
    if not np.isfinite(value):
        return float(value)
    text = np.format_float_scientific(value, unique=True)
    exponent = Decimal(1).scaleb(-digits)
    number = Decimal(text)
    if number.as_tuple().exponent < -digits:  # type: ignore[operator]
        number = number.quantize(exponent, ROUND_HALF_UP, _WIDE)
    return float(number) or 0.0  # the text of a number has no −0


def rounded_wholes(values: np.ndarray, digits: int) -> np.ndarray:
    """Whole numbers; a result with more bits wraps, as in Spark."""
    if digits >= 0:
        return values
    if digits < -19:
        return np.zeros_like(values)
    unit = 10**-digits
    bits = values.dtype.itemsize * 8
    found = np.empty_like(values)
    for row, value in enumerate(values.tolist()):
        whole = (abs(value) + unit // 2) // unit * unit * (1 if value >= 0 else -1)
        found[row] = (whole + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    return found


def _is_nan(operand: Operand, rows: int) -> pa.Array:
    values, known = values_of(operand, rows)
    return pa.array(np.isnan(values) & known)


CODE: dict[str, Callable[..., pa.Array]] = {
    "SQRT": _real(np.sqrt),
    "POWER": _real(_power),
    "EXP": _real(np.exp),
    "LN": _logarithm(np.log),
    "LOG10": _logarithm(np.log10),
    "SIN": _real(np.sin),
    "COS": _real(np.cos),
    # Spark adds 0.0 to both, so −0.0 is 0.0.
    "ATAN2": _real(lambda y, x: np.arctan2(y + 0.0, x + 0.0)),
    "RADIANS": _real(np.radians),
    "SIGN": _real(_sign),
    "FLOOR": _whole(np.floor, up=False),
    "CEIL": _whole(np.ceil, up=True),
    "ROUND": _round,
    "ISNAN": _is_nan,
}

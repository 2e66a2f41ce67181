"""CAST and TRY_CAST from and to DECIMAL, as in Spark: each different value once, by Python.

A number that is rounded is so HALF_UP; one of more digits than its type has is NULL.
"""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial

import numpy as np
import pyarrow as pa

from celc_runtime.values.operands import each
from celc_runtime.values.types import MOST_DIGITS, DecimalType, type_of
from celc_runtime.values.written_numbers import BLANK_OF_JAVA, single

_WIDE = Context(prec=1200, rounding=ROUND_HALF_UP)  # digits: more than a DOUBLE has
_BITS = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}
_SECOND = 1_000_000  # microseconds
_WRITTEN = re.compile(r"[+-]?(?:\d+[.]?\d*|[.]\d+)(?:[eE]([+-]?\d+))?")
_LARGEST_EXPONENT = 2**31 - 1


def to_decimal(column: pa.Array, type: str) -> pa.Array:
    """Numbers, BOOLEANs, texts or times (as seconds since 1970) as DECIMALs."""
    wanted = type_of(type)
    assert isinstance(wanted, DecimalType)
    if pa.types.is_timestamp(column.type):
        # By way of a DOUBLE, as in Spark.
        micros = column.cast(pa.int64())
        seconds = np.asarray(micros.fill_null(0)) / float(_SECOND)
        column = pa.array(seconds, mask=np.asarray(micros.is_null()))

    def code(value: object) -> Decimal | None:
        exact = _exact(value)
        return None if exact is None else rounded(exact, wanted)

    return each(code, pa.decimal128(wanted.precision, wanted.scale), column, rows=len(column))


def _exact(value: object) -> Decimal | None:
    """A value as a number; None where it is none."""
    if isinstance(value, str):
        return _read(value)
    if isinstance(value, float):
        # The number that its shortest text says.
        return Decimal(repr(value)) if math.isfinite(value) else None
    assert isinstance(value, int | Decimal)
    return Decimal(value)


def _read(text: str) -> Decimal | None:
    """A text as Java's BigDecimal reads it; digits are those of any script of 16 bits."""
    plain = text.strip(BLANK_OF_JAVA)
    found = _WRITTEN.fullmatch(plain)
    if found is None or max(plain) > "\uffff" or abs(int(found[1] or 0)) > _LARGEST_EXPONENT:
        return None
    return Decimal(plain)


def rounded(value: Decimal, type: DecimalType) -> Decimal | None:
    """A number in a type."""
    if value.adjusted() >= MOST_DIGITS:
        return None
    found = value.quantize(Decimal((0, (1,), -type.scale)), context=_WIDE)
    return found if found.adjusted() < type.precision - type.scale or not found else None


def of_decimal(column: pa.Array, type: str, *, exact: bool) -> pa.Array:
    """DECIMALs in another type. Of a whole number that is too large, the low bits stay, or `exact`
    it is NULL."""
    rows = len(column)
    if type.startswith("DECIMAL"):
        return to_decimal(column, type)
    if type == "BOOLEAN":
        return each(bool, pa.bool_(), column, rows=rows)
    if type == "DOUBLE":
        return each(float, pa.float64(), column, rows=rows)
    if type == "FLOAT":
        return each(lambda value: single(str(value)), pa.float32(), column, rows=rows)
    if type == "TIMESTAMP":
        return each(_micros, pa.int64(), column, rows=rows).cast(pa.timestamp("us", "UTC"))
    bits = _BITS[type]
    code = partial(_within if exact else _low_bits, bits)
    return each(code, getattr(pa, f"int{bits}")(), column, rows=rows)


def _micros(seconds: Decimal) -> int:
    # No CAST of Spark tests whether there is such a time. The product is exact in plans that Spark
    # compiles; those that it interprets keep 34 digits of it.
    return _low_bits(64, _WIDE.multiply(seconds, Decimal(_SECOND)))


def _within(bits: int, value: Decimal) -> int | None:
    most = 2 ** (bits - 1) - 1
    # Of less than 64 bits, Spark asks the nearest DOUBLE.
    whole = int(value) if bits == 64 else int(float(value))
    return whole if -most - 1 <= whole <= most else None


def _low_bits(bits: int, value: Decimal) -> int:
    """The low bits of a number without its decimals, as a number with a sign."""
    half = 1 << (bits - 1)
    return (int(value) + half) % (2 * half) - half

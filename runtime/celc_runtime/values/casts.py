"""CAST and TRY_CAST: values in another type, NULL where a value has no counterpart.

They are Spark's, CAST with ANSI mode off. Of a number that is too large for its new type, CAST
keeps the low bits or takes the nearest limit, as Java does, and TRY_CAST is NULL.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from celc_runtime.values import decimal_casts, written_numbers, written_times
from celc_runtime.values.operands import Operand, column_of, each, values_of
from celc_runtime.values.times import instants, local

_WHOLE = {"BYTE": pa.int8(), "SHORT": pa.int16(), "INT": pa.int32(), "LONG": pa.int64()}
_REAL = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}
_SECOND = 1_000_000  # microseconds
_DAY = 86_400 * _SECOND
_INSTANT = pa.timestamp("us", "UTC")


def cast(operand: Operand, rows: int, zone: str, type: str) -> pa.Array:
    """A column in another type, given by its text; times are those that clocks of a zone show."""
    return _cast(column_of(operand, rows), zone, type, exact=False)


def try_cast(operand: Operand, rows: int, zone: str, type: str) -> pa.Array:
    """A column in another type, as `cast`; but NULL for a number that the type does not hold, and
    for a text that is no whole number."""
    return _cast(column_of(operand, rows), zone, type, exact=True)


def _cast(column: pa.Array, zone: str, type: str, *, exact: bool) -> pa.Array:
    if pa.types.is_string(column.type):
        return _read(column, zone, type, exact=exact)
    if type == "STRING":
        return _written(column, zone, exact=exact)
    if pa.types.is_decimal(column.type):
        return decimal_casts.of_decimal(column, type, exact=exact)
    if type.startswith("DECIMAL"):
        return decimal_casts.to_decimal(column, type)
    if type in _WHOLE:
        return _whole(column, _WHOLE[type], exact=exact)
    if type in _REAL:
        return _real(column, _REAL[type])
    if type == "BOOLEAN":
        values, known = values_of(column, len(column))
        return pa.array(values != 0, mask=~known)
    return _time(column, zone, type, exact=exact)


# --- numbers --------------------------------------------------------------------------------------


def _whole(column: pa.Array, type: pa.DataType, *, exact: bool) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        micros, known = values_of(column.cast(pa.int64()), len(column))
        values = np.floor_divide(micros, _SECOND)
    else:
        values, known = values_of(column, len(column))
    most = 2 ** (type.bit_width - 1) - 1
    if values.dtype.kind != "f":
        if exact:
            wide = values.astype(np.int64)
            known = known & (wide <= most) & (wide >= -most - 1)
        return pa.array(values.astype(type.to_pandas_dtype()), type, mask=~known)
    wide = values.astype(np.float64)
    if exact:
        known = known & (np.floor(wide) <= most) & (np.ceil(wide) >= -most - 1)
    # Java knows no narrower number than an INT here.
    limited = _limited(wide, max(type.bit_width, 32))
    return pa.array(limited.astype(type.to_pandas_dtype()), type, mask=~known)


def _limited(values: np.ndarray, bits: int) -> np.ndarray:
    """DOUBLEs as whole numbers. NaN is 0, and what is too large the last of them."""
    limit = 2.0 ** (bits - 1)
    small, large = values <= -limit, values >= limit
    inside = np.where(small | large | np.isnan(values), 0.0, values).astype(np.int64)
    most = 2 ** (bits - 1) - 1
    found: np.ndarray = np.where(small, -most - 1, np.where(large, most, inside))
    return found


def _real(column: pa.Array, type: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        micros, known = values_of(column.cast(pa.int64()), len(column))
        values = micros / float(_SECOND)
    else:
        values, known = values_of(column, len(column))
    return pa.array(values.astype(type.to_pandas_dtype()), type, mask=~known)


# --- times ----------------------------------------------------------------------------------------


def _time(column: pa.Array, zone: str, type: str, *, exact: bool) -> pa.Array:
    """A number (seconds since 1970) or a time as a time."""
    if not pa.types.is_temporal(column.type):
        return _since_1970(column, exact=exact)
    if pa.types.is_date(column.type):
        days, known = values_of(column.cast(pa.int32()), len(column))
        known = known & (np.abs(days.astype(np.int64)) <= 2**63 // _DAY)
        midnights = pa.array(np.where(known, days, 0).astype(np.int64) * _DAY, mask=~known)
        clocks = midnights.cast(pa.timestamp("us"))
    else:
        clocks = column if column.type.tz is None else local(column, zone)
    if type == "DATE":
        micros, known = values_of(clocks.cast(pa.int64()), len(column))
        days = np.floor_divide(micros, _DAY).astype(np.int32)
        return pa.array(days, pa.int32(), mask=~known).cast(pa.date32())
    return instants(clocks, zone) if type == "TIMESTAMP" else clocks


def _since_1970(column: pa.Array, *, exact: bool) -> pa.Array:
    values, known = values_of(column, len(column))
    if values.dtype.kind == "f":
        micros = values.astype(np.float64) * _SECOND
        known = known & np.isfinite(values)
        if exact:
            known = known & (np.abs(micros) <= 2.0**63)
        found = _limited(micros, 64)
    else:
        seconds = values.astype(np.int64)
        most = 2**63 - 1
        small, large = seconds < -most // _SECOND + 1, seconds > most // _SECOND
        inside = np.where(small | large, 0, seconds) * _SECOND
        found = np.where(small, -most - 1, np.where(large, most, inside))
    return pa.array(found, pa.int64(), mask=~known).cast(_INSTANT)


# --- texts ----------------------------------------------------------------------------------------


def _written(column: pa.Array, zone: str, *, exact: bool) -> pa.Array:
    """Values as texts; `exact`: a DECIMAL without an exponent."""
    if pa.types.is_floating(column.type):
        return written_numbers.texts_of(column)
    if pa.types.is_decimal(column.type):
        return each("{:f}".format if exact else str, pa.string(), column, rows=len(column))
    if pa.types.is_date(column.type):
        return written_times.texts_of_dates(column)
    if pa.types.is_timestamp(column.type):
        return written_times.texts_of(column if column.type.tz is None else local(column, zone))
    return column.cast(pa.string())


def _read(column: pa.Array, zone: str, type: str, *, exact: bool) -> pa.Array:
    """Texts as values."""
    if type.startswith("DECIMAL"):
        return decimal_casts.to_decimal(column, type)
    if type in _WHOLE:
        read = written_numbers.whole(_WHOLE[type].bit_width, with_point=not exact)
        return each(read, _WHOLE[type], column, rows=len(column))
    if type in _REAL:
        return each(written_numbers.READ[type], _REAL[type], column, rows=len(column))
    if type == "TIMESTAMP":
        return written_times.instants_of(column, zone)
    code, arrow = _READ[type]
    return each(code, arrow, column, rows=len(column))


_READ: dict[str, tuple[Callable[[str], object], pa.DataType]] = {
    "STRING": (str, pa.string()),
    "BOOLEAN": (written_numbers.truth, pa.bool_()),
    "DATE": (written_times.date_of, pa.date32()),
    "TIMESTAMP_NTZ": (written_times.clock_of, pa.timestamp("us")),
}

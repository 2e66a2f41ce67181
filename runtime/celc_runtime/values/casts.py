"""CAST: values in another type, NULL where a value has no counterpart."""

from collections.abc import Callable

import pyarrow as pa

from celc_runtime.values.operands import Operand, column_of


def cast(operand: Operand, type: str, rows: int, zone: str) -> pa.Array:
    """A column in another type, given by its text; times are those that clocks of a zone show."""
    column = column_of(operand, rows)
    return _CASTS[type](column, zone)


_CASTS: dict[str, Callable[[pa.Array, str], pa.Array]] = {}

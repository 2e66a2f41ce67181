"""Parts of times, in UTC or in a zone."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.values.operands import Operand, column_of


def _part(code: Callable[[pa.Array], pa.Array]) -> Callable[..., pa.Array]:
    """A part of the time that clocks of a zone show."""

    def found(operand: Operand, rows: int, zone: str = "UTC") -> pa.Array:
        column = column_of(operand, rows)
        return code(column.cast(pa.timestamp("us", tz=zone))).cast(pa.int32())

    return found


def _day_of_week(column: pa.Array) -> pa.Array:
    """From 1, Sunday."""
    return pc.day_of_week(column, count_from_zero=False, week_start=7)


CODE: dict[str, Callable[..., pa.Array]] = {
    "YEAR": _part(pc.year),
    "MONTH": _part(pc.month),
    "DAY": _part(pc.day),
    "HOUR": _part(pc.hour),
    "MINUTE": _part(pc.minute),
    "SECOND": _part(pc.second),
    "DAYOFWEEK": _part(_day_of_week),
}

"""Values of columns on their way to the driver and back: exact, and independent of time zones.

Python's `datetime` cannot serve: the driver's zone would shift it, and it ends with the year 9999.
So times travel as whole numbers, and come back as expressions. Spark folds these into literals,
which it can compare with the statistics of files.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.plan import Window
from celc_runtime.run.ranges import Number, OrderLine, is_line
from celc_runtime.spark.input.columns import SPARK_TYPES, column_named
from celc_runtime.spark.input.probe import asked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EPOCH = datetime(1970, 1, 1)
_GAP = range(-141_440, -141_424)
"""The days of October 1582 that the Gregorian calendar left out, and some days around them.
Literals for Parquet's filters go through the older calendar, which has other days there."""


class ValueColumn:
    """A column whose values are fetched, and used in comparisons with it.

    declared: the type that the query declares. found: the column's type as Spark spells it. fits:
    whether the one serves for the other.
    """

    def __init__(self, name: str, declared: str, found: str) -> None:
        self.name = name
        self.declared = declared
        self.found = found
        self.fits = found in SPARK_TYPES.get(declared, ())

    @property
    def column(self) -> Column:
        """The column itself."""
        return column_named(self.name)

    def portable(self, values: Column) -> Column:
        """Values of this column in a portable form, which arrives on the driver unchanged."""
        from pyspark.sql import functions

        match self.found:
            case "timestamp":
                return functions.unix_micros(values)
            case "date":
                return functions.unix_date(values)
            case "timestamp_ntz":
                return values.cast("string")
            case _:
                return values

    def literal(self, value: Any) -> Column:
        """A portable value as a constant to compare the column with."""
        from pyspark.sql import functions

        match self.found:
            case "timestamp":
                return functions.timestamp_micros(functions.lit(value))
            case "date":
                return functions.date_from_unix_date(functions.lit(value))
            case "timestamp_ntz":
                return functions.lit(value).cast("timestamp_ntz")
            case _:
                return functions.lit(value)

    def is_value(self, value: Any) -> Column:
        """Whether the column has a portable value; NULL equals NULL, and NaN equals NaN."""
        return (
            self.column.isNull() if value is None else self.column.eqNullSafe(self.literal(value))
        )


class OrderColumn(ValueColumn, OrderLine):
    """The first order column of a query, by whose values a stream can be cut into ranges."""

    @property
    def why_not_cut(self) -> str:
        """Why there can be no time ranges; empty where there can be."""
        if not is_line(self.declared):
            return f"the first order column {self.name!r} is a {self.declared}"
        if not self.fits:
            return f"the column {self.name!r} is of type {self.found}"
        return ""

    def numbers(self, portable: list[Any] | None) -> list[Number]:
        """Portable values as numbers, without NULL, NaN, infinities, and values that no literal
        holds."""
        found = [self._number(value) for value in portable or () if value is not None]
        return [number for number in found if number is not None and self.can_cut(number)]

    def can_cut(self, number: Number) -> bool:
        """Whether a literal can hold a number, so that rows are compared with it."""
        if not math.isfinite(number) or self._is_in_gap(number):
            return False
        return self.found != "timestamp_ntz" or _FIRST_YEAR <= number <= _LAST_YEAR

    def latest(self, rows: DataFrame) -> Number | None:
        """The greatest value in some rows; None: there is none."""
        from pyspark.sql import functions

        latest = rows.agg(self.portable(functions.max(self.column)))
        (found,) = asked(latest, f"the greatest {self.name!r}")[0]
        return None if found is None else self._number(found)

    def _is_in_gap(self, number: Number) -> bool:
        if self.declared not in ("DATE", "TIMESTAMP"):
            return False
        return (number if self.declared == "DATE" else number // MICROSECONDS_PER_DAY) in _GAP

    def _number(self, value: Any) -> Number | None:
        if self.found != "timestamp_ntz":
            return value  # type: ignore[no-any-return]
        try:
            return (datetime.fromisoformat(value) - _EPOCH) // timedelta(microseconds=1)
        except ValueError:
            return None  # before the year 1 or after 9999

    def border(self, number: Number) -> Column:
        """A number as a constant to compare the column with."""
        if self.found == "timestamp_ntz":
            return self.literal((_EPOCH + timedelta(microseconds=int(number))).isoformat(" "))
        return self.literal(number)

    def deadline_end(self, number: Number, deadline: Window) -> Number | None:
        """As `OrderLine.deadline_end`; None also where no literal holds the value."""
        end = super().deadline_end(number, deadline)
        if end is None:
            return None
        if self._is_in_gap(end):
            end = (_GAP[-1] + 1) * (1 if self.declared == "DATE" else MICROSECONDS_PER_DAY)
        if self.found == "timestamp_ntz" and end > _LAST_YEAR:
            return None
        return end

    def window_start(self, number: Number, window: Window) -> Number | None:
        """As `OrderLine.window_start`; None also where no literal holds the value."""
        low = super().window_start(number, window)
        if low is None:
            return None
        if self._is_in_gap(low):
            low = (_GAP[0] - 1) * (1 if self.declared == "DATE" else MICROSECONDS_PER_DAY)
        if self.found == "timestamp_ntz" and int(low) < _FIRST_YEAR:
            return None
        return low


_FIRST_YEAR = (datetime.min - _EPOCH) // timedelta(microseconds=1)
_LAST_YEAR = (datetime.max - _EPOCH) // timedelta(microseconds=1)

"""Parts of times, in UTC or in a zone."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.values.functions import STEPS, UNITS
from celc_runtime.values.operands import Operand, column_of, values_of

_INSTANT, _CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")
_QUARTER = 900 * 1_000_000  # microseconds
_LATE = 2_114_380_800 * 1_000_000  # 2037-01-01
_CYCLE = 146_097 * 96  # quarters of an hour in 400 years, after which the calendar is the same


def local(column: pa.Array, zone: str) -> pa.Array:
    """What the clocks of a zone show at times."""
    if zone == "UTC":
        return column.cast(pa.int64()).cast(_CLOCK)
    shown = pc.local_timestamp(column.cast(pa.timestamp("us", tz=zone)))
    micros, known = values_of(column.cast(pa.int64()), len(column))
    if not np.any(micros >= _LATE):
        return shown
    found = values_of(shown.cast(pa.int64()), len(column))[0].copy()
    _mend(found, micros, micros + _late_offsets(micros, zone, shown=False))
    return pa.array(found, pa.int64(), mask=~known).cast(_CLOCK)


def instants(clocks: pa.Array, zone: str) -> pa.Array:
    """The times at which the clocks of a zone, or of an offset `±hh:mm:ss`, show something.

    Of two such times it is the first. What clocks pass over is as far after the change as it was
    before.
    """
    shown, known = values_of(clocks.cast(pa.int64()), len(clocks))
    offsets = _offsets(clocks, shown, zone)
    found = shown - offsets
    # A time beyond 64 bits is NULL.
    known = known & ((found <= shown) == (offsets >= 0))
    return pa.array(found, pa.int64(), mask=~known).cast(_INSTANT)


def _offsets(clocks: pa.Array, shown: np.ndarray, zone: str) -> np.ndarray:
    """How far clocks are ahead of UTC, in microseconds."""
    if zone == "UTC":
        return np.zeros(len(shown), np.int64)
    if zone[0] in "+-":
        hours, minutes, seconds = map(int, zone[1:].split(":"))
        offset = (hours * 3600 + minutes * 60 + seconds) * 1_000_000
        return np.full(len(shown), -offset if zone[0] == "-" else offset)
    near = pc.assume_timezone(clocks, zone, ambiguous="earliest", nonexistent="earliest")
    seen, _ = values_of(pc.local_timestamp(near).cast(pa.int64()), len(clocks))
    found: np.ndarray = seen - values_of(near.cast(pa.int64()), len(clocks))[0]
    if np.any(shown >= _LATE):
        _mend(found, shown, _late_offsets(shown, zone, shown=True))
    return found


def _mend(found: np.ndarray, times: np.ndarray, late: np.ndarray) -> None:
    """Replace what is found of late times."""
    np.copyto(found, late, where=times >= _LATE)


def _late_offsets(times: np.ndarray, zone: str, *, shown: bool) -> np.ndarray:
    """How far the clocks of a zone are ahead of UTC from 2037 on, by times or what clocks show.

    Arrow knows no changes of clocks there. They are at whole quarters of an hour.
    """
    late = np.maximum(times, _LATE)
    first = _LATE // _QUARTER
    quarters = first + (late // _QUARTER - first) % _CYCLE
    distinct, places = np.unique(quarters, return_inverse=True)
    there = ZoneInfo(zone)
    found = np.empty(len(distinct), np.int64)
    for place, quarter in enumerate(distinct.tolist()):
        clock = _EPOCH + timedelta(seconds=900 * quarter)
        time = clock.replace(tzinfo=there) if shown else clock.astimezone(there)
        offset = time.utcoffset()
        assert offset is not None
        found[place] = offset // _MICROSECOND
    offsets: np.ndarray = found[places]
    return offsets


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _part(code: Callable[[pa.Array], pa.Array]) -> Callable[..., pa.Array]:
    """A part of the time that clocks of a zone show."""

    def found(operand: Operand, rows: int, zone: str = "UTC") -> pa.Array:
        column = column_of(operand, rows)
        return code(local(column, zone)).cast(pa.int32())

    return found


def _day_of_week(column: pa.Array) -> pa.Array:
    """From 1, Sunday."""
    return pc.day_of_week(column, count_from_zero=False, week_start=7)


def _year(column: pa.Array) -> pa.Array:
    """NumPy's, because Arrow's years have 16 bits."""
    micros, known = values_of(column.cast(pa.int64()), len(column))
    days = np.floor_divide(micros, _DAY)  # the first of all times would be no time to NumPy
    years = days.view("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
    return pa.array(years, pa.int64(), mask=~known)


_DAY = STEPS["DAY"]


def _truncated(unit: Operand, operand: Operand, rows: int, zone: str = "UTC") -> pa.Array:
    column = column_of(operand, rows)
    name = UNITS[unit.as_py().upper()]
    shown, known = values_of(local(column, zone).cast(pa.int64()), rows)
    if name in STEPS:
        passed = np.mod(shown, STEPS[name])
        micros, _ = values_of(column.cast(pa.int64()), rows)
        # A time beyond 64 bits is NULL.
        known = known & (micros - passed <= micros)
        earlier = pa.array(micros - passed, pa.int64(), mask=~known).cast(_INSTANT)
        first = pa.array(shown - passed, pa.int64(), mask=~known).cast(_CLOCK)
        # Between both times clocks may have been changed.
        return pc.if_else(pc.equal(local(earlier, zone), first), earlier, instants(first, zone))
    days = _first_days(np.floor_divide(shown, _DAY), name)
    known = known & (np.abs(days) < 2**63 // _DAY)
    midnights = pa.array(np.where(known, days, 0) * _DAY, pa.int64(), mask=~known)
    return instants(midnights.cast(_CLOCK), zone)


def _first_days(days: np.ndarray, unit: str) -> np.ndarray:
    """The first day of the unit around each day, as the days since 1970."""
    if unit == "WEEK":
        monday: np.ndarray = days - np.mod(days + 3, 7)
        return monday
    months = days.view("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    size = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[unit]
    first = (months - np.mod(months, size)).view("datetime64[M]").astype("datetime64[D]")
    found: np.ndarray = first.astype(np.int64)
    return found


CODE: dict[str, Callable[..., pa.Array]] = {
    "YEAR": _part(_year),
    "MONTH": _part(pc.month),
    "DAY": _part(pc.day),
    "HOUR": _part(pc.hour),
    "MINUTE": _part(pc.minute),
    "SECOND": _part(pc.second),
    "DAYOFWEEK": _part(_day_of_week),
    "DATE_TRUNC": _truncated,
}

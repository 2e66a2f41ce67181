"""Parts of times between events, in UTC. The days of months are counted from March on, so that a
leap day ends a year (Hinnant, "chrono-Compatible Low-Level Date Algorithms")."""

import numpy as np

from celc_runtime.engine.values.casts import day_of
from celc_runtime.engine.values.spark_arithmetic import LAST_DAY, MICROSECONDS_PER_DAY
from celc_runtime.jit.kernels import njit

_CYCLE = 146_097  # days in 400 years
_FROM_MARCH = 719_468  # days from 0000-03-01 to 1970-01-01


@njit(nogil=True, cache=True)
def _date(day):  # type: ignore[no-untyped-def]
    """(year, month, day of the month) of a day since 1970."""
    day = np.int64(day) + _FROM_MARCH
    cycle = day // _CYCLE
    day -= cycle * _CYCLE
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    year += 400 * cycle
    if month < 10:
        return year, month + 3, day + 1
    return year + 1, month - 9, day + 1


@njit(nogil=True, cache=True)
def _first_day(year, month):  # type: ignore[no-untyped-def]
    """The first day of a month, since 1970."""
    if month > 2:
        month -= 3
    else:
        year, month = year - 1, month + 9
    cycle = year // 400
    year -= cycle * 400
    day = (153 * month + 2) // 5 + 365 * year + year // 4 - year // 100
    return cycle * _CYCLE + day - _FROM_MARCH


@njit(nogil=True, cache=True)
def year_of(time):  # type: ignore[no-untyped-def]
    return _date(day_of(time))[0]


@njit(nogil=True, cache=True)
def month_of(time):  # type: ignore[no-untyped-def]
    return _date(day_of(time))[1]


@njit(nogil=True, cache=True)
def day_of_month(time):  # type: ignore[no-untyped-def]
    return _date(day_of(time))[2]


@njit(nogil=True, cache=True)
def hour_of(time):  # type: ignore[no-untyped-def]
    return np.int64(time) // 3_600_000_000 % 24


@njit(nogil=True, cache=True)
def minute_of(time):  # type: ignore[no-untyped-def]
    return np.int64(time) // 60_000_000 % 60


@njit(nogil=True, cache=True)
def second_of(time):  # type: ignore[no-untyped-def]
    return np.int64(time) // 1_000_000 % 60


@njit(nogil=True, cache=True)
def day_of_week(time):  # type: ignore[no-untyped-def]
    """From 1, Sunday; 1970-01-01 was a Thursday."""
    return (day_of(time) + 4) % 7 + 1


@njit(nogil=True, cache=True)
def _begin(time, months):  # type: ignore[no-untyped-def]
    """The first day of the period around a time: `months` months long, or a week if that is 0."""
    day = day_of(time)
    if months == 0:
        return day - (day + 3) % 7  # Monday
    year, month, _ = _date(day)
    first = 12 * year + month - 1
    first -= first % months
    return _first_day(first // 12, first % 12 + 1)


@njit(nogil=True, cache=True)
def can_truncate(time, months, microseconds):  # type: ignore[no-untyped-def]
    """Whether 64 bits hold what `truncate` gives."""
    time = np.int64(time)
    if microseconds > 0:
        return time >= -(2**63) + time % microseconds
    return abs(_begin(time, months)) < LAST_DAY


@njit(nogil=True, cache=True)
def truncate(time, months, microseconds):  # type: ignore[no-untyped-def]
    """The beginning of the unit of time around a time, both in microseconds.

    The unit is `microseconds` long; if that is 0, `months` long; if both are 0, it is a week.
    """
    time = np.int64(time)
    if microseconds > 0:
        return time - time % microseconds
    return _begin(time, months) * MICROSECONDS_PER_DAY

"""Times as texts, as Spark writes and reads them."""

import re
from datetime import date
from functools import cache
from typing import NamedTuple
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.values.operands import each, values_of
from celc_runtime.values.times import instants
from celc_runtime.values.written_numbers import BLANK

_SECOND = 1_000_000  # microseconds
_DAY = 86_400 * _SECOND
_YEARS = 146_097  # days of 400 years
_FIRST, _LAST = -719_162, 2_932_896  # days from 1970 to the years 1 and 9999


# --- the calendar ---------------------------------------------------------------------------------


def _days(year: int, month: int, day: int) -> int | None:
    """The days since 1970; None: there is no such day."""
    cycles, within = divmod(year - 1, 400)
    try:
        first = date(within + 1, month, day).toordinal()
    except ValueError:
        return None
    return first + cycles * _YEARS + _FIRST - 1


def _date_text(days: int) -> str:
    cycles, within = divmod(days - _FIRST, _YEARS)
    inside = date.fromordinal(within + 1)
    year = inside.year + 400 * cycles
    sign = "-" if year < 0 else ("+" if year > 9999 else "")
    return f"{sign}{abs(year):04}-{inside.month:02}-{inside.day:02}"


# --- written --------------------------------------------------------------------------------------


def texts_of_dates(column: pa.Array) -> pa.Array:
    """DATEs as texts."""
    days, _ = values_of(column.cast(pa.int32()), len(column))
    if np.all((days >= _FIRST) & (days <= _LAST)):
        return column.cast(pa.string())
    return each(_date_text, pa.string(), column.cast(pa.int32()), rows=len(column))


def texts_of(column: pa.Array) -> pa.Array:
    """Times without a zone as texts."""
    micros, _ = values_of(column.cast(pa.int64()), len(column))
    days = np.floor_divide(micros, _DAY)
    if not np.all((days >= _FIRST) & (days <= _LAST)):
        return each(_time_text, pa.string(), column.cast(pa.int64()), rows=len(column))
    texts = column.cast(pa.string())
    shorter = pc.replace_substring_regex(texts, r"0+$", "")
    return pc.replace_substring_regex(
        pc.if_else(pc.match_substring(texts, "."), shorter, texts), r"[.]$", ""
    )


def _time_text(micros: int) -> str:
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, _SECOND)
    text = f"{_date_text(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if fraction == 0 else f"{text}.{fraction:06}".rstrip("0")


# --- read -----------------------------------------------------------------------------------------

_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def date_of(text: str) -> int | None:
    """A DATE in days since 1970. What follows a blank or a T is left out."""
    found = _DATE.fullmatch(text.strip(BLANK))
    if found is None:
        return None
    sign, year, month, day = found.groups()
    return _days(int(f"{sign}{year}"), int(month or 1), int(day or 1))


class _Written(NamedTuple):
    """A time that a text says."""

    clock: int  # microseconds since 1970, as the clocks of its zone show
    zone: str | None


_TIME = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:[.]([0-9]*))?([^0-9.].*)?)?)?)?"
    r")?)?",
    re.DOTALL,
)


def _written(text: str) -> _Written | None:
    found = _TIME.fullmatch(text.strip(BLANK))
    if found is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = _days(int(f"{sign}{year}"), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if days is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    known = None if zone is None else _zone(zone.strip(BLANK))
    if zone is not None and known is None:
        return None
    micros = int(f"{fraction or ''}000000"[:6])
    clock = days * _DAY + (hours * 3600 + minutes * 60 + seconds) * _SECOND + micros
    return _Written(clock, known) if -(2**63) <= clock < 2**63 else None


def clock_of(text: str) -> int | None:
    """A TIMESTAMP_NTZ. A zone in the text is left out."""
    found = _written(text)
    return None if found is None else found.clock


def instants_of(column: pa.Array, zone: str) -> pa.Array:
    """Texts as TIMESTAMPs; those that name no zone are in the given one."""
    coded = column.dictionary_encode()
    read = [None if one is None else _written(one) for one in coded.dictionary.to_pylist()]
    zones = [None if one is None else (one.zone or zone) for one in read]
    found = np.zeros(len(read), np.int64)
    known = np.zeros(len(read), np.bool_)
    for name in {one for one in zones if one is not None}:
        places = [place for place, one in enumerate(zones) if one == name]
        clocks = pa.array([read[place].clock for place in places], pa.timestamp("us"))  # type: ignore[union-attr]
        found[places], known[places] = values_of(
            instants(clocks, name).cast(pa.int64()), len(places)
        )
    values = pa.array(found, pa.int64(), mask=~known).cast(pa.timestamp("us", "UTC"))
    return values.take(coded.indices)


_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{2}))?|([0-9]{2})([0-9]{2})?)?"
)
_SHORT_NAMES = """
    ACT=Australia/Darwin AET=Australia/Sydney AGT=America/Argentina/Buenos_Aires
    ART=Africa/Cairo AST=America/Anchorage BET=America/Sao_Paulo BST=Asia/Dhaka
    CAT=Africa/Harare CNT=America/St_Johns CST=America/Chicago CTT=Asia/Shanghai
    EAT=Africa/Addis_Ababa ECT=Europe/Paris IET=America/Indiana/Indianapolis
    IST=Asia/Kolkata JST=Asia/Tokyo MIT=Pacific/Apia NET=Asia/Yerevan
    NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix PRT=America/Puerto_Rico
    PST=America/Los_Angeles SST=Pacific/Guadalcanal VST=Asia/Ho_Chi_Minh
    EST=-05:00:00 MST=-07:00:00 HST=-10:00:00
"""
_SHORT = dict(one.split("=") for one in _SHORT_NAMES.split())
"""Java's short names of zones."""


@cache
def _zone(text: str) -> str | None:
    """The zone that a text names: a name of IANA, or `±hh:mm:ss`; None: there is none."""
    if text in ("Z", "UTC", "GMT", "UT"):
        return "UTC"
    if text in _SHORT:
        return _SHORT[text]
    found = _OFFSET.fullmatch(text)
    if found is None:
        return text if text in available_timezones() else None
    sign, hours, minutes, seconds, after, last = found.groups()
    if len(hours) == 1 and after is not None:
        return None
    if len(minutes or "00") == 1 and seconds is not None:
        return None
    parts = (int(hours), int(minutes or after or 0), int(seconds or last or 0))
    fits = parts <= (18, 0, 0) and parts[1] < 60 and parts[2] < 60
    return f"{sign}{parts[0]:02}:{parts[1]:02}:{parts[2]:02}" if fits else None

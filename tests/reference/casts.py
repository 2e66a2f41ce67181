"""CAST and TRY_CAST, from Spark's definitions, and how values are written."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from . import decimals
from .decimals import DecimalKind
from .values import CelError, Datum, Kind, microseconds, moment, to_float32, wrap

BITS = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
_REALS = (Kind.FLOAT, Kind.DOUBLE)
_TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE)
_SECOND = 1_000_000


def cast(datum: Datum, kind: Any, zone: str, *, exact: bool) -> Datum:
    """The datum in another kind. `exact`: TRY_CAST."""
    if datum.value is None or datum.kind == kind:
        return Datum(kind, datum.value)
    return Datum(kind, _cast(datum, kind, zone, exact=exact))


def _cast(datum: Datum, kind: Any, zone: str, *, exact: bool) -> Any:
    found, value = datum.kind, datum.value
    if kind is Kind.STRING:
        is_plain = exact and isinstance(value, Decimal)
        return f"{value:f}" if is_plain else written(datum, zone)
    if isinstance(kind, DecimalKind):
        return _decimal(datum, kind)
    if found is Kind.STRING:
        return _read(value, kind, zone, exact=exact)
    if isinstance(value, Decimal):
        # Where Spark has more than a word for a DECIMAL, TRY_CAST takes the nearest DOUBLE.
        is_wide = isinstance(found, DecimalKind) and found.precision > 18
        if exact and is_wide and kind in (Kind.BYTE, Kind.SHORT, Kind.INT):
            return _whole(float(value), BITS[kind], exact=True)
        return _of_decimal(value, kind, exact=exact)
    if found in _TIMES:
        return _of_time(datum, kind, zone, exact=exact)
    if found not in (*BITS, *_REALS, Kind.BOOLEAN):
        raise CelError(f"no CAST of {found.value}")
    if kind is Kind.BOOLEAN:
        return value != 0
    if kind in BITS:
        return _whole(value, BITS[kind], exact=exact)
    if kind in _REALS:
        return to_float32(value) if kind is Kind.FLOAT else float(value)
    if kind is Kind.TIMESTAMP and found is not Kind.BOOLEAN:
        return _since_1970(value, exact=exact)
    raise CelError(f"no CAST to {kind.value}")


def _decimal(datum: Datum, kind: DecimalKind) -> Decimal | None:
    """A DECIMAL: a DOUBLE is the number that is written with its digits."""
    value = datum.value
    if datum.kind is Kind.STRING:
        text = value.strip(_BLANK)
        if not _EXACT_NUMBER.fullmatch(text):
            return None
        return decimals.fitted(Decimal(text), kind) if abs(float(text)) < 1e39 else None
    if datum.kind is Kind.TIMESTAMP:
        micros = microseconds(datum)
        assert micros is not None
        return decimals.fitted(Decimal(repr(micros / float(_SECOND))), kind)
    if isinstance(value, float):
        return decimals.fitted(Decimal(repr(value)), kind) if abs(value) < 1e39 else None
    return decimals.fitted(Decimal(int(value) if isinstance(value, bool) else value), kind)


def _of_decimal(value: Decimal, kind: Any, *, exact: bool) -> Any:
    if kind is Kind.BOOLEAN:
        return value != 0
    if kind in BITS:
        return _whole(math.trunc(value), BITS[kind], exact=exact)
    if kind in _REALS:
        return _nearest(str(value)) if kind is Kind.FLOAT else float(value)
    if kind is Kind.TIMESTAMP:
        return moment(wrap(math.trunc(Fraction(value) * _SECOND), 64))
    raise CelError(f"no CAST of a DECIMAL to {kind.value}")


def _whole(value: Any, bits: int, *, exact: bool) -> int | None:
    most = (1 << (bits - 1)) - 1
    if isinstance(value, float):
        if math.isnan(value):
            return None if exact else 0
        # Compared as DOUBLEs: one more than the greatest LONG is not too large.
        is_near = math.isfinite(value) and math.floor(value) <= float(most)
        if exact and not (is_near and math.ceil(value) >= -most - 1):
            return None
        # Java knows no narrower number than an INT here.
        wide = (1 << (max(bits, 32) - 1)) - 1
        limited = value if math.isfinite(value) else math.copysign(1 << 70, value)
        return wrap(min(max(math.trunc(limited), -wide - 1), wide), bits)
    whole = int(value)
    if exact and not -most - 1 <= whole <= most:
        return None
    return wrap(whole, bits)


def _since_1970(value: Any, *, exact: bool) -> Any:
    limit = (1 << 63) - 1
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        micros = value * _SECOND
        if exact and abs(micros) > 2.0**63:
            return None
        found = math.trunc(micros) if math.isfinite(micros) else math.copysign(1 << 70, micros)
    else:
        found = value * _SECOND
    return moment(int(min(max(found, -limit - 1), limit)))


# --- times ----------------------------------------------------------------------------------------


def local(time: dt.datetime, zone: str) -> dt.datetime:
    """What the clocks of a zone show."""
    return time.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def instant(clock: dt.datetime, zone: str) -> dt.datetime:
    """The first time at which the clocks of a zone show this; later by what they pass over."""
    there = clock.replace(tzinfo=ZoneInfo(zone), fold=0)
    return there.astimezone(dt.UTC).replace(tzinfo=None)


def _of_time(datum: Datum, kind: Any, zone: str, *, exact: bool) -> Any:
    found, value = datum.kind, datum.value
    if kind in BITS and found is Kind.TIMESTAMP:
        micros = microseconds(datum)
        assert micros is not None
        return _whole(micros // _SECOND, BITS[kind], exact=exact)
    if kind in _REALS and found is Kind.TIMESTAMP:
        micros = microseconds(datum)
        assert micros is not None
        seconds = micros / float(_SECOND)
        return to_float32(seconds) if kind is Kind.FLOAT else seconds
    if kind not in _TIMES:
        raise CelError(f"no CAST of {found.value} to {kind.value}")
    if found is Kind.DATE:
        clock = dt.datetime.combine(value, dt.time())
    else:
        clock = local(value, zone) if found is Kind.TIMESTAMP else value
    if kind is Kind.DATE:
        return clock.date()
    return instant(clock, zone) if kind is Kind.TIMESTAMP else clock


# --- texts ----------------------------------------------------------------------------------------


def written(datum: Datum, zone: str) -> str:
    """CAST AS STRING."""
    value, kind = datum.value, datum.kind
    if isinstance(value, Decimal):
        return str(value)
    if kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if kind in _REALS:
        return _real(value, single=kind is Kind.FLOAT)
    if kind is Kind.DATE:
        return str(value.isoformat())
    if kind in _TIMES:
        clock = local(value, zone) if kind is Kind.TIMESTAMP else value
        text = clock.strftime(f"{clock.year:04}-%m-%d %H:%M:%S")
        return text + (f".{clock.microsecond:06}".rstrip("0") if clock.microsecond else "")
    if kind in BITS:
        return str(int(value))
    raise CelError(f"no CAST of {kind.value} to STRING")


def _digits(value: float, *, single: bool) -> str:
    """The fewest digits, but at least two, that tell a number from all others; of these the
    nearest."""
    texts = (f"{value:.{more}e}" for more in range(1, 18))
    return next(
        text for text in texts if (to_float32(float(text)) if single else float(text)) == value
    )


def _real(value: float, *, single: bool) -> str:
    """As Java writes numbers."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    exact = Decimal(_digits(abs(value), single=single)).normalize().as_tuple()
    digits, exponent = "".join(map(str, exact.digits)), int(exact.exponent)
    power = len(digits) + exponent - 1
    if -3 <= power < 7:
        if power < 0:
            return f"{sign}0.{'0' * (-power - 1)}{digits}"
        whole = digits[: power + 1].ljust(power + 1, "0")
        return f"{sign}{whole}.{digits[power + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_BLANK = "".join(map(chr, range(33)))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?")
_EXACT_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+\.?[0-9a-fA-F]*[pP][+-]?\d+[dDfF]?")
_WHOLE_NUMBER = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?")


def _read(text: str, kind: Any, zone: str, *, exact: bool) -> Any:
    text = text.strip(_BLANK)
    if kind is Kind.BOOLEAN:
        word = text.lower()
        return True if word in _TRUE else False if word in _FALSE else None
    if kind in BITS:
        return _whole_of(text, BITS[kind], exact=exact)
    if kind in _REALS:
        return _real_of(text, single=kind is Kind.FLOAT)
    if kind is Kind.DATE:
        return _date_of(text)
    return _time_of(text, zone, with_zone=kind is Kind.TIMESTAMP)


def _whole_of(text: str, bits: int, *, exact: bool) -> int | None:
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None or (exact and "." in text) or not text.isascii():
        return None
    sign, digits, behind = found.groups()
    if not digits and not behind and "." not in text:
        return None
    number = int(sign + (digits or "0"))
    return number if -(1 << (bits - 1)) <= number < 1 << (bits - 1) else None


def _real_of(text: str, *, single: bool) -> float | None:
    word = text.lower()
    if word.lstrip("+-") in ("infinity", "inf") and len(word.lstrip("+-")) >= len(word) - 1:
        return -math.inf if word.startswith("-") else math.inf
    if word == "nan" or text in ("+NaN", "-NaN"):
        return math.nan
    if _HEXADECIMAL.fullmatch(text):
        number = float.fromhex(text.rstrip("dDfF"))
        return to_float32(number) if single else number
    if not _NUMBER.fullmatch(text) or not text.isascii():
        return None
    digits = text.rstrip("dDfF")
    if not single:
        return float(digits)
    return _nearest(digits)


def _nearest(digits: str) -> float:
    """The FLOAT next to what is written, not to its nearest DOUBLE."""
    near = to_float32(float(digits))
    if math.isinf(near) or math.isinf(float(digits)):
        return near
    step = 2.0 ** (max(math.frexp(near)[1] - 1, -126) - 23)
    around = [near, to_float32(near + step), to_float32(near - step)]
    return min(around, key=lambda one: abs(Decimal(one) - Decimal(digits)))


_DATE = r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_CLOCK = r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::\d{1,2})?|[A-Za-z]+/[A-Za-z_/]+)"
_DATE_TEXT = re.compile(rf"{_DATE}(?:(?<=\d)[ T].*)?", re.DOTALL)
_TIME_TEXT = re.compile(rf"{_DATE}(?:[ T]{_CLOCK}(?:{_ZONE})?)?")


def _date_of(text: str) -> dt.date | None:
    found = _DATE_TEXT.fullmatch(text)
    # What follows a day does not matter, but it must follow a day.
    if found is None or (found.group(3) is None and not re.fullmatch(_DATE, text)):
        return None
    try:
        return dt.date(*(int(part or 1) for part in found.groups()))
    except ValueError:
        return None


def _time_of(text: str, zone: str, *, with_zone: bool) -> dt.datetime | None:
    found = _TIME_TEXT.fullmatch(text)
    if found is None or (found.group(4) is not None and found.group(3) is None):
        return None
    year, month, day, hour, minute, second, rest, named = found.groups()
    micros = int((rest or "0").ljust(6, "0")[:6])
    try:
        date = (int(year), int(month or 1), int(day or 1))
        clock = dt.datetime(*date, int(hour or 0), int(minute or 0), int(second or 0), micros)
        if not with_zone or named is None:
            return instant(clock, zone) if with_zone else clock
        if named[0] in "+-":
            hours, _, minutes = named[1:].partition(":")
            distance = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
            if distance > dt.timedelta(hours=18) or int(minutes or 0) > 59:
                return None
            return clock - distance if named[0] == "+" else clock + distance
        return instant(clock, "UTC" if named in ("Z", "GMT") else named)
    except (ValueError, KeyError):
        return None

"""The functions of values, from their definitions: those of Spark with ANSI mode off.

Calendar parts are those of UTC or of a named zone. A function takes data and gives one.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
import struct
import sys
import unicodedata
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache, reduce
from typing import Any

from . import casts, decimals, formats
from .decimals import DecimalKind
from .values import (
    CelError,
    Datum,
    Kind,
    compare,
    in_common,
    microseconds,
    to_float32,
    wrap,
)

Data = Sequence[Datum]


def call(name: str, data: Data, zone: str, kind: Any = None) -> Datum:
    """The value of a function; `kind` is what CAST and TRY_CAST make."""
    if name in ("CAST", "TRY_CAST"):
        return casts.cast(data[0], kind, zone, exact=name == "TRY_CAST")
    if name in _OF_ANY:
        return _OF_ANY[name](data)
    if name in _OF_TIMES:
        time = casts.cast(data[0], Kind.TIMESTAMP, "UTC", exact=False).value
        part = None if time is None else _OF_TIMES[name](casts.local(time, zone))
        return Datum(Kind.INT, part)
    if name == "DATE_TRUNC":
        return _truncated(data[0].value, data[1], zone)
    if name in ("TO_DATE", "TO_TIMESTAMP"):
        text = casts.cast(data[0], Kind.STRING, "UTC", exact=False)
        wanted = Kind.DATE if name == "TO_DATE" else Kind.TIMESTAMP
        if len(data) > 1:
            return _by_format(text, data[1], wanted, zone)
        return casts.cast(text, wanted, zone, exact=False)
    kind, parameters, function = _PLAIN[name]
    values = [
        _given(datum, parameters[min(n, len(parameters) - 1)]) for n, datum in enumerate(data)
    ]
    return Datum(kind, None if None in values else function(*values))


def _by_format(text: Datum, format: Datum, wanted: Kind, zone: str) -> Datum:
    if text.value is None or format.value is None:
        return Datum(wanted, None)
    clock = formats.clock(text.value, format.value)
    if clock is None:
        return Datum(wanted, None)
    return casts.cast(Datum(Kind.STRING, clock.isoformat(" ")), wanted, zone, exact=False)


def names() -> frozenset[str]:
    """The names of all functions that are called as such."""
    return frozenset((*_PLAIN, *_OF_ANY, *_OF_TIMES, "DATE_TRUNC", "TO_DATE", "TO_TIMESTAMP"))


def chosen(name: str, data: Data) -> Datum:
    """LEAST, GREATEST or COALESCE; NULL where all are."""
    kind, operands = in_common(data)
    known = [one for one in operands if one.value is not None]
    if not known:
        return Datum(kind, None)
    wanted = {"LEAST": -1, "GREATEST": 1}.get(name)
    if wanted is None:
        return known[0]
    return reduce(lambda best, one: one if compare(one, best) == wanted else best, known)


def _given(datum: Datum, parameter: str) -> Any:
    """What a function is given of an argument."""
    if datum.value is None:
        return None
    if parameter == "TEXT":
        return casts.cast(datum, Kind.STRING, "UTC", exact=False).value
    if parameter == "INT":
        if datum.kind not in (Kind.INT, Kind.SHORT, Kind.BYTE):
            raise CelError("not a whole number")
        return datum.value
    if isinstance(datum.value, bool | str):
        raise CelError("not a number")
    return float(datum.value)


# --- numbers --------------------------------------------------------------------------------------


def _sqrt(value: float) -> float:
    return math.nan if value < 0 else math.sqrt(value)


def _power(base: float, exponent: float) -> float:
    """Java's: unlike C's, NaN where the exponent is, and of 1 to an infinite one."""
    if exponent == 0:
        return 1.0
    if math.isnan(base) or math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    is_odd = not math.isinf(exponent) and exponent % 2 == 1
    sign = -1.0 if is_odd and math.copysign(1.0, base) < 0 else 1.0
    if base == 0 and exponent < 0:
        return sign * math.inf
    if base < 0 and not math.isinf(base) and not math.isinf(exponent) and exponent % 1:
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return sign * math.inf


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _logarithm(of: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda value: None if value <= 0 else of(value)


def _angle(of: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: math.nan if math.isinf(value) else of(value)


def _sign(value: float) -> float:
    return value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


def _whole(of: Callable[[float], int]) -> Callable[[Data], Datum]:
    """FLOOR and CEIL: of a DECIMAL a DECIMAL, else a LONG."""

    def found(data: Data) -> Datum:
        (datum,) = data
        if isinstance(datum.kind, DecimalKind):
            kind = DecimalKind(min(datum.kind.precision - datum.kind.scale + 1, 38), 0)
            if datum.kind.scale == 0:
                kind = datum.kind
            return Datum(kind, None if datum.value is None else Decimal(of(datum.value)))
        value = datum.value
        if datum.kind is not Kind.LONG:
            value = _given(datum, "DOUBLE")
        if value is None:
            return Datum(Kind.LONG, None)
        if isinstance(value, int):
            return Datum(Kind.LONG, int(value))
        if math.isnan(value):
            return Datum(Kind.LONG, 0)
        limit = (1 << 63) - 1
        whole = of(value) if math.isfinite(value) else math.copysign(1 << 64, value)
        return Datum(Kind.LONG, int(min(max(whole, -limit - 1), limit)))

    return found


_EXACT = Context(prec=2000, rounding=ROUND_HALF_UP)


def _round(data: Data) -> Datum:
    """Rounds the digits that a DOUBLE is written with."""
    datum, *rest = data
    places, kind = int(rest[0].value) if rest else 0, datum.kind
    if isinstance(kind, DecimalKind):
        whole = kind.precision - kind.scale + 1
        if places < 0:
            found = DecimalKind(min(max(whole, 1 - places), 38), 0)
        else:
            scale = min(kind.scale, places)
            found = DecimalKind(min(whole + scale, 38), scale)
        if datum.value is None:
            return Datum(found, None)
        rounded = _EXACT.quantize(datum.value, Decimal(1).scaleb(-places))
        return Datum(found, decimals.fitted(rounded, found))
    value = datum.value
    if value is None:
        return Datum(kind, None)
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        if not math.isfinite(value):
            return datum
        digits = Decimal(repr(float(value)))
        found_value = float(_EXACT.quantize(digits, Decimal(1).scaleb(-places)))
        return Datum(kind, to_float32(found_value) if kind is Kind.FLOAT else found_value)
    if kind not in casts.BITS:
        raise CelError("ROUND takes a number")
    if places >= 0:
        return datum
    whole_number = int(_EXACT.quantize(Decimal(value), Decimal(1).scaleb(-places)))
    return Datum(kind, wrap(whole_number, casts.BITS[kind]))


def _isnan(data: Data) -> Datum:
    value = _given(data[0], "DOUBLE")
    return Datum(Kind.BOOLEAN, value is not None and math.isnan(value))


# --- texts ----------------------------------------------------------------------------------------


def _substr(text: str, place: int, length: int = sys.maxsize) -> str:
    start = place - 1 if place > 0 else len(text) + place if place < 0 else 0
    end = len(text) if len(text) - start < length else start + length
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _replace(text: str, searched: str, by: str = "") -> str:
    return text.replace(searched, by) if searched else text


def _split_part(text: str, separator: str, number: int) -> str | None:
    parts = text.split(separator) if separator else [text]
    if number == 0:
        return None
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _extract(text: str, pattern: str, group: int = 1) -> str:
    """By Python's own expressions, which are as RE2's but for the end of a text, and for
    categories of characters."""
    found = re.search(_for_python(pattern), text, re.ASCII)
    return found[group] or "" if found else ""


@cache
def _for_python(pattern: str) -> str:
    pattern = re.sub(r"(?<!\\)\$", r"\\Z", pattern.replace("&&[", r"\&\&\["))
    pattern = re.sub(r"\\x\{(\w+)\}", lambda found: re.escape(chr(int(found[1], 16))), pattern)
    # Outside of brackets where it is negated, inside where not: as far as it is asked for here.
    pattern = re.sub(r"\\P\{(\w+)\}", lambda found: f"[^{_characters(found[1])}]", pattern)
    return re.sub(r"\\p(\w)", lambda found: _characters(found[1]), pattern)


def _characters(category: str) -> str:
    """The characters of a category, as ranges."""
    fitting = [n for n in range(0x110000) if unicodedata.category(chr(n)).startswith(category)]
    first = [n for n, before in zip(fitting, [-2, *fitting], strict=False) if n != before + 1]
    last = [n for n, after in zip(fitting, [*fitting[1:], -2], strict=True) if n != after - 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(first, last, strict=True))


def _sha2(text: str, bits: int) -> str | None:
    if bits not in (0, 224, 256, 384, 512):
        return None
    return hashlib.new(f"sha{bits or 256}", text.encode()).hexdigest()


_PLAIN: dict[str, tuple[Kind, tuple[str, ...], Callable[..., Any]]] = {
    "SQRT": (Kind.DOUBLE, ("DOUBLE",), _sqrt),
    "POWER": (Kind.DOUBLE, ("DOUBLE",), _power),
    "EXP": (Kind.DOUBLE, ("DOUBLE",), _exp),
    "LN": (Kind.DOUBLE, ("DOUBLE",), _logarithm(math.log)),
    "LOG10": (Kind.DOUBLE, ("DOUBLE",), _logarithm(math.log10)),
    "SIN": (Kind.DOUBLE, ("DOUBLE",), _angle(math.sin)),
    "COS": (Kind.DOUBLE, ("DOUBLE",), _angle(math.cos)),
    "ATAN2": (Kind.DOUBLE, ("DOUBLE",), lambda y, x: math.atan2(y + 0.0, x + 0.0)),
    "RADIANS": (Kind.DOUBLE, ("DOUBLE",), math.radians),
    "SIGN": (Kind.DOUBLE, ("DOUBLE",), _sign),
    "LENGTH": (Kind.INT, ("TEXT",), len),
    "LOWER": (Kind.STRING, ("TEXT",), str.lower),
    "UPPER": (Kind.STRING, ("TEXT",), str.upper),
    "TRIM": (Kind.STRING, ("TEXT",), lambda text: text.strip(" ")),
    "LTRIM": (Kind.STRING, ("TEXT",), lambda text: text.lstrip(" ")),
    "RTRIM": (Kind.STRING, ("TEXT",), lambda text: text.rstrip(" ")),
    "SUBSTR": (Kind.STRING, ("TEXT", "INT"), _substr),
    "REPLACE": (Kind.STRING, ("TEXT",), _replace),
    "CONTAINS": (Kind.BOOLEAN, ("TEXT",), str.__contains__),
    "STARTSWITH": (Kind.BOOLEAN, ("TEXT",), str.startswith),
    "ENDSWITH": (Kind.BOOLEAN, ("TEXT",), str.endswith),
    "POSITION": (Kind.INT, ("TEXT",), lambda one, text: text.find(one) + 1),
    "CONCAT": (Kind.STRING, ("TEXT",), lambda *texts: "".join(texts)),
    "SPLIT_PART": (Kind.STRING, ("TEXT", "TEXT", "INT"), _split_part),
    "REGEXP_EXTRACT": (Kind.STRING, ("TEXT", "TEXT", "INT"), _extract),
    "MD5": (Kind.STRING, ("TEXT",), lambda text: hashlib.md5(text.encode()).hexdigest()),
    "SHA2": (Kind.STRING, ("TEXT", "INT"), _sha2),
}


# --- times ----------------------------------------------------------------------------------------

_OF_TIMES: dict[str, Callable[[dt.datetime], int]] = {
    "YEAR": lambda time: time.year,
    "MONTH": lambda time: time.month,
    "DAY": lambda time: time.day,
    "HOUR": lambda time: time.hour,
    "MINUTE": lambda time: time.minute,
    "SECOND": lambda time: time.second,
    "DAYOFWEEK": lambda time: time.isoweekday() % 7 + 1,
}


def _truncated(unit: str, datum: Datum, zone: str) -> Datum:
    found = casts.cast(datum, Kind.TIMESTAMP, "UTC", exact=False)
    if found.value is None:
        return found
    local, day = casts.local(found.value, zone), {"hour": 0, "minute": 0, "second": 0}
    match unit.upper():
        case "YEAR" | "YYYY" | "YY":
            begin = local.replace(month=1, day=1, microsecond=0, **day)
        case "QUARTER":
            month = local.month - (local.month - 1) % 3
            begin = local.replace(month=month, day=1, microsecond=0, **day)
        case "MONTH" | "MM" | "MON":
            begin = local.replace(day=1, microsecond=0, **day)
        case "WEEK":
            monday = local - dt.timedelta(days=local.weekday())
            begin = monday.replace(microsecond=0, **day)
        case "DAY" | "DD":
            begin = local.replace(microsecond=0, **day)
        case "HOUR":
            begin = local.replace(minute=0, second=0, microsecond=0)
        case "MINUTE":
            begin = local.replace(second=0, microsecond=0)
        case "SECOND":
            begin = local.replace(microsecond=0)
        case "MILLISECOND":
            begin = local.replace(microsecond=local.microsecond // 1000 * 1000)
        case _:
            begin = local
    # Of two times that the clock shows alike, the one with the time's own distance from UTC.
    own = begin - (local.replace(tzinfo=None) - found.value)
    if casts.local(own, zone).replace(tzinfo=None) == begin.replace(tzinfo=None):
        return Datum(Kind.TIMESTAMP, own.replace(tzinfo=None))
    return Datum(Kind.TIMESTAMP, casts.instant(begin, zone))


# --- of values of any kind ------------------------------------------------------------------------


def _null_if(data: Data) -> Datum:
    first, second = data
    kind = in_common(data)[0] if first.kind is Kind.NULL else first.kind
    return Datum(kind, None if compare(first, second) == 0 else first.value)


def _hash(data: Data) -> Datum:
    seed = 42
    for datum in data:
        if datum.value is not None:
            seed = _mixed(_bytes_of(datum), seed)
    return Datum(Kind.INT, wrap(seed, 32))


def _bytes_of(datum: Datum) -> bytes:
    value, kind = datum.value, datum.kind
    if isinstance(kind, DecimalKind):
        units = int(value.scaleb(kind.scale, _EXACT))
        if kind.precision <= 18:
            return struct.pack("<q", units)
        size = (units if units >= 0 else ~units).bit_length() // 8 + 1
        return units.to_bytes(size, "big", signed=True)
    if kind is Kind.STRING:
        return bytes(value.encode())
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        value = value + 0.0 if value == value else math.nan
        return struct.pack("<f" if kind is Kind.FLOAT else "<d", 0.0 if value == 0 else value)
    if kind is Kind.DATE:
        return struct.pack("<i", (value - dt.date(1970, 1, 1)).days)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        return struct.pack("<q", microseconds(datum))
    return struct.pack("<q" if kind is Kind.LONG else "<i", value)


def _mixed(data: bytes, seed: int) -> int:
    """Murmur3 of 32 bits. Spark takes each byte of a rest as a word."""
    low = (1 << 32) - 1

    def turned(value: int, by: int) -> int:
        return ((value << by) | (value >> (32 - by))) & low

    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data) // 4 * 4, 4)]
    words += [wrap(byte, 8) & low for byte in data[len(data) // 4 * 4 :]]
    found = seed & low
    for word in words:
        found ^= turned(word * 0xCC9E2D51 & low, 15) * 0x1B873593 & low
        found = (turned(found, 13) * 5 + 0xE6546B64) & low
    found ^= len(data)
    found = (found ^ (found >> 16)) * 0x85EBCA6B & low
    found = (found ^ (found >> 13)) * 0xC2B2AE35 & low
    return found ^ (found >> 16)


_OF_ANY: dict[str, Callable[[Data], Datum]] = {
    "FLOOR": _whole(math.floor),
    "CEIL": _whole(math.ceil),
    "ROUND": _round,
    "ISNAN": _isnan,
    "HASH": _hash,
    "NULLIF": _null_if,
}

"""Values of attributes that tell conditions apart: constants, values beside and between them.

Values are those of constants in core formulas: whole numbers for times, dates and DECIMALs.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from celc_runtime.values.types import ArrayType, MapType, StructType

from celc.compare.conditions import Asked
from celc.core import formula as core
from celc.core.formula import DataType, DecimalType

NOON = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
"""The time at which streams begin, unless conditions ask for others."""

DAY = 86_400_000_000
SECOND = 1_000_000

_WIDE = Context(prec=core.MOST_DIGITS)

_RANGES = {
    DataType.BYTE: 2**7,
    DataType.SHORT: 2**15,
    DataType.INT: 2**31,
    DataType.LONG: 2**63,
    DataType.TIMESTAMP: 2**63,
    DataType.TIMESTAMP_NTZ: 2**63,
    DataType.INTERVAL: 2**63,
    DataType.DATE: 2**31,
}
"""Values of these types are at least −n and less than n."""

INFINITE = (math.inf, -math.inf)

_GENERIC_TEXTS = ("a", "b", "c")
MOST_CONSTANTS = 24  # of one attribute, beside which values are tried


def candidates(name: str, type: DataType, asked: Asked) -> tuple[Any, ...]:
    """Values for an attribute, the plainest first, NULL last.

    Constants of the conditions on it and values beside them; where values of several events are
    compared, some others, so that there are three in any order.
    """
    group = asked.group_of(name)
    names = [one for one in asked.used if asked.group_of(one) == group] or [name]
    compared = name in asked.several
    given: dict[Any, None] = {}
    for other in [name, *(names if compared else ())]:
        for value, of in asked.constants.get(other, {}):
            for converted in _converted(value, of, type):
                given[converted] = None
    constants = list(given)[:MOST_CONSTANTS]
    found: dict[Any, None] = {}
    if isinstance(type, ArrayType | MapType | StructType):
        found.update(dict.fromkeys(range(3)))  # by number: see `nested`
    elif type is DataType.BOOLEAN:
        found.update({True: None, False: None})
    elif type in (DataType.STRING, DataType.BINARY):
        found.update(dict.fromkeys(_texts(constants, asked, names if compared else [name])))
        others = _GENERIC_TEXTS if compared else (_other_text(found),)
        found.update(dict.fromkeys(others))
    else:
        found.update(dict.fromkeys(_numbers(constants, type, compared)))
    found[None] = None
    return tuple(found)


def _converted(value: core.Value, of: DataType, type: DataType) -> Iterator[Any]:
    """A constant as values of another type: the same, or those next to it."""
    if type is DataType.BOOLEAN or isinstance(value, bool):
        if type is DataType.BOOLEAN and isinstance(value, bool):
            yield value
        return
    if type in (DataType.STRING, DataType.BINARY) or isinstance(value, str):
        if type is DataType.STRING and isinstance(value, str):
            yield value
        return
    if isinstance(value, float) and not math.isfinite(value):
        if type in (DataType.FLOAT, DataType.DOUBLE):
            yield value
        return
    if type in core.TIMES or of in core.TIMES or type is DataType.TIMESTAMP_NTZ:
        if of is type:
            yield value
        elif of is DataType.TIMESTAMP and type is DataType.DATE:
            yield int(value) // DAY
        return
    if isinstance(type, ArrayType | MapType | StructType):
        return
    exact = Decimal(value)
    if isinstance(of, DecimalType):
        exact = exact.scaleb(-of.scale, _WIDE)
    if isinstance(type, DecimalType):
        exact = exact.scaleb(type.scale, _WIDE)
    if type in (DataType.FLOAT, DataType.DOUBLE):
        yield float(exact)
        return
    below = math.floor(exact)
    yield below
    if below != exact:
        yield below + 1


def _numbers(constants: list[Any], type: DataType, compared: bool) -> Iterator[Any]:
    numbers = sorted(one for one in constants if one == one)
    yield from constants
    if type in (DataType.FLOAT, DataType.DOUBLE):
        finite = [one for one in numbers if math.isfinite(one)]
        for step in _steps(len(finite), compared):
            yield finite[-1] + step
            yield finite[0] - step
        for low, high in itertools.pairwise(finite):
            middle = low / 2 + high / 2
            if low < middle < high:
                yield middle
        if compared:
            yield from (1.0, 2.0, 3.0, 100.0) if finite else (1.0, 2.0, 3.0)
            for number in finite:
                yield from (100.0 * number, 100.0 + number)
        elif not finite:
            yield 1.0
        return
    unit = _unit(type)
    most = 10 ** type.precision if isinstance(type, DecimalType) else _RANGES[type]
    around = [
        one + sign * step * unit
        for step in _steps(len(numbers), compared)
        for sign in (1, -1)
        for one in numbers
    ]
    for low, high in itertools.pairwise(numbers):
        around.append((low + high) // 2)
    if compared or not numbers:
        scale = 10 ** type.scale if isinstance(type, DecimalType) else 1
        begin = _begin(type)
        generic = [begin + unit * step * scale for step in ((1, 2, 3) if compared else (1,))]
        around += generic
    yield from (one for one in around if -most <= one < most)


def _steps(constants: int, compared: bool) -> range:
    """The distances from constants at which values are tried: where events are compared, three in
    order lie above a constant that all of them must exceed. Of many constants there are fewer."""
    if constants == 0:
        return range(0)
    return range(1, 2 + (min(2, 4 // constants) if compared else 0))


def _begin(type: DataType) -> int:
    if type in (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ):
        return NOON
    return NOON // DAY if type is DataType.DATE else 0


def _unit(type: DataType) -> int:
    times = (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ, DataType.INTERVAL)
    return SECOND if type in times else 1


def _texts(constants: list[Any], asked: Asked, names: Iterable[str]) -> Iterator[str]:
    yield from constants
    for name in names:
        for operator, pattern in asked.patterns.get(name, {}):
            yield from _like(pattern) if operator == "LIKE" else _regular(pattern)
    for one in constants:
        yield f"{one}a"
    if constants:
        yield ""


def _like(pattern: str) -> Iterator[str]:
    """Texts that match a pattern of LIKE, and some that nearly do."""
    parts: list[str] = []
    escaped = False
    for sign in pattern:
        if escaped:
            parts.append(sign)
            escaped = False
        elif sign == "\\":
            escaped = True
        else:
            parts.append({"%": "\0", "_": "\1"}.get(sign, sign))
    whole = "".join(parts)
    filled = whole.replace("\1", "a")
    yield filled.replace("\0", "a")
    yield filled.replace("\0", "")
    yield filled.replace("\0", "a") + "a"
    yield "a" + filled.replace("\0", "a")
    yield whole.replace("\1", "").replace("\0", "a")


def _regular(pattern: str) -> Iterator[str]:
    """Texts that may match a regular expression, read as plainly as possible."""
    plain = re.sub(r"\\[dD]", "1", pattern)
    plain = re.sub(r"\\[wW]", "a", plain)
    plain = re.sub(r"\\[sS]", " ", plain)
    plain = re.sub(r"\[\^?(.)[^\]]*\]", r"\1", plain)
    plain = re.sub(r"\(\?[a-zA-Z:]+", "(", plain)
    for branch in plain.split("|"):
        text = re.sub(r"(?<!\\)[()^$]", "", branch)
        text = re.sub(r"(?<!\\)\{(\d+)[^}]*\}", "", text)
        more = re.sub(r"(?<!\\)[*+?]", "", re.sub(r"(?<!\\)\.", "a", text))
        less = re.sub(r".[*?]", "", text)
        less = re.sub(r"(?<!\\)\+", "", re.sub(r"(?<!\\)\.", "a", less))
        for found in (more, less):
            yield re.sub(r"\\(.)", r"\1", found)
    yield pattern


def _other_text(taken: Iterable[str]) -> str:
    known = set(taken)
    return next(one for one in ("x", "y", "z", "other", "another") if one not in known)


def default(type: DataType) -> Any:
    """A value for an attribute that must have one, whatever it is."""
    if type is DataType.BOOLEAN:
        return True
    if type in (DataType.STRING, DataType.BINARY):
        return "a"
    if isinstance(type, ArrayType | MapType | StructType):
        return 0
    return 1.0 if type in (DataType.FLOAT, DataType.DOUBLE) else _begin(type) + _unit(type)


def as_python(value: Any, type: DataType) -> Any:
    """A value as Arrow takes it from Python."""
    if value is None:
        return None
    if isinstance(type, DecimalType):
        return Decimal(value).scaleb(-type.scale, _WIDE)
    if isinstance(type, ArrayType):
        return [as_python(default(type.element), type.element)] * value
    if isinstance(type, MapType):
        return [(f"k{key}", as_python(default(type.element), type.element)) for key in range(value)]
    if isinstance(type, StructType):
        if value == 0:
            return {name: as_python(default(of), of) for name, of in type.fields}
        return {name: None for name, _ in type.fields} if value == 1 else None
    if type is DataType.DATE:
        return date(1970, 1, 1) + timedelta(days=value)
    if type is DataType.TIMESTAMP:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    if type is DataType.TIMESTAMP_NTZ:
        return datetime(1970, 1, 1) + timedelta(microseconds=value)
    if type is DataType.INTERVAL:
        return timedelta(microseconds=value)
    return value.encode() if type is DataType.BINARY else value

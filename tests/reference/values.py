"""Values of Spark SQL with ANSI mode off, as far as CEL's conditions can meet them.

A value travels with its kind (`Datum`), because the kind decides the result: INT wraps at 32 bits,
LONG at 64, FLOAT rounds every step to single precision. NULL is a datum whose value is None.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import enum
import functools
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from . import decimals
from .decimals import DecimalKind, WrittenFraction, WrittenInteger


class CelError(ValueError):
    """The query, or the stream it is asked of, is not valid CEL; the message says why."""


class Kind(enum.Enum):
    """The type of a value. NULL is the type of the bare literal NULL only, DECIMAL, a whole number
    of up to 38 digits, that of totals only."""

    NULL = "NULL"
    BOOLEAN = "BOOLEAN"
    BYTE = "BYTE"
    SHORT = "SHORT"
    INT = "INT"
    LONG = "LONG"
    DECIMAL = "DECIMAL"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_NTZ = "TIMESTAMP_NTZ"
    DATE = "DATE"
    INTERVAL = "INTERVAL"
    ARRAY = "ARRAY"


WHOLE_NUMBERS = (Kind.BYTE, Kind.SHORT, Kind.INT, Kind.LONG)
# From narrow to wide: of two kinds of numbers the wider one is the kind of the result.
NUMBERS = (*WHOLE_NUMBERS, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)
_BITS = {Kind.BYTE: 8, Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
_MOMENTS = (Kind.TIMESTAMP, Kind.DATE)

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000


class Datum(NamedTuple):
    """A value and its kind; `value` is None for NULL of that kind."""

    kind: Kind | DecimalKind
    value: Any


NULL = Datum(Kind.NULL, None)


def wrap(value: int, bits: int) -> int:
    """Two's complement: the whole number of `bits` bits that `value` overflows to."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def to_float32(value: float) -> float:
    """The single precision number nearest to `value`, infinite where it is out of range."""
    if isinstance(value, int) and abs(value) >= 1 << 53:
        # Going through DOUBLE would round twice; keeping whether anything was cut off (as one
        # low bit) makes the first rounding harmless.
        value = value & ~0x7FF | (0x800 if value & 0x7FF else 0)
    return ctypes.c_float(value).value


_WHOLE = {
    Kind.BYTE: DecimalKind(3, 0),
    Kind.SHORT: DecimalKind(5, 0),
    Kind.INT: DecimalKind(10, 0),
    Kind.LONG: DecimalKind(20, 0),
    Kind.DECIMAL: DecimalKind(38, 0),
}


def _kinds_of(data: Sequence[Datum]) -> list[Any]:
    """The kinds of values that stand beside each other: where one is a DECIMAL, literals are what
    they spell."""
    if not any(isinstance(datum.kind, DecimalKind) for datum in data):
        return [datum.kind for datum in data]
    return [_written_kind(datum) for datum in data]


def _written_kind(datum: Datum) -> Kind | DecimalKind:
    value = datum.value
    if isinstance(value, WrittenFraction):
        return decimals.fraction_kind(value)
    if isinstance(value, WrittenInteger):
        return DecimalKind(len(str(abs(value))), 0)
    return datum.kind


def _as_decimals(kinds: Sequence[Any]) -> list[DecimalKind]:
    """The kinds as those of DECIMALs; none where one is no DECIMAL or whole number."""
    found = [kind if isinstance(kind, DecimalKind) else _WHOLE.get(kind) for kind in kinds]
    return [] if None in found else [kind for kind in found if kind is not None]


def _exact(datum: Datum) -> Decimal | None:
    value = datum.value
    if isinstance(value, WrittenFraction):
        return Decimal(value.text)
    return None if value is None else Decimal(value)


def convert(datum: Datum, kind: Any) -> Any:
    """The value of `datum` widened to `kind`, a TIMESTAMP in microseconds; None stays None."""
    value = datum.value
    if kind is Kind.TIMESTAMP:
        return microseconds(datum)
    if value is None or datum.kind == kind:
        return value
    if isinstance(kind, DecimalKind):
        exact = _exact(datum)
        assert exact is not None
        return decimals.fitted(exact, kind)
    if kind is Kind.FLOAT:
        return to_float32(value)
    if kind is Kind.DOUBLE:
        return float(value)
    return value


def microseconds(datum: Datum) -> int | None:
    """A TIMESTAMP, or the midnight of a DATE, since 1970, and an INTERVAL; None stays None."""
    value = datum.value
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * _DAY
    assert value is None or isinstance(value, int)
    return value


def moment(number: int) -> Any:
    """A TIMESTAMP of microseconds since 1970: where Python has no such time, the number itself."""
    try:
        return _EPOCH + number * _MICROSECOND
    except OverflowError:
        return number


def datum_of(kind: Any, raw: Any) -> Datum:
    """The datum that an event's field of a declared kind holds; dates may be ISO text."""
    if raw is None:
        return Datum(kind, None)
    if isinstance(kind, DecimalKind):
        return Datum(kind, decimals.fitted(Decimal(str(raw)), kind))
    readers: dict[Kind, Callable[[Any], Any]] = {
        Kind.BOOLEAN: bool,
        Kind.BYTE: lambda value: wrap(int(value), 8),
        Kind.SHORT: lambda value: wrap(int(value), 16),
        Kind.INT: lambda value: wrap(int(value), 32),
        Kind.LONG: lambda value: wrap(int(value), 64),
        Kind.FLOAT: lambda value: to_float32(float(value)),
        Kind.DOUBLE: float,
        Kind.STRING: str,
        Kind.TIMESTAMP: _timestamp,
        Kind.TIMESTAMP_NTZ: _timestamp,
        Kind.DATE: _date,
        Kind.INTERVAL: _interval,
        Kind.ARRAY: tuple,
    }
    return Datum(kind, readers[kind](raw))


def _timestamp(raw: Any) -> dt.datetime:
    moment = raw if isinstance(raw, dt.datetime) else dt.datetime.fromisoformat(str(raw))
    # One time zone for all: with and without an offset must be comparable.
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return moment


def _interval(raw: Any) -> int:
    return raw // _MICROSECOND if isinstance(raw, dt.timedelta) else int(raw)


def _date(raw: Any) -> dt.date:
    if isinstance(raw, dt.datetime):
        return raw.date()
    return raw if isinstance(raw, dt.date) else dt.date.fromisoformat(str(raw))


def common_kind(kinds: Sequence[Any]) -> Any:
    """The kind in which values of all these kinds are compared; CelError where there is none."""
    known = [kind for kind in kinds if kind is not Kind.NULL]
    if not known:
        return Kind.NULL
    if any(isinstance(kind, DecimalKind) for kind in known):
        number_kind(*(Datum(kind, None) for kind in known))
        exact = _as_decimals(known)
        return decimals.wider(*exact) if exact else Kind.DOUBLE
    if all(kind in NUMBERS for kind in known):
        return _widest(known)
    if all(kind is known[0] for kind in known):
        return known[0]
    if all(kind in (Kind.DATE, Kind.TIMESTAMP) for kind in known):
        return Kind.TIMESTAMP
    raise CelError("cannot compare " + " with ".join(kind.value for kind in known))


def _order(left: Any, right: Any) -> int:
    """-1, 0 or 1; NaN equals NaN and is larger than every other number."""
    left_nan, right_nan = left != left, right != right
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    return int(left > right) - int(left < right)


def compare(left: Datum, right: Datum) -> int | None:
    """-1, 0 or 1 as `left` is less than, equal to or more than `right`; None where one is NULL."""
    kind = common_kind(_kinds_of([left, right]))
    if left.value is None or right.value is None:
        return None
    one, other = convert(left, kind), convert(right, kind)
    return None if one is None or other is None else _order(one, other)


def in_common(data: Sequence[Datum]) -> tuple[Any, list[Datum]]:
    """The kind that values have in common, and the values in it."""
    kind = common_kind(_kinds_of(data))
    values = [convert(one, kind) for one in data]
    if kind is Kind.TIMESTAMP:
        values = [None if value is None else moment(value) for value in values]
    return kind, [Datum(kind, value) for value in values]


def is_distinct(left: Datum, right: Datum) -> bool:
    """SQL's IS DISTINCT FROM, for which NULL is a value like others."""
    if left.value is None or right.value is None:
        common_kind(_kinds_of([left, right]))
        return left.value is not right.value
    return compare(left, right) != 0


def contains(needle: Datum, items: Sequence[Datum]) -> bool | None:
    """SQL's IN: all sides meet in one common kind; None where only a NULL could have matched."""
    kind = common_kind(_kinds_of([needle, *items]))
    if needle.value is None:
        return None
    wanted = convert(needle, kind)
    present = [convert(item, kind) for item in items if item.value is not None]
    if any(_order(wanted, item) == 0 for item in present):
        return True
    return None if len(present) < len(items) else False


def number_kind(*data: Datum) -> Kind:
    """The wider kind of these numbers, of DECIMALs DOUBLE; CelError where one is no number."""
    kinds = [datum.kind for datum in data if datum.kind is not Kind.NULL]
    for kind in kinds:
        if kind not in NUMBERS and not isinstance(kind, DecimalKind):
            raise CelError(f"{kind.value} is not a number")
    plain = [Kind.DOUBLE if isinstance(kind, DecimalKind) else kind for kind in kinds]
    return _widest(plain) if plain else Kind.NULL


def _widest(kinds: Sequence[Kind]) -> Kind:
    # What a DECIMAL and a FLOAT have in common is DOUBLE.
    if Kind.DECIMAL in kinds and Kind.FLOAT in kinds:
        return Kind.DOUBLE
    return max(kinds, key=NUMBERS.index)


def fit(kind: Any, value: Any) -> Datum:
    """A result of arithmetic in `kind`: wrapped or rounded as the kind asks, NULL where a time (in
    microseconds) has more than 64 bits."""
    if kind in _BITS:
        return Datum(kind, wrap(value, _BITS[kind]))
    if kind is Kind.FLOAT:
        return Datum(kind, to_float32(value))
    if kind in (Kind.TIMESTAMP, Kind.INTERVAL):
        if wrap(value, 64) != value:
            return Datum(kind, None)
        return Datum(kind, moment(value) if kind is Kind.TIMESTAMP else value)
    return Datum(kind, value)


def arithmetic(operator: str, left: Datum, right: Datum) -> Datum:
    """`left operator right` for `+ - * / %`; NULL for division and remainder by zero."""
    if any(datum.kind in (*_MOMENTS, Kind.INTERVAL) for datum in (left, right)):
        return _of_times(operator, left, right)
    kinds = _kinds_of([left, right])
    if any(isinstance(one, DecimalKind) for one in kinds):
        known = next(one for one in kinds if isinstance(one, DecimalKind))
        exact = _as_decimals([known if one is Kind.NULL else one for one in kinds])
        if exact:
            sides: Any = (_exact(left), _exact(right))
            return Datum(*decimals.result(operator, *sides, (exact[0], exact[1])))
    kind = number_kind(left, right)
    if operator == "/":
        kind = Kind.DOUBLE
    if left.value is None or right.value is None:
        return Datum(kind, None)
    a, b = convert(left, kind), convert(right, kind)
    if operator == "+":
        return fit(kind, a + b)
    if operator == "-":
        return fit(kind, a - b)
    if operator == "*":
        return fit(kind, a * b)
    if b == 0:
        return Datum(kind, None)
    if operator == "/":
        return Datum(kind, a / b)
    return fit(kind, _remainder(a, b))


def _remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend."""
    if isinstance(a, int):
        return a - b * (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    if math.isinf(a) or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


_KINDS_OF_TIMES = {
    ("-", Kind.TIMESTAMP, Kind.TIMESTAMP): Kind.INTERVAL,
    ("+", Kind.TIMESTAMP, Kind.INTERVAL): Kind.TIMESTAMP,
    ("+", Kind.INTERVAL, Kind.TIMESTAMP): Kind.TIMESTAMP,
    ("-", Kind.TIMESTAMP, Kind.INTERVAL): Kind.TIMESTAMP,
    ("+", Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
    ("-", Kind.INTERVAL, Kind.INTERVAL): Kind.INTERVAL,
    ("*", Kind.INTERVAL, Kind.LONG): Kind.INTERVAL,
    ("*", Kind.LONG, Kind.INTERVAL): Kind.INTERVAL,
}
_READ_AS = {
    Kind.DATE: Kind.TIMESTAMP,
    **dict.fromkeys((*WHOLE_NUMBERS, Kind.DECIMAL), Kind.LONG),
}


def _of_times(operator: str, left: Datum, right: Datum) -> Datum:
    """Arithmetic with a TIMESTAMP, DATE or INTERVAL on some side; NULL beyond 64 bits.

    The literal NULL is of the first kind that makes sense beside the other side.
    """
    kinds = [_READ_AS.get(datum.kind, datum.kind) for datum in (left, right)]
    fitting = [
        result
        for (sign, *wanted), result in _KINDS_OF_TIMES.items()
        if sign == operator
        and all(one in (Kind.NULL, other) for one, other in zip(kinds, wanted, strict=True))
    ]
    if not fitting:
        raise CelError(f"{left.kind.value} {operator} {right.kind.value} has no meaning")
    kind = fitting[0]
    a, b = microseconds(left), microseconds(right)
    if a is None or b is None:
        return Datum(kind, None)
    return fit(kind, a * b if operator == "*" else a + b if operator == "+" else a - b)


def negate(datum: Datum) -> Datum:
    """Unary minus; the smallest whole number of a kind is its own negative."""
    if datum.kind is Kind.INTERVAL:
        return arithmetic("-", Datum(Kind.INTERVAL, 0), datum)
    number_kind(datum)
    if isinstance(datum.value, Decimal):  # `-` rounds
        return Datum(datum.kind, datum.value.copy_negate())
    return datum if datum.value is None else fit(datum.kind, -datum.value)


def absolute(datum: Datum) -> Datum:
    """ABS; the smallest whole number of a kind stays what it is."""
    if datum.kind is Kind.INTERVAL:
        return datum if datum.value is None or datum.value >= 0 else negate(datum)
    number_kind(datum)
    if isinstance(datum.value, Decimal):
        return Datum(datum.kind, datum.value.copy_abs())
    return datum if datum.value is None else fit(datum.kind, abs(datum.value))


def aggregate(function: str, kind: Any, data: Sequence[Datum]) -> Datum:
    """FIRST, LAST, MIN, MAX, SUM, AVG, VARIANCE, STDDEV, MEDIAN, DISTINCT (the count of distinct
    values) or COLLECT of values of one kind, in stream order.

    NULL where nothing is left to aggregate. COLLECT gives a tuple of all values, NULLs too, so that
    those of two attributes go together.
    """
    if function in ("FIRST", "LAST"):
        if not data:
            return Datum(kind, None)
        return data[0] if function == "FIRST" else data[-1]
    if function == "COLLECT":
        return Datum(kind, tuple(datum.value for datum in data))
    values = [datum.value for datum in data if datum.value is not None]
    if function in ("MIN", "MAX"):
        choose = min if function == "MIN" else max
        largest = choose(values, key=functools.cmp_to_key(_order)) if values else None
        return Datum(kind, largest)
    if function == "DISTINCT":
        distinct = {"NaN" if value != value else value for value in values}
        return Datum(Kind.LONG, len(distinct))
    if function == "MEDIAN":
        if kind is Kind.INTERVAL:
            middle = _median(values)
            # As Java makes a whole number of a DOUBLE.
            ends = -(2**63), 2**63 - 1
            found = None if middle is None else min(max(int(middle), ends[0]), ends[1])
            return Datum(kind, found)
        number_kind(Datum(kind, None))
        return Datum(Kind.DOUBLE, _median(values))
    if function in ("VARIANCE", "STDDEV"):
        number_kind(Datum(kind, None))
        variance = _variance(values)
        if variance is not None and function == "STDDEV":
            variance = math.sqrt(variance)
        return Datum(Kind.DOUBLE, variance)
    if kind is Kind.INTERVAL:
        if not values:
            return Datum(kind, None)
        total = sum(values)
        if function == "AVG":
            total = abs(total) // len(values) * (1 if total >= 0 else -1)
        return fit(kind, total)
    number_kind(Datum(kind, None))
    if isinstance(kind, DecimalKind):
        of = decimals.mean_of if function == "AVG" else decimals.sum_of
        return Datum(*of(values, kind))
    if function == "AVG":
        return Datum(Kind.DOUBLE, _sum_of_doubles(values) / len(values) if values else None)
    if kind in WHOLE_NUMBERS:
        return Datum(Kind.LONG, wrap(sum(values), 64) if values else None)
    return Datum(Kind.DOUBLE, _sum_of_doubles(values) if values else None)


def _sum_of_doubles(values: Sequence[float]) -> float:
    # Not sum(): newer versions of Python compensate rounding errors there, a plain fold does not.
    return functools.reduce(lambda total, value: total + float(value), values, 0.0)


def _median(values: Sequence[Any]) -> float | None:
    """The value in the middle as a DOUBLE, or half of each of the two in the middle."""
    if not values:
        return None
    ordered = sorted(values, key=functools.cmp_to_key(_order))
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(low) if _order(low, high) == 0 else 0.5 * float(low) + 0.5 * float(high)


def _variance(values: Sequence[Any]) -> float | None:
    """The variance of a sample, from the first value on, mean and squares at once, as in Spark."""
    if len(values) < 2:
        return None
    mean = squares = 0.0
    for count, value in enumerate(map(float, values), start=1):
        step = value - mean
        mean += step / count
        squares += step * (step - step / count)
    return squares / (len(values) - 1)


@functools.lru_cache(maxsize=256)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None or escaped not in "\\%_":
                raise CelError(f"LIKE: a backslash stands only before \\, % or _: {pattern!r}")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


def like(text: Datum, pattern: Datum) -> bool | None:
    """SQL's LIKE over the whole text, with backslash as the escape."""
    _texts(text, pattern)
    if text.value is None or pattern.value is None:
        return None
    return _like_pattern(pattern.value).fullmatch(text.value) is not None


def rlike(text: Datum, pattern: Datum) -> bool | None:
    """Whether the regular expression is found anywhere in the text."""
    _texts(text, pattern)
    if text.value is None or pattern.value is None:
        return None
    return re.search(pattern.value, text.value) is not None


def _texts(*data: Datum) -> None:
    for datum in data:
        if datum.kind not in (Kind.STRING, Kind.NULL):
            raise CelError(f"LIKE and RLIKE take text, not {datum.kind.value}")

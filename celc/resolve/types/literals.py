"""Literals: the values of numbers, times and durations in the text. Each function returns None
where the literal has no value, after reporting it."""

import datetime
import math
import re
from fractions import Fraction

from celc.core.formula import Constant, DataType
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import clauses, types
from celc.diagnostics.source import Source
from celc.parse import syntax

_EPOCH = datetime.datetime(1970, 1, 1)
_DIGITS = re.compile(r"[0-9]+\.[0-9]+")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    _DATE.pattern
    + r"(?:[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    + r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
# The largest offset that Spark and java.time know.
_MAX_ZONE_MINUTES = 18 * 60

MICROSECONDS = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
# no window and no limit is larger, so that adding one to a position cannot overflow
LARGEST_SIZE = 2**62


def integer(node: syntax.IntegerLiteral | syntax.Negation, value: int) -> Constant | None:
    """A whole number: INT where 32 bits hold it, else LONG."""
    for data_type, bits in ((DataType.INT, 31), (DataType.LONG, 63)):
        if -(1 << bits) <= value < 1 << bits:
            return Constant(value, data_type, node.span)
    return None


def double(node: syntax.DoubleLiteral, found: Diagnostics) -> Constant | None:
    """A number with a point or an exponent."""
    if math.isinf(node.value):
        found.add(types.double_range(node.span))
        return None
    text = found.source.slice(node.span).strip("() \t\r\n")
    return Constant(
        node.value, DataType.DOUBLE, node.span, text if _DIGITS.fullmatch(text) else None
    )


def time(node: syntax.TimeLiteral, found: Diagnostics) -> Constant | None:
    """`TIMESTAMP '…'` in microseconds, or `DATE '…'` in days, since 1970-01-01 UTC."""
    pattern = _DATE if node.kind == "DATE" else _TIMESTAMP
    text = pattern.fullmatch(node.text.value)
    if text is None:
        found.add(types.invalid_time(node.kind, "it has another form", node.text.span))
        return None
    try:
        moment = _moment(text)
    except ValueError:
        reason = "the calendar or the clock does not have it"
        found.add(types.invalid_time(node.kind, reason, node.text.span))
        return None
    if node.kind == "DATE":
        return Constant((moment - _EPOCH).days, DataType.DATE, node.span)
    microseconds = (moment - _EPOCH) // datetime.timedelta(microseconds=1)
    if text[8] not in (None, "Z"):
        hours, minutes = int(text[8][1:3]), int(text[8][4:6])
        if minutes > 59 or hours * 60 + minutes > _MAX_ZONE_MINUTES:
            reason = "zones lie between -18:00 and +18:00"
            found.add(types.invalid_time(node.kind, reason, node.text.span))
            return None
        shift = (hours * 60 + minutes) * MICROSECONDS["MINUTE"]
        microseconds += shift if text[8][0] == "-" else -shift
    return Constant(microseconds, DataType.TIMESTAMP, node.span)


def _moment(text: re.Match[str]) -> datetime.datetime:
    year, month, day = (int(text[k]) for k in (1, 2, 3))
    if text.re is _DATE or text[4] is None:
        return datetime.datetime(year, month, day)
    hour, minute, second = (int(text[k]) for k in (4, 5, 6))
    microsecond = int((text[7] or "0").ljust(6, "0"))
    return datetime.datetime(year, month, day, hour, minute, second, microsecond)


def interval(node: syntax.DurationLiteral, found: Diagnostics) -> Constant | None:
    """`1 HOUR 30 MINUTES`, in microseconds."""
    total = _microseconds(node.parts, found.source)
    if total is None or total >= 1 << 63:
        found.add(types.interval_range(node.span))
        return None
    if total.denominator != 1:
        found.add(clauses.fraction_of_microsecond(node.span))
        return None
    return Constant(int(total), DataType.INTERVAL, node.span)


def duration(parts: tuple[syntax.DurationPart, ...], found: Diagnostics) -> int | None:
    """A duration of WITHIN in microseconds."""
    span = parts[0].span.to(parts[-1].span)
    total = _microseconds(parts, found.source)
    if total is None or total > LARGEST_SIZE:
        found.add(clauses.window_too_large(span))
        return None
    if total.denominator != 1:
        found.add(clauses.fraction_of_microsecond(span))
        return None
    return int(total)


def _microseconds(parts: tuple[syntax.DurationPart, ...], source: Source) -> Fraction | None:
    """The exact sum of the parts; None where one is infinite."""
    total: Fraction | None = Fraction(0)
    for part in parts:
        if total is None or math.isinf(part.amount.value):
            total = None
        else:
            total += _exact(part.amount, source) * MICROSECONDS[part.unit.text.removesuffix("S")]
    return total


def _exact(amount: syntax.IntegerLiteral | syntax.DoubleLiteral, source: Source) -> Fraction:
    if isinstance(amount, syntax.IntegerLiteral):
        return Fraction(amount.value)
    if 1e-30 < amount.value < 1e30:
        # The digits of the text, which the binary value only approximates.
        return Fraction(source.slice(amount.span))
    return Fraction(repr(amount.value))

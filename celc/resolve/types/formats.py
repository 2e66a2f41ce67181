"""`TO_DATE(text, format)` and `TO_TIMESTAMP(text, format)`, by Spark's patterns.

A format becomes a regular expression with a group for each field. The groups are joined in the
order of ISO 8601, which CAST reads. So a format is no function of its own: what a route can do with
REGEXP_EXTRACT and CAST, it can do with formats. Rejected: Spark's own functions, which read texts
in the session's zone, by settings of the session, and end a query in ANSI mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import functions as messages
from celc.diagnostics.source import Span

_TWO, _SHORT = "([0-9]{2})", "0*([0-9]{1,2})"
_FIELDS = {
    "yyyy": ("year", "(-?[0-9]{4}|[+-][0-9]{5,6})"),
    "yy": ("century", _TWO),
    **dict.fromkeys(("MM", "dd", "HH", "mm", "ss"), ("", _TWO)),
    **dict.fromkeys(("M", "d", "H", "m", "s"), ("", _SHORT)),
    "hh": ("half", "(0[1-9]|1[0-2])"),
    "h": ("half", "0*(0?[1-9]|1[0-2])"),
    "a": ("noon", "([AaPp][Mm])"),
}
"""The fields by their letters: what they are, where it is not what their letter says, and how they
are written."""
_NAMES = {"M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "fraction"}
_MOST_FRACTION = 9  # digits

_PARTS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'])", re.DOTALL)


def by_format(
    text: core.Expression,
    format: core.Constant,
    type: core.DataType,
    zone: str,
    span: Span,
    found: Diagnostics,
) -> core.Expression | None:
    """The date or time, a `type`, that a text says in a format; in `zone`. None after an error."""
    if format.value is None:
        return core.Constant(None, type, span)
    read = _read(str(format.value), format.span, found)
    if read is None:
        return None
    regex, fields = read
    string = core.DataType.STRING

    def group(number: int) -> core.Expression:
        given = core.Constant(regex, string, span), core.Constant(number, core.DataType.INT, span)
        return core.Call("REGEXP_EXTRACT", (text, *given), string, None, span)

    groups = {name: group(place) for place, name in enumerate(fields, 1)}
    pieces = [
        core.Constant(one, string, span) if isinstance(one, str) else one
        for one in _iso(groups, span)
    ]
    iso = core.Call("CONCAT", tuple(pieces), string, None, span)
    time: core.Expression = core.Call("CAST", (iso,), core.DataType.TIMESTAMP, zone, span)
    if type is core.DataType.DATE:
        time = core.Call("CAST", (time,), type, "UTC", span)
    fits = core.Comparison("!=", group(0), core.Constant("", string, span), span)
    return core.Conditional(((fits, time),), core.Constant(None, type, span), type, span)


def _iso(groups: dict[str, core.Expression], span: Span) -> Iterator[core.Expression | str]:
    """The pieces of a text that CAST AS TIMESTAMP reads. What the format lacks is 1970-01-01
    00:00:00."""
    if "century" in groups:
        yield "20"
    yield groups.get("century", groups.get("year", "1970"))
    yield "-"
    yield groups.get("month", "01")
    yield "-"
    yield groups.get("day", "01")
    yield " "
    half = groups.get("half")
    yield groups.get("hour", "00") if half is None else _of_half(half, groups.get("noon"), span)
    yield ":"
    yield groups.get("minute", "00")
    yield ":"
    yield groups.get("second", "00")
    if "fraction" in groups:
        yield "."
        yield groups["fraction"]


def _of_half(half: core.Expression, noon: core.Expression | None, span: Span) -> core.Expression:
    """The hour of the day of an hour from 1 to 12, before noon without a word."""
    whole, string = core.DataType.INT, core.DataType.STRING

    def number(value: int) -> core.Constant:
        return core.Constant(value, whole, span)

    hour: core.Expression = core.Call("CAST", (half,), whole, "UTC", span)
    hour = core.Arithmetic("%", hour, number(12), whole, span)
    if noon is not None:
        upper = core.Call("UPPER", (noon,), string, None, span)
        after = core.Comparison("=", upper, core.Constant("PM", string, span), span)
        added = core.Conditional(((after, number(12)),), number(0), whole, span)
        hour = core.Arithmetic("+", hour, added, whole, span)
    return core.Call("CAST", (hour,), string, "UTC", span)


def _read(format: str, span: Span, found: Diagnostics) -> tuple[str, list[str]] | None:
    """The regular expression of a format, and the names of its groups; None after an error."""
    regex, names, at = "^", list[str](), 0
    is_number = is_open = False  # whether digits stand before, and whether their number is open
    while at < len(format):
        part = _PARTS.match(format, at)
        if part is None:
            found.add(messages.format_of_time("sign", format, "'", span))
            return None
        at = part.end()
        quoted, letter, sign = part[1], part[2], part[3]
        if sign is not None and sign in "[]#{}":
            found.add(messages.format_of_time("sign", format, sign, span))
            return None
        if letter is None:
            literal = sign if quoted is None else (quoted.replace("''", "'") or "'")
            if is_open and literal[0] in "0123456789":
                found.add(messages.format_of_time("end", format, part[0], span))
                return None
            regex += "".join(map(_either, literal))
            is_number = is_open = False
            continue
        field = _field(part[0])
        if field is None or field[0] in names or {field[0], *names} >= {"year", "century"}:
            problem: messages.FormatProblem = "unknown" if field is None else "again"
            found.add(messages.format_of_time(problem, format, part[0], span))
            return None
        name, written = field
        # Spark reads no digits of a fraction that stand directly behind others.
        if (is_open and name != "noon") or (is_number and name == "fraction"):
            found.add(messages.format_of_time("end", format, part[0], span))
            return None
        is_number = name != "noon"
        is_open = name == "fraction" or (is_number and len(part[0]) == 1)
        regex += written
        names.append(name)
    if not names:
        found.add(messages.format_of_time("empty", format, "", span))
        return None
    if ("half" in names and "hour" in names) or ("noon" in names and "half" not in names):
        found.add(messages.format_of_time("hours", format, "", span))
        return None
    return rf"{regex}\z", names


def _field(letters: str) -> tuple[str, str] | None:
    """The name of a field and how it is written; None: there is none with these letters."""
    if letters[0] == "S" and len(letters) <= _MOST_FRACTION:
        return "fraction", f"([0-9]{{1,{len(letters)}}})"
    if letters not in _FIELDS:
        return None
    name, written = _FIELDS[letters]
    return name or _NAMES[letters[0]], written


def _either(sign: str) -> str:
    """A character of a format: letters in any case, as Spark reads them."""
    if sign.isascii() and sign.isalpha():
        return f"[{sign.upper()}{sign.lower()}]"
    return re.escape(sign) if sign.isascii() else sign

"""Syntax errors in durations of conditions and of SELECT: `5 MINTUES`, `INTERVAL '5' DAY`.

Each function returns its message about a place, or None where its case does not apply. `windows`
has the durations of WITHIN.
"""

from celc.diagnostics.errors import Diagnostic, Fix, error
from celc.diagnostics.source import Span
from celc.parse.durations import in_units, is_calendar, spelled
from celc.parse.mistakes.place import Place, described
from celc.parse.mistakes.windows import clock_time
from celc.parse.tokens import is_unit

_AMOUNTS = ("INTEGER", "DOUBLE")
_WORDS = ("NAME", "ATTRIBUTE", "UNIT")
UNITS = "units are MILLISECONDS, SECONDS, MINUTES, HOURS and DAYS"
_FINER = {"DAY": "HOURS", "HOUR": "MINUTES", "MINUTE": "SECONDS", "SECOND": "MILLISECONDS"}


def interval_literal(place: Place) -> Diagnostic | None:
    """`INTERVAL 5 MINUTES`, `INTERVAL '5' MINUTE` and `INTERVAL '5 minutes'`."""
    if place.before not in _WORDS or place.previous.text.upper() != "INTERVAL":
        return None
    if place.found.type not in (*_AMOUNTS, "TEXT"):
        return None
    tokens, end = place.tokens, place.index
    while tokens[end].type in (*_AMOUNTS, "TEXT") or (
        tokens[end].type in _WORDS and tokens[end - 1].type in (*_AMOUNTS, "TEXT")
    ):
        end += 1
    words = " ".join(token.text.strip("'") for token in tokens[place.index : end])
    mended = spelled(words)
    span = place.span(place.index - 1, end)
    return error(
        "interval-literal",
        span,
        "a duration is written without INTERVAL",
        f"write {mended}" if mended else "write it as in 5 MINUTES",
        UNITS,
        fixes=[Fix(span, mended)] if mended else [],
    )


def near_unit(place: Place) -> Diagnostic | None:
    """`5 MINTUES`, `5 MIN.` and `2 MONTHS`: a word after a number that is nearly a unit of time."""
    if place.before not in _AMOUNTS or place.found.type != "NAME" or not place.accepts("UNIT"):
        return None
    number, unit = place.previous.text, place.found.text
    mended = in_units(number, unit)
    calendar = is_calendar(unit)
    if not calendar and (mended is None or mended.endswith("EVENTS")):
        return None
    dotted = place.following.type == "DOT" and place.following.start == place.found.end
    span = place.span(place.index - 1, place.index + 1 + dotted)
    hints = [UNITS]
    if mended is not None:
        plural = unit.lower().removesuffix("s") + "s"
        advice = f"{plural} differ in length; in days: {mended}" if calendar else None
        hints = [advice or f"write {mended}", UNITS]
    message = f"'{unit}' is not a unit of time"
    fixes = [Fix(span, mended)] if mended else []
    return error("unknown-unit", place.found.span, message, *hints, fixes=fixes)


def missing_unit(place: Place) -> Diagnostic | None:
    """`1 HOUR 30`."""
    if place.before not in _AMOUNTS or not place.accepts("UNIT"):
        return None
    before = place.tokens[max(place.start, place.index - 2)]
    if before.type != "UNIT":
        return None
    number, span = place.previous.text, place.previous.span
    finer = _FINER.get(before.text.upper().removesuffix("S"))
    mended = f"{number} {finer}" if finer else None
    return error(
        "missing-unit",
        span,
        f"no unit says what {number} counts",
        f"write {mended}" if mended else "write a unit after it",
        UNITS,
        fixes=[Fix(span, mended)] if mended else [],
    )


def joined_parts(place: Place) -> Diagnostic | None:
    """`1 HOUR, 30 MINUTES` and `1 HOUR AND 30 MINUTES`."""
    tokens, sign = place.tokens, place.index
    if place.found.type != "COMMA":
        sign = place.index - 3
        if sign <= place.start or not _ends(place, sign) or not place.wants_comparison:
            return None
    if tokens[sign - 1].type != "UNIT" or tokens[sign + 1].type not in _AMOUNTS:
        return None
    if not is_unit(place.token(sign + 2)):
        return None
    parts = f"{tokens[sign - 2].text} {tokens[sign - 1].text} {tokens[sign + 1].text}"
    message = f"{described(tokens[sign])} cannot stand in a duration"
    hint = f"leave it out: {parts} {tokens[sign + 2].text}"
    fixes = [Fix(tokens[sign].span, "")]
    return error("misplaced-sign", tokens[sign].span, message, hint, fixes=fixes)


def _ends(place: Place, index: int) -> bool:
    """Whether three tokens are `AND` and one duration."""
    conjunction, amount, unit = (token.type for token in place.tokens[index : place.index])
    return conjunction == "AND" and amount in _AMOUNTS and unit == "UNIT"


def clock(place: Place) -> Diagnostic | None:
    """`c.ts - v.ts < 00:05:00`."""
    if place.found.type != "COLON" or place.before != "INTEGER" or not place.accepts("UNIT"):
        return None
    mended, end = clock_time(place)
    if mended is None:
        return None
    span = Span(place.previous.start, place.tokens[end - 1].end)
    message = "a duration is written in units of time, not as a clock shows it"
    fixes = [Fix(span, mended)]
    return error("clock-duration", span, message, f"write {mended}", UNITS, fixes=fixes)

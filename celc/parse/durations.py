"""Durations as people write them, and the same durations in the words of the language."""

import re
from difflib import get_close_matches

_UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
UNITS = frozenset(_UNITS) | {unit.removesuffix("S") for unit in _UNITS}
"""The spellings of units of time."""

_SHORT = {
    "MS": "MILLISECONDS",
    "MILLI": "MILLISECONDS",
    "MILLIS": "MILLISECONDS",
    "MSEC": "MILLISECONDS",
    "S": "SECONDS",
    "SEC": "SECONDS",
    "SECS": "SECONDS",
    "M": "MINUTES",
    "MIN": "MINUTES",
    "MINS": "MINUTES",
    "H": "HOURS",
    "HR": "HOURS",
    "HRS": "HOURS",
    "D": "DAYS",
}
# Units of the calendar, in days. Those above a week differ in length.
_IN_DAYS = {"W": 7, "WEEK": 7, "FORTNIGHT": 14, "MONTH": 30, "QUARTER": 91, "YEAR": 365}
_EVENTS = ("EVENT", "EVENTS", "ROW", "ROWS", "TUPLES", "MESSAGES", "EVNTS")

# Two swapped letters are more likely than another unit.
_LIKENESS = 0.7
_LONGEST = 100


def in_units(number: str, unit: str) -> str | None:
    """A number and a word as the language writes them (`5`, `min` → `5 MINUTES`), or None."""
    word = unit.upper()
    days = _IN_DAYS.get(word) or _IN_DAYS.get(word.removesuffix("S"))
    if days is not None:
        return f"{int(number) * days} DAYS" if number.isdecimal() else None
    known = unit_of(word)
    if known is not None and known != "EVENTS":
        known = known.removesuffix("S") + ("" if number == "1" else "S")
    return None if known is None else f"{number} {known}"


def unit_of(word: str) -> str | None:
    """The unit that a word in capitals means or nearly spells; None for other words."""
    if word in _SHORT:
        return _SHORT[word]
    if word in UNITS:
        return word
    singular = [unit.removesuffix("S") for unit in _UNITS]
    close = get_close_matches(word, [*_UNITS, *singular, *_EVENTS], 1, _LIKENESS)
    if not close:
        return None
    return "EVENTS" if close[0] in _EVENTS else close[0]


def is_calendar(unit: str) -> bool:
    """Whether the length of a unit varies: months, quarters, years."""
    return _IN_DAYS.get(unit.upper().removesuffix("S"), 0) > 14


def spelled(text: str) -> str | None:
    """A duration in another notation: `1h30m`, `5 min`, `00:05:00`, `PT5M`; None for anything else.
    Commas and AND may stand between its parts."""
    text = text.strip().upper()
    if len(text) > _LONGEST:
        return None
    clock = re.fullmatch(r"(\d+):(\d\d)(?::(\d\d))?", text)
    if clock:
        units = ("HOURS", "MINUTES", "SECONDS")
        parts = [(int(n or 0), unit) for n, unit in zip(clock.groups(), units, strict=True)]
        return _joined(
            [f"{n} {unit.removesuffix('S') if n == 1 else unit}" for n, unit in parts if n]
        )
    if re.fullmatch(r"P(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?", text) and len(text) > 2:
        text = text[1:].replace("T", " ").strip()
    pieces = re.fullmatch(r"(?:\d+(?:\.\d+)?\s*[A-Z]+(?:\s*,\s*|\s+AND\s+|\s+)?)+", text)
    if not pieces:
        return None
    text = re.sub(r"\bAND\b", " ", text)
    found = [in_units(number, unit) for number, unit in re.findall(r"([\d.]+)\s*([A-Z]+)", text)]
    if not found or any(one is None for one in found):
        return None
    return _joined([one for one in found if one is not None])


def _joined(parts: list[str]) -> str | None:
    if any(part.endswith("EVENTS") for part in parts) and len(parts) > 1:
        return None
    return " ".join(parts) or None

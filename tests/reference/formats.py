"""Texts of times in a format, as Spark's patterns say, read from left to right."""

from __future__ import annotations

import datetime as dt
import itertools

_DIGITS = "0123456789"


def clock(text: str, format: str) -> dt.datetime | None:
    """What clocks show at the time that a text says in a format; None: it says none."""
    found: dict[str, int] = {"y": 1970, "M": 1, "d": 1, "H": 0, "m": 0, "s": 0, "S": 0}
    parts = _parts(format)
    for letters, is_field in parts:
        if not is_field:
            if text[: len(letters)].lower() != letters.lower():
                return None
            text = text[len(letters) :]
            continue
        letter, width = letters[0], len(letters)
        if letter == "a":
            word, text = text[:2].upper(), text[2:]
            if word not in ("AM", "PM"):
                return None
            found["a"] = 12 if word == "PM" else 0
            continue
        digits = "".join(itertools.takewhile(_DIGITS.__contains__, text))
        most = {"S": width}.get(letter, width if width > 1 else 19)
        digits = digits[:most]
        if not digits or (letter != "S" and len(digits) < width):
            return None
        text = text[len(digits) :]
        number = int(digits)
        if letter == "S":
            number = int(f"{digits:0<9}") // 1000
        found[letter] = 2000 + number if letters == "yy" else number
    if text:
        return None
    if "h" in found:
        if not 1 <= found["h"] <= 12:
            return None
        found["H"] = found["h"] % 12 + found.get("a", 0)
    try:
        return dt.datetime(*(found[letter] for letter in "yMdHmsS"))
    except ValueError:
        return None


def _parts(format: str) -> list[tuple[str, bool]]:
    """Fields and signs of a format, and whether each is a field."""
    found: list[tuple[str, bool]] = []
    while format:
        letter = format[0]
        if letter == "'":
            end = format.index("'", 1)
            found.append((format[1:end] or "'", False))
            format = format[end + 1 :]
            continue
        run = len(format) - len(format.lstrip(letter)) if letter.isalpha() else 1
        found.append((format[:run], letter.isalpha()))
        format = format[run:]
    return found

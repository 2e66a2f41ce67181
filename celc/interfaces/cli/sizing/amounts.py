"""Amounts as the command line has them: `5e9/day`, `2e7`, a share, and their words."""

from __future__ import annotations

import argparse
from typing import NamedTuple

SECONDS = {"s": 1.0, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0}


class Rows(NamedTuple):
    """A number of rows, and the seconds in which as many come; None: that is not said."""

    number: float
    unit: str
    seconds: float | None


def rows_of(text: str) -> Rows:
    """Reads `5e9`, `5e9/day`."""
    number, slash, unit = text.partition("/")
    if slash and unit not in SECONDS:
        raise argparse.ArgumentTypeError(
            f"'{text}': rows come each {', '.join(SECONDS)}: as in 5e9/day, or 5e9 without a unit"
        )
    count = _number(number)
    if count is None or count < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of rows: give one of 1 or more, as in 5e9/day"
        )
    return Rows(count, unit, SECONDS[unit] if slash else None)


def count_of(text: str) -> float:
    """Reads a number of 1 or more."""
    found = _number(text)
    if found is None or found < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of 1 or more, as in 2e7")
    return found


def rate_of(text: str) -> float:
    """Reads a number of 0 or more."""
    found = _number(text)
    if found is None or found < 0:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of matches for each row: give 0 or more, as in 0.001"
        )
    return found


def share_of(text: str) -> float:
    """Reads a part of a whole, as 0.1."""
    found = _number(text)
    if found is None or not 0 < found <= 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no part of the rows: give a number above 0, up to 1"
        )
    return found


def length_of(text: str) -> float:
    """Reads a number above 0, of hours or seconds."""
    found = _number(text)
    if found is None or found <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no length of time: give a number above 0")
    return found


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if found < 1e18 else None


def shown(number: float) -> str:
    """A number for people: three digits of it."""
    if number >= 1e6:
        power = len(f"{number:.0f}") - 1
        return (
            f"{number / 10**power:.3g}e{power}" if power > 8 else f"{float(f'{number:.3g}'):,.0f}"
        )
    return f"{float(f'{number:.3g}'):,.10g}"


def bytes_shown(number: float) -> str:
    """Bytes in a unit that leaves up to three digits before the point."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    place = 0
    while number >= 1000 and place < len(units) - 1:
        number, place = number / 1024, place + 1
    return f"{float(f'{number:.3g}'):g} {units[place]}"


def seconds_shown(number: float) -> str:
    """Seconds, minutes, hours or days."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if number < limit:
            return f"{float(f'{number / size:.3g}'):g} {unit}"
    return f"{float(f'{number / 86_400:.3g}'):,.10g} days"

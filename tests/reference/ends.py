"""Absences at the end: where they can stand, and when a match with one is decided.

A formula with such absences is an OR of formulas with one or none. What stands around the OR (AS,
renaming, PROJECT, FILTER, windows) changes neither the start nor the end of a match, so each match
of one of these formulas is decided by its own absence.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import nodes as n
from .conditions import Row
from .lasting import Axis
from .values import CelError
from .windows import measured_on


@dataclass(frozen=True)
class Alternative:
    """One of the formulas of the OR: `length` is that of its absence, from the match's end, or with
    `from_start` from its start; None: it has none."""

    formula: n.Formula
    length: n.Window | None
    from_start: bool = False


def alternatives(formula: n.Formula, window: n.Window | None) -> list[Alternative]:
    """The formulas of which a formula is the OR; `window`: that of the query.

    CelError where an absence at the end stands where it cannot.
    """
    match formula:
        case n.NotAfter():
            _check_none(formula.body)
            _check_none(formula.absent)
            length = formula.window or window
            if length is None:
                raise CelError("an absence at the end needs FOR, or a window of the query")
            return [Alternative(formula, length, formula.window is None)]
        case n.Or():
            return [
                *alternatives(formula.left, window),
                *alternatives(formula.right, window),
            ]
        case n.As() | n.Rename() | n.Project() | n.Filter() | n.Within():
            return [
                replace(one, formula=replace(formula, body=one.formula))
                for one in alternatives(formula.body, window)
            ]
        case _:
            _check_none(formula)
            return [Alternative(formula, None)]


def has_absence(formula: n.Formula) -> bool:
    """Whether an absence at the end stands anywhere in the formula."""
    return any(isinstance(part, n.NotAfter) for part in n.parts_of(formula))


def _check_none(formula: n.Formula) -> None:
    if has_absence(formula):
        raise CelError("an absence at the end of a part")


# --- times ----------------------------------------------------------------------------------------


def is_on(column: str | None, length: n.Window) -> bool:
    """Whether a length is measured on the first order column."""
    return column is not None and measured_on(length, column) == column


def passes(value: Any, length: n.Window) -> Any:
    """A value with a length added."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        size = length.size / 86_400_000_000 if length.unit == "TIME" else length.size
        return value + dt.timedelta(days=int(size))
    if length.unit == "TIME":
        return value + dt.timedelta(microseconds=int(length.size))
    if isinstance(value, dt.datetime):
        raise CelError("a number is no length of times")
    return value + length.size


def known_clock(clock: Any, ways: Sequence[Alternative]) -> Any:
    """The time up to which all rows of a query are known, by the clock that decides its matches: a
    row is known when its absence is certain."""
    lengths = [one.length for one in ways if one.length is not None]
    return min((passes(clock, replace(one, size=-one.size)) for one in lengths), default=clock)


def is_decided(
    one: Alternative,
    start: int,
    end: int,
    rows: Sequence[Row],
    column: str | None,
    clock: Any,
    axis: Axis | None,
) -> bool:
    """Whether nothing that could still come can undo a match; `clock`: the greatest value of the
    first order column, `column`; `axis`: that of events that last, where start and end are its
    places."""
    length = one.length
    if length is None:
        return True
    place = start if one.from_start else end
    attribute = measured_on(length, column)
    if attribute is None:
        return len(rows) > place + length.size
    limit = passes(axis.time(place) if axis else rows[place].values[attribute].value, length)
    if is_on(column, length):
        return bool(clock > limit)
    return any(row.values[attribute].value > limit for row in rows)


def decided_time(
    one: Alternative, start: int, end: int, rows: Sequence[Row], column: str, axis: Axis | None
) -> Any:
    """The time after which a match is decided; `axis` as above."""

    def time(place: int) -> Any:
        return axis.time(place) if axis else rows[place].values[column].value

    if one.length is None:
        return time(end)
    return passes(time(start if one.from_start else end), one.length)

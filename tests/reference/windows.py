"""Windows: value(end) − value(start) ≤ n, for WITHIN of a query and of a formula."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from typing import Any

from .conditions import Row
from .nodes import Window
from .values import CelError


def measured_on(window: Window, order_by: str | None) -> str | None:
    """The attribute that a window is measured on; None for positions."""
    if window.unit == "EVENTS":
        return None
    attribute = window.attribute or order_by
    if attribute is None:
        raise CelError("WITHIN: no attribute to measure it on")
    return attribute


def fits(window: Window, order_by: str | None, rows: Sequence[Row], start: int, end: int) -> bool:
    """Whether a match from `start` to `end` is inside the window."""
    return bool(over(window, order_by, rows, start, end) <= window.bent)


def over(window: Window, order_by: str | None, rows: Sequence[Row], start: int, end: int) -> float:
    """By which part of its size a match exceeds a window: 0.0 where it is inside, 0.5 where it is
    half as long again, infinite where the size is 0."""
    attribute = measured_on(window, order_by)
    took = end - start
    if attribute is not None:
        took = _measure(rows[end], attribute) - _measure(rows[start], attribute)
    if took <= window.size:
        return 0.0
    return float(took - window.size) / float(window.size) if window.size else math.inf


def check_order(rows: Sequence[Row], attribute: str) -> None:
    """Raise CelError where the attribute of a window is NULL, or decreases along a part."""
    values = [_measure(row, attribute) for row in rows]
    if any(later < earlier for earlier, later in itertools.pairwise(values)):
        raise CelError(f"WITHIN: {attribute} decreases along a part")


def _measure(row: Row, attribute: str) -> Any:
    """The number that the window is measured on; for times, microseconds."""
    datum = row.values.get(attribute)
    if datum is None or datum.value is None:
        raise CelError(f"WITHIN: {attribute} is NULL")
    return number_of(datum.value)


def number_of(value: Any) -> Any:
    """The number that a value is measured as; for times, microseconds."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return value

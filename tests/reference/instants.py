"""Simultaneous events: the instants of a part, and the queries that have no meaning with them."""

from __future__ import annotations

from collections.abc import Sequence

from . import nodes as n
from .conditions import Row
from .values import CelError


def instants_of(rows: Sequence[Row], columns: tuple[str, ...]) -> list[tuple[int, int]]:
    """The first and the last position of each row's instant: the rows equal in these columns."""
    values = [tuple(row.values[name].value for name in columns) for row in rows]
    found: list[tuple[int, int]] = []
    while len(found) < len(rows):
        first = len(found)
        last = first
        while last + 1 < len(rows) and values[last + 1] == values[first]:
            last += 1
        found += [(first, last)] * (last + 1 - first)
    return found


def check_simultaneous(
    query: n.Query, ties: str, order_by: tuple[str, ...], *, lasting: bool
) -> None:
    """Raise CelError where the answer would depend on the order of the events of one instant; where
    they last it may: their positions have an order that is said."""
    if ties != "simultaneous":
        raise CelError(f"ties: {ties}")
    if not order_by:
        raise CelError("simultaneous events without order columns")
    if query.consume_by != "NONE":
        raise CelError("CONSUME BY with simultaneous events")
    if not lasting and (query.selector != "ALL" or query.limit is not None or query.rate):
        raise CelError("a selector, ANY or LIMIT with simultaneous events")
    windows = [*([] if query.window is None else [query.window]), *n.windows_in(query.formula)]
    for window in windows:
        if window.unit == "EVENTS" or (window.attribute or order_by[0]) not in order_by:
            raise CelError("a window that is not measured on the order, with simultaneous events")
    if not lasting and any(isinstance(part, n.Selector) for part in n.parts_of(query.formula)):
        raise CelError("a selector with simultaneous events")

"""`LIMIT n PER d` and `LIMIT n PER PARTITION`: which rows stay, by their known times.

The rows of a part are taken in the order of their known time, then end, start, then as SELECT NXT
would prefer, then by labels. A row stays if fewer than n rows that stay have a known time later
than its own minus d.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import nodes as n
from .ends import passes
from .semantics import ComplexEvent, support
from .values import CelError, Kind
from .windows import measured_on, number_of

_TIMES = {Kind.TIMESTAMP, Kind.DATE}


def check_rate(query: n.Query, order_by: str | None, kind: Kind | None) -> None:
    """Raise CelError where a rate has no meaning; `kind`: of the first order column."""
    if query.rate is None:
        return
    if query.per_start == "LONGEST":
        window = query.window
        if window is None or order_by is None or measured_on(window, order_by) != order_by:
            raise CelError("LIMIT PER with LONGEST without a time at which it is known")
    length = query.rate.length
    if length is None:
        return
    if order_by is None:
        raise CelError("LIMIT PER without an order column")
    if (kind in _TIMES) != (length.unit == "TIME") or kind is Kind.STRING:
        raise CelError(f"LIMIT PER {length.unit} with an order column of type {kind}")


def known_times(
    query: n.Query,
    decided: Mapping[ComplexEvent, Sequence[Any]],
    chosen: Mapping[ComplexEvent, Sequence[Any]],
    time_at: Callable[[int], Any] | None,
    *,
    shows_time: bool,
) -> dict[ComplexEvent, Any]:
    """When each chosen match is known, by all decided matches, each with the times at which it
    is. `time_at`: the time of a start or an end; None: there are no order columns."""
    if time_at is None:
        return {match: match[1] for match in chosen}
    if query.per_start == "LONGEST":
        assert query.window is not None
        return {match: passes(time_at(match[0]), query.window) for match in chosen}
    if not shows_time:
        return {match: time_at(match[1]) for match in chosen}
    place = 0 if query.per_start else 1
    latest: dict[int, Any] = {}
    for match, times in decided.items():
        if times:
            here = match[place]
            latest[here] = max(min(times), latest.get(here, min(times)))
    compares = query.per_start or query.selector != "ALL"
    return {
        match: latest[match[place]] if compares else min(times)
        for match, times in chosen.items()
        if times
    }


def preference(mu: Iterable[tuple[str, int]]) -> tuple[float, ...]:
    """What is smaller for the labelled matches whose support NXT prefers: of two supports that one
    with the least position that is in only one of them."""
    return (*sorted(support(frozenset(mu))), math.inf)


def kept(rate: n.Rate, rows: Sequence[tuple[tuple[Any, ...], Any]]) -> list[Any]:
    """Of the rows of a part, each with its place in the order (first its known time), those that
    stay."""
    stay: list[tuple[Any, Any]] = []
    for place, row in sorted(rows, key=lambda one: one[0]):
        time = place[0]
        if sum(1 for known, _ in stay if _is_recent(known, time, rate.length)) < rate.count:
            stay.append((time, row))
    return [row for _, row in stay]


def _is_recent(known: Any, time: Any, length: n.Window | None) -> bool:
    """Whether a known time is later than another one minus a length."""
    if length is None:
        return True
    if isinstance(time, dt.date) and not isinstance(time, dt.datetime):
        known, time = (dt.datetime.combine(one, dt.time()) for one in (known, time))
    return bool(number_of(known) > number_of(time) - length.size)

"""When the rows of an answer are known, and how far before that events matter.

The *known time* of a row is the earliest time by which the events up to it settle the row, whatever
comes later. It is read off a column of the answer, and a length after it that depends on the query
alone:

| the rows are | the column | the length |
| --- | --- | --- |
| matches | `end_time` | 0 |
| matches that end with an absence | `decided_time` | 0 |
| of these, what a selector, ANY or LIMIT leaves | `end_time` | the longest absence |
| of LONGEST, DISJOINT, of FIRST with an absence | `start_time` | the window, and that absence |
| TOTAL … PER END, COLLAPSED | `end_time` | the longest of its matches |
| TOTAL … PER a duration | `span_end` | the longest of its matches |

A query that reads others knows its rows later by what these wait for. So whether a row lies between
two times is one comparison, on every route.

Rejected: the latest `decided_time` of the matches that a row is chosen from. It is earlier where
these are decided early. But whether there is a later one is not certain until the longest absence
has passed, so that a row could be missed by one call and the next.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import DECIDED_TIME, Plan, Window
from celc_runtime.plan.strategy import (
    ByDefinition,
    Checked,
    EarliestInWindow,
    InWindow,
    Latest,
)
from celc_runtime.program import Program

Number: TypeAlias = int | float
"""A value of an order column: TIMESTAMP in microseconds and DATE in days since 1970."""

NUMBERS = ("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE")


@frozen
class Known:
    """A column of the answer, and how much later than it says a row is known."""

    column: str
    later: Number


def order_type(plan: Plan) -> str:
    """The type of the first order column."""
    return plan.source.type_of(plan.source.order_by[0])


def known_of(program: Program) -> Known:
    """When the rows of a query are known, for queries that the table of routes does not refuse."""
    plan = program.plan
    choice, totals = plan.choice, plan.answer.totals
    lag = max((_known_after(level) for level in program.levels), default=0)
    if totals is not None and isinstance(totals.per, int):
        return Known("span_end", _after_end(plan) + lag)
    if totals is not None or plan.answer.collapsed:
        return Known("end_time", _after_end(plan) + lag)
    if choice.waits:
        return Known("start_time", _after_start(plan) + lag)
    if not choice.deadlines:
        return Known("end_time", lag)
    if _compares(program):
        return Known("end_time", _after_end(plan) + lag)
    return Known(DECIDED_TIME, lag)


def reach_of(program: Program) -> tuple[Number | None, str]:
    """(How far before the time at which a row is known events matter to it; None: all do. Why, in
    words.)"""
    plan = program.plan
    before, why = _before_end(program)
    if before is None:
        return None, why
    known = known_of(program)
    if known.column == "start_time":
        # The matches of a start are compared, which begins the window.
        assert plan.matching.window is not None
        if plan.choice.per_start is None or plan.choice.per_start.limit is None:
            before -= _length(plan, plan.matching.window, up=True)
    reach = before + known.later
    if known.column == DECIDED_TIME:
        reach += longest_absence(plan)
    totals = plan.answer.totals
    if totals is not None and isinstance(totals.per, int):
        reach += _length(plan, Window("MICROSECONDS", totals.per, None), up=True)
    return reach, why


# --- how much later than its end a row is known ---------------------------------------------------


def _known_after(program: Program) -> Number:
    """How much later than its end a row that another query reads is known."""
    below = max((_known_after(level) for level in program.levels), default=0)
    return _after_end(program.plan) + below


def _after_end(plan: Plan) -> Number:
    return _after_start(plan) if plan.choice.waits else longest_absence(plan)


def _after_start(plan: Plan) -> Number:
    window = clause_window(plan)
    assert window is not None, "the table of routes refuses it"
    return _length(plan, window) + longest_absence(plan)


def longest_absence(plan: Plan) -> Number:
    """How long after its end the last absence of a match can end."""
    windows = [plan.matching.local_windows[one.window] for one in plan.choice.deadlines]
    return max((_length(plan, one) for one in windows), default=0)


def clause_window(plan: Plan) -> Window | None:
    """The window of WITHIN if it is measured on the first order column; else None.

    Of events that last, that of the plan is longer by what absences before a match look back.
    """
    window = plan.matching.window
    if window is None or not _is_on_order(plan, window):
        return None
    if plan.source.begin is None:
        return window
    before = (one.size for one in plan.matching.local_windows if one.to_start)
    return Window(window.unit, window.size - max(before, default=0), window.attribute)


def _compares(program: Program) -> bool:
    """Whether a row is chosen among the matches with its end."""
    match program.listing:
        case ByDefinition(chooses=chooses, joins_ends=joins_ends):
            chosen = chooses or joins_ends
        case Checked(selector=selector):
            chosen = bool(selector)
        case listing:
            chosen = isinstance(listing, InWindow | EarliestInWindow | Latest)
    return chosen or program.plan.choice.limit is not None


# --- how far before its end events matter ---------------------------------------------------------


def _before_end(program: Program) -> tuple[Number | None, str]:
    plan = program.plan
    window = plan.whole_window
    if plan.counts_events:
        return None, f"a window of query {program.name!r} is in EVENTS"
    if window is None:
        if plan.matching.window is None:
            return None, f"query {program.name!r} has no window"
        return None, (
            f"query {program.name!r} measures a window, or what it looks back, on other columns "
            "than the window, or on floating numbers"
        )
    if not _is_on_order(plan, window):
        measured = plan.measured_on(window)
        return None, f"the window of query {program.name!r} is on {measured!r}"
    before = _length(plan, window, up=True)
    choice = plan.choice.per_start
    if choice is not None and choice.limit is not None and plan.matching.window is not None:
        # LIMIT counts the matches of an end, each of which is chosen among those of its start.
        before += _length(plan, plan.matching.window, up=True)
    parts = [] if not window.size else ["the window" if plan.matching.window else "absences before"]
    below: Number = 0
    for level in program.levels:
        found, why = _before_end(level)
        if found is None:
            return None, why
        below = max(below, found)
    if below:
        parts.append(f"that of {', '.join(one.name for one in program.levels)}")
    return before + below, " and ".join(parts) or "its matches have one event"


def _is_on_order(plan: Plan, window: Window) -> bool:
    return window.unit != "EVENTS" and plan.measured_on(window) == plan.source.order_by[0]


def _length(plan: Plan, window: Window, *, up: bool = False) -> Number:
    """A length in the unit of the order column; of whole numbers rounded down, as `decided_time`
    is, or up."""
    type = order_type(plan)
    if type in ("FLOAT", "DOUBLE"):
        return window.size
    size = math.ceil(window.size) if up else math.floor(window.size)
    if type == "DATE" and window.unit == "MICROSECONDS":
        return -(-size // MICROSECONDS_PER_DAY) if up else size // MICROSECONDS_PER_DAY
    return size

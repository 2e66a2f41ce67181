"""The points of events of uncertain time."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import shown, whole_numbers
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.engine.worlds.possible_points import TOO_EARLY, TOO_MANY, TURNED, points_between
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan

_MOST_POINTS = 1_000_000
_LEAST_TIME = -(1 << 62)
_MEND = "mend the row, or filter it out"


class WrongTime(NamedTuple):
    """What is wrong with the times of a row, and what helps."""

    what: str
    mend: str = _MEND


def step_of(plan: Plan) -> int:
    """The distance between the points of an event, in the units of `whole_numbers`."""
    assert plan.source.uncertain is not None
    is_date = plan.source.type_of(plan.source.uncertain.low) == "DATE"
    return plan.source.uncertain.step * (MICROSECONDS_PER_DAY if is_date else 1)


def possible_times(
    events: pa.RecordBatch,
    names: tuple[str, str],
    step: int,
    wrong: Callable[[int, WrongTime], EventError],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64[rows]: the first point, the last point, and the number of points of each event.

    names: the columns with the earliest and the latest time. wrong: makes the error for a row that
    has no points or too many, from the row and the reason; it is raised.
    """
    for name in names:
        column = events.column(name)
        if column.null_count:
            row = int(np.argmax(np.asarray(column.is_null())))
            raise wrong(row, WrongTime(f"{name!r} is NULL"))
    low, high = (whole_numbers(events.column(name)) for name in names)
    last, points = np.empty_like(low), np.empty_like(low)
    with np.errstate(over="ignore"):  # differences wrap around; plain Python would warn
        row, kind = points_between(low, high, step, _LEAST_TIME, _MOST_POINTS, last, points)
    if kind == TURNED:
        first, end = (shown(events.column(name)[row]) for name in names)
        raise wrong(row, WrongTime(f"{names[0]} {first} is after {names[1]} {end}"))
    if kind == TOO_EARLY:
        raise wrong(row, WrongTime(f"{names[0]} {int(low[row]):,} is too far from 0"))
    if kind == TOO_MANY:
        count = (int(high[row]) - int(low[row])) // step + 1
        found = f"there are {count:,} possible times, more than {_MOST_POINTS:,}"
        raise wrong(row, WrongTime(found, "declare a longer step with BY"))
    return low, last, points

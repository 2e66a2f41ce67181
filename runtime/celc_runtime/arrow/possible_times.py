"""The points of events whose time is uncertain."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import shown, whole_numbers
from celc_runtime.engine.spark_arithmetic import MICROSECONDS_PER_DAY
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
    """How far apart the points of an event are, in the units of `whole_numbers`."""
    assert plan.uncertain is not None
    is_date = plan.type_of(plan.uncertain.low) == "DATE"
    return plan.uncertain.step * (MICROSECONDS_PER_DAY if is_date else 1)


def possible_times(
    events: pa.RecordBatch,
    names: tuple[str, str],
    step: int,
    wrong: Callable[[int, WrongTime], EventError],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64[rows]: the times of the first and the last point of each event, and how many points it
    has. names: of the columns with the least and the greatest time. Raises the error that `wrong`
    makes of a row that has no points, or too many, and of the reason."""
    for name in names:
        column = events.column(name)
        if column.null_count:
            row = int(np.argmax(np.asarray(column.is_null())))
            raise wrong(row, WrongTime(f"{name!r} is NULL"))
    low, high = (whole_numbers(events.column(name)) for name in names)
    is_wrong = low > high
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        first, last = (shown(events.column(name)[row]) for name in names)
        raise wrong(row, WrongTime(f"{names[0]} {first} is after {names[1]} {last}"))
    is_wrong = low < _LEAST_TIME  # a window could not be measured from there
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise wrong(row, WrongTime(f"{names[0]} {int(low[row]):,} is too far from 0"))
    # The difference of two numbers of 64 bits fits 64 bits without a sign.
    between = (high.view(np.uint64) - low.view(np.uint64)) // np.uint64(step)
    is_wrong = between >= _MOST_POINTS
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        found = f"there are {int(between[row]) + 1:,} possible times, more than {_MOST_POINTS:,}"
        raise wrong(row, WrongTime(found, "declare a longer step with BY"))
    points = between.astype(np.int64)
    return low.astype(np.int64), low + points * step, points + 1

"""The points of events of uncertain time, and the weights of these."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.arrow.shown import shown
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
    events: pa.RecordBatch, plan: Plan, wrong: Callable[[int, WrongTime], EventError]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64[rows]: the first point, the last point, and the number of points of each event.

    wrong: makes the error for a row that has no points or too many, or whose weights are not one
    for each point, from the row and the reason; it is raised.
    """
    uncertain, step = plan.source.uncertain, step_of(plan)
    assert uncertain is not None
    names = uncertain.low, uncertain.high
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
    if uncertain.weights is not None:
        _check_weights(events, uncertain.weights, points, wrong)
    return low, last, points


def _check_weights(
    events: pa.RecordBatch,
    name: str,
    points: np.ndarray,
    wrong: Callable[[int, WrongTime], EventError],
) -> None:
    """Raise what `wrong` makes for a row whose weights (the column `name`, lists of float64) are
    not one for each of its points (int64[rows]), finite, from 0 on, and not all 0."""
    lists = events.column(name)
    if lists.null_count:
        raise wrong(int(np.argmax(np.asarray(lists.is_null()))), WrongTime(f"{name!r} is NULL"))
    counts = np.asarray(pc.list_value_length(lists), np.int64)
    if (counts != points).any():
        row = int(np.argmax(counts != points))
        found = (
            f"{name!r} has {counts[row]:,} weights, and there are {points[row]:,} possible times"
        )
        raise wrong(row, WrongTime(found))
    values = lists.flatten()
    rows = np.repeat(np.arange(len(counts)), counts)
    if values.null_count:
        row = int(rows[np.argmax(np.asarray(values.is_null()))])
        raise wrong(row, WrongTime(f"a weight in {name!r} is NULL"))
    numbers = np.asarray(values, np.float64)
    flawed = ~((numbers >= 0.0) & (numbers < np.inf))
    if flawed.any():
        place = int(np.argmax(flawed))
        told = f"{name!r} has the weight {numbers[place]}, which is no number from 0 on"
        raise wrong(int(rows[place]), WrongTime(told))
    greatest = _greatest(numbers, points)
    if len(points) and not greatest.all():
        raise wrong(int(np.argmin(greatest)), WrongTime(f"all weights in {name!r} are 0"))


def shares_of(lists: pa.Array, points: np.ndarray) -> np.ndarray:
    """float64: the probabilities of all points, event by event, from checked weights."""
    numbers = np.asarray(lists.flatten(), np.float64)
    # A sum of weights could be infinite, or lose them.
    numbers = numbers / np.repeat(_greatest(numbers, points), points)
    sums = np.add.reduceat(numbers, _first(points)) if len(points) else numbers
    found: np.ndarray = numbers / np.repeat(sums, points)
    return found


def _greatest(numbers: np.ndarray, points: np.ndarray) -> np.ndarray:
    if not len(points):
        return numbers
    found: np.ndarray = np.maximum.reduceat(numbers, _first(points))
    return found


def _first(points: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.cumsum(points) - points
    return found

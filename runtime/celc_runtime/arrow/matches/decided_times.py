"""The column with the times when matches are decided."""

import math

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import numbers
from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.plan import Plan, Window

NO_DEADLINE = -1  # instead of a deadline's number: the match is decided when it ends

LEFT_OPEN = -2  # instead of a deadline's number: a match that it is compared with is undecided


def decided_times(plan: Plan, starts: pa.Array, ends: pa.Array, deadlines: np.ndarray) -> pa.Array:
    """The time after which each match is decided, in the type of the first order column.

    starts, ends: times of the matches. deadlines: int64[matches], the number of each match's
    deadline in the plan, or `NO_DEADLINE`. A number is rounded down if the column holds whole
    numbers, a duration on a DATE to its day.
    """
    times = {True: numbers(starts)[0], False: numbers(ends)[0]}
    found = times[False].copy()
    for number, deadline in enumerate(plan.choice.deadlines):
        here = deadlines == number
        window = plan.matching.local_windows[deadline.window]
        found[here] = _later(times[deadline.from_start][here], window, ends.type)
    return pa.array(found).cast(_storage(ends.type)).view(ends.type)


def _later(times: np.ndarray, window: Window, type: pa.DataType) -> np.ndarray:
    """Times plus a length, but not beyond the greatest value of the type."""
    if np.issubdtype(times.dtype, np.floating):
        later: np.ndarray = times + window.size
        return later
    size = math.floor(window.size)
    if pa.types.is_date32(type) and window.unit == "MICROSECONDS":
        size //= MICROSECONDS_PER_DAY
    most = np.iinfo(times.dtype).max
    if size > most:
        return np.full(len(times), most)
    return np.where(times > most - size, most, times + times.dtype.type(size))


def _storage(type: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type):
        return pa.int32()
    return pa.int64() if pa.types.is_timestamp(type) else type

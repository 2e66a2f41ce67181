"""The points of events whose time is uncertain: low, low + step, …, up to high."""

import numpy as np

from celc_runtime.jit.kernels import njit

RIGHT, TURNED, TOO_EARLY, TOO_MANY = range(4)
"""What can be wrong with the times of an event: nothing; high is before low; low is too far from 0
for a window to start there; there are too many points."""


@njit(nogil=True, cache=True)
def points_between(low, high, step, least, most, last, points):  # type: ignore[no-untyped-def]
    """Write the last point of each event and its number of points (both int64[rows]).

    least: the earliest `low` that is allowed. most: the most points. Returns the first row that is
    wrong, and the reason; −1 and RIGHT if there is none.
    """
    for row in range(low.shape[0]):
        if low[row] > high[row]:
            return row, TURNED
        if low[row] < least:
            return row, TOO_EARLY
        # The difference of two int64 fits uint64.
        between = np.uint64(high[row]) - np.uint64(low[row])
        if step > 1:
            between //= np.uint64(step)
        if between >= np.uint64(most):
            return row, TOO_MANY
        steps = np.int64(between)
        last[row], points[row] = low[row] + steps * step, steps + 1
    return -1, RIGHT

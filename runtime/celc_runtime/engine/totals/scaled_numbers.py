"""Numbers that no DOUBLE holds, size · 2^scale with whole scales, and what totals do with them.

An element of a total has several: the count of its matches, each sum, and the number of the values
of some of the sums. First stand the sizes, then the scales.

Of two numbers with different scales the one of the smaller scale is multiplied by 2 to the power of
the difference, and is nothing beside the other one from 2⁻¹⁰²³ on. Most scales are multiples of
`STEP`, and sizes are near 1, so that few digits are lost before that.
"""

import numpy as np

from celc_runtime.jit.kernels import njit

STEP = 256.0
"""By so much `settled` changes scales."""
UNKNOWN = -(2.0**48)
"""About the scale of a sum of no value, whose size is 0."""
ZERO = -(2.0**46)
"""About the scale of a sum of values that are all 0. Any other number is larger than both."""
INFINITE = 2.0**80
"""The scale of an infinite sum, which is never the smaller one. No other scale is so large that to
add it changes this."""

_LARGE, _SMALL = 2.0 ** (STEP / 2), 2.0 ** (-STEP / 2)
_UP, _DOWN = 2.0**STEP, 2.0**-STEP
NOTHING_FROM = -1023.0
"""A number is nothing beside another one from this difference of the scales on."""


@njit(nogil=True, _nrt=False)
def settled(size, scale):  # type: ignore[no-untyped-def]
    """The same number with a size between 2⁻¹²⁸ and 2¹²⁸, unless it is 0 or infinite."""
    while _LARGE < abs(size) < np.inf:
        size, scale = size * _DOWN, scale + STEP
    while 0.0 < abs(size) < _SMALL:
        size, scale = size * _UP, scale - STEP
    return size, scale


def side_by_side(sizes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """float64[rows × 2 · numbers]: the numbers of elements; sizes, scales: [rows, numbers]."""
    return np.concatenate([sizes, scales], axis=1).reshape(-1)


def sizes_and_scales(values: np.ndarray, rows: int, numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """float64[rows, numbers] each: what `side_by_side` has put there for the first elements."""
    found = values[: rows * 2 * numbers].reshape(rows, 2, numbers)
    return found[:, 0], found[:, 1]

"""Numbers beyond the range of DOUBLE, as size · 2^scale with whole scales.

An element of a total has several: the count of its matches, each sum, and for some sums the number
of values. The sizes come first, then the scales.

To add two numbers of different scales, the one with the smaller scale is multiplied by 2 to the
power of the difference. From 2⁻¹⁰²³ on it adds nothing. Most scales are multiples of `STEP` and
sizes are near 1, so few digits are lost before that.
"""

import numpy as np

from celc_runtime.jit.kernels import njit

STEP = 256.0  # bits: `settled` changes scales by this much
UNKNOWN = -(2.0**48)  # about the scale of a sum without values, whose size is 0
ZERO = -(2.0**46)  # about the scale of a sum whose values are all 0; all other scales are larger
INFINITE = 2.0**80
"""The scale of an infinite sum, which is never the smaller one. Other scales are so small that
adding them does not change it."""

_LARGE, _SMALL = 2.0 ** (STEP / 2), 2.0 ** (-STEP / 2)
_UP, _DOWN = 2.0**STEP, 2.0**-STEP
NOTHING_FROM = -1023.0  # bits: with scales this far apart, the smaller number adds nothing


@njit(nogil=True, _nrt=False)
def settled(size, scale):  # type: ignore[no-untyped-def]
    """The same number with a size between 2⁻¹²⁸ and 2¹²⁸, unless it is 0 or infinite."""
    while _LARGE < abs(size) < np.inf:
        size, scale = size * _DOWN, scale + STEP
    while 0.0 < abs(size) < _SMALL:
        size, scale = size * _UP, scale - STEP
    return size, scale


def side_by_side(sizes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """float64[rows × 2 · numbers]: the reals of elements; sizes, scales: [rows, numbers]."""
    return np.concatenate([sizes, scales], axis=1).reshape(-1)


def sizes_and_scales(values: np.ndarray, rows: int, numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """(sizes, scales), float64[rows, numbers] each, of the first elements (see `side_by_side`)."""
    found = values[: rows * 2 * numbers].reshape(rows, 2, numbers)
    return found[:, 0], found[:, 1]

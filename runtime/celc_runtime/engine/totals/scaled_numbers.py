"""Numbers that no DOUBLE holds, size · 2^scale with whole scales, and what totals do with them.

An element of a total has several: the count of its matches, each sum, and the number of the values
of some of the sums. They stand in blocks of up to four, first the sizes, then the scales, so that
machine code does the same to all of a block at once (`scaled_parts`).

Of two numbers with different scales the one of the smaller scale is multiplied by 2 to the power of
the difference, and is nothing beside the other one from 2⁻¹⁰²³ on. Most scales are multiples of
`STEP`, and sizes are near 1, so that few digits are lost before that.
"""

from __future__ import annotations

from typing import NamedTuple

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


class Blocks(NamedTuple):
    """How the numbers of an element stand: in a number of blocks of the same width."""

    width: int
    number: int

    @property
    def length(self) -> int:
        """How many float64 an element has."""
        return 2 * self.width * self.number


def blocks_of(numbers: int) -> Blocks:
    """The blocks of some numbers. Three take the place of four: to read three at once takes two
    instructions more, which cost more than the memory."""
    width = max(1, numbers) if numbers <= 2 else 4
    return Blocks(width, -(-numbers // width))


def in_blocks(sizes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """float64[rows × length]: the numbers of elements in blocks; sizes, scales: [rows, numbers]."""
    rows, numbers = sizes.shape
    width, blocks = blocks_of(numbers)
    found = np.zeros((rows, 2, blocks * width))
    found[:, 1] = UNKNOWN
    found[:, 0, :numbers], found[:, 1, :numbers] = sizes, scales
    return found.reshape(rows, 2, blocks, width).transpose(0, 2, 1, 3).reshape(-1)


def sizes_and_scales(values: np.ndarray, rows: int, numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """float64[rows, numbers] each: what `in_blocks` has put there for the first elements."""
    width, blocks = blocks_of(numbers)
    found = values[: rows * 2 * blocks * width].reshape(rows, blocks, 2, width)
    sizes, scales = (found[:, :, one].reshape(rows, blocks * width) for one in (0, 1))
    return sizes[:, :numbers], scales[:, :numbers]

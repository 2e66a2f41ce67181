"""Weighted sums of whole numbers, where weights need two words."""

import numpy as np

from celc_runtime.engine.values.wide_numbers import (
    add_wide,
    add_wrapping,
    multiply_wide,
    product_of_words,
)
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def weighted_sums(values, weights, first, last, sums):  # type: ignore[no-untyped-def]
    """Add up ranges of numbers; range i is `first[i]` to before `last[i]` (int64[rows]).

    values: int64[numbers]. weights: uint64[numbers, 2], how often each counts (high, low). Adds to
    sums: uint64[rows, 4], the signed sum and the sum of absolute values (`wide_numbers`).
    """
    for row in range(first.shape[0]):
        for number in range(first[row], last[row]):
            value, high, low = values[number], weights[number, 0], weights[number, 1]
            size = np.uint64(-value) if value < 0 else np.uint64(value)
            top, rest = multiply_wide(high, low, np.uint64(0), size)
            sums[row, 2], sums[row, 3] = add_wide(sums[row, 2], sums[row, 3], top, rest)
            top, rest = product_of_words(low, size)
            top += high * size
            if value < 0:
                top, rest = ~top + np.uint64(rest == 0), ~rest + np.uint64(1)
            sums[row, 0], sums[row, 1] = add_wrapping(sums[row, 0], sums[row, 1], top, rest)

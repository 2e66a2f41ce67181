"""Bounds of piles: the least value of the matches in a pile that a later event is compared with.

Values are compared as whole numbers in the same order: numbers and times as they are, real numbers
by `key_of_real`, and either with all bits turned where a condition asks for less.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.jit.kernels import njit

NO_BOUND = 2**63 - 1
"""The bound of a pile without matches, and of one whose value is NULL: no value is beyond it."""

LEAST_KEY = -(2**63)
"""What NULL counts as where it is the later value: beyond no bound."""


@njit(nogil=True, cache=True)
def key_of_real(value):  # type: ignore[no-untyped-def]
    """int64, in the order of Spark: −0.0 equals 0.0, NaN equals NaN and is the greatest."""
    real = np.float64(value)
    if real != real:
        return np.int64(NO_BOUND)
    bits = np.float64(real + 0.0).view(np.int64)
    return bits if bits >= 0 else np.int64(-(2**63)) - bits

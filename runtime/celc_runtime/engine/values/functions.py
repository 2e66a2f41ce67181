"""Functions of numbers between events, for generated conditions, where NumPy has none that does the
same; none of the operands is NULL."""

import numpy as np

from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def power(base, exponent):  # type: ignore[no-untyped-def]
    """As in Java: NaN for an exponent that is NaN, and for ±1 to the power of ±∞."""
    if np.isnan(exponent) or (np.isinf(exponent) and (base == 1.0 or base == -1.0)):
        return np.nan
    return np.power(base, exponent)


@njit(nogil=True, cache=True)
def angle(y, x):  # type: ignore[no-untyped-def]
    """The angle of a point. −0.0 is 0.0, as in Spark."""
    return np.arctan2(y + 0.0, x + 0.0)


@njit(nogil=True, cache=True)
def floor(value):  # type: ignore[no-untyped-def]
    return _whole(np.floor(value))


@njit(nogil=True, cache=True)
def ceiling(value):  # type: ignore[no-untyped-def]
    return _whole(np.ceil(value))


@njit(nogil=True, cache=True)
def _whole(value):  # type: ignore[no-untyped-def]
    """A DOUBLE as a LONG. As in Java NaN is 0, and what is too large the last LONG."""
    if np.isnan(value):
        return np.int64(0)
    if value >= 2.0**63:
        return np.int64(2**63 - 1)
    if value <= -(2.0**63):
        return np.int64(-(2**63))
    return np.int64(value)

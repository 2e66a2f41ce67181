"""What each event adds to the totals of its matches, in the form that kernels read (`Measures`).

There is one pass for each column. Each operation of NumPy would be a pass of its own, which took up
to a third as long as a count of matches.
"""

import numpy as np

from celc_runtime.engine.totals.bounded_elements import BITS_OF_VALUES
from celc_runtime.engine.totals.scaled_numbers import INFINITE, UNKNOWN, ZERO, settled
from celc_runtime.engine.totals.total_elements import NOTHING
from celc_runtime.engine.values.spark_arithmetic import key_of_real
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def write_whole(values, known, to, first, width):  # type: ignore[no-untyped-def]
    """Write whole numbers to to[first], to[first + width], …; 0 where they are not known."""
    place = first
    for row in range(values.shape[0]):
        to[place] = np.int64(values[row]) if known[row] else np.int64(0)
        place += width


@njit(nogil=True, cache=True)
def write_bit(known, bit, to, first, width):  # type: ignore[no-untyped-def]
    """Set one bit of the words at to[first], to[first + width], …, where a value is known."""
    place = first
    for row in range(known.shape[0]):
        if known[row]:
            to[place] |= bit
        place += width


@njit(nogil=True, cache=True)
def write_real(values, known, to, first, width):  # type: ignore[no-untyped-def]
    """Write float64 as size and scale: to to[first] and to[first + 1], and on every `width`
    places."""
    place = first
    for row in range(values.shape[0]):
        size, scale = values[row], 0.0
        if not known[row]:
            size, scale = 0.0, UNKNOWN
        elif size == 0.0:
            size, scale = 0.0, ZERO
        elif abs(size) == np.inf:
            scale = INFINITE
        else:
            size, scale = settled(size, scale)
        to[place], to[place + 1] = size, scale
        place += width


@njit(nogil=True, cache=True)
def are_bounded(whole, real):  # type: ignore[no-untyped-def]
    """Whether all whole numbers, and all sizes and scales, fit bounded elements."""
    for place in range(whole.shape[0]):
        if abs(whole[place]) >> BITS_OF_VALUES != 0:
            return False
    for place in range(1, real.shape[0], 2):
        scale = real[place]
        if scale != 0.0 and scale != UNKNOWN and scale != ZERO and scale != INFINITE:
            return False
    return True


@njit(nogil=True, cache=True)
def write_known(known, to, first, width):  # type: ignore[no-untyped-def]
    """Write 0 where a value is known, else `NOTHING`."""
    place = first
    for row in range(known.shape[0]):
        to[place] = np.int64(0) if known[row] else NOTHING
        place += width


@njit(nogil=True, cache=True)
def write_keys(keys, known, greatest, to, first, width):  # type: ignore[no-untyped-def]
    """Write whole numbers or booleans as keys whose least is kept; `NOTHING` where not known.

    With `greatest`, the greatest number has the least key.
    """
    place = first
    for row in range(keys.shape[0]):
        key = np.int64(keys[row])
        to[place] = (~key if greatest else key) if known[row] else NOTHING
        place += width


@njit(nogil=True, cache=True)
def write_keys_of_reals(values, known, greatest, to, first, width):  # type: ignore[no-untyped-def]
    """As `write_keys`, for float64."""
    place = first
    for row in range(values.shape[0]):
        key = key_of_real(values[row])
        to[place] = (~key if greatest else key) if known[row] else NOTHING
        place += width

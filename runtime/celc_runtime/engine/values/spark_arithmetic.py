"""Arithmetic and comparisons of Spark SQL with ANSI mode off, for generated conditions.

Whole numbers wrap. A remainder has the sign of the dividend. NaN equals NaN, and is larger than any
number. Division and remainder by zero are NULL: the caller tests the divisor, and ignores the
result of these functions then.

Numba tells LLVM that signed whole numbers never overflow (it marks sums, differences and products
`nsw`). LLVM concludes from that, for example, that x + 1 > x. So sums, differences and products
that must wrap at 64 bits are computed unsigned.
"""

import numpy as np

from celc_runtime.jit.kernels import njit

_NAN = np.int64(0x7FF8 << 48)
"""The bits of NaN: greater than those of any number."""

MICROSECONDS_PER_DAY = 86_400_000_000
LAST_DAY = (2**63 - 1) // MICROSECONDS_PER_DAY
"""The last day whose midnight fits a TIMESTAMP. The first one is as far before 1970."""


@njit(nogil=True, cache=True)
def wrap_int(value):  # type: ignore[no-untyped-def]
    """A 64-bit result wrapped to 32 bits."""
    return ((np.int64(value) + 2147483648) & 4294967295) - 2147483648


@njit(nogil=True, cache=True)
def add_int(left, right):  # type: ignore[no-untyped-def]
    return wrap_int(np.int64(left) + np.int64(right))


@njit(nogil=True, cache=True)
def subtract_int(left, right):  # type: ignore[no-untyped-def]
    return wrap_int(np.int64(left) - np.int64(right))


@njit(nogil=True, cache=True)
def multiply_int(left, right):  # type: ignore[no-untyped-def]
    return wrap_int(np.int64(left) * np.int64(right))


@njit(nogil=True, cache=True)
def wrap_narrow(value, half):  # type: ignore[no-untyped-def]
    """A 64-bit result wrapped to a narrower type, which has as many numbers below 0 as `half`
    says: 128 for a BYTE, 32768 for a SHORT."""
    return ((np.int64(value) + half) & (2 * half - 1)) - half


@njit(nogil=True, cache=True)
def _bits(value):  # type: ignore[no-untyped-def]
    """A whole number modulo 2⁶⁴."""
    return np.uint64(np.int64(value))


@njit(nogil=True, cache=True)
def add_long(left, right):  # type: ignore[no-untyped-def]
    return np.int64(_bits(left) + _bits(right))


@njit(nogil=True, cache=True)
def subtract_long(left, right):  # type: ignore[no-untyped-def]
    return np.int64(_bits(left) - _bits(right))


@njit(nogil=True, cache=True)
def multiply_long(left, right):  # type: ignore[no-untyped-def]
    return np.int64(_bits(left) * _bits(right))


@njit(nogil=True, cache=True)
def remainder_whole(left, right):  # type: ignore[no-untyped-def]
    """INT % INT or LONG % LONG."""
    left, right = np.int64(left), np.int64(right)
    if right == 0 or right == -1:
        return np.int64(0)
    rest = left % right
    # Python's remainder has the sign of the divisor.
    if rest != 0 and (rest < 0) != (left < 0):
        rest -= right
    return rest


@njit(nogil=True, cache=True, error_model="numpy")
def remainder_real(left, right):  # type: ignore[no-untyped-def]
    """FLOAT % FLOAT or DOUBLE % DOUBLE. The result is exact, so it is the same in both widths."""
    return np.fmod(left, right)


@njit(nogil=True, cache=True, error_model="numpy")
def divide(left, right):  # type: ignore[no-untyped-def]
    return np.float64(left) / np.float64(right)


@njit(nogil=True, cache=True)
def absolute_int(value):  # type: ignore[no-untyped-def]
    """ABS of an INT; the least INT stays itself."""
    value = np.int64(value)
    return wrap_int(-value if value < 0 else value)


@njit(nogil=True, cache=True)
def absolute_long(value):  # type: ignore[no-untyped-def]
    """ABS of a LONG; the least LONG stays itself."""
    value = np.int64(value)
    return np.int64(_bits(0) - _bits(value)) if value < 0 else value


@njit(nogil=True, cache=True)
def whole_to_float(value):  # type: ignore[no-untyped-def]
    """INT or LONG as FLOAT, rounded once; by way of a DOUBLE some would be rounded twice."""
    return np.float32(value)


@njit(nogil=True, cache=True)
def days_to_microseconds(days):  # type: ignore[no-untyped-def]
    """The midnight of a DATE in UTC as a TIMESTAMP; days beyond ±LAST_DAY count as ±LAST_DAY."""
    return np.int64(min(max(days, -LAST_DAY), LAST_DAY)) * MICROSECONDS_PER_DAY


@njit(nogil=True, cache=True)
def equal_real(left, right):  # type: ignore[no-untyped-def]
    return (left == right) | ((left != left) & (right != right))


@njit(nogil=True, cache=True)
def less_real(left, right):  # type: ignore[no-untyped-def]
    return (left < right) | ((left == left) & (right != right))


@njit(nogil=True, cache=True)
def key_of_real(value):  # type: ignore[no-untyped-def]
    """int64 in the same order: −0.0 is 0.0; NaN equals itself and is the greatest."""
    real = np.float64(value)
    if real != real:
        return _NAN
    bits = np.float64(real + 0.0).view(np.int64)
    return bits if bits >= 0 else np.int64(-(2**63)) - bits


@njit(nogil=True, cache=True)
def is_member(values, value):  # type: ignore[no-untyped-def]
    """Whether an ascending array contains a value, by bisection."""
    low, high = 0, values.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < values.shape[0] and values[low] == value


def symbol_table(conditions: int, symbols: dict[int, int]) -> np.ndarray:
    """The symbols of an event type by the bit set of its true conditions; 0 for unknown sets."""
    table = np.zeros(1 << conditions, np.uint16)
    for truth, symbol in symbols.items():
        table[truth] = symbol
    return table


def symbol_steps(conditions: int, symbols: dict[int, int], step: int) -> tuple[np.ndarray, ...]:
    """As `symbol_table`, in steps of `step` conditions, because one table would be too large.

    Each step has its own table. It maps (the number of the step before, the bit set of its
    conditions) to a number for the next step. The last table maps to the symbol. 0 stands for
    unknown bit sets.
    """
    steps = []
    found = {0: 0}
    for shift in range(0, conditions, step):
        is_last = shift + step >= conditions
        below = (1 << shift + step) - 1
        numbers = {0: 0} if shift == 0 else found
        table = np.zeros((max(numbers.values(), default=0) + 1) << step, np.uint16)
        found = {}
        for truth, symbol in symbols.items():
            before = numbers[truth & (1 << shift) - 1]
            number = found.setdefault(truth & below, len(found) + 1)
            place = (before << step) + (truth >> shift & (1 << step) - 1)
            table[place] = symbol if is_last else number
        steps.append(table)
    return tuple(steps)

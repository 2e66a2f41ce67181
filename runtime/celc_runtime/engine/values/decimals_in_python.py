"""The operations of `decimals` by whole numbers of Python, which have no limit.

An interpreted kernel takes these: of words of 64 bits, each operation would take milliseconds. The
same names, arguments and results; a pair is (high, low).
"""

from typing import TypeAlias

import numpy as np

from celc_runtime.values import decimals
from celc_runtime.values.types import MOST_DIGITS

Pair: TypeAlias = tuple[int, int]

_MASK = 2**64 - 1
TOO_LARGE = (2**63 - 1, _MASK)


def _whole(value: Pair) -> int:
    return (int(value[0]) << 64) | int(value[1])


def _pair(value: int) -> Pair:
    return value >> 64, value & _MASK


def _fitting(value: int | None, digits: int) -> Pair:
    return TOO_LARGE if value is None or abs(value) >= 10 ** digits else _pair(value)


def wide_of(value: int) -> Pair:
    return _pair(int(value))


def wide_in(record: np.void) -> Pair:
    return int(record["high"]), int(record["low"])


def narrow_of(value: Pair) -> int:
    low = int(value[1])
    return low - 2**64 if low >> 63 else low


def is_decimal(value: Pair) -> bool:
    return value[0] != TOO_LARGE[0]


def negate_decimal(value: Pair) -> Pair:
    return _pair(-_whole(value))


def absolute_decimal(value: Pair) -> Pair:
    return _pair(abs(_whole(value)))


def rescale_decimal(value: Pair, power: int, digits: int) -> Pair:
    return _fitting(decimals.moved(_whole(value), power), digits)


def floor_decimal(value: Pair, scale: int) -> Pair:
    return _pair(decimals.whole_part(_whole(value), scale, up=False))


def ceil_decimal(value: Pair, scale: int) -> Pair:
    return _pair(decimals.whole_part(_whole(value), scale, up=True))


def add_decimals(
    left: Pair, right: Pair, up_left: int, up_right: int, down: int, digits: int
) -> Pair:
    total = _whole(left) * 10**up_left + _whole(right) * 10**up_right
    return _fitting(decimals.moved(total, -down), digits)


def subtract_decimals(
    left: Pair, right: Pair, up_left: int, up_right: int, down: int, digits: int
) -> Pair:
    return add_decimals(left, negate_decimal(right), up_left, up_right, down, digits)


def multiply_decimals(left: Pair, right: Pair, down: int, digits: int) -> Pair:
    return _fitting(decimals.moved(_whole(left) * _whole(right), -down), digits)


def divide_decimals(left: Pair, right: Pair, up: int, digits: int) -> Pair:
    return _fitting(decimals.quotient(_whole(left), _whole(right), up), digits)


def remainder_decimals(left: Pair, right: Pair, up_left: int, up_right: int) -> Pair:
    rest = decimals.remainder(_whole(left) * 10**up_left, _whole(right) * 10**up_right)
    return _fitting(rest, MOST_DIGITS)


def decimal_to_double(value: Pair, scale: int) -> float:
    return _whole(value) / int(10**scale)


def sum_of_decimals(values: np.ndarray, valid: np.ndarray, events: np.ndarray, digits: int) -> Pair:
    return _fitting(sum(int(values[event]) for event in events if valid[event]), digits)


def sum_of_wide(values: np.ndarray, valid: np.ndarray, events: np.ndarray, digits: int) -> Pair:
    total = sum(_whole(wide_in(values[event])) for event in events if valid[event])
    return _fitting(total, digits)

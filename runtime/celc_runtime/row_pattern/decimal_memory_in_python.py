"""The operations of `decimal_memory` by whole numbers of Python, for uncompiled functions."""

import numpy as np

from celc_runtime.engine.values.decimals_in_python import TOO_LARGE, Pair

_MASK = 2**64 - 1


def pair_in(registers: np.ndarray, at: int) -> Pair:
    return int(registers[at]), int(registers[at + 1]) & _MASK


def put_pair(registers: np.ndarray, at: int, value: Pair) -> None:
    registers[at], registers[at + 1] = value[0], _signed(value[1])


def add_to_sum(registers: np.ndarray, at: int, value: Pair) -> None:
    total = _total(registers, at) + ((int(value[0]) << 64) | int(value[1]))
    registers[at], registers[at + 1] = total >> 128, _signed((total >> 64) & _MASK)
    registers[at + 2] = _signed(total & _MASK)


def decimal_sum(registers: np.ndarray, at: int, digits: int) -> Pair:
    total = _total(registers, at)
    return TOO_LARGE if abs(total) >= 10 ** digits else (total >> 64, total & _MASK)


def _total(registers: np.ndarray, at: int) -> int:
    top, high, low = (int(one) for one in registers[at : at + 3])
    return (top << 128) + ((high & _MASK) << 64) + (low & _MASK)


def _signed(word: int) -> int:
    return word - 2**64 if word >> 63 else word

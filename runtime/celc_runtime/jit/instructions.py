"""Instructions of the processor that Python has no words for, as Python has them.

Machine code has the instructions themselves (`machine_instructions`).
"""

import ctypes
from typing import Any

import numpy as np


def prefetch(table: Any, place: Any) -> None:
    """Begin to load the cache line of a flat place in a table of int64."""


def byte_at(address: Any) -> np.uint8:
    """The byte at an address of memory."""
    return np.uint8(ctypes.c_uint8.from_address(int(address)).value)


def half_word_at(address: Any) -> np.int16:
    """The number of 16 bits at an address of memory."""
    return np.int16(ctypes.c_int16.from_address(int(address)).value)


def word_at(address: Any) -> np.int32:
    """The number of 32 bits at an address of memory."""
    return np.int32(ctypes.c_int32.from_address(int(address)).value)


def long_word_at(address: Any) -> np.int64:
    """The number of 64 bits at an address of memory."""
    return np.int64(ctypes.c_int64.from_address(int(address)).value)


def put_byte_at(address: Any, number: Any) -> None:
    """Write the byte at an address of memory."""
    ctypes.c_uint8.from_address(int(address)).value = int(number)


def put_half_word_at(address: Any, number: Any) -> None:
    """Write the number of 16 bits at an address of memory."""
    ctypes.c_int16.from_address(int(address)).value = int(number)


def put_word_at(address: Any, number: Any) -> None:
    """Write the number of 32 bits at an address of memory."""
    ctypes.c_int32.from_address(int(address)).value = int(number)


def put_long_word_at(address: Any, number: Any) -> None:
    """Write the number of 64 bits at an address of memory."""
    ctypes.c_int64.from_address(int(address)).value = int(number)

"""One batch of events as the kernels read it."""

from typing import Any, NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import ALWAYS, BLOCK
from celc_runtime.jit.kernels import njit


class Batch(NamedTuple):
    """The columns of one batch. A column that the query does not use is empty."""

    symbols: np.ndarray  # uint8 or uint16[rows], the class of each event
    words: np.ndarray  # the memory of uint8 `symbols` as uint64, whole words only; else empty
    keys: np.ndarray  # int64[rows], what the window is measured on, as order-preserving numbers
    floors: np.ndarray
    """int64[rows], the earliest key inside the window, where it is not key − size."""
    part_starts: np.ndarray  # int64[parts + 1], the first row of each new partition, then 2⁶²
    slots: np.ndarray  # int64[rows], the number of each row's partition, where these interleave
    letters: np.ndarray
    """int64[rows], the symbol of each event in its context; the update writes it."""
    contexts: np.ndarray  # int64[parts], the context in which a partition goes on; empty: all begin
    instants: np.ndarray  # int64[rows], the number of each row's instant; empty: each row is one


END_OF_PARTS = 2**62
NO_INTEGERS = np.zeros(0, np.int64)


def relevant_rows(symbols: np.ndarray) -> np.ndarray:
    """int64: the rows whose symbol is not 0. `symbols` is uint8 or uint16[rows].

    NumPy finds what is not 0 in numbers five to eight times as slowly as in truths.
    """
    return np.flatnonzero(symbols != 0)


@njit(nogil=True, cache=True)
def next_relevant_row(words, symbols, row, rows):  # type: ignore[no-untyped-def]
    """The first row from `row` on whose symbol is not 0, or `rows`. It looks at eight rows at once.

    `words` is the memory of `symbols` (uint8) as uint64: little-endian, with zeros behind the last
    row, and empty for wider symbols.
    """
    if words.shape[0] == 0:
        while row < rows and symbols[row] == 0:
            row += 1
        return row
    if row >= rows:
        return rows
    place = row >> 3
    word = words[place] >> np.uint64((row & 7) << 3) << np.uint64((row & 7) << 3)
    while word == 0:
        place += 1
        if place == words.shape[0]:
            return rows
        word = words[place]
    row = place << 3
    if word & np.uint64(0xFFFFFFFF) == 0:
        word >>= np.uint64(32)
        row += 4
    if word & np.uint64(0xFFFF) == 0:
        word >>= np.uint64(16)
        row += 2
    if word & np.uint64(0xFF) == 0:
        row += 1
    return row


@njit(nogil=True, cache=True)
def write_relevant_rows(words, symbols, row, end, index):  # type: ignore[no-untyped-def]
    """Write the rows from `row` to `end` whose symbol is not 0 into `index`; returns their number.

    `words` as for `next_relevant_row`. Words without a relevant row are skipped. In the other words
    each row is written, and the next row overwrites a row that is not relevant. So eight rows take
    no branch.
    """
    count = np.uint64(0)
    if words.shape[0] == 0:
        while row < end:
            index[count] = row
            count += np.uint64(symbols[row] != 0)
            row += 1
        return np.int64(count)
    while row < end and row & 7:
        index[count] = row
        count += np.uint64(symbols[row] != 0)
        row += 1
    last = end & ~7
    while row < last:
        if words[np.uint64(row) >> np.uint64(3)] != 0:
            for place in range(row, row + 8):
                index[count] = place
                count += np.uint64(symbols[np.uint64(place)] != 0)
        row += 8
    while row < end:
        index[count] = row
        count += np.uint64(symbols[row] != 0)
        row += 1
    return np.int64(count)


@njit(nogil=True, cache=True)
def last_relevant_rows(words, symbols, count):  # type: ignore[no-untyped-def]
    """int64[count]: the last `count` rows whose symbol is not 0, ascending."""
    found = np.empty(count, np.int64)
    row = symbols.shape[0]
    while count > 0:
        row -= 1
        if row & 7 == 7 and words.shape[0] > 0:
            while words[row >> 3] == 0:
                row -= 8
        if symbols[row] != 0:
            count -= 1
            found[count] = row
    return found


@njit(nogil=True, cache=True)
def block_of(valid, start):  # type: ignore[no-untyped-def]
    """bool[BLOCK or less]: whether the rows from `start` on are not NULL.

    `valid` is bool[rows], or one block that stands for every block.
    """
    return valid[start : start + BLOCK] if valid.shape[0] > BLOCK else valid


@njit(nogil=True, cache=True)
def positions_in_parts(rows, parts, shift):  # type: ignore[no-untyped-def]
    """int64[rows]: the position of each row in its partition.

    Partitions begin at the rows `parts`. Before the first of these, a position is the row −
    `shift`.
    This is fast where neighbours are near each other.
    """
    positions = np.empty(rows.shape[0], np.int64)
    part = 0
    for place in range(rows.shape[0]):
        row = rows[place]
        while part < parts.shape[0] and parts[part] <= row:
            part += 1
        while part > 0 and parts[part - 1] > row:
            part -= 1
        positions[place] = row - (parts[part - 1] if part > 0 else shift)
    return positions


_COMPARED = 1 << 17  # rows
"""Their comparison stays in the processor's cache. Each function of NumPy may wait for another
thread, so there should be few of them."""


def disorder(values: np.ndarray, before: Any) -> tuple[int, int]:
    """(number of values below their predecessor, number equal to it); `before` precedes the
    first."""
    falls, ties = int(values[0] < before), int(values[0] == before)
    # Some at a time, which stay in the processor's cache. Mostly all of them rise.
    for first in range(0, len(values) - 1, _COMPARED):
        here = values[first + 1 : first + 1 + _COMPARED]
        there = values[first : first + len(here)]
        rises = int(np.count_nonzero(here > there))
        if rises < len(here):
            lower = int(np.count_nonzero(here < there))
            falls, ties = falls + lower, ties + len(here) - rises - lower
    return falls, ties


@njit(nogil=True, cache=True)
def window_floor(key, size):  # type: ignore[no-untyped-def]
    """The earliest key in a window that ends at `key`; `size` is a whole number ≥ 0."""
    return key - size if key >= ALWAYS + size else np.int64(ALWAYS)


def order_preserving(values: np.ndarray) -> np.ndarray:
    """float64 → int64 in the same order. −0.0 and 0.0 become one number; NaN is not allowed."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def real_numbers(keys: np.ndarray) -> np.ndarray:
    """int64 → float64, the inverse of `order_preserving`."""
    return np.where(keys < 0, np.int64(-(2**63)) - keys, keys).view(np.float64)


@njit(nogil=True, cache=True)
def _as_float(key, scratch):  # type: ignore[no-untyped-def]
    scratch[0] = key if key >= 0 else np.int64(-(2**63)) - key
    return scratch.view(np.float64)[0]


@njit(nogil=True, cache=True)
def float_floors(keys, size):  # type: ignore[no-untyped-def]
    """For each order-preserving key, the smallest key whose number is in the window.

    A start is in the window if `end − start <= size` holds in floating point. That is monotone in
    `start`, but it is not the same as `start >= end − size`, because both sides round. So the limit
    is searched: from the end back in steps that double, then by bisection.
    """
    floors = np.empty(keys.shape[0], np.int64)
    scratch = np.empty(1, np.int64)
    lowest, highest = np.int64(ALWAYS), np.int64(2**63 - 1)
    for row in range(keys.shape[0]):
        key = keys[row]
        end = _as_float(key, scratch)
        if not end - end <= size:
            floors[row] = highest
            continue
        outside, inside = lowest - 1, key
        step = np.int64(1)
        while inside > lowest:
            probe = inside - step if inside > lowest + step else lowest
            if end - _as_float(probe, scratch) <= size:
                inside = probe
            else:
                outside = probe
                break
            step = step * 2 if step < 2**61 else step
        while outside + 1 < inside:
            middle = (outside >> 1) + (inside >> 1) + (outside & inside & 1)
            if end - _as_float(middle, scratch) <= size:
                inside = middle
            else:
                outside = middle
        floors[row] = inside
    return floors

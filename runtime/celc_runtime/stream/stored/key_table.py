"""Partitions as numbers: the rows of a bucket are compared by the bytes of their keys.

A bucket has rows of many partitions, and Python must not do work for each of them. A hash table
gives each key a number, and finds the keys of other rows in it: the partitions of a micro-batch
among all that a bucket knows. Keys are compared as bytes, so a number stands for one key, whatever
their hashes are.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.stream.stored.rows import Keys

_MIX = 0x9E3779B97F4A7C15
_FINAL = 0xBF58476D1CE4E5B9


class KeyTable(NamedTuple):
    """The different keys of some rows."""

    slots: np.ndarray  # int32, the number of a key + 1 at its hash, 0: free
    hashes: np.ndarray  # uint64, the hash of each key by its number
    first: np.ndarray  # int64, the first row of each key
    keys: Keys  # of all the rows


@njit(nogil=True, cache=True)
def _mixed(state, word):  # type: ignore[no-untyped-def]
    state = (state ^ word) * np.uint64(_MIX)
    return state ^ (state >> np.uint64(29))


@njit(nogil=True, cache=True)
def _hash_of(fixed, texts, row, start, end):  # type: ignore[no-untyped-def]
    state = np.uint64(_FINAL) + np.uint64(end - start)
    word, bits = np.uint64(0), np.uint64(0)
    for place in range(fixed.shape[1]):
        word |= np.uint64(fixed[row, place]) << bits
        bits += np.uint64(8)
        if bits == 64:
            state = _mixed(state, word)
            word, bits = np.uint64(0), np.uint64(0)
    for place in range(start, end):
        word |= np.uint64(texts[place]) << bits
        bits += np.uint64(8)
        if bits == 64:
            state = _mixed(state, word)
            word, bits = np.uint64(0), np.uint64(0)
    state = _mixed(state, word)
    state = (state ^ (state >> np.uint64(32))) * np.uint64(_FINAL)
    return state ^ (state >> np.uint64(31))


@njit(nogil=True, cache=True)
def _hashes(fixed, texts, starts, ends):  # type: ignore[no-untyped-def]
    found = np.empty(fixed.shape[0], np.uint64)
    for row in range(fixed.shape[0]):
        found[row] = _hash_of(fixed, texts, row, starts[row], ends[row])
    return found


@njit(nogil=True, cache=True)
def _equal(fixed, texts, row, start, end, others, other_texts, other, first, last):  # type: ignore[no-untyped-def]
    if end - start != last - first:
        return False
    for place in range(fixed.shape[1]):
        if fixed[row, place] != others[other, place]:
            return False
    same = True
    for place in range(end - start):
        same &= texts[start + place] == other_texts[first + place]
    return same


@njit(nogil=True, cache=True)
def _number(hashes, fixed, texts, starts, ends, slots, codes, first):  # type: ignore[no-untyped-def]
    """Number the keys in the order of their first rows; returns how many there are."""
    mask = slots.shape[0] - 1
    count = 0
    for row in range(hashes.shape[0]):
        # The low bits have chosen the bucket. They are the same in all its rows.
        slot = np.int64(hashes[row] >> np.uint64(32)) & mask
        while True:
            code = np.int64(slots[slot]) - 1
            if code < 0:
                code = np.int64(count)
                slots[slot] = count + 1
                first[count] = row
                count += 1
                break
            other = first[code]
            if hashes[other] == hashes[row] and _equal(
                fixed, texts, row, starts[row], ends[row],
                fixed, texts, other, starts[other], ends[other],
            ):  # fmt: skip
                break
            slot = (slot + 1) & mask
        codes[row] = code
    return count


@njit(nogil=True, cache=True)
def _find(  # type: ignore[no-untyped-def]
    slots, known, first, of_table, of_texts, of_starts, of_ends,
    hashes, fixed, texts, starts, ends, codes,
):  # fmt: skip
    mask = slots.shape[0] - 1
    for row in range(hashes.shape[0]):
        slot = np.int64(hashes[row] >> np.uint64(32)) & mask
        codes[row] = -1
        while slots[slot] != 0:
            code = np.int64(slots[slot]) - 1
            other = first[code]
            if known[code] == hashes[row] and _equal(
                fixed, texts, row, starts[row], ends[row],
                of_table, of_texts, other, of_starts[other], of_ends[other],
            ):  # fmt: skip
                codes[row] = code
                break
            slot = (slot + 1) & mask


def hashes_of(keys: Keys) -> np.ndarray:
    """uint64[rows]: a hash of each key. It decides the buckets of a checkpoint, so it never
    changes."""
    with np.errstate(over="ignore"):  # products wrap; NumPy warns of that where Numba is off
        found: np.ndarray = _hashes(*keys)
    return found


def numbered(keys: Keys, hashes: np.ndarray) -> tuple[np.ndarray, KeyTable]:
    """(int64[rows], the number of each row's key; the table of these keys).

    Keys are numbered in the order of their first rows. hashes: as from `hashes_of`.
    """
    count = len(hashes)
    slots = np.zeros(1 << max(3, int(2 * count).bit_length()), np.int32)
    codes, first = np.empty(count, np.int64), np.empty(count, np.int64)
    found = int(_number(hashes, *keys, slots, codes, first))
    first = first[:found].copy()
    return codes, KeyTable(slots, hashes[first], first, keys)


def found_in(table: KeyTable, keys: Keys, hashes: np.ndarray) -> np.ndarray:
    """int64[rows]: the numbers of other rows' keys in a table; −1: not there."""
    codes = np.empty(len(hashes), np.int64)
    _find(table.slots, table.hashes, table.first, *table.keys, hashes, *keys, codes)
    return codes


@njit(nogil=True, cache=True)
def _grouped(codes, starts, order):  # type: ignore[no-untyped-def]
    for row in range(codes.shape[0]):
        starts[codes[row] + 1] += 1
    for group in range(starts.shape[0] - 1):
        starts[group + 1] += starts[group]
    place = starts[:-1].copy()
    for row in range(codes.shape[0]):
        order[place[codes[row]]] = row
        place[codes[row]] += 1


def grouped(codes: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """(int64[rows], the rows by group, in their order in each; int64[groups + 1], where groups
    begin)."""
    starts, order = np.zeros(groups + 1, np.int64), np.empty(len(codes), np.int64)
    _grouped(codes, starts, order)
    return order, starts

"""Hash tables from keys to piles. Equality conditions keep partial matches apart by key.

A table has one row for each key: a flag (is the row taken?), the values of the key, and for each
pile its newest cell and the SINCE of that cell. Collisions use linear probing.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import NEVER
from celc_runtime.jit.instructions import prefetch
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import KeyTable

AHEAD = 16  # rows of the batch: a key is prefetched this long before its event is read
IS_TAKEN = 0  # the column that is not 0 where a row holds a key
FIRST_KEY = 1  # the column of a key's first value


class KeyArrays(NamedTuple):
    """What a keyed update reads and writes besides `arena.Memory`."""

    values: np.ndarray  # int64[terms, rows], the key terms of each event of the batch
    known: np.ndarray  # bool[terms, rows], whether these are not NULL
    tables: tuple[np.ndarray, ...]  # each int64[size, 1 + keys + 2 · piles]; size: a power of two
    filled: np.ndarray  # int64[tables], the number of rows that are taken


def empty_table(table: KeyTable, size: int) -> np.ndarray:
    rows = np.zeros((size, FIRST_KEY + len(table.texts) + 2 * table.piles), np.int64)
    rows[:, FIRST_KEY + len(table.texts) + 1 :: 2] = NEVER
    return rows


@njit(nogil=True, cache=True, inline="always")
def _mixed(key):  # type: ignore[no-untyped-def]
    """The hash of one value, by Fibonacci hashing; the high bits are folded into the low ones."""
    code = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return code ^ (code >> np.uint64(32))


@njit(nogil=True, cache=True)
def fetch_ahead(table, hashed):  # type: ignore[no-untyped-def]
    """Start loading the row at which the search for a key begins.

    A table with many keys does not fit into the processor's near caches. So the rows of the next
    events are loaded while the present event is read.
    """
    row = hashed & (table.shape[0] - 1)
    prefetch(table, row * table.shape[1])


@njit(nogil=True, cache=True)
def hash_of(key):  # type: ignore[no-untyped-def]
    """The hash of a key of one value: where its search starts, modulo the size of the table."""
    return np.int64(_mixed(key))


@njit(nogil=True, cache=True)
def hash_of_two(one, two):  # type: ignore[no-untyped-def]
    return np.int64(_mixed(np.int64(_mixed(one)) ^ two))


@njit(nogil=True, cache=True)
def hash_of_three(one, two, three):  # type: ignore[no-untyped-def]
    return np.int64(_mixed(np.int64(_mixed(np.int64(_mixed(one)) ^ two)) ^ three))


@njit(nogil=True, cache=True)
def row_of(table, key):  # type: ignore[no-untyped-def]
    """The row of a key, or the free row where it belongs."""
    mask = table.shape[0] - 1
    row = hash_of(key) & mask
    while table[row, 0] != 0 and table[row, 1] != key:
        row = (row + 1) & mask
    return row


@njit(nogil=True, cache=True)
def row_of_two(table, one, two):  # type: ignore[no-untyped-def]
    mask = table.shape[0] - 1
    row = hash_of_two(one, two) & mask
    while table[row, 0] != 0 and (table[row, 1] != one or table[row, 2] != two):
        row = (row + 1) & mask
    return row


@njit(nogil=True, cache=True)
def row_of_three(table, one, two, three):  # type: ignore[no-untyped-def]
    mask = table.shape[0] - 1
    row = hash_of_three(one, two, three) & mask
    while table[row, 0] != 0 and (
        table[row, 1] != one or table[row, 2] != two or table[row, 3] != three
    ):
        row = (row + 1) & mask
    return row


@njit(nogil=True, cache=True)
def pile_at(table, row, column, lowest):  # type: ignore[no-untyped-def]
    """(newest cell, its SINCE) of a pile. A cell below `lowest` is of another partition: dead."""
    head = table[row, column]
    return head, table[row, column + 1] if head >= lowest else np.int64(NEVER)


@njit(nogil=True, cache=True)
def _has_live_pile(table, row, keys, earliest, lowest):  # type: ignore[no-untyped-def]
    """Whether some pile of a row's key has a live cell."""
    if table[row, 0] == 0:
        return False
    for column in range(1 + keys, table.shape[1], 2):
        if table[row, column] >= lowest and table[row, column + 1] >= earliest:
            return True
    return False


@njit(nogil=True, cache=True)
def clear_table(table, keys):  # type: ignore[no-untyped-def]
    for row in range(table.shape[0]):
        table[row, 0] = 0
        for column in range(1 + keys, table.shape[1], 2):
            table[row, column] = 0
            table[row, column + 1] = NEVER


@njit(nogil=True, cache=True)
def copy_live_keys(table, fresh, keys, earliest, lowest):  # type: ignore[no-untyped-def]
    """Copy the keys that have live piles into an empty table; returns their number."""
    live = 0
    for row in range(table.shape[0]):
        if _has_live_pile(table, row, keys, earliest, lowest):
            live += 1
            if keys == 1:
                free = row_of(fresh, table[row, 1])
            elif keys == 2:
                free = row_of_two(fresh, table[row, 1], table[row, 2])
            else:
                free = row_of_three(fresh, table[row, 1], table[row, 2], table[row, 3])
            for column in range(table.shape[1]):
                fresh[free, column] = table[row, column]
    return live

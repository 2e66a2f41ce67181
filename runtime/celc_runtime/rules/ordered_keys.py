"""Groups of sorted keys, in which a key is found in few steps.

A group is divided into as many parts of equal width as it has keys, and a table holds where each
part begins. If keys are spread evenly, a part has about one key. Inside a part a binary search
runs, so uneven keys cost what a binary search does (interpolation as in Kraska et al., The Case for
Learned Index Structures, 2018, with one linear model for each group). A binary search of all keys
misses the cache at each of its first steps.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit


class OrderedKeys(NamedTuple):
    """Keys in groups, ascending in each group, with a table for each group.

    A key belongs to the part p = `(key − keys[starts[g]]) >> shifts[g]` of its group g.
    """

    keys: np.ndarray  # int64
    starts: np.ndarray
    """int64[groups + 1], group g has the keys from starts[g] to before starts[g + 1]."""
    tables: np.ndarray  # part p of group g begins at the index begins[tables[g] + p] of `keys`
    shifts: np.ndarray  # uint64[groups]
    begins: np.ndarray  # int32


def ordered_keys(keys: np.ndarray, starts: np.ndarray) -> OrderedKeys:
    """The tables for keys that ascend in each of their groups."""
    tables, shifts, room = _layout(keys, starts)
    begins = np.empty(room, np.int32)
    _write_begins(keys, starts, tables, shifts, begins)
    return OrderedKeys(keys, starts, tables, shifts, begins)


@njit(nogil=True, cache=True)
def _layout(keys, starts):  # type: ignore[no-untyped-def]
    """The table of each group, the width of its parts, and the room of all tables."""
    groups = len(starts) - 1
    tables, shifts = np.zeros(groups, np.int64), np.zeros(groups, np.uint64)
    room = np.int64(0)
    for group in range(groups):
        tables[group] = room
        count = starts[group + 1] - starts[group]
        if count:
            width = np.uint64(keys[starts[group + 1] - 1]) - np.uint64(keys[starts[group]])
            shift = np.uint64(0)
            while (width >> shift) > np.uint64(2 * count):
                shift += np.uint64(1)
            shifts[group] = shift
            room += np.int64(width >> shift) + 2
    return tables, shifts, room


@njit(nogil=True, cache=True)
def _write_begins(keys, starts, tables, shifts, begins):  # type: ignore[no-untyped-def]
    for group in range(len(starts) - 1):
        first, behind = starts[group], starts[group + 1]
        if first == behind:
            continue
        end = len(begins) if group + 1 == len(tables) else tables[group + 1]
        at = tables[group]
        for place in range(first, behind):
            offset = np.uint64(keys[place]) - np.uint64(keys[first])
            part = tables[group] + np.int64(offset >> shifts[group])
            while at <= part:
                begins[at] = place
                at += 1
        while at < end:
            begins[at] = behind
            at += 1


@njit(nogil=True, cache=True)
def place_in_group(ordered, group, key, counts_equal):  # type: ignore[no-untyped-def]
    """The first index in a group whose key is > `key`, or without `counts_equal` ≥ `key`.

    If there is none, the index after the group.
    """
    keys = ordered.keys
    low, high = ordered.starts[group], ordered.starts[group + 1]
    if low == high or key < keys[low]:
        return low
    if key > keys[high - 1]:
        return high
    offset = np.uint64(key) - np.uint64(keys[low])
    part = ordered.tables[group] + np.int64(offset >> ordered.shifts[group])
    low, high = np.int64(ordered.begins[part]), np.int64(ordered.begins[part + 1])
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key or (counts_equal and keys[middle] == key):
            low = middle + 1
        else:
            high = middle
    return low

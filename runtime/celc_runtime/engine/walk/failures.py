"""The memory of failures: partial matches below which no match was found are not entered twice.

Where each condition asks only for numbers that are kept with the newest event of the path (the last
event of a role, the event that waits for a witness, the end of a window, a sum of whole numbers),
the matches below a node depend on the node and these numbers, and not on the rest of the path. So a
node that was left without a match below it is not entered again with the same numbers. An event at
which matches end is then searched in so many steps as there are such pairs, and not as there are
paths, whose number can double with every event.

A table with open addressing; a slot is free where its first number is not that of the search.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.jit.kernels import njit

PATIENCE = 64
"""The steps of a search before it looks for failures: short searches are faster without."""


@njit(nogil=True, error_model="numpy", inline="always")
def is_full(failures, count):  # type: ignore[no-untyped-def]
    """Whether `count` failures, those that may be noted next included, need more room: a search for
    a slot ends at a free one."""
    return 2 * count >= failures.shape[0]


@njit(nogil=True, error_model="numpy", inline="always")
def slot_of(failures, number, node, state, depth):  # type: ignore[no-untyped-def]
    """The slot of a node with the numbers kept at path[depth], or a free one."""
    code = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    for row in range(failures.shape[1] - 2):
        code = (code ^ (code >> np.uint64(29))) + np.uint64(state[row, depth])
        code *= np.uint64(0x9E3779B97F4A7C15)
    last = np.uint64(failures.shape[0] - 1)
    slot = (code >> np.uint64(32)) & last
    searching = True
    while searching and failures[slot, 0] == number:
        same = failures[slot, 1] == node
        for row in range(failures.shape[1] - 2):
            same &= failures[slot, row + 2] == state[row, depth]
        if same:
            searching = False
        else:
            slot = (slot + np.uint64(1)) & last
    return slot


@njit(nogil=True, error_model="numpy", inline="always")
def has_failed(failures, number, node, state, depth):  # type: ignore[no-untyped-def]
    """Whether a node has been left without a match below it, with the same numbers."""
    return failures[slot_of(failures, number, node, state, depth), 0] == number


@njit(nogil=True, error_model="numpy", inline="always")
def note_failure(failures, number, node, state, depth):  # type: ignore[no-untyped-def]
    """Note that a node was left without a match below it; returns whether that was not known."""
    slot = slot_of(failures, number, node, state, depth)
    if failures[slot, 0] == number:
        return False
    failures[slot, 0], failures[slot, 1] = number, node
    for row in range(failures.shape[1] - 2):
        failures[slot, row + 2] = state[row, depth]
    return True

"""The memory of failures: partial matches without a match below them are not entered twice.

Some conditions need only a few numbers that are kept with the newest event of the path: the last
event of a role, the event that waits for a witness, the end of a window, a sum of whole numbers.
The matches below a node then depend on the node and these numbers, not on the rest of the path. So
a node that failed is not entered again with the same numbers. The search at one event takes as many
steps as there are such pairs, not as many as there are paths, whose number can double with every
event.

The memory is a hash table with open addressing. A slot is free if its first number is not the
number of the present search.
"""

import numpy as np

from celc_runtime.jit.kernels import njit

PATIENCE = 64  # steps of a search before it looks for failures: short searches are faster without


@njit(nogil=True, error_model="numpy", inline="always")
def is_full(failures, count):  # type: ignore[no-untyped-def]
    """Whether the table needs more room for `count` failures; a search ends at a free slot."""
    return 2 * count >= failures.shape[0]


@njit(nogil=True, error_model="numpy", inline="always")
def slot_of(failures, number, node, state, depth):  # type: ignore[no-untyped-def]
    """The slot of a node with the numbers kept at path[depth], or a free slot."""
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
    """Whether no match was found below a node, with the same numbers."""
    return failures[slot_of(failures, number, node, state, depth), 0] == number


@njit(nogil=True, error_model="numpy", inline="always")
def note_failure(failures, number, node, state, depth):  # type: ignore[no-untyped-def]
    """Note that no match was found below a node; returns whether that is new."""
    slot = slot_of(failures, number, node, state, depth)
    if failures[slot, 0] == number:
        return False
    failures[slot, 0], failures[slot, 1] = number, node
    for row in range(failures.shape[1] - 2):
        failures[slot, row + 2] = state[row, depth]
    return True

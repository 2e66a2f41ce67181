"""The memory of failures: the search does not enter a node twice that has no match below it.

Some conditions need only a few numbers that are kept with the newest event of the path: the last
event of a role, the event that waits for a witness, the end of a window, a sum of whole numbers.
The matches below a node then depend on the node and these numbers, not on the rest of the path. So
a node that failed is not entered again with the same numbers. The search at one event takes as many
steps as there are such pairs, not as many as there are paths, whose number can double with every
event.

The memory is a hash table with open addressing: `failures`, int64[slots, 2 + numbers]. A row has
the number of the search that wrote it, the node, and the numbers. A slot is free if its first
number is not that of the present search: so nothing has to be cleared between two searches.

All functions below take `number`, the number of the present search, and the place that they ask
about: `node`, with the numbers `state[:, depth]` that the path has at this depth.
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
    """The slot of this place, or the free slot where it would be noted."""
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
    """Whether the search was at this place before and found no match below it."""
    return failures[slot_of(failures, number, node, state, depth), 0] == number


@njit(nogil=True, error_model="numpy", inline="always")
def note_failure(failures, number, node, state, depth):  # type: ignore[no-untyped-def]
    """Note that no match was found below this place; returns whether that is new."""
    slot = slot_of(failures, number, node, state, depth)
    if failures[slot, 0] == number:
        return False
    failures[slot, 0], failures[slot, 1] = number, node
    for row in range(failures.shape[1] - 2):
        failures[slot, row + 2] = state[row, depth]
    return True

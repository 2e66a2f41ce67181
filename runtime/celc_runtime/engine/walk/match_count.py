"""Counting the matches that end at an event without listing them.

Each match is a path through the nodes below the event. Paths are counted node by node, from the
oldest on, since a node refers to older nodes only. That reads each node of the window.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.engine.arena.nodes import CHILD, MERGE, NEXT, NEXT_NODE, SINCE, TAG, lowest_id
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def count_matches(memory, kinds, fire, of_runs):  # type: ignore[no-untyped-def]
    """How many matches end at an event that fired, as float64; infinite where there are more.

    `of_runs`: matches have one shape, and the CHILD of a cell that begins a match is its place
    among the leaves.
    """
    nodes, starts = memory.nodes, kinds.starts
    mask, kind_mask = nodes.shape[0] - 1, (np.int64(1) << kinds.bits[0]) - 1
    root, floor_value = fire[0], fire[3]
    lowest = lowest_id(nodes, memory.counters[NEXT_NODE], fire[2])
    counts = np.zeros(nodes.shape[0], np.float64)
    for node in range(lowest, root + 1):
        at = node & mask
        if nodes[at, SINCE] < floor_value:
            continue
        tag, child, following = nodes[at, TAG], nodes[at, CHILD], nodes[at, NEXT]
        begins = tag != MERGE and starts[tag & kind_mask]
        count = 1.0 if begins else 0.0
        if child >= lowest and not (begins and of_runs):
            count += counts[child & mask]
        if following >= lowest:
            count += counts[following & mask]
        counts[at] = count
    return counts[root & mask]

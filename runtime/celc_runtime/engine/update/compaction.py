"""Compacts the arena: moves the nodes that union lists still reach next to each other.

The arena is a ring, and a node lies at its id modulo the size of the ring. As long as nodes die in
the order of their ids, the ring frees them by itself. If partitions interleave, a quiet partition
keeps old nodes alive among dead ones. Then the live nodes are copied, with new ids above all old
ones.
"""

import numpy as np

from celc_runtime.engine.arena.nodes import (
    CHILD,
    FIRES,
    LOWEST,
    NEVER,
    NEXT,
    NEXT_NODE,
    SINCE,
    USABLE,
    Memory,
    is_live,
    lowest_id,
)
from celc_runtime.engine.update.union_lists import Lists
from celc_runtime.jit.kernels import njit


def reachable_nodes(memory: Memory, lists: Lists, floors: np.ndarray) -> tuple[np.ndarray, int]:
    """(bool[rows of the arena]: whether some list reaches the node there; how many these are).

    floors: int64[slots], the earliest key inside the window of each partition slot.
    """
    flags = np.zeros(len(memory.nodes), np.bool_)
    count = _flag_reachable(memory.nodes, memory.counters, lists, floors, flags)
    return flags, int(count)


@njit(nogil=True, cache=True)
def _flag_reachable(nodes, counters, lists, floors, flags):  # type: ignore[no-untyped-def]
    """Set the flags of `reachable_nodes`; returns how many were set."""
    mask = nodes.shape[0] - 1
    lowest = lowest_id(nodes, counters[NEXT_NODE], counters[LOWEST])
    waiting = np.empty(nodes.shape[0] + 1, np.int64)
    count = 0
    for slot in range(lists.active.shape[0] - 1):
        for place in range(lists.active[slot]):
            state = lists.order[slot, place]
            for item in range(lists.length[slot, state]):
                size = 0
                node = lists.items[slot, state, item]
                if is_live(nodes, node, lowest, floors[slot]) and not flags[node & mask]:
                    flags[node & mask] = True
                    waiting[0] = node
                    size = 1
                while size > 0:
                    size -= 1
                    at = waiting[size] & mask
                    count += 1
                    for field in (CHILD, NEXT):
                        below = nodes[at, field]
                        if is_live(nodes, below, lowest, floors[slot]) and not flags[below & mask]:
                            flags[below & mask] = True
                            waiting[size] = below
                            size += 1
    return count


def compacted(memory: Memory, lists: Lists, flags: np.ndarray, count: int) -> Memory:
    """An arena of the flagged nodes, with new ids above all old ones. The lists are changed in
    place.

    Ids keep their order, so children stay below their parents.
    """
    size = len(memory.nodes)
    while size < 2 * count:
        size *= 2
    counters = memory.counters
    next_node = int(counters[NEXT_NODE])
    ids = np.arange(next_node - len(memory.nodes), next_node, dtype=np.int64)
    ids = ids[flags[ids & (len(memory.nodes) - 1)]]
    renumbered = np.zeros(len(memory.nodes), np.int64)
    rows = ids & (len(memory.nodes) - 1)
    renumbered[rows] = np.arange(next_node, next_node + count)
    moved = memory.nodes[rows]
    for field in (CHILD, NEXT):
        old = moved[:, field]
        known = (old >= next_node - len(memory.nodes)) & (old > 0)
        moved[:, field] = np.where(known, renumbered[old & (len(memory.nodes) - 1)], 0)
    nodes = np.zeros((size, 4), np.int64)
    nodes[:, SINCE] = NEVER
    nodes[np.arange(next_node, next_node + count) & (size - 1)] = moved
    lists.items[...] = np.where(
        lists.items >= next_node - len(memory.nodes),
        renumbered[lists.items & (len(memory.nodes) - 1)],
        0,
    )
    counters[LOWEST] = next_node
    counters[NEXT_NODE] = next_node + count
    counters[USABLE] = min(next_node + size, next_node + count + FIRES)
    return memory._replace(nodes=nodes)

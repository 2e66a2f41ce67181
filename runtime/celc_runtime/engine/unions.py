"""The union of all matches that end at an event, from the nodes below it, without listing any.

Each path of live nodes below a cell that fired is a match. So the events of all matches are those
of the live nodes that can be reached, and the number of matches is the number of paths, counted
from the oldest node on. Both take a step for each node, however many paths there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena import (
    CHILD,
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    PADDING,
    SINCE,
    TAG,
    lowest_id,
)
from celc_runtime.engine.wide_numbers import add_wide
from celc_runtime.jit.kernels import njit


class UnionScratch(NamedTuple):
    """Working memory as large as the arena, and the numbers of matches that were found.

    seen: int64[nodes], the last fire that reached a node; fires: int64[1], how many there were;
    reached: int64[nodes], the nodes below the fire at hand; paths: uint64[nodes, 2], the number of
    paths below a node (high, low). counts: uint64[matches, 2], of each row of the output.
    """

    seen: np.ndarray
    fires: np.ndarray
    reached: np.ndarray
    paths: np.ndarray
    counts: np.ndarray


def union_scratch(nodes: int, rows: int) -> UnionScratch:
    """Scratch memory for an arena of so many nodes and an output of so many rows."""
    return UnionScratch(
        np.zeros(nodes, np.int64),
        np.zeros(1, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, 2), np.uint64),
        np.zeros((rows, 2), np.uint64),
    )


@njit(nogil=True, cache=True)
def unite_fired(memory, output, kinds, scratch):  # type: ignore[no-untyped-def]
    """One row for each event that fired, with the events of all its matches in the order of the
    stream, some of them twice where they are marked in two ways; DONE or OUTPUT_FULL."""
    counters, nodes = memory.counters, memory.nodes
    mask = nodes.shape[0] - 1
    bits = kinds.bits[0]
    most, room = output.rows.shape[0], output.tags.shape[0] - PADDING
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        reached = _reach(nodes, fire, counters[NEXT_NODE], scratch)
        below = np.sort(scratch.reached[:reached])
        matches, used = output.used[0], output.used[1]
        if matches == most or used + reached >= room:
            return OUTPUT_FULL
        lowest, floor_value = lowest_id(nodes, counters[NEXT_NODE], fire[2]), fire[3]
        last = np.int64(-1)
        for place in range(reached):
            node = below[place]
            at = node & mask
            tag, child, following = nodes[at, TAG], nodes[at, CHILD], nodes[at, NEXT]
            high, low = np.uint64(0), np.uint64(0)
            if tag != MERGE and kinds.starts[tag & ((np.int64(1) << bits) - 1)]:
                low = np.uint64(1)
            for other in (child, following):
                if other >= lowest and nodes[other & mask, SINCE] >= floor_value:
                    paths = scratch.paths[other & mask]
                    high, low = add_wide(high, low, paths[0], paths[1])
            scratch.paths[at, 0], scratch.paths[at, 1] = high, low
            if tag != MERGE and tag != last:
                output.tags[used] = last = tag
                used += 1
        stretch = output.tags[output.used[1] : used]
        stretch.sort()
        output.rows[matches], output.ends[matches] = fire[1], used
        root = scratch.paths[fire[0] & mask]
        scratch.counts[matches, 0], scratch.counts[matches, 1] = root[0], root[1]
        output.used[0], output.used[1] = matches + 1, used
        counters[LISTED] += 1
    counters[LISTED] = counters[FIRED] = 0
    return DONE


@njit(nogil=True, cache=True)
def _reach(nodes, fire, next_node, scratch):  # type: ignore[no-untyped-def]
    """Write the live nodes below a fire into `reached`; returns how many there are."""
    mask = nodes.shape[0] - 1
    lowest, floor_value = lowest_id(nodes, next_node, fire[2]), fire[3]
    scratch.fires[0] += 1
    stamp, reached = scratch.fires[0], scratch.reached
    reached[0], count, at = fire[0], 1, 0
    scratch.seen[fire[0] & mask] = stamp
    while at < count:
        node = reached[at] & mask
        at += 1
        for other in (nodes[node, CHILD], nodes[node, NEXT]):
            place = other & mask
            is_new = other >= lowest and scratch.seen[place] != stamp
            if is_new and nodes[place, SINCE] >= floor_value:
                scratch.seen[place] = stamp
                reached[count] = other
                count += 1
    return count

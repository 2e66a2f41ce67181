"""The matches that end at an event as a graph of their own: the nodes below it that lead to one.

A node of the arena is shared by matches that end at many events, and may lead to matches that have
left the window of some. Here the nodes below one event that fired are walked once, each after the
nodes that it refers to. A node without a match is left out, and what referred to it refers to what
is left: so every path in the graph is a match, and the cost is linear in the nodes that are walked.

Rejected: a pass over all node ids of the window, as `match_count` makes. It needs no stack, but it
costs the window at each event, also where few events take part in its matches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    CHILD,
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    SINCE,
    TAG,
    lowest_id,
)
from celc_runtime.jit.kernels import njit


class Graphs(NamedTuple):
    """The graphs of events that fired, and the memory of the walk.

    nodes: int64[room, 4], one graph behind another: the entry of an event (−1: a merge of two
    nodes), its kind, the node of the events before it, another node for the same place; both are
    counted from the first node of the graph, −1: none. A node comes behind those that it refers to,
    and the root is the last. rows, ends: int64[fires], the row of each event, and where the nodes
    of its graph end. used: int64[3]: graphs, nodes, and how many walks there were. walked:
    int64[size], the walk that reached a row of the arena last; place: int64[size], the node that it
    became, −1: none; stack: int64[size + 2].
    """

    nodes: np.ndarray
    rows: np.ndarray
    ends: np.ndarray
    used: np.ndarray
    walked: np.ndarray
    place: np.ndarray
    stack: np.ndarray


def new_graphs(size: int, *, room: int, fires: int) -> Graphs:
    """Empty graphs, for an arena of `size` nodes."""
    return Graphs(
        np.empty((room, 4), np.int64),
        np.empty(fires, np.int64),
        np.empty(fires, np.int64),
        np.zeros(3, np.int64),
        np.zeros(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size + 2, np.int64),
    )


@njit(nogil=True, cache=True)
def graphs_of_fired(memory, graphs, kinds):  # type: ignore[no-untyped-def]
    """Write the graphs of all events that fired, from where it stopped; DONE or OUTPUT_FULL.

    An event whose graph did not fit is not counted, and its graph is written again.
    """
    counters, used = memory.counters, graphs.used
    while counters[LISTED] < counters[FIRED]:
        if used[0] == graphs.rows.shape[0]:
            return OUTPUT_FULL
        fire = memory.fires[counters[LISTED]]
        end = _write_graph(memory, graphs, kinds, fire)
        if end < 0:
            return OUTPUT_FULL
        if end > used[1]:
            graphs.rows[used[0]], graphs.ends[used[0]] = fire[1], end
            used[0] += 1
            used[1] = end
        counters[LISTED] += 1
    counters[LISTED] = counters[FIRED] = 0
    return DONE


@njit(nogil=True, cache=True)
def _write_graph(memory, graphs, kinds, fire):  # type: ignore[no-untyped-def]
    """Write the graph below an event that fired; where it ends, or −1: there was no room."""
    nodes, starts, walked, place, stack = (
        memory.nodes,
        kinds.starts,
        graphs.walked,
        graphs.place,
        graphs.stack,
    )
    mask, bits = nodes.shape[0] - 1, kinds.bits[0]
    kind_mask = (np.int64(1) << bits) - 1
    floor_value = fire[3]
    lowest = lowest_id(nodes, memory.counters[NEXT_NODE], fire[2])
    graphs.used[2] += 1
    walk, base = graphs.used[2], graphs.used[1]
    end, waiting = base, 1
    stack[0] = fire[0]
    while waiting > 0:
        node = stack[waiting - 1]
        at = node & mask
        if walked[at] == walk:
            waiting -= 1
            continue
        tag, child, following = nodes[at, TAG], nodes[at, CHILD], nodes[at, NEXT]
        before = after = np.int64(-1)
        if child >= lowest and nodes[child & mask, SINCE] >= floor_value:
            if walked[child & mask] != walk:
                stack[waiting] = child
                waiting += 1
                continue
            before = place[child & mask]
        if following >= lowest and nodes[following & mask, SINCE] >= floor_value:
            if walked[following & mask] != walk:
                stack[waiting] = following
                waiting += 1
                continue
            after = place[following & mask]
        walked[at] = walk
        waiting -= 1
        if tag == MERGE:
            is_needed = before >= 0 and after >= 0
        else:
            is_needed = before >= 0 or starts[tag & kind_mask]
        if not is_needed:
            place[at] = max(before, after)
            continue
        if end == graphs.nodes.shape[0]:
            return np.int64(-1)
        graphs.nodes[end, 0] = np.int64(-1) if tag == MERGE else tag >> bits
        graphs.nodes[end, 1] = np.int64(-1) if tag == MERGE else tag & kind_mask
        graphs.nodes[end, 2], graphs.nodes[end, 3] = before, after
        place[at] = end - base
        end += 1
    return end

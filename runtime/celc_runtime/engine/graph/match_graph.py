"""The matches that end at an event, as a graph of their own: the nodes below it that lead to a
match.

Matches that end at many events share a node of the arena. Some matches below it may have left the
window of an event. Here the nodes below one event that fired are walked once (`below`). A node
without a match is left out, and references to it go to what remains. So every path in the graph is
a match. Compact answers show the graph. Folds over it count the matches, and the matches that
contain each event (`match_count`).
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT_NODE,
    OUTPUT_FULL,
    lowest_id,
)
from celc_runtime.engine.walk.below import visits_below
from celc_runtime.jit.kernels import njit

# Places in `Graphs.used`: graphs, their nodes, walks so far, where the present walk's nodes end.
GRAPHS, NODES, WALKS, END = 0, 1, 2, 3


class Graphs(NamedTuple):
    """The graphs of events that fired, and the memory of the walk."""

    nodes: np.ndarray
    """int64[room, 4], one graph after another: the entry of an event (−1: a merge of two nodes),
    its kind, the node of the events before it, another node for the same place. Nodes are counted
    from the first node of the graph, −1: none. Each node comes after those it refers to; the root
    is last."""
    rows: np.ndarray  # int64[fires], the row of each event
    ends: np.ndarray  # int64[fires], where the nodes of its graph end
    used: np.ndarray  # int64[4], by GRAPHS, NODES, WALKS, END
    walked: np.ndarray  # int64[size], the last walk that reached a row of the arena
    place: np.ndarray  # int64[size], the node of the graph that it became, −1: none
    stack: np.ndarray  # int64[size]


def new_graphs(size: int, *, room: int, fires: int) -> Graphs:
    return Graphs(
        np.empty((room, 4), np.int64),
        np.empty(fires, np.int64),
        np.empty(fires, np.int64),
        np.zeros(4, np.int64),
        np.zeros(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )


def for_arena(graphs: Graphs, size: int) -> Graphs:
    if len(graphs.walked) == size:
        return graphs
    fresh = new_graphs(size, room=0, fires=0)
    return graphs._replace(walked=fresh.walked, place=fresh.place, stack=fresh.stack)


@njit(nogil=True, cache=True)
def graphs_of_fired(memory, graphs, kinds):  # type: ignore[no-untyped-def]
    """Write the graphs of all events that fired, from where the last call stopped.

    Returns DONE or OUTPUT_FULL. An event whose graph did not fit is not counted. Its graph is
    written again.
    """
    counters, used = memory.counters, graphs.used
    while counters[LISTED] < counters[FIRED]:
        if used[GRAPHS] == graphs.rows.shape[0]:
            return OUTPUT_FULL
        fire = memory.fires[counters[LISTED]]
        end = write_graph(memory, graphs, kinds, fire)
        if end < 0:
            return OUTPUT_FULL
        if end > used[NODES]:
            graphs.rows[used[GRAPHS]], graphs.ends[used[GRAPHS]] = fire[1], end
            used[GRAPHS] += 1
            used[NODES] = end
        counters[LISTED] += 1
    counters[LISTED] = counters[FIRED] = 0
    return DONE


def _add_node(node, row, tag, below, beside, given):  # type: ignore[no-untyped-def]
    """Add a node of the arena to the graph if a match goes through it; False: there is no room."""
    graphs, kinds = given
    place, used = graphs.place, graphs.used
    before = place[below] if below >= 0 else np.int64(-1)
    after = place[beside] if beside >= 0 else np.int64(-1)
    kind = tag & ((np.int64(1) << kinds.bits[0]) - 1)
    if tag == MERGE:
        is_needed = before >= 0 and after >= 0
    else:
        is_needed = before >= 0 or kinds.starts[kind]
    if not is_needed:
        place[row] = max(before, after)
        return True
    end = used[END]
    if end == graphs.nodes.shape[0]:
        return False
    graphs.nodes[end, 0] = np.int64(-1) if tag == MERGE else tag >> kinds.bits[0]
    graphs.nodes[end, 1] = np.int64(-1) if tag == MERGE else kind
    graphs.nodes[end, 2], graphs.nodes[end, 3] = before, after
    place[row] = end - used[NODES]
    used[END] = end + 1
    return True


_add_nodes = visits_below(
    njit(nogil=True, error_model="numpy", _nrt=False, inline="always")(_add_node)
)


@njit(nogil=True, cache=True)
def write_graph(memory, graphs, kinds, fire):  # type: ignore[no-untyped-def]
    """Write the graph below an event that fired; returns where it ends, −1: there was no room."""
    nodes, used = memory.nodes, graphs.used
    lowest = lowest_id(nodes, memory.counters[NEXT_NODE], fire[2])
    used[WALKS] += 1
    used[END] = used[NODES]
    fits = _add_nodes(
        nodes, fire[0], lowest, fire[3], graphs.walked, used[WALKS], graphs.stack, (graphs, kinds)
    )
    return used[END] if fits else np.int64(-1)

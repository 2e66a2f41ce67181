"""Listed matches as graphs: one tree for each last event.

This is for answers where a listing chooses among matches, so no graph of the arena shows the
answer. Matches are added in the order of the listing. A match shares the nodes of the last events
that it has in common with the match before it. Its other events get new nodes. So in a depth-first
listing no two nodes of a place are alike, and in any order each path is one match.

Rejected: sharing the first events of matches as well. That needs a table of nodes, and the matches
that a selector leaves have little in common there.
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.graph.match_graph import Graphs
from celc_runtime.jit.kernels import njit


class Trees(NamedTuple):
    """The trees of events whose matches are listed."""

    graphs: Graphs
    """The nodes. In the open tree, nodes refer to nodes after them, and the root is first. The mark
    of a node is twice its kind, plus one if it begins a match."""
    path: np.ndarray  # int64[depth], the nodes of the last match, from its end back
    open: np.ndarray
    """int64[3]: the row of the open tree (−1: none), the length of the last match, where the nodes
    of the open tree end."""


def new_trees() -> Trees:
    graphs = Graphs(
        np.empty((64, 4), np.int64),
        np.empty(16, np.int64),
        np.empty(16, np.int64),
        np.zeros(3, np.int64),
        *(np.zeros(0, np.int64) for _ in range(3)),
    )
    return Trees(graphs, np.empty(64, np.int64), np.array([-1, 0, 0], np.int64))


def with_room(trees: Trees, matches: int, events: int) -> Trees:
    """The same trees with room for `matches` more matches with `events` events in all."""
    graphs = trees.graphs
    nodes, rows, ends = graphs.nodes, graphs.rows, graphs.ends
    if (wanted := int(trees.open[2]) + events) > len(nodes):
        more = np.empty((max(wanted, 2 * len(nodes)), 4), np.int64)
        more[: len(nodes)] = nodes
        nodes = more
    if (wanted := int(graphs.used[0]) + matches + 1) > len(rows):
        more_rows = np.empty((2, max(wanted, 2 * len(rows))), np.int64)
        more_rows[0, : len(rows)], more_rows[1, : len(ends)] = rows, ends
        rows, ends = more_rows
    path = trees.path
    if int(trees.open[1]) + events > len(path):
        path = np.concatenate([path, np.empty(len(path) + events, np.int64)])
    return Trees(graphs._replace(nodes=nodes, rows=rows, ends=ends), path, trees.open)


@njit(nogil=True, cache=True)
def add_matches(output, trees, bits):  # type: ignore[no-untyped-def]
    """Add the matches in the buffers. There must be room for them."""
    nodes, path, state = trees.graphs.nodes, trees.path, trees.open
    kind_mask = (np.int64(1) << bits) - 1
    begin = np.int64(0)
    for match in range(output.used[0]):
        end, row = output.ends[match], output.rows[match]
        if row != state[0]:
            close_tree(trees)
            state[0], state[1] = row, 0
        base, depth, length = trees.graphs.used[1], state[1], end - begin
        shared = np.int64(0)
        while shared < min(depth, length):
            tag, node = output.tags[end - 1 - shared], nodes[path[shared]]
            if node[0] != tag >> bits or node[1] >> 1 != tag & kind_mask:
                break
            shared += 1
        for place in range(shared, length):
            tag, at = output.tags[end - 1 - place], state[2]
            nodes[at, 0], nodes[at, 1] = tag >> bits, (tag & kind_mask) << 1
            nodes[at, 2] = nodes[at, 3] = -1
            if place == shared and shared < depth:
                nodes[path[place], 3] = at - base
            elif place > 0:
                nodes[path[place - 1], 2] = at - base
            path[place] = at
            state[2] += 1
        nodes[path[length - 1], 1] |= 1
        state[1] = length
        begin = end


@njit(nogil=True, cache=True)
def close_tree(trees):  # type: ignore[no-untyped-def]
    """Close the open tree: reverse its nodes, so that the root comes last."""
    nodes, used, state = trees.graphs.nodes, trees.graphs.used, trees.open
    if state[0] < 0:
        return
    first, end = used[1], state[2]
    last = end - 1 - first
    for place in range((end - first + 1) // 2):
        for column in range(4):
            low, high = nodes[first + place, column], nodes[end - 1 - place, column]
            if column >= 2:
                low, high = _turned(low, last), _turned(high, last)
            nodes[first + place, column], nodes[end - 1 - place, column] = high, low
    trees.graphs.rows[used[0]], trees.graphs.ends[used[0]] = state[0], end
    used[0] += 1
    used[1] = end
    state[0], state[1] = -1, 0


@njit(nogil=True, cache=True)
def _turned(node, last):  # type: ignore[no-untyped-def]
    """The number of a node counted from the other end; −1 stays −1."""
    return node if node < 0 else last - node


def without_whole(trees: Trees) -> None:
    """Drop the closed trees, which have been read."""
    graphs, state = trees.graphs, trees.open
    first, end = int(graphs.used[1]), int(state[2])
    graphs.nodes[: end - first] = graphs.nodes[first:end].copy()
    depth = int(state[1])
    trees.path[:depth] -= first
    state[2] -= first
    graphs.used[:2] = 0

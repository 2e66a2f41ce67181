"""How many matches a graph has, and how many of them contain each event.

Each path in a graph is a match (`match_graph`). So the number of matches is the number of paths,
added up from the oldest node on. The number of matches that contain a cell is the number of paths
down to it (added up from the newest node on) times the number of paths below it. That is one step
for each node, for any number of paths.

A number of paths can have thousands of digits. It is kept in two forms, and the folds are made for
either: exactly in two words that stay too large once they are (`wide_numbers`), and as a float with
a separate exponent.
"""

import math
from collections.abc import Callable

import numpy as np

from celc_runtime.engine.arena.nodes import CHILD, MERGE, TAG, Memory
from celc_runtime.engine.graph.match_graph import new_graphs, write_graph
from celc_runtime.engine.values.wide_numbers import add_wide
from celc_runtime.engine.walk.listing import Kinds
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def add_scaled(size, scale, other, other_scale):  # type: ignore[no-untyped-def]
    """The sum of two numbers as a size near 1 (or 0) and a scale."""
    if size == 0.0 or other == 0.0:
        return (other, other_scale) if size == 0.0 else (size, scale)
    most = max(scale, other_scale)
    total = size * _power(scale - most) + other * _power(other_scale - most)
    fraction, exponent = math.frexp(total)
    return fraction, most + exponent


@njit(nogil=True, cache=True)
def _power(exponent):  # type: ignore[no-untyped-def]
    """2 to the power of a number ≤ 0; 0 if that is too small for a float."""
    return 2.0**exponent if exponent > -1000 else 0.0


def _paths_below(add: Callable[..., tuple[float, int]]) -> Callable[..., None]:
    """A kernel that counts the paths down from each node of a graph, and those through the node.

    The counts are pairs (first, second) that `add` adds.
    """

    def fold(graph, starts, one, below, through):  # type: ignore[no-untyped-def]
        firsts, seconds = below
        own_firsts, own_seconds = through
        for node in range(graph.shape[0]):
            kind, before, after = graph[node, 1], graph[node, 2], graph[node, 3]
            first, second = one
            if kind < 0 or not starts[kind]:
                first, second = first - first, second - second
            if before >= 0:
                first, second = add(first, second, firsts[before], seconds[before])
            # `after` leads to other cells for the same place. Their matches lack this cell.
            own_firsts[node], own_seconds[node] = first, second
            if after >= 0:
                first, second = add(first, second, firsts[after], seconds[after])
            firsts[node], seconds[node] = first, second

    kernel: Callable[..., None] = njit(nogil=True)(fold)
    return kernel


def _paths_above(add: Callable[..., tuple[float, int]]) -> Callable[..., None]:
    """A kernel that counts the paths from the root of a graph to each node, as pairs."""

    def fold(graph, one, above):  # type: ignore[no-untyped-def]
        firsts, seconds = above
        root = graph.shape[0] - 1
        for node in range(root):
            firsts[node] = seconds[node] = 0
        firsts[root], seconds[root] = one
        for node in range(root, -1, -1):
            for side in range(2, 4):
                other = graph[node, side]
                if other >= 0:
                    firsts[other], seconds[other] = add(
                        firsts[other], seconds[other], firsts[node], seconds[node]
                    )

    kernel: Callable[..., None] = njit(nogil=True)(fold)
    return kernel


wide_below, scaled_below = _paths_below(add_wide), _paths_below(add_scaled)
wide_above, scaled_above = _paths_above(add_wide), _paths_above(add_scaled)


def wide(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory for a number for each node, as words (high, low)."""
    return np.zeros(nodes, np.uint64), np.zeros(nodes, np.uint64)


def scaled(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory for a number for each node, as (size, scale): size · 2^scale."""
    return np.zeros(nodes, np.float64), np.zeros(nodes, np.int64)


WIDE_ONE = (np.uint64(0), np.uint64(1))
SCALED_ONE = (1.0, np.int64(0))


def count_matches(memory: Memory, kinds: Kinds, fire: np.ndarray) -> float:
    """The number of matches that end at an event that fired; infinite if no float holds it."""
    size = len(memory.nodes)
    if kinds.runs[0]:
        # CHILD of a cell that begins a match of one shape is its place among the leaves.
        nodes = memory.nodes.copy()
        tags = nodes[:, TAG]
        begins = (tags != MERGE) & kinds.starts[tags & ((1 << int(kinds.bits[0])) - 1)]
        nodes[begins, CHILD] = 0
        memory = memory._replace(nodes=nodes)
    graphs = new_graphs(size, room=size, fires=0)
    graph = graphs.nodes[: write_graph(memory, graphs, kinds, fire)]
    below, through = scaled(len(graph)), scaled(len(graph))
    scaled_below(graph, kinds.starts, SCALED_ONE, below, through)
    with np.errstate(over="ignore"):
        return float(np.ldexp(below[0][-1], below[1][-1]))

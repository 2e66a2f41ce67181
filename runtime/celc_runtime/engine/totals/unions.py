"""All matches that end at an event, from the nodes below it, without listing any.

The events of all matches are those of the graph below the event (`match_graph`), and two folds over
it tell how many matches there are, and in how many of them each event is (`match_count`).
"""

from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    DONE,
    FIRED,
    LISTED,
    OUTPUT_FULL,
    PADDING,
    WINDOW_FULL,
)
from celc_runtime.engine.values.wide_numbers import multiply_wide
from celc_runtime.engine.walk.match_count import (
    SCALED_ONE,
    WIDE_ONE,
    scaled,
    scaled_above,
    scaled_below,
    wide,
    wide_above,
    wide_below,
)
from celc_runtime.engine.walk.match_graph import Graphs, new_graphs, write_graph
from celc_runtime.jit.kernels import njit


class Found(NamedTuple):
    """What was found beside the events in the output.

    counts: uint64[matches, 2], for each row of the output the number of matches (high, low).
    sizes, scales: float64[matches], int64[matches], that number as size · 2^scale. weights:
    uint64[room, 2], for each event in the output the number of matches that it is in;
    weight_sizes, weight_scales: float64[room], int64[room], the same number. The last three have no
    rows where nobody wants them.
    """

    counts: np.ndarray
    sizes: np.ndarray
    scales: np.ndarray
    weights: np.ndarray
    weight_sizes: np.ndarray
    weight_scales: np.ndarray


class Paths(NamedTuple):
    """Numbers of paths of each node of a graph, as pairs (see `match_count`): from it down, those
    without the ones that take another cell in its place, and down to it."""

    below: tuple[np.ndarray, np.ndarray]
    through: tuple[np.ndarray, np.ndarray]
    above: tuple[np.ndarray, np.ndarray]


class UnionScratch(NamedTuple):
    """Working memory: the graph of one event, and its numbers of paths, exactly and scaled; of the
    latter nothing where nobody wants weights."""

    graphs: Graphs
    wide: Paths
    scaled: Paths


def union_scratch(size: int, *, room: int, weighs: bool) -> UnionScratch:
    """Scratch memory for an arena of `size` nodes, and graphs of `room` nodes; weighs: whether
    events get weights."""
    weighed = room if weighs else 0
    return UnionScratch(
        new_graphs(size, room=room, fires=0),
        Paths(wide(room), wide(room), wide(weighed)),
        Paths(scaled(weighed), scaled(weighed), scaled(weighed)),
    )


def new_found(rows: int, room: int, *, weighs: bool) -> Found:
    """Memory for an output of so many rows and events."""
    weighed = room if weighs else 0
    return Found(
        np.zeros((rows, 2), np.uint64),
        np.zeros(rows, np.float64),
        np.zeros(rows, np.int64),
        np.zeros((weighed, 2), np.uint64),
        np.zeros(weighed, np.float64),
        np.zeros(weighed, np.int64),
    )


@njit(nogil=True, cache=True)
def unite_fired(memory, output, kinds, scratch, found):  # type: ignore[no-untyped-def]
    """One row for each event that fired, with the events of all its matches in the order of the
    stream; DONE, OUTPUT_FULL, or WINDOW_FULL where the scratch memory needs more room.

    An event comes twice where it is marked in two ways, and with weights where it lies in two
    cells.
    """
    counters, bits = memory.counters, kinds.bits[0]
    graphs, exact, rough = scratch.graphs, scratch.wide, scratch.scaled
    weighs = found.weights.shape[0] > 0
    most, room = output.rows.shape[0], output.tags.shape[0] - PADDING
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        size = write_graph(memory, graphs, kinds, fire)
        if size < 0:
            return WINDOW_FULL
        matches, used = output.used[0], output.used[1]
        if matches == most or used + size >= room:
            return OUTPUT_FULL
        graph, first = graphs.nodes[:size], used
        wide_below(graph, kinds.starts, WIDE_ONE, exact.below, exact.through)
        if weighs:
            wide_above(graph, WIDE_ONE, exact.above)
            scaled_below(graph, kinds.starts, SCALED_ONE, rough.below, rough.through)
            scaled_above(graph, SCALED_ONE, rough.above)
        for node in range(size):
            if graph[node, 0] < 0:
                continue
            output.tags[used] = graph[node, 0] << bits | graph[node, 1]
            if weighs:
                found.weights[used, 0], found.weights[used, 1] = multiply_wide(
                    exact.through[0][node],
                    exact.through[1][node],
                    exact.above[0][node],
                    exact.above[1][node],
                )
                found.weight_sizes[used] = rough.through[0][node] * rough.above[0][node]
                found.weight_scales[used] = rough.through[1][node] + rough.above[1][node]
            used += 1
        used = _sorted(output.tags, found, first, used, weighs)
        output.rows[matches], output.ends[matches] = fire[1], used
        root = size - 1
        found.counts[matches, 0], found.counts[matches, 1] = (
            exact.below[0][root],
            exact.below[1][root],
        )
        if weighs:
            found.sizes[matches], found.scales[matches] = rough.below[0][root], rough.below[1][root]
        output.used[0], output.used[1] = matches + 1, used
        counters[LISTED] += 1
    counters[LISTED] = counters[FIRED] = 0
    return DONE


@njit(nogil=True, cache=True)
def _sorted(tags, found, first, end, weighs):  # type: ignore[no-untyped-def]
    """Bring the events of a row into the order of the stream, without weights each once; where they
    end."""
    stretch = tags[first:end]
    if weighs:
        order = np.argsort(stretch)
        stretch[:] = stretch[order]
        found.weights[first:end] = found.weights[first:end][order]
        found.weight_sizes[first:end] = found.weight_sizes[first:end][order]
        found.weight_scales[first:end] = found.weight_scales[first:end][order]
        return end
    stretch.sort()
    used = first
    for tag in stretch:
        if used == first or tag != tags[used - 1]:
            tags[used] = tag
            used += 1
    return used

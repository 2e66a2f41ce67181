"""The union of all matches that end at an event, from the nodes below it, without listing any.

The events are those of the graph below the event (`match_graph`). Two folds over the graph count
the matches, and the matches that each event is in (`match_count`).
"""

from collections.abc import Callable
from functools import cache
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
from celc_runtime.engine.graph.checked_graph import kernel_with, note_consumed, product_kernel
from celc_runtime.engine.graph.match_count import (
    SCALED_ONE,
    WIDE_ONE,
    scaled,
    scaled_above,
    scaled_below,
    wide,
    wide_above,
    wide_below,
)
from celc_runtime.engine.graph.match_graph import Graphs, new_graphs, write_graph
from celc_runtime.engine.values.copies import copy_to
from celc_runtime.engine.values.wide_numbers import multiply_wide
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


class Found(NamedTuple):
    """What was found besides the events in the output.

    The numbers of matches are given twice: exactly in two words, and as size · 2^scale. Weights are
    empty where nobody asks for them.
    """

    counts: np.ndarray  # uint64[matches, 2], the number of matches of each output row (high, low)
    sizes: np.ndarray  # float64[matches], the same number
    scales: np.ndarray  # int64[matches]
    weights: np.ndarray  # uint64[room, 2], for each event in the output: how many matches hold it
    weight_sizes: np.ndarray  # float64[room], the same number
    weight_scales: np.ndarray  # int64[room]


class Paths(NamedTuple):
    """Numbers of paths for each node of a graph, as pairs (see `match_count`)."""

    below: tuple[np.ndarray, np.ndarray]  # from the node down
    through: tuple[np.ndarray, np.ndarray]  # likewise, without paths through cells beside the node
    above: tuple[np.ndarray, np.ndarray]  # from the root down to the node


class UnionScratch(NamedTuple):
    """Working memory for the graph of one event."""

    graphs: Graphs
    wide: Paths  # exact numbers
    scaled: Paths  # the same as size and scale; empty: no weights


def union_scratch(size: int, *, room: int, weighs: bool) -> UnionScratch:
    """Working memory for an arena of `size` nodes and graphs of `room` nodes; weighs: with
    weights."""
    weighed = room if weighs else 0
    return UnionScratch(
        new_graphs(size, room=room, fires=0),
        Paths(wide(room), wide(room), wide(weighed)),
        Paths(scaled(weighed), scaled(weighed), scaled(weighed)),
    )


def new_found(rows: int, room: int, *, weighs: bool) -> Found:
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
    """Write a row for each event that fired: the events of all its matches, in stream order.

    Returns DONE, OUTPUT_FULL, or WINDOW_FULL if the working memory needs more room. An event comes
    twice if it is marked in two ways, and with weights also if two cells hold it.
    """
    counters, shift = memory.counters, np.int64(0)
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        size = write_graph(memory, scratch.graphs, kinds, fire)
        if size < 0:
            return WINDOW_FULL
        if not unite_graph(
            size, fire[1], output, kinds.bits[0], kinds.starts, shift, scratch, found
        ):
            return OUTPUT_FULL
        counters[LISTED] += 1
    counters[LISTED] = counters[FIRED] = 0
    return DONE


@cache
def unite_checked(checks: Checked) -> Callable[..., int]:
    """A kernel (memory, output, kinds, scratch, found, starts, given, product) as `unite_fired`,
    for matches with conditions (`checked_graph`). starts: for each mark, as `unite_graph`."""
    write = product_kernel(checks)

    def unite(memory, output, kinds, scratch, found, starts, given, product):  # type: ignore[no-untyped-def]
        counters, bits, shift = memory.counters, kinds.bits[0], np.int64(1)
        while counters[LISTED] < counters[FIRED]:
            fire = memory.fires[counters[LISTED]]
            size = write(memory, scratch.graphs, kinds, fire, given, product)
            if size < 0:
                return WINDOW_FULL if size == -OUTPUT_FULL else -size
            if not unite_graph(size, fire[1], output, bits, starts, shift, scratch, found):
                return OUTPUT_FULL
            if size > 0:
                note_consumed(scratch.graphs, given)
            counters[LISTED] += 1
        counters[LISTED] = counters[FIRED] = 0
        return DONE

    return kernel_with(checks, unite)


@njit(nogil=True, cache=True)
def unite_graph(size, row, output, bits, starts, shift, scratch, found):  # type: ignore[no-untyped-def]
    """Write the row for a graph of `size` nodes, of an event in a row; False: the output is full.

    starts: for each mark of a node, whether matches begin with it. The kind of the event is the
    mark without its last `shift` bits.
    """
    exact, rough = scratch.wide, scratch.scaled
    weighs = found.weights.shape[0] > 0
    most, room = output.rows.shape[0], output.tags.shape[0] - PADDING
    matches, used = output.used[0], output.used[1]
    if matches == most or used + size >= room:
        return False
    if size == 0:
        return True
    graph, first = scratch.graphs.nodes[:size], used
    wide_below(graph, starts, WIDE_ONE, exact.below, exact.through)
    if weighs:
        wide_above(graph, WIDE_ONE, exact.above)
        scaled_below(graph, starts, SCALED_ONE, rough.below, rough.through)
        scaled_above(graph, SCALED_ONE, rough.above)
    for node in range(size):
        if graph[node, 0] < 0:
            continue
        output.tags[used] = graph[node, 0] << bits | graph[node, 1] >> shift
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
    output.rows[matches], output.ends[matches] = row, used
    root = size - 1
    found.counts[matches, 0], found.counts[matches, 1] = (
        exact.below[0][root],
        exact.below[1][root],
    )
    if weighs:
        found.sizes[matches], found.scales[matches] = rough.below[0][root], rough.below[1][root]
    output.used[0], output.used[1] = matches + 1, used
    return True


@njit(nogil=True, cache=True)
def _sorted(tags, found, first, end, weighs):  # type: ignore[no-untyped-def]
    """Sort the events of a row in stream order; without weights, each comes once. Returns their
    end."""
    stretch = tags[first:end]
    if weighs:
        order = np.argsort(stretch)
        copy_to(tags, first, stretch[order])
        weights = found.weights[first:end][order]
        copy_to(found.weights.reshape(-1), 2 * first, weights.reshape(-1))
        copy_to(found.weight_sizes, first, found.weight_sizes[first:end][order])
        copy_to(found.weight_scales, first, found.weight_scales[first:end][order])
        return end
    stretch.sort()
    used = first
    for tag in stretch:
        if used == first or tag != tags[used - 1]:
            tags[used] = tag
            used += 1
    return used

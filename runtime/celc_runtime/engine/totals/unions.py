"""All matches that end at an event, from the nodes below it, without listing any.

Each path of live nodes below a cell that fired is a match. So the events of all matches are those
of the nodes on such paths, and the number of matches is the number of paths, counted from the
oldest node on. Of each cell it is known as well in how many matches it is: the paths down to it,
counted from the newest node on, times those below it. All of it takes a step for each node, however
many paths there are.
"""

from __future__ import annotations

import math
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
    PADDING,
    SINCE,
    TAG,
    lowest_id,
)
from celc_runtime.engine.values.wide_numbers import add_wide, multiply_wide
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


class UnionScratch(NamedTuple):
    """Working memory as large as the arena.

    seen: int64[nodes], the last fire that reached a node; fires: int64[1], how many there were;
    reached: int64[nodes], the nodes below the fire at hand. below: uint64[nodes, 2], the number of
    paths from a node down (high, low); through: uint64[nodes, 2], without those that take another
    cell in its place. sizes, scales, own_sizes, own_scales: float64 and int64[nodes], the same
    numbers as size · 2^scale. above: uint64[nodes, 2], the number of paths down to a node;
    weight_sizes, weight_scales: float64 and int64[nodes], the number of matches that a node is in.
    """

    seen: np.ndarray
    fires: np.ndarray
    reached: np.ndarray
    below: np.ndarray
    through: np.ndarray
    sizes: np.ndarray
    scales: np.ndarray
    own_sizes: np.ndarray
    own_scales: np.ndarray
    above: np.ndarray
    weight_sizes: np.ndarray
    weight_scales: np.ndarray


def union_scratch(nodes: int, *, weighs: bool) -> UnionScratch:
    """Scratch memory for an arena of so many nodes; weighs: whether events get weights."""
    weighed = nodes if weighs else 0
    return UnionScratch(
        np.zeros(nodes, np.int64),
        np.zeros(1, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((nodes, 2), np.uint64),
        np.zeros((nodes, 2), np.uint64),
        np.zeros(weighed, np.float64),
        np.zeros(weighed, np.int64),
        np.zeros(weighed, np.float64),
        np.zeros(weighed, np.int64),
        np.zeros((weighed, 2), np.uint64),
        np.zeros(weighed, np.float64),
        np.zeros(weighed, np.int64),
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
    stream; DONE or OUTPUT_FULL.

    An event comes twice where it is marked in two ways, or lies in two cells.
    """
    counters, nodes = memory.counters, memory.nodes
    mask = nodes.shape[0] - 1
    weighs = scratch.weight_sizes.shape[0] > 0
    most, room = output.rows.shape[0], output.tags.shape[0] - PADDING
    while counters[LISTED] < counters[FIRED]:
        fire = memory.fires[counters[LISTED]]
        lowest, floor_value = lowest_id(nodes, counters[NEXT_NODE], fire[2]), fire[3]
        reached = _reach(nodes, fire[0], lowest, floor_value, scratch)
        matches, used = output.used[0], output.used[1]
        if matches == most or used + reached >= room:
            return OUTPUT_FULL
        newer = np.sort(scratch.reached[:reached])
        _count(nodes, newer, lowest, floor_value, kinds, scratch)
        if weighs:
            _weigh(nodes, newer, lowest, floor_value, scratch)
        first, last = used, np.int64(-1)
        for node in newer:
            row = node & mask
            tag = nodes[row, TAG]
            if tag == MERGE or (tag == last and not weighs):
                continue
            # Behind a key that has changed, a live cell need not lead to a match.
            high, low = scratch.through[row, 0], scratch.through[row, 1]
            if (high | low) == 0:
                continue
            if weighs:
                above = scratch.above[row]
                high, low = multiply_wide(high, low, above[0], above[1])
                found.weights[used, 0], found.weights[used, 1] = high, low
                found.weight_sizes[used] = scratch.weight_sizes[row]
                found.weight_scales[used] = scratch.weight_scales[row]
            output.tags[used] = last = tag
            used += 1
        _sort(output.tags, found, first, used, weighs)
        output.rows[matches], output.ends[matches] = fire[1], used
        root = fire[0] & mask
        found.counts[matches, 0] = scratch.below[root, 0]
        found.counts[matches, 1] = scratch.below[root, 1]
        if weighs:
            found.sizes[matches], found.scales[matches] = scratch.sizes[root], scratch.scales[root]
        output.used[0], output.used[1] = matches + 1, used
        counters[LISTED] += 1
    counters[LISTED] = counters[FIRED] = 0
    return DONE


@njit(nogil=True, cache=True)
def _reach(nodes, root, lowest, floor_value, scratch):  # type: ignore[no-untyped-def]
    """Write the live nodes below a node into `reached`; returns how many there are."""
    mask = nodes.shape[0] - 1
    scratch.fires[0] += 1
    stamp, reached = scratch.fires[0], scratch.reached
    reached[0], count, at = root, 1, 0
    scratch.seen[root & mask] = stamp
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


@njit(nogil=True, cache=True)
def _count(nodes, newer, lowest, floor_value, kinds, scratch):  # type: ignore[no-untyped-def]
    """Count the paths below each node, the oldest one first."""
    mask = nodes.shape[0] - 1
    kind_mask = (np.int64(1) << kinds.bits[0]) - 1
    weighs = scratch.weight_sizes.shape[0] > 0
    for node in newer:
        row = node & mask
        tag = nodes[row, TAG]
        child, following = nodes[row, CHILD], nodes[row, NEXT]
        high, low = np.uint64(0), np.uint64(0)
        size, scale = 0.0, np.int64(0)
        if tag != MERGE and kinds.starts[tag & kind_mask]:
            low = np.uint64(1)
            size = 1.0
        for side in range(2):
            other = child if side == 0 else following
            place = other & mask
            if other >= lowest and nodes[place, SINCE] >= floor_value:
                high, low = add_wide(high, low, scratch.below[place, 0], scratch.below[place, 1])
                if weighs:
                    size, scale = _sum(size, scale, scratch.sizes[place], scratch.scales[place])
            if side == 0:
                # Behind NEXT are other cells for the same place: their matches lack this one.
                scratch.through[row, 0], scratch.through[row, 1] = high, low
                if weighs:
                    scratch.own_sizes[row], scratch.own_scales[row] = size, scale
        scratch.below[row, 0], scratch.below[row, 1] = high, low
        if weighs:
            scratch.sizes[row], scratch.scales[row] = size, scale


@njit(nogil=True, cache=True)
def _sum(size, scale, other, other_scale):  # type: ignore[no-untyped-def]
    """The sum of two numbers, as a size near 1 (or 0) and a scale."""
    if size == 0.0 or other == 0.0:
        return (other, other_scale) if size == 0.0 else (size, scale)
    most = max(scale, other_scale)
    total = size * _power(scale - most) + other * _power(other_scale - most)
    fraction, exponent = math.frexp(total)
    return fraction, most + exponent


@njit(nogil=True, cache=True)
def _power(exponent):  # type: ignore[no-untyped-def]
    """2 to the power of a number from 0 down; 0 where that is below all numbers."""
    return 2.0**exponent if exponent > -1000 else 0.0


@njit(nogil=True, cache=True)
def _weigh(nodes, newer, lowest, floor_value, scratch):  # type: ignore[no-untyped-def]
    """Count the paths down to each node, and those of all paths that go through it, from the newest
    one on."""
    mask = nodes.shape[0] - 1
    weight_sizes, weight_scales = scratch.weight_sizes, scratch.weight_scales
    for node in newer:
        row = node & mask
        scratch.above[row, 0] = scratch.above[row, 1] = np.uint64(0)
        weight_sizes[row], weight_scales[row] = 0.0, np.int64(0)
    root = newer[-1] & mask
    scratch.above[root, 1] = np.uint64(1)
    weight_sizes[root], weight_scales[root] = scratch.sizes[root], scratch.scales[root]
    for node in newer[::-1]:
        row = node & mask
        if scratch.sizes[row] == 0.0:
            continue
        # For each path from here down, so many matches go through this node.
        each = weight_sizes[row] / scratch.sizes[row]
        each_scale = weight_scales[row] - scratch.scales[row]
        more = scratch.above[row]
        for other in (nodes[row, CHILD], nodes[row, NEXT]):
            place = other & mask
            if other >= lowest and nodes[place, SINCE] >= floor_value:
                above = scratch.above[place]
                above[0], above[1] = add_wide(above[0], above[1], more[0], more[1])
                weight_sizes[place], weight_scales[place] = _sum(
                    weight_sizes[place],
                    weight_scales[place],
                    each * scratch.sizes[place],
                    each_scale + scratch.scales[place],
                )
        weight_sizes[row] = each * scratch.own_sizes[row]
        weight_scales[row] = each_scale + scratch.own_scales[row]


@njit(nogil=True, cache=True)
def _sort(tags, found, first, end, weighs):  # type: ignore[no-untyped-def]
    """Bring the events of a row into the order of the stream."""
    stretch = tags[first:end]
    if not weighs:
        stretch.sort()
        return
    order = np.argsort(stretch)
    stretch[:] = stretch[order]
    found.weights[first:end] = found.weights[first:end][order]
    found.weight_sizes[first:end] = found.weight_sizes[first:end][order]
    found.weight_scales[first:end] = found.weight_scales[first:end][order]

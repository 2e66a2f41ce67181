"""SELECT LAST under WITHIN: the most recent explanation, found from the last event back.

Of the matches that end at one event, LAST prefers the one whose largest position is larger, then
the second largest, and so on, and where one ends, the longer one. So it is found by always taking
the latest event that a match inside the window can have before what has been taken: a greedy walk
down the arena. It never goes wrong, because whatever is live has a match in the window below it.

All cells that could be taken next hang on the piles that the cell at hand was made from, and a
pile's newest cell is on top (and is live if any of it is). So a step looks at no more cells than
the query has piles, and an output costs its length times that number: neither the window nor the
number of matches that are not chosen matters, and the update is the plain one. Union lists are in
the order of the matches' starts instead, which is why the general engine cannot do this.

Several cells can be for the same event (another label set, another pile): then all matches with
the chosen events are listed, level by level from the first event on, in a scratch arena.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.engine.arena import (
    ALWAYS,
    CHILD,
    DONE,
    FIRED,
    LISTED,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    SINCE,
    STACK_FULL,
    STACK_SIZE,
    TAG,
    WINDOW_FULL,
    Memory,
    lowest_id,
    new_memory,
    put,
    with_deeper_stack,
)
from celc_runtime.engine.listing import Kinds, Output, list_fired
from celc_runtime.jit.kernels import njit
from celc_runtime.run.listings import ListingOfRun

_CELLS_ROOM = 256
"""Cells of one match for which there is room at first."""


class LatestListing(ListingOfRun):
    """The choice of the latest match, and its buffers."""

    def __init__(self) -> None:
        self._scratch = new_memory(0)
        # The cells of the match, level by level from the last event: node, its copy, its level.
        self._cells = np.zeros((_CELLS_ROOM, 3), np.int64)

    @property
    def nbytes(self) -> int:
        """The size of the buffers."""
        return int(sum(array.nbytes for array in (*self._scratch, self._cells)))

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        """List what is chosen at each event that fired; a status of the arena module."""
        return int(_choose_latest(memory, output, kinds, self._scratch, self._cells))

    def with_room(self, status: int, memory: Memory) -> Memory:
        """For the cells of one match, or for the walk through them."""
        if status == WINDOW_FULL:
            self._cells = np.zeros((2 * len(self._cells), 3), np.int64)
            nodes = np.zeros((2 * len(self._scratch.nodes), 4), np.int64)
            self._scratch = self._scratch._replace(nodes=nodes)
        else:
            assert status == STACK_FULL
            self._scratch = with_deeper_stack(self._scratch)
        return memory


@njit(nogil=True, cache=True)
def _choose_latest(memory, output, kinds, scratch, cells):  # type: ignore[no-untyped-def]
    nodes, counters = memory.nodes, memory.counters
    while True:
        if scratch.counters[FIRED]:
            status = list_fired(scratch, output, kinds)
            if status != DONE:
                return status
        if counters[LISTED] == counters[FIRED]:
            counters[LISTED] = counters[FIRED] = 0
            return DONE
        fire = memory.fires[counters[LISTED]]
        if output.limit[0] == 0:
            counters[LISTED] += 1
            continue
        lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
        count = _descend(nodes, lowest, kinds.bits[0], fire[0], fire[3], cells)
        if count < 0:
            return WINDOW_FULL
        levels = cells[count - 1, 2] + 1
        if levels == count:
            matches, used = output.used[0], output.used[1]
            if matches == output.rows.shape[0] or used + count > output.tags.shape[0]:
                return OUTPUT_FULL
            for place in range(count):
                node = cells[count - 1 - place, 0]
                output.tags[used + place] = nodes[node & (nodes.shape[0] - 1), TAG]
            output.rows[matches], output.ends[matches] = fire[1], used + count
            output.used[0], output.used[1] = matches + 1, used + count
        else:
            root = _copied(nodes, lowest, kinds, fire[3], cells, count, scratch)
            if root < 0:
                return WINDOW_FULL
            ready = scratch.fires[0]
            ready[0], ready[1], ready[2], ready[3] = root, fire[1], 1, ALWAYS
            scratch.counters[FIRED] = 1
            scratch.counters[LISTED] = scratch.counters[STACK_SIZE] = 0
        counters[LISTED] += 1


@njit(nogil=True, cache=True)
def _descend(nodes, lowest, bits, root, floor_value, cells):  # type: ignore[no-untyped-def]
    """Write the cells of the chosen events, level by level; returns their number, −1: no room."""
    mask = nodes.shape[0] - 1
    count = 0
    node = root
    while node >= lowest and nodes[node & mask, SINCE] >= floor_value:
        if count == cells.shape[0]:
            return -1
        cells[count, 0], cells[count, 2] = node, 0
        count += 1
        node = nodes[node & mask, NEXT]
    first, level = 0, 0
    while True:
        # Most often one cell was made from one pile, with nothing else at the top cell's event.
        while count - first == 1 and count < cells.shape[0]:
            node = nodes[cells[first, 0] & mask, CHILD]
            at = node & mask
            if node < lowest or nodes[at, SINCE] < floor_value:
                return count
            tag = nodes[at, TAG]
            beside = nodes[at, NEXT]
            if tag == MERGE or (
                beside >= lowest and nodes[beside & mask, TAG] >> bits == tag >> bits
            ):
                break
            first, level = count, level + 1
            cells[count, 0], cells[count, 2] = node, level
            count += 1
        end = count
        best = np.int64(-1)
        for index in range(first, end):
            # The merges below a cell are a list: left sides are cells or merges again, so the
            # nodes that wait are kept behind the cells found so far.
            waiting = cells.shape[0]
            node = nodes[cells[index, 0] & mask, CHILD]
            while True:
                if node >= lowest and nodes[node & mask, SINCE] >= floor_value:
                    at = node & mask
                    if nodes[at, TAG] == MERGE:
                        waiting -= 1
                        if waiting <= count:
                            return -1
                        cells[waiting, 1] = nodes[at, NEXT]
                        node = nodes[at, CHILD]
                        continue
                    entry = nodes[at, TAG] >> bits
                    if entry > best:
                        best, count = entry, end
                    if entry == best:
                        count = _with_neighbours(
                            nodes, lowest, bits, node, floor_value, cells, end, count, level + 1
                        )
                        if count < 0:
                            return -1
                if waiting == cells.shape[0]:
                    break
                node = cells[waiting, 1]
                waiting += 1
        if count == end:
            return count
        first, level = end, level + 1


@njit(nogil=True, cache=True)
def _with_neighbours(nodes, lowest, bits, node, floor_value, cells, first, count, level):  # type: ignore[no-untyped-def]
    """Add a cell, and those for the same event behind it on its pile, if they are new."""
    mask = nodes.shape[0] - 1
    entry = nodes[node & mask, TAG] >> bits
    while (
        node >= lowest
        and nodes[node & mask, SINCE] >= floor_value
        and nodes[node & mask, TAG] >> bits == entry
    ):
        known = False
        for index in range(first, count):
            known |= cells[index, 0] == node
        if not known:
            if count + 1 >= cells.shape[0]:
                return -1
            cells[count, 0], cells[count, 2] = node, level
            count += 1
        node = nodes[node & mask, NEXT]
    return count


@njit(nogil=True, cache=True)
def _copied(nodes, lowest, kinds, floor_value, cells, count, scratch):  # type: ignore[no-untyped-def]
    """The chosen cells alone, in the scratch arena; the root of their matches, −1: no room.

    A cell that may be the first but is not here gets the second copy of its kind, which may not.
    """
    mask, bits = nodes.shape[0] - 1, kinds.bits[0]
    small = scratch.nodes
    kind_mask = (np.int64(1) << bits) - 1
    half = kinds.starts.shape[0] // 2
    node = np.int64(1)
    last = cells[count - 1, 2]
    below, end = count, count  # the cells of the level below are those from `below` to `end`
    root = np.int64(0)
    level = last
    index = count - 1
    while index >= 0:
        start = index
        while start > 0 and cells[start - 1, 2] == level:
            start -= 1
        for place in range(start, index + 1):
            cells[place, 1] = 0
            if node + (end - below) + 2 >= small.shape[0]:
                return np.int64(-1)
            tag = nodes[cells[place, 0] & mask, TAG]
            starts = kinds.starts[tag & kind_mask]
            child = np.int64(0)
            if level < last:
                for lower in range(below, end):
                    if cells[lower, 1] != 0 and _leads_to(
                        nodes, lowest, bits, floor_value, cells[place, 0], cells[lower, 0]
                    ):
                        if child == 0:
                            child = cells[lower, 1]
                        else:
                            put(small, node, MERGE, cells[lower, 1], child, 0)
                            child = node
                            node += 1
                if child == 0:
                    continue
                if starts:
                    tag += half
            elif not starts:
                continue
            put(small, node, tag, child, root if level == 0 else np.int64(0), 0)
            cells[place, 1] = node
            if level == 0:
                root = node
            node += 1
        below, end = start, index + 1
        index, level = start - 1, level - 1
    scratch.counters[NEXT_NODE] = node
    return root


@njit(nogil=True, cache=True)
def _leads_to(nodes, lowest, bits, floor_value, cell, wanted):  # type: ignore[no-untyped-def]
    """Whether a cell is among the newest of what another was made from."""
    mask = nodes.shape[0] - 1
    entry = nodes[wanted & mask, TAG] >> bits
    waiting = np.empty(64, np.int64)
    waiting[0] = nodes[cell & mask, CHILD]
    size = 1
    while size > 0:
        size -= 1
        node = waiting[size]
        while node >= lowest and nodes[node & mask, SINCE] >= floor_value:
            at = node & mask
            if nodes[at, TAG] == MERGE:
                waiting[size] = nodes[at, NEXT]
                size += 1
                node = nodes[at, CHILD]
                continue
            if node == wanted:
                return True
            if nodes[at, TAG] >> bits != entry:
                break
            node = nodes[at, NEXT]
    return False

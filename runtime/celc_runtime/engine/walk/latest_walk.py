"""SELECT LAST under WITHIN: the match of the latest events, found from its last event back.

Among matches with the same end, LAST prefers the one whose largest position is larger, then the
second largest, and so on. It prefers a match with more events before these to a match without. So
the match is found greedily: always take the latest event that a match inside the window can have
before the events already taken. The walk never goes back, because below every live node there is a
match in the window.

All cells that can come next are on the piles that the present cell was made from. The newest cell
of a pile is on top, and is live if any cell of the pile is. So a step reads at most as many cells
as the query has piles. An output costs its length times that number. The size of the window and the
number of matches that are not chosen do not matter, and the update is the ordinary one. The general
engine cannot do this, because its union lists are in the order of starts.

Several cells can hold the same event, with other label sets or on other piles. Then all matches of
the chosen events are listed. Their cells are copied to a scratch arena, level by level from the
first event on. The *level* of a cell is the number of chosen events after it.

This walk is written by hand, because it never goes back, and the walks of the factory do. It is 22
to 115 times as fast as the choice among the matches of each window (`benchmarks/walks.py`).
"""

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
    WINDOW_FULL,
    lowest_id,
    put,
)
from celc_runtime.engine.walk.listing import fire_alone, list_fired
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def choose_latest(memory, output, kinds, scratch, cells):  # type: ignore[no-untyped-def]
    """List the matches of the latest events at each event that fired; returns a status.

    cells: int64[room, 3], the cells of one match: (node, its copy in the scratch arena, level),
    level by level from the last event.
    """
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
            fire_alone(scratch, root, fire[1])
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
        # Mostly, one cell was made from one pile, and the top event has no second cell.
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
            # A left side can be a merge again. So right sides wait, at the end of `cells`.
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
    """Add a cell, and the cells of the same event behind it on its pile, unless they are there."""
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
    """Copy the chosen cells to the scratch arena; returns the root of their matches, −1: no room.

    A cell that could begin a match, but has cells before it, gets the second copy of its kind,
    which cannot begin one.
    """
    mask, bits = nodes.shape[0] - 1, kinds.bits[0]
    small = scratch.nodes
    kind_mask = (np.int64(1) << bits) - 1
    half = kinds.starts.shape[0] // 2
    node = np.int64(1)
    last = cells[count - 1, 2]
    below, end = count, count  # the cells of the level below are from `below` to before `end`
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
    """Whether `wanted` is among the newest cells of the piles that `cell` was made from."""
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

"""Lists the matches of a query of fixed shape, column by column, in runs.

If every match has the same kinds of events in the same places (no `+`, no choice), a match is a row
of a table with a column for each place. A depth-first walk writes this table in runs. The event in
an outer place is the same for all matches below it, so its column is filled when the walk leaves
that event. The first place changes with each match, but it needs no walk either. The cells that
begin matches lie on one pile. Below any later cell there is a range of that pile: from the cell on
top at that time to the oldest cell inside the window. The events of the pile are noted once in an
array, the *leaves*. A run of matches is a copy of a range of it.

An event can empty that pile (`A ; !B ; C`). The cells before it then belong to no new match, but
events that fired before still list them. So the pile goes on after such an event with a negative
id, which no walk follows. A run begins at the first cell after the last such event.

The walk costs the number of cells before the last place, not the number of matches. Most of the
cost is writing the output. So this is written by hand: 3.6 to 4.8 times as fast as the walk of the
factory (`benchmarks/walks.py`, update included). A caller that does not need single matches gets
each run as one: `tags` then holds the run's oldest leaf in the first place, `ends` its newest, both
counted from the first leaf of all. `rows` and the other places of `tags` hold what all matches of
the run share.
"""

import numpy as np

from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    CHILD,
    CHOOSE,
    DEFERS,
    DONE,
    FIRED,
    LEAF_BASE,
    LEAF_COUNT,
    LEAF_FIRST,
    LEAF_NODE,
    LEAVES_FULL,
    LISTED,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    PADDING,
    RUN_FROM,
    RUN_LEFT,
    SINCE,
    STACK_FULL,
    STACK_SIZE,
    TAG,
    lowest_id,
)
from celc_runtime.jit.kernels import njit


@njit(nogil=True, cache=True)
def list_runs(memory, output, kinds):  # type: ignore[no-untyped-def]
    """`list_fired` for matches of one shape.

    Returns DONE, OUTPUT_FULL, STACK_FULL or LEAVES_FULL; or CHOOSE, with nothing listed, if the
    caller lists the matches. OUTPUT_FULL also means that leaves must move which listed runs refer
    to.

    The entries of place p of the matches are `output.tags[p * stride :]`. `stride` is the length of
    `output.rows`. The last PADDING elements of it never belong to a match.
    """
    counters = memory.counters
    if counters[DEFERS] and counters[FIRED] > 0:
        return CHOOSE
    if output.limit[0] == 0:
        counters[LISTED] = counters[FIRED] = 0
        return DONE
    if counters[LISTED] < counters[FIRED]:
        status = _note_leaves(memory, output, kinds)
        if status != DONE:
            return status
    while True:
        if counters[STACK_SIZE] == 0 and counters[RUN_LEFT] == 0:
            if counters[LISTED] == counters[FIRED]:
                counters[LISTED] = counters[FIRED] = 0
                return DONE
            fire = memory.fires[counters[LISTED]]
            memory.stack[0, 0], memory.stack[0, 1] = fire[0], 0
            counters[STACK_SIZE] = 1
            counters[LISTED] += 1
            marks, first = memory.leaf_marks, counters[LEAF_FIRST]
            while first < counters[LEAF_COUNT] and (
                marks[first, 0] < fire[2] or marks[first, 1] < fire[3]
            ):
                first += 1
            counters[LEAF_FIRST] = first
        status = _walk_runs(memory, output, kinds)
        if status != DONE:
            return status


@njit(nogil=True, cache=True)
def _note_leaves(memory, output, kinds):  # type: ignore[no-untyped-def]
    """Note the new cells of the pile of leaves; DONE, or LEAVES_FULL or OUTPUT_FULL without room.

    A cell that begins a match does not use CHILD. So CHILD becomes its place among all leaves so
    far.
    """
    nodes, counters, marks = memory.nodes, memory.counters, memory.leaf_marks
    mask, bits = nodes.shape[0] - 1, kinds.bits[0]
    head = abs(memory.heads[0, kinds.runs[1]])
    lowest = lowest_id(nodes, counters[NEXT_NODE], memory.fires[counters[LISTED], 2])
    lowest = max(lowest, counters[LEAF_NODE] + 1)
    # Without partitions, cells that have left the window end the pile. With partitions, only events
    # of the same partition are in the order of their starts. The SINCE of sealed rows is NEVER.
    floor_value = memory.fires[counters[LISTED], 3] if kinds.runs[2] else np.int64(ALWAYS)
    node, fresh = head, 0
    while node >= lowest and nodes[node & mask, SINCE] >= floor_value:
        fresh += 1
        node = abs(nodes[node & mask, NEXT])
    first, count = counters[LEAF_FIRST], counters[LEAF_COUNT]
    if count + fresh > marks.shape[0]:
        # The leaves before `first` have left the window.
        if count - first + fresh > marks.shape[0] // 2:
            return LEAVES_FULL
        if kinds.runs[3] and output.used[0] > 0:
            return OUTPUT_FULL
        for place in range(first, count):
            memory.leaves[PADDING + place - first] = memory.leaves[PADDING + place]
            for column in range(2):
                marks[place - first, column] = marks[place, column]
        counters[LEAF_BASE] += first
        count -= first
        counters[LEAF_FIRST] = 0
    count += fresh
    counters[LEAF_COUNT] = count
    node = head
    for place in range(count - 1, count - 1 - fresh, -1):
        at = node & mask
        memory.leaves[PADDING + place] = nodes[at, TAG] >> bits
        marks[place, 0], marks[place, 1] = node, nodes[at, SINCE]
        nodes[at, CHILD] = counters[LEAF_BASE] + place
        # The first cell after an emptying event says so. Each later one takes it from the one
        # before.
        marks[place, 2] = counters[LEAF_BASE] + place if nodes[at, NEXT] <= 0 else np.int64(-1)
        node = abs(nodes[at, NEXT])
    for place in range(count - fresh, count):
        if marks[place, 2] < 0:
            marks[place, 2] = marks[place - 1, 2] if place > 0 else counters[LEAF_BASE]
    counters[LEAF_NODE] = max(head, counters[LEAF_NODE])
    return DONE


@njit(nogil=True, cache=True)
def _walk_runs(memory, output, kinds):  # type: ignore[no-untyped-def]
    """List the matches below the nodes on the stack; DONE, OUTPUT_FULL or STACK_FULL."""
    nodes, counters, stack, path = memory.nodes, memory.counters, memory.stack, memory.path
    marks = memory.leaf_marks
    begun, leaves, tags, rows = memory.run_starts, memory.leaves, output.tags, output.rows
    mask, bits, last_level = nodes.shape[0] - 1, kinds.bits[0], kinds.runs[0] - 1
    fire = memory.fires[counters[LISTED] - 1]
    floor_value = fire[3]
    lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
    stride = rows.shape[0]
    room = stride - PADDING
    first, base = counters[LEAF_FIRST], counters[LEAF_BASE]
    left, source = counters[RUN_LEFT], counters[RUN_FROM] - base
    before = output.used[0]
    matches, waiting, status = before, counters[STACK_SIZE], DONE
    while True:
        if left > 0 and kinds.runs[3]:
            if matches == room:
                status = OUTPUT_FULL
                break
            tags[matches], output.ends[matches] = base + source - left + 1, base + source
            matches, left = matches + 1, 0
        elif left > 0:
            run = min(left, room - matches)
            _copy_down(tags, matches, leaves, PADDING + source, run)
            matches, left, source = matches + run, left - run, source - run
            if left > 0:
                status = OUTPUT_FULL
                break
        if waiting == 0:
            break
        if waiting + 2 > stack.shape[0]:
            status = STACK_FULL
            break
        waiting -= 1
        node, depth = stack[waiting, 0], stack[waiting, 1]
        while True:
            at = node & mask
            tag, following = nodes[at, TAG], nodes[at, NEXT]
            if following >= lowest and nodes[following & mask, SINCE] >= floor_value:
                stack[waiting, 0], stack[waiting, 1] = following, depth
                waiting += 1
            node = nodes[at, CHILD]
            if tag == MERGE:
                if waiting + 2 > stack.shape[0]:
                    stack[waiting, 0], stack[waiting, 1] = node, depth
                    waiting += 1
                    break
                continue
            offset = (last_level - depth) * stride
            _fill(tags, offset + begun[depth], matches - begun[depth], path[depth])
            path[depth], begun[depth] = tag >> bits, matches
            depth += 1
            if depth == last_level:
                source = nodes[node & mask, CHILD] - base
                left = source - max(first, marks[source, 2] - base) + 1
                break
    for depth in range(last_level):
        offset = (last_level - depth) * stride
        _fill(tags, offset + begun[depth], matches - begun[depth], path[depth])
        begun[depth] = 0 if status == OUTPUT_FULL else matches
    _fill(rows, before, matches - before, fire[1])
    counters[STACK_SIZE], counters[RUN_LEFT], counters[RUN_FROM] = waiting, left, source + base
    output.used[0] = matches
    return status


# Both kernels write PADDING elements at a time; the next run overwrites the surplus. Indices are
# unsigned. A signed index could count from the end, and the test for it keeps LLVM from writing
# several elements at once.


@njit(nogil=True, cache=True)
def _fill(column, start, count, value):  # type: ignore[no-untyped-def]
    place, end = np.uint64(start), np.uint64(start + count)
    while place < end:
        for step in range(PADDING):
            column[place + np.uint64(step)] = value
        place += np.uint64(PADDING)


@njit(nogil=True, cache=True)
def _copy_down(column, start, leaves, newest, count):  # type: ignore[no-untyped-def]
    """Write `count` leaves, from the newest back."""
    place, end, source = np.uint64(start), np.uint64(start + count), np.uint64(newest)
    while place < end:
        for step in range(PADDING):
            column[place + np.uint64(step)] = leaves[source - np.uint64(step)]
        place += np.uint64(PADDING)
        source -= np.uint64(PADDING)

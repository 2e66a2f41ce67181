"""The walk from the last event of a match back to the first, latest start first.

It is a depth-first walk down the arena. It enters nothing dead, so without conditions every step
leads to an output:

* the left side of a merge starts as late as the merge, so it is live if the merge is; the right
  side is tested before it is entered; the automaton, not the stream, bounds the number of merges
  one below the other on a left path;
* the cells for one place in a match are on a pile, each no earlier than the next, so a dead cell
  ends the search; or merges hold them, as above;
* each live cell has a match through it: it begins one, or its child is live.

So between two outputs there are at most (length of a match) × (a number fixed by the query) steps,
for any stream and any number of dead nodes in the arena.

With conditions between events, a branch is cut as soon as its events decide a condition. Each new
event is checked against the events on the path. A condition is decided as soon as the last event
that it compares is there. If it fails, no match below is visited. So the delay between two matches
is constant for conditions that keys decide (`key_tables`). For others, the partial matches that
fail lie in between. Three things keep these few: sums and numbers of different values that no match
below can reach (`sum_bounds`, `varieties`), and the memory of failures (`failures`).

The walk stops if an output buffer is full, and goes on from there. A node whose match does not fit
goes back to the stack unchanged.

`walk_of` makes the kernel. Numba removes branches that a constant of the closure decides. So the
kernel without conditions is as short as one written by hand.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from celc_runtime.engine.arena.nodes import (
    CHILD,
    DONE,
    FIRED,
    LISTED,
    MATCHES_LEFT,
    MERGE,
    NEXT,
    NEXT_NODE,
    OUTPUT_FULL,
    PADDING,
    SINCE,
    STACK_FULL,
    STACK_SIZE,
    TAG,
    TOO_MUCH_WORK,
    WINDOW_FULL,
    WORK,
    lowest_id,
)
from celc_runtime.engine.walk.failures import PATIENCE, has_failed, is_full, note_failure
from celc_runtime.engine.walk.latest_checked import greatest_walk
from celc_runtime.engine.walk.search import BARREN, CONSUMED, FAILURES, NUMBER, OPEN
from celc_runtime.engine.walk.varieties import bounds_of
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


@cache
def listing_kernel(checks: Checked | None) -> Callable[..., int]:
    """The kernel (memory, output, kinds, given) that lists the matches of all events that fired.

    It goes on where the last call stopped, and returns DONE or what it needs. given: a
    `search.Given`, or () without conditions. Steps are counted from the last match on. If the
    latest match is wanted and a search finds it first, only that one is listed.

    Made once for each query, because Numba takes seconds to compile it.
    """
    checked, takes_first = checks is not None, checks is not None and checks.in_order
    walk = walk_of(checks) if checks is None or not takes_first else greatest_walk(checks)

    def listing(memory, output, kinds, given):  # type: ignore[no-untyped-def]
        counters = memory.counters
        while True:
            if counters[STACK_SIZE] == 0:
                if counters[LISTED] == counters[FIRED] or output.limit[0] == 0:
                    counters[LISTED] = counters[FIRED] = 0
                    return DONE
                begin_fire(memory)
                counters[MATCHES_LEFT] = 1 if takes_first else output.limit[0]
                if checked:
                    begin_search(memory, given.search)
            status = walk(memory, output, kinds, given)
            if status != DONE:
                return status
            if takes_first and given.consumes and counters[MATCHES_LEFT] == 0:
                last = output.tags[output.used[1] - 1]
                given.search.numbers[CONSUMED] = last >> kinds.bits[0]

    if checks is not None and not checks.compiles:
        return listing
    compiled: Callable[..., int] = njit(**_options(checks))(listing)
    return compiled


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def begin_fire(memory):  # type: ignore[no-untyped-def]
    counters = memory.counters
    memory.stack[0, 0] = memory.fires[counters[LISTED], 0]
    memory.stack[0, 1] = 0
    counters[STACK_SIZE] = 1
    counters[LISTED] += 1


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def begin_search(memory, search):  # type: ignore[no-untyped-def]
    numbers = search.numbers
    memory.counters[WORK] = 0
    numbers[NUMBER] += 1
    numbers[OPEN] = numbers[BARREN] = numbers[FAILURES] = 0


def walk_of(checks: Checked | None, *, collects: bool = False) -> Callable[..., int]:
    """The kernel that lists the matches below the nodes on the stack that `checks` admit.

    It returns a status. collects: steps are counted from the event on, not from its last match.
    """
    checked = checks is not None
    remembers = checks is not None and checks.fails_by > 0
    admits = completes = add = may_reach = has_enough = _always
    if checks is not None:
        admits, completes = checks.admits, checks.completes
        add, may_reach, has_enough = bounds_of(checks)

    def walk(memory, output, kinds, given):  # type: ignore[no-untyped-def]
        nodes, counters, stack, trail = memory.nodes, memory.counters, memory.stack, memory.trail
        mask = nodes.shape[0] - 1
        fire = memory.fires[counters[LISTED] - 1]
        row, floor_value = fire[1], fire[3]
        lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
        left = counters[MATCHES_LEFT]
        bits = kinds.bits[0]
        kind_mask = (np.int64(1) << bits) - 1
        starts, rows, ends, tags = kinds.starts, output.rows, output.ends, output.tags
        matches, used = output.used[0], output.used[1]
        most, room = rows.shape[0], tags.shape[0] - PADDING
        bottom, deepest = trail.shape[0] - PADDING - 1, stack.shape[0] - 2
        waiting, status = counters[STACK_SIZE], DONE
        if checked:
            past, first, most_work, search = given.past, given.first, given.most_work, given.search
            path, numbers, state, failures = (
                memory.path,
                search.numbers,
                search.state,
                search.failures,
            )
            number, consumed = numbers[NUMBER], numbers[CONSUMED]
            work, opened, barren = counters[WORK], numbers[OPEN], numbers[BARREN]
        while waiting > 0 and status == DONE:
            waiting -= 1
            node, depth = stack[waiting, 0], stack[waiting, 1]
            while True:
                at = node & mask
                tag, following = nodes[at, TAG], nodes[at, NEXT]
                begins = tag != MERGE and starts[tag & kind_mask]
                if waiting > deepest or depth >= bottom:
                    status = STACK_FULL
                elif begins and (matches == most or used + depth >= room):
                    status = OUTPUT_FULL
                elif checked and work > most_work:
                    status = TOO_MUCH_WORK
                elif (
                    remembers and work >= PATIENCE and is_full(failures, numbers[FAILURES] + opened)
                ):
                    status = WINDOW_FULL
                if status != DONE:
                    # The node goes back unchanged. The path above it stays.
                    stack[waiting, 0], stack[waiting, 1] = node, depth
                    waiting += 1
                    break
                if checked and not may_reach(
                    nodes,
                    node,
                    path,
                    depth,
                    lowest,
                    floor_value,
                    past,
                    first,
                    kinds,
                    search,
                    number,
                ):
                    break
                goes_on = following >= lowest and nodes[following & mask, SINCE] >= floor_value
                if tag == MERGE:
                    if goes_on:
                        stack[waiting, 0], stack[waiting, 1] = following, depth
                        waiting += 1
                    node = nodes[at, CHILD]
                    continue
                if remembers and work >= PATIENCE:
                    if work == PATIENCE:
                        # The path is unknown here, so no failures of it are noted.
                        for place in range(depth):
                            search.entered[place] = 0
                        opened = barren = depth
                    # The walk has left the events of the path from this depth on.
                    while opened > depth:
                        opened -= 1
                        if opened >= barren and search.entered[opened] > 0:
                            numbers[FAILURES] += note_failure(
                                failures, number, search.entered[opened], state, opened
                            )
                trail[bottom - depth] = tag
                admitted, found = True, begins
                if checked:
                    path[depth] = tag
                    work += 1
                    admitted = (tag >> bits) > consumed and admits(past, first, path, depth, state)
                    admitted &= add(past, first, path, depth, bits, search)
                    found = begins and admitted and has_enough(depth, search)
                    found = found and completes(past, first, path, depth, state)
                if found:
                    copy_padded(tags, used, trail, bottom - depth, depth + 1)
                    used += depth + 1
                    rows[matches], ends[matches] = row, used
                    matches += 1
                    left -= 1
                    if checked and not collects:
                        work = 0
                    if left == 0:
                        waiting = 0
                        break
                child = nodes[at, CHILD]
                enters = admitted and child >= lowest and nodes[child & mask, SINCE] >= floor_value
                if remembers and work > PATIENCE:
                    enters = enters and not has_failed(failures, number, node, state, depth)
                    if enters:
                        search.entered[depth], opened = node, depth + 1
                        barren = min(barren, depth)
                    if found:
                        barren = depth  # all events before it have a match below
                if enters:
                    if goes_on:
                        stack[waiting, 0], stack[waiting, 1] = following, depth
                        waiting += 1
                    node = child
                    depth += 1
                elif goes_on:
                    node = following
                else:
                    break
        counters[STACK_SIZE], counters[MATCHES_LEFT] = waiting, left
        output.used[0], output.used[1] = matches, used
        if checked:
            counters[WORK], numbers[OPEN], numbers[BARREN] = work, opened, barren
        return status

    if checks is not None and not checks.compiles:
        return walk  # for debugging: compiled code cannot call interpreted conditions
    # If it is called for each event alone, passing its arrays would cost as much as ten steps.
    inline = "always" if checked and not collects else "never"
    compiled: Callable[..., int] = njit(**_options(checks), inline=inline)(walk)
    return compiled


def _options(checks: Checked | None) -> dict[str, Any]:
    """Nothing in a walk with conditions makes an array. Counting references to the columns, which
    the caller holds, would cost several times as much as a step."""
    options: dict[str, Any] = {"nogil": True}
    return options if checks is None else options | {"error_model": "numpy", "_nrt": False}


@njit(nogil=True, cache=True)
def _always(*_arguments):  # type: ignore[no-untyped-def]
    return True


@njit(nogil=True, cache=True)
def copy_padded(target, start, source, first, count):  # type: ignore[no-untyped-def]
    """Copy `count` elements, PADDING at a time; the next copy overwrites the surplus.

    Indices are unsigned. A signed index could count from the end, and the test for it keeps LLVM
    from copying several elements at once.
    """
    place, end, at = np.uint64(start), np.uint64(start + count), np.uint64(first)
    while place < end:
        for step in range(PADDING):
            target[place + np.uint64(step)] = source[at + np.uint64(step)]
        place += np.uint64(PADDING)
        at += np.uint64(PADDING)

"""Listing with conditions across events: a branch is cut as soon as its events decide a condition.

The walk is that of `listing`, from the last event of a match back to the first. Each event that is
added is checked against the events already on the path: a condition is decided as soon as the last
of the events that it compares is there, and no match below is visited if it fails. So the delay
between two matches is constant for conditions that keys decide (`key_tables`); for others, the
partial matches that fail lie in between. Three ways keep these few: sums and numbers of different
values that no match below can reach (`sum_bounds`, `varieties`), and the memory of what failed
(`failures`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

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
from celc_runtime.engine.walk.search import BARREN, CONSUMED, FAILURES, NUMBER, OPEN
from celc_runtime.engine.walk.varieties import bounds_of
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


@cache
def checked_listing(checks: Checked) -> Callable[..., int]:
    """A kernel like `list_fired` that lists the matches which generated functions admit.

    It takes (memory, output, kinds, past, first, most_work, search). `past`, `first`: for the
    generated functions (see `plan.strategy.Checked`). most_work: the steps of a listing, which are
    counted from its last match on.

    Made once for each query, because Numba compiles it, which takes seconds.
    """
    walk = checked_walk(checks, collects=False)

    def listing(memory, output, kinds, past, first, most_work, search):  # type: ignore[no-untyped-def]
        counters = memory.counters
        while True:
            if counters[STACK_SIZE] == 0:
                if counters[LISTED] == counters[FIRED] or output.limit[0] == 0:
                    counters[LISTED] = counters[FIRED] = 0
                    return DONE
                begin_search(memory, search)
                counters[MATCHES_LEFT] = output.limit[0]
            status = walk(memory, output, kinds, past, first, most_work, search)
            if status != DONE:
                return status

    if not checks.compiles:
        return listing
    compiled: Callable[..., int] = njit(nogil=True, error_model="numpy", _nrt=False)(listing)
    return compiled


@njit(nogil=True, error_model="numpy", _nrt=False, inline="always")
def begin_search(memory, search):  # type: ignore[no-untyped-def]
    """Begin with the next event that fired."""
    counters, numbers = memory.counters, search.numbers
    memory.stack[0, 0] = memory.fires[counters[LISTED], 0]
    memory.stack[0, 1] = 0
    counters[STACK_SIZE] = 1
    counters[LISTED] += 1
    counters[WORK] = 0
    numbers[NUMBER] += 1
    numbers[OPEN] = numbers[BARREN] = numbers[FAILURES] = 0


def checked_walk(checks: Checked, *, collects: bool) -> Callable[..., int]:
    """The kernel that lists the matches below the nodes on the stack; it returns a status.

    `collects`: steps are counted from the event on, not from its last match.
    """
    # Longer than 60 lines: it makes one kernel, which has to be a closure over the conditions.
    admits, completes, remembers = checks.admits, checks.completes, checks.fails_by > 0
    add, may_reach, has_enough = bounds_of(checks)
    # Where it is called for each event alone, to pass its arrays would cost as much as ten steps.
    inline = "never" if collects else "always"

    def walk(memory, output, kinds, past, first, most_work, search):  # type: ignore[no-untyped-def]
        nodes, counters, stack, path = memory.nodes, memory.counters, memory.stack, memory.path
        numbers, state, failures = search.numbers, search.state, search.failures
        mask = nodes.shape[0] - 1
        fire = memory.fires[counters[LISTED] - 1]
        row, floor_value = fire[1], fire[3]
        lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
        left = counters[MATCHES_LEFT]
        bits = kinds.bits[0]
        kind_mask = (np.int64(1) << bits) - 1
        starts, rows, ends, tags = kinds.starts, output.rows, output.ends, output.tags
        matches, used = output.used[0], output.used[1]
        number, consumed = numbers[NUMBER], numbers[CONSUMED]
        waiting, status, work = counters[STACK_SIZE], DONE, counters[WORK]
        opened, barren = numbers[OPEN], numbers[BARREN]
        while waiting > 0 and status == DONE:
            waiting -= 1
            node, depth = stack[waiting, 0], stack[waiting, 1]
            while True:
                at = node & mask
                tag, following = nodes[at, TAG], nodes[at, NEXT]
                begins = tag != MERGE and starts[tag & kind_mask]
                if waiting + 2 > stack.shape[0] or depth + 1 >= path.shape[0]:
                    status = STACK_FULL
                elif begins and (matches == rows.shape[0] or used + depth + 1 > tags.shape[0]):
                    status = OUTPUT_FULL
                elif work > most_work:
                    status = TOO_MUCH_WORK
                elif (
                    remembers and work >= PATIENCE and is_full(failures, numbers[FAILURES] + opened)
                ):
                    status = WINDOW_FULL
                if status != DONE:
                    # The node goes back untouched; the path above it stays where it is.
                    stack[waiting, 0], stack[waiting, 1] = node, depth
                    waiting += 1
                    break
                if not may_reach(
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
                        # How the walk came here is not known, and is not noted.
                        for place in range(depth):
                            search.entered[place] = 0
                        opened = barren = depth
                    # It has left the events of the path from this depth on.
                    while opened > depth:
                        opened -= 1
                        if opened >= barren and search.entered[opened] > 0:
                            numbers[FAILURES] += note_failure(
                                failures, number, search.entered[opened], state, opened
                            )
                path[depth] = tag
                work += 1
                admitted = (tag >> bits) > consumed and admits(past, first, path, depth, state)
                admitted &= add(past, first, path, depth, bits, search)
                found = begins and admitted and has_enough(depth, search)
                found = found and completes(past, first, path, depth, state)
                if found:
                    for place in range(depth, -1, -1):
                        tags[used] = path[place]
                        used += 1
                    rows[matches], ends[matches] = row, used
                    matches += 1
                    left -= 1
                    if not collects:
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
                        barren = depth  # there is a match below all events before it
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
        counters[STACK_SIZE], counters[MATCHES_LEFT], counters[WORK] = waiting, left, work
        numbers[OPEN], numbers[BARREN] = opened, barren
        output.used[0], output.used[1] = matches, used
        return status

    # The conditions become part of the walk. Nothing in it makes an array, and to count references
    # to the columns, which the caller holds, would cost several times as much as a step.
    # Interpreted conditions (for debugging) cannot be called by compiled code.
    if checks.compiles:
        compiled: Callable[..., int] = njit(
            nogil=True, error_model="numpy", _nrt=False, inline=inline
        )(walk)
        return compiled
    return walk

"""Searches with conditions across events that take the latest events first.

As in `latest_walk`, LAST prefers of two matches with one end the one whose largest event that is
not in both is larger; so it goes on from a match to one with further events before it, and takes
the latest events first. A search in this order, which goes back where a condition fails, finds the
chosen match first. Matches that are not chosen are not looked at. The order holds where

* every event of a match counts for the selector, and an event can be marked in one way only: then
  the events decide the match;
* the nodes that can be next are on piles, which hold the latest event first. Several piles are
  merged by comparing their newest nodes (`Search.tops`); nodes of one event are taken together.

An event begins a match only when the search comes back to it, because longer matches go first.
Nodes at which the search has failed are remembered where that is exact (`failures`), and sums or
numbers of different values that cannot be reached are not tried (`sum_bounds`, `varieties`).

Other selectors, and ANY, want the *greatest* matches where a further event never makes a condition
fail: of events under a `+`, all of them (`Checked.absorbs`). If the matches below an event c lie
behind the node before c as well, then each of them can be enlarged by c, between two others. So
what is below c need not be tried beside it: the nodes that can be next behind c are *bars* for what
comes after c in its place. In any order of the nodes, a match is left out only for a greater one.
FIRST wants no match of a start that had one at an earlier end (`Search.answered`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from celc_runtime.engine.arena.nodes import (
    CHILD,
    DONE,
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
from celc_runtime.engine.walk.search import CONSUMED, FAILURES, NUMBER
from celc_runtime.engine.walk.varieties import bounds_of
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


@cache
def greatest_walk(checks: Checked) -> Callable[..., int]:
    """A kernel like that of `walk_of` that lists the latest matches of the event at hand, or the
    greatest, up to those that are left; it begins anew where it needed more room.

    Where it is not DONE, what it has listed is to be dropped."""
    # Longer than 60 lines: it makes one kernel, which has to be a closure over the conditions.
    admits, completes, remembers = checks.admits, checks.completes, checks.fails_by > 0
    add, may_reach, has_enough = bounds_of(checks)
    absorbs, looks = checks.absorbs, checks.looks  # arrays would keep the kernel out of the cache
    # A match that begins earlier is greater, where all of its events count.
    every_start = checks.selector == "NXT_OF_ENDS" or (
        bool(checks.selector) and not all(checks.supports)
    )

    def walk(memory, output, kinds, given):  # type: ignore[no-untyped-def]
        past, first, most_work, search = given.past, given.first, given.most_work, given.search
        nodes, counters, path = memory.nodes, memory.counters, memory.path
        numbers, state, failures = search.numbers, search.state, search.failures
        tops, counts, begins_at = search.tops, search.counts, search.begins
        bars, barred, fruitful = search.bars, search.barred, search.fruitful
        answered, places = search.answered, search.answered.shape[0] - 1
        rows, ends, tags = output.rows, output.ends, output.tags
        matches, used, left = output.used[0], output.used[1], counters[MATCHES_LEFT]
        mask = nodes.shape[0] - 1
        fire = memory.fires[counters[LISTED] - 1]
        floor_value = fire[3]
        lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
        bits = kinds.bits[0]
        kind_mask = (np.int64(1) << bits) - 1
        number, consumed = numbers[NUMBER], numbers[CONSUMED]
        room, depth, work = tops.shape[1], 0, 0
        enters = True
        counters[WORK] = 0
        tops[0, 0], counts[0] = fire[0], 1
        while depth >= 0:
            # Of the nodes that can be next, merges give way to their sides.
            if depth + 2 >= path.shape[0]:
                return STACK_FULL
            if remembers and is_full(failures, numbers[FAILURES]):
                return WINDOW_FULL
            if enters:
                barred[depth], fruitful[depth] = 0, False
            count, place = counts[depth], 0
            best, look = np.int64(-1), np.int64(-1)
            while place < count:
                node = tops[depth, place]
                at = node & mask
                dead = node < lowest or nodes[at, SINCE] < floor_value
                for bar in range(barred[depth]):
                    dead |= bars[depth, bar] == node
                if dead or not may_reach(
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
                    count -= 1
                    tops[depth, place] = tops[depth, count]
                    continue
                if nodes[at, TAG] == MERGE:
                    if count == room:
                        return WINDOW_FULL
                    tops[depth, place] = nodes[at, CHILD]
                    tops[depth, count] = nodes[at, NEXT]
                    count += 1
                    continue
                if nodes[at, TAG] >> bits > best:
                    best, look = nodes[at, TAG] >> bits, looks[nodes[at, TAG] & kind_mask]
                place += 1
            counts[depth] = count
            if enters and depth > 0 and absorbs[path[depth - 1] & kind_mask]:
                for place in range(count):
                    if barred[depth - 1] < room:
                        bars[depth - 1, barred[depth - 1]] = tops[depth, place]
                        barred[depth - 1] += 1
            enters = False
            if best < 0:
                # Nothing is left to try here. The event that led here may begin the match.
                found = fruitful[depth]
                depth -= 1
                if depth < 0:
                    break
                start = path[depth] >> bits
                if (
                    begins_at[depth]
                    and (every_start or not found)
                    and (places < 0 or answered[start & places] != start)
                    and has_enough(depth, search)
                    and completes(past, first, path, depth, state)
                ):
                    if matches == rows.shape[0] or used + depth + 1 > tags.shape[0]:
                        output.used[0], output.used[1] = matches, used
                        return OUTPUT_FULL
                    for place in range(depth, -1, -1):
                        tags[used] = path[place]
                        used += 1
                    rows[matches], ends[matches] = fire[1], used
                    matches += 1
                    left -= 1
                    found = True
                    if left == 0:
                        break
                fruitful[depth] |= found
                if not found and remembers and work > PATIENCE and search.entered[depth] > 0:
                    numbers[FAILURES] += note_failure(
                        failures, number, search.entered[depth], state, depth
                    )
                continue
            # The latest event, and all nodes of it, which the piles behind them take the place of.
            begins, together, tag, entered = False, 0, np.int64(0), np.int64(0)
            place = 0
            while place < count:
                node = tops[depth, place]
                at = node & mask
                if nodes[at, TAG] >> bits != best or looks[nodes[at, TAG] & kind_mask] != look:
                    place += 1
                    continue
                if together == room:
                    return WINDOW_FULL
                tag, entered = nodes[at, TAG], node
                begins |= starts_with(kinds, tag & kind_mask)
                tops[depth + 1, together] = nodes[at, CHILD]
                together += 1
                tops[depth, place] = nodes[at, NEXT]
                following = nodes[at, NEXT]
                if (
                    following < lowest
                    or nodes[following & mask, SINCE] < floor_value
                    or nodes[following & mask, TAG] >> bits != best
                ):
                    place += 1
            if together > 1:
                entered = np.int64(0)  # a failure is noted of one node
            path[depth] = tag
            work += 1
            if work > most_work:
                counters[WORK] = work
                return TOO_MUCH_WORK
            if best <= consumed or not admits(past, first, path, depth, state):
                continue
            if (
                remembers
                and work > PATIENCE
                and entered > 0
                and has_failed(failures, number, entered, state, depth)
            ):
                continue
            if not add(past, first, path, depth, bits, search):
                continue
            begins_at[depth], search.entered[depth] = begins, entered
            counts[depth + 1] = together
            enters = True
            depth += 1
        output.used[0], output.used[1] = matches, used
        counters[STACK_SIZE], counters[MATCHES_LEFT] = 0, left
        if places >= 0:
            begin = np.int64(0)
            for match in range(matches):
                start = tags[begin] >> bits
                answered[start & places] = start
                begin = ends[match]
        return DONE

    if checks.compiles:
        compiled: Callable[..., int] = njit(nogil=True, error_model="numpy", _nrt=False)(walk)
        return compiled
    return walk


@njit(nogil=True, error_model="numpy", inline="always")
def starts_with(kinds, kind):  # type: ignore[no-untyped-def]
    """Whether an event of a kind can begin a match."""
    return kinds.starts[kind]

"""Searches with conditions between events that take the latest events first.

As in `latest_walk`, LAST compares two matches with the same end by the largest event that is in
only one of them. So a match with further events before it is preferred, and the latest events are
taken first. A search in this order, with backtracking where a condition fails, finds the chosen
match first, and visits no other match. The order is right if

* every event of a match counts for the selector, and an event can be marked in one way only, so
  that the events determine the match;
* the nodes that can come next are on piles, with the latest event on top. Several piles are merged
  by comparing their newest nodes (`Search.tops`). All nodes of one event are taken together.

An event begins a match only when the search returns to it, because longer matches come first. Nodes
without a match are remembered where that is exact (`failures`). Sums or numbers of different values
that cannot be reached are not tried (`sum_bounds`, `varieties`).

Other selectors, and ANY, want the *greatest* matches, if a further event never makes a condition
fail; of events under a `+`, all of these (`Checked.absorbs`). If all matches below an event c can
also continue from the node before c, then c can be added to each of them. So the matches that lack
c need not be tried. The nodes that can follow c become *bars* for what comes after c in its place.
In any order of the nodes, a match is dropped only in favour of a greater one. FIRST wants no match
of a start that had a match at an earlier end (`Search.answered`).
"""

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
    """A kernel as of `walk_of` that lists the latest, or the greatest, matches of the present
    event.

    It lists no more than are left to list, and starts again after it needed more room. If its
    status is not DONE, drop what it has listed.
    """
    # Longer than 60 lines: it makes one kernel, which has to be a closure over the conditions.
    admits, completes, remembers = checks.admits, checks.completes, checks.fails_by > 0
    add, may_reach, has_enough = bounds_of(checks)
    absorbs, looks = checks.absorbs, checks.looks  # arrays would keep the kernel out of the cache
    # A match with an earlier start is greater, if all of its events count.
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
            # Replace merges by their sides among the nodes that can come next.
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
                # Nothing is left to try here. The event that led here may begin a match.
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
            # Take the latest event with all its nodes. The piles behind them replace these.
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
                entered = np.int64(0)  # a failure is noted for a single node only
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

"""SELECT LAST with conditions across events: the first match of a search is the choice.

As in `latest_walk`, LAST prefers of two matches with one end the one whose largest event that is
not in both is larger; so it goes on from a match to one with further events before it, and takes
the latest events first. A search in this order, which goes back where a condition fails, finds the
chosen match first. Matches that are not chosen are not looked at.

The order holds where

* every event of a match counts for the selector, and an event can be marked in one way only: then
  the events decide the match;
* the nodes that can be next are on piles, which hold the latest event first. Several piles are
  merged by comparing their newest nodes (`Search.tops`); nodes of one event are taken together.

An event begins a match only when the search comes back to it, because longer matches go first.
Nodes at which the search has failed are remembered where that is exact (`failures`), and sums that
cannot be reached are not tried (`sum_bounds`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from celc_runtime.engine.arena import (
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
    TOO_MUCH_WORK,
    WINDOW_FULL,
    WORK,
    lowest_id,
)
from celc_runtime.engine.checked_listing import begin_search
from celc_runtime.engine.failures import PATIENCE, has_failed, is_full, note_failure
from celc_runtime.engine.search import CONSUMED, FAILURES, NUMBER
from celc_runtime.engine.sum_bounds import reaching
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


@cache
def latest_listing(checks: Checked) -> Callable[..., int]:
    """A kernel like that of `checked_listing` which lists the match that LAST chooses.

    It also takes (…, wanted), see `collected_listing`. WINDOW_FULL: more room for `Search.tops`, or
    for failures.
    """
    descend = _descent(checks)

    def listing(memory, output, kinds, past, first, most_work, search, wanted):  # type: ignore[no-untyped-def]
        counters, numbers, path = memory.counters, search.numbers, memory.path
        rows, ends, tags = output.rows, output.ends, output.tags
        while True:
            if counters[LISTED] == counters[FIRED] or output.limit[0] == 0:
                counters[LISTED] = counters[FIRED] = 0
                return DONE
            begin_search(memory, search)
            counters[STACK_SIZE] = 0
            found, status = descend(memory, kinds, past, first, most_work, search)
            if status == DONE and found > 0:
                matches, used = output.used[0], output.used[1]
                if matches == rows.shape[0] or used + found > tags.shape[0]:
                    status = OUTPUT_FULL
            if status != DONE:
                counters[LISTED] -= 1  # the event is searched again when there is room
                return status
            if found > 0:
                for place in range(found):
                    tags[used + place] = path[found - 1 - place]
                rows[matches], ends[matches] = memory.fires[counters[LISTED] - 1, 1], used + found
                output.used[0], output.used[1] = matches + 1, used + found
                if wanted.consumes[0]:
                    numbers[CONSUMED] = path[0] >> kinds.bits[0]

    return njit(nogil=True)(listing) if checks.compiles else listing


def _descent(checks: Checked) -> Callable[..., tuple[int, int]]:
    """The kernel that searches the match of the event at hand; it leaves the match in the path, and
    returns its length, 0 where there is none, and a status."""
    # Longer than 60 lines: it makes one kernel, which has to be a closure over the conditions.
    admits, completes, remembers = checks.admits, checks.completes, checks.fails_by > 0
    add, may_reach = reaching(checks.weigh, checks.limits, compiles=checks.compiles)

    def descend(memory, kinds, past, first, most_work, search):  # type: ignore[no-untyped-def]
        nodes, counters, path = memory.nodes, memory.counters, memory.path
        numbers, state, failures = search.numbers, search.state, search.failures
        tops, counts, begins_at = search.tops, search.counts, search.begins
        mask = nodes.shape[0] - 1
        fire = memory.fires[counters[LISTED] - 1]
        floor_value = fire[3]
        lowest = lowest_id(nodes, counters[NEXT_NODE], fire[2])
        bits = kinds.bits[0]
        kind_mask = (np.int64(1) << bits) - 1
        number, consumed = numbers[NUMBER], numbers[CONSUMED]
        room, depth, work = tops.shape[1], 0, counters[WORK]
        tops[0, 0], counts[0] = fire[0], 1
        while True:
            # Of the nodes that can be next, merges give way to their sides.
            if depth + 2 >= path.shape[0]:
                return 0, STACK_FULL
            if remembers and is_full(failures, numbers[FAILURES]):
                return 0, WINDOW_FULL
            count, place = counts[depth], 0
            best = np.int64(-1)
            while place < count:
                node = tops[depth, place]
                at = node & mask
                if (
                    node < lowest
                    or nodes[at, SINCE] < floor_value
                    or not may_reach(
                        nodes, node, depth, lowest, floor_value, past, first, kinds, search, number
                    )
                ):
                    count -= 1
                    tops[depth, place] = tops[depth, count]
                    continue
                if nodes[at, TAG] == MERGE:
                    if count == room:
                        return 0, WINDOW_FULL
                    tops[depth, place] = nodes[at, CHILD]
                    tops[depth, count] = nodes[at, NEXT]
                    count += 1
                    continue
                best = max(best, nodes[at, TAG] >> bits)
                place += 1
            if best < 0:
                # Nothing is left to try here. The event that led here may begin the match.
                depth -= 1
                if depth < 0:
                    return 0, DONE
                if begins_at[depth] and completes(past, first, path, depth, state):
                    return depth + 1, DONE
                if remembers and work > PATIENCE and search.entered[depth] > 0:
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
                if nodes[at, TAG] >> bits != best:
                    place += 1
                    continue
                if together == room:
                    return 0, WINDOW_FULL
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
            counts[depth] = count
            if together > 1:
                entered = np.int64(0)  # a failure is noted of one node
            path[depth] = tag
            work += 1
            if work > most_work:
                counters[WORK] = work
                return 0, TOO_MUCH_WORK
            if best <= consumed or not admits(past, first, path, depth, state):
                continue
            if (
                remembers
                and work > PATIENCE
                and entered > 0
                and has_failed(failures, number, entered, state, depth)
            ):
                continue
            add(past, first, tag, depth, search.sums)
            begins_at[depth], search.entered[depth] = begins, entered
            counts[depth + 1] = together
            depth += 1

    if checks.compiles:
        compiled: Callable[..., tuple[int, int]] = njit(
            nogil=True, error_model="numpy", _nrt=False
        )(descend)
        return compiled
    return descend


@njit(nogil=True, error_model="numpy", inline="always")
def starts_with(kinds, kind):  # type: ignore[no-untyped-def]
    """Whether an event of a kind can begin a match."""
    return kinds.starts[kind]

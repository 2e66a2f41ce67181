"""Listing with conditions, where all matches of an event must be known before the first is
returned.

That is so for a selector, for CONSUME, and where only one of several matches that look alike is
returned. The matches of one event are collected. They are reduced when all are there or the room is
full (`collected_matches`). All this is one kernel. Returning to Python for each event cost ten
times as much as most events.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import (
    DONE,
    FIRED,
    LISTED,
    MATCHES_LEFT,
    OUTPUT_FULL,
    PADDING,
    STACK_SIZE,
    TOO_MUCH_WORK,
    WINDOW_FULL,
    WORK,
)
from celc_runtime.engine.walk.collected_matches import (
    copy_matches,
    keep_distinct,
    keep_largest,
    keep_preferred,
    keep_preferred_of_starts,
)
from celc_runtime.engine.walk.latest_checked import greatest_walk
from celc_runtime.engine.walk.listing import Output
from celc_runtime.engine.walk.search import CONSUMED, INSTANT, READY
from celc_runtime.engine.walk.walk import begin_fire, begin_search, walk_of
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


class Wanted(NamedTuple):
    """Which matches of an event are returned, or of an instant where its events have one end."""

    limit: np.ndarray  # int64[1]
    supports: np.ndarray  # bool[kinds], whether an event counts for the selector
    begins: np.ndarray  # bool[kinds], whether it can be the first event, which tells matches apart
    shown: np.ndarray  # int64[kinds], a number for the labels that an event shows, −1: none


class Together(NamedTuple):
    """Which events have one end, so that their matches are one choice."""

    waits: bool  # whether the events of an instant have one end
    instants: np.ndarray  # int64[rows], the number of each row's instant; empty: each row is one
    is_last: bool  # whether no other event of the last instant fires


@njit(nogil=True, cache=True)
def instant_of(together, row):  # type: ignore[no-untyped-def]
    return together.instants[row] if together.instants.shape[0] else row


@cache
def collected_listing(checks: Checked) -> Callable[..., int]:
    """A kernel as of `listing_kernel`, which also takes (…, collected, wanted, together).

    together: the instants of the rows, for matches that are collected until their instant is over.
    It returns WINDOW_FULL if `collected` is full of reduced matches, or if the search needs more
    room (`with_room_for`).
    """
    greatest, selects = checks.greatest, bool(checks.selector)
    is_any = not selects and not checks.distinct
    walk = greatest_walk(checks) if greatest else walk_of(checks, collects=True)
    reduced = _reduction_of(checks)

    # Long: the state of an event, or of an instant, that must not be lost between two calls.
    def listing(  # type: ignore[no-untyped-def]
        memory, output, kinds, given, collected, wanted, together
    ):
        counters, numbers, most_work = memory.counters, given.search.numbers, given.most_work
        bits = kinds.bits[0]
        while True:
            if not _handed_out(collected, output, numbers, bits, wanted, given.consumes):
                return OUTPUT_FULL
            if counters[STACK_SIZE] == 0:
                is_over = counters[LISTED] == counters[FIRED] or output.limit[0] == 0
                if together.waits and collected.used[0] > 0:
                    instant = np.int64(-1)
                    if not is_over:
                        instant = instant_of(together, memory.fires[counters[LISTED], 1])
                    goes_on = not is_over and instant == numbers[INSTANT]
                    if not goes_on and (together.is_last or not is_over):
                        counters[WORK] = reduced(collected, bits, wanted, True, most_work)
                        if counters[WORK] > most_work:
                            # The caller names the event that was listed last.
                            memory.fires[0, 1], counters[LISTED] = collected.rows[0], 1
                            return TOO_MUCH_WORK
                        numbers[READY] = 0
                        continue
                if is_over:
                    counters[LISTED] = counters[FIRED] = 0
                    return DONE
                if together.waits:
                    numbers[INSTANT] = instant_of(together, memory.fires[counters[LISTED], 1])
                begin_fire(memory)
                begin_search(memory, given.search)
                counters[MATCHES_LEFT] = collected.limit[0]
                if greatest and not selects:
                    counters[MATCHES_LEFT] = wanted.limit[0]
                if together.waits and is_any:
                    counters[MATCHES_LEFT] = wanted.limit[0] - collected.used[0]
                    if counters[MATCHES_LEFT] <= 0:
                        counters[STACK_SIZE] = 0
                        continue
            if greatest:
                collected.used[0] = collected.used[1] = 0
            status = walk(memory, collected, kinds, given)
            if status == DONE or (status == OUTPUT_FULL and not greatest):
                is_complete = status == DONE and not together.waits
                counters[WORK] += reduced(
                    collected, bits, wanted, is_complete, most_work - counters[WORK]
                )
                if counters[WORK] > most_work:
                    return TOO_MUCH_WORK
            if status == DONE and not together.waits:
                numbers[READY] = 0
            elif status != DONE:
                return WINDOW_FULL if status == OUTPUT_FULL else status

    return njit(nogil=True)(listing) if checks.compiles else listing


def _reduction_of(checks: Checked) -> Callable[..., int]:
    """The kernel that drops the matches which are not returned.

    It returns the number of events that MAX compared; past `most_work` it drops nothing. Only the
    selector of the query is compiled, because each takes Numba a second or more.
    """
    # The kernel `counted_sets` counts matches within others. The search may list some of them.
    selector = "MAX" if checks.rounds else checks.selector
    reduce, distinct = _REDUCTIONS[selector], checks.distinct
    # Matches that look alike can differ in support. MAX needs all supports until the end.
    early = selector != "MAX"
    keep_looks = _keep_distinct if distinct else _keep_all

    def reduced(collected, bits, wanted, is_complete, most_work):  # type: ignore[no-untyped-def]
        if collected.used[0] < 2:
            return np.int64(0)
        work = reduce(collected, bits, wanted, most_work)
        if is_complete or early:
            keep_looks(collected, bits, wanted, most_work)
        return work

    return njit(nogil=True)(reduced) if checks.compiles else reduced


@njit(nogil=True, cache=True)
def _keep_all(collected, bits, wanted, most_work):  # type: ignore[no-untyped-def]
    return np.int64(0)


@njit(nogil=True, cache=True)
def _keep_next(collected, bits, wanted, most_work):  # type: ignore[no-untyped-def]
    keep_preferred(collected, bits, wanted.supports, True)
    return np.int64(0)


@njit(nogil=True, cache=True)
def _keep_last(collected, bits, wanted, most_work):  # type: ignore[no-untyped-def]
    keep_preferred(collected, bits, wanted.supports, False)
    return np.int64(0)


@njit(nogil=True, cache=True)
def _keep_largest(collected, bits, wanted, most_work):  # type: ignore[no-untyped-def]
    return np.int64(keep_largest(collected, bits, wanted.supports, most_work))


@njit(nogil=True, cache=True)
def _keep_next_of_starts(collected, bits, wanted, most_work):  # type: ignore[no-untyped-def]
    keep_preferred_of_starts(collected, bits, wanted.supports, wanted.begins)
    return np.int64(0)


@njit(nogil=True, cache=True)
def _keep_distinct(collected, bits, wanted, most_work):  # type: ignore[no-untyped-def]
    keep_distinct(collected, bits, wanted.shown)
    return np.int64(0)


_REDUCTIONS = {
    "": _keep_all,
    "NXT": _keep_next,
    "LAST": _keep_last,
    "MAX": _keep_largest,
    "NXT_OF_ENDS": _keep_next_of_starts,
}


@njit(nogil=True, cache=True)
def _handed_out(collected, output, numbers, bits, wanted, consumes):  # type: ignore[no-untyped-def]
    """Return the collected matches, up to LIMIT, if all are known; False: the output is full."""
    if numbers[READY] < 0:
        return True
    found = min(collected.used[0], wanted.limit[0])
    while numbers[READY] < found:
        copied = copy_matches(collected, output, numbers[READY], found)
        if copied == 0:
            return False
        numbers[READY] += copied
    if found > 0 and consumes:
        numbers[CONSUMED] = collected.tags[collected.ends[0] - 1] >> bits
    collected.used[0] = collected.used[1] = 0
    numbers[READY] = -1
    return True


def with_room_for(collected: Output, size: int) -> Output:
    """More room for the collected matches of one event, if reducing them has not helped much.

    size: the number of events of the match that did not fit, at least.
    """
    rows, tags = len(collected.rows), len(collected.tags)
    matches, used = (int(count) for count in collected.used)
    more_rows = rows if 2 * matches >= rows else 0
    is_tight = 2 * used > tags or used + size > tags - PADDING
    more_tags = max(tags, size + PADDING) if is_tight else 0
    if not more_rows and not more_tags:
        return collected
    return Output(
        np.concatenate([collected.rows, np.zeros(more_rows, np.int64)]),
        np.concatenate([collected.ends, np.zeros(more_rows, np.int64)]),
        np.concatenate([collected.tags, np.zeros(more_tags, np.int64)]),
        collected.used,
        collected.limit,
    )

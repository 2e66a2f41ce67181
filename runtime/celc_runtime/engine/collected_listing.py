"""Listing with conditions where all matches of an event must be known before the first is handed
out: for a selector, for CONSUME, and where each of several matches that look alike is to come once.

The matches of one event are collected, and reduced when all are there or the room is full
(`collected_matches`). All in one kernel: to come back to Python for each event cost ten times as
much as most events themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena import (
    DONE,
    FIRED,
    LISTED,
    MATCHES_LEFT,
    OUTPUT_FULL,
    STACK_SIZE,
    TOO_MUCH_WORK,
    WINDOW_FULL,
    WORK,
)
from celc_runtime.engine.checked_listing import begin_search, checked_walk
from celc_runtime.engine.collected_matches import (
    copy_matches,
    keep_distinct,
    keep_largest,
    keep_preferred,
    keep_preferred_of_starts,
)
from celc_runtime.engine.listing import Output
from celc_runtime.engine.search import CONSUMED, READY
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked

ALL, NXT, LAST, MAX, NXT_OF_ENDS = range(5)
SELECTORS = {"": ALL, "NXT": NXT, "LAST": LAST, "MAX": MAX, "NXT_OF_ENDS": NXT_OF_ENDS}


class Wanted(NamedTuple):
    """Which of the matches of an event are handed out.

    selector: int64[1], of SELECTORS. distinct, consumes: bool[1], whether one of those that look
    alike is handed out alone, and whether their events are consumed. limit: int64[1]. supports:
    bool[kinds], whether an event counts for the selector; shown: int64[kinds], a number for the set
    of labels that an event shows, −1 where it shows none.
    """

    selector: np.ndarray
    distinct: np.ndarray
    consumes: np.ndarray
    limit: np.ndarray
    supports: np.ndarray
    shown: np.ndarray


@cache
def collected_listing(checks: Checked) -> Callable[..., int]:
    """A kernel like that of `checked_listing`, which also takes (…, collected, wanted).

    WINDOW_FULL where `collected` is full of matches that have been reduced, or the search needs
    more room (`with_room_for_collected`).
    """
    walk = checked_walk(checks, collects=True)

    def listing(memory, output, kinds, past, first, most_work, search, collected, wanted):  # type: ignore[no-untyped-def]
        counters, numbers = memory.counters, search.numbers
        bits = kinds.bits[0]
        while True:
            if numbers[READY] >= 0:
                if not _handed_out(collected, output, numbers, bits, wanted):
                    return OUTPUT_FULL
            if counters[STACK_SIZE] == 0:
                if counters[LISTED] == counters[FIRED] or output.limit[0] == 0:
                    counters[LISTED] = counters[FIRED] = 0
                    return DONE
                begin_search(memory, search)
                counters[MATCHES_LEFT] = collected.limit[0]
            status = walk(memory, collected, kinds, past, first, most_work, search)
            if status == OUTPUT_FULL or status == DONE:
                counters[WORK] += _reduced(
                    collected, bits, wanted, status == DONE, most_work - counters[WORK]
                )
                if counters[WORK] > most_work:
                    return TOO_MUCH_WORK
            if status == DONE:
                numbers[READY] = 0
            else:
                return WINDOW_FULL if status == OUTPUT_FULL else status

    return njit(nogil=True)(listing) if checks.compiles else listing


@njit(nogil=True, cache=True)
def _reduced(collected, bits, wanted, is_complete, most_work):  # type: ignore[no-untyped-def]
    """Drop the matches that a selector does not choose, and those that look like another.

    Returns the number of events that MAX compares; past `most_work` it drops nothing.
    """
    selector, work = wanted.selector[0], np.int64(0)
    if collected.used[0] < 2:
        return work
    if selector == MAX:
        work = keep_largest(collected, bits, wanted.supports, most_work)
    elif selector == NXT_OF_ENDS:
        keep_preferred_of_starts(collected, bits, wanted.supports)
    elif selector != ALL:
        keep_preferred(collected, bits, wanted.supports, selector == NXT)
    # Matches that look alike can differ in support, and MAX needs all supports to the end.
    if wanted.distinct[0] and (is_complete or selector != MAX):
        keep_distinct(collected, bits, wanted.shown)
    return work


@njit(nogil=True, cache=True)
def _handed_out(collected, output, numbers, bits, wanted):  # type: ignore[no-untyped-def]
    """Hand out the collected matches, up to LIMIT; False where the output is full."""
    found = min(collected.used[0], wanted.limit[0])
    while numbers[READY] < found:
        copied = copy_matches(collected, output, numbers[READY], found)
        if copied == 0:
            return False
        numbers[READY] += copied
    if found > 0 and wanted.consumes[0]:
        numbers[CONSUMED] = collected.tags[collected.ends[0] - 1] >> bits
    collected.used[:] = 0
    numbers[READY] = -1
    return True


def with_room_for(collected: Output, size: int) -> Output:
    """More room for the collected matches of one event, if reducing them has not helped much.

    `size`: how many events the match that did not fit has at least.
    """
    rows, tags = len(collected.rows), len(collected.tags)
    matches, used = (int(count) for count in collected.used)
    more_rows = rows if 2 * matches >= rows else 0
    more_tags = max(tags, size) if 2 * used > tags or used + size > tags else 0
    if not more_rows and not more_tags:
        return collected
    return Output(
        np.concatenate([collected.rows, np.zeros(more_rows, np.int64)]),
        np.concatenate([collected.ends, np.zeros(more_rows, np.int64)]),
        np.concatenate([collected.tags, np.zeros(more_tags, np.int64)]),
        collected.used,
        collected.limit,
    )

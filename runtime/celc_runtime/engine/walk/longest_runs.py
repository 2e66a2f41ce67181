"""The longest runs of events that are linked with each other, in one pass.

The end of the longest run from an event never lies before that from an earlier one. So one pointer
follows the starts and one the ends, and each event is passed twice, however long the runs are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import DONE, OUTPUT_FULL
from celc_runtime.jit.kernels import njit


class RunEvents(NamedTuple):
    """Events that runs can hold, in their order.

    tags: int64, as in matches. rows: int64, their rows in the batch, −1: of an earlier one. keys,
    floors: int64, a start with a key below an event's floor is outside the event's window. linked:
    bool, whether a run with the event before goes on with this one. whole: bool, whether the
    longest run from the event satisfies the conditions on whole runs.
    """

    tags: np.ndarray
    rows: np.ndarray
    keys: np.ndarray
    floors: np.ndarray
    linked: np.ndarray
    whole: np.ndarray


START, END = 0, 1
"""Places of the two pointers: the first event whose run is not listed, and an event that its run
reaches at least."""


@njit(nogil=True, cache=True)
def list_runs_that_end(events, pointers, least, disjoint, output):  # type: ignore[no-untyped-def]
    """List the longest runs whose end is known, from where it stopped; DONE or OUTPUT_FULL.

    pointers: int64[2]. A run that ends in an earlier batch has been listed there by
    `list_open_runs`. disjoint: runs begin behind the end of the one before.
    """
    count = events.tags.shape[0]
    start, end = pointers[START], pointers[END]
    while start < count:
        end = _end_of_run(events, start, end)
        if end + 1 == count:
            break
        size = end + 1 - start
        if size < least or not events.whole[start]:
            start += 1
            continue
        if events.rows[end] >= 0 and not _listed(events, start, end, output):
            pointers[START], pointers[END] = start, end
            return OUTPUT_FULL
        start = end + 1 if disjoint else start + 1
    pointers[START], pointers[END] = start, end
    return DONE


@njit(nogil=True, cache=True)
def list_open_runs(events, start, least, disjoint, output):  # type: ignore[no-untyped-def]
    """List the runs from `start` on up to the last event, which may go on; returns the first start
    that is not listed because the output is full, or the number of events."""
    count = events.tags.shape[0]
    while start <= count - least:
        if not events.whole[start]:
            start += 1
            continue
        if not _listed(events, start, count - 1, output):
            return start
        if disjoint:
            break
        start += 1
    return count


@njit(nogil=True, cache=True)
def _end_of_run(events, start, end):  # type: ignore[no-untyped-def]
    """The last event of the longest run from `start`, which reaches `end` at least."""
    end = max(end, start)
    while (
        end + 1 < events.tags.shape[0]
        and events.linked[end + 1]
        and events.floors[end + 1] <= events.keys[start]
    ):
        end += 1
    return end


@njit(nogil=True, cache=True)
def _listed(events, start, end, output):  # type: ignore[no-untyped-def]
    """Write a run as a match; False where there is no room."""
    matches, used = output.used[0], output.used[1]
    size = end + 1 - start
    if matches == output.rows.shape[0] or used + size > output.tags.shape[0]:
        return False
    output.tags[used : used + size] = events.tags[start : end + 1]
    output.rows[matches], output.ends[matches] = events.rows[end], used + size
    output.used[0], output.used[1] = matches + 1, used + size
    return True


@cache
def links(admits: Callable[..., bool]) -> Callable[..., None]:
    """A kernel that finds which events (tags, int64) a run with the event before goes on with.

    It takes (tags, linked, past, first, state) and clears `linked` where `admits` turns the two
    down (`plan.strategy.Checked`). Made once for each query, because Numba compiles it.
    """

    def linked_events(tags, linked, past, first, state):  # type: ignore[no-untyped-def]
        path = np.empty(2, np.int64)
        for place in range(1, tags.shape[0]):
            if linked[place]:
                path[0], path[1] = tags[place], tags[place - 1]
                # The first call keeps the numbers that the second one asks for.
                linked[place] = admits(past, first, path, 0, state) and admits(
                    past, first, path, 1, state
                )

    if not hasattr(admits, "py_func"):
        return linked_events
    kernel: Callable[..., None] = njit(nogil=True, error_model="numpy")(linked_events)
    return kernel


@cache
def judgement(completes: Callable[..., bool]) -> Callable[..., None]:
    """A kernel that finds of which events the longest run so far satisfies the conditions on whole
    runs, each of which further events keep TRUE.

    It takes (events, past, first, path, state) and writes `events.whole`; path: int64, and state:
    for `completes`, with room for all events.
    """

    def is_whole(events, start, end, past, first, path, state):  # type: ignore[no-untyped-def]
        for place in range(start, end + 1):
            path[end - place] = events.tags[place]
        return completes(past, first, path, end - start, state)

    compiles = hasattr(completes, "py_func")
    holds: Callable[..., bool] = is_whole
    if compiles:
        holds = njit(nogil=True, error_model="numpy")(is_whole)

    def judge(events, past, first, path, state):  # type: ignore[no-untyped-def]
        count = events.tags.shape[0]
        start, end = 0, 0
        while start < count:
            end = _end_of_run(events, start, end)
            if end + 1 == count:
                break
            events.whole[start] = holds(events, start, end, past, first, path, state)
            start += 1
        # Those that end with the last event: of two, the earlier one holds all events of the other.
        low, high = start, count
        while low < high:
            middle = (low + high) >> 1
            if holds(events, middle, count - 1, past, first, path, state):
                low = middle + 1
            else:
                high = middle
        events.whole[start:low] = True
        events.whole[low:] = False

    if not compiles:
        return judge
    kernel: Callable[..., None] = njit(nogil=True, error_model="numpy")(judge)
    return kernel

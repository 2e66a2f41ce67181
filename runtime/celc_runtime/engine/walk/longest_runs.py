"""The longest runs of linked events, in one pass.

The end of the longest run from an event never lies before the end from an earlier event. So one
pointer follows the starts and one the ends. Each event is passed twice, for runs of any length.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import DONE, OUTPUT_FULL
from celc_runtime.engine.values.copies import copy_to
from celc_runtime.jit.kernels import njit


class RunEvents(NamedTuple):
    """Events that runs can contain, in their order."""

    tags: np.ndarray  # int64, as in matches
    rows: np.ndarray  # int64, their rows in the batch, −1: of an earlier batch
    keys: np.ndarray  # int64, what the window is measured on
    floors: np.ndarray  # int64, a start with a smaller key is outside of an event's window
    linked: np.ndarray  # bool, whether a run with the event before can go on with this event
    whole: np.ndarray  # bool, whether the longest run from the event satisfies conditions on runs


START, END = 0, 1
"""The two pointers: the first event whose run is not listed, and an event that this run reaches."""


@njit(nogil=True, cache=True)
def list_runs_that_end(events, pointers, least, disjoint, output):  # type: ignore[no-untyped-def]
    """List the longest runs whose end is known, from where the last call stopped.

    Returns DONE or OUTPUT_FULL. pointers: int64[2]. disjoint: each run begins after the end of the
    run before. A run that ends in an earlier batch was listed there by `list_open_runs`.
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
    """List the runs from `start` on that reach the last event, and so may go on.

    Returns the first start that is not listed because the output is full, or the number of events.
    """
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
    """The last event of the longest run from `start`; `end` is an event that it reaches."""
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
    """Write a run as a match; False: there is no room."""
    matches, used = output.used[0], output.used[1]
    size = end + 1 - start
    if matches == output.rows.shape[0] or used + size > output.tags.shape[0]:
        return False
    copy_to(output.tags, used, events.tags[start : end + 1])
    output.rows[matches], output.ends[matches] = events.rows[end], used + size
    output.used[0], output.used[1] = matches + 1, used + size
    return True


@cache
def links(admits: Callable[..., bool]) -> Callable[..., None]:
    """A kernel (tags, linked, past, first, state) that finds which events continue a run.

    It clears `linked` where `admits` rejects an event after the event before it
    (`plan.strategy.Checked`). Made once for each query, because Numba compiles it.
    """

    def linked_events(tags, linked, past, first, state):  # type: ignore[no-untyped-def]
        path = np.empty(2, np.int64)
        for place in range(1, tags.shape[0]):
            if linked[place]:
                path[0], path[1] = tags[place], tags[place - 1]
                # The first call stores the numbers that the second call needs.
                linked[place] = admits(past, first, path, 0, state) and admits(
                    past, first, path, 1, state
                )

    if not hasattr(admits, "py_func"):
        return linked_events
    kernel: Callable[..., None] = njit(nogil=True, error_model="numpy")(linked_events)
    return kernel


@cache
def judgement(completes: Callable[..., bool]) -> Callable[..., None]:
    """A kernel (events, past, first, path, state) that writes `events.whole`.

    It finds the events whose longest run so far satisfies the conditions on whole runs. Further
    events keep each of these TRUE. path: int64, and state: for `completes`, with room for all
    events.
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
        # Runs that end with the last event: of two, the earlier one contains the other.
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

"""The longest matches of neighbouring events, in two passes over the events.

The events of a match go from spot to spot, by the steps that two neighbours allow
(`celc_runtime/plan/strategy.py`). Backwards over the events, each spot keeps the farthest end that
a match can reach from it. Forwards from a start, the spots from which its end can still be reached
are the match. Sets of steps and of spots are the bits of a number, so an event costs an operation
or two for each step, for runs of any length, and an event of a match a few more.

Spot 0 is the one before a match; the steps out of it come first.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from celc_runtime.engine.arena.nodes import DONE, OUTPUT_FULL
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import Checked


class Ways(NamedTuple):
    """The spots and steps. A number whose bits are spots has bit 0 for the one before a match."""

    kinds: np.ndarray  # int64[spots], −1: an event without a mark, or spot 0
    sources: np.ndarray  # int64[steps]
    targets: np.ndarray  # int64[steps]
    begins: int  # the number of steps out of spot 0
    ends: int  # bits: the spots in which a match is complete
    goes_on: int  # bits: the spots from which a step leads on
    supports: int  # bits: the spots whose events count for the choice among matches with one end
    alike: np.ndarray  # int64[spots], bits: the spots whose events show the same labels


class Linked(NamedTuple):
    """Events that matches can contain, in their order."""

    rows: np.ndarray  # int64, their rows in the batch, −1: of an earlier batch
    keys: np.ndarray  # int64, what the window is measured on; empty: there is no window
    floors: np.ndarray  # int64, a start with a smaller key is outside of an event's window
    held: np.ndarray  # int64, bits: the steps from the event before to this one


@cache
def links_between(links: Callable[..., int]) -> Callable[..., None]:
    """A kernel (held, linked, past, place) that keeps of `held` the steps whose conditions hold.

    `place`: that of the first event in the columns `past`. linked: bool, whether an event is the
    neighbour of the one before it. Made once for each query, because Numba compiles it.
    """

    def find(held, linked, past, place):  # type: ignore[no-untyped-def]
        for number in range(held.shape[0]):
            if held[number] != 0:
                here = place + number
                before = here - 1 if linked[number] else here
                held[number] &= links(past, before, here)

    if not hasattr(links, "py_func"):
        return find
    kernel: Callable[..., None] = njit(nogil=True, error_model="numpy")(find)
    return kernel


@cache
def starts_allowed(checks: Checked) -> Callable[..., None]:
    """A kernel (ends, tag, step, past, first, path, state) that takes away the ends of the starts
    before which there is something that must not be there.

    `tag` is that of the first event, `step` what each next one adds to it; the others as `Checked`
    wants them.
    """
    admits, completes = checks.admits, checks.completes

    def find(ends, tag, step, past, first, path, state):  # type: ignore[no-untyped-def]
        for start in range(ends.shape[0]):
            if ends[start] < 0:
                continue
            path[0] = tag + start * step
            if not (admits(past, first, path, 0, state) and completes(past, first, path, 0, state)):
                ends[start] = -1

    if not checks.compiles:
        return find
    kernel: Callable[..., None] = njit(nogil=True, error_model="numpy")(find)
    return kernel


@njit(nogil=True, cache=True)
def find_ends(ways, events, known, best, ends):  # type: ignore[no-untyped-def]
    """Write for each event the end of the longest match that begins there; −1: none, or one whose
    end is among the first `known` events.

    Returns the first start whose matches may go on, or the number of events. best: int64[2, spots].
    """
    held = events.held
    count, spots, windowed = held.shape[0], ways.kinds.shape[0], events.keys.shape[0] > 0
    open_from, lives = count, np.int64(ways.goes_on)
    for place in range(count - 1, -1, -1):
        here, after = place & 1, (place + 1) & 1
        for spot in range(spots):
            best[here, spot] = place if ways.ends >> spot & 1 else -1
        if place + 1 < count:
            living, allowed = np.int64(0), held[place + 1]
            for step in range(ways.begins, ways.sources.shape[0]):
                if allowed >> step & 1:
                    source, target = ways.sources[step], ways.targets[step]
                    best[here, source] = max(best[here, source], best[after, target])
                    living |= (lives >> target & 1) << source
            lives = living
        end, is_open, allowed = np.int64(-1), False, held[place]
        for step in range(ways.begins):
            if allowed >> step & 1:
                end = max(end, best[here, ways.targets[step]])
                is_open |= (lives >> ways.targets[step] & 1) != 0
        if windowed:
            is_open &= events.floors[count - 1] <= events.keys[place]
            if end >= 0 and events.floors[end] > events.keys[place]:
                end = _end_in_window(ways, events, place)
        if is_open:
            open_from = place
        ends[place] = end if end >= known else -1
    return open_from


@njit(nogil=True, cache=True)
def _end_in_window(ways, events, start):  # type: ignore[no-untyped-def]
    """The end of the longest match of a start in its window; −1: there is none."""
    spots = _targets(ways, events.held[start], np.int64(1))
    end, place = np.int64(-1), start
    while spots != 0:
        if spots & ways.ends:
            end = np.int64(place)
        place += 1
        if place == events.held.shape[0] or events.floors[place] > events.keys[start]:
            break
        spots = _targets(ways, events.held[place], spots)
    return end


@njit(nogil=True, cache=True)
def _targets(ways, allowed, spots):  # type: ignore[no-untyped-def]
    """Bits: the spots to which the allowed steps lead from some spots."""
    found = np.int64(0)
    for step in range(ways.sources.shape[0]):
        if allowed >> step & 1 and spots >> ways.sources[step] & 1:
            found |= np.int64(1) << ways.targets[step]
    return found


@njit(nogil=True, cache=True)
def _sources(ways, allowed, spots):  # type: ignore[no-untyped-def]
    """Bits: the spots from which the allowed steps lead to some spots."""
    found = np.int64(0)
    for step in range(ways.begins, ways.sources.shape[0]):
        if allowed >> step & 1 and spots >> ways.targets[step] & 1:
            found |= np.int64(1) << ways.sources[step]
    return found


MATCH, GIVEN = 0, 1
"""The cursor of `list_ways`: the next start, and how many of its matches are listed."""

REACH, LEFT, WAY, ROWS = 0, 1, 2, 3
"""The rows of its working memory."""


@njit(nogil=True, cache=True)
def list_ways(ways, events, starts, ends, entry, bits, cursor, room, output):  # type: ignore[no-untyped-def]
    """List the matches between starts and their ends that the choice of NXT prefers, from where the
    last call stopped; returns DONE or OUTPUT_FULL. Of matches that look alike one is listed.

    entry: that of the first event. room: int64[ROWS, events], for the longest match.
    """
    held, reach, left, way = events.held, room[REACH], room[LEFT], room[WAY]
    while cursor[MATCH] < starts.shape[0]:
        start, end = starts[cursor[MATCH]], ends[cursor[MATCH]]
        last = end - start
        _preferred(ways, held, start, last, reach)
        depth, number = 0, 0
        left[0] = reach[0]
        while depth >= 0:
            if left[depth] == 0:
                depth -= 1
                continue
            spot = 0
            while not left[depth] >> spot & 1:
                spot += 1
            chosen = left[depth] & ways.alike[spot]
            left[depth] ^= chosen
            way[depth] = spot
            if depth < last:
                depth += 1
                left[depth] = reach[depth] & _targets(ways, held[start + depth], chosen)
                continue
            if number == cursor[GIVEN]:
                if not _listed(ways, way, last, entry + start, bits, output):
                    return OUTPUT_FULL
                output.rows[output.used[0] - 1] = events.rows[end]
                cursor[GIVEN] += 1
            number += 1
        cursor[MATCH] += 1
        cursor[GIVEN] = 0
    return DONE


@njit(nogil=True, cache=True)
def _preferred(ways, held, start, last, reach):  # type: ignore[no-untyped-def]
    """Write for each event from `start` on, `last` + 1 of them, the spots of the preferred matches.

    Of two sets of supporting events NXT prefers the one with the smallest event that is in one of
    them only. So the first event that can support a match decides, then the next one.
    """
    reach[last] = ways.ends
    for place in range(last - 1, -1, -1):
        reach[place] = _sources(ways, held[start + place + 1], reach[place + 1])
    spots, several = np.int64(1), False
    for place in range(last + 1):
        spots = reach[place] & _targets(ways, held[start + place], spots)
        if spots & ways.supports:
            spots &= ways.supports
        several |= spots & (spots - 1) != 0
        reach[place] = spots
    if several:
        for place in range(last - 1, -1, -1):
            reach[place] &= _sources(ways, held[start + place + 1], reach[place + 1])


@njit(nogil=True, cache=True)
def _listed(ways, way, last, entry, bits, output):  # type: ignore[no-untyped-def]
    """Write a match, whose first event is an entry; False: there is no room."""
    matches, used = output.used[0], output.used[1]
    if matches == output.rows.shape[0] or used + last + 1 > output.tags.shape[0]:
        return False
    for place in range(last + 1):
        kind = ways.kinds[way[place]]
        if kind >= 0:
            output.tags[used] = (entry + place) << bits | kind
            used += 1
    output.ends[matches] = used
    output.used[0], output.used[1] = matches + 1, used
    return True

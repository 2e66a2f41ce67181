"""SASE++'s way: one run for each first event, and its matches are made when it ends.

Source: H. Zhang, Y. Diao, N. Immerman, *On Complexity and Optimization of Expensive Queries in
Complex Event Processing* (SIGMOD 2014), sections 5.1 and 5.2, for its template `SEQ(A a, B+ b[],
C c)` under skip till any match. A run takes every B without asking for its value. At a C the
events that it has are one *intermediate match*; matches are all choices of its B's that satisfy the
conditions, and choices that begin with one that does not are not looked at.

`early` (section 5.2): conditions whose answer does not depend on the choice drop events as they
come. Those are ranges of values; a C that is not below the greatest of all B's of a run is not
below that of any choice either, so it ends nothing there. All else is asked when choices are made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from baselines.runs import ANY, MOST, Events, Match, Pattern


class Counts(NamedTuple):
    """The work of a pass.

    `runs`: that began. `taken`: B's that a run took, once for each run. `intermediate`: matches
    that were looked into. `tried`: events that were tried as the next one of a choice. `matches`,
    and `shown`, the events of all matches.
    """

    runs: int
    taken: int
    intermediate: int
    tried: int
    matches: int
    shown: int


def found_by_postponing(
    pattern: Pattern, events: Events, *, early: bool, by_numba: bool = True, keep: int = 0
) -> tuple[Counts, list[Match]]:
    """All matches of a pattern of the template, and the work.

    `keep`: how many matches are returned at most. Raises ValueError for other patterns.
    """
    if pattern.strategy != ANY or pattern.keyed or pattern.consumes:
        raise ValueError("postponing is written for skip till any match, without a key")
    if [part.several for part in pattern.parts] != [False, True, False]:
        raise ValueError("postponing is written for SEQ(A, B+, C)")
    parts = np.array([(part.against, part.above) for part in pattern.parts], np.int64)
    bounds = np.array([(part.low, part.high) for part in pattern.parts])
    fits = np.stack([events.types == part.type for part in pattern.parts], axis=1)
    counts = np.zeros(6, np.int64)
    rows = np.zeros((keep, len(events.types) + 1), np.int64)
    read = _kernel(by_numba)
    last = pattern.parts[2]
    drops = early and last.against == MOST and not last.above
    columns = fits, events.values, events.times
    read(*columns, parts, bounds, pattern.window, early, drops, counts, rows)
    found = Counts(*map(int, counts))
    return found, [_match(row.tolist()) for row in rows[: found.matches]]


def _match(row: list[int]) -> Match:
    length, first, *rest = row
    return (first,), tuple(rest[: length - 2]), (rest[length - 2],)


@cache
def _kernel(by_numba: bool) -> Callable[..., None]:
    jit: Any = njit(nogil=True) if by_numba else (lambda function: function)

    @jit
    def holds(value, against, above, first, before, most, mean):  # type: ignore[no-untyped-def]
        """Whether a value stands as it must to what it is compared with."""
        if against == 0:
            return True
        other = first
        if against == 2:
            other = before
        elif against == 3:
            other = most
        elif against == 4:
            other = mean
        return value >= other if above else value < other

    @jit
    def choices(run, row, values, own, taken, parts, bounds, counts, rows, path, sums):  # type: ignore[no-untyped-def]
        """All matches of an intermediate match: its A, the B's `own[:taken]`, and the C `row`."""
        first, value = values[run], values[row]
        in_range = bounds[2, 0] <= value < bounds[2, 1]
        depth = 0
        path[0] = -1  # the place of the last B that was tried at this depth
        while depth >= 0:
            path[depth] += 1
            if path[depth] >= taken:
                depth -= 1
                continue
            counts[3] += 1
            one = values[own[path[depth]]]
            if not bounds[1, 0] <= one < bounds[1, 1]:
                continue
            if depth == 0:
                fits = parts[1, 0] != 1 or holds(one, 1, parts[1, 1], first, 0.0, 0.0, 0.0)
                sums[0, 0], sums[0, 1] = one, one
            else:
                before = values[own[path[depth - 1]]]
                most, mean = sums[depth - 1, 0], sums[depth - 1, 1] / depth
                fits = holds(one, parts[1, 0], parts[1, 1], first, before, most, mean)
                sums[depth, 0], sums[depth, 1] = max(most, one), sums[depth - 1, 1] + one
            if not fits:
                continue
            most, mean = sums[depth, 0], sums[depth, 1] / (depth + 1)
            if in_range and holds(value, parts[2, 0], parts[2, 1], first, one, most, mean):
                if counts[4] < rows.shape[0]:
                    kept = rows[counts[4]]
                    kept[0], kept[1], kept[depth + 3] = depth + 3, run, row
                    for place in range(depth + 1):
                        kept[2 + place] = own[path[place]]
                counts[4] += 1
                counts[5] += depth + 3
            depth += 1
            path[depth] = path[depth - 1]

    @jit
    def read(fits, values, times, parts, bounds, window, early, drops, counts, rows):  # type: ignore[no-untyped-def]
        count = values.shape[0]
        runs, alive = np.empty(count, np.int64), 0
        middle, begin, ends = np.empty(count, np.int64), 0, 0
        own, path = np.empty(count, np.int64), np.empty(count + 1, np.int64)
        sums = np.empty((count + 1, 2))
        for row in range(count):
            while alive > 0 and times[row] - times[runs[0]] > window:
                runs[: alive - 1] = runs[1:alive].copy()
                alive -= 1
            while begin < ends and (alive == 0 or middle[begin] < runs[0]):
                begin += 1  # no run has it any more
            value = values[row]
            if fits[row, 2]:
                for run in runs[:alive]:
                    taken, most = 0, -np.inf
                    for place in range(begin, ends):
                        if middle[place] > run:
                            own[taken] = middle[place]
                            taken += 1
                            most = max(most, values[middle[place]])
                    dropped = early and not bounds[2, 0] <= value < bounds[2, 1]
                    if taken == 0 or dropped or (drops and value >= most):
                        continue
                    counts[2] += 1
                    choices(run, row, values, own, taken, parts, bounds, counts, rows, path, sums)
            if fits[row, 1] and (not early or bounds[1, 0] <= value < bounds[1, 1]):
                middle[ends] = row
                ends += 1
                counts[1] += alive
            if fits[row, 0] and bounds[0, 0] <= value < bounds[0, 1]:
                runs[alive] = row
                alive += 1
                counts[0] += 1

    return read  # type: ignore[no-any-return]

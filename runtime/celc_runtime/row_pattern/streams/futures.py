"""All that later rows can make of the rows that are there: the *futures* of partitions.

What later rows decide of a start is whether the ways that are open behind the last row lead to an
end. A future says it of each state: it leads nowhere; ends at the border; ends behind it, with a
row that AFTER MATCH SKIP can go to, or with none. Backwards over the later rows this is a
deterministic automaton, as the sets of states in `passes` are, so there are finitely many futures,
and they are found by following all rows that can come (`RowPlan.realisable`).

One start is decided without them (`decided`). They are needed where starts behind an undecided one
depend on what becomes of it: AFTER MATCH SKIP TO FIRST and TO LAST, and numbers of matches. There
each future is followed from start to start (`follow`), and what all futures have in common is
certain. Without WITHIN one future is that of all starts. With it, the starts of a partition see
later rows up to different times, so what one start meets says nothing of what another one does:
all combinations count as possible, which are more than there are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern.passes import KERNEL, NEVER, TO_FIRST, TO_NEXT_ROW, Moves, moves_of

DEAD, ENDS, GOES_ON, HAS_TARGET = 0, 1, 2, 3
"""What a future says of a state: no end; one at the border; one behind it, without a row to skip to
and with one."""

NOWHERE = 1 << 62
"""A place behind all rows: of the next start, or of a row that has not come."""

_MOST_FUTURES = 256
_MOST_SYMBOLS = 1024
_MOST_STEPS = 1 << 22  # states × symbols, of all futures
MOST_FOLLOWED = 1 << 10
"""Futures with different places in one partition. With more, its starts wait."""


class Futures(NamedTuple):
    """`truths`: int8[futures, states]. `closed`: which ones a start can have that WITHIN has
    closed. `alike`: whether all starts have the same one."""

    truths: np.ndarray
    closed: np.ndarray
    alike: bool


NO_FUTURES = Futures(np.zeros((0, 0), np.int8), np.zeros(0, np.bool_), False)
"""Where they are not known: starts behind an undecided one wait."""


@lru_cache(maxsize=64)
def futures_of(plan: RowPlan) -> Futures:
    """The futures of a plan; `NO_FUTURES` where none are asked for, where conditions read the path,
    and where there are too many."""
    symbols = plan.realisable
    if not symbols and 1 << plan.local_conditions <= _MOST_SYMBOLS:
        symbols = tuple(range(1 << plan.local_conditions))
    states = len(plan.states)
    if plan.searches or not symbols or len(symbols) * states * _MOST_FUTURES > 64 * _MOST_STEPS:
        return NO_FUTURES
    moves, _ = moves_of(plan)
    step = _Step(plan, moves, np.array(symbols, np.int64))
    over = np.where(moves.border < NEVER, ENDS, DEAD).astype(np.int8)
    cut = np.where(moves.accepts, ENDS, DEAD).astype(np.int8)
    begun = [over] if plan.within is None else [over, cut]
    found: dict[bytes, np.ndarray] = {one.tobytes(): one for one in begun}
    closed = len(found)
    waiting = [*found.values()]
    while waiting:
        for one in step.before(waiting.pop()):
            if one.tobytes() not in found:
                found[one.tobytes()] = one
                waiting.append(one)
        if len(found) > _MOST_FUTURES:
            return NO_FUTURES
    return Futures(
        np.array([*found.values()]), np.arange(len(found)) < closed, alike=plan.within is None
    )


class _Step:
    """One row backwards, of each kind that can come."""

    def __init__(self, plan: RowPlan, moves: Moves, symbols: np.ndarray) -> None:
        bits = symbols[:, np.newaxis] >> np.maximum(moves.bit, 0) & 1
        self._holds = np.unique((bits > 0) | (moves.bit < 0), axis=0)
        self._moves = moves
        self._is_target = np.isin(moves.variable, plan.targets)

    def before(self, behind: np.ndarray) -> np.ndarray:
        """int8[kinds, states]: what the futures before a row say, from what the one behind says."""
        moves, kinds = self._moves, np.arange(len(self._holds))
        goes = np.where(self._is_target | (behind[moves.target] == HAS_TARGET), HAS_TARGET, GOES_ON)
        possible = self._holds & (behind[moves.target] != DEAD)
        found = np.zeros((len(kinds), len(behind)), np.int8)
        found[:, moves.accepts] = ENDS
        for state in np.flatnonzero(np.diff(moves.begin)):
            begin, end = moves.begin[state], moves.begin[state + 1]
            first = begin + possible[:, begin:end].argmax(axis=1)
            found[:, state] = np.where(possible[kinds, first], goes[first], found[:, state])
        return np.unique(found, axis=0)


# --- the ways of a start --------------------------------------------------------------------------

STATE, FIRST_TARGET, LAST_TARGET = 0, 1, 2
"""The columns of a way: its state behind the last row, the first and the last row that AFTER MATCH
SKIP can go to, −1: none."""

MATCHED, EMPTY, NO_WAY = -1, -2, -3
"""In place of a state: a match that has ended before, one without rows, none."""

NOT_SURE = -1


@njit(**KERNEL)
def ways_of(found, unsure, moves, targets, start, end, first, ways, marks):  # type: ignore[no-untyped-def]
    """The ways of a start that are open behind the last row, in order of preference, and then the
    match that it has without them.

    found, unsure: the local conditions of each row, and those that later rows decide, as bits.
    ways: int64[2, states + 1, 3], written: the ways are those of ways[0]; the state of the last one
    is `MATCHED`, `EMPTY` or `NO_WAY`. marks: int64[states]. Returns how many there are, with
    the last one; `NOT_SURE` where a way has taken a row whose condition later rows decide.
    """
    ways[0, 0, STATE], ways[0, 0, FIRST_TARGET], ways[0, 0, LAST_TARGET] = first, -1, -1
    ways[0, 1, STATE], count, now = NO_WAY, 1, 0
    marks[:] = -1
    for row in range(start, end):
        bits = np.int64(found[row])
        open_bits = unsure[row] if unsure.shape[0] > 0 else np.int64(0)
        after, more, ended = 1 - now, 0, False
        for way in range(count):
            state = ways[now, way, STATE]
            for move in range(moves.begin[state], moves.begin[state + 1]):
                bit, target = moves.bit[move], moves.target[move]
                if (bit >= 0 and not (bits >> bit) & 1) or marks[target] == row:
                    continue
                if bit >= 0 and (open_bits >> bit) & 1:
                    return NOT_SURE
                marks[target] = row
                ways[after, more, STATE] = target
                ways[after, more, FIRST_TARGET] = ways[now, way, FIRST_TARGET]
                ways[after, more, LAST_TARGET] = ways[now, way, LAST_TARGET]
                if targets[move]:
                    ways[after, more, LAST_TARGET] = row
                    if ways[after, more, FIRST_TARGET] < 0:
                        ways[after, more, FIRST_TARGET] = row
                more += 1
            if moves.accepts[state]:
                ways[after, more, STATE] = MATCHED if row > start else EMPTY
                ways[after, more, FIRST_TARGET] = ways[now, way, FIRST_TARGET]
                ways[after, more, LAST_TARGET] = ways[now, way, LAST_TARGET]
                ended = True
                break
        if not ended:
            for column in range(3):
                ways[after, more, column] = ways[now, count, column]
        count, now = more, after
    if now > 0:
        for way in range(count + 1):
            for column in range(3):
                ways[0, way, column] = ways[1, way, column]
    return count + 1


@njit(**KERNEL)
def next_start(truths, ways, count, skip, start):  # type: ignore[no-untyped-def]
    """Where one future goes on after a start, and whether it has a match.

    A match that has no row to skip to, or only its first one, is an error: nothing comes behind it.
    """
    for way in range(count):
        state = ways[0, way, STATE]
        if state == NO_WAY:
            break
        says = np.int64(ENDS) if state < 0 else np.int64(truths[state])
        if says == DEAD:
            continue
        if skip == TO_NEXT_ROW or state == EMPTY:
            return start + 1, 1
        target = ways[0, way, FIRST_TARGET if skip == TO_FIRST else LAST_TARGET]
        if says == HAS_TARGET and (target < 0 or skip != TO_FIRST):
            return NOWHERE, 1
        return (target if target > start else NOWHERE), 1
    return start + 1, 0


# --- following them -------------------------------------------------------------------------------

FUTURE, PLACE, COUNT = 0, 1, 2
"""The columns of what is followed: the future (−1: any), the next start, the matches before it."""


@njit(**KERNEL)
def begin_following(futures, followed, row, number):  # type: ignore[no-untyped-def]
    """Follow all futures from a start on; returns how many there are to follow."""
    if not futures.alike:
        # One entry for all of them.
        followed[0, FUTURE], followed[0, PLACE], followed[0, COUNT] = -1, row, number
        return min(1, futures.truths.shape[0])
    for one in range(futures.truths.shape[0]):
        followed[one, FUTURE], followed[one, PLACE], followed[one, COUNT] = one, row, number
    return futures.truths.shape[0]


@njit(**KERNEL)
def go_on(futures, followed, count, ways, ways_count, is_closed, skip, start):  # type: ignore[no-untyped-def]
    """Take those that are at a start one step on; returns how many there are now, −1: too many."""
    begun = count
    for one in range(begun):
        if followed[one, PLACE] != start:
            continue
        future, number = followed[one, FUTURE], followed[one, COUNT]
        if future >= 0:
            place, more = next_start(futures.truths[future], ways, ways_count, skip, start)
            followed[one, PLACE], followed[one, COUNT] = place, number + more
            continue
        kept = False
        for each in range(futures.truths.shape[0]):
            if is_closed and not futures.closed[each]:
                continue
            place, more = next_start(futures.truths[each], ways, ways_count, skip, start)
            if not kept:
                followed[one, PLACE], followed[one, COUNT] = place, number + more
                kept = True
                continue
            known = False
            for other in range(count):
                if followed[other, PLACE] == place and followed[other, COUNT] == number + more:
                    known = True
                    break
            if not known:
                if count == followed.shape[0]:
                    return -1
                followed[count, FUTURE], followed[count, PLACE] = -1, place
                followed[count, COUNT] = number + more
                count += 1
    return count


@njit(**KERNEL)
def nearest(followed, count):  # type: ignore[no-untyped-def]
    """The next start of any future, whether it is that of all, and whether all have the same number
    of matches before it."""
    place, number = followed[0, PLACE], followed[0, COUNT]
    is_shared, is_numbered = True, True
    for one in range(1, count):
        is_shared = is_shared and followed[one, PLACE] == place
        is_numbered = is_numbered and followed[one, COUNT] == number
        place = min(place, followed[one, PLACE])
    return place, is_shared, is_numbered


@njit(**KERNEL)
def pass_over(followed, count, row, until, place, more):  # type: ignore[no-untyped-def]
    """Take those whose next start is from `row` up to `until` to `place`, with `more` matches."""
    for one in range(count):
        if row <= followed[one, PLACE] < until:
            followed[one, PLACE] = place
            followed[one, COUNT] += more

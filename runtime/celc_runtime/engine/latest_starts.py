"""The latest start of a part that must be absent, among its matches that fit its window.

`!(WITHIN[w](φ))` forbids every match of φ in the window that lies between two events. Of the
matches of φ that end at one event, the latest start leaves the shortest match: if any fits the
window, this one does. Of all matches that end at an event or before, the one with the latest start
lies behind an event if any does. So one number for each event decides the absence in constant time,
and it is found with a step for each pair of positions of φ (`WatchedPart`).
"""

from __future__ import annotations

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.plan.strategy import WatchedPart

NONE = -1


class LatestStarts:
    """Follows one part through the events of a run, partition by partition."""

    def __init__(self, part: WatchedPart) -> None:
        count = len(part.symbols)
        self._positions_of = np.zeros((max(map(max, part.symbols)) + 1, count), np.bool_)
        for position, symbols in enumerate(part.symbols):
            self._positions_of[list(symbols), position] = True
        self._before = np.zeros((count, count), np.bool_)
        for position, before in enumerate(part.before):
            self._before[position, list(before)] = True
        self._begins = np.isin(np.arange(count), part.begins)
        self._ends = np.isin(np.arange(count), part.ends)
        # Of each position, and behind them of the whole part: the latest start, and its key.
        self._starts = np.full((2, count + 1), NONE, np.int64)

    def of(
        self,
        entry: int,
        symbols: np.ndarray,
        keys: np.ndarray,
        floors: np.ndarray,
        anew: np.ndarray,
    ) -> np.ndarray:
        """int64[events]: the latest start (an entry) of a match so far, `NONE` where there is none.

        entry: that of the first event; anew: bool[events], where a partition begins.
        """
        found: np.ndarray = np.empty(len(symbols), np.int64)
        tables = (self._positions_of, self._before, self._begins, self._ends)
        _follow(entry, symbols, keys, floors, anew, *tables, self._starts, found)
        return found


@njit(nogil=True, cache=True)
def _follow(entry, symbols, keys, floors, anew, positions_of, before, begins, ends, starts, found):  # type: ignore[no-untyped-def]
    count = begins.shape[0]
    new = np.empty((2, count), np.int64)
    for row in range(symbols.shape[0]):
        if anew[row]:
            starts[:] = NONE
        symbol = symbols[row]
        if symbol < positions_of.shape[0]:
            new[:] = NONE
            for position in range(count):
                if not positions_of[symbol, position]:
                    continue
                if begins[position]:
                    new[0, position], new[1, position] = entry + row, keys[row]
                    continue  # no earlier start is later
                for earlier in range(count):
                    if before[position, earlier] and starts[0, earlier] > new[0, position]:
                        new[0, position], new[1, position] = starts[0, earlier], starts[1, earlier]
            for position in range(count):
                start = new[0, position]
                if start > starts[0, position]:
                    starts[0, position], starts[1, position] = start, new[1, position]
                fits = ends[position] and start != NONE and new[1, position] >= floors[row]
                if fits and start > starts[0, count]:
                    starts[0, count] = start
        found[row] = starts[0, count]

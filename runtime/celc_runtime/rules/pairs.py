"""Events and the rows that they concern, as pairs in the order of rows.

Two passes over what the index has found: the first counts the pairs of each row, the second writes
them where they belong, so that nothing is sorted (a counting sort). Events come in their order, and
so they do within each row. A row that an event concerns by several ways comes once: a pass
remembers the last event of each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from celc_runtime.jit.kernels import njit
from celc_runtime.rules.index import Found


class Pairs:
    """The events that concern each row: of row r so many as `offsets[r + 1] − offsets[r]`
    (int64[rows + 1])."""

    def __init__(self, found: Iterable[Found], rows: int) -> None:
        entries = _in_order(list(found))
        last = np.full(rows, -1, np.int64)
        self.offsets = np.zeros(rows + 1, np.int64)
        _count(*entries, last, self.offsets[1:])
        np.cumsum(self.offsets, out=self.offsets)
        self._events = np.empty(self.offsets[-1], np.int32)
        last[:] = -1
        _write(*entries, last, self.offsets[:-1].copy(), self._events)

    def of(self, first: int, behind: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of rows from `first` to before `behind`: int64 the rows, ascending, and for
        each row ascending the events (int32)."""
        counts = np.diff(self.offsets[first : behind + 1])
        events = self._events[self.offsets[first] : self.offsets[behind]]
        return np.repeat(np.arange(first, behind), counts), events

    def chunks(self, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows with about so many pairs at most; a row is never divided."""
        first, rows = 0, len(self.offsets) - 1
        while first < rows:
            behind = (
                int(np.searchsorted(self.offsets, self.offsets[first] + most, side="right")) - 1
            )
            behind = min(rows, max(first + 1, behind))
            yield first, behind
            first = behind


class AllPairs(Pairs):
    """The same where every event concerns every row."""

    def __init__(self, events: int, rows: int) -> None:
        self.offsets = np.arange(rows + 1) * events
        self._count = events

    def of(self, first: int, behind: int) -> tuple[np.ndarray, np.ndarray]:
        """As of other pairs."""
        rows = np.repeat(np.arange(first, behind), self._count)
        return rows, np.tile(np.arange(self._count, dtype=np.int32), behind - first)


class _Entries(NamedTuple):
    """What the index has found, event by event.

    events: int64, ascending; low, high: int64, an interval of `order` (int32) with rows. Where
    sizes is not 0, the tree of the interval has so many leaves, its root is number 1 behind
    `trees[roots]`, its first leaf belongs to `order[starts]`, and rows must reach at_least.
    """

    events: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray
    trees: np.ndarray
    roots: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    at_least: np.ndarray


def _in_order(found: list[Found]) -> _Entries:
    orders = np.cumsum([0, *(len(one.order) for one in found)])
    trees = np.cumsum([0, *(len(one.tree) for one in found)])
    lengths = [len(one.events) for one in found]
    none = np.zeros(0, np.int64)
    events = np.concatenate([none, *(one.events for one in found)])
    # Of runs that ascend, which is what these are, a merge sort takes linear time.
    sorting = np.argsort(events, kind="stable") if len(found) > 1 else None

    def joined(parts: list[np.ndarray]) -> np.ndarray:
        values: np.ndarray = np.concatenate([none, *parts])
        return values if sorting is None else values[sorting]

    def repeated(values: Iterable[int]) -> np.ndarray:
        parts = [np.full(length, value) for length, value in zip(lengths, values, strict=True)]
        return joined(parts)

    return _Entries(
        joined([one.events for one in found]),
        joined([one.low + start for one, start in zip(found, orders[:-1], strict=True)]),
        joined([one.high + start for one, start in zip(found, orders[:-1], strict=True)]),
        np.concatenate([np.zeros(0, np.int32), *(one.order for one in found)]),
        np.concatenate([none, *(one.tree for one in found)]),
        repeated(trees[:-1]),
        repeated(len(one.tree) // 2 for one in found),
        repeated(orders[:-1]),
        joined(
            [
                one.at_least if len(one.tree) else np.zeros(len(one.events), np.int64)
                for one in found
            ]
        ),
    )


@njit(nogil=True, cache=True)
def _next(order, trees, root, size, start, place, least):  # type: ignore[no-untyped-def]
    """The first place of `order` from `place` on whose key reaches `least`; a large number where
    there is none."""
    node = size + place - start
    while True:
        if trees[root + node] >= least:
            while node < size:
                node *= 2
                if trees[root + node] < least:
                    node += 1
            return start + node - size
        while node & 1:
            node >>= 1
        if node == 0:
            return len(order) + 1
        node += 1


@njit(nogil=True, cache=True)
def _count(  # type: ignore[no-untyped-def]
    events, low, high, order, trees, roots, sizes, starts, at_least, last, counts
):
    """Add to counts (int64[rows]) the events that concern each row."""
    for entry in range(len(events)):
        place, behind, event = low[entry], high[entry], events[entry]
        size, least = sizes[entry], at_least[entry]
        while place < behind:
            if size:
                place = _next(order, trees, roots[entry], size, starts[entry], place, least)
                if place >= behind:
                    break
            row = order[place]
            if last[row] != event:
                last[row] = event
                counts[row] += 1
            place += 1


@njit(nogil=True, cache=True)
def _write(  # type: ignore[no-untyped-def]
    events, low, high, order, trees, roots, sizes, starts, at_least, last, ends, written
):
    """Write the events of each row, from `ends` (int64[rows]) on, into written (int32[pairs])."""
    for entry in range(len(events)):
        place, behind, event = low[entry], high[entry], events[entry]
        size, least = sizes[entry], at_least[entry]
        while place < behind:
            if size:
                place = _next(order, trees, roots[entry], size, starts[entry], place, least)
                if place >= behind:
                    break
            row = order[place]
            if last[row] != event:
                last[row] = event
                written[ends[row]] = event
                ends[row] += 1
            place += 1

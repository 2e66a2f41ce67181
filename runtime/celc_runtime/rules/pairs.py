"""Events and the rows that they concern, as pairs in the order of rows.

A way of the index has its own order of rows, in which the rows of an event are close together.
Pairs are counted and written by this order (a counting sort, so nothing is compared). Then whole
rows are moved to where they belong. Events come in their order, so they are sorted in each row too.
If an event can concern a row by several ways, the events of each row are merged.

Rejected: writing pairs by the numbers of rows at once, which misses the cache at each pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from celc_runtime.engine.definition.instants import InstantRows
from celc_runtime.jit.kernels import njit


class Pairs:
    """The events that concern each row.

    Those of row r are `events` (int32, ascending) from `offsets[r]` to before `offsets[r + 1]`
    (int64[rows + 1]).
    """

    def __init__(self, offsets: np.ndarray, events: np.ndarray) -> None:
        self.offsets = offsets
        self._events = events

    def of(self, first: int, behind: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of rows from `first` to before `behind`: (int64, the rows; int32, the events).

        Rows ascend, and so do the events of each row.
        """
        counts = np.diff(self.offsets[first : behind + 1])
        events = self._events[self.offsets[first] : self.offsets[behind]]
        return np.repeat(np.arange(first, behind), counts), events

    def concerned(self, events: int) -> np.ndarray:
        """bool[events]: whether an event concerns any row."""
        found = np.zeros(events, np.bool_)
        found[self._events] = True
        return found

    def begins(self, first: int, behind: int) -> np.ndarray:
        """int64: where the pairs of each such row begin, counted from the first; rows with pairs
        only."""
        offsets = self.offsets[first : behind + 1]
        found: np.ndarray = offsets[:-1][offsets[1:] > offsets[:-1]] - offsets[0]
        return found

    def chunks(self, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows with about `most` pairs at most; a row is never divided."""
        first, rows = 0, len(self.offsets) - 1
        while first < rows:
            behind = (
                int(np.searchsorted(self.offsets, self.offsets[first] + most, side="right")) - 1
            )
            behind = min(rows, max(first + 1, behind))
            yield first, behind
            first = behind

    def with_instants(self, instants: InstantRows) -> Pairs:
        """Adds the first and the last event of each instant that has events of a row."""
        offsets = np.zeros_like(self.offsets)
        events = np.empty(3 * len(self._events), np.int32)
        _add_borders(self.offsets, self._events, *instants, offsets, events)
        return Pairs(offsets, events[: offsets[-1]].copy())

    def united(self, other: Pairs) -> Pairs:
        """The pairs of both, each once."""
        room = len(self._events) + len(other._events)
        offsets, events = np.zeros(len(self.offsets), np.int64), np.empty(room, np.int32)
        _merge(self.offsets, self._events, other.offsets, other._events, offsets, events)
        return Pairs(offsets, events[: offsets[-1]])


class AllPairs(Pairs):
    """The pairs if every event concerns every row."""

    def __init__(self, events: int, rows: int) -> None:
        self.offsets = np.arange(rows + 1) * events
        self._count = events

    def of(self, first: int, behind: int) -> tuple[np.ndarray, np.ndarray]:
        """As of other pairs."""
        rows = np.repeat(np.arange(first, behind), self._count)
        return rows, np.tile(np.arange(self._count, dtype=np.int32), behind - first)

    def concerned(self, events: int) -> np.ndarray:
        """Every event concerns every row."""
        return np.ones(events, np.bool_)

    def with_instants(self, instants: InstantRows) -> Pairs:
        """The same pairs: every event is there."""
        return self


def begins_of_parts(begins: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """int64: the pairs at which a row (`begins`) or a partition of one begins.

    parts: int64[pairs], the partitions of their events.
    """
    begin = np.empty(len(parts), np.bool_)
    begin[0] = True
    begin[1:] = parts[1:] != parts[:-1]
    begin[begins] = True
    return np.flatnonzero(begin)


def united(found: Sequence[Pairs], rows: int) -> Pairs:
    """The pairs of several ways; no pairs without ways."""
    if not found:
        return Pairs(np.zeros(rows + 1, np.int64), np.zeros(0, np.int32))
    while len(found) > 1:
        # Two by two, so that each pair is moved a logarithmic number of times.
        found = [
            found[n].united(found[n + 1]) if n + 1 < len(found) else found[n]
            for n in range(0, len(found), 2)
        ]
    return found[0]


def pairs_of_intervals(
    events: np.ndarray, low: np.ndarray, high: np.ndarray, order: np.ndarray, rows: int
) -> Pairs:
    """The pairs of events with the rows `order[low:high]` of each.

    events: int64, ascending. low, high: int32[events]. order: int32, numbers of rows, each once.
    """
    offsets = np.zeros(len(order) + 1, np.int64)
    _count_intervals(low, high, offsets)
    written = np.empty(offsets[-1], np.int32)
    _write_intervals(events, low, high, offsets[:-1].copy(), written)
    return _by_rows(offsets, written, order, rows)


def pairs_of_places(events: np.ndarray, places: np.ndarray, order: np.ndarray, rows: int) -> Pairs:
    """The pairs of events with rows `order[places]`; events: int32, ascending; places: int32."""
    offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(np.bincount(places, minlength=len(order)), out=offsets[1:])
    written = np.empty(len(events), np.int32)
    _write_places(events, places, offsets[:-1].copy(), written)
    return _by_rows(offsets, written, order, rows)


def _by_rows(offsets: np.ndarray, events: np.ndarray, order: np.ndarray, rows: int) -> Pairs:
    """Pairs sorted by an order as pairs sorted by rows."""
    of_rows = np.zeros(rows + 1, np.int64)
    of_rows[order + 1] = np.diff(offsets)
    np.cumsum(of_rows, out=of_rows)
    moved = np.empty(len(events), np.int32)
    _move(offsets, events, order, of_rows, moved)
    return Pairs(of_rows, moved)


@njit(nogil=True, cache=True)
def _count_intervals(low, high, offsets):  # type: ignore[no-untyped-def]
    """How many intervals contain each place, as offsets (int64[places + 1], zeros)."""
    places = len(offsets) - 1
    changes = np.zeros(places + 1, np.int64)
    for event in range(len(low)):
        changes[low[event]] += 1
        changes[high[event]] -= 1
    depth = 0
    for place in range(places):
        depth += changes[place]
        offsets[place + 1] = offsets[place] + depth


@njit(nogil=True, cache=True)
def _write_intervals(events, low, high, ends, written):  # type: ignore[no-untyped-def]
    """Write the events of each place into `written`, from `ends` (int64[places]) on."""
    for number in range(len(low)):
        for place in range(low[number], high[number]):
            written[ends[place]] = events[number]
            ends[place] += 1


@njit(nogil=True, cache=True)
def _write_places(events, places, ends, written):  # type: ignore[no-untyped-def]
    """As `_write_intervals`, for single places."""
    for number in range(len(places)):
        place = places[number]
        written[ends[place]] = events[number]
        ends[place] += 1


@njit(nogil=True, cache=True)
def _move(offsets, events, order, of_rows, moved):  # type: ignore[no-untyped-def]
    """Move the events of each place to those of its row."""
    for place in range(len(order)):
        to = of_rows[order[place]]
        for number in range(offsets[place], offsets[place + 1]):
            moved[to] = events[number]
            to += 1


@njit(nogil=True, cache=True)
def _add_borders(  # type: ignore[no-untyped-def]
    offsets, events, instants, starts, more_offsets, more_events
):
    """Write the events of each row with the borders of their instants, in order."""
    written = 0
    for row in range(len(offsets) - 1):
        before = np.int64(-1)
        for number in range(offsets[row], offsets[row + 1]):
            event = events[number]
            instant = instants[event]
            if instant != before and starts[instant] < event:
                more_events[written] = starts[instant]
                written += 1
            before = instant
            more_events[written] = event
            written += 1
            is_last = number + 1 == offsets[row + 1] or instants[events[number + 1]] != instant
            if is_last and event + 1 < starts[instant + 1]:
                more_events[written] = starts[instant + 1] - 1
                written += 1
        more_offsets[row + 1] = written


@njit(nogil=True, cache=True)
def _merge(  # type: ignore[no-untyped-def]
    offsets, events, other_offsets, other_events, united_offsets, united_events
):
    """Merge the events of each row of two sets of pairs, each event once."""
    written = 0
    for row in range(len(offsets) - 1):
        one, behind = offsets[row], offsets[row + 1]
        other, other_behind = other_offsets[row], other_offsets[row + 1]
        while one < behind or other < other_behind:
            if other == other_behind:
                event = events[one]
                one += 1
            elif one == behind or other_events[other] < events[one]:
                event = other_events[other]
                other += 1
            else:
                event = events[one]
                one += 1
                if other_events[other] == event:
                    other += 1
            united_events[written] = event
            written += 1
        united_offsets[row + 1] = written

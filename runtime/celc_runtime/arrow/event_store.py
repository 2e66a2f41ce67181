"""The past events that the output reads: in the present batch, and copies of earlier events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import is_whole, plain, room_of, taken, whole_column, whole_values
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.engine.arena.batch import Batch, last_relevant_rows, write_relevant_rows
from celc_runtime.engine.arena.nodes import BLOCK, PADDING
from celc_runtime.engine.definition.instants import InstantRows
from celc_runtime.jit.kernels import njit

POSITION = "\ud800position"
"""The name of the positions among the stored columns. No real column has it: it begins with half of
a character (a surrogate), which neither a query nor an Arrow table can contain."""

INSTANT_POSITION = "\ud800instant"
"""Likewise, the name of the first positions of events' instants."""


_FEW_ROWS = 4096  # a batch of up to this many rows may stay in memory until the next one comes


_FROM_ZERO = np.zeros(1, np.int64)


class Inside(NamedTuple):
    """A batch that has all events of a stretch: its columns; int64, the rows of its events that
    matter, and their positions; the entry of the first of them."""

    events: pa.RecordBatch
    rows: np.ndarray
    positions: np.ndarray
    first: int


class PastEvents:
    """All events from one entry on, for the matches of one output (`EventStore.stretch`).

    If the oldest event is in the present batch (no `chunks`), events are rows of the batch.
    Otherwise they are picked from their chunks; if most events are needed, all chunks are joined
    first. So the cost follows the number of events that are needed, not the size of the window.
    """

    def __init__(
        self, here: _Here, chunks: list[dict[str, pa.Array]], first: int, count: int
    ) -> None:
        self._here = here
        self._chunks = chunks
        self._first = first
        rows, self._positions = here.until(count)
        self._rows = rows[:count]
        # The index of the first event of each chunk, and of the batch.
        lengths = (len(chunk[POSITION]) for chunk in chunks)
        self._starts = np.cumsum([0, *lengths]) if chunks else _FROM_ZERO
        self._together: dict[str, pa.Array] = {}
        self._all_positions: np.ndarray | None = None

    @property
    def inside(self) -> Inside | None:
        """The batch that has all events; None: some are copies of events of earlier ones."""
        if self._chunks or isinstance(self._here.events, LateRows):
            return None
        return Inside(self._here.events, self._rows, self._positions, self._first)

    def positions(self, entries: np.ndarray) -> np.ndarray:
        """int64: the positions of entries (int64) in their partitions."""
        known = self._positions
        if self._chunks:
            if self._all_positions is None and self._are_few(entries):
                return np.asarray(self._picked(POSITION, entries - self._first))
            if self._all_positions is None:
                kept = [np.asarray(chunk[POSITION]) for chunk in self._chunks]
                self._all_positions = np.concatenate([*kept, known[: len(self._rows)]])
            known = self._all_positions
        return _gathered(known, entries, self._first)

    def places(self, entries: np.ndarray) -> np.ndarray:
        """int64: the indices of entries (int64), for `column`."""
        if self._chunks:
            return entries - self._first
        return _gathered(self._rows, entries, self._first)

    def column(self, name: str, places: np.ndarray) -> pa.Array:
        """The values of a stored column."""
        if not self._chunks:
            return self._here.column(name, places)
        if name not in self._together and self._are_few(places):
            return self._picked(name, places)
        if name not in self._together:
            kept = [chunk[name] for chunk in self._chunks]
            here = self._of_batch(name, np.arange(len(self._rows)))
            self._together[name] = pa.concat_arrays([*kept, here])
        return taken(self._together[name], places)

    def _are_few(self, events: np.ndarray) -> bool:
        """Whether too few events are needed for it to pay to join all chunks."""
        return 4 * len(events) < int(self._starts[-1]) + len(self._rows)

    def _picked(self, name: str, places: np.ndarray) -> pa.Array:
        parts = np.searchsorted(self._starts, places, side="right") - 1
        order = np.argsort(parts, kind="stable")
        cuts = np.searchsorted(parts[order], np.arange(len(self._starts) + 1))
        found = []
        for number, (start, end) in enumerate(pairwise(cuts)):
            inside = places[order[start:end]] - self._starts[number]
            if number == len(self._chunks):
                found.append(self._of_batch(name, inside))
            else:
                found.append(self._chunks[number][name].take(pa.array(inside)))
        back = np.empty(len(places), np.int64)
        back[order] = np.arange(len(places))
        return pa.concat_arrays(found).take(pa.array(back))

    def _of_batch(self, name: str, numbers: np.ndarray) -> pa.Array:
        """The values of the batch's events, by their numbers among those that matter."""
        if name == POSITION:
            return pa.array(self._positions[numbers])
        return self._here.column(name, self._rows[numbers])


class EventStore:
    """Finds attributes of events by *entry*: an event's number among the events that matter.

    Events of the present batch are looked up in its own columns. At the end of the batch, the
    events that a later match can still refer to are copied; the batch itself is never kept. Copies
    are a few Arrow chunks: a new chunk is merged with its neighbour while that is not much larger.
    So an event is copied a number of times that is logarithmic in the number of events kept.
    """

    _first = 0
    _base = 0
    _here: _Here | None = None
    _left: tuple[_Here, np.ndarray] | None = None

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._names = columns
        self._chunks: list[dict[str, pa.Array]] = []

    @property
    def rows(self) -> int:
        self._settle()
        return sum(len(chunk[POSITION]) for chunk in self._chunks)

    def enter(
        self,
        events: pa.RecordBatch,
        batch: Batch,
        positions_of: Callable[[np.ndarray], np.ndarray],
        base: int,
        instants: InstantRows | None = None,
        kept_rows: np.ndarray | None = None,
    ) -> None:
        """Begin a batch, whose first event that matters is entry `base`.

        positions_of: gives the positions of the batch's rows in their partitions. instants: None:
        each row is an instant. kept_rows: int64, the rows that matter, as far as the batch has been
        read; None: they must be searched for.
        """
        self._settle()
        self._base = base
        self._here = _Here(events, batch, positions_of, instants, kept_rows)

    def last_positions(self, rows: np.ndarray) -> np.ndarray:
        """int64: the last positions of the instants of rows (int64) of the present batch."""
        assert self._here is not None
        instants = self._here.instants
        return self._here.positions_of(rows if instants is None else instants.last(rows))

    def leave(self, oldest: int, until: int) -> None:
        """End the batch before entry `until`; keep the events from entry `oldest` on."""
        self._settle()
        while self._chunks and self._first + len(self._chunks[0][POSITION]) <= oldest:
            self._first += len(self._chunks.pop(0)[POSITION])
        self._shrink(oldest - self._first)
        skipped = max(0, oldest - self._base)
        if self._base + skipped < until:
            if not self._chunks:
                self._first = self._base + skipped
            assert self._here is not None
            self._left = self._here, self._here.last_rows(until - self._base - skipped)
            if self._here.rows > _FEW_ROWS:
                self._settle()
        self._here = None

    def _settle(self) -> None:
        """Copy the events that are kept of the batch before. A small batch waits for the next one:
        often none comes."""
        if self._left is None:
            return
        (here, rows), self._left = self._left, None
        # `take` copies; a slice would keep the whole batch alive.
        chunk = {n: here.column(n, rows) for n in self._names}
        chunk[POSITION] = pa.array(here.positions_of(rows))
        self._append(chunk)

    def _shrink(self, gone: int) -> None:
        """Drop the first `gone` events of the first chunk, if that is most of it."""
        if self._chunks and 2 * gone > len(self._chunks[0][POSITION]):
            left = pa.array(np.arange(gone, len(self._chunks[0][POSITION])))
            self._chunks[0] = {name: c.take(left) for name, c in self._chunks[0].items()}
            self._first += gone

    def _append(self, chunk: dict[str, pa.Array]) -> None:
        while self._chunks and len(self._chunks[-1][POSITION]) <= 2 * len(chunk[POSITION]):
            before = self._chunks.pop()
            chunk = {name: pa.concat_arrays([before[name], chunk[name]]) for name in chunk}
        self._chunks.append(chunk)

    def let_go(self) -> None:
        """Forget the only batch, of which no event is kept."""
        self._here = None

    def stretch(self, oldest: int, until: int) -> PastEvents:
        """The events from entry `oldest` to before entry `until`, which must have been read."""
        assert self._here is not None
        count = until - self._base
        if oldest >= self._base:
            return PastEvents(self._here, [], self._base, count)
        chunks, first = self._chunks, self._first
        while first + len(chunks[0][POSITION]) <= oldest:
            first, chunks = first + len(chunks[0][POSITION]), chunks[1:]
        return PastEvents(self._here, chunks, first, count)


_NOTHING = np.zeros(0, np.int64)


class _Here:
    """The present batch. If its rows that matter are not given, they are searched for when
    needed."""

    _known = _next_row = 0
    _positions = _NOTHING

    def __init__(
        self,
        events: pa.RecordBatch,
        batch: Batch,
        positions_of: Callable[[np.ndarray], np.ndarray],
        instants: InstantRows | None,
        kept_rows: np.ndarray | None,
    ) -> None:
        self.positions_of = positions_of
        self.instants = instants
        self.events = events
        self._batch = batch
        self._are_kept = kept_rows is not None
        self._rows = _NOTHING if kept_rows is None else kept_rows
        self._whole: dict[str, tuple[np.ndarray, pa.DataType]] = {}

    @property
    def rows(self) -> int:
        return len(self._batch.symbols)

    def until(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, positions), int64: at least the first `count` rows whose symbol is not 0."""
        if self._known < count:
            known, batch = self._known, self._batch
            if len(self._positions) < count + BLOCK:
                room = max(count + BLOCK, 2 * known)
                self._positions = _longer(self._positions, known, room)
                if not self._are_kept:
                    self._rows = _longer(self._rows, known, room + PADDING)
            if self._are_kept:
                self._known = count
            else:
                self._known, self._next_row = _extend(
                    batch.words, batch.symbols, self._rows, known, count, self._next_row
                )
            new = slice(known, self._known)
            self._positions[new] = self.positions_of(self._rows[new])
        return self._rows, self._positions

    def last_rows(self, count: int) -> np.ndarray:
        """int64: the last `count` rows whose symbol is not 0."""
        rows: np.ndarray = last_relevant_rows(self._batch.words, self._batch.symbols, count)
        return rows

    def column(self, name: str, rows: np.ndarray) -> pa.Array:
        """A copy of the values of a column in the given rows."""
        if name == INSTANT_POSITION:
            firsts = rows if self.instants is None else self.instants.first(rows)
            return pa.array(self.positions_of(firsts))
        if len(rows) > _FEW_ROWS:
            return plain(taken(self.events.column(name), rows))
        # Of few rows a look at the column takes longer than to pick them.
        known, events = self._whole.get(name), self.events
        is_late = isinstance(events, LateRows)
        rows = events.order[rows] if is_late else rows
        if known is None:
            column = events.unmoved(name) if is_late else events.column(name)
            if not is_whole(column):
                return plain(taken(column, rows))
            known = self._whole[name] = whole_values(column), column.type
        values, type = known
        return whole_column(values[rows], type)


def _longer(values: np.ndarray, known: int, room: int) -> np.ndarray:
    longer = room_of(room)
    longer[:known] = values[:known]
    return longer


def _gathered(values: np.ndarray, entries: np.ndarray, first: int) -> np.ndarray:
    found: np.ndarray
    if len(entries) <= _FEW_ROWS:  # to call machine code takes longer
        found = values[entries - first if first else entries]
    else:
        found = gathered(values, entries, first)
    return found


def gathered(values: np.ndarray, entries: np.ndarray, first: int) -> np.ndarray:
    """int64: for each entry (int64), the value at its distance from `first`."""
    found = room_of(len(entries))
    _gather(values, entries, first, found)
    return found


@njit(nogil=True, cache=True)
def _gather(values, entries, first, found):  # type: ignore[no-untyped-def]
    """Write for each entry the value at its distance from `first`."""
    for place in range(entries.shape[0]):
        found[place] = values[np.uint64(entries[place] - first)]


@njit(nogil=True, cache=True)
def _extend(words, symbols, rows, known, count, row):  # type: ignore[no-untyped-def]
    """Write the rows that matter after the `known` ones, until there are at least `count`.

    The search begins at `row`. Returns how many there are, and the row after the last one searched.
    """
    while known < count:
        end = min(symbols.shape[0], (row | (BLOCK - 1)) + 1)
        known += write_relevant_rows(words, symbols, row, end, rows[known:])
        row = end
    return known, row

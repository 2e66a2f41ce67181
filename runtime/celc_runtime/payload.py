"""What output needs of past events: the batch at hand, and copies of earlier ones in the window."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from celc_runtime.arena import last_relevant_rows, relevant_rows
from celc_runtime.batch import Batch
from celc_runtime.columns import plain

POSITION = "\0position"
"""The name of the positions among the stored columns; no attribute can be called that."""


class Payload:
    """Looks up attributes of events by *entry*: the number of an event among those that matter.

    The events of the batch at hand are looked up in its own columns. When the batch is left, the
    ones that a later match can still refer to are copied; the batch itself is never retained.
    Copies are kept as a few Arrow chunks: a new one is merged with its neighbour while that is not
    much larger, so every event is copied a number of times that is logarithmic in what is kept.
    """

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._names = columns
        self._chunks: list[dict[str, pa.Array]] = []
        self._first = 0
        self._base = 0
        self._here: _Here | None = None
        self._looked_up: dict[str, pa.ChunkedArray] = {}

    @property
    def rows(self) -> int:
        """How many events are kept besides the batch at hand."""
        return sum(len(chunk[POSITION]) for chunk in self._chunks)

    def enter(
        self,
        events: pa.RecordBatch,
        batch: Batch,
        positions_of: Callable[[np.ndarray], np.ndarray],
        base: int,
    ) -> None:
        """Begin a batch, whose first event that matters is entry `base`.

        `positions_of` gives the positions of the batch's rows in their partitions.
        """
        self._base = base
        self._here = _Here(events, batch, positions_of)
        self._looked_up = {}

    def leave(self, oldest: int, until: int) -> None:
        """End the batch before entry `until`: keep what entries from `oldest` on need."""
        while self._chunks and self._first + len(self._chunks[0][POSITION]) <= oldest:
            self._first += len(self._chunks.pop(0)[POSITION])
        skipped = max(0, oldest - self._base)
        if self._base + skipped < until:
            if not self._chunks:
                self._first = self._base + skipped
            assert self._here is not None
            rows = self._here.last_rows(until - self._base - skipped)
            # `take` copies; a slice would keep the whole batch alive.
            chunk = {
                n: plain(self._here.events.column(n).take(pa.array(rows))) for n in self._names
            }
            chunk[POSITION] = pa.array(self._here.positions(rows))
            self._append(chunk)
        self._here, self._looked_up = None, {}

    def _append(self, chunk: dict[str, pa.Array]) -> None:
        while self._chunks and len(self._chunks[-1][POSITION]) <= 2 * len(chunk[POSITION]):
            before = self._chunks.pop()
            chunk = {name: pa.concat_arrays([before[name], chunk[name]]) for name in chunk}
        self._chunks.append(chunk)

    def column(self, name: str, entries: np.ndarray) -> pa.Array:
        """The values of a stored column for each of the entries (int64, any order, repeats)."""
        assert self._here is not None
        if not len(entries):
            if name == POSITION:
                return pa.array([], pa.int64())
            return plain(self._here.events.column(name).slice(0, 0))
        rows = self._here.rows(int(entries.max()) - self._base + 1)
        old = entries < self._base
        if not old.any():
            found = rows[entries - self._base]
            if name == POSITION:
                return pa.array(self._here.positions(found))
            return plain(self._here.events.column(name).take(pa.array(found)))
        if name not in self._looked_up:
            values = [chunk[name] for chunk in self._chunks]
            if name != POSITION:
                values.append(plain(self._here.events.column(name)))
            self._looked_up[name] = pa.chunked_array(values)
        here = np.zeros(len(entries), np.int64)
        here[~old] = rows[entries[~old] - self._base]
        kept = np.where(old, entries - self._first, 0)
        if name == POSITION:
            positions = np.asarray(self._looked_up[name].take(pa.array(kept)))
            return pa.array(np.where(old, positions, self._here.positions(here)))
        found = self._looked_up[name].take(pa.array(np.where(old, kept, self.rows + here)))
        return found.chunk(0) if found.num_chunks == 1 else pa.concat_arrays(found.chunks)


class _Here:
    """The batch at hand; which of its rows matter is found out when and as far as somebody asks."""

    def __init__(
        self,
        events: pa.RecordBatch,
        batch: Batch,
        positions_of: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self.events = events
        self._batch = batch
        self._positions_of = positions_of
        self._rows = np.zeros(0, np.int64)

    def rows(self, until: int) -> np.ndarray:
        """int64: at least the first `until` rows with a symbol other than 0."""
        known = len(self._rows)
        if known < until:
            start = int(self._rows[-1]) + 1 if known else 0
            more = relevant_rows(self._batch.words, self._batch.symbols, start, until - known)
            self._rows = np.concatenate([self._rows, more]) if known else more
        return self._rows

    def last_rows(self, count: int) -> np.ndarray:
        """int64: the last rows with a symbol other than 0, so many of them."""
        rows: np.ndarray = last_relevant_rows(self._batch.words, self._batch.symbols, count)
        return rows

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """int64: the positions of rows in their partitions."""
        return self._positions_of(rows)

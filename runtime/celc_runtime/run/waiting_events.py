"""The relevant events of a partition whose time is uncertain, as long as matches can need them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.engine.possible_orders import PossibleEvents

_NO_EVENTS = np.zeros(0, np.int64)


class WaitingEvents:
    """Events of one partition, by their least times; each array has one element for each event.

    symbols, low, last, points: as in `PossibleEvents`. positions: in the partition. entries: in the
    history that conditions read. `table`: the columns that the output shows.
    """

    def __init__(self) -> None:
        self.symbols = self.low = self.last = self.points = _NO_EVENTS
        self.positions = self.entries = _NO_EVENTS
        self._tables: list[pa.RecordBatch] = []
        self.listed = 0
        """How many of them have been asked for the matches that end at them."""

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def nbytes(self) -> int:
        """The size of what waits."""
        return 48 * len(self) + sum(table.nbytes for table in self._tables)

    @property
    def events(self) -> PossibleEvents:
        """The events as kernels read them."""
        return PossibleEvents(self.symbols, self.low, self.last, self.points)

    @property
    def table(self) -> pa.RecordBatch:
        """The columns that the output shows, in one piece."""
        if len(self._tables) > 1:
            (joined,) = pa.Table.from_batches(self._tables).combine_chunks().to_batches()
            self._tables = [joined]
        return self._tables[0]

    def add(
        self,
        events: PossibleEvents,
        positions: np.ndarray,
        entries: np.ndarray,
        table: pa.RecordBatch,
    ) -> None:
        """Take in events behind those that are there."""
        self.symbols = np.concatenate([self.symbols, events.symbols])
        self.low = np.concatenate([self.low, events.low])
        self.last = np.concatenate([self.last, events.last])
        self.points = np.concatenate([self.points, events.points])
        self.positions = np.concatenate([self.positions, positions])
        self.entries = np.concatenate([self.entries, entries])
        # Texts of different batches can be coded in different ways.
        columns = [plain(column) for column in table.columns]
        self._tables.append(pa.RecordBatch.from_arrays(columns, table.schema.names))

    def forget_before(self, time: int) -> None:
        """Forget the listed events that are over before a time."""
        kept = self.last >= time
        kept[self.listed :] = True
        if kept.all():
            return
        for name in ("symbols", "low", "last", "points", "positions", "entries"):
            setattr(self, name, getattr(self, name)[kept])
        self._tables = [self.table.filter(pa.array(kept))]
        self.listed -= int(len(kept) - kept.sum())

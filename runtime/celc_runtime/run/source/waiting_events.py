"""The relevant events of uncertain time, as long as matches can need them."""

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.events.possible_times import shares_of
from celc_runtime.engine.worlds.possible_reach import NO_SHARES, PossibleEvents

_NO_EVENTS = np.zeros(0, np.int64)
_COLUMNS = ("symbols", "low", "last", "points", "parts", "positions", "entries")


class WaitingEvents:
    """Events by partition and earliest time; each array has one element for each.

    symbols, low, last, points: as in `PossibleEvents`. parts: the numbers of their partitions.
    positions: in the partition. entries: in the history that conditions read. weights: the column
    of the table with the weights of their points; None: all points are equally likely.
    """

    def __init__(self, weights: str | None) -> None:
        self._weights = weights
        self.symbols = self.low = self.last = self.points = _NO_EVENTS
        self.parts = self.positions = self.entries = _NO_EVENTS
        self._tables: list[pa.RecordBatch] = []
        self.listed = 0
        """The number of events whose matches have been asked for."""

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def nbytes(self) -> int:
        return 56 * len(self) + sum(int(table.nbytes) for table in self._tables)

    @property
    def events(self) -> PossibleEvents:
        begins = np.flatnonzero(np.diff(self.parts, prepend=-1))
        sizes = np.diff(begins, append=len(self))
        first, behind = np.repeat(begins, sizes), np.repeat(begins + sizes, sizes)
        shares = NO_SHARES
        if self._weights is not None and len(self):
            shares = shares_of(self.table.column(self._weights), self.points)
        at = np.cumsum(self.points) - self.points
        return PossibleEvents(
            self.symbols, self.low, self.last, self.points, first, behind, at, shares
        )

    @property
    def table(self) -> pa.RecordBatch:
        if len(self._tables) > 1:
            (joined,) = pa.Table.from_batches(self._tables).combine_chunks().to_batches()
            self._tables = [joined]
        return self._tables[0]

    def add(self, table: pa.RecordBatch, **columns: np.ndarray) -> None:
        """Append events.

        table: the columns that the output shows. columns: an array (int64) for each attribute of
        this class that has one element for each event.
        """
        for name in _COLUMNS:
            before, new = getattr(self, name), columns[name]
            setattr(self, name, np.concatenate([before, new]) if len(before) else new)
        # Texts of different batches can be coded differently.
        found = [plain(column) for column in table.columns]
        self._tables.append(pa.RecordBatch.from_arrays(found, table.schema.names))

    def keep(self, kept: np.ndarray) -> None:
        """Drop the listed events that are not kept (bool[events])."""
        kept[self.listed :] = True
        if kept.all():
            return
        for name in _COLUMNS:
            setattr(self, name, getattr(self, name)[kept])
        self._tables = [self.table.filter(pa.array(kept))]
        self.listed -= int(len(kept) - kept.sum())

"""The positions of a batch's rows in their partitions."""

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import positions_in_parts


class Positions:
    """The positions of rows in partitions that come one after another."""

    def __init__(self, prepared: Prepared, shift: int) -> None:
        self._parts = prepared.parts
        self._shift = shift

    def of(self, rows: np.ndarray) -> np.ndarray:
        """int64: the positions of rows (int64) of the batch."""
        if not len(self._parts):
            return rows - self._shift
        positions: np.ndarray = positions_in_parts(rows, self._parts, self._shift)
        return positions


class GivenPositions(Positions):
    def __init__(self, prepared: Prepared, positions: np.ndarray) -> None:
        super().__init__(prepared, 0)
        self._given = positions

    def of(self, rows: np.ndarray) -> np.ndarray:
        positions: np.ndarray = self._given[rows]
        return positions


class InterleavedPositions(Positions):
    """Positions of interleaved partitions: each partition slot counts its own rows."""

    def __init__(self, prepared: Prepared, clock: np.ndarray) -> None:
        slots = prepared.batch.slots
        order = np.argsort(slots, kind="stable")
        sorted_slots = slots[order]
        first = np.searchsorted(sorted_slots, sorted_slots, side="left")
        self._of_rows = np.empty(len(slots), np.int64)
        self._of_rows[order] = np.arange(len(slots)) - first + clock[sorted_slots]

    def of(self, rows: np.ndarray) -> np.ndarray:
        positions: np.ndarray = self._of_rows[rows]
        return positions

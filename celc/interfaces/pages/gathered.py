"""Matches as they arrive. All are counted over time; those that a report shows are kept."""

import numpy as np
import pyarrow as pa

from celc.interfaces.pages.bars import coordinate_of_ends
from celc.interfaces.pages.sample import lowest, ranks

BINS = 240  # parts of the time for which matches are counted


class Counts:
    """How many matches end in each part of an axis from `low` to `high`."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, max(high, low)
        self.counts = np.zeros(BINS, np.int64)

    def add(self, ends: np.ndarray) -> None:
        """Count ends of matches. NaN is not counted."""
        ends = ends[np.isfinite(ends)]
        width = (self.high - self.low) or 1.0
        places = ((ends - self.low) * (BINS / width)).astype(np.int64)
        self.counts += np.bincount(np.clip(places, 0, BINS - 1), minlength=BINS)


class Gathered:
    """The matches of a run, batch by batch.

    At most `most` of them are kept. A hash of their numbers chooses them.
    """

    def __init__(self, schema: pa.Schema, most: int, by_order: Counts, by_position: Counts) -> None:
        self._schema = schema
        self._most = most
        self._batches: list[pa.RecordBatch] = []
        self._ranks: list[np.ndarray] = []
        self._kept = 0
        self.count = 0
        self.by_order = by_order
        self.by_position = by_position

    def add(self, batch: pa.RecordBatch) -> None:
        self.by_order.add(coordinate_of_ends(batch, "end_time", "span_end"))
        self.by_position.add(coordinate_of_ends(batch, "end_pos"))
        self._batches.append(batch)
        self._ranks.append(ranks(self.count, len(batch)))
        self.count += len(batch)
        self._kept += len(batch)
        if self._kept > 2 * self._most + 10_000:
            self._cut()

    def table(self) -> pa.Table:
        self._cut()
        return pa.Table.from_batches(self._batches, self._schema)

    def _cut(self) -> None:
        if self._kept <= self._most:
            return
        table = pa.Table.from_batches(self._batches, self._schema)
        of_rows = np.concatenate(self._ranks)
        places = lowest(of_rows, self._most)
        # `take` fails on long lists in several chunks; one batch holds all that is kept.
        kept = table.take(pa.array(places))
        self._batches = kept.to_batches()
        self._ranks = [of_rows[places]]
        self._kept = len(places)

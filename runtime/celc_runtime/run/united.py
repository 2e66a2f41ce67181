"""The listing of a run whose rows are unions of all matches with one end."""

from __future__ import annotations

from celc_runtime.engine.arena import Memory
from celc_runtime.engine.listing import Kinds, Output
from celc_runtime.engine.unions import union_scratch, unite_fired
from celc_runtime.engine.wide_columns import WideColumn
from celc_runtime.run.listings import ListingOfRun


class UnitedListing(ListingOfRun):
    """Hands out one row for each event that fired, with the events of all its matches."""

    def __init__(self) -> None:
        self._scratch = union_scratch(0, 0)

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self._scratch))

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        nodes, rows = len(memory.nodes), len(output.rows)
        if len(self._scratch.seen) != nodes or len(self._scratch.counts) != rows:
            counts = self._scratch.counts
            self._scratch = union_scratch(nodes, rows)
            self._scratch.counts[: len(counts)] = counts
        return int(unite_fired(memory, output, kinds, self._scratch))

    def counts(self, rows: int) -> WideColumn:
        """The numbers of matches of the first rows in the buffers."""
        counts = self._scratch.counts[:rows]
        return WideColumn(counts[:, 0].copy(), counts[:, 1].copy())

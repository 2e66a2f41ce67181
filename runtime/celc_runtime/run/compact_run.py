"""The run of compact answers: for each event that ends matches one row, with a graph of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.columns import Prepared
from celc_runtime.arrow.compact import compact_batch, schema_of
from celc_runtime.engine.arena.nodes import ENTRY
from celc_runtime.engine.walk.match_graph import Graphs
from celc_runtime.engine.walk.match_tree import (
    add_matches,
    close_tree,
    new_trees,
    with_room,
    without_whole,
)
from celc_runtime.plan.strategy import All, InRuns
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.run.run import Run
from celc_runtime.run.walk.compact import (
    CompactListing,
    DeferredListing,
    are_graphs,
)
from celc_runtime.run.walk.listings import ListingOfRun


class CompactRun(Run):
    """Feeds batches to a query, and hands out its matches as graphs.

    Matches that are listed are added to a tree until another event ends matches, or the batch is
    over: those of one event may fill the buffers more than once. Raises EventError for a query
    without compact answers.
    """

    def __init__(self, program: Program, **options: Any) -> None:
        check(program, Route.COMPACT)
        super().__init__(program, **options)
        self._rows_schema = schema_of(program.plan, listed=not are_graphs(program))
        self._trees = new_trees()

    def _new_listing(self, program: Program) -> ListingOfRun:
        if are_graphs(program):
            return CompactListing()
        if isinstance(program.listing, All | InRuns):
            return DeferredListing()
        return super()._new_listing(program)

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffers, and of the graphs in them."""
        trees = self._trees
        return super().buffer_bytes + trees.graphs.nodes.nbytes + trees.path.nbytes

    def _listed(self, prepared: Prepared, positions: Any) -> Iterator[pa.RecordBatch]:
        yield from super()._listed(prepared, positions)
        if not isinstance(self._listing, CompactListing):
            close_tree(self._trees)
            yield from self._taken_trees(prepared)

    def _take(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        listing = self._listing
        if isinstance(listing, CompactListing):
            self._output.used[:] = 0
            yield self._rows(listing.graphs, prepared)
            listing.taken()
            return
        matches, events = (int(used) for used in self._output.used)
        self._trees = with_room(self._trees, matches, events)
        add_matches(self._output, self._trees, self._plan.kind_bits)
        self._output.used[:] = 0
        yield from self._taken_trees(prepared)

    def _taken_trees(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        if self._trees.graphs.used[0]:
            yield self._rows(self._trees.graphs, prepared)
            without_whole(self._trees)

    def _rows(self, graphs: Graphs, prepared: Prepared) -> pa.RecordBatch:
        read, store = int(self._memory.counters[ENTRY]), self._events
        return compact_batch(self._plan, self._rows_schema, graphs, prepared.events, store, read)

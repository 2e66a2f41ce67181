"""Compact answers: one row for each event that ends matches, with a graph of them."""

from collections.abc import Iterator

import pyarrow as pa

from celc_runtime.arrow.matches.compact import compact_batch, schema_of
from celc_runtime.engine.graph.match_graph import Graphs
from celc_runtime.engine.graph.match_tree import (
    add_matches,
    close_tree,
    new_trees,
    with_room,
    without_whole,
)
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import AnswerOfRun
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.walk.compact import CompactWalk, are_graphs
from celc_runtime.run.walk.listed import Listed


class CompactRows(AnswerOfRun):
    """Returns the matches as graphs.

    Listed matches are added to a tree until another event ends matches, or the batch ends. The
    matches of one event may fill the buffers more than once.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program.plan.stored_attributes)
        self._plan = program.plan
        self._schema = schema_of(program.plan, listed=not are_graphs(program))
        self._trees = new_trees()

    @property
    def nbytes(self) -> int:
        return int(self._trees.graphs.nodes.nbytes + self._trees.path.nbytes)

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        walk = listed.walk
        if isinstance(walk, CompactWalk):
            yield self._batch(walk.graphs, listed.prepared.events, listed.entries_read)
            walk.taken()
            return
        matches, events = (int(used) for used in listed.output.used)
        self._trees = with_room(self._trees, matches, events)
        add_matches(listed.output, self._trees, self._plan.matching.kind_bits)
        yield from self._taken(listed.prepared.events, listed.entries_read)

    def close(self, reading: Reading, entries_read: int) -> Iterator[pa.RecordBatch]:
        close_tree(self._trees)
        yield from self._taken(reading.prepared.events, entries_read)

    def _taken(self, events: pa.RecordBatch, entries_read: int) -> Iterator[pa.RecordBatch]:
        """Remove and yield the closed trees."""
        if self._trees.graphs.used[0]:
            yield self._batch(self._trees.graphs, events, entries_read)
            without_whole(self._trees)

    def _batch(self, graphs: Graphs, events: pa.RecordBatch, entries_read: int) -> pa.RecordBatch:
        return compact_batch(self._plan, self._schema, graphs, events, self.store, entries_read)

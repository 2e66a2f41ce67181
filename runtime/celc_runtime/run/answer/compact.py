"""Compact answers: one row for each event that ends matches, with a graph of them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.event_store import INSTANT_POSITION
from celc_runtime.arrow.matches.compact import Starts, compact_batch, number_of_start, schema_of
from celc_runtime.engine.graph.match_graph import Graphs
from celc_runtime.engine.graph.match_tree import (
    add_matches,
    close_tree,
    new_trees,
    with_room,
    without_whole,
)
from celc_runtime.engine.walk.listing import Output
from celc_runtime.plan.compact_form import event_attributes, has_starts
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

    def __init__(self, program: Program, *, in_instants: bool) -> None:
        plan = program.plan
        stored = dict.fromkeys((*plan.stored_attributes, *event_attributes(plan)))
        super().__init__((*stored, INSTANT_POSITION) if in_instants else (*stored,))
        self._plan = plan
        self._schema = schema_of(plan, listed=not are_graphs(program))
        self._trees = new_trees()
        self._in_instants = in_instants
        self._has_starts = has_starts(plan)
        self._starts: list[Starts] = []  # of the matches of this batch
        self._kinds = len(plan.matching.kinds)

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
        output, bits = listed.output, self._plan.matching.kind_bits
        if self._has_starts:
            # The start of a match becomes its first event, of a kind of its own.
            output, bits, events = self._with_starts(listed), bits + 1, events + matches
        self._trees = with_room(self._trees, matches, events)
        add_matches(output, self._trees, bits)
        yield from self._taken(listed.prepared.events, listed.entries_read)

    def close(self, reading: Reading, entries_read: int) -> Iterator[pa.RecordBatch]:
        close_tree(self._trees)
        yield from self._taken(reading.prepared.events, entries_read)
        self._starts.clear()

    def _with_starts(self, listed: Listed) -> Output:
        """The matches in the buffers, with their starts, at the last rows of their instants."""
        plan, output, found = self._plan, listed.output, listed.entries
        matches, used = (int(number) for number in output.used)
        stretch = self.store.stretch(int(found.starts.min()), listed.entries_read)
        if self._in_instants:
            column = stretch.column(INSTANT_POSITION, stretch.places(found.starts))
            positions = np.asarray(column)
        else:
            positions = stretch.positions(found.starts)
        begins = found.starts if plan.source.begin is None else listed.begins
        name = plan.source.begin or plan.source.order_by[0]
        times = plain(stretch.column(name, stretch.places(begins)))
        before = sum(len(one.positions) for one in self._starts)
        self._starts.append(Starts(positions, times))
        bits, ends = plan.matching.kind_bits, output.ends[:matches]
        tags = output.tags[:used]
        tags = tags >> bits << (bits + 1) | tags & ((1 << bits) - 1)
        numbers = number_of_start(before + self._same(positions, times))
        tags = np.insert(tags, np.append(0, ends[:-1]), numbers << (bits + 1) | self._kinds)
        rows, instants = output.rows[:matches], listed.prepared.instant_rows
        return output._replace(
            rows=rows if instants is None else instants.last(rows),
            ends=ends + np.arange(1, matches + 1),
            tags=tags,
            used=np.array([matches, len(tags)]),
        )

    def _same(self, positions: np.ndarray, times: pa.Array) -> np.ndarray:
        """int64: for each start the first one that is equal to it."""
        codes = np.asarray(times.dictionary_encode().indices)
        shown = positions if self._plan.answer.positions else np.zeros_like(positions)
        _, first, number = np.unique(
            np.stack([shown, codes]), axis=1, return_index=True, return_inverse=True
        )
        found: np.ndarray = first[number.ravel()]
        return found

    def _taken(self, events: pa.RecordBatch, entries_read: int) -> Iterator[pa.RecordBatch]:
        """Remove and yield the closed trees."""
        if self._trees.graphs.used[0]:
            yield self._batch(self._trees.graphs, events, entries_read)
            without_whole(self._trees)

    def _batch(self, graphs: Graphs, events: pa.RecordBatch, entries_read: int) -> pa.RecordBatch:
        starts = None
        if self._has_starts:
            positions = np.concatenate([one.positions for one in self._starts])
            starts = Starts(positions, pa.concat_arrays([one.times for one in self._starts]))
        return compact_batch(
            self._plan, self._schema, graphs, events, self.store, entries_read, starts
        )

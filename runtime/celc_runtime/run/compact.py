"""The listing of compact answers: the matches that end at an event as a graph, none of them listed.

Only where each path below a cell is a match, so that the graph says all. Other queries are refused
in words that say what cannot be said by a graph.
"""

from __future__ import annotations

import numpy as np

from celc_runtime.engine.arena import DONE, OUTPUT_FULL, Memory
from celc_runtime.engine.listing import Kinds, Output
from celc_runtime.engine.match_graph import Graphs, graphs_of_fired, new_graphs
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.strategy import All, InRuns
from celc_runtime.program import Program
from celc_runtime.run.listings import ListingOfRun

_ROOM = 1 << 16
_FIRES = 1 << 12


def check_is_compact(program: Program) -> None:
    """Raises EventError where the answers of a query cannot be written as graphs."""
    plan, why = program.plan, ""
    if plan.limit is not None:
        why = "LIMIT or ANY leaves out matches, and a graph holds all of them"
    elif plan.per_start is not None:
        why = f"SELECT {plan.per_start} compares matches that end at different events"
    elif plan.deadlines:
        why = "whether a match with an absence at its end counts is known only after that end"
    elif plan.ties is not None:
        why = "events may be simultaneous, and then several events share one end"
    elif plan.expressions:
        why = "SELECT has expressions, which are computed match by match"
    elif not isinstance(program.listing, All | InRuns):
        why = "conditions or selectors are checked while its matches are listed"
    if why:
        raise EventError(
            f"query {plan.name!r} has no compact answer: {why}; use match_table or match_arrow"
        )


class CompactListing(ListingOfRun):
    """Writes the graph of each event that fired. In the buffers such an event counts as one
    match."""

    are_paths = True

    def __init__(self) -> None:
        self._graphs: Graphs | None = None

    @property
    def nbytes(self) -> int:
        return 0 if self._graphs is None else sum(array.nbytes for array in self._graphs)

    @property
    def graphs(self) -> Graphs:
        """The graphs in the buffers."""
        assert self._graphs is not None
        return self._graphs

    def buffers(self, limit: int | None) -> Output:
        return super().buffers(None)

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        graphs = self._with_size(len(memory.nodes))
        while True:
            status = int(graphs_of_fired(memory, graphs, kinds))
            graphs = self.graphs
            found = int(graphs.used[0])
            if status == DONE or found:
                break
            # A single graph is larger than the buffers.
            self._graphs = graphs = graphs._replace(
                nodes=np.empty((2 * len(graphs.nodes), 4), np.int64)
            )
        output.rows[:found] = graphs.rows[:found]
        output.used[0] = found
        # The graphs of a batch may go on behind those of the last reading; more would not fit.
        return status if status == DONE else OUTPUT_FULL

    def events_in(self, output: Output, first: int, count: int) -> int:
        return count

    def taken(self) -> None:
        """Empty the buffers."""
        self.graphs.used[:2] = 0

    def _with_size(self, size: int) -> Graphs:
        graphs = self._graphs
        if graphs is None:
            graphs = new_graphs(size, room=_ROOM, fires=_FIRES)
        elif len(graphs.walked) != size:
            fresh = new_graphs(size, room=0, fires=0)
            graphs = graphs._replace(walked=fresh.walked, place=fresh.place, stack=fresh.stack)
        self._graphs = graphs
        return graphs

"""The walks of compact answers: the matches that end at an event, as a graph.

If each path below a cell of the arena is a match, the graph is read from there, and no match is
listed. With conditions between events it is the product of the arena and what they ask
(`engine.graph.checked_graph`). If a walk chooses some of the matches, or only
whole matches decide a condition, or the definitions do, they are listed, and become a tree. So they
do where events are simultaneous or last: matches with one end can have several last events there,
and a start of their own.
"""

import numpy as np

from celc_runtime.engine.arena.nodes import DEFERS, DONE, OUTPUT_FULL, Memory
from celc_runtime.engine.graph.checked_graph import products_of_fired
from celc_runtime.engine.graph.match_graph import Graphs, for_arena, graphs_of_fired, new_graphs
from celc_runtime.engine.walk.listing import Kinds, Output, list_fired, new_output
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import All, Checked, InRuns
from celc_runtime.program import Program
from celc_runtime.routes.features import lists_some
from celc_runtime.run.walk.checked import WithGraphs
from celc_runtime.run.walk.walks import WalkOfRun

_ROOM = 1 << 16
_FIRES = 1 << 12


def are_graphs(program: Program) -> bool:
    """Whether the marks in the graphs of the answer are those of the arena."""
    is_whole = isinstance(program.listing, All | InRuns) and program.plan.choice.limit is None
    return is_whole and program.plan.source.ties is None


def compact_walk(program: Program) -> WalkOfRun | None:
    """The walk of compact answers; None: that of the program, which lists matches."""
    listing = program.listing
    if are_graphs(program):
        return CompactWalk()
    if isinstance(listing, All | InRuns):
        return DeferredWalk()
    if program.plan.source.ties is not None:
        return None
    if isinstance(listing, Checked) and not (lists_some(program) or _must_list(listing)):
        return CompactCheckedWalk(listing, program.plan)
    return None


def _must_list(checks: Checked) -> bool:
    """Whether a node of a graph cannot say how matches go on: only whole matches decide, or events
    outside; or one of several that look alike counts."""
    return bool(checks.apart or checks.outside or checks.distinct)


class DeferredWalk(WalkOfRun):
    """Lists all matches, each by a walk from its last event back, but only on request."""

    are_paths = True

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        memory.counters[DEFERS] = 0
        status = int(list_fired(memory, output, kinds))
        memory.counters[DEFERS] = 1
        return status


class CompactWalk(WalkOfRun):
    """Writes the graph of each event that fired. In the buffers such an event counts as one
    match."""

    are_paths = True

    buffers_grow = False

    def __init__(self) -> None:
        self._graphs: Graphs | None = None

    @property
    def nbytes(self) -> int:
        own = 0 if self._graphs is None else sum(array.nbytes for array in self._graphs)
        return own + super().nbytes

    @property
    def graphs(self) -> Graphs:
        assert self._graphs is not None
        return self._graphs

    def buffers(self, limit: int | None) -> Output:
        return new_output(matches=_FIRES, room=1, limit=None)

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        size = len(memory.nodes)
        graphs = self._graphs or new_graphs(size, room=_ROOM, fires=_FIRES)
        self._graphs = graphs = for_arena(graphs, size)
        while True:
            status = self._written(memory, kinds)
            graphs = self.graphs
            found = int(graphs.used[0])
            if status == DONE or found:
                break
            if status != OUTPUT_FULL:
                return status
            # A single graph is larger than the buffers.
            self._graphs = graphs = graphs._replace(
                nodes=np.empty((2 * len(graphs.nodes), 4), np.int64)
            )
        output.rows[:found] = graphs.rows[:found]
        output.used[0] = found
        # Graphs of this batch may follow those of the last reading. More would not fit.
        return status if status == DONE else OUTPUT_FULL

    def _written(self, memory: Memory, kinds: Kinds) -> int:
        return int(graphs_of_fired(memory, self.graphs, kinds))

    def events_in(self, output: Output, first: int) -> int:
        return self.matches_in(output, first)

    def taken(self) -> None:
        """Empty the buffers."""
        self.graphs.used[:2] = 0


class CompactCheckedWalk(WithGraphs, CompactWalk):
    """The same for matches with conditions between events."""

    are_paths = False

    def __init__(self, checks: Checked, plan: Plan) -> None:
        WithGraphs.__init__(self, checks, plan)
        CompactWalk.__init__(self)

    def _written(self, memory: Memory, kinds: Kinds) -> int:
        write, graphs = products_of_fired(self._checks), self.graphs
        return self.with_patience(memory, lambda *given: write(memory, graphs, kinds, *given))

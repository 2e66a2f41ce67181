"""The walk of a run whose rows combine all matches with the same end. It lists no single match."""

from itertools import chain

from celc_runtime.engine.arena.nodes import WINDOW_FULL, Memory
from celc_runtime.engine.definition.instants import Instants
from celc_runtime.engine.graph.match_graph import for_arena
from celc_runtime.engine.totals.unions import (
    Found,
    new_found,
    union_scratch,
    unite_checked,
    unite_fired,
)
from celc_runtime.engine.totals.wide_columns import WideColumn, column_of
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked
from celc_runtime.run.walk.checked import WithGraphs
from celc_runtime.run.walk.walks import WalkOfRun

_ROOM = 1 << 10  # nodes of one graph for which there is room at first


class UnitedWalk(WalkOfRun):
    """Returns one row for each event that fired, with the events of all its matches.

    weighs: whether the number of matches with each event is computed too.
    """

    def __init__(self, *, weighs: bool) -> None:
        self._weighs = weighs
        self._scratch = union_scratch(0, room=_ROOM, weighs=weighs)
        self._found = new_found(0, 0, weighs=weighs)

    @property
    def nbytes(self) -> int:
        graphs, *paths = self._scratch
        pairs = [pair for numbers in paths for pair in numbers]
        own = sum(array.nbytes for array in chain(graphs, self._found, *pairs))
        return int(own + super().nbytes)

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        rows, room = len(output.rows), len(output.tags)
        graphs = for_arena(self._scratch.graphs, len(memory.nodes))
        self._scratch = self._scratch._replace(graphs=graphs)
        old = self._found
        if len(old.counts) != rows or len(old.weights) != (room if self._weighs else 0):
            self._found = new_found(rows, room, weighs=self._weighs)
            for before, after in zip(old, self._found, strict=True):
                after[: len(before)] = before[: len(after)]
        return self._united(memory, output, kinds)

    def _united(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(unite_fired(memory, output, kinds, self._scratch, self._found))

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status != WINDOW_FULL:
            return super().with_room(status, memory)
        room = 2 * len(self._scratch.graphs.nodes)
        self._scratch = union_scratch(len(memory.nodes), room=room, weighs=self._weighs)
        return memory

    def counts(self, output: Output) -> WideColumn:
        return column_of(self._found.counts[: output.used[0]])

    def found(self, rows: int, events: int) -> Found:
        """What was found for the first rows and events in the buffers, copied out of them."""
        found = self._found
        return Found(
            found.counts[:rows].copy(),
            found.sizes[:rows].copy(),
            found.scales[:rows].copy(),
            found.weights[:events].copy(),
            found.weight_sizes[:events].copy(),
            found.weight_scales[:events].copy(),
        )


class UnitedCheckedWalk(WithGraphs, UnitedWalk):
    """The same for matches with conditions between events."""

    def __init__(
        self, checks: Checked, plan: Plan, instants: Instants | None, *, weighs: bool
    ) -> None:
        WithGraphs.__init__(self, checks, plan, instants)
        UnitedWalk.__init__(self, weighs=weighs)

    def _united(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        unite, ways = unite_checked(self._checks), (self._scratch, self._found, self.starts)
        return self.with_patience(
            memory, lambda *given: unite(memory, output, kinds, *ways, *given)
        )

"""The buffers of a run: the matches that its walk has found, not removed yet."""

from dataclasses import dataclass, field

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.arrow.matches.output import LabelEntries
from celc_runtime.engine.arena.nodes import ENTRY, Memory
from celc_runtime.engine.walk.collected_matches import keep_matches
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.run.walk.walks import WalkOfRun


@dataclass(slots=True)
class Listed:
    """The matches in the buffers; each property is computed once, when it is first asked for.

    prepared: the batch in which the matches end.
    """

    walk: WalkOfRun
    plan: Plan
    output: Output
    kinds: Kinds
    memory: Memory
    prepared: Prepared
    _entries: LabelEntries | None = field(default=None, init=False)
    _deadlines: np.ndarray | None = field(default=None, init=False)
    _begins: np.ndarray | None = field(default=None, init=False)

    @property
    def count(self) -> int:
        return int(self.output.used[0])

    @property
    def rows(self) -> np.ndarray:
        """int64[matches]: the rows at which they end."""
        rows: np.ndarray = self.output.rows[: self.output.used[0]]
        return rows

    @property
    def entries_read(self) -> int:
        """The number of relevant events read so far."""
        return int(self.memory.counters[ENTRY])

    @property
    def entries(self) -> LabelEntries:
        if self._entries is None:
            self._entries = self.walk.entries(self.plan.answer.label_names, self.output, self.kinds)
        return self._entries

    @property
    def deadlines(self) -> np.ndarray:
        if self._deadlines is None:
            self._deadlines = self.walk.deadlines(self.output)
        return self._deadlines

    @property
    def begins(self) -> np.ndarray:
        """int64[matches]: entries of events that start when the matches start."""
        if self._begins is None:
            self._begins = self.walk.begins(self.output, self.entries.starts)
        return self._begins

    @property
    def starts(self) -> np.ndarray:
        """int64[matches]: the entries at which they start; equal for those of one instant."""
        return self.walk.instant_of(self.entries.starts)

    @property
    def ends(self) -> np.ndarray:
        """int64[matches]: the same for their ends."""
        return self.walk.instant_of(self.entries.ends)

    @property
    def firsts(self) -> np.ndarray:
        """int64[matches]: see `WalkOfRun.firsts`."""
        return self.walk.firsts(self.begins)

    def keep(self, wanted: np.ndarray) -> None:
        """Drop the matches that are not wanted (bool[matches])."""
        if self.plan.choice.deadlines:
            self._deadlines = self.deadlines[wanted]
        self._begins = self.begins[wanted]
        keep_matches(self.output, wanted)
        self._entries = None


def kinds_of(program: Program, walk: WalkOfRun) -> Kinds:
    """The kinds of cells of a program, as a walk reads them; the program keeps them."""
    of_walk = "kinds", walk.places, walk.leaf_pile, walk.lists_runs
    found = program.kept.get(of_walk)
    if found is None:
        found = program.kept[of_walk] = _kinds_of(program.plan, walk)
    assert isinstance(found, Kinds)
    return found


def _kinds_of(plan: Plan, walk: WalkOfRun) -> Kinds:
    columns = range(len(plan.answer.label_names))
    belongs = [[column in kind.columns for kind in plan.matching.kinds] for column in columns]
    return Kinds(
        np.array([kind.starts for kind in plan.matching.kinds] or [False], np.bool_),
        np.array(belongs, np.uint64).reshape(len(columns), len(plan.matching.kinds)),
        np.array([plan.matching.kind_bits], np.int64),
        np.array(
            [walk.places, walk.leaf_pile, not plan.source.partition_by, walk.lists_runs], np.int64
        ),
    )

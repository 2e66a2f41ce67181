"""The update of a run: the kernel that reads events, and the memory that only this kernel needs.

`UpdateOfRun` is the protocol. There is a class for each way to keep partial matches: on piles, on
piles by key, in union lists, and in union lists of partitions that interleave.
"""

from dataclasses import replace
from typing import assert_never

import numpy as np

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import NO_INTEGERS, Batch, window_floor
from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    ARENA_FULL,
    DONE,
    EARLIEST,
    KEYS_FULL,
    LISTS_FULL,
    LOWEST,
    NEXT_NODE,
    ROW,
    STATES_UNKNOWN,
    Memory,
    grown,
)
from celc_runtime.engine.update.compaction import compacted, reachable_nodes
from celc_runtime.engine.update.pile_bounds import NO_BOUND
from celc_runtime.engine.update.states_as_met import StatesAsMet, TooManyStates
from celc_runtime.engine.update.union_lists import (
    OWN_CLOCKS,
    contexts_before,
    new_lists,
    update_lists,
    with_longer_lists,
    with_more_slots,
)
from celc_runtime.engine.walk.listing import Kinds, Output
from celc_runtime.plan.errors import WorkLimitError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import (
    AdjoiningRuns,
    BranchFree,
    Counted,
    InWorlds,
    Keyed,
    LongestRuns,
    StraightLine,
    UnionLists,
)
from celc_runtime.program import Program
from celc_runtime.run.past.history import History
from celc_runtime.run.past.key_memory import KeyMemory
from celc_runtime.run.source.positions import Positions

ASKS_UPDATE = frozenset({ARENA_FULL, KEYS_FULL, LISTS_FULL})
"""The statuses that ask the update, not the walk, for more room."""


class UpdateOfRun:
    """The protocol of updates. What stands here is right for most of them."""

    has_contexts = False
    """Whether the update writes the letters of events, which depend on the stream before them."""

    writes_rows = False
    """Whether the update writes the relevant rows into `memory.relevant`."""

    piles = 0
    """The number of piles that the arena's memory needs."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def nbytes(self) -> int:
        """The bytes that the update keeps besides the arena."""
        return 0

    def remember(self, history: History | None) -> None:
        """Take the past events that the walk keeps; None: it keeps none."""

    def enter(self, prepared: Prepared, memory: Memory) -> Prepared:
        """Take in a batch before the kernel reads it."""
        return prepared

    def read(self, batch: Batch, memory: Memory, output: Output, kinds: Kinds) -> int:
        """Read the events of a batch from `counters[ROW]` on; returns a status of `arena.nodes`."""
        raise NotImplementedError

    def with_room(self, status: int, memory: Memory) -> Memory:
        """Make the room that a status asks for; returns the memory of the run, which may be new."""
        assert status == ARENA_FULL
        return grown(memory)

    def leave(self, batch: Batch) -> None:
        """End a batch."""

    def forget_partition(self) -> None:
        """Forget the partial matches: no event that the kernel read is of the partition at hand."""

    def contexts_before(
        self,
        symbols: np.ndarray,
        starts: np.ndarray,
        begun: np.ndarray,
        firsts: np.ndarray,
        consumed: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The contexts before rows and after partitions, as nested selectors see the stream.

        Empty if the query has none. The arguments are those of the function of this name.
        """
        return NO_INTEGERS, NO_INTEGERS

    def earliest_start(self, memory: Memory) -> int:
        """The position before which no later match begins."""
        return int(memory.counters[EARLIEST])

    def floors_behind(self, prepared: Prepared, positions: Positions) -> np.ndarray | int:
        """Where the windows of later events begin at the earliest: one number, or one a slot."""
        window, batch = self._plan.matching.window, prepared.batch
        assert window is not None
        if len(batch.floors):
            return int(batch.floors[-1])
        if len(batch.keys):
            return int(window_floor(batch.keys[-1], int(window.size)))
        last = positions.of(np.array([len(prepared.events) - 1]))
        return int(last[0]) - int(window.size)


class PileUpdate(UpdateOfRun):
    """An update with its partial matches on piles, in the memory of the arena."""

    def __init__(self, update: BranchFree | StraightLine | Keyed, plan: Plan) -> None:
        super().__init__(plan)
        self.piles = update.piles
        self.kernel = update.kernel

    def read(self, batch: Batch, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(self.kernel(batch, memory, output, kinds))


class BranchFreePiles(PileUpdate):
    """An update without branches, which first searches for the relevant rows."""

    writes_rows = True


class BoundedPiles(PileUpdate):
    """An update that compares events with those of its piles, which are in a history: it skips
    piles by bounds, or takes matches out of them."""

    def __init__(self, update: StraightLine, plan: Plan) -> None:
        super().__init__(update, plan)
        # A bound for each pile that has one; then the key at which the window began again.
        self._bounds = np.full((update.bounds or 0) + 1, ALWAYS, np.int64)
        self._history: History | None = None
        self.forget_partition()

    def remember(self, history: History | None) -> None:
        self._history = history

    @property
    def nbytes(self) -> int:
        return self._bounds.nbytes

    def read(self, batch: Batch, memory: Memory, output: Output, kinds: Kinds) -> int:
        history = self._history
        assert history is not None, "bounds are of conditions on remembered events"
        past = history.past
        if not past:  # no event has mattered so far, nor does one of this batch
            memory.counters[ROW] = len(batch.symbols)
            return DONE
        return int(self.kernel(batch, memory, output, kinds, past, history.first, self._bounds))

    def forget_partition(self) -> None:
        self._bounds[:-1] = NO_BOUND
        self._bounds[-1] = ALWAYS


class KeyedUpdate(PileUpdate):
    """An update with some of its piles in hash tables, by key."""

    def __init__(self, update: Keyed, plan: Plan) -> None:
        super().__init__(update, plan)
        self._keys = KeyMemory(update.terms, update.tables)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes

    def enter(self, prepared: Prepared, memory: Memory) -> Prepared:
        counters = memory.counters
        self._keys.enter(prepared.events, int(counters[EARLIEST]), int(counters[LOWEST]))
        return prepared

    def read(self, batch: Batch, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(self.kernel(batch, memory, self._keys.memory, output, kinds))

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status != KEYS_FULL:
            return super().with_room(status, memory)
        self._keys.make_room(int(memory.counters[EARLIEST]), int(memory.counters[LOWEST]))
        return memory


class ListsUpdate(UpdateOfRun):
    """The update of the general engine, with partial matches in union lists."""

    def __init__(self, update: UnionLists, plan: Plan, *, first_position: int) -> None:
        super().__init__(plan)
        passing = update.as_met
        self._met = None if passing is None else StatesAsMet(update.tables, passing)
        self._tables = update.tables if self._met is None else self._met.tables
        self.has_contexts = len(update.tables.following) > 0
        self._lists = new_lists(len(self._tables.skip))
        self._lists.clock[:] = first_position

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self._lists))

    def enter(self, prepared: Prepared, memory: Memory) -> Prepared:
        batch = prepared.batch
        if not self.has_contexts or len(batch.letters):
            return prepared
        return replace(
            prepared, batch=batch._replace(letters=np.empty(len(batch.symbols), np.int64))
        )

    def read(self, batch: Batch, memory: Memory, output: Output, kinds: Kinds) -> int:
        status = STATES_UNKNOWN
        while status == STATES_UNKNOWN:
            status = int(update_lists(batch, memory, self._lists, output, kinds, self._tables))
            if status == STATES_UNKNOWN:
                self._meet(int(batch.symbols[memory.counters[ROW]]))
        return status

    def _meet(self, symbol: int) -> None:
        """Find where the active states go with an event."""
        assert self._met is not None
        active = self._lists.order[0, : self._lists.active[0]].tolist()
        try:
            self._lists = self._met.meet(self._lists, active, symbol)
        except TooManyStates as problem:
            raise WorkLimitError(
                f"query {self._plan.name!r}: {problem} states of its automaton are in use at one "
                "event, more than memory is kept for: give it a (smaller) window with WITHIN, or "
                "give parts that begin with the same events conditions that exclude each other"
            ) from None
        self._tables = self._met.tables

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status != LISTS_FULL:
            return super().with_room(status, memory)
        self._lists = with_longer_lists(self._lists)
        return memory

    def forget_partition(self) -> None:
        self._lists.active[:-1] = 0  # the last slot is scratch space

    def contexts_before(
        self,
        symbols: np.ndarray,
        starts: np.ndarray,
        begun: np.ndarray,
        firsts: np.ndarray,
        consumed: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self.has_contexts:
            return NO_INTEGERS, NO_INTEGERS
        before, behind = contexts_before(
            self._tables.following, symbols, starts, begun, firsts, consumed
        )
        return before, behind

    def earliest_start(self, memory: Memory) -> int:
        return ALWAYS  # the general engine does not write EARLIEST


class InterleavedUpdate(ListsUpdate):
    """The update for interleaved partitions: each has its own union lists."""

    def __init__(self, update: UnionLists, plan: Plan, *, first_position: int) -> None:
        super().__init__(update, plan, first_position=first_position)
        # Whether the window is measured on another attribute than the common order.
        self._own_clocks = plan.window_attribute not in (None, *plan.source.order_by[:1])
        self._own_floors = np.zeros(0, np.int64)
        if self._own_clocks:
            settings = self._tables.settings.copy()
            settings[3] = OWN_CLOCKS
            self._tables = self._tables._replace(settings=settings)

    def enter(self, prepared: Prepared, memory: Memory) -> Prepared:
        slots = int(prepared.batch.slots.max(initial=0)) + 1
        self._lists = with_more_slots(self._lists, slots)
        return super().enter(prepared, memory)

    def with_room(self, status: int, memory: Memory) -> Memory:
        """For a full arena: drops its dead nodes if that frees enough, else doubles it."""
        if status != ARENA_FULL:
            return super().with_room(status, memory)
        flags, count = reachable_nodes(memory, self._lists, self._floors())
        # If an event needs more than what was freed, it asks again at once.
        used = int(memory.counters[NEXT_NODE] - memory.counters[LOWEST])
        if 2 * count <= len(flags) < 2 * used:
            return compacted(memory, self._lists, flags, count)
        return grown(memory)

    def leave(self, batch: Batch) -> None:
        """Note for each partition where its own window begins after a batch."""
        if not self._own_clocks:
            return
        assert self._plan.matching.window is not None
        floors = batch.floors
        if not len(floors):
            size = int(self._plan.matching.window.size)
            reaches = batch.keys >= ALWAYS + size
            floors = np.where(reaches, batch.keys - np.where(reaches, size, 0), ALWAYS)
        known = len(self._own_floors)
        self._own_floors = np.append(
            self._own_floors, np.full(len(self._lists.clock) - known, ALWAYS)
        )
        np.maximum.at(self._own_floors, batch.slots, floors)

    def floors_behind(self, prepared: Prepared, positions: Positions) -> np.ndarray | int:
        window = self._plan.matching.window
        assert window is not None
        if self._own_clocks or window.unit == "EVENTS":
            return self._floors()
        return np.full(len(self._lists.clock), super().floors_behind(prepared, positions))

    def _floors(self) -> np.ndarray:
        """The earliest start inside the window, for each partition slot."""
        window = self._plan.matching.window
        floors = np.full(len(self._lists.clock), ALWAYS, np.int64)
        if window is not None and window.unit == "EVENTS":
            np.maximum(floors, self._lists.clock - int(window.size), out=floors)
        floors[: len(self._own_floors)] = self._own_floors
        return floors


def update_of(program: Program, *, first_position: int) -> UpdateOfRun:
    """The update of a run; `first_position`: the position of its first event."""
    plan, update = program.plan, program.update
    if isinstance(program.listing, Counted | InWorlds | LongestRuns | AdjoiningRuns):
        return UpdateOfRun(plan)  # does nothing: the walk reads the events itself
    match update:
        case BranchFree():
            return BranchFreePiles(update, plan)
        case StraightLine(bounds=None):
            return PileUpdate(update, plan)
        case StraightLine():
            return BoundedPiles(update, plan)
        case Keyed():
            return KeyedUpdate(update, plan)
        case UnionLists() if plan.interleaves:
            return InterleavedUpdate(update, plan, first_position=first_position)
        case UnionLists():
            return ListsUpdate(update, plan, first_position=first_position)
        case _:
            assert_never(update)

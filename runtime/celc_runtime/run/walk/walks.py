"""The walk of a run: how the matches are found that end at the events that fired.

`WalkOfRun` is the protocol. The walks that return all matches in the arena are here. The others
have modules of their own.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.arrow.matches.output import LabelEntries, entries_of_runs, entries_of_tags
from celc_runtime.engine.arena.nodes import (
    LEAVES_FULL,
    PADDING,
    STACK_FULL,
    WINDOW_FULL,
    Memory,
    with_deeper_stack,
    with_more_leaves,
)
from celc_runtime.engine.totals.wide_columns import WideColumn
from celc_runtime.engine.walk.listing import Kinds, Output, list_fired, new_output
from celc_runtime.engine.walk.runs import list_runs
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import InRuns
from celc_runtime.run.past.history import History
from celc_runtime.run.source.positions import Positions

_MATCHES_PER_BATCH = 1 << 17
_ENTRIES_PER_BATCH = 1 << 18
_FIRST_MATCHES = 1 << 11  # more memory would be asked of the system anew for each small table

NOTED_ROWS = 1 << 18  # rows: the largest batch of a walk that notes all its events

Floors: TypeAlias = Callable[[], np.ndarray | int]
"""No window of a later event reaches back before this floor: one for all, or one for each partition
slot. It is a function, because it is computed only where it is used."""


Judge: TypeAlias = Callable[[int, tuple[int, int], int], tuple[bool, bool]]
"""See `Deadlines.judge`."""


class WalkOfRun:
    """What a run asks of its walk; here for most walks."""

    defers = True  # whether the update leaves all matches to `choose`, and lists nothing itself

    reads_alone = False  # whether it finds the matches without an update, which then does not run

    are_paths = False  # whether each path of nodes below a cell that fired is a match

    most_rows: int | None = None  # the largest batch that it reads at once; None: any

    leaf_pile = 0  # the pile of the events in the first place of a match, if all have `places`

    places = 0
    """The number of events of every match, if the output holds them place by place; 0: matches
    differ in length, and the output holds one after another."""

    lists_runs = False  # whether the output holds a run of such matches as one (`engine.walk.runs`)

    buffers_grow = True  # whether buffers that were full become longer (`longer`)

    hands_out = True  # for a walk that reads alone: whether the matches of a batch are returned

    judge: Judge | None = None  # says which matches are decided, if the plan has deadlines

    was_read: Callable[[int], bool] | None = None  # and which rows of the batch were read before

    @property
    def nbytes(self) -> int:
        """The bytes of the buffers and of all that is kept between batches."""
        return 0

    def buffers(self, limit: int | None) -> Output:
        """Empty buffers for matches, at most `limit` for an event."""
        return self._buffers(_FIRST_MATCHES, limit)

    def longer(self, output: Output) -> Output:
        """Buffers with eight times the room in place of empty ones that were full, as long as
        batches of rows may become longer."""
        if not self.buffers_grow or len(output.rows) >= _MATCHES_PER_BATCH:
            return output
        return self._buffers(8 * len(output.rows), int(output.limit[0]))

    def _buffers(self, matches: int, limit: int | None) -> Output:
        """Empty buffers for this number of matches, or for the most that a batch has."""
        room = min(2 * matches, _ENTRIES_PER_BATCH)
        return new_output(matches=min(matches, _MATCHES_PER_BATCH), room=room, limit=limit)

    @property
    def history(self) -> History | None:
        """The remembered events; None: the walk remembers none."""
        return None

    def look(self, prepared: Prepared, positions: Positions) -> None:
        """Remember the events of a batch. Several batches may be remembered before one is
        entered."""

    def enter(self, prepared: Prepared, positions: Positions, memory: Memory) -> Prepared:
        """Take in a batch before the update reads it."""
        return prepared

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        """List the matches of each event that fired; returns a status of `arena.nodes`."""
        return int(list_fired(memory, output, kinds))

    @property
    def holds(self) -> bool:
        """Whether matches wait for others of their instant, of which no event is left."""
        return False

    def let_go(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        """List the matches that it holds; returns a status of `arena.nodes`."""
        raise AssertionError("only asked of a walk that holds matches")

    def with_room(self, status: int, memory: Memory) -> Memory:
        """Make the room that a status asks for; returns the memory of the run, which may be new."""
        assert status == STACK_FULL
        return with_deeper_stack(memory)

    def instant_of(self, entries: np.ndarray) -> np.ndarray:
        """int64: for entries at which matches start or end, numbers in the same order that are
        equal if one start, or one end, is that of the other."""
        return entries

    def oldest(self) -> int:
        """For a walk that reads alone: the first stored event that a later match can refer to."""
        raise AssertionError("only asked of a walk that reads alone")

    def of_stretches(self, silent: np.ndarray | None) -> None:
        """Begin to read stretches: find the matches of all starts; a later choice narrows them.

        silent: bool[rows], where a walk that reads alone returns none; None: nowhere.
        """

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows of matches that still wait in the walk at the end of the input."""
        yield from ()

    def leave(self, floors: Floors, oldest: Callable[[], int]) -> None:
        """End a batch. `oldest`: the first stored event that a later match can refer to."""

    def entries(self, names: Sequence[str], output: Output, kinds: Kinds) -> LabelEntries:
        """The events of the matches in the buffers, under each label."""
        return entries_of_tags(names, output, kinds)

    def begins(self, output: Output, starts: np.ndarray) -> np.ndarray:
        """int64: for events with a duration, entries of events that start when the matches start.

        starts: the first entries of the listed matches.
        """
        return starts

    def firsts(self, begins: np.ndarray) -> np.ndarray:
        """int64: of matches with one start and one end, the ones with the least of these numbers
        are chosen by NXT. begins: as above."""
        return np.zeros_like(begins)

    def counts(self, output: Output) -> WideColumn | None:
        """How many matches each one in the buffers stands for; None: one."""
        return None

    def deadlines(self, output: Output) -> np.ndarray:
        """int64[matches]: the deadlines of the matches in the buffers, if the plan has deadlines.

        −1: the match is decided when it ends.
        """
        return np.zeros(int(output.used[0]), np.int64)

    def latest(self, output: Output) -> tuple[np.ndarray, np.ndarray] | None:
        """For each match in the buffers, of the matches with its end the one that is decided last:
        (int64, the entry of its first event; int64, the number of its deadline).

        None: each match is known when it is decided.
        """
        return None

    def matches_in(self, output: Output, first: int) -> int:
        """How many matches the buffers hold from entry `first` on."""
        return int(output.used[0]) - first

    def events_in(self, output: Output, first: int) -> int:
        """How many events these matches have together."""
        return int(output.used[1] - (output.ends[first - 1] if first else 0))


def buffers_for(walk: WalkOfRun, limit: int | None, rows: int | None) -> Output:
    """Empty buffers of a run over this number of rows (None: it is not known), for at most `limit`
    matches of an event. Where many rows come, most would be emptied twice before they are as long
    as they become."""
    output = walk.buffers(limit)
    while len(output.rows) < (rows or 0):
        shorter, output = output, walk.longer(output)
        if output is shorter:
            break
    return output


def with_more_scratch(scratch: Memory, status: int) -> Memory:
    """Scratch memory with twice the room that a status asks for: for nodes, or for the walk."""
    if status == WINDOW_FULL:
        return scratch._replace(nodes=np.zeros((2 * len(scratch.nodes), 4), np.int64))
    assert status == STACK_FULL
    return with_deeper_stack(scratch)


class AllWalk(WalkOfRun):
    """Lists all matches, each by a walk from its last event back."""

    defers = False
    are_paths = True


class RunsWalk(WalkOfRun):
    """Lists all matches of one shape, place by place."""

    defers = False
    are_paths = True

    def __init__(self, listing: InRuns, plan: Plan) -> None:
        self.leaf_pile = listing.leaf_pile
        self.places = len(listing.kinds)
        self._columns = tuple(plan.matching.kinds[kind].columns for kind in listing.kinds)

    def longer(self, output: Output) -> Output:
        most = max(1, min(_MATCHES_PER_BATCH, 2 * _ENTRIES_PER_BATCH // self.places)) + PADDING
        return output if len(output.rows) >= most else super().longer(output)

    def _buffers(self, matches: int, limit: int | None) -> Output:
        most = min(matches, _MATCHES_PER_BATCH, 2 * _ENTRIES_PER_BATCH // self.places)
        matches = max(1, most) + PADDING
        return new_output(matches=matches, room=matches * self.places, limit=limit)

    def choose(self, memory: Memory, output: Output, kinds: Kinds) -> int:
        return int(list_runs(memory, output, kinds))

    def with_room(self, status: int, memory: Memory) -> Memory:
        if status != LEAVES_FULL:
            return super().with_room(status, memory)
        return with_more_leaves(memory)

    def entries(self, names: Sequence[str], output: Output, kinds: Kinds) -> LabelEntries:
        return entries_of_runs(len(names), output, self._columns)

    def events_in(self, output: Output, first: int) -> int:
        return self.matches_in(output, first) * self.places

"""One run of a query over a stream of batches: the driver around the kernels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arena import (
    ALWAYS,
    ARENA_FULL,
    DEFERS,
    DONE,
    EARLIEST,
    ENTRY,
    FIRED,
    KEYS_FULL,
    LAST,
    LEAVES_FULL,
    LISTED,
    LISTS_FULL,
    LOWEST,
    NEVER,
    NEXT_NODE,
    OUTPUT_FULL,
    PADDING,
    PART,
    READ,
    ROW,
    SHIFT,
    STACK_FULL,
    TOO_MUCH_WORK,
    WINDOW_FULL,
    grown,
    new_memory,
    oldest_entry,
    with_deeper_stack,
    with_more_leaves,
)
from celc_runtime.batch import Batch, positions_in_parts, window_floor
from celc_runtime.by_definition import ByDefinition
from celc_runtime.checked import Checked
from celc_runtime.columns import Columns, Prepared
from celc_runtime.enumerate import Kinds, list_fired, new_output, with_more_room
from celc_runtime.errors import EventWarning, WorkLimitError
from celc_runtime.joins import Keyed
from celc_runtime.latest import Latest
from celc_runtime.lists import (
    TableUpdate,
    compacted,
    context_after,
    live_share,
    new_lists,
    with_longer_lists,
    with_more_slots,
)
from celc_runtime.many import ManyMatches
from celc_runtime.output import matches_batch
from celc_runtime.payload import Payload
from celc_runtime.runs import list_runs
from celc_runtime.selection import Windows

if TYPE_CHECKING:
    from celc_runtime.query import CompiledQuery

_MATCHES_PER_BATCH = 1 << 16
_ENTRIES_PER_BATCH = 1 << 17
_EVENTS_PER_WINDOWS = 1 << 18


class PartitionStretch(NamedTuple):
    """Events of one partition that a run reads from some event on.

    events: the columns that the query reads, without types; codes: int32[rows], the number of each
    row's type among those that the query declares; positions: int64[rows], in the partition.
    silent: so many rows have been read before, and only what comes later ends matches. absent:
    bool[rows], rows that only stand for others that cannot matter and were left out. context: what
    the stream before the first row means to nested selectors.
    """

    events: pa.RecordBatch
    codes: np.ndarray
    positions: np.ndarray
    silent: int
    absent: np.ndarray
    context: int


class Kept(NamedTuple):
    """What to keep of a stretch: int64 rows, and the context before the first of them. keys:
    int64, what the window is measured on, row by row; empty where that is positions or nothing."""

    rows: np.ndarray
    context: int
    keys: np.ndarray


class Run:
    """Feeds batches to a query and hands out its matches; all state between batches is in here.

    Events come in the order of the stream; with PARTITION BY (unless partitions interleave, as
    CONSUME BY ANY needs) all events of a partition come one after another. `first_node` lets tests
    begin near the limits of smaller numbers. `first_position`: that of the first event;
    `continues`: its partition is not entered with it, but was before. `numbered`: the column of
    each batch with the rows' numbers, for messages, where they are not in their places.
    """

    def __init__(
        self,
        query: CompiledQuery,
        *,
        ties_are_errors: bool = False,
        first_node: int = 1,
        first_position: int = 0,
        continues: bool = False,
        numbered: str | None = None,
    ) -> None:
        plan = query.plan
        self._query = query
        self._plan = plan
        self._schema = query.output_schema
        self._columns = Columns(
            plan, ties_are_errors=ties_are_errors, continues=continues, numbered=numbered
        )
        self._memory = new_memory(plan.piles or 0, first_node=first_node)
        self._memory.counters[SHIFT] = -first_position
        self._lists = None if plan.piles is not None else new_lists(plan.states)
        if self._lists is not None:
            self._lists.clock[:] = first_position
        self._kernel = query.update
        # Interleaved partitions whose window is measured on something else than their order.
        self._own_clocks = plan.interleaves and plan.window_attribute not in (
            None,
            *plan.order_by[:1],
        )
        self._own_floors = np.zeros(0, np.int64)
        if self._own_clocks:
            assert isinstance(query.update, TableUpdate)
            self._kernel = query.update.with_own_clocks()
        self._windows: Windows | None = None
        self._chooser: Windows | Latest | ByDefinition | Checked | None = None
        self._by_definition: ByDefinition | None = None
        if plan.latest_first:
            self._chooser = Latest()
        if query.selection is not None:
            self._windows = Windows(
                query.selection,
                interleaved=plan.interleaves,
                consumes=plan.consume_by != "NONE",
                all_events=plan.all_events,
            )
            self._chooser = self._windows
        if query.definition is not None:
            self._by_definition = ByDefinition(query.definition, plan)
            self._chooser = self._by_definition
        self._keyed = None if query.joins is None else Keyed(query.joins)
        self._checked: Checked | None = None
        if query.checks is not None:
            assert query.listing is not None
            self._checked = Checked(query.checks, plan, query.listing)
            self._chooser = self._checked
        self._many = ManyMatches(plan, are_paths=self._chooser is None)
        self._lists_matches = True
        self.lists_matches = True
        self._stretch: Prepared | None = None
        self._last_end = -1
        self._payload = Payload(plan.stored_attributes)
        self._kinds = _kinds(query)
        matches, room = _MATCHES_PER_BATCH, _ENTRIES_PER_BATCH
        if plan.shape:
            matches = max(1, min(matches, 2 * room // len(plan.shape))) + PADDING
            room = matches * len(plan.shape)
        self._output = new_output(matches=matches, room=room, limit=plan.limit)
        self.dropped = 0

    def forget_undeclared(self) -> None:
        """Tell at the end of rows of undeclared types from here on only."""
        self._columns.undeclared.forget()

    @property
    def lists_matches(self) -> bool:
        """Whether matches are handed out, or events only read; may be changed between batches."""
        return self._lists_matches

    @lists_matches.setter
    def lists_matches(self, wanted: bool) -> None:
        self._lists_matches = wanted
        self._memory.counters[DEFERS] = int(self._chooser is not None or not wanted)

    @property
    def arena_bytes(self) -> int:
        """The size of the node arena, and of what is noted of the cells that begin matches."""
        memory = self._memory
        return int(memory.nodes.nbytes + memory.leaves.nbytes + memory.leaf_marks.nbytes)

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffers for matches, and of those that the kernels work with."""
        memory = self._memory
        buffers = (*self._output, memory.stack, memory.path, memory.trail, memory.fires)
        chooser = 0 if self._chooser is None else self._chooser.nbytes
        keyed = 0 if self._keyed is None else self._keyed.nbytes
        return int(sum(buffer.nbytes for buffer in buffers)) + chooser + keyed

    @property
    def stored_events(self) -> int:
        """How many past events are kept for output, those of a batch being read not counted."""
        return self._payload.rows

    def push(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the matches that end in it, in batches of bounded size.

        Raises EventError where the events do not fit the query.
        """
        remembers = self._windows is not None or self._by_definition is not None
        if remembers and len(events) > _EVENTS_PER_WINDOWS:
            # A selection notes the events of the batch at hand as well as those of the window.
            for start in range(0, len(events), _EVENTS_PER_WINDOWS):
                yield from self.push(events.slice(start, _EVENTS_PER_WINDOWS))
            return
        prepared = self._columns.prepare(events)
        self.dropped += prepared.dropped
        rows = len(prepared.events)
        if not rows:
            return
        self._query.classify(*self._columns.arguments(prepared.events), prepared.batch.symbols)
        counters = self._memory.counters
        positions = _Positions(prepared, int(counters[SHIFT]))
        if self._plan.interleaves:
            assert self._lists is not None
            self._lists = with_more_slots(self._lists, self._columns.partitions_seen)
            positions = _InterleavedPositions(prepared, self._lists.clock)
        prepared = self._enter(prepared, positions)
        yield from self._listed(prepared, positions)
        if self._own_clocks:
            self._note_floors(prepared.batch)
        if self._windows is not None:
            self._windows.leave(self._floors_behind(prepared, positions))
        if self._by_definition is not None:
            floors = None if self._plan.window is None else self._floors_behind(prepared, positions)
            self._by_definition.leave(floors)
        oldest = self._oldest_entry()
        if self._checked is not None:
            self._checked.leave(oldest)
        self._payload.leave(oldest, int(counters[ENTRY]))
        self._leave_batch(prepared, rows)

    def push_stretch(self, stretch: PartitionStretch) -> Iterator[pa.RecordBatch]:
        """Read a stretch of one partition, all that this run reads; yields the matches that end
        behind its `silent` rows. `after_stretch` then tells what to keep of it.

        Raises EventError where a value cannot be measured by the window.
        """
        prepared = self._columns.prepare_stretch(stretch.events, stretch.codes)
        symbols = prepared.batch.symbols
        self._query.classify(*self._columns.arguments(prepared.events), symbols)
        symbols[stretch.absent] = 0
        counters = self._memory.counters
        counters[SHIFT] = -int(stretch.positions[0])
        if self._lists is not None:
            self._lists.context[0, 0] = stretch.context
        positions = _GivenPositions(prepared, stretch.positions)
        prepared = self._enter(prepared, positions)
        self._stretch = prepared
        if stretch.silent:
            batch = prepared.batch
            self.lists_matches = False
            early = replace(prepared, batch=batch._replace(symbols=symbols[: stretch.silent]))
            for _ in self._advance(early, positions):
                pass
            self.lists_matches = True
        yield from self._listed(prepared, positions)

    def after_stretch(self, stretch: PartitionStretch, floor: int = ALWAYS) -> Kept:
        """What of the stretch later events can make matches with. `floor`: what the window of none
        of them reaches behind, where more is known of that than the events tell."""
        prepared = self._stretch
        assert prepared is not None
        plan, batch = self._plan, prepared.batch
        keeps = batch.symbols != 0
        first = 0
        if plan.consume_by != "NONE":
            first = self._last_end + 1
            keeps[:first] = False
        if plan.window is not None and not self._query.sees_all:
            keys = batch.keys if len(batch.keys) else stretch.positions
            behind = self._floors_behind(prepared, _GivenPositions(prepared, keys))
            if plan.window.unit == "EVENTS":
                behind = behind + 1  # the next event has the next position
            keeps &= keys >= np.maximum(behind, floor)
        rows = np.flatnonzero(keeps)
        context = 0
        if plan.contexts > 1:
            assert isinstance(self._query.update, TableUpdate)
            following = self._query.update.tables.following
            end = int(rows[0]) if len(rows) else len(batch.symbols)
            begun = 0 if first else stretch.context
            context = int(context_after(following, batch.symbols, begun, first, end))
        return Kept(rows, context, batch.keys)

    def _enter(self, prepared: Prepared, positions: _Positions) -> Prepared:
        """Show a batch that is classified to all that look at events before the kernel does."""
        rows = len(prepared.events)
        counters = self._memory.counters
        counters[ROW] = counters[PART] = counters[READ] = 0
        self._many.enter()
        self._payload.enter(prepared.events, prepared.batch, positions.of, int(counters[ENTRY]))
        if self._by_definition is not None:
            of_rows = positions.of(np.arange(rows))
            self._by_definition.enter(prepared, of_rows, int(counters[ENTRY]))
        if self._checked is not None:
            self._checked.enter(prepared)
        if self._keyed is not None:
            earliest, lowest = int(counters[EARLIEST]), int(counters[LOWEST])
            self._keyed.enter(prepared.events, earliest, lowest)
        if self._windows is not None:
            keys = prepared.batch.keys
            if self._plan.interleaves and self._plan.window_attribute is None:
                keys = positions.of(np.arange(rows))
            batch = self._windows.enter(
                prepared.batch,
                keys,
                prepared.parts,
                shift=int(counters[SHIFT]),
                entry=int(counters[ENTRY]),
                with_letters=self._plan.contexts > 1,
            )
            return replace(prepared, batch=batch)
        if self._plan.contexts > 1:
            batch = prepared.batch._replace(letters=np.empty(rows, np.int64))
            return replace(prepared, batch=batch)
        return prepared

    def _listed(self, prepared: Prepared, positions: _Positions) -> Iterator[pa.RecordBatch]:
        for _ in self._advance(prepared, positions):
            if self._output.used[0]:
                self._many.look(self._memory, self._output, self._kinds, positions.of)
                yield self._take(prepared)

    def finish(self) -> None:
        """Say once what was odd about the events; call it at the end of a run."""
        undeclared = self._columns.undeclared
        if undeclared.total:
            plan = self._plan
            pairs = (*plan.types, *plan.other_types)
            declared = [f"{s}>{name}" if plan.stream_column else name for s, name in pairs]
            warnings.warn(
                f"query {plan.name!r}: {undeclared.total:,} of the rows have a type that none of "
                f"its streams declares: {undeclared.words(declared)}; they are not part of the "
                "stream",
                EventWarning,
                stacklevel=3,
            )

    # --- the loop around the kernel ---------------------------------------------------------------

    def _advance(self, prepared: Prepared, positions: _Positions) -> Iterator[None]:
        """Run the kernel to the end of the batch; yields whenever the matches must be taken."""
        rows = len(prepared.batch.symbols)
        status = self._update(prepared)
        while status != DONE or self._memory.counters[ROW] < rows:
            if status == OUTPUT_FULL and not self._output.used[0]:
                # A single match is longer than the buffers.
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
            elif status == OUTPUT_FULL:
                yield
            elif status == STACK_FULL and isinstance(self._chooser, Windows | Latest):
                self._chooser.deepen()
            elif status == STACK_FULL:
                self._memory = with_deeper_stack(self._memory)
            elif status == WINDOW_FULL:
                assert isinstance(self._chooser, Windows | Latest)
                self._chooser.grow()
            elif status == LEAVES_FULL:
                self._memory = with_more_leaves(self._memory)
            elif status == ARENA_FULL:
                self._make_room()
            elif status == TOO_MUCH_WORK:
                raise self._out_of_work(positions)
            elif status == KEYS_FULL:
                assert self._keyed is not None
                earliest = int(self._memory.counters[EARLIEST])
                self._keyed.make_room(earliest, int(self._memory.counters[LOWEST]))
            elif status == LISTS_FULL:
                assert self._lists is not None
                self._lists = with_longer_lists(self._lists)
            if self._memory.counters[FIRED] and not self._lists_matches:
                self._memory.counters[FIRED] = self._memory.counters[LISTED] = 0
                status = DONE
            elif self._memory.counters[FIRED] and self._chooser is not None:
                status = self._chooser.choose(self._memory, self._output, self._kinds)
            elif self._memory.counters[FIRED]:
                list_matches = list_runs if self._plan.shape else list_fired
                status = int(list_matches(self._memory, self._output, self._kinds))
            else:
                status = self._update(prepared)
        yield

    def _out_of_work(self, positions: _Positions) -> WorkLimitError:
        counters, fires = self._memory.counters, self._memory.fires
        position = int(positions.of(fires[counters[LISTED] - 1, 1:2])[0])
        return WorkLimitError(
            f"query {self._plan.name!r}: looking for the matches that end at position "
            f"{position:,} takes more than {self._plan.max_work:,} steps; give "
            "it a (smaller) window with WITHIN, conditions that fewer events satisfy or that "
            "compare fewer events, or raise the limit: --max-work, with_options(max_work=…)"
        )

    def _update(self, prepared: Prepared) -> int:
        if self._keyed is not None:
            joins = self._keyed.memory
            return int(self._kernel(prepared.batch, self._memory, joins, self._output, self._kinds))
        if self._lists is None:
            return int(self._kernel(prepared.batch, self._memory, self._output, self._kinds))
        return int(
            self._kernel(prepared.batch, self._memory, self._lists, self._output, self._kinds)
        )

    def _make_room(self) -> None:
        """A larger arena, or where partitions interleave one without its dead nodes."""
        if self._lists is not None and self._plan.interleaves:
            flags, count = live_share(self._memory, self._lists, self._floors())
            # An event that needs more than what has just been freed asks again at once.
            used = int(self._memory.counters[NEXT_NODE] - self._memory.counters[LOWEST])
            if 2 * count <= len(flags) < 2 * used:
                self._memory = compacted(self._memory, self._lists, flags, count)
                return
        self._memory = grown(self._memory)

    def _floors(self) -> np.ndarray:
        """The earliest start inside the window, for each partition slot of interleaved events."""
        assert self._lists is not None
        window = self._plan.window
        floors = np.full(len(self._lists.clock), ALWAYS, np.int64)
        if window is not None and window.unit == "EVENTS":
            np.maximum(floors, self._lists.clock - int(window.size), out=floors)
        floors[: len(self._own_floors)] = self._own_floors
        return floors

    def _floors_behind(self, prepared: Prepared, positions: _Positions) -> np.ndarray | int:
        """What no window of a later event reaches behind: for all, or for each partition slot."""
        window, batch = self._plan.window, prepared.batch
        assert window is not None
        if self._plan.interleaves and (self._own_clocks or window.unit == "EVENTS"):
            return self._floors()
        if len(batch.floors):
            floor = int(batch.floors[-1])
        elif len(batch.keys):
            floor = int(window_floor(batch.keys[-1], int(window.size)))
        else:
            last = positions.of(np.array([len(prepared.events) - 1]))
            floor = int(last[0]) - int(window.size)
        if not self._plan.interleaves:
            return floor
        assert self._lists is not None
        return np.full(len(self._lists.clock), floor)

    def _note_floors(self, batch: Batch) -> None:
        """Remember how far back each partition's own window reaches after a batch."""
        assert self._plan.window is not None
        assert self._lists is not None
        floors = batch.floors
        if not len(floors):
            size = int(self._plan.window.size)
            reaches = batch.keys >= ALWAYS + size
            floors = np.where(reaches, batch.keys - np.where(reaches, size, 0), ALWAYS)
        known = len(self._own_floors)
        self._own_floors = np.append(
            self._own_floors, np.full(len(self._lists.clock) - known, ALWAYS)
        )
        np.maximum.at(self._own_floors, batch.slots, floors)

    # --- output -----------------------------------------------------------------------------------

    def _take(self, prepared: Prepared) -> pa.RecordBatch:
        batch = matches_batch(
            self._plan,
            self._schema,
            self._output,
            self._kinds,
            prepared.events,
            self._payload,
            int(self._memory.counters[ENTRY]),
        )
        self._last_end = int(self._output.rows[: self._output.used[0]].max())
        self._output.used[:] = 0
        return batch

    def _oldest_entry(self) -> int:
        """The first stored event that a later match can refer to."""
        # The general engine measures windows in ways of its own.
        straight = self._plan.piles is not None
        earliest = int(self._memory.counters[EARLIEST]) if straight else ALWAYS
        return int(oldest_entry(self._memory, self._plan.kind_bits, earliest))

    def _leave_batch(self, prepared: Prepared, rows: int) -> None:
        """Enter the partitions whose events did not matter, and count on from row 0."""
        counters = self._memory.counters
        if counters[PART] < len(prepared.parts):
            counters[SHIFT] = prepared.parts[-1]
            counters[LOWEST] = counters[NEXT_NODE]
            counters[EARLIEST] = ALWAYS
            self._memory.heads[1] = NEVER
            if self._lists is not None:
                self._lists.active[:] = 0
        counters[SHIFT] -= rows
        counters[LAST] -= rows


class _Positions:
    """The positions of a batch's rows in their partitions."""

    def __init__(self, prepared: Prepared, shift: int) -> None:
        self._parts = prepared.parts
        self._shift = shift

    def of(self, rows: np.ndarray) -> np.ndarray:
        """int64, for rows of the batch."""
        if not len(self._parts):
            return rows - self._shift
        positions: np.ndarray = positions_in_parts(rows, self._parts, self._shift)
        return positions


class _GivenPositions(_Positions):
    """The same where rows have been left out."""

    def __init__(self, prepared: Prepared, positions: np.ndarray) -> None:
        super().__init__(prepared, 0)
        self._given = positions

    def of(self, rows: np.ndarray) -> np.ndarray:
        """int64, for rows of the batch."""
        positions: np.ndarray = self._given[rows]
        return positions


class _InterleavedPositions(_Positions):
    """The same where each row belongs to a partition slot that counts for itself."""

    def __init__(self, prepared: Prepared, clock: np.ndarray) -> None:
        slots = prepared.batch.slots
        order = np.argsort(slots, kind="stable")
        sorted_slots = slots[order]
        first = np.searchsorted(sorted_slots, sorted_slots, side="left")
        self._of_rows = np.empty(len(slots), np.int64)
        self._of_rows[order] = np.arange(len(slots)) - first + clock[sorted_slots]

    def of(self, rows: np.ndarray) -> np.ndarray:
        """int64, for rows of the batch."""
        positions: np.ndarray = self._of_rows[rows]
        return positions


def _kinds(query: CompiledQuery) -> Kinds:
    plan = query.plan
    columns = range(len(plan.labels) + len(plan.hidden))
    belongs = [[column in kind.columns for kind in plan.kinds] for column in columns]
    return Kinds(
        np.array([kind.starts for kind in plan.kinds] or [False], np.bool_),
        np.array(belongs, np.uint64).reshape(len(columns), len(plan.kinds)),
        np.array([plan.kind_bits], np.int64),
        np.array([len(plan.shape), plan.leaf_pile, not plan.partition_by], np.int64),
    )

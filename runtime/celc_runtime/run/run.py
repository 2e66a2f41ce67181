"""One run of a query over a stream of batches: the loop around the kernels.

Long: the state of a run changes here alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.columns import Columns, Prepared
from celc_runtime.arrow.event_store import INSTANT_POSITION, EventStore
from celc_runtime.arrow.instants import WholeInstants
from celc_runtime.arrow.output import LabelEntries, matches_batch
from celc_runtime.engine.arena.batch import Batch
from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    CHOOSE,
    DEFERS,
    DONE,
    EARLIEST,
    ENTRY,
    FIRED,
    INSTANT,
    KEPT_FROM,
    LAST,
    LISTED,
    LOWEST,
    NEVER,
    NEXT_NODE,
    OUTPUT_FULL,
    PART,
    READ,
    ROW,
    SHIFT,
    TOO_MUCH_WORK,
    keeping_rows,
    new_memory,
    oldest_entry,
)
from celc_runtime.engine.definition.instants import (
    InstantRows,
    instant_rows,
    write_symbols,
)
from celc_runtime.engine.walk.collected_matches import keep_matches
from celc_runtime.engine.walk.listing import Output, with_more_room
from celc_runtime.plan.errors import EventWarning, WorkLimitError
from celc_runtime.program import Program
from celc_runtime.run.choice.deadlines import Deadlines, undecided_words
from celc_runtime.run.choice.per_start import StartChoice
from celc_runtime.run.past.history import measured
from celc_runtime.run.source.positions import GivenPositions, Positions
from celc_runtime.run.source.stretches import Behind, Stretches, begins_inside, positions_at
from celc_runtime.run.update.updates import ASKS_UPDATE, update_of
from celc_runtime.run.walk.by_definition import DefinitionListing
from celc_runtime.run.walk.listing_of import instants_of_program, kinds_of, listing_of
from celc_runtime.run.walk.listings import ListingOfRun
from celc_runtime.run.walk.many_matches import ManyMatches


class Run:
    """Feeds batches to a query and hands out its matches; all state between batches is in here.

    Events come in the order of the stream; with PARTITION BY (unless partitions interleave, as
    CONSUME BY ANY needs) all events of a partition come one after another. `first_node` lets tests
    begin near the limits of smaller numbers. `first_position`: the position of the first event;
    `continues`: its partition was entered before. `numbered`: the column with the numbers of the
    rows, for messages, where rows are not in their original order. `clock`, `since`: for matches
    that are decided later than they end (`Deadlines`).
    """

    def __init__(
        self,
        program: Program,
        *,
        ties_are_errors: bool = False,
        first_node: int = 1,
        first_position: int = 0,
        continues: bool = False,
        numbered: str | None = None,
        clock: int | None = None,
        since: int | None = None,
    ) -> None:
        plan = program.plan
        assert plan.parameters is None, "rows of a table are run as pairs"
        self._program = program
        self._plan = plan
        self._schema = program.match_schema
        self._columns = Columns(
            plan,
            ties_are_errors=ties_are_errors,
            continues=continues,
            numbered=numbered,
            batches_wait=bool(plan.deadlines),
        )
        self._instants = instants_of_program(program)
        self._whole = None if plan.ties is None else WholeInstants(plan)
        self._update = update_of(program, first_position=first_position)
        self._listing = self._new_listing(program)
        self._memory = new_memory(self._update.piles, first_node=first_node)
        self._memory.counters[SHIFT] = -first_position
        self._deadlines: Deadlines | None = None
        history = self._listing.history
        self._update.remember(history)
        if plan.deadlines and history is not None:  # a formula without matches remembers nothing
            self._deadlines = Deadlines(
                program, history, first_position=first_position, clock=clock, since=since
            )
            self._listing.judge = self._deadlines.judge
        self._many = ManyMatches(plan, self._listing)
        self._lists_matches = True
        self.lists_matches = True
        self._stretches: Prepared | None = None
        self._silent: np.ndarray | None = None
        self._last_ends = np.zeros(0, np.int64)
        # Without places in the tables, matches start and end at events of their own.
        self._instant_rows: InstantRows | None = None
        self._bounds = plan.ties is not None and self._instants is None
        stored = plan.stored_attributes
        self._events = EventStore((*stored, INSTANT_POSITION) if self._bounds else stored)
        self._kinds = kinds_of(plan, self._listing)
        self._output = self._listing.buffers(plan.limit)
        self._choice: StartChoice | None = None
        if plan.per_start is not None:
            self._choice = StartChoice(plan.per_start, plan.window)
        self.dropped = 0

    @property
    def lists_matches(self) -> bool:
        """Whether the matches that end in a batch are handed out, or its events only read; may be
        changed between batches, where no instant waits (`end_of_instant`)."""
        return self._lists_matches

    @lists_matches.setter
    def lists_matches(self, wanted: bool) -> None:
        self._lists_matches = wanted
        self._memory.counters[DEFERS] = int(self._listing.defers or not wanted)

    @property
    def counts_undeclared(self) -> bool:
        """Whether rows of undeclared types are counted in the warning of `finish`; may be changed
        between batches."""
        return self._columns.counts_undeclared

    @counts_undeclared.setter
    def counts_undeclared(self, wanted: bool) -> None:
        self._columns.counts_undeclared = wanted

    @property
    def arena_bytes(self) -> int:
        """The size of the node arena, the notes of the cells that begin matches included."""
        memory = self._memory
        return int(memory.nodes.nbytes + memory.leaves.nbytes + memory.leaf_marks.nbytes)

    @property
    def buffer_bytes(self) -> int:
        """The size of the buffers for matches, and of the working memory of the kernels."""
        memory = self._memory
        buffers = (*self._output, memory.stack, memory.path, memory.trail, memory.fires)
        kept = self._listing.nbytes + self._update.nbytes
        kept += 0 if self._deadlines is None else self._deadlines.nbytes
        return int(sum(buffer.nbytes for buffer in buffers)) + kept

    @property
    def stored_events(self) -> int:
        """How many past events are kept for output; events of a batch being read do not count."""
        return self._events.rows

    @property
    def undecided(self) -> int:
        """How many matches were left undecided so far; at the end of a run, of all."""
        return 0 if self._deadlines is None else self._deadlines.undecided

    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the matches that end in it, in batches of bounded size.

        positions: int64[rows], of the rows in their partitions, where rows that cannot matter have
        been left out; None: all rows come, and are counted. absent: bool[rows], rows without values
        that only count, whatever their type; not where simultaneous events have no order. Raises
        EventError where the events do not fit the query. Where simultaneous events have no order,
        the last instant waits for the next batch, or for `rest`.
        """
        yield from self._pushed(events, positions, absent)

    def _pushed(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        most = self._listing.most_rows
        if most is not None and len(events) > most:
            for start in range(0, len(events), most):
                part = slice(start, start + most)
                of_part = (None if rows is None else rows[part] for rows in (positions, absent))
                yield from self._pushed(events.slice(start, most), *of_part)
        elif self._whole is None:
            yield from self._push(events, positions, absent)
        else:
            events = self._columns.conforming(events, self._whole.rows)
            for whole, given in self._whole.of(events, positions):
                yield from self._push(whole, given, conforms=True)

    @property
    def most_rows(self) -> int | None:
        """How many rows are read at a time; None: any number."""
        return self._listing.most_rows

    def push_parts(
        self, events: pa.RecordBatch, codes: np.ndarray, parts: np.ndarray, positions: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """Read whole partitions, whose events conform and are in order; yields the matches that end
        in them.

        codes: int32[rows], the places of their types in `plan.declared_types`; parts: int64, the
        rows at which partitions begin; positions as `push` takes them.
        """
        yield from self._pushed_parts(events, codes, parts, positions)

    def _pushed_parts(
        self, events: pa.RecordBatch, codes: np.ndarray, parts: np.ndarray, positions: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        most = self._listing.most_rows
        if most is not None and len(events) > most:
            yield from self._pushed(events, positions)
            return
        none_absent = np.zeros(len(events), np.bool_)
        prepared = self._columns.prepare_stretches(events, codes, parts.tolist(), none_absent)
        self._classify(prepared)
        of_rows = GivenPositions(prepared, positions)
        self._listing.look(prepared, of_rows)
        yield from self._looked_at(prepared, of_rows)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The matches that wait for more events, of which there are none: those that end in an
        instant that is not over, those with an absence at their end, and those that later matches
        could have taken the place of."""
        yield from self._rest()

    def _rest(self) -> Iterator[pa.RecordBatch]:
        yield from self._end_of_instant()
        if self._deadlines is not None:
            yield from self._ripe(is_over=True)
            yield from self._deadlines.rest()
        if self._choice is not None:
            yield from self._choice.rest()

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        """The matches that end in an instant which waits for more events: there are none of it."""
        yield from self._end_of_instant()

    def _end_of_instant(self) -> Iterator[pa.RecordBatch]:
        if self._whole is not None:
            for events, positions in self._whole.rest():
                yield from self._push(events, positions, conforms=True)

    def _push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None,
        absent: np.ndarray | None = None,
        *,
        conforms: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events, of whole instants where these matter."""
        prepared = self._columns.prepare(events, conforms=conforms)
        self.dropped += prepared.dropped
        rows = len(prepared.events)
        if not rows:
            return
        self._classify(prepared)
        if absent is not None:
            known = prepared.known
            prepared.batch.symbols[absent if known is None else absent[known]] = 0
        of_rows = self._positions(prepared, positions)
        self._listing.look(prepared, of_rows)
        yield from self._looked_at(prepared, of_rows)

    def _looked_at(self, prepared: Prepared, of_rows: Positions) -> Iterator[pa.RecordBatch]:
        """Read a batch that the listing has looked at, or let it wait for its deadlines."""
        if self._deadlines is None:
            yield from self._read_batch(prepared, of_rows)
        else:
            lists = self._lists_matches
            self._deadlines.wait(prepared, of_rows, self._instant_rows, lists_matches=lists)
            yield from self._ripe()

    def _positions(self, prepared: Prepared, given: np.ndarray | None) -> Positions:
        if given is not None:
            if self._plan.interleaves:
                # Makes room for partitions that have not been seen.
                self._update.positions(prepared, self._memory, self._columns.partitions_seen)
            known = prepared.known
            return GivenPositions(prepared, given if known is None else given[known])
        if self._deadlines is not None:
            return self._deadlines.positions(prepared)
        return self._update.positions(prepared, self._memory, self._columns.partitions_seen)

    def _ripe(self, *, is_over: bool = False) -> Iterator[pa.RecordBatch]:
        """The matches of the batches that need not wait any longer."""
        assert self._deadlines is not None
        lists_matches = self._lists_matches
        for batch in self._deadlines.ripe(is_over=is_over):
            self._instant_rows, self.lists_matches = batch.instant_rows, batch.lists_matches
            yield from self._read_batch(batch.prepared, batch.positions)
        self.lists_matches = lists_matches

    def _read_batch(self, prepared: Prepared, of_rows: Positions) -> Iterator[pa.RecordBatch]:
        rows = len(prepared.events)
        prepared = self._enter(prepared, of_rows)
        yield from self._listed(prepared, of_rows)
        if self._choice is not None:
            yield from self._choice.known(self._oldest_entry())
        self._update.leave(prepared.batch)
        self._listing.leave(
            partial(self._update.floors_behind, prepared, of_rows), self._oldest_entry
        )
        self._events.leave(self._oldest_entry(), int(self._memory.counters[ENTRY]))
        self._leave_batch(prepared, rows)

    def push_stretches(self, stretches: Stretches) -> Iterator[pa.RecordBatch]:
        """Read stretches of partitions, the only events of this run; yields the matches that end in
        rows that are not silent. `behind` then tells what later events need to know.

        Raises EventError where a value cannot be measured by the window.
        """
        prepared = self._columns.prepare_stretches(
            stretches.events, stretches.codes, stretches.starts.tolist(), stretches.absent
        )
        self._classify(prepared)
        prepared.batch.symbols[stretches.absent] = 0
        if self._update.has_contexts:
            prepared.batch = prepared.batch._replace(contexts=stretches.contexts)
        positions = GivenPositions(prepared, stretches.positions)
        self._listing.look(prepared, positions)
        self._listing.for_each_start()
        prepared = self._enter(prepared, positions)
        self._last_ends = np.full(len(stretches.starts), -1, np.int64)
        self._stretches = prepared
        if self._choice is not None:
            # A match that ends in a silent row may be known only now.
            entries = np.flatnonzero(prepared.batch.symbols)
            yield from self._listed(prepared, positions)
            yield from self._choice.of_stretches(stretches, prepared.batch, entries)
            return
        self._silent = stretches.silent
        if self._deadlines is not None:
            self._silent = self._deadlines.silent(self._deadline_keys(stretches), stretches.silent)
        self._memory.counters[DEFERS] = 1  # matches that end in silent rows are sorted out first
        yield from self._listed(prepared, positions)

    def behind(self, stretches: Stretches) -> Behind:
        """What later events need to know of the stretches that have been pushed."""
        prepared = self._stretches
        assert prepared is not None
        plan, batch, starts = self._plan, prepared.batch, stretches.starts
        matters = batch.symbols != 0
        ends = np.append(starts[1:], len(matters)) - 1
        lengths = ends + 1 - starts
        consumed = (self._last_ends >= 0) & (plan.consume_by != "NONE")
        begins = np.where(consumed, self._last_ends + 1, starts)
        # Selectors compare matches with all that were before them.
        is_bounded = not self._program.sees_all
        if plan.one_event and is_bounded:
            behind = self._reached(self._waited_for(ends + 1, stretches), stretches)
            begins = np.maximum(begins, behind)
        elif plan.window is not None and is_bounded:
            in_window = begins_inside(plan.window, batch, stretches)
            in_window = self._waited_for(in_window, stretches)
            begins = np.maximum(begins, self._reached(in_window, stretches))
        rows = np.arange(len(matters))
        matters &= rows >= np.repeat(begins, lengths)
        if self._instant_rows is not None:
            # Later matches start where an instant starts; and what is left out between two rows is
            # left out between two instants.
            found = np.flatnonzero(matters)
            matters[self._instant_rows.first(found)] = True
            matters[self._instant_rows.last(found)] = True
        contexts, behind = self._update.contexts_before(
            batch.symbols, starts, stretches.contexts, self._last_ends + 1, consumed
        )
        firsts = positions_at(begins, stretches)
        return Behind(matters, firsts, contexts, behind, batch.keys)

    def _waited_for(self, begins: np.ndarray, stretches: Stretches) -> np.ndarray:
        """int64[parts]: the first row of each stretch that matters to matches which begin at the
        rows `begins` or later, or are not decided yet."""
        if self._deadlines is None:
            return begins
        starts = stretches.starts
        undecided = self._deadlines.waiting(self._deadline_keys(stretches))
        rows = np.where(undecided, np.arange(len(undecided)), len(undecided))
        first = np.minimum.reduceat(rows, starts)
        if self._plan.window is not None:
            waiting = first < len(undecided)
            ends = np.where(waiting, first, starts)
            assert self._stretches is not None
            batch = self._stretches.batch
            of_waiting = begins_inside(self._plan.window, batch, stretches, ends)
            first = np.where(waiting, of_waiting, len(undecided))
        found: np.ndarray = np.minimum(begins, first)
        return found

    def _deadline_keys(self, stretches: Stretches) -> list[np.ndarray]:
        """For each deadline int64[rows]: the keys of the events of stretches."""
        assert self._stretches is not None
        windows = measured(self._plan, self._stretches.events, stretches.positions)
        return [windows[deadline.window][0] for deadline in self._plan.deadlines]

    def _reached(self, begins: np.ndarray, stretches: Stretches) -> np.ndarray:
        """int64[parts]: the first row of each stretch that matters to matches which begin at the
        rows `begins` or later."""
        plan, prepared, starts = self._plan, self._stretches, stretches.starts
        if not plan.reaches:
            return begins
        assert prepared is not None
        windows = measured(plan, prepared.events, stretches.positions)
        rows = len(stretches.positions)
        ends = np.append(starts[1:], rows) - 1
        found = begins
        for hops in plan.reaches:
            at = begins
            for number in hops:
                keys, floors = windows[number]
                # Behind the last row nothing reaches farther back than from it.
                floor = np.repeat(floors[np.minimum(at, ends)], ends + 1 - starts)
                at = starts + np.add.reduceat((keys < floor).astype(np.int64), starts)
            found = np.minimum(found, at)
        return found

    def _classify(self, prepared: Prepared) -> None:
        """Find the symbols of a batch, and what the update needs to know of its instants."""
        self._instant_rows = None
        symbols = prepared.batch.symbols
        self._program.classify(*self._columns.arguments(prepared.events), symbols)
        if self._instants is not None:
            write_symbols(self._instants.symbols, prepared.instants, symbols)
        elif len(prepared.instants):
            self._instant_rows = instant_rows(prepared.instants)
            prepared.batch = prepared.batch._replace(instants=self._instant_rows.numbers)

    def _enter(self, prepared: Prepared, positions: Positions) -> Prepared:
        """Begin a classified batch: the stored events, the listing and the update take it in."""
        counters = self._memory.counters
        counters[ROW] = counters[PART] = counters[READ] = 0
        self._many.enter()
        self._events.enter(
            prepared.events,
            prepared.batch,
            positions.of,
            int(counters[ENTRY]),
            self._instant_rows,
            self._kept_rows(prepared.batch),
        )
        prepared = self._listing.enter(prepared, positions, self._memory)
        return self._update.enter(prepared, self._memory)

    def _kept_rows(self, batch: Batch) -> np.ndarray | None:
        """Where the update leaves the rows that matter, so that output need not search for them
        again; None: it does not, or no output will ask."""
        self._memory.counters[KEPT_FROM] = -1
        lists = self._lists_matches and self._output.limit[0] != 0
        if not (lists and self._update.writes_rows) or self._listing.reads_alone:
            return None
        # Counting words is faster. Memory for all rows would cost more to ask for than to use.
        found = np.count_nonzero(batch.words) * 8 or np.count_nonzero(batch.symbols)
        self._memory = keeping_rows(self._memory, min(int(found), len(batch.symbols)))
        return self._memory.relevant

    def _listed(self, prepared: Prepared, positions: Positions) -> Iterator[pa.RecordBatch]:
        if self._listing.reads_alone:
            yield from self._listed_alone(prepared)
            return
        for _ in self._advance(prepared, positions):
            if self._output.used[0]:
                self._many.look(self._memory, self._output, self._kinds, positions.of)
                yield from self._take(prepared)

    def _listed_alone(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        """The matches that the listing finds without the update."""
        memory = self._memory
        memory.counters[ENTRY] += int(np.count_nonzero(prepared.batch.symbols))
        while self._listing.choose(memory, self._output, self._kinds) != DONE:
            if self._output.used[0]:
                yield from self._take(prepared)
            else:
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
        if self._output.used[0]:
            yield from self._take(prepared)

    def finish(self) -> None:
        """Warn once of rows of undeclared types; call it at the end of a run."""
        undeclared, plan = self._columns.undeclared, self._plan
        if self.undecided:
            warnings.warn(undecided_words(plan, self.undecided), EventWarning, stacklevel=3)
        if undeclared.total:
            warnings.warn(undeclared.told(plan), EventWarning, stacklevel=3)

    def _new_listing(self, program: Program) -> ListingOfRun:
        """The listing of a program."""
        return listing_of(program, self._instants, with_letters=self._update.has_contexts)

    # --- the loop around the kernel ---------------------------------------------------------------

    def _advance(self, prepared: Prepared, positions: Positions) -> Iterator[None]:
        """Run the kernel to the end of the batch; yields whenever the matches must be taken."""
        batch, update, listing = prepared.batch, self._update, self._listing
        rows = len(batch.symbols)
        status = self._read(batch)
        while status != DONE or self._memory.counters[ROW] < rows:
            if status == OUTPUT_FULL and not self._output.used[0]:
                # A single match is longer than the buffers.
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
            elif status == OUTPUT_FULL:
                yield
            elif status == TOO_MUCH_WORK:
                raise self._out_of_work(positions)
            elif status in ASKS_UPDATE:
                self._memory = update.with_room(status, self._memory)
            elif status not in (DONE, CHOOSE):
                self._memory = listing.with_room(status, self._memory)
            if self._memory.counters[FIRED] and not self._lists_matches:
                self._memory.counters[FIRED] = self._memory.counters[LISTED] = 0
                status = DONE
            elif self._memory.counters[FIRED]:
                status = listing.choose(self._memory, self._output, self._kinds)
            else:
                status = self._read(batch)
        yield

    def _read(self, batch: Batch) -> int:
        """Let the update read on. Where rows are silent, no event waits behind it that is one."""
        memory = self._memory
        if self._silent is None:
            return self._update.read(batch, memory, self._output, self._kinds)
        memory.counters[DEFERS] = 1
        status = self._update.read(batch, memory, self._output, self._kinds)
        fires = memory.fires[: memory.counters[FIRED]]
        heard = fires[~self._silent[fires[:, 1]]]
        fires[: len(heard)] = heard
        memory.counters[FIRED] = len(heard)
        memory.counters[DEFERS] = int(self._listing.defers)
        return DONE if status == CHOOSE and not len(heard) else status

    def _out_of_work(self, positions: Positions) -> WorkLimitError:
        counters, fires = self._memory.counters, self._memory.fires
        position = int(positions.of(fires[counters[LISTED] - 1, 1:2])[0])
        return WorkLimitError(
            f"query {self._plan.name!r}: looking for the matches that end at position "
            f"{position:,} takes more than {self._plan.max_work:,} steps; give "
            "it a (smaller) window with WITHIN, conditions that fewer events satisfy or that "
            "compare fewer events, or raise the limit: --max-work, with_options(max_work=…)"
        )

    # --- output -----------------------------------------------------------------------------------

    def _take(self, prepared: Prepared) -> Iterator[pa.RecordBatch]:
        """Take the matches out of the buffers, and hand them out or to the choice by starts."""
        found = self._entries()
        numbers = self._listing.deadlines(self._output)
        if self._choice is not None:
            keep_matches(self._output, self._choice.candidates(found.starts, found.ends))
            if not self._output.used[0]:
                return
            found = self._entries()
            numbers = numbers[: self._output.used[0]]  # a choice by starts leaves none of them late
        batch = self._batch(self._output, found, numbers, prepared)
        if self._deadlines is not None:
            rows = self._output.rows[: self._output.used[0]]
            entries = found.starts, found.ends
            are_judged = isinstance(self._listing, DefinitionListing)
            batch = self._deadlines.decided(batch, rows, entries, numbers, are_judged=are_judged)
        if len(self._last_ends):
            rows = self._output.rows[: self._output.used[0]]
            parts = np.searchsorted(prepared.parts, rows, side="right") - 1
            np.maximum.at(self._last_ends, parts, rows)
        self._output.used[:] = 0
        if self._choice is None:
            if len(batch):  # deadlines may have left none
                yield batch
        else:
            self._choice.add(batch, found.starts, found.ends)

    def _matches(self, output: Output, prepared: Prepared) -> pa.RecordBatch:
        """Matches as a batch, out of buffers that hold what the listing of this run lists."""
        found = self._listing.entries(self._plan.label_names, output, self._kinds)
        return self._batch(output, found, self._listing.deadlines(output), prepared)

    def _batch(
        self, output: Output, found: LabelEntries, numbers: np.ndarray, prepared: Prepared
    ) -> pa.RecordBatch:
        return matches_batch(
            self._plan,
            self._schema,
            output,
            found,
            prepared.events,
            self._events,
            int(self._memory.counters[ENTRY]),
            numbers,
            self._bounds,
            None if self._plan.begin is None else self._listing.begins(found.starts),
        )

    def _entries(self) -> LabelEntries:
        return self._listing.entries(self._plan.label_names, self._output, self._kinds)

    def _oldest_entry(self) -> int:
        """The first stored event that a later match can refer to."""
        if self._listing.reads_alone:
            return self._listing.oldest()
        if self._plan.one_event:
            return int(self._memory.counters[ENTRY])
        earliest = self._update.earliest_start(self._memory)
        return int(oldest_entry(self._memory, self._plan.kind_bits, earliest))

    def _leave_batch(self, prepared: Prepared, rows: int) -> None:
        """Enter the partitions without relevant events, and let the next batch begin with row 0."""
        counters = self._memory.counters
        if counters[PART] < len(prepared.parts):
            counters[SHIFT] = prepared.parts[-1]
            counters[LOWEST] = counters[NEXT_NODE]
            counters[EARLIEST] = ALWAYS
            self._memory.heads[1:] = NEVER
            self._update.forget_partition()
        counters[SHIFT] -= rows
        counters[LAST] -= rows
        instants = prepared.batch.instants
        counters[INSTANT] -= instants[-1] + 1 if len(instants) else rows

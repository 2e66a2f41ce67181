"""One run of a query over a stream of batches: the loop around the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.engine.arena.batch import Batch
from celc_runtime.engine.arena.nodes import (
    ALWAYS,
    BLOCK,
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
from celc_runtime.engine.walk.listing import with_more_room
from celc_runtime.plan.errors import WorkLimitError
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import AnswerOfRun
from celc_runtime.run.behind import behind_stretches
from celc_runtime.run.choice.choices import ChoiceOfRun
from celc_runtime.run.function_errors import naming_functions
from celc_runtime.run.seen import Seen, warn_at_the_end
from celc_runtime.run.source.event_source import EventSource, Reading
from celc_runtime.run.source.positions import Positions
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.source.stretches import Behind, Stretches
from celc_runtime.run.update.updates import ASKS_UPDATE, UpdateOfRun
from celc_runtime.run.walk.listed import Listed, kinds_of
from celc_runtime.run.walk.many_matches import ManyMatches
from celc_runtime.run.walk.walks import WalkOfRun, buffers_for


class Run:
    """Feeds batches to a query and returns its answer; it holds all state between batches.

    The loop is the same for all queries. Five parts differ, which `run_of` chooses. The source
    takes in events. The update changes the partial matches. The walk finds the matches that end.
    The choice decides which of them stay, and when that is known. The answer makes rows of those.
    The run owns the arena and the buffers that they share.

    Events come in the order of the stream. With PARTITION BY, all events of a partition come one
    after another (unless partitions interleave, as CONSUME BY ANY needs).
    """

    def __init__(
        self,
        program: Program,
        source: EventSource,
        update: UpdateOfRun,
        walk: WalkOfRun,
        choice: ChoiceOfRun,
        answer: AnswerOfRun,
        options: RunOptions,
    ) -> None:
        self._program = program
        self._plan = program.plan
        self._source = source
        self.undeclared = source.undeclared
        self._odd = source.odd
        self._update = update
        self._walk = walk
        self._choice = choice
        self._answer = answer
        self._rows_left = -1 if options.rows is None else options.rows  # −1: never 0
        self._memory = new_memory(update.piles, size=options.nodes, first_node=options.first_node)
        self._memory.counters[SHIFT] = -options.first_position
        self._kinds = kinds_of(program, walk)
        self._output = buffers_for(walk, program.plan.choice.limit, options.rows)
        self._many = ManyMatches(program.plan, walk)
        self._lists_matches = True
        self.lists_matches = True
        # For stretches: what was read, where no match is listed, and where the last match ends.
        self._stretches: Reading | None = None
        self._silent: np.ndarray | None = None
        self._last_ends = np.zeros(0, np.int64)

    @property
    def lists_matches(self) -> bool:
        """Whether the matches that end in a batch are returned, or its events are only read.

        It may change between batches, while no instant waits (`end_of_instant`).
        """
        return self._lists_matches

    @lists_matches.setter
    def lists_matches(self, wanted: bool) -> None:
        self._lists_matches = self._walk.hands_out = wanted
        self._memory.counters[DEFERS] = int(self._walk.defers or not wanted)

    @property
    def arena_bytes(self) -> int:
        """The bytes of the node arena, with the leaves."""
        memory = self._memory
        return int(memory.nodes.nbytes + memory.leaves.nbytes + memory.leaf_marks.nbytes)

    @property
    def buffer_bytes(self) -> int:
        """The bytes of the buffers for matches, of the kernels' working memory, and of the
        parts."""
        memory = self._memory
        buffers = (*self._output, memory.stack, memory.path, memory.trail, memory.fires)
        parts = (self._walk, self._update, self._choice, self._answer)
        return int(sum(one.nbytes for one in (*buffers, *parts)))

    @property
    def stored_events(self) -> int:
        """The number of past events kept for output, without those of the batch being read."""
        return self._answer.stored_events

    @property
    def undecided(self) -> int:
        return self._choice.undecided

    @property
    def seen(self) -> Seen:
        """What `finish` warns of."""
        return Seen(self.undecided, self.undeclared, self._odd)

    @property
    def most_rows(self) -> int | None:
        """The most rows to read at a time; None: any number."""
        return self._walk.most_rows

    # --- events -----------------------------------------------------------------------------------

    @naming_functions
    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the rows that are known, in batches of bounded size.

        positions: int64[rows], the positions of the rows in their partitions, if rows that cannot
        matter were left out; None: all rows come, and are counted. absent: bool[rows], rows without
        values that only count, whatever their type; not allowed if simultaneous events have no
        order. In that case the last instant waits for the next batch, or for `rest`. Raises
        EventError if the events do not fit the query.
        """
        for reading in self._source.batches(events, positions, absent, self._walk.most_rows):
            yield from self._arrived(reading)
        yield from self._answer.known()

    @naming_functions
    def push_parts(
        self, events: pa.RecordBatch, codes: np.ndarray, parts: np.ndarray, positions: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """Read whole partitions of conforming, sorted events; yields the rows that are known.

        codes: int32[rows], the places of their types in `declared_types`. parts: int64, the first
        rows of partitions. positions: as for `push`.
        """
        most = self._walk.most_rows
        if most is not None and len(events) > most:
            yield from self.push(events, positions)
            return
        yield from self._arrived(self._source.parts(events, codes, parts, positions))
        yield from self._answer.known()

    @naming_functions
    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        for reading in self._source.rest():
            yield from self._arrived(reading)
        yield from self._answer.known()

    def turn(self, *, is_own: bool) -> Iterator[pa.RecordBatch]:
        """The next rows are, or are not, the own ones of the part of a table that this run reads:
        matches that end in others are not listed, and nothing in them counts for warnings. Yields
        the rows of the instant that waits."""
        yield from self.end_of_instant()
        self.lists_matches = self.undeclared.counts = self._odd.counts = is_own

    @naming_functions
    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows that still wait at the end of the input.

        These are matches that end in the last instant, matches with an absence at their end, and
        matches that later ones could have replaced.
        """
        yield from self.end_of_instant()
        yield from self._read_all(self._choice.over())
        for rows in chain(self._walk.rest(), self._choice.rest()):
            yield from self._answer.add(rows, None)
        yield from self._answer.rest()

    def finish(self) -> None:
        warn_at_the_end(self._plan, self.undecided, self.undeclared, self._odd)

    # --- stretches --------------------------------------------------------------------------------

    @naming_functions
    def push_stretches(self, stretches: Stretches) -> Iterator[pa.RecordBatch]:
        """Read stretches of partitions, the only events of this run.

        Yields the rows of matches that end in rows that are not silent. Afterwards `behind` tells
        what later events need to know. Raises EventError if the window cannot measure a value.
        """
        prepared, positions = self._source.stretches(stretches)
        self._answer.resume(stretches)
        if self._update.has_contexts:
            prepared.batch = prepared.batch._replace(contexts=stretches.contexts)
        self._walk.look(prepared, positions)
        self._silent = self._choice.silent(stretches, prepared.events)
        self._walk.of_stretches(self._silent)
        self._stretches = reading = self._enter(Reading(prepared, positions))
        self._last_ends = np.full(len(stretches.starts), -1, np.int64)
        if self._silent is not None:
            self._memory.counters[DEFERS] = 1  # matches that end in silent rows are dropped
        yield from self._listed(reading)
        for rows in self._choice.of_stretches(stretches, reading.prepared):
            yield from self._answer.add(rows, None)
        yield from self._answer.rest()

    def behind(self, stretches: Stretches) -> Behind:
        """What later events need to know of the stretches that have been pushed."""
        assert self._stretches is not None
        prepared = self._stretches.prepared
        return behind_stretches(
            self._program,
            self._update,
            stretches,
            prepared,
            last_ends=self._last_ends,
            undecided=self._choice.undecided_ends(stretches, prepared.events),
        )

    # --- batches ----------------------------------------------------------------------------------

    def _arrived(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        """Read a batch, or let it wait until the choice releases it."""
        self._walk.look(*reading)
        yield from self._read_all(self._choice.arrived(reading, lists=self._lists_matches))

    def _read_all(self, readings: Iterable[tuple[Reading, bool]]) -> Iterator[pa.RecordBatch]:
        """Read batches, each with whether its matches are returned."""
        lists_matches = self._lists_matches
        for reading, lists in readings:
            self.lists_matches = lists
            yield from self._read_batch(reading)
        self.lists_matches = lists_matches

    def _read_batch(self, reading: Reading) -> Iterator[pa.RecordBatch]:
        reading = self._enter(reading)
        yield from self._listed(reading)
        for rows in self._choice.known(self._oldest_start):
            yield from self._answer.add(rows, None)
        prepared, positions = reading
        if self._was_last(prepared):
            return
        self._update.leave(prepared.batch)
        self._walk.leave(
            partial(self._update.floors_behind, prepared, positions), self._oldest_entry
        )
        self._answer.store.leave(self._oldest_entry(), int(self._memory.counters[ENTRY]))
        self._leave_batch(reading)

    def _was_last(self, prepared: Prepared) -> bool:
        """Count the rows of a batch that was read: whether nothing more is asked of this run."""
        self._rows_left -= len(prepared.events if prepared.known is None else prepared.known)
        waits = self._walk.reads_alone or bool(self._plan.choice.deadlines)
        return not (self._rows_left or waits)

    def _enter(self, reading: Reading) -> Reading:
        """Begin a classified batch: answer, walk and update take it in."""
        counters, prepared = self._memory.counters, reading.prepared
        counters[ROW] = counters[PART] = counters[READ] = 0
        self._many.enter()
        self._answer.enter(reading, int(counters[ENTRY]), self._kept_rows(prepared.batch))
        prepared = self._walk.enter(prepared, reading.positions, self._memory)
        return Reading(self._update.enter(prepared, self._memory), reading.positions)

    def _kept_rows(self, batch: Batch) -> np.ndarray | None:
        """Where the update leaves the relevant rows, so that the output need not search for them.

        None: the update does not write them, or the output does not need them.
        """
        self._memory.counters[KEPT_FROM] = -1
        lists = self._lists_matches and self._output.limit[0] != 0
        if not (lists and self._update.writes_rows) or self._walk.reads_alone:
            return None
        found = len(batch.symbols)
        if found > BLOCK:
            # Counting words is faster. Reserving memory for all rows would cost more than it saves.
            some = np.count_nonzero(batch.words) * 8 or np.count_nonzero(batch.symbols)
            found = min(int(some), found)
        self._memory = keeping_rows(self._memory, found)
        return self._memory.relevant

    def _oldest_entry(self) -> int:
        """The first stored event that a later match can refer to."""
        if self._walk.reads_alone:
            return self._walk.oldest()
        if self._plan.matching.one_event:
            return int(self._memory.counters[ENTRY])
        earliest = self._update.earliest_start(self._memory)
        return int(oldest_entry(self._memory, self._plan.matching.kind_bits, earliest))

    def _oldest_start(self) -> int:
        """The same as the start of a match: of events that last, all of one instant are one."""
        oldest = self._oldest_entry()
        if oldest >= int(self._memory.counters[ENTRY]):
            return oldest
        return int(self._walk.instant_of(np.array([oldest]))[0])

    def _leave_batch(self, reading: Reading) -> None:
        """Enter the partitions without relevant events. The next batch begins with row 0."""
        counters, prepared = self._memory.counters, reading.prepared
        rows = len(prepared.events)
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

    # --- matches ----------------------------------------------------------------------------------

    def _listed(self, reading: Reading, status: int | None = None) -> Iterator[pa.RecordBatch]:
        """Read a batch that has been entered (status: it has been read, as far as that); yields the
        rows that are known."""
        alone, batch = self._walk.reads_alone, reading.prepared.batch
        for _ in self._found_alone(batch) if alone else self._advance(reading, status):
            if not alone:
                self._many.look(self._memory, self._output, self._kinds, reading.positions.of)
            yield from self._take(self._buffers(reading))
        yield from self._answer.close(reading, int(self._memory.counters[ENTRY]))

    def _take(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        """Remove the matches from the buffers."""
        self._choice.narrow(listed)
        if not listed.count:
            return
        if len(self._last_ends):
            parts = np.searchsorted(listed.prepared.parts, listed.rows, side="right") - 1
            np.maximum.at(self._last_ends, parts, listed.rows)
        for rows in self._answer.rows(listed):
            for known in self._choice.take(rows, listed):
                yield from self._answer.add(known, listed)
        self._output.used[:] = 0

    def _buffers(self, reading: Reading) -> Listed:
        plan, walk = self._plan, self._walk
        return Listed(walk, plan, self._output, self._kinds, self._memory, reading.prepared)

    def _found_alone(self, batch: Batch) -> Iterator[None]:
        """Let the walk find matches without the update; yields when they must be removed."""
        memory = self._memory
        memory.counters[ENTRY] += int(np.count_nonzero(batch.symbols))
        while self._walk.choose(memory, self._output, self._kinds) != DONE:
            if self._output.used[0]:
                yield
                self._output = self._walk.longer(self._output)
            else:
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
        if self._output.used[0]:
            yield

    def _advance(self, reading: Reading, status: int | None = None) -> Iterator[None]:
        """Run update and walk to the end of the batch; yields when matches must be removed."""
        batch, update, walk = reading.prepared.batch, self._update, self._walk
        status = self._read(batch) if status is None else status
        while status != DONE or self._memory.counters[ROW] < len(batch.symbols):
            if status == OUTPUT_FULL and not self._output.used[0]:
                # A single match is longer than the buffers.
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
            elif status == OUTPUT_FULL:
                yield
                self._output = self._walk.longer(self._output)
            elif status == TOO_MUCH_WORK:
                raise self._out_of_work(reading.positions)
            elif status in ASKS_UPDATE:
                self._memory = update.with_room(status, self._memory)
            elif status not in (DONE, CHOOSE):
                self._memory = walk.with_room(status, self._memory)
            if self._memory.counters[FIRED] and not self._lists_matches:
                self._memory.counters[FIRED] = self._memory.counters[LISTED] = 0
                status = DONE
            elif self._memory.counters[FIRED]:
                status = walk.choose(self._memory, self._output, self._kinds)
            else:
                status = self._read(batch)
        yield from self._let_go(reading)
        if self._output.used[0]:
            yield

    def _let_go(self, reading: Reading) -> Iterator[None]:
        """List the matches that the walk still holds; yields when matches must be removed."""
        while self._walk.holds:
            status = self._walk.let_go(self._memory, self._output, self._kinds)
            if status == OUTPUT_FULL and not self._output.used[0]:
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
            elif status == OUTPUT_FULL:
                yield
                self._output = self._walk.longer(self._output)
            elif status == TOO_MUCH_WORK:
                raise self._out_of_work(reading.positions)

    def _read(self, batch: Batch) -> int:
        """Let the update read on. If rows are silent, no event waits that is in a later row."""
        memory = self._memory
        if self._silent is None:
            return self._update.read(batch, memory, self._output, self._kinds)
        memory.counters[DEFERS] = 1
        status = self._update.read(batch, memory, self._output, self._kinds)
        fires = memory.fires[: memory.counters[FIRED]]
        heard = fires[~self._silent[fires[:, 1]]]
        fires[: len(heard)] = heard
        memory.counters[FIRED] = len(heard)
        memory.counters[DEFERS] = int(self._walk.defers)
        return DONE if status == CHOOSE and not len(heard) else status

    def _out_of_work(self, positions: Positions) -> WorkLimitError:
        counters, fires = self._memory.counters, self._memory.fires
        position = int(positions.of(fires[counters[LISTED] - 1, 1:2])[0])
        return WorkLimitError(
            f"query {self._plan.name!r}: looking for the matches that end at position "
            f"{position:,} takes more than {self._plan.choice.max_work:,} steps; give "
            "it a (smaller) window with WITHIN, conditions that fewer events satisfy or that "
            "compare fewer events, or raise the limit: --max-work, with_options(max_work=…)"
        )

"""The run of a query FOR EACH, fed batch by batch like any run.

Pairs come row by row, each row with its events in order. So the events of a partition are gathered,
and run when the partition is over. Small partitions are run together. A stream without PARTITION BY
is gathered as a whole.

So this is not a source of `Run`. The clock that decides matches is known only when all events are
gathered. The rows of a query with CONSUME BY ANY have a run each, because a run that reads
partitions in one common order never starts again. It is fed as `Run` is (`ReadsRanges`).

Rejected: pairs of each batch, event by event, for a run that remembers every row and partition. It
would hold no events, but a state for each row, and partitions would interleave.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, plain, whole_numbers
from celc_runtime.arrow.events.columns import Columns, Prepared
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.event_types import type_numbers
from celc_runtime.arrow.events.instants import begins_instant
from celc_runtime.arrow.events.window_keys import floors_of
from celc_runtime.arrow.matches.compact import schema_of
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.engine.definition.instants import instant_rows
from celc_runtime.plan.names import unused_name
from celc_runtime.program import Program
from celc_runtime.rules.index import index_of
from celc_runtime.rules.inner import over_events, over_pairs, parameters_of, rows_needed
from celc_runtime.rules.matching import Events, pair_batch, pairs_followed, pairs_of, with_rows
from celc_runtime.rules.pairs import Pairs, begins_of_parts
from celc_runtime.rules.rows import neighbours
from celc_runtime.rules.texts import with_one_dictionary
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import compact_run, run_of
from celc_runtime.run.seen import Seen, warn_at_the_end
from celc_runtime.run.source.odd_events import OddEvents, tied_rows
from celc_runtime.run.source.positions import InterleavedPositions, Positions
from celc_runtime.run.source.run_options import PLAIN, RunOptions
from celc_runtime.run.walk.compact import are_graphs

_PAIRS = 1 << 21  # about the pairs that are run at a time

_EVENTS = 1 << 20  # events that are gathered before closed partitions are run


class ForEachRun:
    """Feeds batches to a query FOR EACH row of a table; yields the matches of all rows, row by row,
    or the compact answers.

    place: the name of a last column for the index of each match's row in the table. `lists_matches`
    may change between batches of one partition, but not between two partitions. Raises TypeError
    for a program that no table has been given for.
    """

    def __init__(
        self,
        program: Program,
        options: RunOptions = PLAIN,
        *,
        place: str | None = None,
        is_compact: bool = False,
    ) -> None:
        plan = program.plan
        parameters = parameters_of(plan)
        self._program = program
        self._parameters = parameters
        self._rows, self._places = neighbours(rows_needed(program), parameters)
        self._place = place
        self._new_run_of = compact_run if is_compact else run_of
        self.schema = (
            schema_of(plan, listed=not are_graphs(program)) if is_compact else program.output_schema
        )
        self._inner = over_pairs(program)
        self._plan = over_events(plan)
        # Columns with the numbers of rows: of the input, and of batches with other columns.
        self._numbers = {options.numbered, unused_name("row", names_read(self._plan))}
        self._reader = Columns(
            self._plan,
            ties_are_errors=options.ties_are_errors,
            continues=options.continues,
            parts_checked=options.parts_checked,
            numbered=options.numbered,
            rows_before=options.rows_before or 0,
        )
        self._run: Run | None = None
        self._latest = options.clock
        self._asks_for_clock = (
            plan.asks_for_clock and plan.choice.clock is None and options.clock is None
        )
        self._by_parts = bool(plan.source.partition_by) and not plan.interleaves
        if place is not None and (plan.choice.deadlines or plan.choice.per_start is not None):
            # Matches that wait come with later partitions, and could not be put in order.
            self._by_parts = False
        self._waiting: list[Events] = []
        self._part, self._position = 0, options.first_position
        self._counts = np.zeros(0, np.int64)
        self._own: tuple[pa.Scalar, pa.Scalar] | None = None
        self._is_range = False
        self.lists_matches = True
        self.undeclared = self._reader.undeclared
        self._odd = OddEvents(self._plan, options)

    @property
    def undecided(self) -> int:
        # With CONSUME, where rows have a run each, no match is left undecided.
        return 0 if self._run is None else self._run.undecided

    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the matches of closed partitions."""
        assert absent is None, "of a query FOR EACH no rows are left out that count"
        prepared = self._reader.prepare(events)
        if not len(prepared.events):
            return
        self._gather(prepared, positions)
        if not self._by_parts or self._asks_for_clock:
            return
        if sum(len(one.columns) for one in self._waiting) >= _EVENTS:
            yield from self._found(but_last_part=True)

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        yield from ()

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield from self._found(but_last_part=False)
        if self._run is not None:
            for matches in self._run.rest():
                yield from self._shown(matches)

    @property
    def seen(self) -> Seen:
        """What `finish` warns of."""
        return Seen(self.undecided, self.undeclared, self._odd)

    def finish(self) -> None:
        warn_at_the_end(self._plan, *self.seen)

    # --- events -----------------------------------------------------------------------------------

    def _gather(self, prepared: Prepared, given: np.ndarray | None) -> None:
        events = prepared.events
        rows = np.arange(len(events))
        if self._plan.interleaves:
            parts = prepared.batch.slots
            before = np.zeros(self._reader.partitions_seen, np.int64)
            before[: len(self._counts)] = self._counts
            positions = InterleavedPositions(prepared, before).of(rows)
            self._counts = before + np.bincount(parts, minlength=len(before))
        else:
            begins = np.zeros(len(events), np.int64)
            begins[prepared.parts] = 1
            parts = self._part + np.cumsum(begins)
            positions = Positions(prepared, -self._position).of(rows)
        if given is not None:
            positions = given if prepared.known is None else given[prepared.known]
        self._part, self._position = int(parts[-1]), int(positions[-1]) + 1
        self._mark_own(events)
        if self._asks_for_clock:
            latest = int(whole_numbers(events.column(self._plan.source.order_by[0])).max())
            self._latest = latest if self._latest is None else max(latest, self._latest)
        types = type_numbers(self._plan, events, "a row")
        kept = [name for name in events.schema.names if name not in self._numbers]
        events = events.select(kept)
        times, floors = self._window_of(prepared, positions)
        self._waiting.append(Events(events, types, parts, positions, times, floors))

    def _window_of(
        self, prepared: Prepared, positions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(int64[events], what the window is measured on; int64[events], the least of it in the
        window that ends at each); empty if there is no window."""
        window, batch = self._plan.matching.window, prepared.batch
        if window is None:
            return NO_INTEGERS, NO_INTEGERS
        times = positions if window.unit == "EVENTS" else batch.keys
        if len(batch.floors):
            return times, batch.floors
        return times, floors_of(times, window.size, pa.int64())

    def _mark_own(self, events: pa.RecordBatch) -> None:
        """Remember between which times matches are returned, if some events are only read.

        Two events of one time are never of different ranges.
        """
        if not self.lists_matches:
            self._is_range = True
        elif self._plan.source.order_by:
            times = events.column(self._plan.source.order_by[0])
            first = times[0] if self._own is None else self._own[0]
            self._own = first, times[-1]

    def _is_own(self, ends: pa.Array) -> pa.Array:
        """bool: whether matches end in the range's own events."""
        if self._own is None:
            return pa.array(np.zeros(len(ends), np.bool_))
        first, last = (one.cast(ends.type) for one in self._own)
        return pc.and_(pc.less_equal(first, ends), pc.less_equal(ends, last))

    def _gathered(self, *, but_last_part: bool) -> Events | None:
        """Remove and return the waiting events; None: there are none."""
        if not self._waiting:
            return None
        events = _together(self._waiting)
        self._waiting = []
        if not but_last_part:
            return events
        over = int(np.searchsorted(events.parts, events.parts[-1]))
        self._waiting = [events.slice(over, len(events.columns))]
        return events.slice(0, over) if over else None

    # --- pairs ------------------------------------------------------------------------------------

    def _found(self, *, but_last_part: bool) -> Iterator[pa.RecordBatch]:
        events = self._gathered(but_last_part=but_last_part)
        if events is None or not self._rows.count:
            return
        columns, of_rows = with_one_dictionary(self._plan, events.columns, self._rows.columns)
        events, rows = replace(events, columns=columns), replace(self._rows, columns=of_rows)
        pairs = self._pairs_of(events)
        if self._plan.source.ties is not None:
            # A match starts and ends with whole instants, even if their first and last events do
            # not concern the row. These events change nothing else.
            begins = begins_instant(self._plan, events.columns)
            pairs = pairs.with_instants(instant_rows(begins))
        most, apart = 1, self._parameters.row_by_row  # a chunk of one pair has pairs of one row
        if not apart:
            self._run = self._run or self._new_run()
            most = min(_PAIRS, self._run.most_rows or _PAIRS)
        for first, behind in pairs.chunks(most):
            numbers, chosen = pairs.of(first, behind)
            if not len(chosen):
                continue
            batch = pair_batch(self._parameters, rows, events, numbers, chosen)
            if self._run is None:
                run = self._new_run()
                for matches in chain(run.push(batch, events.positions[chosen]), run.rest()):
                    yield from self._shown(matches, int(numbers[0]))
                continue
            begins = pairs.begins(first, behind)
            if events.has_parts:
                begins = begins_of_parts(begins, events.parts[chosen])
            positions = events.positions_of(chosen)
            for matches in self._run.push_parts(batch, events.types_of(chosen), begins, positions):
                yield from self._shown(matches)

    def _pairs_of(self, events: Events) -> Pairs:
        """The events to read for each row."""
        course = self._parameters.course
        if course is None:
            pairs = self._concerned(events)
            self._look_for_odd(events, pairs)
            return pairs
        self._look_for_odd(events, None)
        return pairs_followed(self._plan, self._parameters, course, self._rows, events)

    def _concerned(self, events: Events) -> Pairs:
        index = index_of(self._rows, self._parameters.concerns)
        return pairs_of(self._plan, index, self._rows.count, events)

    def _look_for_odd(self, events: Events, pairs: Pairs | None) -> None:
        """Count odd events among those of types that the query reads and that concern a row.

        pairs: None if they are not known, because rows are followed.
        """
        source = self._plan.source
        parts = np.zeros_like(events.parts) if self._plan.interleaves else events.parts
        tied = tied_rows(source, events.columns, parts)
        if pairs is None and self._odd.has_none(events.columns, tied):
            concerned = np.zeros(len(events.columns), np.bool_)
        else:
            concerned = (pairs or self._concerned(events)).concerned(len(events.columns))
        read = [source.declared_types.index(one) for one in source.types]
        self._odd.look(events.columns, concerned & np.isin(events.types, read), tied)

    def _new_run(self) -> Run:
        return self._new_run_of(self._inner, RunOptions(clock=self._latest))

    def _shown(self, matches: pa.RecordBatch, row: int | None = None) -> Iterator[pa.RecordBatch]:
        """Matches with their rows; for a range, only those that end in its own events."""
        numbers = None if row is None else np.full(len(matches), row, np.int64)
        found = with_rows(self._program, self._rows, matches, numbers, self.schema)
        if self._place is not None:
            of_rows = (
                np.asarray(matches.column(self._parameters.number)) if numbers is None else numbers
            )
            found = found.append_column(self._place, pa.array(self._places[of_rows]))
        if self._is_range:
            found = found.filter(self._is_own(found.column("end_time")))
        if len(found):
            yield found


def _together(parts: list[Events]) -> Events:
    if len(parts) == 1:
        return parts[0]
    batches = [one.columns for one in parts]
    if any(not batch.schema.equals(batches[0].schema) for batch in batches):
        batches = [
            pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], names)
            for batch in batches
            for names in (batch.schema.names,)
        ]
    table = pa.Table.from_batches(batches)
    columns = [in_one_piece(column) for column in table.columns]
    return Events(
        pa.RecordBatch.from_arrays(columns, table.column_names),
        np.concatenate([one.types for one in parts]),
        np.concatenate([one.parts for one in parts]),
        np.concatenate([one.positions for one in parts]),
        np.concatenate([one.times for one in parts]),
        np.concatenate([one.floors for one in parts]),
    )

"""The run of a query FOR EACH, to be fed batch by batch as any run is.

Pairs of a row and its events come row by row, and each with its events in order. So the events of a
partition are gathered, and run when the partition is over; partitions are run together where they
are small. A stream without PARTITION BY is gathered as a whole.

Rejected: pairs of each batch, event by event, for a run that remembers every row and partition. It
would hold no events, but a state for each row, and partitions would interleave.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import in_one_piece, plain, whole_numbers
from celc_runtime.arrow.columns import Columns, Prepared
from celc_runtime.arrow.conforming import names_read
from celc_runtime.arrow.event_types import type_numbers
from celc_runtime.arrow.instants import begins_instant
from celc_runtime.engine.definition.instants import instant_rows
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.names import unused_name
from celc_runtime.program import Program
from celc_runtime.rules.index import index_of
from celc_runtime.rules.inner import over_events, over_pairs, parameters_of
from celc_runtime.rules.matching import Events, pair_batch, pairs_of, with_rows
from celc_runtime.rules.pairs import begins_of_parts
from celc_runtime.rules.rows import Rows
from celc_runtime.rules.texts import with_one_dictionary
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source.positions import InterleavedPositions, Positions

_PAIRS = 1 << 21
"""About so many pairs are run at a time."""

_EVENTS = 1 << 20
"""So many events are gathered before partitions that are over are run."""


class ForEachRun:
    """Feeds batches to a query FOR EACH row of a table, and hands out the matches of all rows.

    The arguments, methods and attributes are those of `Run`; `place`: the name of a last column for
    where the row of each match stood in the table. Matches come row by row. `lists_matches` may
    change between batches of one partition, not between two of them.
    """

    def __init__(
        self,
        program: Program,
        rows: Rows,
        *,
        ties_are_errors: bool = False,
        first_position: int = 0,
        continues: bool = False,
        numbered: str | None = None,
        place: str | None = None,
    ) -> None:
        plan = program.plan
        parameters = parameters_of(plan)
        self._program = program
        self._parameters = parameters
        self._rows = rows
        self._place = place
        self._inner = over_pairs(program)
        self._plan = over_events(plan)
        # Columns with the numbers of rows: those of the input, and those of batches with strangers.
        self._numbers = {numbered, unused_name("row", names_read(self._plan))}
        self._reader = Columns(
            self._plan, ties_are_errors=ties_are_errors, continues=continues, numbered=numbered
        )
        self._run: Run | None = None
        self._finished: list[Run] = []
        self._asks_for_clock = plan.asks_for_clock and plan.clock is None
        self._latest: int | None = None
        self._by_parts = bool(plan.partition_by) and not plan.interleaves
        self._waiting: list[Events] = []
        self._part, self._position = 0, first_position
        self._counts = np.zeros(0, np.int64)
        self._own: tuple[int, int] | None = None
        self._is_range = False
        self.lists_matches = True
        """Whether the matches that end in the next batches are handed out."""
        self.dropped = 0
        """How many rows of undeclared types have been left out."""

    @property
    def counts_undeclared(self) -> bool:
        """Whether rows of undeclared types are counted for the warning."""
        return self._reader.counts_undeclared

    @counts_undeclared.setter
    def counts_undeclared(self, counts: bool) -> None:
        self._reader.counts_undeclared = counts

    @property
    def undecided(self) -> int:
        """How many matches were left undecided so far; at the end of a run, of all."""
        runs = self._finished if self._run is None else [*self._finished, self._run]
        return sum(run.undecided for run in runs)

    def push(
        self, events: pa.RecordBatch, positions: np.ndarray | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the matches of partitions that are over. Positions as
        `Run.push` takes them."""
        prepared = self._reader.prepare(events)
        self.dropped += prepared.dropped
        if not len(prepared.events):
            return
        self._gather(prepared, positions)
        if not self._by_parts or self._asks_for_clock:
            return
        if sum(len(one.columns) for one in self._waiting) >= _EVENTS:
            yield from self._found(but_last_part=True)

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        """Nothing: instants wait as all events do."""
        yield from ()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The matches that wait for more events, of which there are none."""
        yield from self._found(but_last_part=False)
        if self._run is not None:
            for matches in self._run.rest():
                yield from self._shown(matches)

    def finish(self) -> None:
        """End the run, with its warnings."""
        undeclared = self._reader.undeclared
        if undeclared.total:
            warnings.warn(undeclared.told(self._plan), EventWarning, stacklevel=3)
        for run in self._finished if self._run is None else [self._run]:
            run.finish()

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
        self._mark_own(positions)
        if self._asks_for_clock:
            latest = int(whole_numbers(events.column(self._plan.order_by[0])).max())
            self._latest = latest if self._latest is None else max(latest, self._latest)
        types = type_numbers(self._plan, events, "a row")
        kept = [name for name in events.schema.names if name not in self._numbers]
        events = events.select(kept)
        self._waiting.append(Events(events, types, parts, positions))

    def _mark_own(self, positions: np.ndarray) -> None:
        """Remember between which positions matches are handed out, where others are not."""
        if not self.lists_matches:
            self._is_range = True
            return
        first, behind = int(positions[0]), int(positions[-1]) + 1
        self._own = (first if self._own is None else self._own[0], behind)

    def _gathered(self, *, but_last_part: bool) -> Events | None:
        """The events that wait, which do so no longer; None: there are none."""
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
        index = index_of(self._rows, self._parameters.concerns)
        pairs = pairs_of(self._plan, index, rows.count, events)
        if self._plan.ties is not None:
            # A match starts and ends with whole instants, also where others than its row's events
            # are their first and last ones. These change nothing else.
            begins = begins_instant(self._plan, events.columns)
            pairs = pairs.with_instants(instant_rows(begins))
        if self._parameters.row_by_row:
            yield from self._row_by_row(events, rows, pairs)
            return
        run = self._run
        if run is None:
            run = self._run = run_of(self._inner, clock=self._latest)
        for first, behind in pairs.chunks(min(_PAIRS, run.most_rows or _PAIRS)):
            numbers, chosen = pairs.of(first, behind)
            if not len(chosen):
                continue
            batch = pair_batch(self._parameters, rows, events, numbers, chosen)
            begins = pairs.begins(first, behind)
            if events.has_parts:
                begins = begins_of_parts(begins, events.parts[chosen])
            found = run.push_parts(
                batch, events.types_of(chosen), begins, events.positions_of(chosen)
            )
            for matches in found:
                yield from self._shown(matches)

    def _row_by_row(self, events: Events, rows: Rows, pairs: Any) -> Iterator[pa.RecordBatch]:
        """The matches of each row by a run of its own: its partitions interleave."""
        for row in range(rows.count):
            numbers, chosen = pairs.of(row, row + 1)
            if not len(chosen):
                continue
            batch = pair_batch(self._parameters, rows, events, numbers, chosen)
            run = run_of(self._inner, clock=self._latest)
            for matches in run.push(batch, events.positions[chosen]):
                yield from self._shown(matches, row)
            for matches in run.rest():
                yield from self._shown(matches, row)
            self._finished.append(run)

    def _shown(self, matches: pa.RecordBatch, row: int | None = None) -> Iterator[pa.RecordBatch]:
        """Matches with their rows; of a range those that end in its own events."""
        numbers = None if row is None else np.full(len(matches), row, np.int64)
        found = with_rows(self._program, self._rows, matches, numbers)
        if self._place is not None:
            of_rows = np.asarray(matches.column(0)) if numbers is None else numbers
            found = found.append_column(self._place, pa.array(self._rows.places[of_rows]))
        if self._is_range:
            first, behind = self._own or (0, 0)
            ends = np.asarray(found.column("end_pos"))
            found = found.filter(pa.array((ends >= first) & (ends < behind)))
        if len(found):
            yield found


def run_for(program: Program, rows: Rows | None, **options: Any) -> Run | ForEachRun:
    """A fresh run, of a query FOR EACH for the rows of its table; the options are those of
    `run_of`."""
    return run_of(program, **options) if rows is None else ForEachRun(program, rows, **options)


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
    )

"""What becomes of the matches of a run: the protocol, and the answer with one row for each
match."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.event_store import INSTANT_POSITION, EventStore
from celc_runtime.arrow.matches.output import matches_batch
from celc_runtime.program import Program
from celc_runtime.run.source.event_source import Reading
from celc_runtime.run.source.stretches import Stretches
from celc_runtime.run.walk.in_worlds import WorldsWalk
from celc_runtime.run.walk.listed import Listed


class AnswerOfRun:
    """What a run asks of its answer; here for most answers.

    stored: the columns of past events that rows are made of.
    """

    def __init__(self, stored: tuple[str, ...] = ()) -> None:
        self.store = EventStore(stored)

    @property
    def nbytes(self) -> int:
        """The bytes of waiting rows, and of the answer's own buffers."""
        return 0

    @property
    def stored_events(self) -> int:
        return self.store.rows

    def resume(self, stretches: Stretches) -> None:
        """Begin to read stretches, the only events of this run."""

    def enter(self, reading: Reading, entry: int, kept_rows: np.ndarray | None) -> None:
        """Begin a batch.

        entry: its first event that matters. kept_rows: as `EventStore` takes them.
        """
        prepared = reading.prepared
        self.store.enter(
            prepared.events,
            prepared.batch,
            reading.positions.of,
            entry,
            prepared.instant_rows,
            kept_rows,
        )

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        """Rows of the matches in the buffers. The choice decides which of them are known."""
        raise NotImplementedError

    def add(self, rows: pa.RecordBatch, listed: Listed | None) -> Iterator[pa.RecordBatch]:
        """Add rows that are known; yields rows of the answer.

        listed: the buffers that the rows were made of; None: the rows have waited.
        """
        yield rows

    def close(self, reading: Reading, entries_read: int) -> Iterator[pa.RecordBatch]:
        """The rows that are complete at the end of a batch."""
        yield from ()

    def known(self) -> Iterator[pa.RecordBatch]:
        """The waiting rows that are known after a batch."""
        yield from ()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The waiting rows at the end of the input."""
        yield from ()


class MatchRows(AnswerOfRun):
    """Returns a row for each match.

    in_instants: matches start and end with whole instants, but the update does not know instants.
    """

    def __init__(self, program: Program, *, in_instants: bool) -> None:
        plan = program.plan
        stored = program.stored_attributes
        super().__init__((*stored, INSTANT_POSITION) if in_instants else stored)
        self._plan = plan
        self._schema = program.match_schema
        self._in_instants = in_instants
        self._items = program.answer_items

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        yield self.of(listed)

    def of(self, listed: Listed) -> pa.RecordBatch:
        found = listed.entries
        return matches_batch(
            self._plan,
            self._schema,
            listed.output,
            found,
            listed.prepared.events,
            self.store,
            listed.entries_read,
            deadlines=listed.deadlines,
            in_instants=self._in_instants,
            begins=None if self._plan.source.begin is None else listed.begins,
            items=self._items,
        )


def single_matches(program: Program) -> Program:
    """The program with the matches that its rows are about as its answer."""
    answer = replace(program.plan.answer, totals=None, collapsed=False, positions=True)
    return replace(program, plan=replace(program.plan, answer=answer))


class WorldRows(AnswerOfRun):
    """Returns the rows that the walk over uncertain times makes."""

    def __init__(self, walk: WorldsWalk) -> None:
        super().__init__()
        self._walk = walk

    @property
    def stored_events(self) -> int:
        return self._walk.events_kept

    def rows(self, listed: Listed) -> Iterator[pa.RecordBatch]:
        yield self._walk.rows


class GroupRows(MatchRows):
    """Returns rows about groups of matches.

    A row is returned when no later match can be in its group. If each group belongs to one end
    (`are_of_ends`), that is after the batch with this end. If matches are decided later, or groups
    have several ends, it is at the end of the partition or of the input.
    """

    def __init__(self, program: Program, *, are_of_ends: bool, in_instants: bool) -> None:
        plan = program.plan
        super().__init__(single_matches(program), in_instants=in_instants)
        self._of_groups = plan
        self._rows_schema = program.output_schema
        # Matches of uncertain time come later than their ends.
        late = bool(plan.choice.deadlines) or plan.source.uncertain is not None
        self._at_ends = are_of_ends and not late
        self._by_parts = not (late or plan.interleaves)

    def known(self) -> Iterator[pa.RecordBatch]:
        if self._at_ends or self._by_parts:
            yield from self._taken(but_last_part=not self._at_ends)

    def rest(self) -> Iterator[pa.RecordBatch]:
        yield from self._taken(but_last_part=False)

    def _taken(self, *, but_last_part: bool) -> Iterator[pa.RecordBatch]:
        """Remove and yield the waiting rows; `but_last_part`: not those of the last partition."""
        raise NotImplementedError

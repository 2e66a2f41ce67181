"""What the feeders of a run ask of it: batches in, then the rest, and its warnings.

`Run` is the loop over the events of one query. Other runs combine several. All are fed in the same
way: by `read_all`, by the tasks of Spark, by a table function of SQL.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.undeclared import Undeclared
from celc_runtime.program import Program
from celc_runtime.run.seen import Seen
from celc_runtime.run.source.run_options import RunOptions

Found = TypeVar("Found", covariant=True)


class Reads(Protocol[Found]):
    """Reads batches of events in order; yields rows of the answer, or tagged rows (`Found`)."""

    def push(self, events: pa.RecordBatch, /) -> Iterator[Found]:
        """Read a batch of events; yields what is known then."""

    def rest(self) -> Iterator[Found]:
        """What still waits at the end of the input."""

    def finish(self) -> None:
        """End the run, with its warnings."""


class ReadsRanges(Reads[pa.RecordBatch], Protocol):
    """Reads whole streams, or a part of one with further events before and after it."""

    lists_matches: bool
    """Whether the matches that end in the next batches are returned. It may change only while no
    instant waits (`end_of_instant`)."""

    @property
    def undeclared(self) -> Undeclared:
        """What is known of the rows of undeclared types; `finish` warns of them."""

    @property
    def undecided(self) -> int:
        """The number of matches left undecided so far; at the end of a run, of all."""

    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """As `Run.push`."""

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        """The rows of an instant that waits. No more events of it come."""


class ReadsParts(ReadsRanges, Protocol):
    """Reads parts of one table, one part each, whose answers stand one after another."""

    @property
    def seen(self) -> Seen:
        """What `finish` warns of."""

    def turn(self, *, is_own: bool) -> Iterator[pa.RecordBatch]:
        """As `Run.turn`."""


NewRun: TypeAlias = Callable[[Program, RunOptions], ReadsRanges]
"""Makes a new run of a program."""


def read_all(run: Reads[Found], batches: Iterable[pa.RecordBatch]) -> Iterator[Found]:
    """The answer of a run to all its events."""
    for batch in batches:
        yield from run.push(batch)
    yield from run.rest()
    run.finish()


def with_positions(
    batches: Iterable[pa.RecordBatch], positions: np.ndarray | None, first: int = 0
) -> Iterator[tuple[pa.RecordBatch, np.ndarray | None]]:
    """Batches, whose rows are those from `first` on, with the positions of their rows. positions:
    int64, of all rows; None: they are counted, as all rows come."""
    for batch in batches:
        behind = first + len(batch)
        yield batch, None if positions is None else positions[first:behind]
        first = behind


def read_with_positions(
    run: ReadsRanges, batches: Iterable[pa.RecordBatch], positions: np.ndarray | None
) -> Iterator[pa.RecordBatch]:
    """As `read_all`, with positions as `with_positions` takes them."""
    for batch, given in with_positions(batches, positions):
        yield from run.push(batch, given)
    yield from run.rest()
    run.finish()

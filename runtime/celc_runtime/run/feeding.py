"""What those that feed events ask of a run: batches in, then the rest, and its warnings.

There is one loop over the events of one query (`Run`), and runs that put others together. All are
fed alike: by `read_all`, by the tasks of Spark, by a table function of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.undeclared import Undeclared
from celc_runtime.program import Program
from celc_runtime.run.source.run_options import RunOptions

Found = TypeVar("Found", covariant=True)


class Reads(Protocol[Found]):
    """Reads batches of events in their order; hands out rows of the answer, or such rows with what
    tells which answer they belong to."""

    def push(self, events: pa.RecordBatch, /) -> Iterator[Found]:
        """Read a batch of events; yields what is known then."""

    def rest(self) -> Iterator[Found]:
        """What waits for more events, of which there are none."""

    def finish(self) -> None:
        """End the run, with its warnings."""


class ReadsRanges(Reads[pa.RecordBatch], Protocol):
    """Reads whole streams, or a part of one of which some events are read for others' sake."""

    lists_matches: bool
    """Whether the matches that end in the next batches are handed out; changes where no instant
    waits (`end_of_instant`)."""

    @property
    def undeclared(self) -> Undeclared:
        """What is known of the rows of undeclared types, which `finish` tells."""

    @property
    def undecided(self) -> int:
        """How many matches were left undecided so far; at the end of a run, of all."""

    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """As `Run.push`."""

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        """The rows of an instant that waits for more events: there are none of it."""


NewRun: TypeAlias = Callable[[Program, RunOptions], ReadsRanges]
"""Makes a fresh run of a program."""


def read_all(run: Reads[Found], batches: Iterable[pa.RecordBatch]) -> Iterator[Found]:
    """The answer of a run to all events that there are."""
    for batch in batches:
        yield from run.push(batch)
    yield from run.rest()
    run.finish()

"""Queries and streams of the benchmarks, and the adapters that reach into a run.

The adapters (`Reading`, `FreshRuns`, `feeding`, `nodes_made`, `engine`) are the only place where
the suite knows the insides of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from celc_runtime.engine.arena.nodes import NEXT_NODE, PART, READ, ROW
from celc_runtime.plan.strategy import UnionLists
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import run_of
from celc_runtime.run.source import event_source

import celc

# --- queries and streams --------------------------------------------------------------------------

QUERIES = {
    "Q1": ("A ; B ; C", "ABC"),
    "Q2": ("A ; B ; C ; D", "ABCD"),
    "Q3": ("(A OR B OR C) ; D", "ABCD"),
    "Q4": ("A+ ; B", "AB"),
    "Q5": ("A+ ; B+ ; C", "ABC"),
    "Q6": ("(A+ ; B)+ ; C", "ABC"),
}
"""(formula, event types) of the experiments in the CEL paper (Foundations of Complex Event
Processing, table 1)."""


def declaration(types: Iterable[str], attributes: str = "") -> str:
    """CREATE STREAM with event types that all have the same attributes. Without attributes, the
    labels of a match hold positions only."""
    body = f"{{ {attributes} }}" if attributes else "{}"
    return "CREATE STREAM S {" + ", ".join(f"EVENT {name} {body}" for name in types) + "}"


def compiled(
    formula: str, types: Iterable[str], within: int | str | None, attributes: str = ""
) -> Any:
    """A compiled query; `within` is a number of events, or the text behind WITHIN."""
    clause = "" if within is None else f" WITHIN {within}"
    if isinstance(within, int):
        clause += " EVENTS"
    text = f"{declaration(types, attributes)} SELECT * FROM S WHERE {formula}{clause}"
    return next(iter(celc.compile(text).queries.values()))


def random_types(types: Sequence[str], events: int, *, seed: int = 2) -> pa.DictionaryArray:
    """A column of equally likely event types, dictionary-coded."""
    codes = np.random.default_rng(seed).integers(0, len(types), events).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(types)))


def rare_types(types: Sequence[str], events: int, share: float) -> pa.DictionaryArray:
    """A column in which `share` of the events are of the types, the others of type X."""
    rng = np.random.default_rng(3)
    relevant = rng.random(events) < share
    codes = np.where(relevant, rng.integers(0, len(types), events), len(types))
    names = pa.array([*types, "X"])
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)


def seconds_apart(events: int) -> pa.Array:
    """A column of times, one event a second."""
    return pa.array(np.arange(events) * 1_000_000, pa.timestamp("us", tz="UTC"))


def one_batch(**columns: pa.Array) -> pa.RecordBatch:
    """A record batch of these columns."""
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


# --- adapters: the insides of a run ---------------------------------------------------------------


class Reading:
    """The kernel alone over prepared columns: one run that reads the same events over and over.

    Each pass goes on where the last one ended, as one endless stream. So the window is full, and
    only the first pass allocates memory. passes: how many passes to make before anything is
    measured; 0 for streams that are read once. listed: write the matches into the kernel's buffers,
    which are used again; else nothing is listed.
    """

    def __init__(
        self, query: Any, events: pa.RecordBatch, *, listed: bool, passes: int = 1
    ) -> None:
        reader = run_of(query.program)
        prepared = reader._source._columns.prepare(events)
        self._query = query
        self._arguments = reader._source._columns.arguments(prepared.events)
        keys = np.array(prepared.batch.keys)
        self._prepared = replace(prepared, batch=prepared.batch._replace(keys=keys))
        positions: Any = None  # only messages need them
        self._reading = event_source.Reading(self._prepared, positions)
        self._later = int(keys[-1] - keys[0]) + _step(keys) if len(keys) else 0
        self.run = run_of(query.program)
        if not listed:
            self.run._output.limit[0] = 0
        self.matches = 0
        self.positions = 0
        self.classify()
        for _ in range(passes):
            self.update()

    def followed_by(self, events: pa.RecordBatch) -> Reading:
        """The same run before other events, which are listed."""
        following = Reading(self._query, events, listed=True, passes=0)
        limit = following.run._output.limit[0]
        following.run = self.run
        following.run._output.limit[0] = limit
        return following

    def classify(self) -> None:
        """Compute the symbols from the prepared columns."""
        self._query.program.classify(*self._arguments, self._prepared.batch.symbols)

    def rewind(self) -> None:
        """Move the events behind those of the last pass."""
        self._prepared.batch.keys[:] += self._later

    def update(self) -> None:
        """Read the symbols once, list what fires if asked to; counts matches and positions."""
        run, counters, reading = self.run, self.run._memory.counters, self._reading
        counters[ROW] = counters[PART] = counters[READ] = 0
        self.matches = self.positions = 0
        for _ in run._advance(reading):
            used = run._output.used
            self.matches += int(used[0])
            self.positions += run._walk.events_in(run._output, 0)
            used[:] = 0
        run._leave_batch(reading)

    def classify_and_update(self) -> None:
        """Both passes of the kernel."""
        self.classify()
        self.update()


class FreshRuns:
    """The kernel alone over one batch: each time a new run, with symbols, keys and the borders of
    instants that are there. Nothing is listed."""

    def __init__(self, query: Any, events: pa.RecordBatch) -> None:
        self._query = query
        self._events = events

    def begin(self) -> None:
        """Begin a run, up to where its kernel reads the first event."""
        self._run = run = run_of(self._query.program)
        run.lists_matches = False
        (reading,) = run._source.batches(self._events, None, None, None)
        self._reading = run._enter(reading)

    def update(self) -> None:
        """Read the batch."""
        for _ in self._run._listed(self._reading):
            pass


def _step(keys: np.ndarray) -> int:
    return int(keys[1] - keys[0]) if len(keys) > 1 else 1


def feeding(query: Any, batches: Iterable[pa.RecordBatch], *, listed: bool) -> tuple[Run, int]:
    """A fresh run that has read record batches, all of the driver included; and its matches.

    Without `listed` nothing is listed.
    """
    run = run_of(query.program)
    if not listed:
        run._output.limit[0] = 0
    matches = 0
    for batch in batches:
        for found in run.push(batch):
            matches += len(found)
    return run, matches


def nodes_made(run: Run) -> int:
    """How many nodes a run has made so far."""
    return int(run._memory.counters[NEXT_NODE]) - 1


def batches_of(events: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """Slices of a batch."""
    for start in range(0, len(events), rows):
        yield events.slice(start, rows)


def engine(query: Any) -> str:
    """Which update a query has: straight-line code, or tables."""
    return "tables" if isinstance(query.program.update, UnionLists) else "code"

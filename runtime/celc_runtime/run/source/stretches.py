"""Stretches of partitions that a run reads at once, and what later events need to know of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.batch import Batch
from celc_runtime.engine.arena.nodes import ALWAYS
from celc_runtime.plan.plan import Window


class Starts(NamedTuple):
    """For each stretch of a partition, the starts whose matches are known now; all int64[parts]."""

    since: np.ndarray  # the first position of a start; matches of earlier starts have been returned
    until: np.ndarray | None  # the position after the last start; None: the window decides
    after: np.ndarray  # where the last kept match ends, −1: none; the run updates it

    def of_parts(self, first: int, last: int) -> Starts:
        """The starts of the stretches from `first` to before `last`."""
        until = None if self.until is None else self.until[first:last]
        return Starts(self.since[first:last], until, self.after[first:last])


class Stretches(NamedTuple):
    """Stretches of partitions, one after another. Each starts at some event of its partition."""

    events: pa.RecordBatch  # the columns that the query reads, without types
    codes: np.ndarray  # int32[rows], the number of each row's type among the declared types
    positions: np.ndarray  # int64[rows], in the partition
    starts: np.ndarray  # int64[parts], the first rows of stretches; none is empty
    silent: np.ndarray
    """bool[rows], rows that were read before: matches that end there are not listed."""
    absent: np.ndarray  # bool[rows], rows that stand for rows left out because they cannot matter
    contexts: np.ndarray  # int64[parts], what the stream before means to nested selectors
    known: Starts | None = None  # for matches that are chosen by their starts
    kept: np.ndarray | None = None
    """int64[parts, numbers], for LIMIT … PER: the last known times of rows that stayed (`NEVER`:
    fewer), or PER PARTITION their number; for totals of partitions, these (`stored_sums`); the run
    updates it."""
    before: np.ndarray | None = None
    """int64[parts], how many events of each partition were read before, if absences at the end
    count events."""


class Behind(NamedTuple):
    """What later events need to know of stretches that have been read."""

    matters: np.ndarray  # bool[rows], rows that later matches can contain
    firsts: np.ndarray  # int64[parts], the first position that these can contain
    contexts: np.ndarray  # int64[rows], the context before each row; empty: no nested selectors
    behind: np.ndarray  # int64[parts], the context after each stretch; likewise
    keys: np.ndarray  # int64[rows], what the window is measured on; empty: positions, or no window


def begins_inside(
    window: Window, batch: Batch, stretches: Stretches, rows: np.ndarray | None = None
) -> np.ndarray:
    """int64[parts]: the first row of each stretch that the window of a later event can reach.

    If there is none, it is the row after the stretch. rows: int64[parts]; if given, windows end
    there.
    """
    starts, positions = stretches.starts, stretches.positions
    ends = np.append(starts[1:], len(positions)) - 1
    keys = batch.keys if len(batch.keys) else positions
    last_rows = ends if rows is None else rows
    if len(batch.floors):
        floors = batch.floors[last_rows]
    else:
        # The next event has the next position. But it can have the same time.
        last = keys[last_rows] + (rows is None and window.unit == "EVENTS")
        size = int(window.size)
        floors = np.where(last >= ALWAYS + size, last, ALWAYS + size) - size
    is_outside = keys < np.repeat(floors, ends + 1 - starts)
    begins: np.ndarray = starts + np.add.reduceat(is_outside.astype(np.int64), starts)
    return begins


def positions_at(rows: np.ndarray, stretches: Stretches) -> np.ndarray:
    """int64[parts]: the positions of rows (int64[parts]), each in its own stretch or right after
    it."""
    positions = stretches.positions
    ends = np.append(stretches.starts[1:], len(positions)) - 1
    found: np.ndarray = np.where(
        rows <= ends, positions[np.minimum(rows, ends)], positions[ends] + 1
    )
    return found

"""Stretches of partitions that a run reads at once, and what later events need to know of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.engine.arena.batch import Batch
from celc_runtime.engine.arena.nodes import ALWAYS
from celc_runtime.plan.plan import Window


class Starts(NamedTuple):
    """For each stretch of a partition (int64[parts]), the starts whose matches are known now.

    since: the first position that a start can have; the matches of earlier ones have been handed
    out. until: behind the last one; None: the window tells, from the last event of each stretch.
    after: the position at which the last match ends that has been kept, −1: none has; the run
    writes those that it keeps.
    """

    since: np.ndarray
    until: np.ndarray | None
    after: np.ndarray

    def of_parts(self, first: int, last: int) -> Starts:
        """Those of the stretches from `first` on and before `last`."""
        until = None if self.until is None else self.until[first:last]
        return Starts(self.since[first:last], until, self.after[first:last])


class Stretches(NamedTuple):
    """Stretches of partitions, one after another, each from some event of its partition on.

    events: the columns that the query reads, without types; codes: int32[rows], the number of each
    row's type among the types that the query declares; positions: int64[rows], in the partition.
    starts: int64[parts], the rows at which stretches begin, none of them empty. silent: bool[rows],
    rows that have been read before: matches that end there are not listed. absent: bool[rows], rows
    that stand for rows left out because they cannot matter. contexts: int64[parts], what the stream
    before each stretch means to nested selectors. known: the starts whose matches are known, where
    matches are chosen by their starts.
    """

    events: pa.RecordBatch
    codes: np.ndarray
    positions: np.ndarray
    starts: np.ndarray
    silent: np.ndarray
    absent: np.ndarray
    contexts: np.ndarray
    known: Starts | None = None


class Behind(NamedTuple):
    """What later events need to know of stretches that have been read.

    matters: bool[rows], rows that later matches can hold. firsts: int64[parts], the first position
    of each partition that they can hold. contexts: int64[rows], the context before each row, and
    behind: int64[parts], the context behind each stretch; empty without nested selectors. keys:
    int64[rows], the values that the window is measured on; empty where it is measured on positions,
    or there is none.
    """

    matters: np.ndarray
    firsts: np.ndarray
    contexts: np.ndarray
    behind: np.ndarray
    keys: np.ndarray


def begins_inside(
    window: Window, batch: Batch, stretches: Stretches, rows: np.ndarray | None = None
) -> np.ndarray:
    """int64[parts]: the first row of each stretch to which a window of a later event can reach, or
    the row behind the stretch; with `rows` (int64[parts]) to which the windows that end there do.
    """
    starts, positions = stretches.starts, stretches.positions
    ends = np.append(starts[1:], len(positions)) - 1
    keys = batch.keys if len(batch.keys) else positions
    last_rows = ends if rows is None else rows
    if len(batch.floors):
        floors = batch.floors[last_rows]
    else:
        # The next event has the next position; but it may have the same time.
        last = keys[last_rows] + (rows is None and window.unit == "EVENTS")
        size = int(window.size)
        floors = np.where(last >= ALWAYS + size, last, ALWAYS + size) - size
    is_outside = keys < np.repeat(floors, ends + 1 - starts)
    begins: np.ndarray = starts + np.add.reduceat(is_outside.astype(np.int64), starts)
    return begins


def positions_at(rows: np.ndarray, stretches: Stretches) -> np.ndarray:
    """int64[parts]: the positions of rows (int64[parts]), each of its own stretch or behind it."""
    positions = stretches.positions
    ends = np.append(stretches.starts[1:], len(positions)) - 1
    found: np.ndarray = np.where(
        rows <= ends, positions[np.minimum(rows, ends)], positions[ends] + 1
    )
    return found

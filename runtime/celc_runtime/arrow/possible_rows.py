"""Matches in possible worlds → Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain, whole_numbers
from celc_runtime.arrow.event_store import POSITION
from celc_runtime.arrow.output import label_column
from celc_runtime.arrow.values import LabelValues, computed_column
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Plan


class Rows(NamedTuple):
    """Matches as rows to come: the events of match m end at `ends[m]` (int64) in tags (int64: the
    number of the event << kind_bits | kind), in any order; float64[matches] confidences."""

    ends: np.ndarray
    tags: np.ndarray
    confidences: np.ndarray

    def taken(self, matches: np.ndarray) -> Rows:
        """Some of the rows, in the order of their numbers (int64)."""
        counts = np.diff(self.ends, prepend=0)
        taken = counts[matches]
        ends = np.cumsum(taken)
        shift = np.repeat((self.ends - counts)[matches] - (ends - taken), taken)
        tags = self.tags[np.arange(len(shift)) + shift]
        return Rows(ends, tags, self.confidences[matches])


def in_order(found: Iterable[tuple[int, Rows]], kind_bits: int, stop: int) -> Iterator[Rows]:
    """The rows by the last of their events, those of one such event from the latest first event
    back.

    With each batch comes the number of an event; all rows whose last event is before it have come.
    After `stop` no row waits.
    """
    waiting: list[Rows] = []
    no_rows = Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    for limit, rows in chain(found, [(stop, no_rows)]):
        waiting.append(rows)
        ends = np.cumsum([0, *(len(one.tags) for one in waiting)])
        together = Rows(
            np.concatenate([one.ends + end for one, end in zip(waiting, ends, strict=False)]),
            np.concatenate([one.tags for one in waiting]),
            np.concatenate([one.confidences for one in waiting]),
        )
        waiting = [together]
        if not len(together.ends):
            continue
        starts = np.append(0, together.ends[:-1])
        events = together.tags >> kind_bits
        last, first = np.maximum.reduceat(events, starts), np.minimum.reduceat(events, starts)
        order = np.lexsort((-first, last))
        known = int(np.searchsorted(last[order], limit))
        if known:
            yield together.taken(order[:known])
        waiting = [together.taken(order[known:])]


def possible_batch(
    plan: Plan, schema: pa.Schema, table: pa.RecordBatch, positions: np.ndarray, found: Rows
) -> pa.RecordBatch:
    """Rows as one batch of the output schema. table: the events, with their positions (int64)."""
    assert plan.uncertain is not None
    ends, tags, confidences = found
    matches = len(ends)
    counts = np.diff(ends, prepend=0)
    match_of = np.repeat(np.arange(matches), counts)
    rows, kinds = tags >> plan.kind_bits, tags & ((1 << plan.kind_bits) - 1)
    order = np.lexsort((rows, match_of))
    rows, kinds = rows[order], kinds[order]
    firsts = ends - counts
    first, last = rows[firsts], rows[ends - 1]

    def look_up(name: str, entries: np.ndarray) -> pa.Array:
        if name == POSITION:
            return pa.array(positions[entries])
        return plain(table.column(name).take(pa.array(entries)))

    def at_end(name: str) -> pa.Array:
        return plain(table.column(name).take(pa.array(last)))

    labels = _labels(plan, matches, match_of, rows, kinds)
    values = LabelValues(plan.label_names, matches, *labels, look_up, at_end)
    columns = [at_end(name) for name in plan.key_columns]
    if plan.positions:
        columns += [pa.array(positions[first]), pa.array(positions[last])]
    columns.append(plain(table.column(plan.uncertain.low).take(pa.array(first))))
    columns.append(_greatest(table.column(plan.uncertain.high), rows, firsts))
    columns.append(pa.array(np.minimum(confidences, 1.0)))
    for item in plan.items:
        if isinstance(item, Computed):
            columns.append(computed_column(item, values))
        else:
            columns.append(label_column(plan, item, values))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _labels(
    plan: Plan, matches: int, match_of: np.ndarray, rows: np.ndarray, kinds: np.ndarray
) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """For each label int32[matches + 1], where the events of each match begin, and the events."""
    offsets, entries = [], []
    for column in range(len(plan.label_names)):
        belongs = np.array([column in kind.columns for kind in plan.kinds], np.bool_)[kinds]
        found = np.zeros(matches + 1, np.int32)
        found[1:] = np.cumsum(np.bincount(match_of[belongs], minlength=matches))
        offsets.append(found)
        entries.append(rows[belongs])
    return offsets, entries


def _greatest(column: pa.Array, rows: np.ndarray, firsts: np.ndarray) -> pa.Array:
    """The greatest value of a column among the rows of each match."""
    values = whole_numbers(column)[rows]
    greatest = np.maximum.reduceat(values, firsts)
    match_of = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(rows)))
    found = np.flatnonzero(values == greatest[match_of])
    # Of several rows with that value any will do.
    one = np.zeros(len(firsts), np.int64)
    one[match_of[found]] = rows[found]
    return plain(column.take(pa.array(one)))

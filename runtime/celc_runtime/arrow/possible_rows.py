"""Matches in possible worlds → Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain, whole_numbers
from celc_runtime.arrow.event_store import POSITION
from celc_runtime.arrow.output import label_column
from celc_runtime.arrow.values import LabelValues, computed_column
from celc_runtime.engine.possible_rows import greatest_of, put_in_order, under_label
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


_NO_ROWS = Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def in_order(found: Iterable[tuple[int, Rows]], kind_bits: int, stop: int) -> Iterator[Rows]:
    """The rows by the last of their events, those of one such event from the latest first event
    back; the events of each by their numbers.

    With each batch comes the number of an event; all rows whose last event is before it have come.
    After `stop` no row waits.
    """
    waiting = _NO_ROWS
    for limit, rows in chain(found, [(stop, _NO_ROWS)]):
        if len(rows.ends):
            put_in_order(rows.ends, rows.tags)
            waiting = rows if not len(waiting.ends) else _joined(waiting, rows)
        if not len(waiting.ends):
            continue
        first = waiting.tags[np.append(0, waiting.ends[:-1])] >> kind_bits
        last = waiting.tags[waiting.ends - 1] >> kind_bits
        falls = (last[1:] < last[:-1]) | ((last[1:] == last[:-1]) & (first[1:] > first[:-1]))
        if falls.any():
            order = np.lexsort((-first, last))
            waiting, last = waiting.taken(order), last[order]
        known = int(np.searchsorted(last, limit))
        if known == len(last):
            yield waiting
            waiting = _NO_ROWS
        elif known:
            yield waiting.taken(np.arange(known))
            waiting = waiting.taken(np.arange(known, len(last)))


def _joined(one: Rows, other: Rows) -> Rows:
    return Rows(
        np.concatenate([one.ends, other.ends + len(one.tags)]),
        np.concatenate([one.tags, other.tags]),
        np.concatenate([one.confidences, other.confidences]),
    )


def possible_batch(
    plan: Plan, schema: pa.Schema, table: pa.RecordBatch, positions: np.ndarray, found: Rows
) -> pa.RecordBatch:
    """Rows as one batch of the output schema, whose events are in order. table: the events, with
    their positions (int64)."""
    assert plan.uncertain is not None
    ends, tags, confidences = found
    matches = len(ends)
    rows = tags >> plan.kind_bits
    first, last = rows[np.append(0, ends[:-1])], rows[ends - 1]

    def look_up(name: str, entries: np.ndarray) -> pa.Array:
        if name == POSITION:
            return pa.array(positions[entries])
        return plain(table.column(name).take(pa.array(entries)))

    def at_end(name: str) -> pa.Array:
        return plain(table.column(name).take(pa.array(last)))

    offsets, entries = [], []
    for column in range(len(plan.label_names)):
        belongs = np.array([column in kind.columns for kind in plan.kinds], np.bool_)
        of_label = under_label(ends, tags, plan.kind_bits, belongs)
        offsets.append(of_label[0])
        entries.append(of_label[1])
    values = LabelValues(plan.label_names, matches, offsets, entries, look_up, at_end)
    columns = [at_end(name) for name in plan.key_columns]
    if plan.positions:
        columns += [pa.array(positions[first]), pa.array(positions[last])]
    columns.append(plain(table.column(plan.uncertain.low).take(pa.array(first))))
    high = table.column(plan.uncertain.high)
    columns.append(plain(high.take(pa.array(greatest_of(ends, rows, whole_numbers(high))))))
    columns.append(pa.array(_rounded(confidences)))
    for item in plan.items:
        if isinstance(item, Computed):
            columns.append(computed_column(item, values))
        else:
            columns.append(label_column(plan, item, values))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rounded(confidences: np.ndarray) -> np.ndarray:
    """Confidences to 13 digits: sums of shares end in noise, as 0.7499999999999999 for 0.75."""
    scales = 10.0 ** (12 - np.floor(np.log10(np.maximum(confidences, 1e-280))))
    rounded: np.ndarray = np.minimum(np.round(confidences * scales) / scales, 1.0)
    return rounded


def joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    """Two batches of one schema as one."""
    (whole,) = pa.Table.from_batches([one, other]).combine_chunks().to_batches()
    return whole

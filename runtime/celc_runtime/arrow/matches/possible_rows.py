"""Matches in possible worlds → Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.arrow.event_store import POSITION, gathered
from celc_runtime.arrow.matches.match_ids import match_ids
from celc_runtime.arrow.matches.output import label_column
from celc_runtime.arrow.matches.values import LabelValues, computed_column
from celc_runtime.engine.worlds.possible_matches import (
    greatest_of,
    last_and_order,
    put_in_order,
    taken_matches,
    under_label,
)
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Plan


class Rows(NamedTuple):
    """Matches that will become rows."""

    ends: np.ndarray  # int64[matches], where the events of each match end in `tags`
    tags: np.ndarray  # int64, the number of the event << kind_bits | kind, in any order
    confidences: np.ndarray  # float64[matches]

    def taken(self, matches: np.ndarray) -> Rows:
        """Some of the rows, in the order of their numbers (int64)."""
        return Rows(*taken_matches(*self, matches))

    def cut(self, matches: int) -> tuple[Rows, Rows]:
        """The first `matches` rows, and the others."""
        used = int(self.ends[matches - 1]) if matches else 0
        ends, tags, confidences = self
        return (
            Rows(ends[:matches], tags[:used], confidences[:matches]),
            Rows(ends[matches:] - used, tags[used:], confidences[matches:]),
        )


NO_ROWS = Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


def in_order(found: Iterable[tuple[int, Rows]], kind_bits: int, stop: int) -> Iterator[Rows]:
    """Rows in the order of their last events; of one last event, the latest first event first.

    found: rows in any order, with a number for each batch: all rows whose last event has a smaller
    number have come with it. So those can be given out. stop: a number above all of them.
    """
    waiting = NO_ROWS
    for limit, rows in chain(found, [(stop, NO_ROWS)]):
        if len(rows.ends):
            put_in_order(rows.ends, rows.tags)
            waiting = joined_rows(waiting, rows)
        if not len(waiting.ends):
            continue
        last, order, by_last = last_and_order(waiting.ends, waiting.tags, kind_bits)
        if not by_last:
            last = waiting.tags[waiting.ends - 1] >> kind_bits
            first = waiting.tags[np.append(0, waiting.ends[:-1])] >> kind_bits
            order = np.lexsort((-first, last))
            last = last[order]
        if len(order):
            waiting = waiting.taken(order)
        known, waiting = waiting.cut(int(np.searchsorted(last, limit)))
        if len(known.ends):
            yield known


def joined_rows(one: Rows, other: Rows) -> Rows:
    """Rows, and others behind them."""
    if not len(one.ends):
        return other
    return Rows(
        np.concatenate([one.ends, other.ends + len(one.tags)]),
        np.concatenate([one.tags, other.tags]),
        np.concatenate([one.confidences, other.confidences]),
    )


def possible_batch(
    plan: Plan, schema: pa.Schema, table: pa.RecordBatch, positions: np.ndarray, found: Rows
) -> pa.RecordBatch:
    """Rows with sorted events as one batch of the output schema.

    table: the events, with their positions (int64).
    """
    assert plan.source.uncertain is not None
    ends, tags, confidences = found
    matches = len(ends)
    rows = tags >> plan.matching.kind_bits
    first, last = rows[np.append(0, ends[:-1])], rows[ends - 1]

    def look_up(name: str, entries: np.ndarray) -> pa.Array:
        if name == POSITION:
            return pa.array(gathered(positions, entries, 0))
        return pc.take(table.column(name), pa.array(entries), boundscheck=False)

    def at_end(name: str) -> pa.Array:
        return look_up(name, last)

    offsets, entries = [], []
    for column in range(len(plan.answer.label_names)):
        belongs = np.array([column in kind.columns for kind in plan.matching.kinds], np.bool_)
        of_label = under_label(ends, tags, plan.matching.kind_bits, belongs)
        offsets.append(of_label[0])
        entries.append(of_label[1])
    values = LabelValues(plan.answer.label_names, matches, offsets, entries, look_up, at_end)
    columns = [] if plan.answer.match_id is None else [match_ids(plan, first, last, values)]
    columns += [at_end(name) for name in plan.source.key_columns]
    if plan.answer.positions:
        columns += [look_up(POSITION, first), look_up(POSITION, last)]
    columns.append(look_up(plan.source.uncertain.low, first))
    high = plan.source.uncertain.high
    latest = greatest_of(ends, rows, whole_numbers(table.column(high)))
    columns.append(look_up(high, latest))
    columns.append(pa.array(_rounded(confidences)))
    for item in plan.answer.items:
        if isinstance(item, Computed):
            columns.append(computed_column(item, values))
        else:
            columns.append(label_column(plan, item, values))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rounded(confidences: np.ndarray) -> np.ndarray:
    """Confidences rounded to 13 digits: sums end in noise, as 0.7499999999999999 for 0.75."""
    if (confidences == 1.0).all():
        return confidences
    scales = 10.0 ** (12 - np.floor(np.log10(np.maximum(confidences, 1e-280))))
    rounded: np.ndarray = np.minimum(np.round(confidences * scales) / scales, 1.0)
    return rounded


def joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    """Two batches of one schema as one."""
    (whole,) = pa.Table.from_batches([one, other]).combine_chunks().to_batches()
    return whole

"""Matches in possible worlds → Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain, whole_numbers
from celc_runtime.arrow.event_store import POSITION
from celc_runtime.arrow.output import label_column
from celc_runtime.arrow.values import LabelValues, computed_column
from celc_runtime.plan.expressions import Computed
from celc_runtime.plan.plan import Plan


def possible_batch(
    plan: Plan,
    schema: pa.Schema,
    table: pa.RecordBatch,
    positions: np.ndarray,
    ends: np.ndarray,
    tags: np.ndarray,
    confidences: np.ndarray,
) -> pa.RecordBatch:
    """Matches as one batch of the output schema, by the last of their positions.

    table: the events, with their positions (int64). The events of match m end at `ends[m]` in tags
    (int64: row of the table << kind_bits | kind), in any order.
    """
    assert plan.uncertain is not None
    matches = len(ends)
    counts = np.diff(ends, prepend=0)
    match_of = np.repeat(np.arange(matches), counts)
    rows, kinds = tags >> plan.kind_bits, tags & ((1 << plan.kind_bits) - 1)
    order = np.lexsort((rows, match_of))
    last = rows[order[ends - 1]]
    by_end = np.lexsort((-rows[order[ends - counts]], last))
    # All events again, match by match in the order of their last positions.
    firsts = np.cumsum(counts[by_end]) - counts[by_end]
    places = np.arange(len(tags)) - np.repeat(firsts - (ends - counts)[by_end], counts[by_end])
    order = order[places]
    rows, kinds = rows[order], kinds[order]
    first, last = rows[firsts], last[by_end]

    def look_up(name: str, entries: np.ndarray) -> pa.Array:
        if name == POSITION:
            return pa.array(positions[entries])
        return plain(table.column(name).take(pa.array(entries)))

    def at_end(name: str) -> pa.Array:
        return plain(table.column(name).take(pa.array(last)))

    labels = _labels(plan, matches, np.repeat(np.arange(matches), counts[by_end]), rows, kinds)
    values = LabelValues(plan.label_names, matches, *labels, look_up, at_end)
    columns = [at_end(name) for name in plan.key_columns]
    if plan.positions:
        columns += [pa.array(positions[first]), pa.array(positions[last])]
    columns.append(plain(table.column(plan.uncertain.low).take(pa.array(first))))
    columns.append(_greatest(table.column(plan.uncertain.high), rows, firsts))
    columns.append(pa.array(np.minimum(confidences[by_end], 1.0)))
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

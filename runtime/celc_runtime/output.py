"""Matches in the kernel's buffers → Arrow batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from celc_runtime.columns import plain
from celc_runtime.enumerate import Kinds, Output, label_columns
from celc_runtime.expressions import Computed
from celc_runtime.payload import POSITION, Payload
from celc_runtime.plan import Label, Plan
from celc_runtime.values import LabelValues, computed_column


def matches_batch(
    plan: Plan,
    schema: pa.Schema,
    output: Output,
    kinds: Kinds,
    events: pa.RecordBatch,
    payload: Payload,
    positions_of: Callable[[np.ndarray], np.ndarray],
) -> pa.RecordBatch:
    """The matches in the buffers as one batch of the output schema; the buffers may be reused.

    `events` is the batch that holds the matches' last events, `positions_of` gives the positions
    of its rows, `payload` the stored events.
    """
    matches, used = int(output.used[0]), int(output.used[1])
    rows = output.rows[:matches]
    first = np.concatenate([[0], output.ends[: max(matches - 1, 0)]])
    starts = output.tags[first] >> plan.kind_bits
    columns = [plain(events.column(name).take(pa.array(rows))) for name in plan.partition_by]
    if plan.positions:
        columns += [payload.column(POSITION, starts), pa.array(positions_of(rows))]
    if plan.order_by:
        columns += [
            payload.column(plan.order_by[0], starts),
            events.column(plan.order_by[0]).take(pa.array(rows)),
        ]
    names = (*(label.name for label in plan.labels), *plan.hidden)
    offsets = np.empty((len(names), matches + 1), np.int32)
    entries = np.empty((len(names), used), np.int64)
    if names:
        label_columns(output, kinds, offsets, entries)
    labels = LabelValues(names, offsets, entries, payload.column)
    for item in plan.items:
        if isinstance(item, Computed):
            columns.append(computed_column(item, labels))
        else:
            columns.append(_label_column(plan, item, labels))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _label_column(plan: Plan, label: Label, labels: LabelValues) -> pa.Array:
    names = (POSITION, *label.attributes) if plan.positions else label.attributes
    values = [labels.column(label.name, name) for name in names]
    structs = pa.StructArray.from_arrays(values, fields=list(plan.struct_type(label)))
    return pa.ListArray.from_arrays(pa.array(labels.offsets(label.name)), structs)

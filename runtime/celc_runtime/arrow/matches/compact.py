"""Compact answers as Arrow batches: one row for each event that ends matches.

A row has the partition attributes, `end_pos`, `end_time`, and

* `events`: each event that is part of a match, once, in stream order: its position, and the
  attributes that SELECT shows or reads;
* `nodes`: the graph. `event` is an index into `events` (−1: a merge of two nodes). `mark` says
  under which labels the event stands, and whether it begins matches (−1: a merge). `child` is the
  node of the events before it, `next` another node for the same place in the match (−1: none). Each
  node is after those that it refers to, and the root is last.

A match is a path from the root to an event whose mark begins matches. From a merge it goes to
`child` or `next`. From an event it goes to `child`, with the event, or to `next`, without it.
Different paths are different matches, and each path is one. The metadata of the schema explain the
marks (`plan.compact_form`), so a table can be expanded without the query (`expanding`).
"""

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.event_store import EventStore
from celc_runtime.engine.graph.match_graph import Graphs
from celc_runtime.plan.compact_form import NODE, compact_form, compact_schema
from celc_runtime.plan.plan import Plan

KEY = b"celc.compact"
"""The key of the metadata of a schema that hold the form of compact answers."""


def schema_of(plan: Plan, *, listed: bool) -> pa.Schema:
    """The columns of a query's compact answers; see `compact_form`."""
    text = compact_form(plan, listed=listed).to_text()
    return compact_schema(plan).with_metadata({KEY: text.encode()})


def compact_batch(
    plan: Plan,
    schema: pa.Schema,
    graphs: Graphs,
    events: pa.RecordBatch,
    store: EventStore,
    entries_read: int,
) -> pa.RecordBatch:
    """The graphs in the buffers as one batch; `events` holds the last events of their matches."""
    count, used = int(graphs.used[0]), int(graphs.used[1])
    rows, ends = graphs.rows[:count].copy(), graphs.ends[:count]
    offsets = np.concatenate([[0], ends])
    entries, marks, children, following = graphs.nodes[:used].T
    of_graph = np.repeat(np.arange(count), np.diff(offsets))
    are_events = entries >= 0
    first = int(entries[are_events].min())
    span = entries_read - first
    pairs, numbers = np.unique(
        of_graph[are_events] * span + entries[are_events] - first, return_inverse=True
    )
    graph_of_event, found = pairs // span, pairs % span + first
    event_offsets = np.searchsorted(graph_of_event, np.arange(count + 1))
    number = np.full(used, -1)
    number[are_events] = numbers - event_offsets[of_graph[are_events]]
    stretch = store.stretch(first, entries_read)
    last = pa.array(rows)
    columns = [plain(events.column(name).take(last)) for name in plan.source.key_columns]
    stored = []
    if plan.answer.positions:
        # The root's graph holds the last event, which has the greatest entry.
        positions = stretch.positions(found)
        columns.append(pa.array(positions[event_offsets[1:] - 1]))
        stored.append(pa.array(positions))
    if plan.source.order_by:
        columns.append(events.column(plan.source.order_by[0]).take(last))
    places = stretch.places(found)
    stored += [stretch.column(name, places) for name in plan.stored_attributes]
    # By index: keys can have the names of these columns.
    events_type = schema.field(len(columns)).type.value_type
    columns.append(_lists(event_offsets, structs_of(stored, events_type, len(found))))
    parts = [pa.array(part.astype(np.int32)) for part in (number, marks, children, following)]
    columns.append(_lists(offsets, structs_of(parts, NODE, used)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def structs_of(columns: list[pa.Array], type: pa.DataType, rows: int) -> pa.Array:
    """Structs made of their fields; there may be none."""
    if not columns:
        return pa.array([{}] * rows, type)
    return pa.StructArray.from_arrays(columns, fields=list(type))


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)

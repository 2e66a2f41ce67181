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
Where events are simultaneous or last, a match can start at the place and the time of none of its
events. There the first event of each path is its start: it has no label, its position and its time
are those of the start, and its other attributes are NULL. Such events come first in `events`, by
their times and positions. Different paths are different matches, and each path is one. The metadata
of the schema explain the marks (`plan.compact_form`), so a table can be expanded without the query
(`expanding`).
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.event_store import EventStore
from celc_runtime.engine.graph.match_graph import Graphs
from celc_runtime.plan.compact_form import (
    NODE,
    compact_form,
    compact_schema,
    event_attributes,
)
from celc_runtime.plan.plan import Plan

_FIRST_START = -2
"""Stands for the first start of `Starts`, in place of the entry of a node. The second start is −3,
and so on."""

KEY = b"celc.compact"
"""The key of the metadata of a schema that hold the form of compact answers."""


class Starts(NamedTuple):
    """Where matches start, if that is beside their events (`has_starts`)."""

    positions: np.ndarray  # int64
    times: pa.Array


def number_of_start(starts: np.ndarray) -> np.ndarray:
    """int64: the numbers of starts, in place of the entries of nodes."""
    found: np.ndarray = _FIRST_START - starts
    return found


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
    starts: Starts | None = None,
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
    beside = None
    if starts is not None:
        are_starts = entries <= _FIRST_START
        starts, numbers_in_order = _in_order(starts, shown=plan.answer.positions)
        chosen = numbers_in_order[_FIRST_START - entries[are_starts]]
        beside = _beside(of_graph[are_starts], chosen, event_offsets)
        number[are_starts] = beside.numbers
        number[are_events] += np.diff(beside.offsets)[of_graph[are_events]]
    stretch = store.stretch(first, entries_read)
    last = pa.array(rows)
    columns = [plain(events.column(name).take(last)) for name in plan.source.key_columns]
    stored = []
    if plan.answer.positions:
        # The root's graph holds the last event, which has the greatest entry.
        positions = stretch.positions(found)
        ends_at = positions[event_offsets[1:] - 1] if starts is None else store.last_positions(rows)
        columns.append(pa.array(ends_at))
        stored.append(pa.array(positions))
    if plan.source.order_by:
        columns.append(events.column(plan.source.order_by[0]).take(last))
    places = stretch.places(found)
    stored += [stretch.column(name, places) for name in event_attributes(plan)]
    if starts is not None and beside is not None:
        stored = _with_starts(plan, stored, starts, beside)
        event_offsets = event_offsets + beside.offsets
    # By index: keys can have the names of these columns.
    events_type = schema.field(len(columns)).type.value_type
    columns.append(_lists(event_offsets, structs_of(stored, events_type, event_offsets[-1])))
    parts = [pa.array(part.astype(np.int32)) for part in (number, marks, children, following)]
    columns.append(_lists(offsets, structs_of(parts, NODE, used)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _in_order(starts: Starts, *, shown: bool) -> tuple[Starts, np.ndarray]:
    """The different starts by their times and, where these are shown, positions, and the new number
    of each one (int64). Matches are listed in another order where a part of the stream is read
    alone, and the answer is the same."""
    positions = starts.positions if shown else np.zeros_like(starts.positions)
    keys = [("time", "ascending"), ("position", "ascending")]
    order = pc.sort_indices(pa.table({"time": starts.times, "position": positions}), keys)
    rows = order.to_numpy()
    codes = np.asarray(starts.times.dictionary_encode().indices)
    pairs = np.stack([codes, positions])[:, rows]
    is_new = np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))
    numbers = np.empty(len(rows), np.int64)
    numbers[rows] = np.cumsum(is_new) - 1
    first = rows[is_new]
    return Starts(starts.positions[first], starts.times.take(pa.array(first))), numbers


class _Beside(NamedTuple):
    """The starts of graphs, each once in a graph."""

    starts: np.ndarray  # int64, graph by graph
    offsets: np.ndarray  # int64[graphs + 1]
    numbers: np.ndarray  # int64[nodes], the place of a node's start among those of its graph
    places: np.ndarray
    """int64: where each event of each graph stands in the starts of all graphs, followed by the
    events of all; in a graph the starts come first."""


def _beside(graphs: np.ndarray, starts: np.ndarray, event_offsets: np.ndarray) -> _Beside:
    """graphs, starts: int64[nodes], the graph and the start of each node that is one."""
    count, span = len(event_offsets) - 1, int(starts.max(initial=0)) + 1
    pairs, numbers = np.unique(graphs * span + starts, return_inverse=True)
    offsets = np.searchsorted(pairs // span, np.arange(count + 1))
    of_start, of_event = pairs // span, np.repeat(np.arange(count), np.diff(event_offsets))
    places = np.argsort(np.concatenate([of_start, of_event]), kind="stable")
    return _Beside(pairs % span, offsets, numbers - offsets[graphs], places)


def _with_starts(
    plan: Plan, columns: list[pa.Array], starts: Starts, beside: _Beside
) -> list[pa.Array]:
    """The columns of events with the starts before them."""
    chosen, places = pa.array(beside.starts), pa.array(beside.places)
    names = event_attributes(plan)
    time = plan.answer.positions + names.index(plan.source.order_by[0])
    found = []
    for number, column in enumerate(columns):
        column = plain(column)
        if plan.answer.positions and number == 0:
            first = pa.array(starts.positions).take(chosen)
        elif number == time:
            first = starts.times.take(chosen).cast(column.type)
        else:
            first = pa.nulls(len(chosen), column.type)
        found.append(pa.concat_arrays([first, column]).take(places))
    return found


def structs_of(columns: list[pa.Array], type: pa.DataType, rows: int) -> pa.Array:
    """Structs made of their fields; there may be none."""
    if not columns:
        return pa.array([{}] * rows, type)
    return pa.StructArray.from_arrays(columns, fields=list(type))


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)

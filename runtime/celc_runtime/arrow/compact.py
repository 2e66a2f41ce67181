"""Compact answers as Arrow batches, and the matches that they stand for.

A row has the partition attributes, `end_pos`, `end_time`, and

* `events`: each event that takes part in a match, once: its position, and its attributes;
* `nodes`: the graph. `event` is the number of an event in `events`, −1: a merge of two nodes;
  `mark` says under which labels the event stands; `child` is the node of the events before it,
  `next` another node for the same place, −1: none. The last node is the root.

A match is a path: from the root to `child` or `next` of a merge; from an event to another one by
`next`, which leaves the event out, or by `child`, which takes it. It ends at an event whose mark
begins matches. The metadata of the schema say what marks mean, so that a table needs no query to
be expanded: the nodes are read into an arena and listed as those of a run are.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import plain
from celc_runtime.arrow.event_store import EventStore
from celc_runtime.arrow.output import FirstMatches, entries_of_tags
from celc_runtime.engine.arena import (
    ALWAYS,
    CHILD,
    DONE,
    FIRED,
    FIRES,
    LISTED,
    LOWEST,
    MERGE,
    NEXT,
    NEXT_NODE,
    SINCE,
    STACK_FULL,
    STACK_SIZE,
    TAG,
    new_memory,
    with_deeper_stack,
)
from celc_runtime.engine.listing import Kinds, list_fired, new_output, with_more_room
from celc_runtime.engine.match_graph import Graphs
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan

_KEY = b"celc.compact"
_NODE = pa.struct([(name, pa.int32()) for name in ("event", "mark", "child", "next")])
_MATCHES_PER_BATCH = 1 << 16
_ENTRIES_PER_BATCH = 1 << 17


def compact_schema(plan: Plan, output: pa.Schema) -> pa.Schema:
    """The columns of a compact answer of a query, whose matches have the columns `output`."""
    keys = len(plan.key_columns)
    ends = [name for name in ("end_pos", "end_time") if name in output.names[keys:]]
    fields = [output.field(place) for place in range(keys)]
    ends = ends[: int(plan.positions) + bool(plan.order_by)]
    fields += [output.field(output.names.index(name, keys)) for name in ends]
    stored = [pa.field("pos", pa.int64(), nullable=False)] if plan.positions else []
    schema = plan.input_schema()
    stored += [pa.field(name, schema.field(name).type) for name in plan.stored_attributes]
    fields += [pa.field("events", pa.list_(pa.struct(stored))), pa.field("nodes", pa.list_(_NODE))]
    places = {name: number + plan.positions for number, name in enumerate(plan.stored_attributes)}
    says = {
        "output": b64encode(output.serialize().to_pybytes()).decode(),
        "keys": keys,
        "positions": plan.positions,
        "time": places[plan.order_by[0]] if plan.order_by else -1,
        "labels": [
            (
                [0, *(places[name] for name in label.attributes)]
                if plan.positions
                else [places[name] for name in label.attributes]
            )
            for label in plan.labels
        ],
        "marks": [[int(kind.starts), *kind.columns] for kind in plan.kinds],
    }
    return pa.schema(fields, metadata={_KEY: json.dumps(says).encode()})


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
    columns = [plain(events.column(name).take(last)) for name in plan.key_columns]
    stored = []
    if plan.positions:
        # The root's graph holds the last event, which has the greatest entry.
        positions = stretch.positions(found)
        columns.append(pa.array(positions[event_offsets[1:] - 1]))
        stored.append(pa.array(positions))
    if plan.order_by:
        columns.append(events.column(plan.order_by[0]).take(last))
    places = stretch.places(found)
    stored += [stretch.column(name, places) for name in plan.stored_attributes]
    type = schema.field("events").type.value_type
    structs = _structs(stored, type, len(found))
    columns.append(_lists(event_offsets, structs))
    parts = [pa.array(part.astype(np.int32)) for part in (number, marks, children, following)]
    columns.append(_lists(offsets, _structs(parts, _NODE, used)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _structs(columns: list[pa.Array], type: pa.DataType, rows: int) -> pa.Array:
    if not columns:
        return pa.array([{}] * rows, type)
    return pa.StructArray.from_arrays(columns, fields=list(type))


def _lists(offsets: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def expand(compact: Any, limit: int | None = None) -> pa.RecordBatchReader:
    """The matches of compact answers: the rows of `match_table`, batch by batch.

    compact: what `match_compact` or `match_compact_arrow` gave: a table, a record batch, or a
    reader. limit: at most so many matches in all. Nothing is listed before it is read, and the time
    between two matches does not depend on how many there are. Raises EventError for a table
    without the metadata of a compact answer.
    """
    if isinstance(compact, pa.RecordBatch):
        compact = pa.Table.from_batches([compact])
    says = (compact.schema.metadata or {}).get(_KEY)
    if says is None:
        raise EventError(
            "expand takes what match_compact gave, with the metadata of its schema: this table has "
            "none, perhaps because its columns were made anew"
        )
    meaning = json.loads(says)
    schema = pa.ipc.read_schema(pa.py_buffer(b64decode(meaning["output"])))
    batches = compact.to_batches() if isinstance(compact, pa.Table) else compact
    first = FirstMatches(limit)
    found = first.of(
        matches
        for batch in batches
        for start in range(0, len(batch), FIRES)
        for matches in _matches(batch.slice(start, FIRES), meaning, schema)
    )
    return pa.RecordBatchReader.from_batches(schema, found)


def _matches(
    batch: pa.RecordBatch, meaning: dict[str, Any], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The matches of at most FIRES rows."""
    names = range(len(meaning["labels"]))
    marks = meaning["marks"]
    bits = max(1, (len(marks) - 1).bit_length())
    kinds = Kinds(
        np.array([mark[0] == 1 for mark in marks], np.bool_),
        np.array([[n in mark[1:] for mark in marks] for n in names], np.uint64).reshape(
            len(names), len(marks)
        ),
        np.array([bits], np.int64),
        np.zeros(3, np.int64),
    )
    # Behind the other columns, since a key can be called like these.
    of_events, of_nodes = batch.column(batch.num_columns - 2), batch.column(batch.num_columns - 1)
    nodes, node_offsets = of_nodes.flatten(), np.asarray(of_nodes.value_lengths())
    sizes = np.asarray(of_events.value_lengths())
    events = of_events.flatten()
    memory = _arena(nodes, node_offsets, sizes, bits)
    columns = events.flatten()
    output = new_output(matches=_MATCHES_PER_BATCH, room=_ENTRIES_PER_BATCH, limit=None)
    status = None
    while status != DONE:
        status = int(list_fired(memory, output, kinds))
        if status == STACK_FULL:
            memory = with_deeper_stack(memory)
        elif status != DONE and not output.used[0]:
            output = with_more_room(output, 2 * len(output.tags))
        if not output.used[0]:
            continue
        found = entries_of_tags([str(name) for name in names], output, kinds)
        rows = pa.array(output.rows[: output.used[0]].copy())
        listed = [batch.column(place).take(rows) for place in range(meaning["keys"])]
        starts, place = pa.array(found.starts), meaning["keys"]
        if meaning["positions"]:
            listed += [columns[0].take(starts), batch.column(place).take(rows)]
            place += 1
        if meaning["time"] >= 0:
            listed += [columns[meaning["time"]].take(starts), batch.column(place).take(rows)]
        for label, shown in enumerate(meaning["labels"]):
            under = pa.array(found.entries[label])
            type = schema.field(len(listed)).type.value_type
            structs = _structs([columns[c].take(under) for c in shown], type, len(under))
            listed.append(pa.ListArray.from_arrays(pa.array(found.offsets[label]), structs))
        output.used[:] = 0
        yield pa.RecordBatch.from_arrays(listed, schema=schema)


def _arena(nodes: pa.StructArray, sizes: np.ndarray, events: np.ndarray, bits: int) -> Any:
    """An arena with the graphs of all rows, each of which fires. Its entries are the numbers of the
    events of all rows."""
    count = len(nodes)
    event, mark, child, following = (np.asarray(part).astype(np.int64) for part in nodes.flatten())
    first_node = np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    first_event = np.repeat(np.cumsum(events) - events, sizes)
    memory = new_memory(0, size=max(2, 1 << int(count).bit_length()))
    into = memory.nodes[1 : count + 1]
    into[:, TAG] = np.where(event < 0, MERGE, (event + first_event) << bits | mark)
    into[:, CHILD] = np.where(child < 0, 0, child + first_node)
    into[:, NEXT] = np.where(following < 0, 0, following + first_node)
    into[:, SINCE] = 0
    fires = memory.fires[: len(sizes)]
    fires[:, 0], fires[:, 1], fires[:, 2] = np.cumsum(sizes), np.arange(len(sizes)), 1
    fires[:, 3] = ALWAYS
    counters = memory.counters
    counters[NEXT_NODE], counters[LOWEST], counters[FIRED] = count + 1, 1, len(sizes)
    counters[LISTED] = counters[STACK_SIZE] = 0
    return memory

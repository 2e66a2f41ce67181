"""The matches that compact answers stand for.

The graphs of some rows become an arena (`engine.arena.nodes`). Their matches are listed as in a
run, so the time between two matches depends only on their length. The buffers have a fixed size for
any number of matches, and rows are read a few at a time.

Rejected: walking the graphs in Python, match by match. A match would cost a hundred times as much.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.matches.compact import KEY, structs_of
from celc_runtime.arrow.matches.compact_checks import check_rows, checked_columns, lengths
from celc_runtime.arrow.matches.output import FirstMatches, LabelEntries, entries_of_tags
from celc_runtime.arrow.matches.values import LabelValues, computed_column
from celc_runtime.engine.arena.nodes import (
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
    Memory,
    new_memory,
    with_deeper_stack,
)
from celc_runtime.engine.walk.listing import Kinds, list_fired, new_output, with_more_room
from celc_runtime.plan.compact_form import CompactForm, ShownLabel
from celc_runtime.plan.errors import EventError

_MATCHES_PER_BATCH = 1 << 16
_ENTRIES_PER_BATCH = 1 << 17
_NODES_AT_ONCE = 1 << 16


def expand_arrow(compact: Any, limit: int | None) -> pa.RecordBatchReader:
    """The matches of compact answers in Arrow; see `celc_runtime.expand`."""
    if isinstance(compact, pa.RecordBatch):
        compact = pa.Table.from_batches([compact])
    schema = getattr(compact, "schema", None)
    if not isinstance(schema, pa.Schema):
        raise TypeError(
            "expand takes the compact answers of match_compact: a pyarrow Table, RecordBatch or "
            f"RecordBatchReader, or a DataFrame of Spark, not {type(compact).__name__}"
        )
    form = form_of((schema.metadata or {}).get(KEY))
    batches = compact.to_batches() if isinstance(compact, pa.Table) else compact
    found = matches_of_compact(form, batches, limit)
    return pa.RecordBatchReader.from_batches(form.output, found)


def form_of(text: bytes | str | None) -> CompactForm:
    """The form of compact answers; raises EventError if there is none, or it cannot be read."""
    if text is None:
        raise EventError(
            "expand takes what match_compact gave, with the metadata of its schema: this table has "
            "none, perhaps because its columns were made anew"
        )
    try:
        return CompactForm.of_text(text if isinstance(text, str) else text.decode())
    except (ValueError, KeyError, TypeError) as problem:
        raise EventError(
            f"expand cannot read the metadata of this table ({problem}): another version of celc "
            "may have made it"
        ) from problem


def matches_of_compact(
    form: CompactForm, batches: Iterable[pa.RecordBatch], limit: int | None
) -> Iterator[pa.RecordBatch]:
    """The matches of batches of compact answers, at most `limit` in all."""
    first, expansion = FirstMatches(limit, "limit"), _Expansion(form, limit)
    found = (
        matches
        for rows in _checked(form, batches)
        for part in _parts(rows)
        for matches in expansion.of(part)
    )
    return first.of(found)


def _checked(form: CompactForm, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of rows whose numbers a kernel may follow."""
    seen = 0
    for batch in batches:
        rows = checked_columns(form, _columns_of(form, batch), seen)
        check_rows(form, rows, seen)
        yield rows
        seen += len(batch)


def _columns_of(form: CompactForm, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of the form; others may be there too. Raises EventError if one is missing."""
    known = batch.schema.names
    if known == [*form.columns]:
        return batch
    if lacking := [name for name in form.columns if known.count(name) != 1]:
        raise EventError(
            f"expand needs the columns {', '.join(map(repr, form.columns))} of match_compact, each "
            f"once; it finds {', '.join(map(repr, known))}, without {lacking[0]!r} or twice with it"
        )
    return batch.select([*form.columns])


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in parts of at most FIRES rows and few nodes, or of a single row."""
    ends = np.cumsum(lengths(batch.column(batch.num_columns - 1)))
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + _NODES_AT_ONCE, side="right"))
        end = min(max(end, start + 1), start + FIRES, len(ends))
        yield batch.slice(start, end - start)
        start = end


class _Expansion:
    def __init__(self, form: CompactForm, limit: int | None) -> None:
        self._form = form
        names, marks = range(len(form.labels)), form.marks
        self._kinds = Kinds(
            np.array([begins for begins, _ in marks] or [False], np.bool_),
            np.array([[n in labels for _, labels in marks] for n in names], np.uint64).reshape(
                len(names), len(marks)
            ),
            np.array([max(1, (len(marks) - 1).bit_length())], np.int64),
            np.zeros(4, np.int64),
        )
        matches = _MATCHES_PER_BATCH if limit is None else min(limit, _MATCHES_PER_BATCH)
        self._output = new_output(matches=matches, room=_ENTRIES_PER_BATCH, limit=limit)

    def of(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        events, nodes = rows.column(rows.num_columns - 2), rows.column(rows.num_columns - 1)
        bits = int(self._kinds.bits[0])
        memory = _arena(nodes.flatten(), lengths(nodes), lengths(events), bits)
        fields = events.flatten().flatten()
        shown = [_of_type(a, f.type) for a, f in zip(fields, self._form.event, strict=True)]
        status = None
        while status != DONE:
            status = int(list_fired(memory, self._output, self._kinds))
            if status == STACK_FULL:
                memory = with_deeper_stack(memory)
            elif status != DONE and not self._output.used[0]:
                self._output = with_more_room(self._output, 2 * len(self._output.tags))
            if self._output.used[0]:
                found = entries_of_tags(self._form.labels, self._output, self._kinds)
                ends = self._output.rows[: self._output.used[0]].copy()
                self._output.used[:] = 0
                yield self._batch(rows, shown, ends, found)

    def _batch(
        self,
        rows: pa.RecordBatch,
        events: list[pa.Array],
        ends: np.ndarray,
        found: LabelEntries,
    ) -> pa.RecordBatch:
        """The listed matches, in the columns of `match_table`."""
        form = self._form
        places, starts, at = pa.array(ends), pa.array(found.starts), form.keys
        columns = [rows.column(place).take(places) for place in range(form.keys)]
        attributes = dict(form.read)
        of_row = columns[-1] if form.row is not None else None
        if of_row is not None:
            shown = list(form.output.types[form.keys - 1])
            fields_shown = [pc.struct_field(of_row, one.name) for one in shown]
            columns[-1] = structs_of(fields_shown, pa.struct(shown), len(ends))
        if form.positions:
            columns += [events[0].take(starts), rows.column(at).take(places)]
            at += 1
        if form.time >= 0:
            columns += [events[form.time].take(starts), rows.column(at).take(places)]
        # A field can have the name of the position, which is the first field.
        fields = {f.name: n for n, f in enumerate(form.event) if n >= form.positions}

        def look_up(name: str, entries: np.ndarray) -> pa.Array:
            return events[fields[name]].take(pa.array(entries))

        def at_end(name: str) -> pa.Array:
            return pc.struct_field(of_row, attributes[name])

        offsets_of = found.offsets, found.entries
        labels = LabelValues(form.labels, len(ends), *offsets_of, look_up, at_end)
        for item in form.items:
            if not isinstance(item, ShownLabel):
                columns.append(computed_column(item, labels))
                continue
            under = pa.array(found.entries[item.label])
            type = form.output.field(len(columns)).type.value_type
            structs = structs_of([events[n].take(under) for n in item.fields], type, len(under))
            offsets = pa.array(found.offsets[item.label])
            columns.append(pa.ListArray.from_arrays(offsets, structs))
        typed = [_of_type(a, f.type) for a, f in zip(columns, form.output, strict=True)]
        return pa.RecordBatch.from_arrays(typed, schema=form.output)


def _of_type(column: pa.Array, type: pa.DataType) -> pa.Array:
    """The column in its own type again: Spark and files change the zone of times, and texts."""
    return column if column.type == type else column.cast(type)


def _arena(nodes: pa.StructArray, sizes: np.ndarray, events: np.ndarray, bits: int) -> Memory:
    """An arena with the graphs of all rows. Each row with a node fires.

    Its entries are the numbers of the events of all rows.
    """
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
    rows = np.flatnonzero(sizes)
    fires = memory.fires[: len(rows)]
    fires[:, 0], fires[:, 1], fires[:, 2] = np.cumsum(sizes)[rows], rows, 1
    fires[:, 3] = ALWAYS
    counters = memory.counters
    counters[NEXT_NODE], counters[LOWEST], counters[FIRED] = count + 1, 1, len(rows)
    counters[LISTED] = counters[STACK_SIZE] = 0
    return memory

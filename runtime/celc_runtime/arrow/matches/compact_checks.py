"""Checks compact answers before a kernel follows their numbers.

They may come from a file, or from other code. An index out of range would be read anyway, and a
cycle would never end. All checks are linear in the table. They ensure what `list_fired` relies on:
every step leads to a match, and no match is longer than the events of its row.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.jit.kernels import njit
from celc_runtime.plan.compact_form import NODE, CompactForm
from celc_runtime.plan.errors import EventError

_EVENT, _MARK, _CHILD, _NEXT, _MERGED, _END, _ORDER = range(1, 8)

_WRONG = {
    _EVENT: "has the event {event}, and the row has {events:,} events, counted from 0",
    _MARK: "has the mark {mark}, which its kind of node and the metadata do not know",
    _CHILD: "has the child {child}, and a node stands behind those that it refers to",
    _NEXT: "has the next node {next}, and a node stands behind those that it refers to",
    _MERGED: "joins two others, and lacks one of them: child {child}, next {next}",
    _END: "has no child, and no match begins with its event",
    _ORDER: "has the event {event}, and its child leads to an event that is not before that one",
}


def checked_columns(form: CompactForm, batch: pa.RecordBatch, seen: int) -> pa.RecordBatch:
    """The columns of a batch in the types of the form; `seen`: the number of rows before it.

    Raises EventError if a value is not possible in a compact answer.
    """
    columns = []
    for name, column, type in zip(form.columns, batch.columns, _types(form), strict=True):
        try:
            column.validate(full=True)
            if not _is_of(column.type, type):
                raise pa.ArrowInvalid(f"{column.type} and not {type}")
            if name == form.columns[-1] and column.type != type:
                column = column.cast(type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise EventError(
                f"expand cannot read the column {name!r}: {problem} ({_rows(seen, len(batch))})"
            ) from problem
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def check_rows(form: CompactForm, batch: pa.RecordBatch, seen: int) -> None:
    """Raises EventError if a number of a batch of `checked_columns` is wrong.

    The error gives the number of the row among all rows; `seen` rows came before.
    """
    events, nodes = batch.columns[-2:]
    sizes, of_events = lengths(nodes), lengths(events)
    for name, column in zip(
        form.columns[form.keys : -2], batch.columns[form.keys : -2], strict=True
    ):
        if column.null_count:
            row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise _error(seen + row, f"{name} is NULL")
    fields = nodes.flatten()
    _check_events(form, events.flatten(), of_events, seen, _starts_of(form, fields, sizes))
    parts = fields.flatten()
    for field, part in zip(NODE, parts, strict=True):
        if part.null_count:
            place = int(np.flatnonzero(np.asarray(part.is_null()))[0])
            raise _error(*_place_of(place, sizes, seen, "node"), f"has NULL for {field.name!r}")
    numbers = tuple(np.asarray(part) for part in parts)
    begins = np.array([one for one, _ in form.marks] or [False], np.bool_)[: len(form.marks)]
    found, wrong = first_wrong(*numbers, sizes, of_events, begins, np.empty(len(fields), np.int32))
    if wrong:
        event, mark, child, following = (int(part[found]) for part in numbers)
        row, where = _place_of(int(found), sizes, seen, "node")
        told = _WRONG[int(wrong)].format(
            event=event, mark=mark, child=child, next=following, events=of_events[row - seen]
        )
        raise _error(row, where, told)


def lengths(lists: pa.Array) -> np.ndarray:
    return np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)


@njit(nogil=True, cache=True)
def first_wrong(event, mark, child, following, sizes, events, begins, latest):  # type: ignore[no-untyped-def]
    """(the first node with a wrong number, what is wrong with it); (−1, 0): all are right.

    sizes, events: int64[rows], the numbers of nodes and of events of each row. latest: int32 for
    each node, written here: the latest event that its matches can have at its place.
    """
    node = 0
    for row in range(sizes.shape[0]):
        first = node
        for place in range(sizes[row]):
            below, beside = child[node], following[node]
            if below < -1 or below >= place:
                return node, _CHILD
            if beside < -1 or beside >= place:
                return node, _NEXT
            last = latest[first + beside] if beside >= 0 else np.int32(-1)
            if event[node] == -1:
                if mark[node] != -1:
                    return node, _MARK
                if below < 0 or beside < 0:
                    return node, _MERGED
                last = max(last, latest[first + below])
            else:
                if event[node] < 0 or event[node] >= events[row]:
                    return node, _EVENT
                if mark[node] < 0 or mark[node] >= begins.shape[0]:
                    return node, _MARK
                if below < 0 and not begins[mark[node]]:
                    return node, _END
                if below >= 0 and latest[first + below] >= event[node]:
                    return node, _ORDER
                last = max(last, event[node])
            latest[node] = last
            node += 1
    return -1, 0


def _starts_of(form: CompactForm, nodes: pa.Array, sizes: np.ndarray) -> np.ndarray:
    """int64[rows]: how many events of each row are the starts of matches, as its nodes say."""
    found = np.zeros(len(sizes), np.int64)
    if form.starts and len(nodes):
        event, mark = (nodes.field(name).fill_null(-1).to_numpy() for name in ("event", "mark"))
        rows = np.repeat(np.arange(len(sizes)), sizes)
        are_starts = mark == len(form.marks) - 1
        np.maximum.at(found, rows[are_starts], event[are_starts].astype(np.int64) + 1)
    return found


def _check_events(
    form: CompactForm, events: pa.Array, sizes: np.ndarray, seen: int, starts: np.ndarray
) -> None:
    """Positions must ascend in a row, behind its starts. Neither positions nor times may be
    NULL."""
    fields = events.flatten()
    needed = [0] * form.positions + [form.time] * (form.time >= 0)
    for number in needed:
        if fields[number].null_count:
            place = int(np.flatnonzero(np.asarray(fields[number].is_null()))[0])
            told = f"has NULL for {form.event.field(number).name!r}"
            raise _error(*_place_of(place, sizes, seen, "event"), told)
    if form.positions and len(events):
        positions = np.asarray(fields[0])
        falls = positions[1:] <= positions[:-1]
        borders = np.cumsum(sizes)[:-1]
        falls[borders[(borders > 0) & (borders < len(positions))] - 1] = False
        firsts = np.repeat(np.cumsum(sizes) - sizes + np.minimum(starts, sizes), sizes)
        falls &= np.arange(1, len(positions)) > firsts[1:]
        if falls.any():
            place = int(falls.argmax()) + 1
            told = "has a position that is not behind that of the event before it"
            raise _error(*_place_of(place, sizes, seen, "event"), told)


def _place_of(place: int, sizes: np.ndarray, seen: int, what: str) -> tuple[int, str]:
    """The row of a node or an event, and its name there."""
    ends = np.cumsum(sizes)
    row = int(np.searchsorted(ends, place, side="right"))
    return seen + row, f"{what} {place - int(ends[row] - sizes[row]):,}"


def _error(row: int, *told: str) -> EventError:
    return EventError(
        f"expand: {_row(row)} is none of a compact answer: {' '.join(told)}; perhaps the table was "
        "changed after match_compact, or its file is damaged"
    )


def _row(row: int) -> str:
    return f"row {row:,} (counted from 0)"


def _rows(seen: int, count: int) -> str:
    return _row(seen) if count == 1 else f"in the {count:,} rows from {_row(seen)} on"


# --- types ----------------------------------------------------------------------------------------


def _types(form: CompactForm) -> Sequence[pa.DataType]:
    types = list(form.output.types)
    at = form.keys
    header = form.key_types
    if form.positions:
        header.append(types[at + 1])
        at += 2
    if form.time >= 0:
        header.append(types[at + 1])
    return [*header, pa.list_(pa.struct(list(form.event))), pa.list_(NODE)]


def _is_of(type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type are those of another type in a different form.

    Spark and files change the zone of times, and the form of texts and lists.
    """
    if pa.types.is_list(wanted):
        if not (pa.types.is_list(type) or pa.types.is_large_list(type)):
            return False
        return _is_of(type.value_type, wanted.value_type)
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(type) or type.num_fields != wanted.num_fields:
            return False
        pairs = zip(type, wanted, strict=True)
        return all(one.name == other.name and _is_of(one.type, other.type) for one, other in pairs)
    if pa.types.is_dictionary(type):
        return _is_of(type.value_type, wanted)
    for kind in (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_duration, _is_text):
        if kind(wanted):
            return bool(kind(type))
    return bool(type == wanted)


def _is_text(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)
    )

"""Keys of PARTITION BY: columns made for them, and values that are equal exactly if the keys are.

Keys are equal as in Spark: NaN equals NaN, and −0.0 is 0.0. All events of a query pass `with_keys`.
It normalizes the keys once, and all later code may code, hash and compare them by their bits. The
answer shows 0.0 on every route.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    as_keys,
    in_one_piece,
    is_whole,
    numbers,
    plain,
    room_of,
    whole_values,
)
from celc_runtime.arrow.events.ascending import is_signed
from celc_runtime.arrow.events.chosen_keys import columns_of_keys, key_values
from celc_runtime.arrow.events.conforming import conforming_column
from celc_runtime.arrow.events.digits import is_worth_it
from celc_runtime.arrow.events.paths import with_fields
from celc_runtime.arrow.events.row_names import row_text
from celc_runtime.arrow.views import without_views
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import event_schema


def with_keys(plan: Plan, events: pa.RecordBatch) -> pa.RecordBatch:
    """Conforming events with their keys `as_keys`, then the columns
    `plan.source.chosen_columns`."""
    for name in plan.source.key_attributes:
        column = events.column(name)
        if pa.types.is_floating(column.type):
            place = events.schema.names.index(name)
            events = events.set_column(place, name, as_keys(column))
    for name, key in plan.source.chosen_columns.items():
        read = {n: plain(events.column(n)) for n in columns_of_keys(plan, [key])}
        events = events.append_column(name, key_values(plan, key, read))
    return events


def columns_as_they_came(
    plan: Plan, names: Sequence[str], events: pa.RecordBatch | pa.Table
) -> dict[str, pa.Array | pa.ChunkedArray] | None:
    """Columns of events that need not conform, also `plan.source.chosen_columns`.

    None if a column is missing or there twice; `conforming` then raises the error. Raises
    EventError if a key cannot be made, because its attribute has a wrong type.
    """
    chosen = {name: key for name, key in plan.source.chosen_columns.items() if name in names}
    read = [name for name in names if name not in chosen]
    sources = columns_of_keys(plan, chosen.values()) if chosen else []
    events = with_fields(events, [*read, *sources])
    if any(events.schema.names.count(name) != 1 for name in (*read, *sources)):
        return None
    if not chosen:
        return {name: events.column(name) for name in names}
    fields = {field.name: field for field in event_schema(plan)}
    row_of = partial(row_text, events, rows_seen=0, numbered=None)
    plains = {
        name: plain(
            conforming_column(
                plan, fields[name], without_views(in_one_piece(events.column(name))), row_of
            )
        )
        for name in sources
    }
    made = {name: key_values(plan, key, plains) for name, key in chosen.items()}
    return {name: made[name] if name in made else events.column(name) for name in names}


def partition_keys(plan: Plan, events: pa.RecordBatch) -> list[tuple[object, ...]]:
    """The partitions of the first and the last row of a batch that need not conform.

    Empty if columns are missing; `conforming` then raises the error.
    """
    source = plan.source
    names = events.schema.names
    if not source.chosen_columns and all(names.count(name) == 1 for name in source.key_columns):
        found = [events.column(name) for name in source.key_columns]
    else:
        columns = columns_as_they_came(plan, source.key_columns, events)
        if columns is None:
            return []
        found = list(columns.values())
    return [
        key
        for row in (0, len(events) - 1)
        for key in key_tuples([plain(column.slice(row, 1)) for column in found])
    ]


def codes_of_keys(columns: Sequence[pa.Array], rows: int) -> np.ndarray:
    """int64[rows]: a number for the key of each row, from 0 on without gaps; equal keys have equal
    numbers. Those of one column are numbered as they come."""
    codes: np.ndarray | None = None
    for column in columns:
        found, width = _codes_of_column(column)
        codes = found if codes is None else _numbered(codes * width + found)
    return np.zeros(rows, np.int64) if codes is None else codes


def _codes_of_column(column: pa.Array) -> tuple[np.ndarray, int]:
    """(int64[rows], a number for each value; how many there are)."""
    if is_worth_it(len(column)) and is_signed(column):
        values = whole_values(column)
        least, greatest = int(values.min()), int(values.max())
        if greatest - least < len(values):
            codes, numbers_of = room_of(len(values)), np.full(greatest - least + 1, -1)
            return codes, number_values(values, least, numbers_of, codes)
    coded = as_keys(column).dictionary_encode(null_encoding="encode")
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(coded.dictionary))


@njit(nogil=True, cache=True)
def number_values(values, least, numbers_of, codes):  # type: ignore[no-untyped-def]
    """Write a number for each value, as they come; returns how many there are. numbers_of: int64,
    for each value from `least` on its number; −1: it has not come."""
    count = 0
    for row in range(len(values)):
        place = np.int64(values[row]) - least
        if numbers_of[place] < 0:
            numbers_of[place] = count
            count += 1
        codes[row] = numbers_of[place]
    return count


def _numbered(codes: np.ndarray) -> np.ndarray:
    """int64: the rank of each number, none below 0, among those that are there."""
    width = int(codes.max(initial=0)) + 1
    if width > max(len(codes), 1 << 16):
        found: np.ndarray = np.unique(codes, return_inverse=True)[1]
        return found
    is_there = np.zeros(width, np.bool_)
    is_there[codes] = True
    ranks: np.ndarray = (np.cumsum(is_there) - 1)[codes]
    return ranks


def key_tuples(
    columns: Sequence[pa.Array], rows: np.ndarray | None = None
) -> list[tuple[object, ...]]:
    """Partition keys, row by row, as Python values that are equal exactly if the keys are.

    rows: int64, those whose keys are wanted; None: all.
    """
    return list(zip(*(_values(column, rows) for column in columns), strict=True))


def _values(column: pa.Array, rows: np.ndarray | None) -> list[object]:
    if rows is not None and is_whole(column):
        found: list[object] = numbers(column)[0][rows].tolist()  # a third of the time
        return found
    if rows is not None:
        column = plain(column.take(pa.array(rows)))  # Python is slow to look up codes
    # Times as numbers, because Python has none before the year 1 or after 9999.
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    values: list[object] = column.to_pylist()
    return [_normal(value) for value in values] if pa.types.is_floating(column.type) else values


def _normal(value: object) -> object:
    # NaN must equal itself as a key, and −0.0 is 0.0.
    if not isinstance(value, float):
        return value
    return "NaN" if value != value else value + 0.0

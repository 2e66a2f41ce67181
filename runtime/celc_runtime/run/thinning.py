"""Rows that cannot matter leave a large table before it is sorted.

Where few rows are of the types and values that a query asks for, most of a call was sorting and
moving the others. Their symbol is 0 (`classify`), so no run looks at them; they only count, for the
positions of the rows that stay. Where a table is in the order of time, each key counts its rows in
one pass.

It is done only where the rows that leave cannot be wrong in any way that the answer, a warning or
an error would tell: all columns are of the declared types, all events of declared types, no column
of the order or of PARTITION BY has NULL, and no two rows are equal in the order.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    in_one_piece,
    is_whole,
    numbers,
    taken,
    whole_column,
    whole_values,
)
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.digits import Step, Workers, coded_texts, done
from celc_runtime.arrow.events.event_types import coding_types
from celc_runtime.arrow.events.layout import Layout
from celc_runtime.arrow.events.sorting import sort_columns
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program

LEAST_ROWS = 1 << 16  # of a table: with fewer, what is saved is less than what it costs to look

_MOST_KEPT = 1 / 3  # of the rows: with more, sorting all of them takes as long

_MOST_KEPT_OF_ONE_STREAM = 1 / 16  # of the rows without keys, which need no sort

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "LONG", "INT")  # order columns: no value is out of range

_FEW = 1 << 12  # rows that are looked at first: most tables show there that they do not rise


class Thinned(NamedTuple):
    """The rows of a table that can matter, in the order in which they stand.

    table: with two more columns. numbered: the name of the one with the numbers that the rows have
    in the whole table. positions: the name of the one with their positions in their partitions.
    """

    table: pa.Table
    numbered: str
    positions: str


def can_thin(program: Program) -> bool:
    """Whether a query needs only the rows that can matter, if it gets their positions."""
    plan = program.plan
    return (
        plan.source.relevant is not None
        and bool(plan.source.order_by)
        and plan.source.type_of(plan.source.order_by[0]) in _TIMES
        and not plan.choice.deadlines
        and not program.compares_late
    )


def thinned(program: Program, table: pa.Table, workers: Workers) -> Thinned | None:
    """The rows of a table that can matter; None: all have to be read, or are too many.

    Only for a program for which `can_thin`, and a table whose columns conform as they are, as those
    that are read as few rows do (`few_rows`). The share of rows that stay is kept with the program,
    so that where thinning does not pay only the first call looks.
    """
    plan = program.plan
    most = _MOST_KEPT if plan.source.key_columns else _MOST_KEPT_OF_ONE_STREAM
    if program.kept.get("share", 0) > most:
        return None
    names = {*sort_columns(plan), plan.source.type_name} & {*table.schema.names}
    if any(table.column(name).null_count for name in names):
        return None
    orders = dict.fromkeys((*plan.source.order_by, *plan.source.tiebreak))
    columns = [in_one_piece(table.column(name)) for name in orders]
    if not all(map(is_whole, columns)):
        return None
    batch = _with_coded_types(plan, table, [*map(whole_values, columns)], workers)
    keys = None if batch is None else _keys(plan, batch, workers)
    if batch is None or keys is None:
        return None
    slices = workers.slices(len(batch))
    counts = np.zeros((len(slices) + 1, keys.different), np.int64)
    calls = [
        partial(_symbols_and_counts, program, batch, keys, counts[number + 1], *one)
        for number, one in enumerate(slices)
    ]
    try:
        symbols = workers.side_by_side(calls)
    except EventError:
        return None  # a run says what is wrong
    share = program.kept["share"] = sum(map(np.count_nonzero, symbols)) / len(batch)
    if share > most:
        return None
    np.cumsum(counts, axis=0, out=counts)
    some = workers.side_by_side(
        [
            partial(_numbered, keys, of_slice, first, before)
            for of_slice, (first, _), before in zip(symbols, slices, counts, strict=False)
        ]
    )
    rows, positions = map(np.concatenate, zip(*some, strict=True))
    return _taken(plan, batch, rows, positions, workers)


def _with_coded_types(
    plan: Plan, table: pa.Table, orders: list[np.ndarray], workers: Workers
) -> pa.RecordBatch | None:
    """The table in one batch, with its types coded; None: not all types are declared, or the rows
    do not strictly ascend by numbers."""
    if not _rises(orders, 0, min(_FEW, len(table))):
        return None
    rises = Step([partial(_rises, orders, *one) for one in workers.slices(len(table))], all)
    name = plan.source.type_name
    place = table.schema.get_field_index(name)
    typing = done(None) if place < 0 else coding_types(plan, table.column(place), workers)
    do_rise, types = workers.take(rises, typing)
    if not do_rise or (types is not None and not pa.types.is_dictionary(types.type)):
        return None
    table = table if types is None else table.set_column(place, name, types)
    (batch,) = table.combine_chunks().to_batches()
    return batch


def _rises(columns: list[np.ndarray], first: int, end: int) -> bool:
    """Whether each of some rows comes after the one before it, in the order of columns."""
    first = max(0, first - 1)  # the row before is compared as well
    values = columns[0][first:end]
    if (values[1:] < values[:-1]).any():
        return False
    same = first + np.flatnonzero(values[1:] == values[:-1])
    for column in columns[1:]:
        here, behind = column[same], column[same + 1]
        if (behind < here).any():
            return False
        same = same[behind == here]
    return not len(same)


def _symbols_and_counts(
    program: Program, batch: pa.RecordBatch, keys: _Keys, counts: np.ndarray, first: int, end: int
) -> np.ndarray:
    """The symbols of some rows; adds to `counts` how many of them have each key. Raises EventError
    for what is wrong with a row."""
    count_keys(keys.values[first:end], keys.least, counts)
    columns = Columns(program.plan, ties_are_errors=False, layout=Layout.of(program))
    return columns.symbols(batch.slice(first, end - first), program.classify)


# --- positions ------------------------------------------------------------------------------------


class _Keys(NamedTuple):
    """The keys of rows as numbers: `values` from `least` on, of which `different` can be there;
    values of no rows where there is no PARTITION BY."""

    values: np.ndarray
    least: int
    different: int


def _keys(plan: Plan, batch: pa.RecordBatch, workers: Workers) -> _Keys | None:
    """The keys of all rows; None: they are too far apart to be counted."""
    found, count = _Keys(NO_INTEGERS, 0, 0), len(batch)
    for name in plan.source.key_columns:
        column = batch.column(name)
        if pa.types.is_string(column.type):
            column = coded_texts(column, workers).indices
        values = numbers(column)[0]
        least, most = int(values.min()), int(values.max())
        different = (most - least + 1) * max(1, found.different)
        if different > count:
            return None
        if found.different:
            others = found.values.astype(np.int64) - found.least
            values, least = others * (most - least + 1) + (values.astype(np.int64) - least), 0
        found = _Keys(values, least, different)
    return found


def _numbered(
    keys: _Keys, symbols: np.ndarray, first: int, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(int64: the rows whose symbol is not 0; int64: their positions). symbols: of the rows from
    `first` on. counts: how many rows before them have each key."""
    if not len(keys.values):
        rows = first + np.flatnonzero(symbols)
        return rows, rows
    count = np.count_nonzero(symbols)
    rows, positions = np.empty(count, np.int64), np.empty(count, np.int64)
    values = keys.values[first : first + len(symbols)]
    number_rows(values, keys.least, symbols, first, counts, rows, positions)
    return rows, positions


@njit(nogil=True, cache=True)
def count_keys(values, least, counts):  # type: ignore[no-untyped-def]
    """Add to int64[keys] how many rows have each key; keys are values from `least` on."""
    for row in range(len(values)):
        counts[np.int64(values[row]) - least] += 1


@njit(nogil=True, cache=True)
def number_rows(values, least, symbols, first, counts, rows, positions):  # type: ignore[no-untyped-def]
    """Write the rows whose symbol is not 0 (numbered from `first`), and their positions among the
    rows of their keys. counts: as of `count_keys`, of the rows before these; written."""
    found = 0
    for row in range(len(values)):
        key = np.int64(values[row]) - least
        if symbols[row] != 0:
            rows[found] = first + row
            positions[found] = counts[key]
            found += 1
        counts[key] += 1


def _taken(
    plan: Plan, batch: pa.RecordBatch, rows: np.ndarray, positions: np.ndarray, workers: Workers
) -> Thinned:
    known = [*batch.schema.names, *names_read(plan)]
    numbered = unused_name("row", known)
    name = unused_name("position", [*known, numbered])
    chosen = whole_column(rows, pa.int64())
    columns = workers.side_by_side([partial(taken, column, chosen) for column in batch.columns])
    table = pa.Table.from_arrays(
        [*columns, chosen, whole_column(positions, pa.int64())],
        [*batch.schema.names, numbered, name],
    )
    return Thinned(table, numbered, name)

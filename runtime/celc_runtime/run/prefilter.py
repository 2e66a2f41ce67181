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
from celc_runtime.arrow.events.ascending import rise
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.digits import Step, Workers, coded_texts, done
from celc_runtime.arrow.events.event_types import coding_types
from celc_runtime.arrow.events.layout import Layout
from celc_runtime.arrow.events.sorting import sort_columns
from celc_runtime.engine.arena.batch import NO_INTEGERS, relevant_rows
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program

LEAST_ROWS = 1 << 17
"""Of a table. Of 65,536 rows, of which a fifth can matter, a call took 5.0 ms in place of 4.4; of
131,072 rows it took 6.1 in place of 6.9."""

_MOST_KEPT = 1 / 3
"""Of the rows. Of a million rows, of which half can matter, two threads took 35.9 ms in place of
34.5, and one took 47 in place of 57."""

_MOST_KEPT_OF_ONE_STREAM = 1 / 16
"""Of the rows without keys, which need no sort. With a thirteenth of them nothing was gained."""

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "LONG", "INT")  # order columns: no value is out of range

_MOST_ORDERS = 2  # order columns: a time, and what tells equal times apart

_IMMEASURABLE = -(2**63)  # from which no window is measured, if it is in any row

_FEW = 1 << 12  # rows that are looked at first: most tables show there that they do not rise


class Prefiltered(NamedTuple):
    """The rows of a table that can matter, in the order in which they stand.

    table: with two more columns. numbered: the name of the one with the numbers that the rows have
    in the whole table. positions: the name of the one with their positions in their partitions.
    """

    table: pa.Table
    numbered: str
    positions: str


def can_prefilter(program: Program) -> bool:
    """Whether a query needs only the rows that can matter, if it gets their positions."""
    plan = program.plan
    return (
        plan.source.relevant is not None
        and bool(plan.source.order_by)
        and plan.source.type_of(plan.source.order_by[0]) in _TIMES
        and not plan.choice.deadlines
        and not program.compares_late
    )


def prefiltered(program: Program, table: pa.Table, workers: Workers) -> Prefiltered | None:
    """The rows of a table that can matter; None: all have to be read, or are too many.

    Only for a program for which `can_prefilter`, and a table whose columns conform as they are, as
    those that are read as few rows do (`few_rows`). The share of rows that stay is kept with the
    program, so that where it is too large only the first call looks.
    """
    plan = program.plan
    most = _MOST_KEPT if plan.source.key_columns else _MOST_KEPT_OF_ONE_STREAM
    if program.kept.get("share", 0) > most:
        return None
    names = {*sort_columns(plan), plan.source.type_name} & {*table.schema.names}
    if any(table.column(name).null_count for name in names):
        return None
    coded = _coded(plan, table, workers)
    if coded is None:
        return None
    slices = _slices(coded, workers)
    keys = _keys(plan, coded)
    if keys is None or keys.different * len(slices) > len(table):
        return None  # keys are too far apart: their counts would take more than the table
    counts = np.zeros((len(slices), keys.different), np.int64)  # of the rows before each
    calls = [
        partial(_symbols_and_counts, program, keys, after, part.pieces)
        for part, after in zip(slices, (*counts[1:], None), strict=True)
    ]
    try:
        symbols = workers.side_by_side(calls)
    except EventError:
        return None  # a run says what is wrong
    kept = sum(np.count_nonzero(of_piece) for of_part in symbols for of_piece in of_part)
    share = program.kept["share"] = kept / len(table)
    if share > most:
        return None
    np.cumsum(counts, axis=0, out=counts)
    known = [*table.schema.names, *names_read(plan)]
    numbered = unused_name("row", known)
    name = unused_name("position", [*known, numbered])
    found = workers.side_by_side(
        [
            partial(_that_matter, keys, part, of_part, before)
            for part, of_part, before in zip(slices, symbols, counts, strict=True)
        ]
    )
    schema = [*coded.schema.names, numbered, name]
    batches = [pa.RecordBatch.from_arrays(columns, schema) for some in found for columns in some]
    return Prefiltered(pa.Table.from_batches(batches).combine_chunks(), numbered, name)


class _Slice(NamedTuple):
    """Rows of a table from `first` on, which one thread looks at: batches without a copy."""

    first: int
    pieces: list[pa.RecordBatch]


def _slices(table: pa.Table, workers: Workers) -> list[_Slice]:
    return [
        _Slice(first, _pieces(table.slice(first, end - first)))
        for first, end in workers.slices(len(table))
    ]


def _pieces(table: pa.Table) -> list[pa.RecordBatch]:
    return [batch for batch in table.to_batches() if len(batch)]


# --- order and types ------------------------------------------------------------------------------


def _coded(plan: Plan, table: pa.Table, workers: Workers) -> pa.Table | None:
    """The table with its types, and keys that are texts, as codes; None: not all types are
    declared, or the rows do not strictly ascend by numbers."""
    orders = [*dict.fromkeys((*plan.source.order_by, *plan.source.tiebreak))]
    if len(orders) > _MOST_ORDERS or not all(is_whole(table.column(name)) for name in orders):
        return None
    rising = table.select(orders)
    few = _pieces(rising.slice(0, _FEW))
    if not rise(few) or whole_values(few[0].column(0))[0] == _IMMEASURABLE:
        return None
    slices = _slices(rising, workers)
    rises = Step([partial(rise, part.pieces) for part in slices], all)
    name = plan.source.type_name
    place = table.schema.get_field_index(name)
    typing = done(None) if place < 0 else coding_types(plan, table.column(place), workers)
    do_rise, types = workers.take(rises, typing)
    borders = [table.slice(part.first - 1, 2).select(orders) for part in slices[1:]]
    if not do_rise or not all(rise(_pieces(two)) for two in borders):
        return None
    if types is not None:
        if not pa.types.is_dictionary(types.type):
            return None
        table = table.set_column(place, name, types)
    for name in plan.source.key_columns:
        place = table.schema.get_field_index(name)
        if pa.types.is_string(table.schema.field(place).type):
            codes = coded_texts(in_one_piece(table.column(place)), workers)
            table = table.set_column(place, name, codes)
    return table


def _symbols_and_counts(
    program: Program, keys: _Keys, counts: np.ndarray | None, pieces: list[pa.RecordBatch]
) -> list[np.ndarray]:
    """The symbols of the rows of each piece; adds to `counts` how many of them have each key, if
    rows follow that ask for it. Raises EventError for what is wrong with a row."""
    found = []
    for piece in pieces:
        if counts is not None:
            count_keys(*keys.of(piece), counts)
        columns = Columns(program.plan, ties_are_errors=False, layout=Layout.of(program))
        found.append(columns.symbols(piece, program.classify))
    return found


# --- positions ------------------------------------------------------------------------------------


class _Keys(NamedTuple):
    """The keys of rows as numbers, of which `different` can be there; 0: there is no PARTITION BY.

    columns: (name, its least value, how many values there can be) of each.
    """

    columns: list[tuple[str, int, int]]
    different: int

    def of(self, piece: pa.RecordBatch) -> tuple[np.ndarray, int]:
        """(whole numbers[rows], or nothing; the least that there can be)."""
        if not self.columns:
            return NO_INTEGERS, 0
        (name, least, _), *others = self.columns
        found = _numbers(piece.column(name))
        for name, other, count in others:
            values = _numbers(piece.column(name)).astype(np.int64) - other
            found, least = (found.astype(np.int64) - least) * count + values, 0
        return found, least


def _numbers(key: pa.Array) -> np.ndarray:
    return numbers(key.indices if pa.types.is_dictionary(key.type) else key)[0]


def _keys(plan: Plan, table: pa.Table) -> _Keys | None:
    """The keys of all rows; None: there can be more than there are rows."""
    columns, different = [], 1
    for name in plan.source.key_columns:
        some = [_numbers(chunk) for chunk in table.column(name).chunks if len(chunk)]
        least, most = min(int(one.min()) for one in some), max(int(one.max()) for one in some)
        columns.append((name, least, most - least + 1))
        different *= most - least + 1
        if different > len(table):
            return None
    return _Keys(columns, different if columns else 0)


def _that_matter(
    keys: _Keys, part: _Slice, symbols: list[np.ndarray], counts: np.ndarray
) -> list[list[pa.Array]]:
    """The columns of the rows of each piece whose symbol is not 0, with their numbers and
    positions. counts: how many rows before this part have each key."""
    found, first = [], part.first
    for piece, of_rows in zip(part.pieces, symbols, strict=True):
        rows = relevant_rows(of_rows)
        positions = first + rows
        if keys.different:
            positions = np.empty(len(rows), np.int64)
            number_rows(*keys.of(piece), of_rows, counts, positions)
        numbers_of_rows = whole_column(first + rows, pa.int64())
        columns = [taken(column, whole_column(rows, pa.int64())) for column in piece.columns]
        found.append([*columns, numbers_of_rows, whole_column(positions, pa.int64())])
        first += len(piece)
    return found


@njit(nogil=True, cache=True)
def count_keys(keys, least, counts):  # type: ignore[no-untyped-def]
    """Add to int64[different keys] how many rows have each key; keys are numbers from `least`
    on."""
    for row in range(len(keys)):
        counts[np.int64(keys[row]) - least] += 1


@njit(nogil=True, cache=True)
def number_rows(keys, least, symbols, counts, positions):  # type: ignore[no-untyped-def]
    """Write the positions, among the rows of their keys, of the rows whose symbol is not 0.
    counts: as of `count_keys`, of the rows before these; written."""
    found = 0
    for row in range(len(keys)):
        key = np.int64(keys[row]) - least
        if symbols[row] != 0:
            positions[found] = counts[key]
            found += 1
        counts[key] += 1

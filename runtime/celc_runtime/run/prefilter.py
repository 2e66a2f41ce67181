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
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, is_whole, numbers, taken, whole_values
from celc_runtime.arrow.events.ascending import rise
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.digits import (
    ALONE,
    Places,
    Step,
    Workers,
    coded_texts,
    done,
    in_order,
    is_worth_it,
)
from celc_runtime.arrow.events.event_types import coding_types
from celc_runtime.arrow.events.layout import Layout
from celc_runtime.arrow.events.moving import Moves
from celc_runtime.arrow.events.sorting import (
    MOST_MOVED,
    Sorted,
    number_column,
    rising,
    sort_columns,
)
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.jit.kernels import njit
from celc_runtime.plan.errors import EventError
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

_ROWS_OF_A_THREAD = 1 << 21
"""Or more. Of a million rows, whose columns are read more often than they are computed with, two
threads took 17.4, 19.8 and 9.2 ms in place of 15.8, 18.2 and 9.5; of four million rows 72.6, 88
and 19.7 in place of 76, 90 and 25.9."""

_PASSED_OVER = 15
"""Calls of a query that do not look, after one that found too many rows. The next table may be of
another kind, and to look in vain took 5 ms of CPU: in place of 35 a million rows took 40."""

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "LONG", "INT")  # order columns: no value is out of range

_MOST_ORDERS = 2  # order columns: a time, and what tells equal times apart

_IMMEASURABLE = -(2**63)  # from which no window is measured, if it is in any row

_FEW = 1 << 12  # rows that are looked at first: most tables show there that they do not rise


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


def prefiltered(program: Program, table: pa.Table, workers: Workers) -> Sorted | None:
    """The rows of a table that can matter, in order; None: all have to be read, or are too many.

    Only for a program for which `can_prefilter`, and a table whose columns conform as they are, as
    those that are read as few rows do (`few_rows`). The share of rows that stay is kept with the
    program, so that where it is too large the next calls do not look.
    """
    plan = program.plan
    sorting, workers = workers, workers if len(table) >= 2 * _ROWS_OF_A_THREAD else ALONE
    most = _MOST_KEPT if plan.source.key_columns else _MOST_KEPT_OF_ONE_STREAM
    if program.kept.get("share", 0) > most:
        program.kept["passed over"] = passed_over = program.kept.get("passed over", 0) + 1
        if passed_over <= _PASSED_OVER:
            return None
        program.kept["passed over"] = 0
    names = {*sort_columns(plan), plan.source.type_name} & {*table.schema.names}
    if any(table.column(name).null_count for name in names):
        return None
    shown, coded = _coded(plan, table, workers)
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
    found = workers.side_by_side(
        [
            partial(_that_matter, keys, part, of_part, before)
            for part, of_part, before in zip(slices, symbols, counts, strict=True)
        ]
    )
    rows, positions, partitions = map(np.concatenate, zip(*found, strict=True))
    chosen = _Chosen(rows, positions, keys.in_order(partitions), keys.different, rises=shown == 1)
    return _in_order(plan, coded, chosen, sorting)


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


def _coded(plan: Plan, table: pa.Table, workers: Workers) -> tuple[int, pa.Table | None]:
    """(How many order columns show that the rows strictly rise, the table with its types, and keys
    that are texts, as codes). None: they do not, or not all types are declared."""
    orders = [*dict.fromkeys((*plan.source.order_by, *plan.source.tiebreak))]
    if len(orders) > _MOST_ORDERS or not all(is_whole(table.column(name)) for name in orders):
        return 0, None
    rising = table.select(orders)
    few = _pieces(rising.slice(0, _FEW))
    if not rise(few) or whole_values(few[0].column(0))[0] == _IMMEASURABLE:
        return 0, None
    slices = _slices(rising, workers)
    rises = Step([partial(rise, part.pieces) for part in slices], list)
    name = plan.source.type_name
    place = table.schema.get_field_index(name)
    typing = done(None) if place < 0 else coding_types(plan, table.column(place), workers)
    shown, types = workers.take(rises, typing)
    borders = [table.slice(part.first - 1, 2).select(orders) for part in slices[1:]]
    shown += [rise(_pieces(two)) for two in borders]
    if not all(shown):
        return 0, None
    if types is not None:
        if not pa.types.is_dictionary(types.type):
            return 0, None
        table = table.set_column(place, name, types)
    for name in plan.source.key_columns:
        place = table.schema.get_field_index(name)
        if pa.types.is_string(table.schema.field(place).type):
            codes = coded_texts(in_one_piece(table.column(place)), workers)
            table = table.set_column(place, name, codes)
    return max(shown), table


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

    columns: (name, its least value, how many values there can be) of each. ranks: int64 for each,
    the places of texts in their order; None: numbers are in order.
    """

    columns: list[tuple[str, int, int]]
    ranks: list[np.ndarray | None]
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

    def in_order(self, keys: np.ndarray) -> np.ndarray:
        """Keys, as numbers from 0 on, as numbers in the order of PARTITION BY."""
        if all(one is None for one in self.ranks):
            return keys
        ranks = np.zeros(1, np.int64)
        for (_, _, count), own in zip(self.columns, self.ranks, strict=True):
            of_column = np.arange(count) if own is None else own
            ranks = (ranks[:, None] * count + of_column).ravel()
        found: np.ndarray = ranks[keys]
        return found


def _numbers(key: pa.Array) -> np.ndarray:
    return numbers(key.indices if pa.types.is_dictionary(key.type) else key)[0]


def _keys(plan: Plan, table: pa.Table) -> _Keys | None:
    """The keys of all rows; None: there can be more than there are rows."""
    columns, ranks, different = [], list[np.ndarray | None](), 1
    for name in plan.source.key_columns:
        chunks = [chunk for chunk in table.column(name).chunks if len(chunk)]
        some = [_numbers(chunk) for chunk in chunks]
        least, most = min(int(one.min()) for one in some), max(int(one.max()) for one in some)
        columns.append((name, least, most - least + 1))
        ranks.append(_ranks(chunks[0]) if pa.types.is_dictionary(chunks[0].type) else None)
        different *= most - least + 1
        if different > len(table):
            return None
    return _Keys(columns, ranks, different if columns else 0)


def _ranks(texts: pa.DictionaryArray) -> np.ndarray:
    """int64: the places of the distinct texts of a column, all of which it has, in their order."""
    order = pc.sort_indices(texts.dictionary).to_numpy().astype(np.int64)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _that_matter(
    keys: _Keys, part: _Slice, symbols: list[np.ndarray], counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows whose symbol is not 0, their positions, and their keys as numbers from 0 on (empty:
    there are none). counts: how many rows before this part have each key."""
    kept = [int(np.count_nonzero(of_piece)) for of_piece in symbols]
    room = np.empty((3, sum(kept) + 1), np.int64)
    first, done = part.first, 0
    for piece, of_rows, count in zip(part.pieces, symbols, kept, strict=True):
        number_rows(*keys.of(piece), of_rows, counts, first, *room[:, done : done + count + 1])
        first, done = first + len(piece), done + count
    rows, positions, partitions = room[:, :-1]
    return (rows, positions, partitions) if keys.different else (rows, rows, NO_INTEGERS)


@njit(nogil=True, cache=True)
def count_keys(keys, least, counts):  # type: ignore[no-untyped-def]
    """Add to int64[different keys] how many rows have each key; keys are numbers from `least`
    on."""
    for row in range(len(keys)):
        counts[np.int64(keys[row]) - least] += 1


@njit(nogil=True, cache=True)
def number_rows(  # type: ignore[no-untyped-def]
    keys, least, symbols, counts, first, rows, positions, partitions
):
    """Write the rows whose symbol is not 0, their positions among the rows of their keys, and their
    keys from 0 on; only the rows if there are no keys.

    counts: as of `count_keys`, of the rows before these; written. first: the number of the first
    row. Arrays that are written have room for one more: each row is written, and the next one over
    it unless it stays. To ask first takes longer where every third may stay.
    """
    found = 0
    if len(keys) == 0:
        for row in range(len(symbols)):
            rows[found] = first + row
            found += symbols[row] != 0
        return
    for row in range(len(symbols)):
        key = np.int64(keys[row]) - least
        rows[found], positions[found], partitions[found] = first + row, counts[key], key
        found += symbols[row] != 0
        counts[key] += 1


# --- their order ----------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    """Some rows of a table.

    rows: int64, the rows as they stand. positions: int64, their positions among all rows of their
    partitions. keys: int64, numbers of their partitions in the order of PARTITION BY, below
    `different`; empty: there is one. rises: whether no two rows are equal in the first order
    column.
    """

    rows: np.ndarray
    positions: np.ndarray
    keys: np.ndarray
    different: int
    rises: bool


def _in_order(plan: Plan, table: pa.Table, chosen: _Chosen, workers: Workers) -> Sorted:
    """Some rows of a table in the order that the query reads, if they stand in that of time."""
    rows, count = chosen.rows, len(chosen.rows)
    moves = Moves([*table.itercolumns()] if count <= MOST_MOVED else [], rows)
    order, begins = np.arange(count), NO_INTEGERS
    if len(chosen.keys) and is_worth_it(count):
        digits = Places(chosen.keys.view(np.uint64), chosen.different - 1)
        order = in_order([digits], workers, moves.of_slice).order
    else:
        places = order
        if len(chosen.keys):
            order = np.argsort(chosen.keys, kind="stable")
            places = np.empty(count, np.int64)
            places[order] = np.arange(count)
        slices = workers.slices(count)
        workers.side_by_side([partial(moves.of_slice, places, *one) for one in slices])
    if len(chosen.keys):
        keys = chosen.keys[order]
        begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    moved = tuple(
        _picked(column, rows, order) if one is None and column.num_chunks > 1 else one
        for column, one in zip_longest(table.itercolumns(), moves.columns)
    )
    return Sorted(
        table,
        rows[order],
        number_column(plan, table),
        moved,
        starts=begins,
        arranged=rising(plan, count, begins) if chosen.rises else None,
        positions=chosen.positions[order],
    )


def _picked(column: pa.ChunkedArray, rows: np.ndarray, order: np.ndarray) -> pa.Array:
    """Some rows of a column, in an order. To make one piece of the whole column first would copy
    those that are left out."""
    begins = np.cumsum([0, *map(len, column.chunks)])
    borders = np.searchsorted(rows, begins).tolist()
    picked = [
        taken(chunk, rows[first:end] - begin)
        for chunk, begin, (first, end) in zip(
            column.chunks, begins[:-1], pairwise(borders), strict=True
        )
    ]
    return taken(pa.concat_arrays(picked), order)

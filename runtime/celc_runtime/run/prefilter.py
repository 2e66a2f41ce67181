"""Rows that cannot matter leave a large table before it is sorted.

Where few rows are of the types and values that a query asks for, most of a call was sorting and
moving the others. Their symbol is 0 (`classify`), so no run looks at them; they only count, for the
positions of the rows that stay. Where a table is in the order of time, each key counts its rows in
one pass.

It is done only where the rows that leave cannot be wrong in any way that the answer, a warning or
an error would tell: all values fit the declared types, all events are of declared types, no column
of the order or of PARTITION BY has NULL, and no two rows are equal in the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import room_of, taken, whole_values
from celc_runtime.arrow.events.ascending import is_signed, rise
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.digits import Step, Workers, done
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
from celc_runtime.arrow.pieces import Picked
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.jit.kernels import compiling
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked
from celc_runtime.program import Program
from celc_runtime.run.numbered_keys import (
    Keys,
    count_keys,
    number_rows,
    numbering,
    place_keys,
    place_rows,
)

LEAST_ROWS = 1 << 17
"""Of a table. Of 65,536 rows, of which a fifth can matter, a call took 5.0 ms in place of 4.4; of
131,072 rows it took 6.1 in place of 6.9."""

_MOST_ROWS = 1 << 32  # of a table: two counts of rows stand in one number

_MOST_KEPT = 1 / 3
"""Of the rows. Of a million rows, of which half can matter, two threads took 35.9 ms in place of
34.5, and one took 47 in place of 57."""

_MOST_KEPT_OF_ONE_STREAM = 1 / 16
"""Of rows without keys, which need no sort. With a thirteenth of a million rows one thread gained
nothing, and two took 22 ms in place of 18: too few rows were left for two parts."""

_MOST_KEPT_TO_REMEMBER = 1 / 6
"""The same where conditions between events are checked: what they read is remembered of each row
that stays. With a seventh it was 15.4 and 16.5 in place of 18.4 and 16.8, with more than a quarter
36.8 and 29.1 in place of 36.0 and 25.6."""

_ROWS_OF_A_THREAD = 1 << 21
"""Or more; of fewer rows a thread looks at whole columns. Of a million rows in eight pieces two
threads took 13, 14 and 17 ms in slices, and 11, 12 and 15 by columns; four million took as long."""

_ROWS_OF_A_KEY = 8
"""Of a slice, or more; where there are fewer, one thread finds the positions of all rows. Of a
million rows with 400,000 keys two threads took 38 ms in place of 31."""

_PASSED_OVER = 15
"""Calls of a query that do not look, after one that found too many rows. The next table may be of
another kind, and to look in vain took 5 ms of CPU: in place of 35 a million rows took 40."""

_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "LONG", "INT")  # order columns: no value is out of range

_MOST_ORDERS = 2  # order columns: a time, and what tells equal times apart

_IMMEASURABLE = -(2**63)  # from which no window is measured, if it is in any row

_LONG = pa.int64()

_FEW = 1 << 12  # rows that are looked at first: most tables show there that they do not rise


def can_prefilter(program: Program) -> bool:
    """Whether a query needs only the rows that can matter, if it gets their positions, and the
    greatest time of all rows where it asks for that, which is that of the last one."""
    plan, source = program.plan, program.plan.source
    if source.relevant is None or not source.order_by or program.compares_late:
        return False
    first, layout, deadlines = source.order_by[0], Layout.of(program), plan.choice.deadlines
    return (
        source.type_of(first) in _TIMES
        # Values that no window can measure are found by a look at the first row alone.
        and {layout.window_attribute, *layout.local_attributes} <= {None, first}
        and (plan.choice.at_end == "closed" or all(map(plan.is_on_clock, deadlines)))
        and source.is_as_given
        and not (source.parameters or layout.makes_keys or plan.interleaves or source.reads)
        and source.begin is source.ties is None
        and source.uncertain is None
        and not source.stream_column
    )


def prefiltered(program: Program, table: pa.Table, workers: Workers) -> Sorted | None:
    """The rows of a table that can matter, in order; None: all have to be read, or are too many.

    Only for a program for which `can_prefilter`. The share of rows that stay is kept with the
    program, so that where it is too large the next calls do not look.
    """
    plan = program.plan
    sharing = workers
    if len(table) < 2 * _ROWS_OF_A_THREAD:
        workers = Workers(1, sharing.side_by_side)  # each column is read by one thread
    most = _most_kept(program)
    if program.kept.get("share", 0) > most:
        program.kept["passed over"] = passed_over = program.kept.get("passed over", 0) + 1
        if passed_over <= _PASSED_OVER:
            return None
        program.kept["passed over"] = 0
    names = table.schema.names
    if (
        any(names.count(name) != 1 for name in sort_columns(plan))
        or names.count(plan.source.type_name) > 1
    ):
        return None  # a run says what is wrong
    if len(table) >= _MOST_ROWS:
        return None
    asked = {*sort_columns(plan), plan.source.type_name} & {*names}
    if any(table.column(name).null_count for name in asked):
        return None
    coded = _coded(plan, table, workers)
    if coded is None:
        return None
    table, keys, shown = coded
    slices = sharing.slices(len(table))
    if _ROWS_OF_A_KEY * keys.different * len(slices) > len(table):
        slices = [(0, len(table))]
    counts = np.zeros((len(slices), keys.different), np.int64)  # of the rows before each
    counting = [
        partial(_count, keys, *one, after)
        for one, after in zip(slices, counts[1:], strict=False)
        if keys.different
    ]
    symbols = np.empty(len(table), plan.matching.symbol_dtype)
    finding = [
        partial(
            _find_symbols, program, _pieces(table.slice(first, end - first)), symbols[first:end]
        )
        for first, end in workers.slices(len(table))
    ]
    try:
        sharing.take(Step(finding, list), Step(counting, list))
    except EventError:
        return None  # a run says what is wrong
    # NumPy counts truths faster than numbers.
    kept = [int(np.count_nonzero(symbols[first:end] != 0)) for first, end in slices]
    share = program.kept["share"] = sum(kept) / len(table)
    if share > most:
        return None
    for before, here in pairwise(counts):
        here += before
    chosen = _chosen(keys, symbols, slices, kept, counts, sharing)
    return _in_order(plan, table, chosen, sharing, rises=shown == 1)


def _most_kept(program: Program) -> float:
    if program.plan.source.key_columns:
        return _MOST_KEPT
    remembers = isinstance(program.listing, Checked)
    return _MOST_KEPT_TO_REMEMBER if remembers else _MOST_KEPT_OF_ONE_STREAM


def _slices(table: pa.Table, workers: Workers) -> list[tuple[int, list[pa.RecordBatch]]]:
    """(first row, batches without a copy) of the slices of a table that threads look at."""
    return [
        (first, _pieces(table.slice(first, end - first)))
        for first, end in workers.slices(len(table))
    ]


def _pieces(table: pa.Table) -> list[pa.RecordBatch]:
    return [batch for batch in table.to_batches() if len(batch)]


# --- order and types ------------------------------------------------------------------------------


def _coded(plan: Plan, table: pa.Table, workers: Workers) -> tuple[pa.Table, Keys, int] | None:
    """(The table with its types, and keys that are texts, as codes; its keys; how many order
    columns show that the rows strictly rise). None: they do not, not all types are declared, or
    there can be more keys than rows."""
    orders = [*dict.fromkeys((*plan.source.order_by, *plan.source.tiebreak))]
    if len(orders) > _MOST_ORDERS or not all(is_signed(table.column(name)) for name in orders):
        return None
    rising = table.select(orders)
    few = _pieces(rising.slice(0, _FEW))
    if not rise(few) or whole_values(few[0].column(0))[0] == _IMMEASURABLE:
        return None
    slices = _slices(rising, workers)
    rises = Step([partial(rise, pieces) for _, pieces in slices], list)
    name = plan.source.type_name
    place = table.schema.get_field_index(name)
    given = None if place < 0 else table.column(place)
    typing = done(None) if given is None else coding_types(plan, given, workers)
    keys = [numbering(table.column(name), workers) for name in plan.source.key_columns]
    shown, types, *of_keys = workers.take(rises, typing, *keys)
    borders = [table.slice(first - 1, 2).select(orders) for first, _ in slices[1:]]
    shown += [rise(_pieces(two)) for two in borders]
    if not all(shown):
        return None
    if None in of_keys or (types is given and given is not None):
        return None
    if types is not None:
        table = table.set_column(place, name, types)
    different = 1
    for name, key in zip(plan.source.key_columns, of_keys, strict=True):
        different *= key.size
        if different > len(table):
            return None
        if key.codes is not None:
            table = table.set_column(table.schema.get_field_index(name), name, key.codes)
    columns = [table.column(name) for name in plan.source.key_columns]
    return table, Keys.of(of_keys, columns), max(shown)


def _count(keys: Keys, first: int, end: int, counts: np.ndarray) -> None:
    """Add to `counts` how many of some rows have each key, for the rows that follow."""
    pieces, size = keys.laid.pieces, keys.laid.size
    with compiling():  # what it reads is no array, by whose length a kernel is known to be worth it
        count_keys(pieces, size, keys.least, first, end, counts)


def _number(
    keys: Keys,
    symbols: np.ndarray,
    first: int,
    end: int,
    counts: np.ndarray,
    found: Sequence[np.ndarray],
) -> None:
    """`number_rows` of some rows. A thread that does so holds the keys, of which the kernel has
    only addresses."""
    laid = keys.laid
    number_rows(laid.pieces, laid.size, keys.least, symbols, first, end, counts, *found)


def _find_symbols(program: Program, pieces: list[pa.RecordBatch], symbols: np.ndarray) -> None:
    """Write the symbols of the rows of pieces. Raises EventError for what is wrong with a row."""
    first = 0
    for piece in pieces:
        columns = Columns(program.plan, ties_are_errors=False, layout=Layout.of(program))
        columns.find_symbols(piece, program.classify, symbols[first : first + len(piece)])
        first += len(piece)


# --- their order ----------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    """Some rows of a table as they stand.

    rows, positions, keys: int64, the rows, their positions among all rows of their partitions, and
    the numbers of these; without PARTITION BY only the rows. slices: of these arrays, of which each
    thread has one. nexts: int64[slices, keys], where in order the first row of a slice with a key
    comes. begins: int64, where partitions begin in order.
    """

    rows: np.ndarray
    positions: np.ndarray
    keys: np.ndarray
    slices: list[tuple[int, int]]
    nexts: np.ndarray
    begins: np.ndarray


def _chosen(
    keys: Keys,
    symbols: np.ndarray,
    slices: list[tuple[int, int]],
    kept: list[int],
    counts: np.ndarray,
    workers: Workers,
) -> _Chosen:
    """The rows whose symbol is not 0. slices: of the table. kept: how many rows of each stay.
    counts: int64[slices, keys], how many rows with each key are before a slice; written."""
    borders = [*pairwise(np.cumsum([0, *kept]).tolist())]
    rows = room_of(sum(kept))
    positions, of_rows = (room_of(sum(kept) if keys.different else 0) for _ in range(2))
    calls = [
        partial(
            _number, keys, symbols, *one, before, [a[begin:end] for a in (rows, positions, of_rows)]
        )
        for one, (begin, end), before in zip(slices, borders, counts, strict=True)
    ]
    workers.side_by_side(calls)
    if not keys.different:
        return _Chosen(rows, rows, of_rows, borders, counts, NO_INTEGERS)
    in_order = NO_INTEGERS
    if keys.ranks is not None:
        in_order = np.empty(keys.different, np.int64)
        in_order[keys.ranks] = np.arange(keys.different)
    begins = room_of(min(keys.different, len(rows)))
    with compiling():
        begins = begins[: place_keys(counts, in_order, begins)]
    return _Chosen(rows, positions, of_rows, borders, counts, begins)


def _in_order(
    plan: Plan, table: pa.Table, chosen: _Chosen, workers: Workers, *, rises: bool
) -> Sorted:
    """Some rows of a table in the order that the query reads, if they stand in that of time. rises:
    whether no two rows are equal in the first order column."""
    rows, positions, count = chosen.rows, chosen.positions, len(chosen.rows)
    moves = Moves([*table.itercolumns()] if count <= MOST_MOVED else [], rows)
    places = NO_INTEGERS
    if len(chosen.keys):
        places, rows, positions = (room_of(count) for _ in range(3))

    def place(nexts: np.ndarray, first: int, end: int) -> None:
        if len(places):
            standing = chosen.rows, chosen.positions, chosen.keys
            place_rows(*standing, nexts, first, end, places, rows, positions)
        if moves_at_once:
            moves.of_slice(places, first, end)

    slices = workers.slices(count)
    moves_at_once = len(chosen.slices) >= len(slices)
    of_slices = zip(chosen.nexts, chosen.slices, strict=True)
    workers.side_by_side([partial(place, nexts, *one) for nexts, one in of_slices])
    if not moves_at_once:  # one thread has placed them all, because there are many keys
        workers.side_by_side([partial(moves.of_slice, places, *one) for one in slices])
    moved = tuple(
        (
            _picked(column, chosen.rows, places, workers)
            if one is None and column.num_chunks > 1
            else one
        )
        for column, one in zip_longest(table.itercolumns(), moves.columns)
    )
    return Sorted(
        table,
        rows,
        number_column(plan, table),
        moved,
        starts=chosen.begins,
        arranged=rising(plan, count, chosen.begins) if rises else None,
        positions=positions,
    )


def _picked(
    column: pa.ChunkedArray, rows: np.ndarray, places: np.ndarray, workers: Workers
) -> pa.Array | Picked:
    """Some rows of a column, as they stand, in the order of their places; empty: in which they
    stand. To make one piece of the whole column would copy those that are left out."""
    begins = np.cumsum([0, *map(len, column.chunks)])
    borders = np.searchsorted(rows, begins).tolist()
    calls = [
        partial(taken, chunk, rows[first:end] - begin)
        for chunk, begin, (first, end) in zip(
            column.chunks, begins[:-1], pairwise(borders), strict=True
        )
    ]
    standing = pa.concat_arrays(workers.side_by_side(calls))
    if not len(places):
        return standing
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    return Picked(standing, order)

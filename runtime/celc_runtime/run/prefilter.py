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

from functools import partial
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import (
    taken,
    whole_column,
    whole_values,
)
from celc_runtime.arrow.events.ascending import is_signed, rise
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.digits import (
    Move,
    Places,
    Step,
    Workers,
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
from celc_runtime.arrow.pieces import Picked
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import Checked
from celc_runtime.program import Program
from celc_runtime.run.numbered_keys import Keys, count_keys, number_rows, numbering

LEAST_ROWS = 1 << 17
"""Of a table. Of 65,536 rows, of which a fifth can matter, a call took 5.0 ms in place of 4.4; of
131,072 rows it took 6.1 in place of 6.9."""

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
    sorting = workers
    if len(table) < 2 * _ROWS_OF_A_THREAD:
        workers = Workers(1, sorting.side_by_side)  # each column is read by one thread
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
    asked = {*sort_columns(plan), plan.source.type_name} & {*names}
    if any(table.column(name).null_count for name in asked):
        return None
    coded = _coded(plan, table, workers)
    if coded is None:
        return None
    table, keys, shown = coded
    slices = _slices(table, workers)
    if keys.different * len(slices) > len(table):
        return None  # keys are too far apart: their counts would take more than the table
    counts = np.zeros((len(slices), keys.different), np.int64)  # of the rows before each
    counting = [
        partial(_count, keys, part.pieces, after)
        for part, after in zip(slices, counts[1:], strict=False)
    ]
    finding = [partial(_symbols, program, part.pieces) for part in slices]
    try:
        _, symbols = workers.take(Step(counting, list), Step(finding, list))
    except EventError:
        return None  # a run says what is wrong
    kept = [sum(count for _, count in of_part) for of_part in symbols]
    share = program.kept["share"] = sum(kept) / len(table)
    if share > most:
        return None
    np.cumsum(counts, axis=0, out=counts)
    found = np.empty((3, sum(kept)), np.int64)
    workers.side_by_side(
        [
            partial(_that_matter, keys, part, of_part, before, found[:, begin:])
            for part, of_part, before, begin in zip(
                slices, symbols, counts, np.cumsum([0, *kept[:-1]]), strict=True
            )
        ]
    )
    rows, positions, partitions = found
    if not keys.different:
        positions, partitions = rows, NO_INTEGERS
    chosen = _Chosen(rows, positions, keys.in_order(partitions), keys.different, rises=shown == 1)
    return _in_order(plan, table, chosen, sorting)


def _most_kept(program: Program) -> float:
    if program.plan.source.key_columns:
        return _MOST_KEPT
    remembers = isinstance(program.listing, Checked)
    return _MOST_KEPT_TO_REMEMBER if remembers else _MOST_KEPT_OF_ONE_STREAM


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
    rises = Step([partial(rise, part.pieces) for part in slices], list)
    name = plan.source.type_name
    place = table.schema.get_field_index(name)
    given = None if place < 0 else table.column(place)
    typing = done(None) if given is None else coding_types(plan, given, workers)
    keys = [numbering(table.column(name), workers) for name in plan.source.key_columns]
    shown, types, *of_keys = workers.take(rises, typing, *keys)
    borders = [table.slice(part.first - 1, 2).select(orders) for part in slices[1:]]
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
    return table, Keys([*plan.source.key_columns], of_keys, different * bool(of_keys)), max(shown)


def _count(keys: Keys, pieces: list[pa.RecordBatch], counts: np.ndarray) -> None:
    """Add to `counts` how many of the rows have each key, for the rows that follow."""
    for piece in pieces:
        count_keys(*keys.of(piece), counts)


def _symbols(program: Program, pieces: list[pa.RecordBatch]) -> list[tuple[np.ndarray, int]]:
    """The symbols of the rows of each piece, and how many are not 0. Raises EventError for what is
    wrong with a row."""
    found = []
    for piece in pieces:
        columns = Columns(program.plan, ties_are_errors=False, layout=Layout.of(program))
        symbols = columns.symbols(piece, program.classify)
        found.append((symbols, int(np.count_nonzero(symbols != 0))))  # NumPy counts truths faster
    return found


# --- positions ------------------------------------------------------------------------------------


def _that_matter(
    keys: Keys,
    part: _Slice,
    symbols: list[tuple[np.ndarray, int]],
    counts: np.ndarray,
    found: np.ndarray,
) -> None:
    """Write the rows whose symbol is not 0, their positions, and their keys as numbers from 0 on;
    only the rows if there are no keys.

    counts: how many rows before this part have each key. found: int64[3, rows of this part and of
    later ones].
    """
    first, done = part.first, 0
    for piece, (of_rows, count) in zip(part.pieces, symbols, strict=True):
        number_rows(*keys.of(piece), of_rows, counts, first, *found[:, done : done + count])
        first, done = first + len(piece), done + count


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
    rows, positions, count = chosen.rows, chosen.positions, len(chosen.rows)
    moves = Moves([*table.itercolumns()] if count <= MOST_MOVED else [], rows)
    order, begins = None, NO_INTEGERS
    if not len(chosen.keys):
        slices = workers.slices(count)
        workers.side_by_side([partial(moves.of_slice, NO_INTEGERS, *one) for one in slices])
    else:
        told = Moves([pa.chunked_array([whole_column(one, _LONG)]) for one in (rows, positions)])

        def move(places: np.ndarray, first: int, end: int) -> None:
            moves.of_slice(places, first, end)
            told.of_slice(places, first, end)

        order, begins = _moved_by_key(chosen, workers, move)
        rows, positions = (whole_values(one) for one in told.columns)
    moved = tuple(
        (
            _picked(column, chosen.rows, order, workers)
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
        starts=begins,
        arranged=rising(plan, count, begins) if chosen.rises else None,
        positions=positions,
    )


def _moved_by_key(chosen: _Chosen, workers: Workers, move: Move) -> tuple[np.ndarray, np.ndarray]:
    """Moves rows by their keys; returns their order, and the places at which keys begin (int64)."""
    keys = chosen.keys
    if is_worth_it(len(keys)):
        digits = Places(keys.view(np.uint64), chosen.different - 1)
        order, begins = in_order([digits], workers, move)
        if begins is not None:
            return order, begins
    else:
        order = np.argsort(keys, kind="stable")
        places = np.empty(len(keys), np.int64)
        places[order] = np.arange(len(keys))
        move(places, 0, len(keys))
    keys = keys[order]
    return order, np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])


def _picked(
    column: pa.ChunkedArray, rows: np.ndarray, order: np.ndarray | None, workers: Workers
) -> pa.Array | Picked:
    """Some rows of a column, as they stand, in an order; None: in which they stand. To make one
    piece of the whole column would copy those that are left out."""
    begins = np.cumsum([0, *map(len, column.chunks)])
    borders = np.searchsorted(rows, begins).tolist()
    calls = [
        partial(taken, chunk, rows[first:end] - begin)
        for chunk, begin, (first, end) in zip(
            column.chunks, begins[:-1], pairwise(borders), strict=True
        )
    ]
    standing = pa.concat_arrays(workers.side_by_side(calls))
    return standing if order is None else Picked(standing, order)

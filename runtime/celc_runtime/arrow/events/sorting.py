"""The order in which a query reads a table on one machine: which it is, its check, and sorting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow import pieces
from celc_runtime.arrow.arrays import (
    differs,
    in_one_piece,
    is_ordered,
    is_whole,
    order_of_neighbours,
    plain,
    sortable,
    taken,
    whole_column,
    whole_values,
)
from celc_runtime.arrow.events.ascending import ascends, increasing
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.digits import (
    ALONE,
    Step,
    Workers,
    coded_texts,
    done,
    in_order,
    is_worth_it,
    placing,
)
from celc_runtime.arrow.events.event_order import Arrangement
from celc_runtime.arrow.events.event_types import coding_types
from celc_runtime.arrow.events.moving import Moves
from celc_runtime.arrow.events.partition_keys import columns_as_they_came
from celc_runtime.arrow.events.paths import with_fields
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.arrow.views import without_views
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import event_schema

_FEW = 1 << 12  # rows
_STRING = pa.string().id
MOST_MOVED = 1 << 22  # rows: as many are moved at once where one run reads a table
_FEW_TEXTS = 1 << 9  # rows whose texts Python puts in order faster than Arrow does


def sort_columns(plan: Plan) -> tuple[str, ...]:
    """The columns that events are sorted by: partition columns, then order columns.

    Only the order columns if partitions interleave.
    """
    partitions = () if plan.interleaves else plan.source.key_columns
    return tuple(dict.fromkeys((*partitions, *plan.source.order_by, *plan.source.tiebreak)))


def sort_columns_without_order(plan: Plan) -> tuple[str, ...]:
    """The columns that events are sorted by if they come in no order, as on Spark.

    If events of equal time need no tiebreak, all columns that are read come last.
    """
    if not plan.source.takes_ties:
        return sort_columns(plan)
    return tuple(dict.fromkeys((*sort_columns(plan), *event_schema(plan).names)))


class Sorted(NamedTuple):
    """A table in the order that a query reads.

    table: the rows as they stand. order: int64, the rows in order, which can be some of them; None:
    they stand in it. numbered: the name of the column of row numbers that moved rows get, if the
    table has none of this name. moved: for each column its values in order; None, or empty: they
    are moved when they are asked for. starts: int64, the rows in order at which partitions begin;
    None: not known. arranged: what sorting has shown of all rows; None: not known. few: these rows
    as one batch; None: not made. positions: int64, where rows were left out, the positions of the
    others in their partitions, in order; None: all rows are here.
    """

    table: pa.Table
    order: np.ndarray | None = None
    numbered: str | None = None
    moved: tuple[pa.Array | pieces.Picked | None, ...] = ()
    starts: np.ndarray | None = None
    arranged: Arrangement | None = None
    few: LateRows | pa.RecordBatch | None = None
    positions: np.ndarray | None = None

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.table) if self.order is None else len(self.order)

    def rows(self, first: int, end: int) -> pa.Table:
        """The rows from `first` to before `end`, in order. A table in order is not copied."""
        if self.order is None:
            return self.table.slice(first, end - first)
        chosen = whole_column(self.order[first:end], pa.int64())
        if len(chosen) <= _FEW and not self.moved:
            few = pc.take(self.table, chosen, boundscheck=False)
            return self._numbered(few, chosen)
        # Column by column: for a table Arrow asks its own threads, which costs more than it saves.
        columns = [
            (
                taken(one.chunk(0) if one.num_chunks == 1 else one, chosen)
                if moved is None
                else moved.slice(first, end - first)
            )
            for one, moved in zip_longest(self.table.itercolumns(), self.moved)
        ]
        return self._numbered(pa.Table.from_arrays(columns, self.table.schema.names), chosen)

    def _numbered(self, rows: pa.Table, numbers: pa.Array) -> pa.Table:
        if self.numbered in self.table.schema.names:
            return rows
        return rows.append_column(self.numbered, numbers)

    def batches(self, first: int, end: int, most: int) -> Iterator[pa.RecordBatch]:
        """The same in batches of at most `most` rows, which are moved when they are asked for."""
        if self.order is None and pieces.is_in_pieces(self.table, pieces.SMALL):
            most = min(most, pieces.MOST_JOINED)
        for start in range(first, end, most):
            rows = self.rows(start, min(start + most, end))
            yield from pieces.joined(rows, pieces.SMALL).to_batches()

    def begins(self, plan: Plan) -> np.ndarray:
        """int64: the rows in order at which partitions begin. There is a row."""
        if self.starts is not None:
            return self.starts
        changed = np.zeros(self.size, np.bool_)
        changed[0] = True
        found = columns_as_they_came(plan, plan.source.key_columns, self.table)
        for name, column in (found or {}).items():
            key = self.moved_column(name)
            if key is None:
                key = in_one_piece(column)
                key = key if self.order is None else taken(key, self.order)
            changed[1:] |= differs(key)
        return np.flatnonzero(changed)

    def moved_column(self, name: str) -> pa.Array | None:
        """The values of a column in order, where they have been moved."""
        place = self.table.schema.get_field_index(name)
        found = self.moved[place] if self.moved and place >= 0 else None
        return None if found is None else found.slice(0, self.size)


def sorted_for(plan: Plan, table: pa.Table) -> tuple[pa.Table, str | None]:
    """(the table in the order that the query reads, the name of its column of row numbers).

    The column is added if the table must be sorted; equal rows keep their order. A sorted table is
    not copied, and has no such column (None). Columns that are missing or have no order are left to
    the check that names them all.
    """
    found = order_for(plan, table)
    return found.rows(0, len(found.table)), found.numbered


class _Known(NamedTuple):
    """What tables of one schema with few rows show alike."""

    schema: pa.Schema
    places: dict[str, int]  # those of the columns to sort by
    numbered: str  # the name of the column of row numbers
    moved: pa.Schema  # with that column
    late_places: list[int]  # as `LateRows` takes them

    def sorted(self, plan: Plan, table: pa.Table) -> Sorted | None:
        """The rows in order; None: of another schema, in several pieces, or with columns to sort by
        that have NULL, or many texts."""
        if not self.schema.equals(table.schema):
            return None
        batches = table.to_batches()
        if len(batches) > 1:
            return None
        (batch,) = batches
        values = {}
        for name, place in self.places.items():
            column = _numbers_in_order(batch.column(place))
            if column is None:
                return None
            values[name] = column
        order, moved, arranged = _in_order(plan, values)
        if order is None:
            return Sorted(table, arranged=arranged, few=batch)
        few = LateRows(batch, order, moved, self.late_places, self.moved)
        return Sorted(table, order, self.numbered, arranged=arranged, few=few)


def order_for(
    plan: Plan,
    table: pa.Table,
    kept: MutableMapping[object, Any] | None = None,
    workers: Workers = ALONE,
) -> Sorted:
    """A table with the order that the query reads. Equal rows keep their order.

    kept: where calls for one plan keep what they find alike (`Program.kept`); None: nowhere.
    workers: the threads that sort a large table.
    """
    known = None if kept is None else kept.get("order")
    if known is not None and 1 < len(table) <= _FEW:
        assert isinstance(known, _Known)
        if (few := known.sorted(plan, table)) is not None:
            return few
    given, names = table, sort_columns(plan)
    table = with_fields(table, names)
    if not names or len(table) < 2:
        return Sorted(table)
    found = columns_as_they_came(plan, names, table)
    if found is None or not _can_sort(found.values()):
        return Sorted(table)
    if len(table) <= _FEW:
        is_plain = table is given and not plan.source.chosen_columns
        if kept is not None and is_plain and all(map(_is_numbered, found.values())):
            kept["order"] = _known_of(plan, table.schema, names)
        # To sort takes less than to look first.
        whole = {name: without_views(in_one_piece(one)) for name, one in found.items()}
        if not all(map(is_whole, whole.values())):
            by_values = _by_values([*whole.values()])
            if not (by_values[1:] < by_values[:-1]).any():
                return Sorted(table)
            return _moving(plan, table, by_values, workers)
        values = {name: whole_values(column) for name, column in whole.items()}
        order, _, arranged = _in_order(plan, values)
        if order is None:
            return Sorted(table, arranged=arranged)
        numbered = number_column(plan, table)
        return Sorted(table.combine_chunks(), order, numbered, arranged=arranged)
    increases = increasing(found[names[0]], workers)
    if increases.calls:
        # One thread codes types when it reads them.
        typing = _coding_types(plan, table, workers) if workers.threads > 1 else done(table)
        is_sorted, coded = workers.take(increases, typing)
        if is_sorted:
            is_time = not plan.source.key_columns
            return Sorted(coded, arranged=rising(plan, len(coded)) if is_time else None)
    columns = [*map(without_views, found.values())]
    if _ascend(columns, workers):
        return Sorted(table)
    if is_worth_it(len(table)):
        keys = 0 if plan.interleaves else len(plan.source.key_columns)
        by_digits = _by_digits(plan, table, columns[:keys], columns[keys:], workers)
        if by_digits is not None:
            return by_digits
    return _moving(plan, table, _by_values([*map(in_one_piece, columns)]), workers)


def _ascend(columns: Sequence[pa.Array | pa.ChunkedArray], workers: Workers) -> bool:
    """Whether rows ascend by all columns, which are made one piece only if a few rows do."""
    few = [in_one_piece(column.slice(0, _FEW)) for column in columns]
    return ascends(few, ALONE) and ascends([*map(in_one_piece, columns)], workers)


def _is_numbered(column: pa.ChunkedArray) -> bool:
    return is_whole(column) or column.type == pa.string()


def _known_of(plan: Plan, schema: pa.Schema, names: Sequence[str]) -> _Known:
    numbered = unused_name("row", [*schema.names, *names_read(plan)])
    places = {name: schema.names.index(name) for name in names}
    moved = schema.append(pa.field(numbered, pa.int64()))
    return _Known(schema, places, numbered, moved, [*range(len(schema)), -1])


def _numbers_in_order(column: pa.Array) -> np.ndarray | None:
    """Numbers that are equal and in order as the values of a column of whole numbers, times or
    texts; None: it has NULL, or many texts."""
    if column.null_count:
        return None
    if column.type.id != _STRING:
        return whole_values(column)
    if len(column) > _FEW_TEXTS:
        return None
    try:
        texts = column.to_pylist()
    except UnicodeDecodeError:
        return None  # which Arrow sorts all the same
    # Code points are in the order of the bytes of UTF-8.
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.fromiter(map(ranks.__getitem__, texts), np.int64, len(texts))


def _in_order(
    plan: Plan, values: Mapping[str, np.ndarray]
) -> tuple[np.ndarray | None, dict[str, np.ndarray], Arrangement | None]:
    """(int64, few rows in the order of columns, the first column first; None: they stand in it; the
    columns in order; what they show)."""
    order = np.lexsort([*values.values()][::-1])  # a third of the time
    moved = {name: one[order] for name, one in values.items()}
    arranged = None if plan.interleaves else _arranged(plan, moved)
    is_moved = np.count_nonzero(order[1:] < order[:-1])
    return order if is_moved else None, moved, arranged


def _arranged(plan: Plan, values: Mapping[str, np.ndarray]) -> Arrangement:
    """What columns show whose rows are in order."""
    keys, orders = plan.source.key_columns, (*plan.source.order_by, *plan.source.tiebreak)
    rows = len(next(iter(values.values())))
    parts, rises, tied = NO_INTEGERS, False, None
    begins = np.zeros(rows, np.bool_)
    begins[0] = True
    for name in keys:
        begins[1:] |= values[name][1:] != values[name][:-1]
    if keys:
        parts = begins.nonzero()[0]
    for number, name in enumerate(orders):
        begins[1:] |= values[name][1:] != values[name][:-1]
        if number == 0 and np.count_nonzero(begins) == rows:
            rises = True
            break
    if orders and not rises and np.count_nonzero(begins) < rows:
        tied = ~begins
    return Arrangement(rows, parts, tied, rises)


def _by_values(columns: Sequence[pa.Array]) -> np.ndarray:
    """int64: the rows in the order of columns, the first column first."""
    sorts: list[pa.Array] = []
    for column in map(sortable, map(plain, columns)):
        if column.null_count:
            sorts.append(column.is_valid())  # NULL comes first, as in Spark
        sorts.append(column)
    sorting = pa.table(sorts, names=list(map(str, range(len(sorts)))))
    order = pc.sort_indices(sorting, [(name, "ascending") for name in sorting.column_names])
    found: np.ndarray = order.to_numpy().astype(np.int64)
    return found


def _moving(plan: Plan, table: pa.Table, order: np.ndarray, workers: Workers) -> Sorted:
    """The table with an order that is another one than its own."""
    if is_worth_it(len(table)):
        (table,) = workers.take(_coding_types(plan, table, workers))
    # One piece of each column, because rows come from all over it.
    return Sorted(table.combine_chunks(), order, number_column(plan, table))


def _coding_types(plan: Plan, table: pa.Table, workers: Workers) -> Step:
    """The step that finds a table with its types coded, where that can be."""
    name = plan.source.type_name
    if table.column_names.count(name) != 1:
        return done(table)
    place = table.column_names.index(name)
    step = coding_types(plan, table.column(place), workers)
    return Step(step.calls, lambda found: table.set_column(place, name, step.found(found)))


def number_column(plan: Plan, table: pa.Table) -> str:
    return unused_name("row", [*table.schema.names, *names_read(plan)])


def _by_digits(
    plan: Plan,
    table: pa.Table,
    keys: Sequence[pa.Array | pa.ChunkedArray],
    orders: Sequence[pa.Array | pa.ChunkedArray],
    workers: Workers,
) -> Sorted | None:
    """The rows by keys, then by order columns; None: they have no digits. Order columns in which
    the rows stand already are no digits of theirs."""
    keys = [coded_texts(in_one_piece(one), workers) for one in keys]
    increases = increasing(orders[0], workers) if orders else done(False)
    typing = _coding_types(plan, table, workers)
    is_sorted, table, *places = workers.take(
        increases, typing, *(placing(one, workers) for one in keys)
    )
    ascend = bool(orders) and (is_sorted or _ascend(orders, workers))
    if not ascend:
        places += workers.take(*(placing(in_one_piece(one), workers) for one in orders))
    if None in places:
        return None
    for name, key in zip(plan.source.key_columns, keys, strict=False):
        table = _with_codes(table, name, key)
    is_moved = len(table) <= MOST_MOVED
    moves = Moves([*table.itercolumns()] if is_moved else [])
    found = in_order(places, workers, moves.of_slice if is_moved else None)
    begins = found.begins if ascend and len(keys) == 1 else None
    arranged = None
    if is_sorted and begins is not None and not keys[0].null_count:
        arranged = rising(plan, len(table), begins)
    numbered, table = number_column(plan, table), _to_pick_from(table, moves.columns)
    return Sorted(table, found.order, numbered, moves.columns, begins, arranged)


def _to_pick_from(table: pa.Table, moved: Sequence[pa.Array | None]) -> pa.Table:
    """A table with those columns in one piece from which rows are picked, as these come from all
    over it."""
    columns = [
        column if done is not None or column.num_chunks == 1 else column.combine_chunks()
        for column, done in zip_longest(table.itercolumns(), moved)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def rising(plan: Plan, rows: int, begins: np.ndarray = NO_INTEGERS) -> Arrangement | None:
    """What is known of rows whose first order column strictly ascends, at least within partitions.

    begins: int64, the rows at which partitions begin. None: a run still has to look at the rows,
    because further order columns can have NULL or NaN, which it refuses.
    """
    return Arrangement(rows, begins, None, rises=True) if len(plan.source.order_by) == 1 else None


def _with_codes(table: pa.Table, name: str, coded: pa.Array) -> pa.Table:
    """A table with the codes of a column of texts, which take less time to move."""
    if table.column_names.count(name) != 1 or table.schema.field(name).type != pa.string():
        return table
    if 2 * len(coded.dictionary) > len(table):
        return table
    return table.set_column(table.column_names.index(name), name, coded)


def _can_sort(columns: Iterable[pa.Array | pa.ChunkedArray]) -> bool:
    return all(is_ordered(column.type) for column in columns)


def is_sorted_stream(plan: Plan, batches: Iterable[pa.RecordBatch]) -> bool:
    """Whether events in batches are in the order that the query reads.

    It reads nothing if the query needs no order, and stops at the first row out of order.
    """
    names = sort_columns(plan)
    if not names:
        return True
    last: list[pa.Array | None] = [None] * len(names)
    first = True
    for batch in batches:
        columns = columns_as_they_came(plan, names, batch) if len(batch) else None
        if columns is None or not _can_sort(columns.values()):
            continue
        undecided = np.ones(len(batch), np.bool_)
        undecided[0] = not first
        for place, name in enumerate(names):
            column = plain(columns[name])
            order = order_of_neighbours(column, last[place])
            if (undecided & (order < 0)).any():
                return False
            undecided &= order == 0
            last[place] = column.take(pa.array([len(column) - 1]))
        first = False
    return True

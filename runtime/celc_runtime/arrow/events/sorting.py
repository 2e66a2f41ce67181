"""The order in which a query reads a table on one machine: which it is, its check, and sorting."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import (
    in_one_piece,
    is_ordered,
    numbers,
    order_of_neighbours,
    plain,
    sortable,
    without_views,
)
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.partition_keys import columns_as_they_came
from celc_runtime.arrow.events.digits import is_worth_it, order_by_digits, places_of
from celc_runtime.arrow.events.paths import with_fields
from celc_runtime.engine.arena.batch import disorder
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import event_schema

_FEW = 1 << 12  # rows


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


def sorted_for(plan: Plan, table: pa.Table) -> tuple[pa.Table, str | None]:
    """(the table in the order that the query reads, the name of its column of row numbers).

    The column is added if the table must be sorted; equal rows keep their order. A sorted table is
    not copied, and has no such column (None). Columns that are missing or have no order are left to
    the check that names them all.
    """
    table = with_fields(table, sort_columns(plan))
    order = order_of(plan, table)
    if order is None:
        return table, None
    numbered = unused_name("row", [*table.schema.names, *names_read(plan)])
    return table.take(order).append_column(numbered, order), numbered


def order_of(plan: Plan, table: pa.Table) -> pa.Array | None:
    """int64: the rows of a table in the order that the query reads; None: as they stand. Equal rows
    keep their order."""
    names = sort_columns(plan)
    if not names or len(table) < 2:
        return None
    found = columns_as_they_came(plan, names, table)
    if found is None or not _can_sort(found.values()):
        return None
    if strictly_increases(found[names[0]]):
        return None
    columns = [in_one_piece(without_views(column)) for column in found.values()]
    if _ascend(columns):
        return None
    if is_worth_it(len(table)):
        keys = 0 if plan.interleaves else len(plan.source.key_columns)
        order = _by_digits(columns[:keys], columns[keys:])
        if order is not None:
            return pa.array(order)
    sorts: list[pa.Array] = []
    for column in map(sortable, map(plain, columns)):
        if column.null_count:
            sorts.append(column.is_valid())  # NULL comes first, as in Spark
        sorts.append(column)
    sorting = pa.table(sorts, names=list(map(str, range(len(sorts)))))
    order = pc.sort_indices(sorting, [(name, "ascending") for name in sorting.column_names])
    return order.cast(pa.int64())


def _ascend(columns: Sequence[pa.Array]) -> bool:
    """Whether rows ascend by all columns. Most tables show in a few rows that they do not."""
    rows = len(columns[0])
    for few in (_FEW, rows):
        if not is_sorted([sortable(plain(column[:few])) for column in columns]):
            return False
        if few >= rows:
            break
    return True


def _by_digits(keys: Sequence[pa.Array], orders: Sequence[pa.Array]) -> np.ndarray | None:
    """int64: the rows by keys, then by order columns; None: they have no digits. Order columns in
    which the rows stand already are no digits of theirs."""
    places = []
    for column in keys if orders and _ascend(orders) else (*keys, *orders):
        found = places_of(column)
        if found is None:
            return None
        places.append(found)
    return order_by_digits(places)


def _can_sort(columns: Iterable[pa.Array | pa.ChunkedArray]) -> bool:
    return all(is_ordered(column.type) for column in columns)


def strictly_increases(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column is of whole numbers or times, and strictly ascends. False if unsure.

    Then the rows are sorted, whatever the other order columns hold.
    """
    whole = pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)
    if not whole or column.type == pa.uint64() or column.null_count:
        return False
    before = None
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        values = numbers(chunk)[0]
        if not len(values):
            continue
        if before is None:
            before, values = values[0], values[1:]
        if len(values):
            if any(disorder(values, before)):
                return False
            before = values[-1]
    return True


def is_sorted(columns: Sequence[pa.Array]) -> bool:
    """Whether rows ascend by all columns, the first column first; NULL is before all values."""
    undecided = np.ones(len(columns[0]), np.bool_)
    undecided[0] = False
    for column in columns:
        order = order_of_neighbours(column, None)
        if (undecided & (order < 0)).any():
            return False
        undecided &= order == 0
    return True


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

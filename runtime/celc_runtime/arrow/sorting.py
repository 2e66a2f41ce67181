"""The order in which a query reads a table on one machine: told, checked, and made."""

from __future__ import annotations

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
)
from celc_runtime.arrow.conforming import names_read
from celc_runtime.arrow.partition_keys import columns_as_they_came
from celc_runtime.arrow.paths import with_fields
from celc_runtime.engine.arena.batch import disorder
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import input_schema


def sort_columns(plan: Plan) -> tuple[str, ...]:
    """The columns that events are sorted by: the partition columns, then the order columns.

    Where partitions interleave, the order columns alone.
    """
    partitions = () if plan.interleaves else plan.source.key_columns
    return tuple(dict.fromkeys((*partitions, *plan.source.order_by, *plan.source.tiebreak)))


def sort_columns_without_order(plan: Plan) -> tuple[str, ...]:
    """The columns that events are sorted by where they come in no order of their own, as on Spark.

    All columns that are read stand last where events of one time need no tiebreak.
    """
    if not plan.source.takes_ties:
        return sort_columns(plan)
    return tuple(dict.fromkeys((*sort_columns(plan), *input_schema(plan).names)))


def sorted_for(plan: Plan, table: pa.Table) -> tuple[pa.Table, str | None]:
    """The table in the order that the query reads; equal rows keep their order.

    A table that has to be sorted gets a column of the rows' numbers, whose name comes second; a
    sorted table is not moved. Columns that are missing or have no order are left to the check that
    names them all.
    """
    names = sort_columns(plan)
    table = with_fields(table, names)
    if not names or len(table) < 2:
        return table, None
    found = columns_as_they_came(plan, names, table)
    if found is None or not _can_sort(found.values()):
        return table, None
    if strictly_increases(found[names[0]]):
        return table, None
    columns = [sortable(plain(in_one_piece(column))) for column in found.values()]
    if is_sorted(columns):
        return table, None
    keys: list[pa.Array] = []
    for column in columns:
        if column.null_count:
            keys.append(column.is_valid())  # NULL comes first, as in Spark
        keys.append(column)
    sorting = pa.table(keys, names=list(map(str, range(len(keys)))))
    order = pc.sort_indices(sorting, [(name, "ascending") for name in sorting.column_names])
    numbered = unused_name("row", [*table.schema.names, *names_read(plan)])
    return table.take(order).append_column(numbered, order.cast(pa.int64())), numbered


def _can_sort(columns: Iterable[pa.Array | pa.ChunkedArray]) -> bool:
    return all(is_ordered(column.type) for column in columns)


def strictly_increases(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column is of whole numbers or times, and each is larger than the one before: then
    the rows are sorted, whatever the other order columns hold. A cheap look, False where unsure."""
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
    """Whether rows ascend by all columns, the first one first, NULL before all values."""
    undecided = np.ones(len(columns[0]), np.bool_)
    undecided[0] = False
    for column in columns:
        order = order_of_neighbours(column, None)
        if (undecided & (order < 0)).any():
            return False
        undecided &= order == 0
    return True


def is_sorted_stream(plan: Plan, batches: Iterable[pa.RecordBatch]) -> bool:
    """Whether events that come in batches are in the order that the query reads.

    Reads nothing where the query needs no order; stops at the first row out of place.
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

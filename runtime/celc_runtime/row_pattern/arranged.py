"""The rows of a table in the order of a query: partition by partition, each in the order of its
ORDER BY.

Partitions come in the order of their first rows. Most tables come in the order of ORDER BY, so that
partitions are all that is left to sort by, and one pass moves the rows.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import taken
from celc_runtime.arrow.events.digits import (
    ALONE,
    Places,
    Workers,
    in_order,
    is_worth_it,
    order_by_digits,
    places_of_numbers,
)
from celc_runtime.arrow.events.moving import Moves
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.arrow.events.sorting import MOST_MOVED
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.row_pattern import RowOrder, RowPlan
from celc_runtime.row_pattern.able import able_rows
from celc_runtime.row_pattern.sorting import first_null, sort_keys

_FEW = 1 << 12  # rows that are looked at first: most tables show there that they are not in order


class Arranged(NamedTuple):
    """The columns that a query reads, by their numbers, and the order of their rows.

    columns: as they stand. order: int64, the rows in order; None: they stand in it. moved: those of
    the columns that are in order already. offsets: int64[partitions + 1], where partitions begin.
    """

    columns: dict[int, pa.Array]
    order: np.ndarray | None
    moved: dict[int, pa.Array]
    offsets: np.ndarray

    def rows(self, first: int, end: int) -> dict[int, pa.Array]:
        """The columns of the rows in order from `first` to before `end`."""
        if self.order is None:
            return {number: one.slice(first, end - first) for number, one in self.columns.items()}
        chosen = self.order[first:end]
        return {
            number: (
                self.moved[number].slice(first, end - first)
                if number in self.moved
                else taken(column, chosen)
            )
            for number, column in self.columns.items()
        }


def arranged(
    plan: RowPlan, table: pa.Table, workers: Workers = ALONE, *, able: bool = False
) -> Arranged:
    """The columns that a query reads, with the order of their rows. able: without some partitions
    that cannot have a match. Raises EventError for NULL in ORDER BY where it has no place."""
    columns = {
        number: _one_piece(table.column(plan.columns[number].name)) for number in plan.columns_read
    }
    rows = len(next(iter(columns.values()))) if columns else 0
    for ordered in plan.order_by:
        _check_nulls(plan, ordered, columns[ordered.column])
    codes = partial(codes_of_keys, [columns[number] for number in plan.partition_by], rows)
    sorting = partial(_sorting, plan, columns)
    parts, (sorts, is_sorted) = workers.side_by_side([codes, sorting])
    kept = able_rows(plan.required, columns, parts) if able else None
    if kept is not None:
        parts = parts[kept]
        columns = {number: taken(column, kept) for number, column in columns.items()}
        sorts, is_sorted = _sorting(plan, columns)
    if is_sorted and is_worth_it(len(parts)) and not _is_sorted([parts]):
        return _by_parts(columns, parts, workers)
    sorts = [parts, *sorts]
    order = None if _is_sorted(sorts) else _order(sorts)
    ordered_parts = parts if order is None else parts[order]
    borders = np.flatnonzero(ordered_parts[1:] != ordered_parts[:-1]) + 1
    ends = [len(parts)] if len(parts) else []
    offsets = np.concatenate([[0], borders, ends]).astype(np.int64)
    return Arranged(columns, order, {}, offsets)


def _one_piece(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _sorting(plan: RowPlan, columns: dict[int, pa.Array]) -> tuple[list[np.ndarray], bool]:
    """Keys that sort as ORDER BY does, the first one first; whether rows are in their order."""
    found = []
    for order in plan.order_by:
        found += sort_keys(
            columns[order.column], descending=order.descending, nulls_first=order.nulls_first
        )
    return found, _is_sorted(found)


def _by_parts(columns: dict[int, pa.Array], parts: np.ndarray, workers: Workers) -> Arranged:
    """Rows that are in the order of ORDER BY, sorted by their partitions, which are numbered from 0
    on."""
    digits = Places(parts.view(np.uint64), int(parts.max()))
    chosen = [*columns] if len(parts) <= MOST_MOVED else []
    moves = Moves([pa.chunked_array([columns[number]]) for number in chosen])
    order, begins = in_order([digits], workers, moves.of_slice if chosen else None)
    moved = {n: one for n, one in zip(chosen, moves.columns, strict=True) if one is not None}
    if begins is None:
        ordered = parts[order]
        begins = np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
    return Arranged(columns, order, moved, np.append(begins, len(parts)))


def _order(sorts: list[np.ndarray]) -> np.ndarray:
    """int64: the rows in the order of keys, the first key first."""
    places = [places_of_numbers(one) for one in sorts] if is_worth_it(len(sorts[0])) else [None]
    if None in places:
        return np.lexsort(sorts[::-1])
    return order_by_digits([one for one in places if one is not None])


def keys_of_order(plan: RowPlan, order: RowOrder, column: pa.Array) -> list[np.ndarray]:
    """Keys that sort as a column of ORDER BY does, the first one first. Raises EventError for NULL
    where it has no place."""
    _check_nulls(plan, order, column)
    return sort_keys(column, descending=order.descending, nulls_first=order.nulls_first)


def _check_nulls(plan: RowPlan, order: RowOrder, column: pa.Array) -> None:
    """Raise EventError for NULL in a column of ORDER BY that has no place for it."""
    is_time = plan.within is not None and order is plan.order_by[0]
    if column.null_count and (order.nulls_first is None or is_time):
        told = " WITHIN measures times." if order.nulls_first is not None else ""
        raise EventError(
            f"query {plan.name!r} is in the order of {plan.columns[order.column].name!r}, and row "
            f"{first_null(column):,} (counted from 0) has NULL there.{told} Leave such rows out"
            + (", or write NULLS FIRST or NULLS LAST" if not told else "")
        )


def _is_sorted(keys: list[np.ndarray]) -> bool:
    """Whether rows are in the order of keys, the first key first. Most that are not show it in a
    few rows."""
    if not keys:
        return True
    if len(keys[0]) > _FEW and not _is_sorted([key[:_FEW] for key in keys]):
        return False
    same: np.ndarray | bool = True
    for number, key in enumerate(keys):
        before, after = key[:-1], key[1:]
        if np.any(same & (after < before)):
            return False
        if number + 1 < len(keys):
            same = same & (after == before)
    return True

"""The sort of rows in the task that reads them; `task_sort` says when, and why."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.events import gathering
from celc_runtime.arrow.events.gathering import gathered
from celc_runtime.arrow.events.sorting import sort_columns
from celc_runtime.plan.plan import Plan
from celc_runtime.spark.worker.row_order import RowOrder, codes_of_keys, order_of, values_of
from celc_runtime.spark.worker.task_columns import (
    EVENTS_ALONE,
    MATTERS,
    TIED,
    TaskColumns,
    Unsorted,
    no_type,
)

_BYTES_IN_MEMORY = 1 << 29
"""More than this goes to a file."""


def sorted_rows(
    plan: Plan, columns: TaskColumns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of a task key by key, in the order of each, with the columns that Spark adds where
    it numbers rows (`numbering.numbered`); as they come where they are sorted."""
    unsorted = columns.unsorted
    if unsorted is None:
        yield from batches
        return
    with closing(HeldRows()) as held:
        for batch in batches:
            held.add(batch)
        table = held.table()
        if table is not None:
            yield from _sorted(plan, columns, unsorted, table)


def sorted_table(plan: Plan, table: pa.Table | None) -> Iterator[pa.RecordBatch]:
    """All rows of a table key by key, in the order of each."""
    if table is not None:
        yield from _sorted(plan, EVENTS_ALONE, Unsorted((), ""), table)


def why_not_sorted(plan: Plan, schema: pa.Schema) -> str:
    """Why rows with these columns, which conform, cannot be sorted here as Spark would; empty where
    they can."""
    for name in sort_columns(plan):
        if not _is_ordered(schema.field(name).type):
            return f"the column {name!r} is of type {schema.field(name).type}"
    return ""


def _is_ordered(type: pa.DataType) -> bool:
    kinds = pa.types
    is_text = kinds.is_string(type) or kinds.is_large_string(type)
    return bool(
        is_text or kinds.is_integer(type) or kinds.is_boolean(type) or kinds.is_temporal(type)
    )


class HeldRows:
    """Rows until all have come: in memory or, where these are many bytes, in a file that is mapped
    into memory, so that the system can take the memory back. The file is gone when this is closed.
    """

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._size = 0
        self._stack = ExitStack()
        self._file: tuple[Path, pa.OSFile, pa.RecordBatchFileWriter] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch; it must not be changed."""
        if len(batch):
            self._batches.append(batch)
            self._size += batch.nbytes
            if self._size > _BYTES_IN_MEMORY:
                self._write()

    def table(self) -> pa.Table | None:
        """All rows, of which no more will come; None: there are none."""
        if self._file is None:
            return pa.Table.from_batches(self._batches).combine_chunks() if self._batches else None
        self._write()
        path, sink, writer = self._file
        writer.close()
        sink.close()
        source = self._stack.enter_context(pa.memory_map(str(path)))
        return pa.ipc.open_file(source).read_all()

    def close(self) -> None:
        """Forget the rows."""
        self._batches.clear()
        self._stack.close()

    def _write(self) -> None:
        if self._file is None:
            folder = tempfile.TemporaryDirectory(prefix="celc-sort-", dir=_local_folder())
            path = Path(self._stack.enter_context(folder)) / "rows"
            sink = self._stack.enter_context(pa.OSFile(str(path), "wb"))
            writer = pa.ipc.new_file(sink, self._batches[0].schema)
            self._file = path, sink, writer
        for batch in gathered(self._batches):
            self._file[2].write_batch(batch)
        self._batches.clear()
        self._size = 0


def _local_folder() -> str | None:
    """The folder that Spark gives its workers for such files; None: that of the system."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return next((folder for folder in folders if os.path.isdir(folder)), None)


def _sorted(
    plan: Plan, columns: TaskColumns, unsorted: Unsorted, table: pa.Table
) -> Iterator[pa.RecordBatch]:
    codes = codes_of_keys([table.column(name) for name in plan.source.key_columns], len(table))
    by = [name for name in sort_columns(plan) if name not in plan.source.key_columns]
    order = order_of(codes, [table.column(name) for name in by])
    if not unsorted.matters:
        yield from _taken(table, order.rows)
        return
    matters, table = _that_matter(plan, table, unsorted)
    undeclared = _undeclared(plan, table, unsorted, matters)
    numbered = _Numbered(order, [table.column(name) for name in by], undeclared)
    for rows, number, tied in _kept(numbered, order.rows, matters):
        marks, first = np.where(tied, TIED, MATTERS).astype(np.int8), 0
        for batch in _taken(table, rows):
            part = slice(first, first + len(batch))
            yield pa.RecordBatch.from_arrays(
                [*map(batch.column, unsorted.names), pa.array(number[part]), pa.array(marks[part])],
                [*unsorted.names, columns.number, columns.mark],
            )
            first += len(batch)


def _that_matter(plan: Plan, table: pa.Table, unsorted: Unsorted) -> tuple[np.ndarray, pa.Table]:
    """bool[rows]: which rows can matter; and the rows with NULL where they have no type."""
    marks = table.column(unsorted.matters)
    if pa.types.is_boolean(marks.type):
        return np.asarray(marks.fill_null(False)), table
    without = pc.equal(marks, pa.scalar(no_type(plan), marks.type))
    if pc.any(without).as_py():
        none = pa.scalar(None, marks.type)
        place = table.schema.get_field_index(unsorted.matters)
        told = pc.if_else(without, none, marks)
        table = table.set_column(place, table.schema.field(place), told)
    return np.asarray(marks.is_valid()), table


def _undeclared(plan: Plan, table: pa.Table, unsorted: Unsorted, matters: np.ndarray) -> np.ndarray:
    """bool[rows]: whether the type of a row is not declared. Only rows that matter need a look: the
    others have a declared type.

    The relevant types of the plan would not do: with FOR EACH the driver knows more than the plan.
    """
    found = np.zeros(len(table), np.bool_)
    names = [plan.source.type_name, *(["stream"] if plan.source.stream_column else [])]
    if not set(names) <= set(unsorted.names):
        return found
    first = 0
    for batch in table.select(names).to_batches(max_chunksize=gathering.ROWS_AT_ONCE):
        rows = np.flatnonzero(matters[first : first + len(batch)])
        types, *streams = (
            column.cast(pa.string()).take(pa.array(rows)) for column in batch.columns
        )
        known = np.zeros(len(rows), np.bool_)
        for stream in {stream for stream, _ in plan.source.declared_types}:
            of_stream = [
                name for declared, name in plan.source.declared_types if declared == stream
            ]
            is_one = pc.is_in(types, value_set=pa.array(of_stream, pa.string()))
            if streams:
                is_one = pc.and_(is_one, pc.equal(streams[0], stream).fill_null(True))
            known |= np.asarray(is_one.fill_null(True))
        # A row without a type or a stream is refused by the query.
        for column in (types, *streams):
            known |= np.asarray(column.is_null())
        found[first + rows] = ~known
        first += len(batch)
    return found


class _Numbered:
    """Gives the rows of an order their numbers, some rows at a time: arrays of numbers for millions
    of rows would take several times the memory of their order."""

    def __init__(
        self, order: RowOrder, columns: Sequence[pa.ChunkedArray], undeclared: np.ndarray
    ) -> None:
        """columns: of the order. undeclared: bool[rows], the rows that have no numbers."""
        self._order = order
        self._columns = columns
        self._values: list[np.ndarray] | None = None
        self._undeclared = undeclared if undeclared.any() else None
        self._row = self._code = -1  # of the last row with a number
        self._number = 0

    def next(self, first: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each of the next rows, which stand at place `first` of the order and behind it: its
        number in its key, from 1 on (int64; 0 if its type is not declared), and whether it is tied
        with the row before it (bool)."""
        codes = self._order.codes[first : first + len(rows)]
        if self._undeclared is None:
            return self._counted(rows, codes)
        number, tied = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        counted = np.flatnonzero(~self._undeclared[rows])
        if len(counted):
            number[counted], tied[counted] = self._counted(rows[counted], codes[counted])
        return number, tied

    def _counted(self, rows: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        is_new = _differs(codes, self._code)
        starts = np.flatnonzero(is_new)
        before = starts.copy()
        if not is_new[0]:
            # The key of the last row goes on.
            starts, before = np.append(0, starts), np.append(-self._number, before)
        number = np.arange(1, len(rows) + 1)
        number -= np.repeat(before, np.diff(np.append(starts, len(rows))))
        tied = ~is_new if self._order.may_tie else np.zeros(len(rows), np.bool_)
        if tied.any():
            if self._values is None:
                self._values = list(values_of(self._columns))
            for values in self._values:
                # Before the first row of all stands none, but that one begins a key.
                tied &= ~_differs(values[rows], values[self._row])
        self._row, self._code, self._number = int(rows[-1]), int(codes[-1]), int(number[-1])
        return number, tied


def _differs(values: np.ndarray, before: Any) -> np.ndarray:
    """bool[values]: whether each is another one than that before it; `before`: that before all."""
    found = np.empty(len(values), np.bool_)
    found[0] = values[0] != before
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def _kept(
    numbered: _Numbered, order: np.ndarray, matters: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows that matter or are tied, in their order, with their numbers and whether they are tied;
    each time as many as a query reads well, or more."""
    waiting: list[tuple[np.ndarray, ...]] = []
    found = 0
    for first in range(0, len(order), gathering.ROWS_AT_ONCE):
        rows = order[first : first + gathering.ROWS_AT_ONCE]
        number, tied = numbered.next(first, rows)
        kept = np.flatnonzero(matters[rows] | tied)
        waiting.append((rows[kept], number[kept], tied[kept]))
        found += len(kept)
        if found >= gathering.ROWS_AT_ONCE or first + len(rows) == len(order):
            some, numbers, ties = map(np.concatenate, zip(*waiting, strict=True))
            yield some, numbers, ties
            waiting, found = [], 0


def _taken(table: pa.Table, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Rows of a table, as many at once as a query reads well."""
    parts = table.to_batches()
    starts = np.cumsum([0, *map(len, parts[:-1])])
    for first in range(0, len(rows), gathering.ROWS_AT_ONCE):
        some = rows[first : first + gathering.ROWS_AT_ONCE]
        if len(parts) == 1:
            yield parts[0].take(pa.array(some))
            continue
        # Part by part: Arrow would put all parts together, for each column, in memory.
        of_part = np.searchsorted(starts, some, side="right") - 1
        by_part = np.argsort(of_part, kind="stable")
        ends = np.searchsorted(of_part[by_part], np.arange(len(parts) + 1))
        found = [
            parts[part].take(pa.array(some[by_part[ends[part] : ends[part + 1]]] - starts[part]))
            for part in range(len(parts))
            if ends[part] < ends[part + 1]
        ]
        places = np.empty(len(some), np.int64)
        places[by_part] = np.arange(len(some))
        taken = pa.Table.from_batches(found).combine_chunks().take(pa.array(places))
        yield from taken.combine_chunks().to_batches()

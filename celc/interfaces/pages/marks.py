"""Events as a report draws them: in the order of the query, with lanes, positions and types.

A position numbers the events of a partition. It leaves out rows that the query does not count. So
the runtime's own code reads the events here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime.arrow.arrays import as_keys, in_one_piece, numbers, plain
from celc_runtime.arrow.events.columns import Columns
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.partition_keys import codes_of_keys
from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.chain.columns import as_run, source_of
from celc_runtime.chain.rows import declared_rows, event_table
from celc_runtime.chain.tables import check_order
from celc_runtime.program import Program
from celc_runtime.query import CompiledQuery
from celc_runtime.rules.inner import over_events


@dataclass(frozen=True)
class Marks:
    """Events in the order of the query."""

    table: pa.Table  # all columns of the events
    keys: tuple[pa.Array, ...]  # for each row, the columns of its partition
    key_names: tuple[str, ...]
    positions: np.ndarray  # int64: the rows' numbers in their partitions
    types: np.ndarray
    """int64: the place of each row's type in `type_names`; −1: a type that the query does not name
    """
    type_names: tuple[str, ...]
    order: pa.Array | None
    """the column that orders the events; None: they are in the order of arrival"""
    order_name: str | None
    undeclared: int = 0  # rows without a position
    last: bool = False  # the events that come last, because they are rows of other queries
    quiet: int | None = None  # the type that is drawn in grey

    def __len__(self) -> int:
        return len(self.positions)


def marks_of_program(program: Program, events: pa.Table) -> Marks:
    """The marks of the events that a compiled query reads, with the rows of the queries below it.

    Raises EventError where the events do not fit the query.
    """
    if program.plan.source.reads:
        return _marks_of_rows(as_run(program), _rows_read(program, events))
    if program.plan.source.parameters is not None:
        program = replace(program, plan=over_events(program.plan))
    return _marks_of_rows(program, events)


def _rows_read(program: Program, events: pa.Table) -> pa.Table:
    """The events of a query that reads others: their rows, and events of declared streams."""
    check_order(program)
    answers = {level.name: CompiledQuery(level).match_table(events) for level in program.levels}
    source = source_of(program)
    narrow = table_of(source, events)
    batches = [conforming(source.plan, batch, 0) for batch in narrow.to_batches()]
    table = pa.Table.from_batches(batches) if batches else source.file_schema.empty_table()
    return event_table(program, declared_rows(program, table), answers)


def _marks_of_rows(program: Program, events: pa.Table) -> Marks:
    plan = program.plan
    names = _free(events.column_names)
    narrow = table_of(program, events)
    rows = np.arange(len(events))
    narrow, numbered = sorted_for(plan, narrow)
    if numbered is not None:
        rows = in_one_piece(narrow.column(numbered)).to_numpy(zero_copy_only=False)
        narrow = narrow.drop_columns([numbered])
    columns = Columns(plan, ties_are_errors=False)
    shown = [*dict.fromkeys((*plan.source.key_columns, *plan.source.order_by[:1]))]
    parts, known = [], []
    for batch in narrow.to_batches():
        prepared = columns.prepare(batch)
        # Where rows of other types were left out, the others have their numbers besides.
        parts.append(prepared.events.select(shown))
        known.append(np.ones(len(batch), np.bool_) if prepared.known is None else prepared.known)
    kept = np.concatenate([*known, np.zeros(0, np.bool_)])
    rows = rows[kept]
    table = events.rename_columns(names).take(pa.array(rows, pa.int64()))
    read = pa.Table.from_batches(parts) if parts else None
    key_names = tuple(plan.source.partition_by)
    keys = tuple(pa.nulls(0) for _ in key_names)
    order = None
    if read is not None:
        keys = tuple(_column(read, name) for name in plan.source.key_columns)
        order = _column(read, plan.source.order_by[0]) if plan.source.order_by else None
    several = plan.source.stream_column
    type_names = tuple(f"{s}.{t}" if several else t for s, t in plan.source.types)
    return Marks(
        table=table,
        keys=keys,
        key_names=key_names,
        positions=positions_in(codes_of_keys(keys, len(rows))),
        types=_types(program, table, type_names),
        type_names=type_names,
        order=order,
        order_name=plan.source.order_by[0] if plan.source.order_by else None,
        undeclared=int(len(kept) - kept.sum()),
        last=plan.source.begin is not None,
    )


def _free(names: Sequence[str]) -> list[str]:
    """Names of columns; a name that occurs twice gets a number behind it."""
    found: dict[str, None] = {}
    for name in names:
        free, number = name, 2
        while free in found:
            free, number = f"{name} ({number})", number + 1
        found[free] = None
    return list(found)


def _column(table: pa.Table, name: str) -> pa.Array:
    return plain(in_one_piece(table.column(name)))


def _types(program: Program, table: pa.Table, type_names: tuple[str, ...]) -> np.ndarray:
    """int64[rows]: the places of the rows' types among those of the plan, −1 for others."""
    plan = program.plan
    if plan.source.type_name not in table.column_names or not len(table):
        return np.zeros(len(table), np.int64)
    names = _column(table, plan.source.type_name).cast(pa.string())
    if plan.source.stream_column:
        names = pc.binary_join_element_wise(_column(table, "stream").cast(pa.string()), names, ".")
    places = pc.index_in(names, pa.array(type_names, pa.string())).fill_null(-1)
    found: np.ndarray = places.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found


def positions_in(codes: np.ndarray) -> np.ndarray:
    """int64[rows]: how many rows before each one have its code."""
    by_code = np.argsort(codes, kind="stable")
    ordered = codes[by_code]
    first = np.searchsorted(ordered, ordered, side="left")
    found = np.empty(len(codes), np.int64)
    found[by_code] = np.arange(len(codes)) - first
    return found


def no_marks() -> Marks:
    """The marks of a report that shows matches alone."""
    nothing = np.zeros(0, np.int64)
    return Marks(pa.table({}), (), (), nothing, nothing, (), None, None)


def marks_of_columns(
    events: pa.Table, keys: Sequence[str], order: str | None, key_types: Sequence[pa.DataType]
) -> Marks:
    """The marks of events whose query is not known.

    All rows have positions. The column `type` has the types. Rows with equal order values keep
    their order. `key_types` are the types of the keys in the matches.
    """
    events = events.rename_columns(_free(events.column_names))
    by = [*keys, *([order] if order is not None else [])]
    if by:
        sorting: list[pa.Array] = []
        for name in by:
            column = _column(events, name)
            sorting += [column.is_valid(), column] if column.null_count else [column]
        table = pa.table(sorting, names=list(map(str, range(len(sorting)))))
        events = events.take(
            pc.sort_indices(table, [(name, "ascending") for name in table.column_names])
        )
    columns = tuple(
        as_keys(_column(events, name).cast(type))
        for name, type in zip(keys, key_types, strict=True)
    )
    type_names, types = ("event",), np.zeros(len(events), np.int64)
    if "type" in events.column_names:
        coded = _column(events, "type").cast(pa.string()).fill_null("NULL").dictionary_encode()
        type_names = tuple(coded.dictionary.to_pylist())
        types = coded.indices.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return Marks(
        table=events,
        keys=columns,
        key_names=tuple(keys),
        positions=positions_in(codes_of_keys(columns, len(events))),
        types=types,
        type_names=type_names,
        order=None if order is None else _column(events, order),
        order_name=order,
    )


def coordinates(column: pa.Array) -> tuple[np.ndarray, int] | None:
    """float64[rows] of a column that can be an axis, and whether its values are times.

    NaN is a value that cannot be placed. Times are microseconds since 1970. None: the column cannot
    be an axis, like a column of texts.
    """
    type = column.type
    times = pa.types.is_timestamp(type) or pa.types.is_date(type)
    if pa.types.is_date(type):
        column = column.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
    elif pa.types.is_timestamp(type):
        column = column.cast(pa.timestamp("us", tz=type.tz), safe=False)
    elif not (pa.types.is_integer(type) or pa.types.is_floating(type)):
        return None
    if times:
        column = column.cast(pa.int64())
    values, valid = numbers(column)
    found = values.astype(np.float64)
    found[~valid | ~np.isfinite(found)] = np.nan
    return found, int(times)

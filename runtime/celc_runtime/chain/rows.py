"""The events of a query that reads others, as one table."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.nested import to_bytes
from celc_runtime.chain.columns import Types, declared_types
from celc_runtime.plan.expressions import Aggregate, Computed
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program


def of_types(plan: Plan, table: pa.Table, types: Types) -> pa.Array | None:
    """bool: the rows of these types; None: all, because the table has no types."""
    if plan.source.type_name not in table.column_names:
        return None
    names = table.column(plan.source.type_name).cast(pa.string())
    if "stream" not in table.column_names:
        return pc.is_in(names, pa.array(sorted({name for _, name in types}), pa.string()))
    found: pa.Array = pa.chunked_array([np.zeros(len(table), np.bool_)])
    for stream, name in sorted(types):
        is_type = pc.equal(names, name)
        is_stream = pc.equal(table.column("stream").cast(pa.string()), stream)
        # As in every table: a row without a stream belongs to any stream with the type.
        either = pc.fill_null(is_stream, True)
        found = pc.or_(found, pc.fill_null(pc.and_(is_type, either), False))
    return found


def rows_for(program: Program, table: pa.Table, others: Types) -> pa.Table:
    """The rows of a table for a query of a chain that reads only declared streams.

    Rows of types that only other queries know (`others`) are left out without a warning.
    """
    foreign = others - declared_types(program)
    mask = of_types(program.plan, table, foreign) if foreign else None
    return table if mask is None else table.filter(pc.invert(pc.fill_null(mask, False)))


def declared_rows(program: Program, table: pa.Table) -> pa.Table:
    """The rows of declared streams as events of a query that also reads other queries."""
    plan, types = program.plan, declared_types(program)
    if not types:
        return table.slice(0, 0)
    mask = of_types(plan, table, types)
    return table if mask is None else table.filter(pc.fill_null(mask, False))


def event_table(program: Program, declared: pa.Table, answers: dict[str, pa.Table]) -> pa.Table:
    """The events of a query: rows of declared streams, and rows of queries, given by name.

    They are sorted by their ends, events of equal time as the positions of the query number them:
    those of declared streams first, then the rows of each query by what tells them apart.
    """
    plan = program.plan
    source = plan.source
    order = source.order_by[0]
    tables, sources = [], []
    if declared_types(program):
        if source.tiebreak:
            declared = declared.take(_ascending(declared, source.tiebreak))
        tables.append(declared_events(program, declared))
        sources.append(np.arange(-len(declared), 0))
    for number, level in enumerate(program.levels, 1):
        answer = answers[level.name]
        answer = answer.take(_ascending(answer, ["start_time", *told_apart_by(level.plan)]))
        tables.append(row_events(program, level.plan, answer))
        sources.append(np.full(len(answers[level.name]), number))
    table = pa.concat_tables(tables)
    place = unused_name("source", table.column_names)
    table = table.append_column(place, pa.array(np.concatenate(sources)))
    return table.take(_ascending(table, [order, place])).drop_columns([place])


def told_apart_by(level: Plan) -> list[str]:
    """The columns behind `start_time` by which the rows of a query are numbered: its keys and its
    expressions, but for COLLECT, which is no attribute of the rows."""
    shown = [one.name for one in level.answer.expressions if not _collects(one)]
    return [*level.source.partition_by, *shown]


def numbering_columns(
    program: Program, taken: Sequence[str]
) -> dict[tuple[str, str], tuple[str, str]]:
    """For each query that is read and each column that numbers its rows: the column of the events
    that holds it, and its type. A column that the reader has from this query alone is there
    already."""
    plan = program.plan
    names = [(level.name, name) for level in program.levels for name in told_apart_by(level.plan)]
    given = Counter([*(name for _, name in names), *plan.source.declared])
    found = {}
    for level in program.levels:
        types = {name: level.plan.source.type_of(name) for name in level.plan.source.partition_by}
        types |= {one.name: one.type for one in level.plan.answer.expressions}
        for name in told_apart_by(level.plan):
            is_there = name in taken and given[name] == 1
            column = name if is_there else unused_name(f"tie {level.name} {name}", taken)
            found[level.name, name] = column, types[name]
    return found


def _collects(one: Computed) -> bool:
    return isinstance(one.value, Aggregate) and one.value.function == "COLLECT"


def _ascending(table: pa.Table, names: Sequence[str]) -> pa.Array:
    """The indices of sorted rows, NULL first; equal rows keep their order."""
    keys: list[pa.ChunkedArray] = []
    for name in names:
        column = table.column(name)
        if pa.types.is_nested(column.type):
            column = pa.chunked_array(map(to_bytes, column.chunks), pa.large_binary())
        elif pa.types.is_duration(column.type):
            column = column.cast(pa.int64())
        keys += [column.is_valid(), column] if column.null_count else [column]
    sorting = pa.table(keys, names=list(map(str, range(len(keys)))))
    order = [(name, "ascending") for name in sorting.column_names]
    places: pa.Array = pc.sort_indices(sorting, order)
    return places


def declared_events(program: Program, table: pa.Table) -> pa.Table:
    """Rows of declared streams (`declared_rows`) as events of a query that reads others, row by
    row."""
    plan, types = program.plan, declared_types(program)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {}
    rows = len(table)
    if plan.source.type_name in table.column_names:
        columns[plan.source.type_name] = table.column(plan.source.type_name).cast(pa.string())
    else:
        ((_, name),) = types
        columns[plan.source.type_name] = pa.array([name] * rows, pa.string())
    if plan.source.stream_column:
        known = "stream" in table.column_names
        of_type = {name: stream for stream, name in sorted(types, reverse=True)}
        given = table.column("stream").cast(pa.string()) if known else pa.nulls(rows, pa.string())
        named = [of_type[name] for name in columns[plan.source.type_name].to_pylist()]
        columns["stream"] = pc.coalesce(given, pa.array(named, pa.string()))
    for one in plan.source.input_attributes:
        type = arrow_type(one.type)
        if one.name == plan.source.begin:
            columns[one.name] = _typed(table.column(plan.source.order_by[0]), type)
        elif one.name in plan.source.declared:
            columns[one.name] = _typed(table.column(one.name), type)
        else:
            columns[one.name] = pa.nulls(rows, type)
    return pa.table(columns)


def row_events(program: Program, level: Plan, answer: pa.Table) -> pa.Table:
    """The rows of a query `level` as events of a query that reads it, row by row."""
    plan = program.plan
    order, rows = plan.source.order_by[0], len(answer)
    values = {name: answer.column(place) for place, name in enumerate(level.source.partition_by)}
    values |= {one.name: answer.column(one.name) for one in level.answer.expressions}
    values[order], values["start_time"] = answer.column("end_time"), answer.column("start_time")
    columns: dict[str, pa.ChunkedArray | pa.Array] = {
        plan.source.type_name: pa.array([level.name] * rows, pa.string())
    }
    if plan.source.stream_column:
        columns["stream"] = columns[plan.source.type_name]
    for one in plan.source.input_attributes:
        type = arrow_type(one.type)
        if one.name == plan.source.begin:
            columns[one.name] = _typed(answer.column("start_time"), type)
        elif one.name in values:
            columns[one.name] = _typed(values[one.name], type)
        else:
            columns[one.name] = pa.nulls(rows, type)
    return pa.table(columns)


def _typed(column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """A column in the declared type; texts may be coded, and times without a zone are in UTC."""
    return column if column.type == type else column.cast(type)

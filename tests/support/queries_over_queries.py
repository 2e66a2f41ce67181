"""Queries over queries in tests: answers in the form of the cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from celc_runtime import CompiledQuery
from celc_runtime.chain.columns import source_of
from celc_runtime.chain.run import why_gathered
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.run.feeding import read_all
from engines import Event, Row, column
from parameters import rows_table
from reference import difference

from celc import Matcher


def source_table(query: CompiledQuery, events: Sequence[Event]) -> pa.Table:
    """The events of the declared streams that a chain reads, as a table in the declared types."""
    plan = source_of(query.program).plan
    columns = {
        one.name: column([event.get(one.name) for event in events], arrow_type(one.type))
        for one in plan.source.attributes
    }
    columns["type"] = pa.array([event["type"] for event in events], pa.string())
    return pa.table(columns)


def together_table(matcher: Matcher, events: Sequence[Event]) -> pa.Table:
    """The same for all queries of a file."""
    columns: dict[str, pa.ChunkedArray] = {}
    for query in matcher.queries.values():
        table = source_table(query, events)
        columns |= dict(zip(table.column_names, table.columns, strict=True))
    return pa.table(columns)


def batches_for(query: CompiledQuery, table: pa.Table) -> list[pa.RecordBatch]:
    """The events as `match_arrow` takes them, in batches of a few rows."""
    if not why_gathered(query.program):
        # Partitions come one after another. Where all is gathered, ties stay as they are.
        names = (*query.plan.source.partition_by, *query.plan.source.order_by)
        table = table.take(pc.sort_indices(table, [(name, "ascending") for name in names]))
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=2)
    return batches


def rows_of_answer(query: CompiledQuery, answer: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows of the output in the form of the cases, with their times."""
    plan = query.plan
    rows = []
    for row in answer:
        assert list(row) == query.output_schema.names
        found: Row = {
            "partition": {name: row[name] for name in plan.source.partition_by},
            "start": row["start_pos"],
            "end": row["end_pos"],
            "start_time": row["start_time"],
            "end_time": row["end_time"],
            "labels": {
                one.name: [event["pos"] for event in row[one.name]] for one in plan.answer.labels
            },
        }
        if plan.source.parameters is not None:
            name = plan.source.parameters.name
            found["parameters"] = {name: row[name]}
        if "decided_time" in row:
            found["decided_time"] = row["decided_time"]
        if plan.answer.collapsed:
            found["matches"] = str(row["matches"])
        if plan.answer.expressions:
            found["values"] = {item.name: row[item.name] for item in plan.answer.expressions}
        rows.append(found)
    return rows


def chain_answer(
    query: CompiledQuery, events: Sequence[Event], rules: Sequence[Mapping[str, Any]] | None = None
) -> list[Row]:
    """What the query answers on this machine, to a table and to batches of a few rows; rules: those
    of a query FOR EACH."""
    if query.plan.source.parameters is not None:
        assert rules is not None
        name = query.plan.source.parameters.name
        query = query.with_parameters(**{name: rows_table(query, rules)})
    table = source_table(query, events)
    found = query.match_table(table)
    assert found.schema.equals(query.output_schema)
    answer = rows_of_answer(query, found.to_pylist())
    batches = batches_for(query, table)
    for way, made in (
        ("batches", query.match_arrow(batches)),
        ("a run", read_all(query.run(), batches)),
    ):
        found = pa.Table.from_batches(made, query.output_schema)
        told = difference(rows_of_answer(query, found.to_pylist()), answer)
        assert not told, f"{way} and the table differ:\n{told}"
    return answer

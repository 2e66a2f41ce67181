"""Queries FOR EACH in tests: tables of rules, and answers in the form of the cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from celc_runtime import CompiledQuery
from celc_runtime.plan.schemas import arrow_type
from engines import Event, Row, answer_of, column, table_of


def rows_table(query: CompiledQuery, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of a parameter table in the declared types."""
    parameters = query.plan.source.parameters
    assert parameters is not None
    return pa.table(
        {
            one.name: column([row.get(one.name) for row in rows], arrow_type(one.type))
            for one in parameters.attributes
        }
    )


def answer_for_each(
    query: CompiledQuery, matches: Sequence[Row], events: Sequence[Event]
) -> list[Row]:
    """The rows of an answer in the form of the cases, held against the events."""
    parameters = query.plan.source.parameters
    assert parameters is not None
    by_row: dict[str, list[Row]] = {}
    for row in matches:
        by_row.setdefault(repr(row[parameters.name]), []).append(row)
    found: list[Row] = []
    for rows in by_row.values():
        # Ends ascend for each row of the table, whose shown attributes may be those of another.
        rows.sort(key=lambda row: row["end_pos"])
        values = rows[0][parameters.name]
        for one in answer_of(query, rows, events):
            found.append({**one, "parameters": {parameters.name: values}})
    return found


def matches_for_each(
    query: CompiledQuery, events: Sequence[Event], rows: Sequence[Mapping[str, Any]]
) -> list[Row]:
    """What the query answers on this machine."""
    parameters = query.plan.source.parameters
    assert parameters is not None
    table = table_of(query.plan, events)
    found = query.match_table(table, **{parameters.name: rows_table(query, rows)})
    assert found.schema.equals(query.output_schema)
    return answer_for_each(query, found.to_pylist(), events)

"""Queries as statements of DuckDB: their texts, and the rows that they find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import duckdb
from celc_runtime.plan.joins import Joins, joins_text
from celc_runtime.query import CompiledQuery
from engines import Event, interpreted, only_query, table_of

import celc
from celc.diagnostics.source import Source
from celc.options import Options
from celc.pipeline import compile_source
from celc.relational.joins import Joined, joins_of

ORDER = Options(("ts",), tiebreak=("row",))
"""Events are ordered by their times, and where these tie by their rows."""


def compiled(text: str) -> tuple[CompiledQuery, Joined] | None:
    """A query with its joins for DuckDB; None: it is none of joins."""
    (stages,) = compile_source(Source("query.cel", text), ORDER).queries
    joined = joins_of(stages.query, "duckdb")
    if not isinstance(joined, Joined):
        return None
    with interpreted():
        query = only_query(celc.compile(text, order_by="ts", tiebreak="row"))
    return query, joined


@cache
def session() -> duckdb.DuckDBPyConnection:
    """A connection whose time zone is not that of times."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'; SET threads = 1")
    return connection


def rows_of(query: CompiledQuery, joined: Joined, events: Sequence[Event]) -> list[dict[str, Any]]:
    """The rows of the statement of a query, in the order of their ends.

    The statement without positions is run as well: it has to find the same rows, as many times.
    """
    numbered = [{**event, "row": number} for number, event in enumerate(events)]
    table = table_of(query.plan, numbered)
    rows = _found(query, joined, table)
    plain = query.with_options(positions=False) if _has_columns(query) else None
    if plain is not None:
        without = Counter(map(repr, _found(plain, joined, table)))
        names = plain.output_schema.names
        assert without == Counter(repr(_without_positions(row, names)) for row in rows)
    return sorted(rows, key=lambda row: row["end_pos"])


def _found(query: CompiledQuery, joined: Joined, table: Any) -> list[dict[str, Any]]:
    joins = Joins(**{field.name: getattr(joined, field.name) for field in fields(joined)})
    text = joins_text(query.plan, joins, "given", "duckdb", typed=query.plan.type_column)
    connection = session()
    connection.register("given", table)
    found = connection.sql(text).to_arrow_table()
    assert found.column_names == query.output_schema.names, text
    return [dict(row) for row in found.cast(query.output_schema).to_pylist()]


def _has_columns(query: CompiledQuery) -> bool:
    return bool(query.plan.order_by)


def _without_positions(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: _bare(row[name]) for name in names}


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [
            {name: one for name, one in item.items() if name != "pos"}
            if isinstance(item, dict)
            else item
            for item in value
        ]
    return value

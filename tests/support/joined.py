"""Queries as statements of DuckDB: their texts, and the rows that they find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
from celc_runtime.plan.joins import Joins, joins_text, why_not_joined
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.query import CompiledQuery
from engines import Event, interpreted, only_query, table_of

from celc import Matcher
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.options import Options
from celc.parse.parser import parse
from celc.relational.joins import joins_of
from celc.resolve.resolver import resolve

ORDER = Options(("ts",), tiebreak=("row",))
"""Events are ordered by their times, and where these tie by their rows."""

SIGNS = (
    *("\n", "\r", "\r\n", "\n\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"),
    *(
        "\t",
        "\x1a",
        "\\",
        "\\n",
        "'",
        "`",
        '"',
        "{",
        "{0}",
        "$",
        "%",
        "--",
        "/*",
        "\ufeff",
        "\u202e",
    ),
)
"""What stands in texts and names as it is, whatever the lines of a statement are."""


def signs_query(texts: Sequence[str], named: str) -> str:
    """A query of pairs of events whose text is one of some texts; an absence and an attribute whose
    name has the signs of `named` make it a statement of several levels."""
    name = f"`a{named.replace('`', '``')}b`"
    among = ", ".join("'" + one.replace("'", "''") + "'" for one in texts)
    return f"""\
CREATE STREAM S {{
  EVENT A {{ {name}: STRING, ts: LONG }}, EVENT B {{ {name}: STRING, ts: LONG }}
}}
SELECT *
FROM S
WHERE (A AS x ; !(B AS z FILTER z.{name} != x.{name}) ; B AS y)
  FILTER x.{name} IN ({among}) AND y.{name} = x.{name}
WITHIN 10 [ts]
"""


def signs_events(texts: Iterable[str], named: str) -> list[dict[str, Any]]:
    """A pair of events for each text, one pair after the other."""
    pairs = [(kind, text) for text in texts for kind in "AB"]
    return [
        {"type": kind, "ts": 100 * (number // 2) + number % 2, f"a{named}b": text}
        for number, (kind, text) in enumerate(pairs)
    ]


def _joined(text: str) -> Joins | None:
    source = Source("query.cel", text)
    # Events that last say their order themselves.
    order_by = None if " LASTING " in text else ORDER.order_by
    (resolved,), _ = resolve(parse(source), source, order_by=order_by, ties=None)
    joined = joins_of(resolved, "duckdb")
    return joined if isinstance(joined, Joins) else None


def is_joined(text: str) -> bool:
    """Whether a query is one of joins."""
    return _joined(text) is not None


def compiled(text: str) -> tuple[CompiledQuery, Joins] | None:
    """A query with its joins for DuckDB; None: it is none of joins there."""
    joined = _joined(text)
    if joined is None:
        return None
    with interpreted():
        module = compile_source(Source("query.cel", text), ORDER).module_text("test")
        query = only_query(Matcher(module))
    return None if why_not_joined(query.plan, joined, "duckdb") else (query, joined)


@cache
def session() -> duckdb.DuckDBPyConnection:
    """A connection whose time zone is not that of times."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'; SET threads = 1")
    return connection


def rows_of(query: CompiledQuery, joined: Joins, events: Sequence[Event]) -> list[dict[str, Any]]:
    """The rows of the statement of a query, in the order of their ends.

    The statement without positions is run as well: it has to find the same rows, as many times.
    """
    table = events_table(query, joined, events)
    rows = _found(query, joined, table)
    plain = query.with_options(positions=False) if _has_columns(query) else None
    if plain is not None:
        without = Counter(map(repr, _found(plain, joined, table)))
        names = plain.output_schema.names
        assert without == Counter(repr(_without_positions(row, names)) for row in rows)
    return sorted(rows, key=lambda row: row["end_pos"])


def events_table(query: CompiledQuery, joined: Joins, events: Sequence[Event]) -> pa.Table:
    """Events as the table that a statement reads."""
    numbered = [{**event, "row": number} for number, event in enumerate(events)]
    return _with_all_columns(table_of(query.plan, numbered), joined)


def _with_all_columns(table: pa.Table, joined: Joins) -> pa.Table:
    """The table with the columns of the statement that the query itself does not read."""
    for name, type in joined.reads:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), arrow_type(type)))
        elif table[name].type == pa.null():
            place = table.column_names.index(name)
            table = table.set_column(place, name, table[name].cast(arrow_type(type)))
    return table


def _found(query: CompiledQuery, joined: Joins, table: Any) -> list[dict[str, Any]]:
    text = joins_text(query.plan, joined, "given", "duckdb", typed=query.plan.source.type_column)
    connection = session()
    connection.register("given", table)
    try:
        found = connection.sql(text).to_arrow_table()
    except duckdb.Error as problem:
        raise AssertionError(f"{problem}\n{text}") from None
    assert found.column_names == query.output_schema.names, text
    return [dict(row) for row in found.cast(query.output_schema).to_pylist()]


def _has_columns(query: CompiledQuery) -> bool:
    return bool(query.plan.source.order_by)


def _without_positions(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: _bare(row[name]) for name in names}


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [
            (
                {name: one for name, one in item.items() if name != "pos"}
                if isinstance(item, dict)
                else item
            )
            for item in value
        ]
    return value

"""The recipes of docs/recipes as tests use them: their queries, their events, their answers."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.csv
from celc_runtime import CompiledQuery
from celc_runtime.plan.schemas import input_schema
from engines import interpreted, only_query
from places import ROOT
from test_docs import blocks_in

import celc

Row = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """What the page shows of a recipe: its name is that of its files."""

    query: CompiledQuery
    events: pa.Table
    sql: str

    @property
    def stream(self) -> str:
        """Its name, which the table has in SQL too."""
        (stream, _), *_ = self.query.plan.source.types
        return stream

    def answer(self, events: pa.Table) -> list[Row]:
        """The rows of the query's answer without positions."""
        return [
            {name: value for name, value in row.items() if name not in ("start_pos", "end_pos")}
            for row in self.query.match_table(events).to_pylist()
        ]


@cache
def recipes() -> dict[str, Recipe]:
    """Those with a query in SQL, by name. Their pages run each query on its events once."""
    pages = sorted((ROOT / "docs" / "recipes").glob("*.md"))
    blocks = [block for page in pages for block in blocks_in(page.read_text(encoding="utf-8"))]
    files = {block.comment.removeprefix("file: "): block.text for block in blocks}
    commands = "".join(block.text for block in blocks if block.comment == "run")
    found = {}
    for file, sql in files.items():
        name, _, ending = file.partition(".")
        if ending != "sql":
            continue
        command = f"$ celc run {name}.cel {name}.csv"
        assert command in commands, f"no page runs {name}"
        closed = f"{command} --at-end closed\n" in commands
        with interpreted():
            query = only_query(
                celc.compile(files[f"{name}.cel"], at_end="closed" if closed else "open")
            )
        found[name] = Recipe(query, _events_of(query, files[f"{name}.csv"]), sql)
    return found


def _events_of(query: CompiledQuery, text: str) -> pa.Table:
    """A table of the page in the order of time, with the types that the query declares."""
    schema = input_schema(query.plan)
    # Times are written without a zone, and are in UTC.
    types = {one.name: pa.timestamp("us") if one.name == "ts" else one.type for one in schema}
    options = pa.csv.ConvertOptions(
        column_types=types, include_columns=schema.names, strings_can_be_null=True
    )
    table = pa.csv.read_csv(io.BytesIO(text.encode()), convert_options=options)
    return table.cast(schema).sort_by("ts")


def counted(rows: Iterable[Row]) -> Counter[frozenset[tuple[str, Any]]]:
    """Rows without an order, so that answers can be compared."""
    return Counter(frozenset(row.items()) for row in rows)

"""Small streams and answers as texts: rows of CSV that `celc run` reads, and tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from celc_runtime.arrow.shown import duration_text

from celc.diagnostics.source import visible
from celc.interfaces.cli.match_formats import json_line, json_ready
from celc.interfaces.cli.table import Times, blocks, column_widths, columns

WIDTH = 100


def event_text(events: pa.Table, lacking: Collection[str] = ()) -> str:
    """A stream as rows of CSV; as lines of JSON where a column has values that CSV lacks.
    `lacking`: columns that none of its events has."""
    kept = [name for name in events.column_names if name not in lacking]
    events = events.select(kept)
    if any(pa.types.is_nested(one.type) for one in events.schema):
        return b"".join(json_line(row) for row in as_json(events)).decode()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(kept)
    for row in events.to_pylist():
        writer.writerow([_cell(row[name]) for name in kept])
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return plain.isoformat(sep=" ")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "total_seconds"):
        return duration_text(value)
    return "" if value is None else str(value)


def answer_lines(answer: pa.Table) -> list[str]:
    """The rows of an answer as a table for people; none where it has none."""
    return rows_lines(answer.column_names, [[*row.values()] for row in answer.to_pylist()])


def rows_lines(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Rows as a table for people."""
    if not rows:
        return []
    times = Times(rows)
    cells = [[times.lines(value) for value in row] for row in rows]
    shown = [visible(name) for name in names]
    widths = column_widths(shown, cells, WIDTH)
    drawn = blocks(shown, cells, WIDTH) if widths is None else columns(shown, cells, widths)
    return [*drawn, *([times.note.strip()] if times.note else [])]


def counted(count: int, one: str = "row") -> str:
    """`no row`, `1 row`, `2 rows`."""
    return f"no {one}" if count == 0 else f"{count:,} {one}{'s' if count != 1 else ''}"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines with two spaces before each."""
    return (f"  {line}".rstrip() for line in lines)


def as_json(table: pa.Table) -> list[Any]:
    """The rows of a table for JSON."""
    return [{name: json_ready(value) for name, value in row.items()} for row in table.to_pylist()]


def parameters_lines(parameters: Mapping[str, pa.Table]) -> Iterator[str]:
    """The rows of parameter sets, as files that `--parameters` reads."""
    for name, table in parameters.items():
        yield f"parameters {name}:"
        yield from indented(event_text(table).splitlines())

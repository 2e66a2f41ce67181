"""Statements with MATCH_RECOGNIZE, their tables, and what each must answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from places import TESTS
from pyarrow import parquet

FOLDER = TESTS / "statements"
TABLES = ("ticker", "clicks", "logins")


class Statement(NamedTuple):
    """A statement, and its answer: the names of the columns, and the rows in any order."""

    title: str
    text: str
    columns: list[str]
    rows: list[list[Any]]

    def __str__(self) -> str:
        return self.title

    def wrong(self, columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
        """What is not as it should be."""
        found = [] if columns == self.columns else [f"columns {columns}, not {self.columns}"]
        have = Counter(json.dumps([_shown(one) for one in row]) for row in rows)
        want = Counter(json.dumps([_shown(_read(one)) for one in row]) for row in self.rows)
        found += [f"too much: {row}" for row in (have - want).elements()]
        return found + [f"missing: {row}" for row in (want - have).elements()]

    def wrong_table(self, table: pa.Table) -> list[str]:
        """The same of an Arrow table."""
        columns = [one.to_pylist() for one in table.columns]
        return self.wrong(table.column_names, [*zip(*columns, strict=True)])


def statements() -> Iterator[Statement]:
    """All of them, in the order of their file."""
    text = (FOLDER / "statements.sql").read_text("utf-8")
    expected = {}
    for line in (FOLDER / "expected.jsonl").read_text("utf-8").splitlines():
        one = json.loads(line)
        expected[one["statement"]] = one
    for block in re.split(r"(?m)^(?=-- \d+ )", text)[1:]:
        title, _, body = block.partition("\n")
        number = int(title.split()[1])
        known = expected[number]
        yield Statement(title[3:], body.rstrip(), known["columns"], known["rows"])


def tables() -> dict[str, pa.Table]:
    """The tables of the statements."""
    return {name: parquet.read_table(FOLDER / f"{name}.parquet") for name in TABLES}


def _read(value: Any) -> Any:
    """A value of the file: a text with a point among digits is a DECIMAL."""
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
        return Decimal(value)
    return [_read(one) for one in value] if isinstance(value, list) else value


def _shown(value: Any) -> Any:
    """The same for values that are equal, whatever their type is; a time is in UTC."""
    match value:
        case bool() | None:
            return value
        case int() | Decimal():
            return f"{Decimal(value).normalize():f}"
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_shown(one) for one in value]
        case dict():
            return {name: _shown(one) for name, one in value.items()}
    return value

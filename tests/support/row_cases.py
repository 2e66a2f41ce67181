"""Cases of MATCH_RECOGNIZE: how they are read, run and compared."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from celc_runtime.plan.schemas import arrow_type
from places import CASES

from celc import Matcher
from celc.diagnostics.source import Source
from celc.row_pattern.compiler import compile_rows

FOLDER = CASES / "sql"
Row = dict[str, Any]


@dataclass(frozen=True)
class RowCase:
    """A case; `expected` None: the query must fail, at `when`, for the reason `error`."""

    name: str
    query: str
    schema: Mapping[str, str]
    table: Sequence[Mapping[str, Any]]
    expected: Sequence[Row] | None
    types: Mapping[str, str]
    partition: Sequence[str] | None
    error: str
    when: str

    def __str__(self) -> str:
        return self.name


def row_cases() -> list[RowCase]:
    """All cases, in the order of the files."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            given = json.loads(line)
            found.append(
                RowCase(
                    given["name"],
                    given["query"],
                    given["schema"],
                    given["table"],
                    given.get("expected"),
                    dict(zip(given.get("columns", []), given.get("types", []), strict=True)),
                    given.get("partition"),
                    given.get("error", ""),
                    given.get("when", ""),
                )
            )
    return found


def column_type(type: str) -> pa.DataType:
    """The Arrow type of a column of a case."""
    return arrow_type(type.replace("BIGINT", "LONG").replace("INTEGER", "INT"))


def table_of(schema: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows of a case as a table."""
    columns = {name: [] for name in schema}  # type: dict[str, list[Any]]
    for row in rows:
        for name, type in schema.items():
            columns[name].append(_value(row.get(name), type))
    return pa.table(
        {name: pa.array(values, column_type(schema[name])) for name, values in columns.items()}
    )


def _value(value: Any, type: str) -> Any:
    if value is None:
        return None
    if type == "TIMESTAMP":
        return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)
    if type == "DATE":
        return dt.date.fromisoformat(value)
    if type.startswith("DECIMAL"):
        return Decimal(value)
    return float(value) if type in ("DOUBLE", "FLOAT") else value


def written(value: Any) -> Any:
    """A value as the cases write it."""
    match value:
        case dt.datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S")
        case dt.date():
            return value.isoformat()
        case dt.timedelta():
            return value // dt.timedelta(microseconds=1)
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return str(value or value.copy_abs())  # there is no −0.00
        case list():
            return list(map(written, value))
        case _:
            return value


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of a result as the cases write them."""
    return [{name: written(value) for name, value in row.items()} for row in table.to_pylist()]


def same(case: RowCase, found: Sequence[Row]) -> bool:
    """Whether a result is the one of the case, partition by partition."""
    assert case.expected is not None
    return _in_parts(found, case.partition) == _in_parts(case.expected, case.partition)


def _in_parts(
    rows: Sequence[Row], partition: Sequence[str] | None
) -> list[str] | dict[str, list[Row]]:
    if partition is None:
        return sorted(map(repr, rows))
    parts: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        parts[repr([row[name] for name in partition])].append(row)
    return parts


def compiled(text: str, name: str = "q") -> Matcher:
    """The matcher of a text."""
    made = compile_rows(Source("q.sql", text), name)
    return Matcher(made.module_text("test"), made.warnings)

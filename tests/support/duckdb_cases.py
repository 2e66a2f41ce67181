"""What MATCH_RECOGNIZE means in DuckDB: statements, their tables, and what each must answer."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from celc_runtime.plan.errors import EventError
from engines import interpreted
from sql_statements import FOLDER, Statement

import celc
from celc import CelError

_TYPES = {
    "INTEGER": pa.int32(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us"),
}
_OF_DUCKDB = ("range(", "{'", "main.", "json_extract_string", "lambda", '"k.l"')


class Case(NamedTuple):
    """A statement over tables. refusal: the code of the error of compilation or words of the error
    of the run that celc gives, also where DuckDB answers with rows; None: it answers."""

    name: str
    tables: dict[str, pa.Table]
    statement: str
    columns: list[str]
    rows: list[list[Any]]
    refusal: str | None

    def __str__(self) -> str:
        return self.name

    @property
    def is_of_spark(self) -> bool:
        """Whether Spark reads the statement, too."""
        is_own = any(word in self.statement for word in _OF_DUCKDB)
        return self.refusal is None and not is_own and self.statement.startswith(("SELECT", "WITH"))

    def wrong(self, host: Any) -> list[str]:
        """What a host, where the tables are, answers otherwise."""
        try:
            with interpreted(), warnings.catch_warnings():
                warnings.simplefilter("ignore", celc.CelWarning)
                found = celc.sql(host, self.statement)
                table = found.toArrow() if hasattr(found, "toArrow") else found.to_arrow_table()
        except CelError as problem:
            codes = [one.code for one in problem.diagnostics]
            return [] if codes == [self.refusal] else [f"refused: {problem}"]
        except EventError as problem:
            is_told = self.refusal is not None and self.refusal in str(problem)
            return [] if is_told else [f"refused: {problem}"]
        if self.refusal is not None:
            return [f"answered, not refused with {self.refusal!r}: {table.to_pylist()}"]
        return Statement(self.name, self.statement, self.columns, self.rows).wrong_table(table)


@cache
def _made(text: str) -> pa.Table:
    table = json.loads(text)
    values = [*zip(*table["rows"], strict=True)] or [()] * len(table["columns"])
    columns = {}
    for (name, kind), column in zip(table["columns"].items(), values, strict=True):
        if kind == "TIMESTAMP":
            columns[name] = pa.array(column, pa.string()).cast(_TYPES[kind])
        else:
            columns[name] = pa.array(column, _TYPES[kind])
    return pa.table(columns)


def cases() -> Iterator[Case]:
    """All of them, in the order of their file."""
    for line in (FOLDER / "duckdb.jsonl").read_text("utf-8").splitlines()[1:]:
        one = json.loads(line)
        tables = {name: _made(json.dumps(table)) for name, table in one["tables"].items()}
        yield Case(
            one["name"],
            tables,
            one["statement"],
            one.get("columns", []),
            one.get("rows", []),
            one.get("error", one.get("refused")),
        )

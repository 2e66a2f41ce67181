"""DuckDB: SQL on its own tables, with all cores; MATCH_RECOGNIZE where a release reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from data_sets import DataSet
from tasks import Task

from adapters.adapter import CORES, Adapter


class InDuckDB(Adapter):
    name, title, languages = "duckdb", "DuckDB", ("duckdb", "sql")
    package = "duckdb"
    how = "SQL on a table of its own in memory, to a table of Arrow, with all cores"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import duckdb

        self._database: Any = duckdb.connect(config={"threads": CORES})
        self._found = pa.table({})

    def load(self, data: DataSet, table: pa.Table) -> None:
        for (name,) in self._database.execute("SHOW TABLES").fetchall():
            self._database.execute(f"DROP TABLE {name}")
        self._database.register("given", table)
        self._database.execute(f"CREATE TABLE {data.name} AS SELECT * FROM given")
        self._database.unregister("given")

    def use_threads(self, number: int) -> None:
        """Run what follows with so many threads."""
        self._database.execute(f"SET threads TO {number}")

    def run(self, task: Task, text: str) -> int:
        self._found = self._database.sql(text).to_arrow_table()
        return len(self._found)

    def answer(self, task: Task) -> pa.Table:
        return self._found.select(list(task.answer))


class InDuckDBRows(InDuckDB):
    name, title, languages = "duckdb_rows", "DuckDB, MATCH_RECOGNIZE", ("match_recognize",)
    how = "its own clause, on the same table"

    @classmethod
    def lacking(cls) -> str | None:
        absent = super().lacking()
        if absent is not None:
            return absent
        import duckdb

        clause = "MATCH_RECOGNIZE (MEASURES x AS y PATTERN (A) DEFINE A AS x = 1)"
        try:
            duckdb.connect().execute(f"SELECT * FROM (SELECT 1 AS x) {clause}")
        except duckdb.ParserException:
            return f"DuckDB {cls.release()} does not read the clause (duckdb/duckdb#25255 adds it)"
        return None

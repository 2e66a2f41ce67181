"""Each task in DuckDB, on its own tables, beside `match_table` on a table of Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from celc_runtime.run.threads import cores
from tasks import Task

THREADS = cores()


class InDuckDB:
    """A database in memory that holds the tables."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        import duckdb

        self.version = duckdb.__version__
        self._database: Any = duckdb.connect(config={"threads": THREADS})
        for name, table in tables.items():
            self._database.register("given", table)
            self._database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self._database.unregister("given")

    def reads_the_clause(self) -> bool:
        """Whether this release reads MATCH_RECOGNIZE."""
        import duckdb

        clause = "MATCH_RECOGNIZE (MEASURES x AS y PATTERN (A) DEFINE A AS x = 1)"
        try:
            self._database.sql(f"SELECT * FROM (SELECT 1 AS x) {clause}")
        except duckdb.ParserException:
            return False
        return True

    def by_clause(self, task: Task, text: str) -> pa.Table:
        """The answer of the clause itself, as a table of Arrow."""
        return self._database.sql(text).to_arrow_table().select(list(task.columns))

    def by_sql(self, task: Task, rows: int) -> pa.Table:
        """The answer of the SQL, as a table of Arrow."""
        return self._database.sql(task.sql_text(rows)).to_arrow_table()


def by_celc(task: Task, query: Any, tables: dict[str, pa.Table]) -> pa.Table:
    """The answer of celc, as a table of Arrow."""
    return query.match_table(tables[task.table]).select(list(task.columns))


def in_order(answer: pa.Table) -> pa.Table:
    """The rows of an answer in an order that does not depend on who found them."""
    numbers = answer.cast(pa.schema([(name, pa.int64()) for name in answer.column_names]))
    return numbers.sort_by([(name, "ascending") for name in numbers.column_names]).combine_chunks()

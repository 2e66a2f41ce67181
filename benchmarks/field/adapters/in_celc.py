"""celc: CEL or MATCH_RECOGNIZE, by `match_table` on a table of Arrow, and by `match` on Spark."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
from celc_runtime.plan.errors import EventWarning
from data_sets import DataSet
from tasks import Task

import celc
from adapters.adapter import Adapter
from adapters.in_spark import InSpark, frame_of


def compiled(task: Task) -> Any:
    """The query of a task.

    `cel_types` of a task: the types of its stream, where that has not all of the set.
    """
    fields = [(name, kind) for name, kind in task.data.fields().items() if name != "type"]
    if "cel" in task.texts:
        columns = ", ".join(f"{name}: {kind}" for name, kind in fields)
        types = task.texts.get("cel_types", task.data.types)
        events = ", ".join(f"EVENT {letter} {{ {columns} }}" for letter in types)
        text = f"CREATE STREAM S {{ {events} }}\n{task.texts['cel']}"
        made = celc.compile(text, order_by="ts", tiebreak="id", at_end="closed")
    else:
        columns = ", ".join(f"{name} {kind}" for name, kind in task.data.fields().items())
        text = f"CREATE TABLE {task.data.name} ({columns});\n{task.texts['match_recognize']}"
        made = celc.compile(text, dialect="match_recognize")
    return next(iter(made.queries.values()))


class InCelc(Adapter):
    name, title, languages = "celc", "celc", ("cel", "match_recognize")
    package = "celc"
    how = "`match_table`, from a table of Arrow to one, with all cores"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # Rows of other types are told of, and are no part of the question.
        warnings.simplefilter("ignore", EventWarning)

    def load(self, data: DataSet, table: pa.Table) -> None:
        self._table, self._queries, self._found = table, dict[str, Any](), pa.table({})

    def run(self, task: Task, text: str) -> int:
        query = self._queries.get(task.name)
        if query is None:
            query = self._queries[task.name] = compiled(task)
        self._found = query.match_table(self._table)
        return len(self._found)

    def answer(self, task: Task) -> pa.Table:
        return self._found.select(list(task.answer))


class InCelcOnSpark(InSpark):
    name, title, languages = "celc_spark", "celc on Spark", ("cel", "match_recognize")
    how = "`match` on a cached DataFrame, whose rows are collected as a table of Arrow"

    def load(self, data: DataSet, table: pa.Table) -> None:
        super().load(data, table)
        self._queries = dict[str, Any]()

    def run(self, task: Task, text: str) -> int:
        query = self._queries.get(task.name)
        if query is None:
            query = self._queries[task.name] = compiled(task)
        self.found = query.match(frame_of(self)).select(*task.answer).toArrow()
        return len(self.found)

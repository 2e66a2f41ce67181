"""Polars: lazy frames, which its optimizer sees as a whole.

A text of a task is Python. It has `df` and `pl`, and `of` and `soon` below, and leaves its rows in
`found`, with a column `x` or `x_id` for each `x` of the answer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from data_sets import DataSet
from tasks import Task

from adapters.adapter import Adapter


class InPolars(Adapter):
    name, title, languages = "polars", "Polars", ("polars",)
    package = "polars"
    how = "a lazy frame over columns in memory, texts as categories, with all cores"

    def load(self, data: DataSet, table: pa.Table) -> None:
        import polars as pl

        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        self._frame = frame.with_columns(pl.col(pl.String).cast(pl.Categorical)).lazy()
        self._found: Any = None

    def run(self, task: Task, text: str) -> int:
        import polars as pl

        names = {"df": self._frame, "pl": pl, "of": partial(of, self._frame), "soon": soon}
        exec(compile(text, task.name, "exec"), names)
        lazy: Any = names["found"]
        there = set(lazy.collect_schema().names())
        columns = {name: name if name in there else f"{name}_id" for name in task.answer}
        self._found = lazy.select(**{name: pl.col(of) for name, of in columns.items()}).collect()
        return len(self._found)

    def answer(self, task: Task) -> pa.Table:
        answer: pa.Table = self._found.to_arrow()
        return answer


def of(df: Any, kind: str, name: str, frame: Any = None) -> Any:
    """The events of a type; each column has the name and `_` before its own."""
    import polars as pl

    rows = df if frame is None else frame
    return rows.filter(pl.col("type") == kind).select(pl.all().name.prefix(f"{name}_"))


def soon(first: str, then: str, most: int) -> Any:
    """Whether an event comes after another one, at most so many units of time later."""
    import polars as pl

    later = pl.col(f"{then}_id") > pl.col(f"{first}_id")
    return later & (pl.col(f"{then}_ts") <= pl.col(f"{first}_ts") + most)

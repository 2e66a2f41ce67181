"""epigrep: a pattern of its builder over a list of its events.

A text of a task is one expression of Python. It has `Pattern` of epigrep, and `match`, which takes
a pattern and whether all choices are wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from data_sets import DataSet
from tasks import Task

from adapters.adapter import Adapter


class InEpigrep(Adapter):
    name, title, languages = "epigrep", "epigrep", ("epigrep",)
    package = "epigrep"
    how = "a pattern of its builder over a sorted list of events; rows are read off its matches"

    def load(self, data: DataSet, table: pa.Table) -> None:
        self._table = table
        self._events: dict[str, tuple[list[Any], np.ndarray]] = {}
        self._by(data.key)
        self._found: list[list[int]] = []

    def _by(self, key: str) -> tuple[list[Any], np.ndarray]:
        """(the events in the order that epigrep wants, by a key; int64[events], their ids). They
        are kept for the next task with this key."""
        import epigrep

        if key not in self._events:
            rows = self._table
            of = map(str, rows[key].to_pylist()) if key else [""] * len(rows)
            attributes = rows.drop_columns(["ts", "type"]).to_pylist()
            made = zip(
                of, rows["ts"].to_pylist(), rows["type"].to_pylist(), attributes, strict=True
            )
            events = epigrep.sort_events([epigrep.Event(*each) for each in made])
            ids = np.array([event.attrs["id"] for event in events], np.int64)
            self._events = {key: (events, ids)}
        return self._events[key]

    def run(self, task: Task, text: str) -> int:
        import epigrep

        events, ids = self._by(task.texts.get("epigrep_key", task.data.key))

        def match(pattern: Any, exhaustive: bool = False) -> list[Any]:
            return epigrep.match(pattern, events, exhaustive=exhaustive, assume_sorted=True)

        matches = eval(text, {"match": match, "Pattern": epigrep.Pattern})
        shape = (len(matches), len(task.answer))
        self._found = ids[np.array([each.indices for each in matches], np.int64).reshape(shape)]
        return len(matches)

    def answer(self, task: Task) -> pa.Table:
        columns = np.asarray(self._found).T
        return pa.table(dict(zip(task.answer, map(pa.array, columns), strict=True)))

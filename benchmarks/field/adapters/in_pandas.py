"""pandas: columns of NumPy, and texts as categories.

A text of a task is Python. It has `df`, `pd`, `np`, and `of` and `follow` below, and leaves its
rows in `found`, with a column `x` or `x_id` for each `x` of the answer. pandas has no join on a
range; `follow` is one in NumPy, as its users write it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from data_sets import DataSet
from tasks import Task

from adapters.adapter import Adapter


class InPandas(Adapter):
    name, title, languages = "pandas", "pandas", ("pandas",)
    package = "pandas"
    how = "whole columns, texts as categories; joins on ranges by `searchsorted` of NumPy"

    def load(self, data: DataSet, table: pa.Table) -> None:
        self._frame = table.to_pandas(strings_to_categorical=True)
        self._found: Any = None

    def run(self, task: Task, text: str) -> int:
        import pandas as pd

        df = self._frame.copy(deep=False)
        names = {"df": df, "pd": pd, "np": np, "of": partial(of, df), "follow": follow}
        exec(compile(text, task.name, "exec"), names)
        found: Any = names["found"]
        columns = [name if name in found.columns else f"{name}_id" for name in task.answer]
        self._found = found[columns].set_axis(list(task.answer), axis=1)
        return len(self._found)

    def answer(self, task: Task) -> pa.Table:
        return pa.Table.from_pandas(self._found.astype("int64"), preserve_index=False)


def of(df: Any, kind: str, name: str) -> Any:
    """The events of a type; each column has the name and `_` before its own."""
    return df[df["type"] == kind].add_prefix(f"{name}_")


def follow(
    left: Any,
    first: str,
    right: Any,
    then: str,
    most: int,
    by: str | list[str] | None = None,
    after: str | None = None,
) -> Any:
    """Join each row of `left` with each row of `right` that comes later, inside a window.

    first: the name of the event with which the window begins. then: the name of the events of
    `right`. most: the length of the window, in the unit of `ts`. by: columns that must be equal.
    after: the name of the event after which `then` must come; None: `first`.
    """
    import pandas as pd

    columns = [by] if isinstance(by, str) else by or []
    mine, theirs = np.zeros(len(left), np.int64), np.zeros(len(right), np.int64)
    for column in columns:
        one, other = left[f"{first}_{column}"], right[f"{then}_{column}"]
        codes, names = pd.factorize(np.concatenate([one.to_numpy(), other.to_numpy()]))
        mine = mine * len(names) + codes[: len(one)]
        theirs = theirs * len(names) + codes[len(one) :]
    ids, times = right[f"{then}_id"].to_numpy(), right[f"{then}_ts"].to_numpy()
    order = np.lexsort((ids, theirs))
    theirs, ids, times = theirs[order], ids[order], times[order]
    start = left[f"{after or first}_id"].to_numpy()
    most_time = left[f"{first}_ts"].to_numpy() + most
    # One number for key and id, and one for key and time, both in the order of `right`.
    low = _place(theirs, ids, mine, start)
    high = _place(theirs, times, mine, most_time)
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(left)), counts)
    found = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    taken = order[found + np.repeat(low, counts)]
    return pd.concat(
        [left.iloc[rows].reset_index(drop=True), right.iloc[taken].reset_index(drop=True)], axis=1
    )


def _place(keys: np.ndarray, values: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """int64[values]: for each key and value, the place behind all pairs that are not greater."""
    least = min(values.min(initial=0), value.min(initial=0))
    span = max(values.max(initial=0), value.max(initial=0)) - least + 1
    return np.searchsorted(keys * span + (values - least), key * span + (value - least), "right")

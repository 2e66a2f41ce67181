"""In the processes of Spark's executors each kernel is compiled once, by one of them."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from other_processes import DECLARED, PLANS

import celc


@pytest.fixture
def fresh_workers(spark: Any, compiling_workers: None, tmp_path: Path) -> Iterator[None]:
    """Workers with an empty cache, which begin with machine code."""
    changed = {"CELC_CACHE_DIR": str(tmp_path / "cache"), "CELC_INTERPRETED_ROWS": "0"}
    environment = spark.sparkContext.environment
    before = {name: environment.get(name) for name in changed}
    environment.update(changed)
    yield
    for name, value in before.items():
        if value is None:
            del environment[name]
        else:
            environment[name] = value


def _told(pickled: bytes) -> Any:
    """A function for `mapInArrow`: the process, what it has compiled so far, and the matches."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        import pyarrow as pa
        from numba.core import event

        class Listener(event.Listener):  # type: ignore[misc]
            def on_start(self, event: Any) -> None:
                dispatcher = event.data["dispatcher"]
                if type(dispatcher._cache).__name__ == "KernelCache":  # Numba compiles its own too
                    name = dispatcher.py_func.__qualname__
                    vars(sys)["compiled"].append(f"{name} {event.data['args']}")

            def on_end(self, event: Any) -> None:
                pass

        if "compiled" not in vars(sys):
            vars(sys)["compiled"] = []
            event.register("numba:compile", Listener())
        found = sum(map(len, pickle.loads(pickled).match_arrow(batches)))
        told = json.dumps([os.getpid(), found, vars(sys)["compiled"]])
        yield pa.RecordBatch.from_arrays([pa.array([told])], ["told"])

    return run


@pytest.mark.long
@pytest.mark.usefixtures("fresh_workers")
def test_executors_compile_each_kernel_once(spark: Any) -> None:
    query = celc.compile(DECLARED + PLANS["plain"]).queries["query"]
    events = spark.range(0, 60, 1, 4).selectExpr(
        "element_at(array('A', 'B', 'C'), CAST(id % 3 + 1 AS INT)) AS type",
        "CAST(id % 2 AS INT) AS id",
        "CAST(id AS DOUBLE) AS value",
        "id AS ts",
    )
    job = events.mapInArrow(_told(pickle.dumps(query)), "told STRING")
    compiled: dict[int, list[str]] = {}
    for _ in range(2):  # four tasks by two processes, twice
        before = sum(map(len, compiled.values()))
        for row in job.collect():
            process, found, names = json.loads(row["told"])
            assert found
            if len(names) > len(compiled.get(process, [])):
                compiled[process] = names
    made = [name for names in compiled.values() for name in names]
    assert len(made) == before > 5
    assert sorted(made) == sorted({*made})

"""One engine in a process of its own; run.py asks it.

    python worker.py ENGINE FOLDER

It greets with its version, and answers each line of JSON by one: `load` takes a data set from a
Parquet file, `run` answers a task, `write` puts the last answer into a Parquet file.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from adapters.every import adapter
from data_sets import SETS
from processes import forget_peaks, held_bytes, peak_bytes
from pyarrow import parquet
from tasks import task_of


def measured(engine: Any, run: Callable[[], object]) -> dict[str, Any]:
    """What a call took, and what it gave."""
    gc.collect()
    forget_peaks()
    cpu, passed = engine.seconds(), time.perf_counter()
    given = run()
    passed, cpu = time.perf_counter() - passed, engine.seconds() - cpu
    return {"given": given, "cpu": cpu, "clock": passed, "peak": peak_bytes() / 2**20}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what engines print is no answer
    kind, folder = adapter(sys.argv[1]), Path(sys.argv[2])
    # Machine code that an earlier run has left would make first answers cheaper.
    os.environ["CELC_CACHE_DIR"] = str(folder / "machine-code")
    engine = kind(folder)
    print(kind.release(), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            print(json.dumps(_answer(engine, asked)), file=answers, flush=True)
        except Exception as error:  # the other side raises it again, and names the engine and task
            told = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"error {told}", file=answers, flush=True)
    engine.close()


def _answer(engine: Any, asked: dict[str, Any]) -> dict[str, Any]:
    if asked["do"] == "load":
        data, table = SETS[asked["data"]], parquet.read_table(asked["path"], memory_map=False)
        found = measured(engine, lambda: engine.load(data, table))
        return {**found, "given": None, "held": held_bytes() / 2**20}
    task = task_of(asked["task"])
    if asked["do"] == "write":
        answer = engine.answer(task)
        columns = {name: answer[name].cast(pa.int64()) for name in task.answer}
        parquet.write_table(pa.table(columns), asked["path"])
        return {}
    text = engine.text(task)
    return measured(engine, lambda: engine.run(task, text))


if __name__ == "__main__":
    main()

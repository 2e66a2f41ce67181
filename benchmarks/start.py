"""How long a query takes to start: fresh processes, fresh Spark workers, with and without a cache.

    python benchmarks/start.py [--runs N] [--cold N] [--no-spark] [--record]

Figures are CPU seconds. A *process* imports the generated module and matches a table of 60 events.
A *worker* is a new Python worker of Spark that cannot import celc: it gets the pickled query, loads
it and matches its first batch; once with Spark in the driver's process, once over Spark Connect.
Both have imported numpy, numba, pyarrow and pandas before (pyarrow imports pandas where it is
installed); what that takes stands beside. *Cold* is with an empty cache, *warm* with a full one.
`--record` appends the run to benchmarks/records/.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import environment

import celc

DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT B { id: INT, value: DOUBLE, name: STRING, ts: LONG },
  EVENT C { id: INT, value: DOUBLE, name: STRING, ts: LONG }
}
"""
QUERIES = {
    "q1": "SELECT * FROM S WHERE A ; B ; C WITHIN 100 [ts]",
    "conditions": "SELECT * FROM S WHERE (A AS x ; B AS y ; C) FILTER x.value > 0.5 AND "
    "y.name LIKE 'p%' WITHIN 100 [ts]",
    "selector": "SELECT NXT * FROM S WHERE A+ ; B ; C WITHIN 100 [ts]",
    "correlated": "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND "
    "y.id = z.id AND x.value < z.value WITHIN 100 [ts]",
}

_IMPORTS = """
import json, sys, time
begun = time.process_time()
import numpy, numba, pyarrow, pandas
imported = time.process_time()
"""
_PROCESS = _IMPORTS + """
rows = numpy.arange(60)
events = pyarrow.table({
    "type": pyarrow.array(numpy.array(list("ABC"))[rows * 7 % 5 % 3]),
    "id": pyarrow.array(rows % 3, pyarrow.int32()), "value": pyarrow.array(rows * 0.25 % 1),
    "name": pyarrow.array(numpy.array(["p", "q"])[rows % 2]), "ts": pyarrow.array(rows)})
sys.path.insert(0, sys.argv[1])
start = time.process_time()
module = __import__(sys.argv[2])
loaded = time.process_time()
assert len(module.match_table(events))
done = time.process_time()
print(json.dumps({"imports": imported - begun, "load": loaded - start, "first batch": done - loaded,
                  "start": done - start}))
"""


def processes(folder: Path, name: str, runs: int, *, cold: bool) -> list[dict[str, float]]:
    """The figures of fresh processes."""
    figures = []
    for run in range(runs):
        cache = folder / (f"cache-{name}-{run}" if cold else "cache")
        done = subprocess.run(
            [sys.executable, "-c", _PROCESS, str(folder), name],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"CELC_CACHE_DIR": str(cache)},
        )
        figures.append(json.loads(done.stdout))
    return figures


def in_worker(pickled: bytes) -> Any:
    """A function for `mapInArrow` that measures the start of a query where it runs."""

    def measured(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle
        import time

        begun = time.process_time()
        import numba
        import numpy as np
        import pandas
        import pyarrow as pa

        assert numba.__version__
        assert pandas.__version__
        imported = time.process_time()
        query = pickle.loads(pickled)
        loaded = time.process_time()
        matches = sum(map(len, query.match_arrow(batches)))
        done = time.process_time()
        assert matches
        figures = [imported - begun, loaded - imported, done - loaded, done - imported]
        names = ["imports", "load", "first batch", "start"]
        columns = [pa.array(np.array([figure])) for figure in figures]
        yield pa.RecordBatch.from_arrays(columns, names)

    return measured


def workers(runs: int, *, connect: bool) -> dict[str, list[dict[str, float]]]:
    """The figures of fresh Spark workers with a full cache, for each query."""
    from pyspark.sql import SparkSession

    if connect:
        builder = SparkSession.builder.remote("local[1]")
    else:
        builder = SparkSession.builder.master("local[1]")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    # A new process for each task.
    spark = builder.config("spark.python.worker.reuse", "false").getOrCreate()
    events = spark.range(60).selectExpr(
        "element_at(array('A', 'B', 'C'), CAST(id * 7 % 5 % 3 + 1 AS INT)) AS type",
        "CAST(id % 3 AS INT) AS id",
        "CAST(id * 0.25D % 1 AS DOUBLE) AS value",
        "element_at(array('p', 'q'), CAST(id % 2 + 1 AS INT)) AS name",
        "id AS ts",
    )
    figures: dict[str, list[dict[str, float]]] = {}
    ddl = "imports DOUBLE, load DOUBLE, `first batch` DOUBLE, start DOUBLE"
    for name, text in QUERIES.items():
        query = celc.compile(DECLARED + text).queries["query"]
        job = events.coalesce(1).mapInArrow(in_worker(pickle.dumps(query)), ddl)
        rows = [job.collect()[0].asDict() for _ in range(runs + 1)]
        figures[name] = rows[1:]  # the first one fills the cache
    spark.stop()
    return figures


def _workers_apart(folder: Path, runs: int, *, connect: bool) -> dict[str, list[dict[str, float]]]:
    """The same in a process of its own: one process has one kind of Spark."""
    python = folder / "python-without-celc"
    packages = sysconfig.get_paths()["purelib"]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [sys.executable, __file__, "--runs", str(runs), "--workers", "01"[connect]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ
        | {
            "CELC_CACHE_DIR": str(folder / "workers"),
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    found: dict[str, list[dict[str, float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(*, runs: int = 10, cold: int = 3, spark: bool = True) -> dict[str, Any]:
    """Best and median of each figure, by query."""
    record: dict[str, Any] = {"warm process": {}, "cold process": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for query, text in QUERIES.items():
            (folder / f"{query}.py").write_text(celc.compile(DECLARED + text).source)
            processes(folder, query, 1, cold=False)
            record["warm process"][query] = _summary(processes(folder, query, runs, cold=False))
            record["cold process"][query] = _summary(processes(folder, query, cold, cold=True))
        for title, connect in (("warm worker", False), ("warm worker, Connect", True)):
            if spark:
                figures = _workers_apart(folder, runs, connect=connect)
                record[title] = {query: _summary(rows) for query, rows in figures.items()}
    return record


def _summary(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        figure: {
            "best": round(min(row[figure] for row in rows), 4),
            "median": round(statistics.median(row[figure] for row in rows), 4),
        }
        for figure in rows[0]
    }


def show(record: dict[str, Any]) -> None:
    """The figures for people."""
    for group, queries in record.items():
        if not isinstance(queries, dict):
            continue
        print(f"{group}: CPU seconds, best (median)")
        for query, figures in queries.items():
            parts = [f"{n} {f['best']:.3f} ({f['median']:.3f})" for n, f in figures.items()]
            print(f"  {query:12} {'   '.join(parts)}")


def main() -> None:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--cold", type=int, default=3, help="runs with an empty cache")
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--workers", choices=["0", "1"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.workers is not None:
        print(json.dumps(workers(arguments.runs, connect=arguments.workers == "1")))
        return
    figures = measure(runs=arguments.runs, cold=arguments.cold, spark=not arguments.no_spark)
    record = environment("benchmarks/start.py", 60) | figures
    show(record)
    if arguments.record:
        folder = Path(__file__).parent / "records"
        folder.mkdir(exist_ok=True)
        with (folder / f"start-{record['date']}.jsonl").open("a") as stream:
            stream.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()

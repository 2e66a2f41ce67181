"""celc beside what else answers the same questions: SQL in DuckDB, and SQL in Spark.

    python benchmarks/peers/run.py [--events N,…] [--spark-events N] [--only duckdb] [--record]

Before anything is timed, both answers are compared row by row; in Spark by their number and a
checksum. Times are CPU time, the least of some runs that take turns: in DuckDB of this process with
its threads (DuckDB has two, `match_table` one), in Spark of all processes. `clock` is the time that
passed. `times` above 1: celc is faster; below 1: it is slower. docs/comparison.md shows a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent.parent
sys.path.append(str(BENCHMARKS))

from common import calibrate, environment  # noqa: E402
from in_duckdb import InDuckDB, in_order  # noqa: E402
from in_spark import InSpark  # noqa: E402
from processes import tree_seconds  # noqa: E402
from spark_jobs import answer, run_made, session  # noqa: E402
from tasks import TASKS, Task, tables  # noqa: E402

Way = Callable[[], object]


def figures_of_duckdb(rows: int, runs: int, names: str = "") -> Iterator[dict[str, Any]]:
    """All tasks in DuckDB and by `match_table`. Raises RuntimeError where the answers differ."""
    data = tables(rows)
    peer = InDuckDB(data)
    for task in _chosen(names, TASKS):
        query = task.compiled(rows)
        sql, own = partial(peer.by_sql, task, rows), partial(peer.by_celc, task, query)
        found, wanted = in_order(own()), in_order(sql())
        if not found.equals(wanted):
            raise RuntimeError(f"{task.name}: {len(found):,} rows by celc, {len(wanted):,} by SQL")
        yield _figure(
            f"DuckDB {peer.version}", task, rows, len(found), (sql, own), runs, time.process_time
        )


def figures_of_spark(rows: int, runs: int, names: str = "") -> Iterator[dict[str, Any]]:
    """All tasks in Spark SQL and by `match`. Raises RuntimeError where the answers differ."""
    with session() as spark, tempfile.TemporaryDirectory() as folder:
        peer = InSpark(spark, Path(folder), tables(rows))
        for task in _chosen(names, [task for task in TASKS if task.on_spark]):
            query = task.compiled(rows)
            sql, own = partial(peer.by_sql, task, rows), partial(peer.by_celc, task, query)
            found, wanted = answer(own()), answer(sql())
            if found != wanted:
                raise RuntimeError(f"{task.name}: celc finds {found}, SQL finds {wanted}")
            ways = partial(run_made, sql), partial(run_made, own)
            yield _figure(f"Spark {peer.version}", task, rows, found[0], ways, runs, tree_seconds)


def _chosen(names: str, among: Sequence[Task]) -> list[Task]:
    """The tasks whose name contains one of the texts, which commas divide."""
    return [task for task in among if any(name in task.name for name in names.split(","))]


def _figure(
    peer: str,
    task: Task,
    rows: int,
    matches: int,
    ways: tuple[Way, Way],
    runs: int,
    clock: Callable[[], float],
) -> dict[str, Any]:
    (sql, sql_clock), (own, own_clock) = timed(ways, runs, clock)
    figure = {
        "peer": peer,
        "task": task.name,
        "rows": rows,
        "matches": matches,
        "sql_seconds": round(sql, 4),
        "celc_seconds": round(own, 4),
        "times": round(sql / own, 3),
        "sql_clock": round(sql_clock, 4),
        "celc_clock": round(own_clock, 4),
    }
    print(
        f"{peer:14} {task.name:54} {rows:9,} rows {matches:9,} matches   SQL {sql:7.3f} s   "
        f"celc {own:7.3f} s   {sql / own:6.2f} times",
        flush=True,
    )
    return figure


def timed(ways: Sequence[Way], runs: int, clock: Callable[[], float]) -> list[tuple[float, float]]:
    """The least CPU seconds and the least seconds on the clock of each way; they take turns."""
    found: list[list[tuple[float, float]]] = [[] for _ in ways]
    for _ in range(runs):
        for way, taken in zip(ways, found, strict=True):
            cpu, passed = clock(), time.perf_counter()
            way()
            taken.append((clock() - cpu, time.perf_counter() - passed))
    return [(min(cpu for cpu, _ in each), min(passed for _, passed in each)) for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", default="100000,1000000")
    parser.add_argument("--spark-events", type=int, default=200_000)
    parser.add_argument("--only", default="duckdb,spark")
    parser.add_argument("--tasks", default="", help="parts of their names: V shape,absence")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.events.split(",")]
    record = environment("benchmarks/peers/run.py", max(sizes))
    record["calibration"] = calibrate(max(sizes))()
    record["figures"] = figures = []
    try:
        if "duckdb" in asked.only.split(","):
            for rows in sizes:
                for figure in figures_of_duckdb(rows, 3, asked.tasks):
                    figures.append(figure)
        if "spark" in asked.only.split(","):
            for figure in figures_of_spark(asked.spark_events, 2, asked.tasks):
                figures.append(figure)
    finally:  # a run that is stopped keeps what it has measured
        if asked.record and figures:
            path = BENCHMARKS / "records" / f"peers-{record['date']}.jsonl"
            with path.open("a") as out:
                out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()

"""celc beside what else answers the same questions: SQL in DuckDB and in Spark, and FlinkCEP.

    python benchmarks/peers/run.py [--events N,…] [--spark-events N] [--flink-events N]
                                   [--only duckdb,spark,flink] [--tasks PART,…] [--record]

Before anything is timed, both answers are compared row by row; in Spark by their number and a
checksum. Times are CPU time, the least of some runs that take turns: in DuckDB of this process with
its threads (DuckDB and `match_table` use all cores), in Spark of all processes, in FlinkCEP of
Flink's process with all its threads. `clock` is the time that passed. `times` above 1: celc is
faster; below 1: it is slower. A peer that is not installed is left out, with a word why.
docs/comparison.md shows a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent.parent
sys.path.append(str(BENCHMARKS))

import pyarrow as pa  # noqa: E402
from common import calibrate, environment  # noqa: E402
from in_duckdb import InDuckDB, by_celc, in_order  # noqa: E402
from in_flink import InFlink, missing  # noqa: E402
from in_spark import InSpark  # noqa: E402
from processes import tree_seconds  # noqa: E402
from spark_jobs import answer, run_made, session  # noqa: E402
from tasks import TASKS, Task, tables  # noqa: E402


@dataclass(frozen=True, slots=True)
class Way:
    """What is timed, and the clock of its CPU seconds."""

    run: Callable[[], object]
    clock: Callable[[], float] = time.process_time


def figures_of_duckdb(rows: int, runs: int, names: str = "") -> Iterator[dict[str, Any]]:
    """All tasks in DuckDB and by `match_table`; those in MATCH_RECOGNIZE also by DuckDB's own
    clause, where it has one. Raises RuntimeError where the answers differ."""
    data = tables(rows)
    peer = InDuckDB(data)
    for task in _chosen(names, TASKS):
        query = task.compiled(rows)
        sql, own = partial(peer.by_sql, task, rows), partial(by_celc, task, query, data)
        found = same_rows(task, own(), sql(), "SQL")
        yield _figure(f"DuckDB {peer.version}", task, rows, found, (Way(sql), Way(own)), runs)
        text = task.clause_text(rows)
        if text is not None and peer.reads_the_clause():
            clause = partial(peer.by_clause, task, text)
            same_rows(task, own(), clause(), "its own clause")
            named = replace(task, name=f"{task.name}, by DuckDB's own clause")
            ways = (Way(clause), Way(own))
            yield _figure(f"DuckDB {peer.version}", named, rows, found, ways, runs)


def figures_of_flink(rows: int, runs: int, names: str = "") -> Iterator[dict[str, Any]]:
    """All tasks in FlinkCEP and by `match_table`. Raises RuntimeError where the answers differ.

    `read_seconds`: the part of FlinkCEP's time that a job without a pattern takes as well.
    """
    data = tables(rows)
    with tempfile.TemporaryDirectory() as folder, InFlink(Path(folder), data) as peer:
        for task in _chosen(names, [task for task in TASKS if task.flink]):
            own = partial(by_celc, task, task.compiled(rows), data)
            peer.match(task, rows)
            found = same_rows(task, own(), peer.answer(task), "FlinkCEP")
            read = Way(partial(peer.read, task), peer.seconds)
            ways = Way(partial(peer.match, task, rows), peer.seconds), Way(own)
            yield _figure(f"FlinkCEP {peer.version}", task, rows, found, ways, runs, read)


def same_rows(task: Task, own: pa.Table, theirs: pa.Table, peer: str) -> int:
    """How many rows both answers have. Raises RuntimeError where they differ."""
    found, wanted = in_order(own), in_order(theirs)
    if not found.equals(wanted):
        raise RuntimeError(f"{task.name}: {len(found):,} rows by celc, {len(wanted):,} by {peer}")
    return len(found)


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
            ways = tuple(Way(partial(run_made, way), tree_seconds) for way in (sql, own))
            yield _figure(f"Spark {peer.version}", task, rows, found[0], ways, runs)


def _chosen(names: str, among: Sequence[Task]) -> list[Task]:
    """The tasks whose name contains one of the texts, which commas divide."""
    return [task for task in among if any(name in task.name for name in names.split(","))]


def _figure(
    peer: str,
    task: Task,
    rows: int,
    matches: int,
    ways: Sequence[Way],
    runs: int,
    read: Way | None = None,
) -> dict[str, Any]:
    """The figures of a task: the peer's way and celc's; `read`: the peer's reading alone."""
    every = [*ways, read] if read else ways
    (other, other_clock), (own, own_clock), *reading = timed(every, runs)
    figure = {
        "peer": peer,
        "task": task.name,
        "rows": rows,
        "matches": matches,
        "peer_seconds": round(other, 4),
        "celc_seconds": round(own, 4),
        "times": round(other / own, 3),
        "peer_clock": round(other_clock, 4),
        "celc_clock": round(own_clock, 4),
    }
    for seconds, _ in reading:
        figure["read_seconds"] = round(seconds, 4)
    print(
        f"{peer:14} {task.name:54} {rows:9,} rows {matches:9,} matches   peer {other:7.3f} s   "
        f"celc {own:7.3f} s   {other / own:6.2f} times   "
        f"clock {other_clock:.3f} and {own_clock:.3f} s",
        flush=True,
    )
    return figure


def timed(ways: Sequence[Way], runs: int) -> list[tuple[float, float]]:
    """The least CPU seconds and the least seconds on the clock of each way; they take turns."""
    found: list[list[tuple[float, float]]] = [[] for _ in ways]
    for _ in range(runs):
        for way, taken in zip(ways, found, strict=True):
            cpu, passed = way.clock(), time.perf_counter()
            way.run()
            taken.append((way.clock() - cpu, time.perf_counter() - passed))
    return [(min(cpu for cpu, _ in each), min(passed for _, passed in each)) for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", default="100000,1000000")
    parser.add_argument("--spark-events", type=int, default=200_000)
    parser.add_argument("--flink-events", type=int, default=200_000)
    parser.add_argument("--only", default="duckdb,spark,flink")
    parser.add_argument("--tasks", default="", help="parts of their names: V shape,absence")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.events.split(",")]
    record = environment("benchmarks/peers/run.py", max(sizes))
    record["calibration"] = calibrate(max(sizes))()
    record["figures"] = figures = []
    only = asked.only.split(",")
    runs: list[Iterator[dict[str, Any]]] = []
    if "duckdb" in only and not InDuckDB({}).reads_the_clause():
        told = "DuckDB's own clause: this release has none, and its SQL alone is compared"
        print(f"left out: {told}", file=sys.stderr)
    if "duckdb" in only:
        runs += (figures_of_duckdb(rows, 3, asked.tasks) for rows in sizes)
    if "spark" in only:
        runs.append(figures_of_spark(asked.spark_events, 2, asked.tasks))
    if "flink" in only:
        lacking = missing()
        if lacking is None:
            runs.append(figures_of_flink(asked.flink_events, 3, asked.tasks))
        else:
            print(f"left out: {lacking}", file=sys.stderr)
    try:
        for figure in chain.from_iterable(runs):
            figures.append(figure)
    finally:  # a run that is stopped keeps what it has measured
        if asked.record and figures:
            path = BENCHMARKS / "records" / f"peers-{record['date']}.jsonl"
            with path.open("a") as out:
                out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()

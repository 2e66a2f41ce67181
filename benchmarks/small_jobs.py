"""Small jobs on Spark: `match` beside `count()` of the same DataFrame, by CPU of all processes.

    python benchmarks/small_jobs.py [--rows N ...] [--turns N] [--calls N]
    python benchmarks/small_jobs.py --phases [--rows N]
    python benchmarks/small_jobs.py --first

Of 10,000 or 100,000 rows almost all of a job is what it costs to plan and to begin it. A job is
made and its answer counted, as users do: `match(df).count()`. The query is `A ; B ; C` with a key
and a window, and the same without a key. The rows lie in one Parquet file; a half of them is of the
types that the query names. The ways take turns, several calls of each at a time, after as many
unmeasured calls as Java needs to compile. *Nothing* is a job without a query, whose function reads
the rows that can matter and returns none: what it takes no query can save that runs in Python.

`--phases` says where the time of a job goes: calls of the JVM and CPU of the driver's Python, the
same of the JVM, and of the workers, for the plan alone and for the whole job. `--first` measures
fresh sessions: the first `match` of one beside the first `count()` of another.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from common import Figure, quotient
from processes import tree_seconds, worker_seconds
from pyarrow import parquet
from spark_jobs import session
from streams import seconds_apart

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = (10_000, 100_000)
GOALS = {10_000: 2.0, 100_000: 1.5}
"""CPU of `match` beside that of `count()`, by the number of rows."""
GOAL_OF_FIRST = 3.0
"""CPU seconds of the first `match` of a session over those of the first `count()` of another."""
WARM_CALLS = 40
QUERIES = {
    "keyed": "A AS a ; B AS b ; C AS c PARTITION BY key WITHIN 10 MINUTES [ts]",
    "without key": "A AS a ; B AS b ; C AS c FILTER a.v > 0.9 WITHIN 1 MINUTE [ts]",
}


def write_rows(file: Path, rows: int) -> Path:
    """An event a second, a hundred of each key, a sixth of them of each type that a query names."""
    rng = np.random.default_rng(21)
    types = pa.array(list("ABCXYZ")).take(pa.array(rng.integers(0, 6, rows)))
    keys = pa.array(rng.integers(0, max(1, rows // 100), rows).astype(np.int32))
    columns = {"type": types, "key": keys, "v": pa.array(rng.random(rows))}
    parquet.write_table(pa.table({**columns, "ts": seconds_apart(rows), "unread": keys}), file)
    return file


def query_of(formula: str) -> Any:
    """A query over the types of the data, ordered by time."""
    declared = ", ".join(
        f"EVENT {name} {{ key: INT, v: DOUBLE, ts: TIMESTAMP }}" for name in "ABCXYZ"
    )
    text = f"CREATE STREAM S {{ {declared} }} SELECT * WHERE {formula}"
    return next(iter(celc.compile(text, order_by="ts").queries.values()))


def jobs_of(frame: DataFrame) -> dict[str, Callable[[], object]]:
    """The jobs that are compared; each returns a number of rows."""
    made: dict[str, Callable[[], object]] = {"count": frame.count, "nothing": nothing(frame)}
    for name, formula in QUERIES.items():
        query = query_of(formula)
        made[name] = lambda query=query: query.match(frame).count()
    return made


def nothing(frame: DataFrame) -> Callable[[], int]:
    """The rows that can matter in one task, for a function that returns none of them."""

    # In here, so that Spark ships it by its content: workers cannot import this file.
    def read(batches: Any) -> Any:
        for _ in batches:
            pass
        return iter(())

    def job() -> int:
        rows = frame.where("type IN ('A', 'B', 'C')").select("type", "key", "v", "ts")
        found: int = rows.coalesce(1).mapInArrow(read, "found BIGINT").count()
        return found

    return job


# --- warm jobs ------------------------------------------------------------------------------------


def figures(rows: int, turns: int, calls: int) -> Iterator[Figure]:
    """The cost of each query beside `count()`, for a number of rows."""
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        frame = spark.read.parquet(str(write_rows(Path(folder) / "rows.parquet", rows)))
        jobs = jobs_of(frame)
        seconds: dict[str, list[float]] = {name: [] for name in jobs}
        for turn in range(-(-WARM_CALLS // calls) + turns):
            for name, job in jobs.items():
                before = tree_seconds()
                for _ in range(calls):
                    job()
                if turn >= -(-WARM_CALLS // calls):
                    seconds[name].append((tree_seconds() - before) / calls)
        for name, found in seconds.items():
            context = {"rows": rows}
            title = f"{name}, {rows:,} rows"
            yield Figure(title, "s", tuple(found), higher_is_better=False, context=context)
            if name != "count":
                beside = f"{title}, CPU beside count()"
                goal = None if name == "nothing" else GOALS.get(rows)
                yield quotient(beside, found, seconds["count"], goal, **context)


# --- where the time goes --------------------------------------------------------------------------


@contextmanager
def counted_calls() -> Iterator[list[str]]:
    """The commands that are sent to the JVM while the block runs."""
    from py4j.clientserver import JavaClient
    from py4j.java_gateway import GatewayClient

    sent: list[str] = []
    original = GatewayClient.send_command

    def send(self: Any, command: str, *arguments: Any, **named: Any) -> Any:
        sent.append(command)
        return original(self, command, *arguments, **named)

    classes = {GatewayClient, JavaClient}
    for each in classes:
        each.send_command = send
    try:
        yield sent
    finally:
        GatewayClient.send_command = original
        if "send_command" in vars(JavaClient):
            del JavaClient.send_command


def phases(rows: int, turns: int, calls: int) -> None:
    """Print what the plan and the whole of a job take, in milliseconds of CPU of each process."""
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        frame = spark.read.parquet(str(write_rows(Path(folder) / "rows.parquet", rows)))
        parts: dict[str, Callable[[], object]] = {"count(): all": frame.count}
        parts["nothing: all"] = nothing(frame)
        for name, formula in QUERIES.items():
            query = query_of(formula)
            parts[f"{name}: plan"] = partial(query.match, frame)
            parts[f"{name}: all"] = lambda query=query: query.match(frame).count()
        costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in parts}
        for turn in range(-(-WARM_CALLS // calls) + turns):
            for name, part in parts.items():
                before = _seconds_of_each()
                for _ in range(calls):
                    part()
                taken = [
                    1e3 * (a - b) / calls for a, b in zip(_seconds_of_each(), before, strict=True)
                ]
                if turn >= -(-WARM_CALLS // calls):
                    costs[name].append((taken[0], taken[1], taken[2]))
        print(f"{rows:,} rows; ms of CPU   calls of JVM   driver    JVM   workers")
        for name, found in costs.items():
            with counted_calls() as sent:
                parts[name]()
            own, workers, tree = (statistics.median(of) for of in zip(*found, strict=True))
            kept = sum(not command.startswith("m\n") for command in sent)
            print(f"{name:25}{kept:12}{own:11.1f}{tree - own - workers:9.1f}{workers:9.1f}")


def _seconds_of_each() -> tuple[float, float, float]:
    times = os.times()
    return times.user + times.system, worker_seconds(), tree_seconds()


# --- fresh sessions -------------------------------------------------------------------------------


def first(runs: int) -> Iterator[Figure]:
    """What the first `match` of a session costs over the first `count()` of another."""
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder:
        file = write_rows(Path(folder) / "rows.parquet", ROWS[-1])
        seconds: dict[str, list[float]] = {name: [] for name in ("count", "nothing", *QUERIES)}
        for _ in range(runs):
            for name, found in seconds.items():
                found.append(_seconds_of_process(name, file))
    for name in ("nothing", *QUERIES):
        over = tuple(a - b for a, b in zip(seconds[name], seconds["count"], strict=True))
        title = f"first match of a session, {name}, over the first count()"
        goal = None if name == "nothing" else GOAL_OF_FIRST
        yield Figure(title, "s", over, higher_is_better=False, goal=goal)


def _seconds_of_process(name: str, file: Path) -> float:
    command = [sys.executable, __file__, "--once", name, str(file)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def once(name: str, file: str) -> None:
    """Print the CPU seconds of a session with one job, the compiler aside."""
    query = query_of(QUERIES[name]) if name in QUERIES else None
    before = tree_seconds()
    with session() as spark:
        frame = spark.read.parquet(file)
        if query is not None:
            query.match(frame).count()
        elif name == "nothing":
            nothing(frame)()
        else:
            frame.count()
        print(tree_seconds() - before)


# --- the command line -----------------------------------------------------------------------------


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--once", nargs=2, metavar=("JOB", "FILE"))
    given = parser.parse_args()
    if given.once:
        once(*given.once)
    elif given.phases:
        phases(given.rows[-1], given.turns, given.calls)
    else:
        found = list(first(3)) if given.first else []
        for rows in () if given.first else given.rows:
            found += figures(rows, given.turns, given.calls)
        for figure in found:
            middle = statistics.median(figure.values)
            goal = "" if figure.goal is None else f"   goal {figure.goal}"
            shown = " ".join(f"{value:.3f}" for value in figure.values)
            print(f"{figure.name}: {middle:.3f} {figure.unit}{goal}   [{shown}]")


if __name__ == "__main__":
    main()

"""How long Spark plans a micro-batch of `match_stream`, beside one of Spark's own count.

    python benchmarks/planning.py [--files N] [--warm-up N] [--rows N] [--turns N]

The files have few rows and come one at a time, so planning is most of a micro-batch. Three streams
read the same files, one stream after another, in turns:

- `count`: Spark's `groupBy(window, key).count()`
- `nothing`: the plan of `match_stream`, with a matcher that does nothing
- `match_stream`

In the first turn the JVM still compiles, most of all for the first stream. *Planning* is what Spark
reports as `queryPlanning`: milliseconds on the clock, the median of the micro-batches that come
after the first ones. CPU is the time of all processes for a micro-batch; that of Spark's Python
workers is also shown alone.

At the end a table shows the time of each part of a micro-batch, as Spark reports it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cells import QUERY, Cell, write_files
from common import Figure, quotient
from processes import tree_seconds, worker_seconds
from spark_jobs import session
from streaming import DELAY, SETTINGS, count, nothing

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOAL = 1.5
"""The goal: planning takes at most this many times what it takes for Spark's count."""
COLUMNS = "type STRING, key INT, v DOUBLE, ts TIMESTAMP"
WHOLE = "triggerExecution"
PARTS = {
    "latestOffset": "what has come",
    "walCommit": "the offsets are written",
    "getBatch": "the files to read",
    "queryPlanning": "planning",
    "addBatch": "tasks, with state and answer",
    "commitOffsets": "the end is written",
    WHOLE: "all",
}
"""The parts of a micro-batch by Spark's names, and what Spark does in each."""


class Cost(NamedTuple):
    """What a micro-batch of a stream costs."""

    parts: dict[str, float]  # milliseconds of each part, by Spark's name; medians
    cpu: float  # CPU seconds of all processes; the mean
    workers: float  # of these, the seconds of Spark's Python workers


def cost(
    spark: SparkSession, made: Callable[[DataFrame], DataFrame], folder: Path, cold: int
) -> Cost:
    """The cost of a stream over the files of a folder, without its first `cold` micro-batches."""
    rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", "1").parquet(str(folder))
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as checkpoint:
        writer = made(rows).writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        while query.isActive and len(query.recentProgress) < cold:
            time.sleep(0.02)
        begun, before, of_workers = len(query.recentProgress), tree_seconds(), worker_seconds()
        query.awaitTermination()
        used, of_workers = tree_seconds() - before, worker_seconds() - of_workers
        found = query.recentProgress[begun:]
    parts = {
        part: statistics.median(one["durationMs"].get(part, 0) for one in found) for part in PARTS
    }
    return Cost(parts, used / len(found), of_workers / len(found))


def costs_of(files: int, cold: int, rows: int, turns: int) -> dict[str, list[Cost]]:
    """The costs of each stream in each turn."""
    query = celc.compile(QUERY, order_by="ts").query
    ways: dict[str, Callable[[DataFrame], DataFrame]] = {
        "count": count,
        "nothing": nothing,
        "match_stream": partial(query.match_stream, watermark=DELAY),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        written = Path(folder) / "files"
        write_files(written, Cell(20, rows, warm_up=0, files=files))
        for _ in range(turns):
            for name, made in ways.items():
                costs[name].append(cost(spark, made, written, cold))
    return costs


def table(costs: dict[str, list[Cost]]) -> Iterator[str]:
    """The time of each part of a micro-batch, as a table of Markdown; the least of the turns."""
    yield f"| milliseconds | {' | '.join(costs)} |"
    yield "| --- |" + " --- |" * len(costs)
    lines: dict[str, Callable[[Cost], float]] = {
        told: lambda one, part=part: one.parts[part]  # type: ignore[misc]
        for part, told in PARTS.items()
    }
    lines |= {
        "CPU of all processes": lambda one: 1000 * one.cpu,
        "CPU of Python workers": lambda one: 1000 * one.workers,
    }
    for told, value in lines.items():
        cells = (f"{min(map(value, found)):.0f}" for found in costs.values())
        yield f"| {told} | {' | '.join(cells)} |"


def figures(costs: dict[str, list[Cost]]) -> Iterator[Figure]:
    """Times and CPU of each stream, and their ratios to those of Spark's count."""
    for name, found in costs.items():
        for part in PARTS:
            values = tuple(one.parts[part] for one in found)
            yield Figure(f"{name}, {part}", "ms", values, higher_is_better=False)
        yield Figure(f"{name}, CPU", "s", tuple(one.cpu for one in found), higher_is_better=False)
        if name != "count":
            own, others = (
                [one.parts["queryPlanning"] for one in of] for of in (found, costs["count"])
            )
            goal = GOAL if name == "match_stream" else None
            yield quotient(f"{name}, planning beside count", own, others, goal)
            own, others = ([one.cpu for one in of] for of in (found, costs["count"]))
            yield quotient(f"{name}, CPU beside count", own, others)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--warm-up", type=int, default=20, help="micro-batches")
    parser.add_argument("--rows", type=int, default=1_000, help="of a file")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    costs = costs_of(given.files, given.warm_up, given.rows, given.turns)
    for figure in figures(costs):
        goal = "" if figure.goal is None else f"   goal {figure.goal}"
        shown = " ".join(f"{value:.3f}" for value in figure.values)
        middle = statistics.median(figure.values)
        print(f"{figure.name}: {middle:.3f} {figure.unit}{goal}   [{shown}]")
    print(*table(costs), sep="\n")


if __name__ == "__main__":
    main()

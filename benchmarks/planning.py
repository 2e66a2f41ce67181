"""What Spark takes to plan a micro-batch of `match_stream`, beside one of its own count.

    python benchmarks/planning.py [--files N] [--warm-up N] [--rows N] [--turns N]

Files of few rows come one at a time, so that planning is most of a micro-batch. The streams read
the same files, one after another, in turns: Spark's `groupBy(window, key).count()`, the plan of
`match_stream` with a matcher that does nothing, and `match_stream`. In the first turn
Java compiles, most of all for the first stream. *Planning* is
what Spark reports as `queryPlanning`, in milliseconds on the clock, the median of a stream's
micro-batches behind the first ones; CPU is that of all processes for a micro-batch, and apart that
of Spark's Python workers.

In the end a table says where a micro-batch goes, by the parts that Spark reports.
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
"""The most that planning may take of what it takes for Spark's count."""
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
"""What Spark calls the parts of a micro-batch, and what it does in them."""


class Cost(NamedTuple):
    """Medians of a stream's micro-batches in milliseconds, by Spark's names of their parts, and CPU
    seconds of one: of all processes, and of Spark's Python workers."""

    parts: dict[str, float]
    cpu: float
    workers: float


def cost(
    spark: SparkSession, made: Callable[[DataFrame], DataFrame], folder: Path, cold: int
) -> Cost:
    """What a stream over the files of a folder costs behind its first micro-batches."""
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
    """Where a micro-batch of each stream goes, as lines of Markdown; the least of the turns."""
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
    """Planning and CPU of each stream, and beside those of Spark's count."""
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

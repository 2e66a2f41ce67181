"""What Spark takes to plan a micro-batch of `match_stream`, beside one of its own count.

    python benchmarks/planning.py [--files N] [--warm-up N] [--rows N] [--turns N]

Files of few rows come one at a time, so that planning is most of a micro-batch. The streams read
the same files, one after another, in turns: Spark's `groupBy(window, key).count()`, the plan of
`match_stream` with a matcher that does nothing, and `match_stream`. In the first turn
Java compiles, most of all for the first stream. *Planning* is
what Spark reports as `queryPlanning`, in milliseconds on the clock, the median of a stream's
micro-batches behind the first ones; CPU is that of all processes for a micro-batch.
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
from processes import tree_seconds
from spark_jobs import session
from streaming import DELAY, SETTINGS, count, nothing

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOAL = 1.5
"""The most that planning may take of what it takes for Spark's count."""
COLUMNS = "type STRING, key INT, v DOUBLE, ts TIMESTAMP"
PARTS = ("queryPlanning", "addBatch", "triggerExecution")


class Cost(NamedTuple):
    """Medians of a stream's micro-batches in milliseconds, by Spark's names of their parts, and CPU
    seconds of one."""

    parts: dict[str, float]
    cpu: float


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
        begun, before = len(query.recentProgress), tree_seconds()
        query.awaitTermination()
        used, found = tree_seconds() - before, query.recentProgress[begun:]
    parts = {
        part: statistics.median(one["durationMs"].get(part, 0) for one in found) for part in PARTS
    }
    return Cost(parts, used / len(found))


def figures(files: int, cold: int, rows: int, turns: int) -> Iterator[Figure]:
    """Planning and CPU of each stream, and beside those of Spark's count."""
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
    for figure in figures(given.files, given.warm_up, given.rows, given.turns):
        goal = "" if figure.goal is None else f"   goal {figure.goal}"
        shown = " ".join(f"{value:.3f}" for value in figure.values)
        middle = statistics.median(figure.values)
        print(f"{figure.name}: {middle:.3f} {figure.unit}{goal}   [{shown}]")


if __name__ == "__main__":
    main()

"""Time ranges of a stream without keys on Spark, by the clock on the wall.

Rows in the order of time, in Parquet files that follow each other; two ranges on two cores stand
beside one on one core. Before them stands what two processes that sort and share nothing gain,
which is the most that two tasks can. The queries have positions, so that all rows are sorted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import Figure, Settings, Task, quotient, rate
from processes import pin_tree, sorting_seconds
from spark import events, query_of
from spark_jobs import answer, run_made, run_unmeasured, session, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYLESS = {"W=1000 rows": "WITHIN 1000 EVENTS", "a window of 10 minutes": "WITHIN 10 MINUTES [ts]"}

UNMEASURED = ", batches not measured"
"""The figures with the setting that `explain_plan` names, with which Spark does not add up the size
of a batch row by row. It matters where many rows reach Python."""


def figures(settings: Settings) -> Iterator[Figure]:
    """All figures of this part."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("  not available: two ranges on two cores, for there is one")
        return
    turns = [
        (sorting_seconds(cores[:1]), sorting_seconds(cores[:2]))
        for _ in range(settings.repetitions)
    ]
    # Twice the work in so many times the seconds.
    yield quotient(
        "two processes that share nothing, speed beside one",
        [2 * alone for alone, _ in turns],
        [both for _, both in turns],
        higher_is_better=True,
    )
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        written = write_in_order(Path(folder) / "keyless", settings.events)
        frame = spark.read.parquet(str(written))
        for name, clause in KEYLESS.items():
            query = query_of(clause).with_options(positions=True)
            yield from _figures_of(name, query, frame, settings, cores)


def write_in_order(folder: Path, rows: int) -> Path:
    """Rows in the order of their times."""
    return write(folder, events(rows, 1))


def _figures_of(
    name: str, query: Any, frame: DataFrame, settings: Settings, cores: list[int]
) -> Iterator[Figure]:
    one, two = (answer(query.match(frame, ranges=ranges)) for ranges in (1, 2))
    if one != two:
        raise RuntimeError(f"keyless, {name}: one range gives {one}, two give {two}")
    spark = frame.sparkSession
    ways = [("one", 1, cores[:1]), ("two", 2, cores)]
    tasks = []
    for which, ranges, pinned in ways:
        make = partial(query.match, frame, ranges=ranges)
        pin = partial(pin_tree, pinned)
        tasks.append(Task(which, partial(run_made, make), pin))
        tasks.append(Task(f"{which}{UNMEASURED}", partial(run_unmeasured, spark, make), pin))
    try:
        timings = settings.repeated(
            tasks, repetitions=settings.repetitions, clock=time.perf_counter
        )
    finally:
        pin_tree(cores)
    context: dict[str, Any] = {"rows": settings.events, "matches": one[0]}
    for how in ("", UNMEASURED):
        alone, both = timings[f"one{how}"], timings[f"two{how}"]
        for way, timing in (("one range on one core", alone), ("two ranges", both)):
            told = f"keyless, {name}, {way}{how}"
            yield rate(told, "rows/s", settings.events, timing, **context)
        yield quotient(
            f"keyless, {name}, two ranges' speed beside one{how}",
            alone.seconds,
            both.seconds,
            1.6,
            higher_is_better=True,
            **context,
        )

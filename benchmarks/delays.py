"""How long a match takes to come: `match_stream` beside Spark's own windowed count, and beside an
operator in Python that does nothing.

    python benchmarks/delays.py [--rates 1000,10000,100000] [--triggers 0,1] [--seconds 8]

All read the `rate` source, have a watermark without a delay, the same trigger, state store and
sink, and run one after another in one session. The *delay* of a row is the time from the moment at
which the source has the event that moves the watermark as far as the row asks, to the moment at
which a function of `foreachBatch` has the row. For a match that event is its own last one, for the
count of a window the first one that is not before its end. The `rate` source hands out whole
seconds, so an event is there when its second is over. Micro-batches of the first seconds are not
counted (`WARM_UP`), nor is anything of a stream that runs before all others, while the JVM compiles
what Spark plans with.

The operator that does *nothing* is the floor: it has the plan of `match_stream` (two functions over
Arrow batches, a shuffle between them, and `transformWithState` in Python with as many buckets), and
nothing in it. A bucket stores eight bytes and a timer, and returns one row when the watermark has
passed its first event. What it takes longer than Spark's count, no matcher in Python can save.

A line shows p50 and p99 of all three in seconds and their ratio to the count, the median of a
micro-batch, and where it goes: the parts that Spark reports (planning, the operator and its sink,
logs), and of celc the time in the kernel and in the state.

With all rates and triggers, and the seconds as they are, this ends within six minutes on two idle
cores. A loaded machine makes all figures longer, and the ratio less certain.
"""

from __future__ import annotations

import argparse
import datetime as dt
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from no_matcher import without_a_matcher
from spark_jobs import session
from streaming import SETTINGS

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = """CREATE STREAM Rate {
  EVENT A { id: LONG, value: LONG, timestamp: TIMESTAMP },
  EVENT B { id: LONG, value: LONG, timestamp: TIMESTAMP }
}
QUERY pairs:
SELECT a, b FROM Rate WHERE A AS a ; B AS b PARTITION BY id WITHIN 1 SECONDS [timestamp]
"""

PAIRS = 50
"""Events of each type that the query names, in a second. The others are of another type."""

WARM_UP = 4.0
"""Seconds of a stream that are not counted."""

FIRST = 12.0
"""Seconds of the stream that runs first."""

GOAL = 1.3
"""The most that p50 and p99 may be of those of Spark's count."""

_STEP = dt.timedelta(seconds=1)  # of the rate source
_PARTS = {
    "planning": ("queryPlanning",),
    "rows": ("addBatch",),
    "logs": ("walCommit", "commitOffsets", "commitBatch"),
}


class Delays(NamedTuple):
    """The delays of the rows of a stream, in seconds, and what Spark says of its micro-batches."""

    rows: list[float]
    progress: list[Any]

    def quantile(self, part: float) -> float:
        """The delay that a part of the rows stay below, in seconds; NaN if there are no rows."""
        rows = sorted(self.rows)
        return rows[min(len(rows) - 1, int(part * len(rows)))] if rows else float("nan")

    def median(self, *names: str) -> float:
        """Milliseconds of a micro-batch."""
        found = [sum(one["durationMs"].get(n, 0) for n in names) for one in self.progress]
        return statistics.median(found) if found else float("nan")

    def metric(self, name: str) -> float:
        """The median of a count of celc's operator over micro-batches in which it had work."""
        metrics = (one["observedMetrics"].get("celc_pairs") for one in self.progress)
        found = [getattr(one, name) for one in metrics if one is not None]
        return statistics.median(filter(None, found)) / 1000 if any(found) else 0.0


def events(spark: SparkSession, rate: int) -> DataFrame:
    """The rows of the source as events: pairs of A and B next to each other, and others."""
    every = rate // PAIRS
    source = spark.readStream.format("rate").option("rowsPerSecond", rate)
    return (
        source.option("numPartitions", 2)
        .load()
        .selectExpr(
            f"CASE value % {every} WHEN 0 THEN 'A' WHEN 1 THEN 'B' ELSE 'X' END AS type",
            f"value div {every} % 20 AS id",
            "value",
            "timestamp",
        )
    )


def matches(rows: DataFrame) -> DataFrame:
    """The times up to which matches of celc ask the watermark to move."""
    query = celc.compile(QUERY).pairs
    found = query.match_stream(rows, watermark="0 seconds", tiebreak="value")
    return found.selectExpr("end_time AS asks")


def counts(rows: DataFrame) -> DataFrame:
    """The same of Spark's count of events by window and key."""
    from pyspark.sql import functions

    window = functions.window("timestamp", "100 milliseconds")
    counted = rows.withWatermark("timestamp", "0 seconds").groupBy(window, "id").count()
    return counted.selectExpr("window.end AS asks")


def nothing(rows: DataFrame) -> DataFrame:
    """The plan of `matches` without a matcher."""
    wanted = rows.select("type", "id", "timestamp")
    return without_a_matcher(wanted, "type IN ('A', 'B')", "0 seconds")


def delays(stream: DataFrame, trigger: str, seconds: float) -> Delays:
    """The delays of the rows of a stream that is measured for so long."""
    found: list[tuple[float, Sequence[dt.datetime]]] = []

    def take(batch: DataFrame, _: int) -> None:
        asked = [row.asks.astimezone(dt.UTC) for row in batch.collect()]
        found.append((time.time(), asked))

    with tempfile.TemporaryDirectory() as folder:
        writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", folder)
        query = writer.trigger(processingTime=trigger).start()
        try:
            while not query.recentProgress and query.isActive:
                time.sleep(0.02)
            begin = time.time() + WARM_UP
            query.awaitTermination(int(WARM_UP + seconds))
            progress = [one for one in query.recentProgress if _when(one) > begin]
        finally:
            query.stop()
        zero = _zero(Path(folder))
    rows = [
        when - (zero + _STEP * (1 + (asks - zero) // _STEP)).timestamp()
        for when, asked in found
        if when > begin
        for asks in asked
    ]
    return Delays(rows, progress)


def _when(progress: Any) -> float:
    return dt.datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()


def _zero(checkpoint: Path) -> dt.datetime:
    """When the source began to count its seconds, which Spark notes in milliseconds."""
    noted = (checkpoint / "sources" / "0" / "0").read_text(encoding="utf-8").splitlines()[-1]
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=int(noted))


def lines(rates: Iterable[int], triggers: Iterable[int], seconds: float) -> Iterator[str]:
    """A line for each rate and trigger."""
    with _session() as spark:
        delays(matches(events(spark, 10_000)), "0 seconds", FIRST)
        for rate in rates:
            for trigger in triggers:
                found = [
                    delays(made(events(spark, rate)), f"{trigger} seconds", seconds)
                    for made in (matches, counts, nothing)
                ]
                yield line(rate, trigger, *found)


def line(rate: int, trigger: int, ours: Delays, theirs: Delays, idle: Delays) -> str:
    """What was measured, in words."""
    parts = []
    for part in (0.5, 0.99):
        one, other, floor = (some.quantile(part) for some in (ours, theirs, idle))
        parts.append(
            f"p{100 * part:.0f} {one:.2f} beside {other:.2f} s, {one / other:.2f} x "
            f"(nothing: {floor:.2f} s, {floor / other:.2f} x)"
        )
    told = [f"{rate:>7,} events/s, processingTime={trigger} s: {'; '.join(parts)}"]
    for name, of in (("match_stream", ours), ("count", theirs), ("nothing", idle)):
        where = ", ".join(f"{part} {of.median(*names):.0f}" for part, names in _PARTS.items())
        more = ""
        if of is ours:
            more = f"; kernel {of.metric('kernel_us'):.1f}, state {of.metric('state_us'):.1f}"
        told.append(
            f"    {name}: {len(of.rows):,} rows, {len(of.progress)} micro-batches of "
            f"{of.median('triggerExecution'):.0f} ms ({where}{more})"
        )
    return "\n".join(told)


@contextmanager
def _session() -> Iterator[SparkSession]:
    with session() as spark:
        for name, value in SETTINGS.items():
            spark.conf.set(name, value)
        yield spark


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="how long a match takes to come")
    parser.add_argument("--rates", default="1000,10000,100000", help="events a second")
    parser.add_argument("--triggers", default="0,1", help="processingTime, in seconds")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each stream")
    asked = parser.parse_args()
    rates, triggers = ([int(n) for n in some.split(",")] for some in (asked.rates, asked.triggers))
    for one in lines(rates, triggers, asked.seconds):
        print(one, flush=True)
    print(f"goal: p50 and p99 at most {GOAL} x those of Spark's count", file=sys.stderr)


if __name__ == "__main__":
    main()

"""What rules that come and go cost on a stream, beside the same rules as a table that is fixed.

    python benchmarks/changing_rules.py [--events N] [--record]

Files of 100,000 quotes of 10,000 symbols come one at a time, each a minute; there are 100,000
rules. `fixed` is `match_stream(quotes, rule=table)`; `still` has the rules as a stream that is
silent after its first file; in `changing` 100 of them get a new version in each micro-batch. With
`PARTITION BY symbol` a rule goes to one bucket, with `PARTITION BY venue` to all.

All files are written before a stream begins, and each micro-batch takes one file of each folder.
The first micro-batches are not counted: they read the table, and the JVM still compiles Spark's
planner. The streams run in turns, and the least time of each counts. Figures are CPU seconds of all
processes for a micro-batch. `workers alone` is the part of celc in them, without Spark: packing,
and the steps of eight buckets, in one process.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from celc_runtime.program import Rows
from celc_runtime.rules.rows import rows_of
from celc_runtime.stream.changing_rules import ChangingTask, packed_events, packed_rules
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.packing import packed
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from celc_runtime.stream.tasks import BucketTask
from common import calibrate
from many import names_of
from processes import tree_seconds
from rates import run_alone
from spark_jobs import session
from streaming import SETTINGS

import celc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 100_000  # quotes of a file
RULES = 100_000
CHANGES = 100  # rules that get a new version in a micro-batch of `changing`
SYMBOLS = 10_000
WARM_UP = 12  # micro-batches that are not counted
TURNS = 2  # runs of each stream
MINUTE = 60_000_000  # microseconds
BEGIN = 1_780_000_000_000_000  # the time of the first quote, in microseconds since 1970

TEXT = """CREATE STREAM Quotes {
  EVENT Q { ts: TIMESTAMP, symbol: STRING, venue: STRING, price: DOUBLE }
}
PARAMETERS rule {
  id: LONG, symbol: STRING, low: DOUBLE, high: DOUBLE, since: TIMESTAMP, until: TIMESTAMP
} VALID [since, until]
SELECT a, b, rule[id] FROM Quotes FOR EACH rule WHERE (Q AS a ; Q AS b)
FILTER a.symbol = rule.symbol AND b.symbol = rule.symbol
AND a.price < rule.low AND b.price > rule.high
PARTITION BY {key} WITHIN 5 MINUTES [ts]
"""


def _quotes(random: np.random.Generator, number: int) -> pa.Table:
    """The quotes of a minute."""
    times = BEGIN + number * MINUTE + np.arange(ROWS) * (MINUTE // ROWS)
    symbols = random.integers(0, SYMBOLS, ROWS)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "symbol": pa.array(names_of(SYMBOLS)[symbols]),
            "venue": pa.array(names_of(50)[random.integers(0, 50, ROWS)]),
            "price": 100 * np.exp(random.normal(0, 0.02, ROWS)),
        }
    )


def _rules(random: np.random.Generator, ids: np.ndarray, since: int | None) -> pa.Table:
    """The rules with these ids; few of them have matches. since: the time from which they count, in
    microseconds; None: always."""
    symbols = names_of(SYMBOLS)[ids * 7919 % SYMBOLS]
    count, type = len(ids), pa.timestamp("us", "UTC")
    return pa.table(
        {
            "id": ids,
            "symbol": pa.array(symbols),
            "low": 96 + random.uniform(-0.1, 0.1, count),
            "high": 104 + random.uniform(-0.1, 0.1, count),
            "since": pa.array([since] * count, type),
            "until": pa.nulls(count, type),
        }
    )


def _written(folder: Path, number: int, table: pa.Table) -> None:
    """Write a file of a stream. Spark reads the files in the order of their times, so `number` is
    its time."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:04}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def _prepared(folder: Path, count: int) -> None:
    """Write the folders `quotes`, `changing` and `still`, for this number of micro-batches."""
    random = np.random.default_rng(7)
    every = np.arange(RULES)
    for number in range(count):
        _written(folder / "quotes", number, _quotes(random, number))
        first = number == 0
        changed = every if first else random.choice(RULES, CHANGES, replace=False)
        # New versions come before the watermark passes the time from which they count.
        since = None if first else BEGIN + (number + 1) * MINUTE
        rules = _rules(random, changed, since)
        _written(folder / "changing", number, rules)
        if first:
            _written(folder / "still", number, rules)


def _query_by(key: str) -> Any:
    text = TEXT.replace("{key}", key)
    return next(iter(celc.compile(text, order_by="ts").queries.values()))


def _cost(query: Any, spark: SparkSession, way: str, folder: Path, state: Path) -> dict[str, float]:
    """CPU seconds of a micro-batch after the warm-up, and the counts of the stream.

    way: `fixed`, `still` or `changing`. state: the folder of the checkpoint.
    """

    def stream(name: str) -> Any:
        there = str(folder / name)
        reader = spark.readStream.schema(spark.read.parquet(there).schema)
        return reader.option("maxFilesPerTrigger", 1).parquet(there)

    table = pq.read_table(folder / "still") if way == "fixed" else stream(way)
    frame = query.match_stream(stream("quotes"), rule=table)
    marks: list[float] = []

    def take(batch: Any, number: int) -> None:
        batch.write.format("noop").mode("append").save()
        marks.append(tree_seconds())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(state))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    counts = [one.asDict() for p in running.recentProgress for one in p.observedMetrics.values()]
    files = len(os.listdir(folder / "quotes"))
    spent = marks[files - 1] - marks[WARM_UP - 1]
    return {
        "seconds": spent / (files - WARM_UP),
        "matches": sum(one["matches"] for one in counts),
        "bytes": max(one["bytes"] for one in counts),
    }


class _Workers:
    """The state of the buckets of a stream, and what workers do in a micro-batch."""

    def __init__(self, query: Any, way: str, folder: Path) -> None:
        self._program, self._folder = query.with_options(positions=False).program, folder
        self._rules: Any = None
        self._changing = way
        if way == "fixed":
            parameters = self._program.plan.source.parameters
            table = pq.read_table(folder / "still")
            self._rules = in_one_order(rows_of(query.name, parameters, table))
        fixed = 0 if self._rules is None else hash_of_rows(self._rules)
        self._options = StreamOptions({}, buckets=8, has_types=False, rules=fixed)
        make = ChangingTask if self._rules is None else BucketTask
        self._task = make(self._program, self._options)
        self._headers: dict[int, bytes] = {}
        self._pieces: dict[int, dict[int, bytes]] = {}
        self.bytes = self.matches = 0

    def advance(self, number: int) -> float:
        """The CPU seconds of a micro-batch."""
        events = pq.read_table(self._folder / "quotes" / f"{number:04}.parquet")
        there = self._folder / self._changing / f"{number:04}.parquet"
        rules = pq.read_table(there).to_batches() if self._rules is None and there.exists() else []
        batches, blocks = events.combine_chunks().to_batches(), dict[int, list[bytes]]()
        watermark = 0 if number == 0 else (BEGIN + number * MINUTE) // 1000 - 10_000
        begun = time.process_time()
        if self._rules is not None:
            # As a task gets them, for each micro-batch.
            given = Rows.of_batch(self._rules.batch)
            sent = packed(self._program, self._options, batches, given)
        else:
            events_sent = packed_events(self._program, self._options, batches)
            sent = chain(events_sent, packed_rules(self._program, self._options, rules))
        for batch in sent:
            for row in batch.to_pylist():
                blocks.setdefault(row["bucket"], []).append(row["events"])
        for label in sorted({*blocks, *self._headers}):
            self._step(label, blocks.get(label, []), watermark)
        return time.process_time() - begun

    def _step(self, label: int, blocks: list[bytes], watermark: int) -> None:
        pieces = self._pieces.setdefault(label, {})
        header = self._headers.get(label)
        step, rows = self._task.step(label, header, pieces.get, blocks, watermark)
        self._headers[label] = step.header
        for place in step.removed:
            del pieces[place]
        for place, data in step.written.items():
            pieces[place] = self._task.bytes_of(self._task.text_of(data))
            self.bytes += len(data)
        self.matches += sum(row["matches"] for row in rows)


def _alone(query: Any, folder: Path, count: int) -> dict[str, float]:
    """CPU seconds of workers alone for a micro-batch, in turns."""
    ways = {way: _Workers(query, way, folder) for way in ("fixed", "still", "changing")}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(count):
        for way, one in ways.items():
            spent[way].append(one.advance(number))
    for way, one in ways.items():
        print(way, one.matches, "matches", one.bytes, "bytes written", flush=True)
    return {way: float(np.median(seconds[WARM_UP // 2 :])) for way, seconds in spent.items()}


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    count = WARM_UP + max(4, events // ROWS)
    calibrated = calibrate(1_000_000)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="celc-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _prepared(folder, count)
        for by in ("symbol", "venue"):
            alone = _alone(_query_by(by), folder, count)
            figures |= {f"{by}, {way}, workers alone": one for way, one in alone.items()}
            for way in ("fixed", "still"):
                ratio = alone["changing"] / alone[way]
                figures[f"{by}, changing beside {way}, workers alone"] = round(ratio, 3)
            print({name: round(one, 3) for name, one in figures.items()}, flush=True)
        with session() as spark:
            for key, value in SETTINGS.items():
                spark.conf.set(key, value)
            for by in ("symbol", "venue"):
                query = _query_by(by)
                least: dict[str, dict[str, float]] = {}
                for turn in range(TURNS):
                    for way in ("fixed", "still", "changing"):
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            state = folder / f"{by}-{way}-{turn}"
                            found = _cost(query, spark, way, folder, state)
                        shown = {k: round(v, 3) for k, v in found.items()}
                        print(f"PARTITION BY {by}, {way}: {shown}", flush=True)
                        before = least.get(way, found)
                        least[way] = min(before, found, key=lambda one: one["seconds"])
                figures |= {f"{by}, {way}": one for way, one in least.items()}
                for way in ("fixed", "still"):
                    ratio = least["changing"]["seconds"] / least[way]["seconds"]
                    figures[f"{by}, changing beside {way} (goal 1.2)"] = round(ratio, 3)
                    print(f"PARTITION BY {by}, changing beside {way}: {ratio:.3f}", flush=True)
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("changing_rules", __doc__, 1_000_000, measure)

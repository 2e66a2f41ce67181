"""Fifty rules over a log as one stream, and a chain of three queries.

    python benchmarks/rules_on_streams.py [--events N] [--record]

Files of 200,000 events come one at a time; the rules and their log are those of `log_rules.py`, at
the density of ten million events a day. `fifty` is `match_all_stream` of all rules. `ten` runs ten
of them, each as a stream of its own, and stands for fifty by its CPU seconds times five. `one` is
one of these. `chain` is a query that reads a query that reads a query, `first` the lowest of them.
`floor` is what Spark takes for `fifty` at least: the same rows are read, tested and passed to
Python, there are as many buckets and rows of the answer, all of them NULL, but nothing is packed,
run or stored.

Each stream is run by itself, on the same files; the first two are not counted. For its first thirty
to forty micro-batches a JVM compiles Spark's own planner, which takes more than the stream. So
`fifty` is run over all files before anything is counted, and is counted twice, before and after the
others, of which the mean is taken. Figures are CPU seconds of all processes for a million events.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from celc_runtime.chain.streams.match import Call, operators_of, rows_of
from celc_runtime.chain.streams.operators import Wanted, group_for
from celc_runtime.stream.buckets import labels_of_group
from celc_runtime.stream.match import in_buckets
from celc_runtime.stream.processor import STATE
from celc_runtime.stream.tasks import COUNTS
from common import calibrate
from log_rules import compiled, log
from processes import tree_seconds
from rates import run_alone
from spark_jobs import session
from streaming import SETTINGS

import celc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 200_000
A_DAY = 10_000_000
WARM_UP = 2

CHAIN = """CREATE STREAM Logs {
  EVENT Login { user: STRING, host: STRING, ip: STRING, ok: BOOLEAN, ts: TIMESTAMP },
  EVENT Process { user: STRING, host: STRING, name: STRING, elevated: BOOLEAN, ts: TIMESTAMP },
  EVENT Connection { user: STRING, host: STRING, ip: STRING, port: INT, bytes: LONG, ts: TIMESTAMP }
}
QUERY raised:
SELECT l.host AS host, p.name AS name FROM Logs WHERE (Login AS l ; Process AS p)
FILTER l.ok = TRUE AND p.elevated = TRUE PARTITION BY user WITHIN 5 MINUTES
QUERY sent:
SELECT r.host AS host, c.bytes AS bytes FROM raised, Logs WHERE (raised AS r ; Connection AS c)
FILTER c.bytes > 500000 PARTITION BY user WITHIN 10 MINUTES
QUERY twice:
SELECT a, b FROM sent WHERE (sent AS a ; sent AS b) FILTER b.bytes > a.bytes
PARTITION BY user WITHIN 20 MINUTES
"""


def _written(folder: Path, count: int) -> pa.Schema:
    """The files of a log, each a part of a day, in a folder that no stream watches."""
    table = log(ROWS * count)
    times = table.column("ts").cast(pa.int64()).to_numpy() * (ROWS * count / A_DAY)
    column = pa.array(times.astype(np.int64), pa.timestamp("us", "UTC"))
    table = table.set_column(table.column_names.index("ts"), "ts", column)
    folder.mkdir()
    for number in range(count):
        pq.write_table(table.slice(number * ROWS, ROWS), folder / f"{number:03}.parquet")
    return table.schema


class _Nothing:
    """A task of `celc_runtime.stream.processor` that stores nothing and finds nothing."""

    def step(self, label: int, header: Any, load: Any, blocks: Any, watermark: int) -> Any:
        step = SimpleNamespace(
            header=None, is_changed=False, written={}, removed=[], set_timers=[], unset_timers=[]
        )
        return step, [dict.fromkeys(COUNTS, 0) | {"query": 0, "found": None, "refused": None}]

    def close(self) -> None:
        return


def _labels_alone(labels: list[int], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows are read, and each bucket gets an empty value."""
    for _ in batches:
        pass
    columns = [pa.array(labels, pa.int32()), pa.array([b""] * len(labels), pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, ["bucket", "events"])


def _nulls(schema: pa.Schema, count: int, batches: Iterable[pa.RecordBatch]) -> Any:
    """Rows of the answer for each bucket, without values."""
    buckets = sum(map(len, batches))
    columns = [pa.nulls(buckets * count, field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _floor(module: Any, matches: int, events: DataFrame) -> DataFrame:
    """The stream of all rules without what celc does in its workers; matches: rows of the answer
    for each file."""
    programs = {name: query.program.on_spark for name, query in module.QUERIES.items()}
    (served,) = operators_of(programs)
    groups = [
        group_for(programs, Wanted(names, number=number)) for number, names in enumerate(served)
    ]
    call = Call("10 seconds", "drop", None, False, None, None, None)
    rows, options = rows_of(groups, events, call, STATE, 1)
    labels = [
        label
        for group, own in zip(groups, options, strict=True)
        for label in labels_of_group(group.number, own.buckets).tolist()
    ]
    return in_buckets(
        rows,
        partial(_labels_alone, labels),
        _Nothing,
        partial(_nulls, groups[0].schema, matches // len(labels)),
        groups[0].ddl,
        api="row",
        metrics="floor",
    )


def _costs(
    make: Any, spark: SparkSession, files: list[Path], folder: Path
) -> Iterator[tuple[float, int]]:
    """CPU seconds and matches of each file of a stream."""
    source = folder / "source"
    source.mkdir(parents=True)
    schema = spark.read.parquet(str(files[0])).schema
    frame: DataFrame = make(spark.readStream.schema(schema).parquet(str(source)))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "state"))
    running = writer.start()
    try:
        for file in files:
            before, done = tree_seconds(), len(running.recentProgress)
            (source / file.name).hardlink_to(file)
            running.processAllAvailable()
            counts = (
                row.matches
                for progress in running.recentProgress[done:]
                for row in progress.observedMetrics.values()
            )
            yield tree_seconds() - before, sum(counts)
    finally:
        running.stop()


def measure(events: int) -> dict[str, Any]:
    """All figures of a run."""
    count = max(1, events // ROWS) + WARM_UP
    calibrated = calibrate(1_000_000)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="celc-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        module = compiled(folder)
        chain = celc.compile(CHAIN, order_by="ts", tiebreak="number")
        _written(folder / "files", count)
        files = sorted((folder / "files").iterdir())
        rules = {name: module.QUERIES[name] for name in [*module.QUERIES][::5]}
        ways: dict[str, Any] = {
            "before all": module.match_all_stream,
            "fifty, first": module.match_all_stream,
            "first": chain.raised.match_stream,
            "chain": chain.twice.match_stream,
        }
        ways |= {f"alone, {name}": query.match_stream for name, query in rules.items()}
        ways["fifty, again"] = module.match_all_stream
        with session() as spark:
            for key, value in SETTINGS.items():
                spark.conf.set(key, value)

            def measured(number: int, way: str, make: Any) -> int:
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    costs = [*_costs(make, spark, files, folder / str(number))][WARM_UP:]
                spent = sum(cost for cost, _ in costs)
                figures[way] = round(spent / (len(costs) * ROWS) * 1e6, 2)
                clock = time.perf_counter() - began
                print(f"{way}: {figures[way]} s of CPU a million events, {clock:.0f} s", flush=True)
                return sum(matches for _, matches in costs) // len(costs)

            for number, (way, make) in enumerate(ways.items()):
                matches = measured(number, way, make)
            measured(len(ways), "floor", partial(_floor, module, matches))
    figures["fifty"] = round((figures["fifty, first"] + figures["fifty, again"]) / 2, 2)
    alone = [figures[f"alone, {name}"] for name in rules]
    figures["ten, times five"] = round(5 * sum(alone), 2)
    figures["fifty beside ten alone (goal 8)"] = round(5 * sum(alone) / figures["fifty"], 2)
    one = sorted(alone)[len(alone) // 2]
    figures["speed of the floor beside one"] = round(one / figures["floor"], 3)
    figures["speed of fifty beside one (goal 0.3)"] = round(one / figures["fifty"], 3)
    figures["speed of the chain beside its first (goal 0.5)"] = round(
        figures["first"] / figures["chain"], 3
    )
    for name in [*figures][-4:]:
        print(f"{name}: {figures[name]}")
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("rules-on-streams", __doc__, 1_000_000, measure)

"""Fifty rules over a log as one stream, and a chain of three queries.

    python benchmarks/rules_on_streams.py [--events N] [--record]

Files of 200,000 events come one at a time; the rules and their log are those of `log_rules.py`, at
the density of ten million events a day. `fifty` is `match_all_stream` of all rules. `ten` runs ten
of them, each as a stream of its own, and stands for fifty by its CPU seconds times five. `one` is
one of these. `chain` is a query that reads a query that reads a query, `first` the lowest of them.
Each stream is run by itself, on the same files; the first two are not counted. Figures are CPU
seconds of all processes for a million events.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


def _costs(make: Any, spark: SparkSession, files: list[Path], folder: Path) -> Iterator[float]:
    """CPU seconds of each file of a stream."""
    source = folder / "source"
    source.mkdir(parents=True)
    schema = spark.read.parquet(str(files[0])).schema
    frame: DataFrame = make(spark.readStream.schema(schema).parquet(str(source)))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "state"))
    running = writer.start()
    try:
        for file in files:
            before = tree_seconds()
            (source / file.name).hardlink_to(file)
            running.processAllAvailable()
            yield tree_seconds() - before
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
            "fifty": module.match_all_stream,
            "first": chain.raised.match_stream,
        }
        ways["chain"] = chain.twice.match_stream
        ways |= {f"alone, {name}": query.match_stream for name, query in rules.items()}
        with session() as spark:
            for key, value in SETTINGS.items():
                spark.conf.set(key, value)
            for number, (way, make) in enumerate(ways.items()):
                began = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    costs = [*_costs(make, spark, files, folder / str(number))][WARM_UP:]
                figures[way] = round(sum(costs) / (len(costs) * ROWS) * 1e6, 2)
                clock = time.perf_counter() - began
                print(f"{way}: {figures[way]} s of CPU a million events, {clock:.0f} s", flush=True)
    alone = [figures[f"alone, {name}"] for name in rules]
    figures["ten, times five"] = round(5 * sum(alone), 2)
    figures["fifty beside ten alone (goal 8)"] = round(5 * sum(alone) / figures["fifty"], 2)
    one = sorted(alone)[len(alone) // 2]
    figures["speed of fifty beside one (goal 0.3)"] = round(one / figures["fifty"], 3)
    figures["speed of the chain beside its first (goal 0.5)"] = round(
        figures["first"] / figures["chain"], 3
    )
    for name in [*figures][-3:]:
        print(f"{name}: {figures[name]}")
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("rules-on-streams", __doc__, 1_000_000, measure)

"""Two executors of a cluster, with a cache of machine code each, and one of them killed.

Spark's local-cluster has executors of their own processes and folders on one machine. The cache is
named by a relative path, so each executor has its own, as each machine of a cluster has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import only_query
from places import ROOT
from spark_routes import worker_python

import celc

sys.path.append(str(ROOT / "benchmarks"))

from clusters import spark_home

pytestmark = pytest.mark.long

_QUERY = """CREATE STREAM S {
  EVENT A { id: LONG, v: DOUBLE, ts: TIMESTAMP }, EVENT B { id: LONG, v: DOUBLE, ts: TIMESTAMP }
}
SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v > 0.5 PARTITION BY id WITHIN 1 MINUTE [ts]
"""
_ROWS, _KEYS = 20_000, 64

_JOB = '''
import json, os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
folder, home = Path(sys.argv[1]), Path(os.environ["SPARK_HOME"])
sys.path.insert(0, str(folder / "driver"))
import cluster_udf
query = cluster_udf.QUERIES["cluster_udf"]

builder = SparkSession.builder.master("local-cluster[2,1,1024]")
settings = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.locality.wait": "0",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",
    "spark.executorEnv.CELC_CACHE_DIR": "celc-cache",
    "spark.executorEnv.CELC_INTERPRETED_ROWS": "0",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
events = spark.read.parquet(str(folder / "events"))

def executors():
    """The processes of executors below this one."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                text = (path / "stat").read_text()
                command = (path / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(path.name)] = int(text[text.rindex(")") + 2 :].split()[1]), command
    def is_below(pid):
        while pid in parents and pid != os.getpid():
            pid = parents[pid][0]
        return pid == os.getpid()
    # The text of this very script names the class as well.
    name = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
    found = [pid for pid, (_, command) in parents.items() if name in command.split(b"\\0")]
    return [pid for pid in found if is_below(pid)]

def kernels():
    """The machine code of each executor, by its folder."""
    found = {}
    for path in home.glob("work/app-*/*/celc-cache/*.kernel"):
        found.setdefault(path.parent.parent.name, []).append((path.name, path.stat().st_mtime_ns))
    return {name: sorted(of) for name, of in sorted(found.items())}

answers = {}
def count():
    return query.match(events, ranges=1).count()

answers["match"] = [count(), count()]
# A job of few tasks may leave an executor idle.
for _ in range(10):
    if len(kernels()) == 2:
        break
    count()
before = kernels()
answers["again"] = count()
answers["kernels"] = {name: [name for name, _ in of] for name, of in before.items()}
answers["made again"] = kernels() != before
query.register(spark, "found")
events.createOrReplaceTempView("events")
answers["sql"] = spark.sql(
    "SELECT * FROM found(TABLE(events) PARTITION BY (id) ORDER BY (ts))"
).count()

def streamed(name):
    read = spark.readStream.schema(events.schema).parquet(str(folder / "events"))
    found = query.match_stream(read)
    written = found.writeStream.format("parquet").trigger(availableNow=True)
    written = written.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    written.start(str(folder / name)).awaitTermination()
    return spark.read.parquet(str(folder / name)).count()

answers["stream"] = streamed("stream")

def killed_during(job):
    """The answer of a job while whose first tasks an executor is killed."""
    found = []
    thread = threading.Thread(target=lambda: found.append(job()))
    thread.start()
    time.sleep(0.5)
    os.kill(executors()[0], signal.SIGKILL)
    thread.join()
    return found[0]

answers["executors"] = len(executors())
answers["killed"] = killed_during(count)
answers["stream, killed"] = killed_during(lambda: streamed("killed"))
print(json.dumps(answers))
spark.stop()
'''


def test_two_executors(tmp_path: Path) -> None:
    rng = np.random.default_rng(31)
    times = np.arange(_ROWS) * 1_000_000
    times[-1] += 10**12  # moves the watermark of a stream past all others
    events = pa.table(
        {
            "type": pa.array(np.array(["A", "B"])[rng.integers(0, 2, _ROWS)]),
            "id": pa.array(rng.integers(0, _KEYS, _ROWS)),
            "v": pa.array(rng.random(_ROWS)),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )
    (tmp_path / "events").mkdir()
    pq.write_table(events, tmp_path / "events" / "events.parquet")
    compiled = celc.compile(_QUERY, name="cluster_udf.cel", order_by="ts")
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "cluster_udf.py").write_text(compiled.source)
    done = subprocess.run(
        [sys.executable, "-c", _JOB, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ
        | {
            "SPARK_HOME": str(spark_home(tmp_path)),
            "PYSPARK_PYTHON": str(worker_python(tmp_path, compiles=True)),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    wanted = only_query(compiled).match_table(events).num_rows
    counts = {name: found[name] for name in ("again", "sql", "killed", "stream", "stream, killed")}
    assert found["match"] == [wanted] * 2
    assert counts == dict.fromkeys(counts, wanted)
    # Both executors have made the same machine code, each of them once.
    assert len(found["kernels"]) == found["executors"] == 2
    assert len({tuple(of) for of in found["kernels"].values()}) == 1
    assert not found["made again"]

"""Every way that a query, or celc itself, gets to where there is nothing of celc.

Spark's workers run a Python that cannot import celc, and each task a new process. A job counts what
its process compiled: nothing, where another process has done so before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from celc_runtime.jit import shipping
from other_processes import write_archive, write_package
from spark_routes import worker_python

import celc
from celc.driver.standalone import standalone

pytestmark = pytest.mark.long

_QUERY = """CREATE STREAM S {
  EVENT A { id: INT, ts: LONG }, EVENT B { id: INT, ts: LONG }
}
SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY id WITHIN 5 [ts]
"""

_JOB = '''
import gc, json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
way, folder = sys.argv[1], Path(sys.argv[2])
builder = SparkSession.builder
if way == "connect":
    builder = builder.remote("local[1]")
else:
    builder = builder.master("local[1]").config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.config("spark.python.worker.reuse", "false").getOrCreate()
for name in ("alone_udf.py", "modules.zip"):
    if way == "connect":
        spark.addArtifacts(str(folder / name), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(folder / name))
events = spark.range(30).selectExpr(
    "element_at(array('A', 'B'), CAST(id % 3 % 2 + 1 AS INT)) AS type",
    "CAST(id % 2 AS INT) AS id", "id AS ts",
).coalesce(1).sortWithinPartitions("id", "ts")

def counted(load):
    """A function for mapInArrow: matches, and what the process had to compile for them."""
    def run(batches):
        import gc
        import pyarrow as pa
        found = sum(map(len, load().match_arrow(batches)))
        from numba.core.dispatcher import Dispatcher
        stats = [o.stats for o in gc.get_objects() if isinstance(o, Dispatcher)]
        counts = [found, sum(sum(s.cache_hits.values()) for s in stats),
                  sum(sum(s.cache_misses.values()) for s in stats)]
        yield pa.RecordBatch.from_pydict({"json": [str(counts)]})
    return run

def alone():
    import alone_udf
    return alone_udf

def archive():
    import zipped_udf
    return zipped_udf

sys.path.insert(0, str(folder / "driver"))
import shipped_udf
query = shipped_udf.QUERIES["shipped_udf"]
answers = {}
for name, load in {"closure": lambda: query, "alone": alone, "archive": archive}.items():
    job = events.mapInArrow(counted(load), "json STRING")
    answers[name] = [json.loads(job.collect()[0].json) for _ in range(2)]
answers["match"] = events.transform(shipped_udf.match).count()
answers["alone on the driver"] = events.transform(alone().match).count()
print(json.dumps(answers))
spark.stop()
'''


@pytest.mark.parametrize("way", ["classic", "connect"])
def test_files_archives_and_closures(way: str, tmp_path: Path) -> None:
    runtime = shipping.runtime_sources()
    text = celc.compile(_QUERY, name="shipped_udf.cel", order_by="ts").source
    write_package(tmp_path / "driver", runtime)
    (tmp_path / "driver" / "shipped_udf.py").write_text(text)
    (tmp_path / "alone_udf.py").write_text(standalone(text, runtime))
    write_archive(tmp_path / "modules.zip", runtime)
    with zipfile.ZipFile(tmp_path / "modules.zip", "a") as archive:
        archive.writestr("zipped_udf.py", text)
    done = subprocess.run(
        [sys.executable, "-c", _JOB, way, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ
        | {
            "PYSPARK_PYTHON": str(worker_python(tmp_path, compiles=True)),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "CELC_CACHE_DIR": str(tmp_path / "cache"),
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    count = answers.pop("match")
    assert answers.pop("alone on the driver") == count > 0
    for name, runs in answers.items():
        assert [matches for matches, _, _ in runs] == [count, count], name
        hits, misses = runs[1][1:]
        assert (hits > 3, misses) == (True, 0), name
    # The archive holds the very texts that the closure brings, so nothing is compiled for it.
    assert [answers[name][0][2] > 0 for name in ("closure", "alone", "archive")] == [1, 1, 0]

"""Every way that a query, or celc itself, gets to where there is nothing of celc.

Spark's workers run a Python that cannot import celc, and each task a new process. A job counts what
its process compiled: nothing, where another process has done so before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import celc_runtime
import pytest
from spark_routes import worker_python

import celc
from celc.standalone import standalone

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent
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
print(json.dumps(answers))
spark.stop()
'''


@pytest.mark.parametrize("way", ["classic", "connect"])
def test_files_archives_and_closures(way: str, tmp_path: Path) -> None:
    matcher = celc.compile(_QUERY, name="shipped_udf.cel", order_by="ts")
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "shipped_udf.py").write_text(matcher.source)
    (tmp_path / "alone_udf.py").write_text(standalone(matcher.source))
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        runtime = Path(celc_runtime.__file__).parent
        for file in runtime.rglob("*.py"):
            archive.write(file, f"celc_runtime/{file.relative_to(runtime).as_posix()}")
        archive.writestr("zipped_udf.py", matcher.source)
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
    assert count > 0
    for name, runs in answers.items():
        assert [matches for matches, _, _ in runs] == [count, count], name
        hits, misses = runs[1][1:]
        assert (hits > 3, misses) == (True, 0), name
    # The archive holds the very texts that the closure brings, so nothing is compiled for it.
    assert [answers[name][0][2] > 0 for name in ("closure", "alone", "archive")] == [1, 1, 0]


def test_a_wheel_is_all_that_is_needed(tmp_path: Path) -> None:
    """The compiler, the grammar, the templates and the runtime; what it compiles runs."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (tmp_path / "q.cel").write_text(_QUERY)
    events = [{"type": "AB"[k % 3 % 2], "id": k % 2, "ts": k} for k in range(30)]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))

    def run(*arguments: str) -> Any:
        packages = sysconfig.get_paths()["purelib"]
        done = subprocess.run(
            [sys.executable, "-S", "-c", "from celc.cli import main; main()", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{packages}"},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("compile", "q.cel", "-o", "q_udf.py", "--order-by", "ts")
    run("compile", "q.cel", "-o", "alone.py", "--standalone")
    matcher = celc.compile(_QUERY, name="q.cel", order_by="ts")
    assert (tmp_path / "q_udf.py").read_text().count("\n") == matcher.source.count("\n")
    assert len((tmp_path / "alone.py").read_text()) > 10 * len(matcher.source)
    lines = run("run", "q.cel", "e.jsonl", "--format", "json").splitlines()
    assert len(lines) == len(matcher.match_table(_table(events)))


def _table(events: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    types = {"type": pa.string(), "id": pa.int32(), "ts": pa.int64()}
    return pa.Table.from_pylist(events, pa.schema(list(types.items())))

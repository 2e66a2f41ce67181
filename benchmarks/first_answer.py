"""How long a user waits for the first answer, in fresh processes, with an empty and a full cache.

    python benchmarks/first_answer.py [--runs N] [--no-spark] [--record]

Each line is a whole process: seconds on the clock until its first output, and CPU seconds until its
end, the least of the runs. The queries are the README's, one of *another class*, with a condition
between events under a `+`, and the first one of MATCH_RECOGNIZE in its page. Where something was
edited, the cache holds the query as it was before. A *worker* is a new Python worker of Spark that
cannot import celc: from the pickled query to its first matches, numba, pyarrow and pandas being
imported. Behind the lines stand the phases of a run with an empty cache, in CPU seconds, and the
functions that become machine code where the events are many, each without those that it calls.
`--record` appends the run to benchmarks/records/.

Bytecode is kept, as it is for an installed package.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common import Figure, Settings, Timing, duration, environment

import celc

ROOT = Path(__file__).resolve().parent.parent
_CELC = (sys.executable, "-m", "celc")


def _file(name: str, page: str = "README.md") -> str:
    """A file that a page shows."""
    text = (ROOT / page).read_text("utf-8")
    found = re.search(rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None, name
    return found[1]


FIRE = _file("fire.cel")
_PATTERN = "(T AS hot ; H AS dry) FILTER hot.value > 40"
_UNDER_PLUS = "(T AS hot ; (H AS dry)+) FILTER dry.value < hot.value AND hot.value > 40"
assert _PATTERN in FIRE

QUERIES = {
    "fire": FIRE,
    "constant": FIRE.replace("> 40", "> 41"),
    "pattern": FIRE.replace("(T AS hot ;", "(T AS hot ; T ;"),
    "other": FIRE.replace(_PATTERN, _UNDER_PLUS),
    "other_pattern": FIRE.replace(_PATTERN, _UNDER_PLUS.replace("(T AS hot ;", "(T AS hot ; T ;")),
}
_ROW_PATTERN = "v_shape"
_ROW_PAGE = "docs/match-recognize.md"

ROWS = {
    "first run": ("run", "fire", None, 3.0),
    "first run of another class": ("run", "other", None, 3.5),
    "first run of MATCH_RECOGNIZE": ("run", _ROW_PATTERN, None, 0.6),
    "a constant edited, run again": ("run", "constant", "fire", 0.6),
    "the pattern edited, run again": ("run", "pattern", "fire", 1.2),
    "the pattern of the other class edited": ("run", "other_pattern", "other", 1.2),
    "the same query again": ("run", "fire", "fire", 0.45),
    "celc check": ("check", "fire", None, 0.25),
    "import fire_udf": ("import", "fire", None, 0.35),
    "celc.compile(text) in a new process": ("compile", "fire", None, None),
    "celc.compile(text), once loaded": ("compile again", "fire", None, 0.15),
}
"""What is done with which query, which one the cache has already, and the goal in CPU seconds."""

_COMPILE = """
import sys, time
import celc
text = open(sys.argv[1], encoding="utf-8").read()
celc.compile(text)
begun = time.process_time()
celc.compile(text.replace("> 40", "> 42"))
print(time.process_time() - begun)
"""

_PHASES = """
import json, sys, time
clock = time.process_time
now, phases = clock(), {"Python": clock()}
def done(phase):
    global now
    phases[phase], now = clock() - now, clock()
import pyarrow.csv
done("pyarrow")
import pandas
done("pandas, which celc run does without")
import celc.driver.matcher, celc.codegen.module, celc.driver.pipeline
from celc.diagnostics.source import Source
from celc.options import Options
done("imports")
text = open(sys.argv[1], encoding="utf-8").read()
compilation = celc.driver.pipeline.compile_files([Source("query.cel", text)], Options(joins=False))
parts = compilation.module_parts("benchmark")
done("text to module")
matcher = celc.driver.matcher.Matcher(parts)
done("module loaded")
events = pyarrow.csv.read_csv(sys.argv[2])
if "--kernels" in sys.argv:
    from numba.core import event
    class Kernels(event.Listener):
        def __init__(self):
            self.begun, self.found = [], {}
        def on_start(self, one):
            self.begun.append([clock(), 0.0])
        def on_end(self, one):
            start, inner = self.begun.pop()
            whole = clock() - start
            if self.begun:
                self.begun[-1][1] += whole
            name = one.data["dispatcher"].py_func.__qualname__
            self.found[name] = self.found.get(name, 0) + whole - inner
    kernels = Kernels()
    event.register("numba:compile", kernels)
done("events")
assert len(matcher.match_table(events))
done("machine code and run")
if "--kernels" in sys.argv:
    phases = kernels.found
print(json.dumps(phases))
"""


def process(command: Sequence[str], cache: Path, **more: str) -> tuple[float, float, str]:
    """Seconds on the clock to the first output of a process, its CPU seconds, and the output.

    more: of its environment."""
    begun = time.perf_counter()
    variables = {
        "CELC_CACHE_DIR": str(cache),
        "PYTHONPYCACHEPREFIX": str(cache.parent / "bytecode"),
    }
    others = ("PYTHONDONTWRITEBYTECODE", "CELC_INTERPRETED_ROWS")
    given = {name: text for name, text in os.environ.items() if name not in others}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=given | variables | more) as one:
        assert one.stdout is not None
        output = one.stdout.read(1)
        first = time.perf_counter() - begun
        output += one.stdout.read()
        _, status, used = os.wait4(one.pid, 0)
        one.returncode = os.waitstatus_to_exitcode(status)
    assert one.returncode == 0, f"{command} ends with {one.returncode}"
    return first, used.ru_utime + used.ru_stime, output.decode()


class Bench:
    """A folder with the queries as files, their modules, and the events."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._caches = 0
        self.events = folder / "farm.csv"
        self.events.write_text(_file("farm.csv"))
        for name, text in QUERIES.items():
            (folder / f"{name}.cel").write_text(text)
        (folder / f"{_ROW_PATTERN}.sql").write_text(_file(f"{_ROW_PATTERN}.sql", _ROW_PAGE))
        self.rows = folder / "quotes.csv"
        self.rows.write_text(_file("quotes.csv", _ROW_PAGE))
        self.module = folder / "fire_udf.py"
        self.module.write_text(celc.compile(FIRE).source)
        for do in ("run", "check", "import", "compile"):  # bytecode of all that is imported
            process(self.command(do, "fire"), folder / "first")
        process(self.command("run", _ROW_PATTERN), folder / "first")
        process((sys.executable, "-c", "import pandas; print()"), folder / "first")

    def command(self, do: str, query: str) -> tuple[str, ...]:
        """The command of a line."""
        if query == _ROW_PATTERN:
            return (*_CELC, "run", str(self.folder / f"{query}.sql"), str(self.rows))
        text = str(self.folder / f"{query}.cel")
        if do == "run":
            return (*_CELC, "run", text, str(self.events))
        if do == "check":
            return (*_CELC, "check", text)
        if do == "import":
            loads = (
                f"import sys; sys.path.insert(0, {str(self.folder)!r}); import fire_udf; print()"
            )
            return (sys.executable, "-c", loads)
        return (sys.executable, "-c", _COMPILE, text)

    def cache(self, known: str | None) -> Path:
        """A new cache, empty or with one query."""
        self._caches += 1
        folder = self.folder / f"cache-{self._caches}"
        if known is not None:
            process(self.command("run", known), folder)
        return folder

    def measured(self, row: str, cache: Path) -> tuple[float, float]:
        """Seconds on the clock and CPU seconds of a line, once."""
        do, query, *_ = ROWS[row]
        first, seconds, output = process(self.command(do, query), cache)
        return (float(output),) * 2 if do == "compile again" else (first, seconds)

    def best(self, row: str, runs: int) -> dict[str, float]:
        """The least of several runs; each has a cache as the first one found it."""
        do, query, known, goal = ROWS[row]
        cache, found = self.cache(known), []
        for turn in range(runs):
            if turn and do == "run" and query != known:
                cache = self.cache(known)
            found.append(self.measured(row, cache))
        clock, cpu = (round(min(seconds), 3) for seconds in zip(*found, strict=True))
        return {"clock": clock, "cpu": cpu} | ({} if goal is None else {"goal": goal})

    def phases(self, query: str, *options: str) -> dict[str, float]:
        """The phases of a run with an empty cache, or its kernels."""
        text = str(self.folder / f"{query}.cel")
        command = (sys.executable, "-c", _PHASES, text, str(self.events), *options)
        more = {"CELC_INTERPRETED_ROWS": "0"} if options else {}
        found: dict[str, float] = json.loads(process(command, self.cache(None), **more)[2])
        return {name: round(seconds, 3) for name, seconds in found.items()}


def figures(settings: Settings) -> Iterator[Figure]:
    """The lines that make no machine code, as a part of the suite."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        for row, (do, query, known, goal) in ROWS.items():
            if goal is None or (do == "run" and query != known):
                continue
            cache, seconds, calibrated = bench.cache(known), [], []
            before = settings.calibrated()
            for _ in range(settings.repetitions):
                seconds.append(bench.measured(row, cache)[1])
                after = settings.calibrated()
                calibrated.append(2 / (1 / before + 1 / after))
                before = after
            yield duration(row, Timing(tuple(seconds), tuple(calibrated)), goal)


# --- Spark's workers ------------------------------------------------------------------------------


def in_worker(pickled: bytes) -> Any:
    """A function for `mapInArrow` that measures the start of a query where it runs."""

    def measured(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle
        import time

        import numba
        import numpy as np
        import pandas
        import pyarrow as pa

        assert numba.__version__
        assert pandas.__version__
        begun = time.process_time()
        query = pickle.loads(pickled)
        assert sum(map(len, query.match_arrow(batches)))
        seconds = pa.array(np.array([time.process_time() - begun]))
        yield pa.RecordBatch.from_arrays([seconds], ["seconds"])

    return measured


def workers(runs: int, *, connect: bool) -> list[float]:
    """CPU seconds of fresh Spark workers, the first with an empty cache."""
    from pyspark.sql import SparkSession

    if connect:
        builder = SparkSession.builder.remote("local[1]")
    else:
        builder = SparkSession.builder.master("local[1]")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    # A new process for each task.
    spark = builder.config("spark.python.worker.reuse", "false").getOrCreate()
    events = spark.range(60).selectExpr(
        "element_at(array('T', 'H'), CAST(id % 2 + 1 AS INT)) AS type",
        "id DIV 20 AS id",
        "IF(id % 2 = 0, 41D, 20D) AS value",
        "TIMESTAMP_SECONDS(id) AS ts",
    )
    query = celc.compile(FIRE).queries["fire"]
    job = events.coalesce(1).mapInArrow(in_worker(pickle.dumps(query)), "seconds DOUBLE")
    found = [float(job.collect()[0]["seconds"]) for _ in range(runs + 1)]
    spark.stop()
    return found


def _workers_apart(folder: Path, runs: int, *, connect: bool) -> list[float]:
    """The same in a process of its own: one process has one kind of Spark."""
    python = folder / "python-without-celc"
    packages = sysconfig.get_paths()["purelib"]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [sys.executable, __file__, "--runs", str(runs), "--workers", "01"[connect]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ
        | {
            "CELC_CACHE_DIR": str(folder / f"workers-{connect}"),
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- the command ----------------------------------------------------------------------------------


def measure(runs: int, *, spark: bool) -> dict[str, Any]:
    """All that a record holds; the lines are shown as they are found."""
    record: dict[str, Any] = {"rows": {}, "phases": {}, "kernels": {}, "workers": {}}
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        for row in ROWS:
            found = record["rows"][row] = bench.best(row, runs)
            goal = f"   goal {found['goal']:.2f}" if "goal" in found else ""
            print(
                f"{row:40} clock {found['clock']:7.3f}   CPU {found['cpu']:7.3f}{goal}", flush=True
            )
        for query in ("fire", "other"):
            record["phases"][query] = bench.phases(query)
            record["kernels"][query] = bench.phases(query, "--kernels")
            _show(f"{query}: phases", record["phases"][query])
            _show(f"{query}: machine code", record["kernels"][query])
        for title, connect in (("classic", False), ("Connect", True)):
            if spark:
                first, *later = _workers_apart(Path(name), runs, connect=connect)
                seconds = {"empty cache": round(first, 3), "full cache": round(min(later), 3)}
                record["workers"][title] = seconds
                _show(f"worker, {title}", seconds)
    return record


def _show(title: str, seconds: dict[str, float]) -> None:
    print(f"\n{title}: {sum(seconds.values()):.3f} CPU seconds")
    for name, one in sorted(seconds.items(), key=lambda item: -item[1]):
        if one >= 0.02:
            print(f"  {name:40} {one:.3f}")


def main() -> None:
    """Run, show, and record if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--workers", choices=["0", "1"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.workers is not None:
        print(json.dumps(workers(asked.runs, connect=asked.workers == "1")))
        return
    found = measure(asked.runs, spark=not asked.no_spark)
    record = environment("benchmarks/first_answer.py", 7) | found
    if asked.record:
        folder = Path(__file__).parent / "records"
        with (folder / f"first-answer-{record['date']}.jsonl").open("a") as stream:
            stream.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()

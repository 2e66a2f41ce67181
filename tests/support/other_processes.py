"""Queries in processes of their own: with celc installed, without it, or with another version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

from celc_runtime.jit import shipping

DECLARED = """CREATE STREAM S {
  EVENT A { id: INT, value: DOUBLE, ts: LONG }, EVENT B { id: INT, value: DOUBLE, ts: LONG },
  EVENT C { id: INT, value: DOUBLE, ts: LONG }
}
"""
PLANS = {
    "plain": "SELECT * FROM S WHERE A ; B ; C WITHIN 20 EVENTS",
    "selector": "SELECT NXT * FROM S WHERE A+ ; B ; C WITHIN 20 EVENTS",
    "keyed and checked": "SELECT * FROM S WHERE (A AS x ; B AS y ; C AS z) "
    "FILTER x.id = y.id AND y.id = z.id AND x.value < z.value WITHIN 20 [ts]",
}
MORE_PLANS = {
    "greedy": "SELECT LAST * FROM S WHERE A+ ; B WITHIN 20 EVENTS",
    "tables": "SELECT * FROM S WHERE (A ; C) UNLESS B WITHIN 20 EVENTS",
    "interleaved": "SELECT * FROM S WHERE A ; B PARTITION BY id WITHIN 9 [ts] CONSUME BY ANY",
    "tracked": "SELECT MAX * FROM S WHERE (A+ ; B)+ ; C WITHIN 9 EVENTS",
    "nested": "SELECT * FROM S WHERE A ; NXT(B ; C)+",
    "aggregate": "SELECT * FROM S WHERE (B ; (A AS x)+ ; C) FILTER C.value > AVG(x.value) "
    "WITHIN 9 EVENTS",
    "sum": "SELECT * FROM S WHERE ((A AS x)+ ; C) FILTER SUM(x.value) > 5 WITHIN 9 EVENTS",
    "in order": "SELECT LAST * FROM S WHERE ((A AS x)+ ; C) FILTER x.value > PREV(x.value) "
    "WITHIN 9 EVENTS",
    "first with a key": "SELECT * FROM S WHERE NXT((A AS x ; B AS y) FILTER x.id = y.id) ; C "
    "WITHIN 9 EVENTS",
    "witness": "SELECT * FROM S WHERE (B ; (A AS x)+ ; C) FILTER x.value > MIN(PRIOR x.value) "
    "WITHIN 9 EVENTS",
    "absent": "SELECT * FROM S WHERE A AS x ; !(B AS y FILTER y.id = x.id) ; C WITHIN 9 EVENTS",
    "definition": "SELECT * FROM S WHERE A AS x ; NXT((B AS y FILTER y.id = x.id) ; C) "
    "WITHIN 9 EVENTS",
    "values": "SELECT x, COUNT(x) AS n, SUM(x.value) / 2 AS half, COLLECT(x.id) AS ids "
    "FROM S WHERE (A AS x)+ ; B WITHIN 9 EVENTS",
    "aggregate of the file": "AGGREGATE spread(a: DOUBLE): DOUBLE\n"
    "STATE low: DOUBLE = NULL, high: DOUBLE = NULL\n"
    "STEP low = LEAST(low, a), high = GREATEST(high, a) RESULT high - low\n"
    "SELECT x, spread(x.value) AS range, MEDIAN(x.id) AS middle FROM S WHERE ((A AS x)+ ; C) "
    "FILTER spread(x.value) > 2 OR COUNT(DISTINCT x.id) = 1 WITHIN 9 EVENTS",
    "window of real numbers": "SELECT * FROM S WHERE A ; B WITHIN 3 [value]",
}

# Runs queries, and counts what was loaded and what was compiled.
COUNT = """
import gc, json, pickle, sys
from pathlib import Path
import numpy as np, pyarrow as pa
from numba.core.dispatcher import Dispatcher
sys.path[:0] = sys.argv[1:2]
rows = np.arange(60)
events = pa.table({
    "type": pa.array(np.array(list("ABC"))[rows * 7 % 5 % 3]),
    "id": pa.array(rows % 3, pa.int32()), "value": pa.array(rows * 0.25), "ts": pa.array(rows)})
found = {}
for name in sys.argv[2:]:
    if name.endswith(".pickle"):
        query = pickle.loads(Path(name).read_bytes())
    else:
        query, = __import__(name).QUERIES.values()
    found[name] = len(query.match_table(events))
dispatchers = [o for o in gc.get_objects() if isinstance(o, Dispatcher)]
print(json.dumps({
    "matches": found,
    "hits": sum(sum(d.stats.cache_hits.values()) for d in dispatchers),
    "misses": [d.__name__ for d in dispatchers for _ in range(sum(d.stats.cache_misses.values()))],
    "modules": [name for name in sys.modules if name.startswith("celc")]}))
"""


# Events, and ways to look at modules, for scripts.
EVENTS = """
import importlib, importlib.util, json, pickle, runpy, sys
from pathlib import Path
import pyarrow as pa
events = pa.table({"type": list("ABCABC"), "id": pa.array([1] * 6, pa.int32()),
                   "value": [0.5] * 6, "ts": pa.array(range(6))})
def count(query):
    return len(query.match_table(events))
def by_path(path, name="q"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert name not in sys.modules
    return module
def runtimes():
    return sorted(n for n in sys.modules if n.startswith("celc_runtime") and "." not in n)
"""
MATCHES = 4
"""The matches of the plan `plain` in those events."""


def run(
    script: str,
    *arguments: object,
    alone: bool = False,
    other: Path | None = None,
    **env: str | None,
) -> Any:
    """What a script prints as JSON. `alone`: where neither celc nor its runtime is installed;
    `other`: where all that is installed of celc is the runtime in this folder."""
    before, flags = "", []
    if alone or other is not None:
        places = [*([str(other)] if other is not None else []), sysconfig.get_paths()["purelib"]]
        before = f"import sys\nsys.path += {places!r}\n"
        flags, env = ["-S"], {"PYTHONPATH": None, **env}
    done = started(before + script, *arguments, flags=flags, env=env)
    out, error = done.communicate()
    assert done.returncode == 0, error[-4000:]
    return json.loads(out)


def started(
    script: str, *arguments: object, flags: list[str], env: dict[str, str | None]
) -> subprocess.Popen[str]:
    changed = {**os.environ, **env}
    return subprocess.Popen(
        [sys.executable, *flags, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in changed.items() if value is not None},
    )


def write_package(folder: Path, sources: dict[str, str], name: str = "celc_runtime") -> None:
    """Write a package below a folder, from its texts by their paths."""
    for path, text in sources.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def write_archive(path: Path, sources: dict[str, str], name: str = "celc_runtime") -> None:
    """Write such a package into an archive."""
    with zipfile.ZipFile(path, "a") as archive:
        for file, text in sources.items():
            archive.writestr(f"{name}/{file}", text)


def other_sources() -> dict[str, str]:
    """The texts of another version of the runtime, which says so and works."""
    sources = shipping.runtime_sources()
    return {path: f"{text}\nOTHER_VERSION = True\n" for path, text in sources.items()}


def other_version(folder: Path) -> Path:
    """A folder that holds another version of the runtime."""
    write_package(folder, other_sources())
    return folder

"""Fifty rules over the log of one day on Spark, beside a job that reads the rows and returns none.

    python benchmarks/log_rules.py [--events N] [--record]

The rules are in the folder `log_rules`: single events, sequences, absences and totals of hours, by
user and by host. Each event has a random time of the day, one of ten thousand users and one of five
thousand hosts. Three ways are measured:

- `nothing` reads the columns, spreads the rows over the tasks by user, sorts them there and hands
  them to a Python function that returns nothing
- `match_all` runs all rules in one job
- `alone` runs every fifth rule by `match`, one job each; its figure is their sum times five

Figures are CPU seconds of all processes. Those called `clock` are seconds that passed.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from common import calibrate
from processes import seconds_of
from rates import run_alone
from spark_jobs import run, session, write

from celc.interfaces.cli import main

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = Path(__file__).parent / "log_rules"
TYPES = ("Login", "Process", "Connection", "File", "Change")
_PORTS = np.array([443] * 60 + [80] * 25 + [22] * 6 + [445] * 3 + [25, 5432, 3389, 8443, 61000, 23])
_PROGRAMS = np.array(
    ["chrome", "python", "java", "bash", "sudo", "cmd", "excel", "winword", "powershell", "psexec"]
)
_PATHS = np.array(
    [f"/home/{n}/notes" for n in range(40)]
    + [
        "/tmp/setup",
        "/tmp/cache",
        "/secret/plan",
        "/var/log/auth",
        "/etc/shadow",
        "/home/1/.ssh/id_rsa",
    ]
    + ["/home/2/all.zip", "/data/a", "/data/b", "/data/c"]
)
_ACTIONS = np.array(["read"] * 12 + ["create"] * 4 + ["rename"] * 2 + ["delete"])
_CHANGES = np.array(
    ["update"] * 40
    + ["task added", "service added", "user added", "firewall off", "firewall on", "audit off"]
)


def log(rows: int) -> pa.Table:
    """The events of a day, each with a number."""
    rng = np.random.default_rng(50)
    types = rng.choice(len(TYPES), rows, p=(0.15, 0.3, 0.35, 0.18, 0.02))

    def of_type(name: str, values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=types != TYPES.index(name))

    def ips(names: str, networks: np.ndarray, hosts: np.ndarray) -> pa.Array:
        texts = [f"10.{network}.{host}" for network in range(20) for host in range(200)]
        codes = (networks % 20) * 200 + hosts % 200
        masked = np.isin(types, [TYPES.index(name) for name in names.split()])
        coded = pa.array(codes.astype(np.int32), mask=~masked)
        return pa.DictionaryArray.from_arrays(coded, pa.array(texts)).dictionary_decode()

    users = pa.array([f"user{number}" for number in range(9_997)] + ["admin", "backup", "svc-db"])
    hosts = pa.array([f"host{number}" for number in range(5_000)])
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(
                pa.array(types.astype(np.int32)), pa.array(TYPES)
            ).dictionary_decode(),
            "user": users.take(pa.array(rng.integers(0, len(users), rows))),
            "host": hosts.take(pa.array(rng.integers(0, len(hosts), rows))),
            "ip": ips("Login Connection", rng.integers(0, 20, rows), rng.integers(0, 200, rows)),
            "ok": of_type("Login", rng.random(rows) < 0.9),
            "name": of_type("Process", rng.choice(_PROGRAMS, rows)),
            "elevated": of_type("Process", rng.random(rows) < 0.02),
            "port": of_type("Connection", rng.choice(_PORTS, rows).astype(np.int32)),
            "bytes": of_type("Connection", rng.integers(0, 1_000_000, rows)),
            "path": of_type("File", rng.choice(_PATHS, rows)),
            "action": of_type("File", rng.choice(_ACTIONS, rows)),
            "what": of_type("Change", rng.choice(_CHANGES, rows)),
            "ts": pa.array(
                np.sort(rng.integers(0, 86_400_000_000, rows)), pa.timestamp("us", "UTC")
            ),
            "number": pa.array(np.arange(rows)),
        }
    )


def nothing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read all rows, and return none."""
    for batch in batches:
        yield batch.slice(0, 0).select(["number"])


def compiled(folder: Path) -> Any:
    """The module of the rules, made as a user makes it."""
    path = folder / "log_rules_udf.py"
    options = ["--order-by", "ts", "--tiebreak", "number", "-o", str(path)]
    if main(["compile", str(FOLDER), *options]):
        raise RuntimeError("the rules cannot be compiled")
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[path.stem] = module
    found.loader.exec_module(module)
    return module


def _run_all(make: Callable[[], list[DataFrame]]) -> None:
    for one in make():
        run(one)


def measure(rows: int) -> dict[str, Any]:
    """All figures of a run."""
    calibrated = calibrate(1_000_000)
    figures: dict[str, Any] = {"rules": len([*FOLDER.glob("*.cel")])}
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as folder, session() as spark:
        began = time.perf_counter()
        module = compiled(Path(folder))
        figures["compiling, clock"] = round(time.perf_counter() - began, 2)
        frame = spark.read.parquet(str(write(Path(folder) / "log", log(rows))))
        spread = frame.repartition("user").sortWithinPartitions("user", "ts", "number")
        alone = [module.QUERIES[name] for name in [*module.QUERIES][::5]]
        ways: dict[str, Callable[[], list[DataFrame]]] = {
            "nothing": lambda: [spread.mapInArrow(nothing, "number BIGINT")],
            "match_all": lambda: [module.match_all(frame)],
            "alone": lambda: [query.match(frame) for query in alone],
        }
        for name, make in ways.items():
            for attempt in ("first", "second"):
                before = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    taken = seconds_of(partial(_run_all, make))
                clock = time.perf_counter() - before
                print(f"{name}, {attempt}: {taken:.1f} s of CPU, {clock:.1f} s", flush=True)
            times = 5 if name == "alone" else 1
            figures[name] = round(times * taken, 1)
            figures[f"{name}, clock"] = round(times * clock, 1)
        found = module.match_all(frame).groupBy("query").count().collect()
        figures["matches"] = {row["query"]: row["count"] for row in found}
    return {"calibration": calibrated(), "figures": figures}


if __name__ == "__main__":
    run_alone("log-rules", __doc__, 10_000_000, measure)

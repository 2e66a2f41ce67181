"""The benchmark of a cluster: its answers, its kills, and what it says of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from places import ROOT
from pyarrow import parquet

sys.path.append(str(ROOT / "benchmarks"))

import cluster
import cluster_routes
import event_log
from cluster_routes import ROUTES, Answer, Data
from clusters import EXECUTORS, KINDS, Cluster

_NAMES = sorted({name for name, _ in ROUTES.values()})


def _data(folder: Path, rows: int, keys: int) -> Data:
    data = Data(folder / "data", rows, keys)
    cluster_routes.write(data)
    return data


@pytest.mark.long
def test_answers_by_parts_are_those_of_all_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _data(tmp_path, 4_000, 40)
    whole = cluster.answers_of_one_machine(data, _NAMES)
    monkeypatch.setattr(cluster_routes, "MOST_ROWS_AT_ONCE", 1_000)
    assert cluster.answers_of_one_machine(data, _NAMES) == whole
    assert all(answer.rows > 20 for answer in whole.values()), whole


def test_half_of_the_rows_have_one_key(tmp_path: Path) -> None:
    data = _data(tmp_path, 4_000, 40)
    events = parquet.read_table(data.events)
    hot = pc.sum(pc.equal(events["id"], cluster_routes.HOT)).as_py()
    assert (len(events), 1_900 < hot < 2_100) == (4_000, True)
    assert pc.count_distinct(events["id"]).as_py() == 41
    assert pc.count_distinct(events["ts"]).as_py() == 4_000


def test_a_checksum_sees_values_and_no_order() -> None:
    pairs = pa.table({"a": [1, 2, 3], "b": [10, 20, 30]})
    of = cluster_routes.answer_of(pairs, ("a", "b"))
    assert cluster_routes.answer_of(pairs.take([2, 0, 1]), ("a", "b")) == of
    crossed = pa.table({"a": [1, 2, 3], "b": [20, 10, 30]})
    assert cluster_routes.answer_of(crossed, ("a", "b")) != of
    assert cluster_routes.answer_of(pairs.slice(0, 0), ("a", "b")) == Answer(0, 0)


def _log(folder: Path, *events: dict[str, Any]) -> Path:
    (folder / "app").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return folder


def _task(reason: str, metrics: dict[str, Any] | None, **sums: int) -> dict[str, Any]:
    told = [{"Name": name.replace("_", " "), "Update": sums[name]} for name in sums]
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": 0,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Executor ID": "1", "Failed": False, "Accumulables": told},
        "Task Metrics": metrics,
    }


def test_phases_are_what_tasks_tell(tmp_path: Path) -> None:
    metrics = {
        "Executor Run Time": 1500,
        "JVM GC Time": 20,
        "Shuffle Read Metrics": {"Fetch Wait Time": 30},
        "Shuffle Write Metrics": {"Shuffle Write Time": 70_000_000, "Shuffle Bytes Written": 9},
    }
    sums = {"scan_time": 250, "time_to_execute_Python_code": 800}
    started = {"Event": "SparkListenerJobStart", "Job ID": 0, "Stage IDs": [0]}
    ended = {"Event": "SparkListenerJobEnd", "Job ID": 0}
    whole, lost = _task("Success", metrics, **sums), _task("ExecutorLostFailure", None)
    tasks = event_log.settled(_log(tmp_path, started, whole, lost, whole, ended))
    found = cluster.phases(tasks)
    assert (found["tasks"], found["failed"], found["shuffled"]) == (3, 1, 18)
    seconds = [found[name] for name in ("held", "reading", "shuffle", "python", "gc")]
    assert seconds == [3.0, 0.5, 0.2, 1.6, 0.04]


def test_a_log_with_an_open_job_is_not_settled(tmp_path: Path) -> None:
    started = {"Event": "SparkListenerJobStart", "Job ID": 0, "Stage IDs": [0]}
    with pytest.raises(RuntimeError, match="without an end"):
        event_log.settled(_log(tmp_path, started), seconds=0.1)


def test_a_kernel_that_an_executor_makes_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    _log(tmp_path / "log")
    running = Cluster(SimpleNamespace(), tmp_path)
    watched = cluster.Watched("standalone", running)
    for executor in "01":
        cache = tmp_path / f"worker-{executor}/work/app-1/{executor}/celc-cache"
        cache.mkdir(parents=True)
        (cache / "update.kernel").touch()
    job = watched.measured("match", 0, lambda: Answer(3, 4))
    assert (job.rows, job.checksum, job.kernels) == (3, 4, {"0": 1, "1": 1})
    (cache / "walk.kernel").touch()
    assert watched.measured("match", 1, lambda: Answer(3, 4)).kernels == {"0": 1, "1": 2}
    os.utime(cache / "update.kernel", (1, 1))
    with pytest.raises(RuntimeError, match=r"executor 1 has made update\.kernel twice"):
        watched.measured("match", 2, lambda: Answer(3, 4))


def _measured(**changed: Any) -> dict[str, Any]:
    phases = dict.fromkeys(("held", "reading", "shuffle", "python", "gc"), 1.0)
    sizes = {"sent": 0, "returned": 0, "tasks": 1, "failed": 0, "shuffled": 3 << 20}
    one = {"kind": "standalone", "route": "match", "turn": 0, "rows": 1234, "checksum": 1}
    return {**one, "seconds": 9.0, "clock": 4.0, **phases, **sizes, "kernels": {}, **changed}


def test_the_table_has_the_turn_of_the_least_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = {"events": 5000, "keys": 50, "date": "2026-01-01", "machine": "Z80", "cores": 1}
    lines = [
        {**machine, "commit": "1"},
        _measured(),
        _measured(seconds=8.0),
        _measured(seconds=8.5),
        {**machine, "commit": "1", "events": 7000},
        _measured(seconds=7.0),
    ]
    record, page = tmp_path / "record.jsonl", tmp_path / "page.md"
    record.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    page.write_text(f"before\n{cluster.BEGIN}\nold\n{cluster.END}\nafter\n")
    monkeypatch.setattr(cluster, "PAGE", page)
    cluster.write_page([record])
    text = page.read_text()
    assert text.startswith(f"before\n{cluster.BEGIN}\n")
    assert text.endswith(f"{cluster.END}\nafter\n")
    assert "5,000 rows, half of them of one key and the others of 50" in text
    assert (
        "| standalone, match | 1,234 | 8.0 | 4.0 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 3.0 MiB |" in text
    )
    assert "old" not in text
    assert "7,000 rows" in text
    assert [line.split(" | ")[2] for line in text.splitlines() if "match" in line] == ["8.0", "7.0"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_routes_on_a_cluster(kind: str, tmp_path: Path) -> None:
    """Equal answers of every route, with an executor killed and without: `measure` compares."""
    data = Data(tmp_path / "data", 300_000, 3_000)
    found = [*cluster.measure(data, [kind], [*ROUTES], turns=1)]
    titles = [one.route for one in found]
    killed = [f"{route}, an executor killed" for route in cluster.KILLED]
    over_connect = kind == "connect"
    assert titles == ([*cluster.OVER_CONNECT] if over_connect else [*ROUTES, *killed])
    assert all(one.failed > 0 for one in found if one.route in killed)
    # Those that Spark started for killed ones may have made none yet.
    assert sum(count > 0 for count in found[-1].kernels.values()) >= EXECUTORS

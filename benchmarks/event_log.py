"""What Spark writes of its tasks into the log of a session: bytes shuffled, and where time went.

The log is lines of JSON. A job is known by its description, which the benchmark sets before it; the
jobs of a stream by the number of its run, which Spark writes into theirs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
"""The settings of a session whose log is read. `spark.eventLog.dir` is needed, too."""


class Task(NamedTuple):
    """A task that has ended. One that was lost with its executor has no metrics and no sums."""

    job: str  # its description
    stage: int
    failed: bool
    metrics: dict[str, Any]
    sums: dict[str, int]  # what operators of Spark count, by name

    @property
    def shuffled(self) -> int:
        """Bytes that it wrote for other tasks."""
        return int(self.number("Shuffle Write Metrics", "Shuffle Bytes Written"))

    def number(self, *names: str) -> float:
        """A number among its metrics; 0 where there is none."""
        found: Any = self.metrics
        for name in names:
            found = found.get(name, {})
        return float(found or 0)


def tasks(folder: Path) -> Iterator[Task]:
    """All tasks of the sessions whose logs lie in a folder."""
    described: dict[int, str] = {}
    for event in _events(folder):
        kind = event.get("Event")
        if kind == "SparkListenerApplicationStart":
            described = {}
        elif kind == "SparkListenerJobStart":
            text = (event.get("Properties") or {}).get("spark.job.description", "")
            described |= dict.fromkeys(event["Stage IDs"], text)
        elif kind == "SparkListenerTaskEnd":
            yield _task(event, described)


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    """The events of the logs; a line that is not written to its end is left."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if not file.name.startswith("."):
            with file.open(encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines if line.endswith("\n"))


def _task(event: dict[str, Any], described: dict[int, str]) -> Task:
    told = event["Task Info"]
    sums: dict[str, int] = {}
    for one in told.get("Accumulables", ()):
        value = str(one.get("Update", ""))
        if value.isdecimal():
            sums[one["Name"]] = sums.get(one["Name"], 0) + int(value)
    return Task(
        described.get(event["Stage ID"], ""),
        event["Stage ID"],
        bool(told["Failed"]) or event["Task End Reason"]["Reason"] != "Success",
        event.get("Task Metrics") or {},
        sums,
    )


class Sums(NamedTuple):
    """What the tasks of a job cost: bytes shuffled, and the seconds for which they held a core."""

    shuffled: int
    held: float


def sums_of(folder: Path, job: str, seconds: float = 60) -> Sums:
    """What the tasks of a job did together, once Spark has written its end; raises RuntimeError
    where it does not within some seconds."""
    end = time.monotonic() + seconds
    while True:
        found = [task for task in tasks(folder) if task.job == job]
        if found and not _open_jobs(folder):
            shuffled = sum(task.shuffled for task in found)
            return Sums(shuffled, sum(task.number("Executor Run Time") for task in found) / 1e3)
        if time.monotonic() > end:
            raise RuntimeError(f"the log of Spark does not have the end of {job}")
        time.sleep(0.3)


def settled(folder: Path, seconds: float = 60) -> list[Task]:
    """All tasks so far, once no job is open and Spark writes nothing more; raises RuntimeError
    where it does not cease within some seconds."""
    end = time.monotonic() + seconds
    before = -1
    while time.monotonic() < end:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size == before and not _open_jobs(folder):
            return [*tasks(folder)]
        before = size
        time.sleep(1)
    raise RuntimeError("the log of Spark has a job without an end")


def _open_jobs(folder: Path) -> set[int]:
    """The jobs that have begun and not ended."""
    found: set[int] = set()
    for event in _events(folder):
        if event.get("Event") == "SparkListenerJobStart":
            found.add(event["Job ID"])
        elif event.get("Event") == "SparkListenerJobEnd":
            found.discard(event["Job ID"])
    return found

"""The benchmark of the field: tasks of event recognition, asked of each engine in its own language.

    python benchmarks/field/run.py [--rows N] [--only ENGINE,…] [--tasks PART,…] [--data SET,…]
                                   [--turns N] [--most SECONDS] [--record]

Each engine runs in a process of its own (worker.py), which holds the events in the engine's own
form; that load is measured apart. The first run of a task in a process that has not met it is the
first answer. All first answers of a task are compared row by row; an engine whose answer differs is
shown so, and is not timed. Then the others take turns, and the least CPU time and the least time on
the clock are kept: CPU time of all threads and processes of the engine. `--record` adds a line to
records/ and writes RESULTS.md. README.md tells what is fair, and how to add a task or an engine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))

import pyarrow as pa  # noqa: E402
from adapters.every import NAMES, adapter, keys  # noqa: E402
from answers import Compared, compared, in_words  # noqa: E402
from child import Child  # noqa: E402
from data_sets import SETS, DataSet  # noqa: E402
from pyarrow import parquet  # noqa: E402
from tasks import Task, tasks  # noqa: E402

RECORDS = HERE / "records"
ENOUGH = 2.0  # seconds: after these, and two turns, an engine takes no further turn
WARM_SECONDS, WARM_CALLS = 0.5, 12
"""An engine whose first turn took less is called some times more before the others, until one is
reached: some engines (celc, and those of the JVM) compile what is called often."""


@dataclass(slots=True)
class Engine:
    """An engine that takes part; its process is started when it is first asked, and again after a
    stop."""

    name: str
    folder: Path
    most: float
    child: Child | None = None
    broken: str = ""
    holds: tuple[str, Path] | None = None
    loads: dict[str, dict[str, Any]] = field(default_factory=dict)

    def load(self, data: DataSet, path: Path) -> None:
        """Hand the events of a set over. Where that fails, `broken` says why."""
        self.holds, self.broken = (data.name, path), ""
        try:
            self.loads[data.name] = self._load()
        except RuntimeError as error:
            self.broken = str(error)[:400]

    def ask(self, **asked: str) -> dict[str, Any]:
        """The answer of the process. Raises RuntimeError where it fails, and TimeoutError after
        `most`."""
        if self.broken:
            raise RuntimeError(self.broken)
        if self.child is None:
            self._start()
            self._load()
        return self._ask(**asked)

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        worker = [sys.executable, str(HERE / "worker.py"), self.name, str(self.folder)]
        self.child = Child(worker)

    def _load(self) -> dict[str, Any]:
        if self.child is None:
            self._start()
        assert self.holds is not None
        return self._ask(do="load", data=self.holds[0], path=str(self.holds[1]))

    def _ask(self, **asked: str) -> dict[str, Any]:
        assert self.child is not None
        most = None if asked["do"] == "load" else self.most
        line = json.dumps(asked)
        try:
            found: dict[str, Any] = json.loads(self.child.ask(line, most))
        except TimeoutError:
            self.child = None
            raise
        except RuntimeError as error:  # without the line, which says nothing to a reader
            raise RuntimeError(
                str(error).removeprefix(f"{line}: ").removeprefix("error ")
            ) from None
        return found

    def close(self) -> None:
        """End the process."""
        if self.child is not None:
            self.child.close()
            self.child = None


def measure(
    chosen: Sequence[Task], names: Sequence[str], rows: int, turns: int, most: float
) -> Iterator[dict[str, Any]]:
    """The figures of each task and engine, one after another; `loads` of an engine come at the
    end."""
    with tempfile.TemporaryDirectory(prefix="field-") as folder:
        engines = [Engine(name, Path(folder, name), most) for name in names]
        try:
            for data in dict.fromkeys(task.data for task in chosen):
                table = data.table(rows)
                path = Path(folder, f"{data.name}.parquet")
                parquet.write_table(table, path)
                mine = [task for task in chosen if task.data == data]
                asked = [one for one in engines if any(_text(one, task) for task in mine)]
                for engine in asked:
                    engine.load(data, path)
                for task in mine:
                    yield from figures(task, engines, len(table), turns, Path(folder))
            for engine in engines:
                yield {"engine": engine.name, "loads": engine.loads}
        finally:
            for engine in engines:
                engine.close()


def _text(engine: Engine, task: Task) -> str | None:
    return adapter(engine.name).text(task)


def figures(
    task: Task, engines: Sequence[Engine], rows: int, turns: int, folder: Path
) -> Iterator[dict[str, Any]]:
    """A figure for each engine: what it answers, and what that takes."""
    found: dict[str, dict[str, Any]] = {}
    answers: dict[str, pa.Table] = {}
    for engine in engines:
        figure = {"task": task.name, "engine": engine.name, "rows": rows}
        found[engine.name] = figure
        if _text(engine, task) is None:
            figure |= {"state": "cannot", "reason": task.why_not(engine.name)}
            continue
        try:
            first = engine.ask(do="run", task=task.name)
            path = folder / "answer.parquet"
            engine.ask(do="write", task=task.name, path=str(path))
            answers[engine.name] = parquet.read_table(path, memory_map=False)
            figure |= {"first": _times(first), "matches": first["given"], "peak": _megabytes(first)}
        except TimeoutError:
            figure |= _stopped(engine)
        except RuntimeError as error:
            figure |= {"state": "failed", "reason": str(error)[:400]}
    verdict = compared(answers)
    for name in answers:
        found[name] |= _judged(task, name, verdict)
    timed = [one for one in engines if found[one.name].get("state") == "same"]
    _take_turns(task, timed, found, turns)
    yield from found.values()


def _judged(task: Task, name: str, verdict: Compared) -> dict[str, Any]:
    """Whether the answer of an engine is that of the most engines, and what is different."""
    if name in verdict.same:
        return {"state": "same"}
    reason = task.why_other(name)
    return {"state": "other", "reason": reason, "difference": verdict.differences[name]}


def _stopped(engine: Engine) -> dict[str, Any]:
    return {"state": "stopped", "reason": f"no answer in {engine.most:g} seconds"}


def _take_turns(
    task: Task, engines: Sequence[Engine], found: dict[str, dict[str, Any]], turns: int
) -> None:
    """Let the engines answer in turns, and keep the least of each."""
    taken: dict[str, list[dict[str, Any]]] = {engine.name: [] for engine in engines}
    for turn in range(turns):
        for engine in engines:
            mine = taken[engine.name]
            if len(mine) > 1 and sum(one["clock"] for one in mine) > ENOUGH:
                continue
            if mine and mine[0]["clock"] > 5 * ENOUGH:
                continue
            try:
                mine.append(engine.ask(do="run", task=task.name))
                if turn == 0 and mine[0]["clock"] < WARM_SECONDS:
                    _warm(task, engine)
            except TimeoutError:
                found[engine.name] |= _stopped(engine)
                return
            except RuntimeError as error:
                found[engine.name] |= {"state": "failed", "reason": str(error)[:400]}
                return
    for name, mine in taken.items():
        least = {key: round(min(one[key] for one in mine), 5) for key in ("cpu", "clock")}
        peak = max(one["peak"] for one in mine)
        found[name] |= {"steady": least, "turns": len(mine), "steady_peak": round(peak)}


def _warm(task: Task, engine: Engine) -> None:
    """Calls that are not measured. The dearest does not count: it may be the one that compiles."""
    passed: list[float] = []
    while len(passed) < WARM_CALLS and sum(passed) - max(passed, default=0) < WARM_SECONDS:
        passed.append(engine.ask(do="run", task=task.name)["clock"])


def _times(measured: dict[str, Any]) -> dict[str, float]:
    return {key: round(measured[key], 5) for key in ("cpu", "clock")}


def _megabytes(measured: dict[str, Any]) -> int:
    return round(measured["peak"])


# --- what a record says besides its figures -------------------------------------------------------


def environment(rows: int) -> dict[str, Any]:
    """The day, the machine and the versions."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": "python benchmarks/field/run.py " + " ".join(sys.argv[1:]),
        "rows": rows,
        "commit": _commit(),
        "machine": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def engines_of(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each engine is, and why it does not run where it does not."""
    found = {}
    for name in NAMES:
        kind = adapter(name)
        lacking = kind.lacking() or (None if name in names else "it was not asked")
        release = kind.release() if lacking is None else None
        told = {"title": kind.title, "how": kind.how, "version": release, "lacking": lacking}
        found[name] = told
    return found


def chosen_of(parts: str, sets: str) -> tuple[list[Task], dict[str, str]]:
    """The tasks whose name has one of the texts, and the sets that are not installed, with the
    reason."""
    wanted = [name for name in SETS if not sets or name in sets.split(",")]
    absent = {name: lacking for name in wanted if (lacking := SETS[name].lacking()) is not None}
    mine = [task for task in named(parts) if task.data.name in wanted]
    return [task for task in mine if task.data.name not in absent], absent


def named(parts: str) -> list[Task]:
    """The tasks whose name has one of the texts.

    Raises ValueError for a text that is in no name, and for a key of a task that nothing reads.
    """
    found = [task for task in tasks() if any(part in task.name for part in parts.split(","))]
    for part in parts.split(","):
        if not any(part in task.name for task in found):
            raise ValueError(f"--tasks: no task has '{part}' in its name")
    for task in found:
        if strange := sorted(set(task.texts) - keys()):
            raise ValueError(
                f"{task.name}: no engine has the key {', '.join(strange)}; "
                f"there are {', '.join(sorted(keys()))}"
            )
    return found


def _told(figure: dict[str, Any]) -> str:
    line = f"{figure['task']:24} {adapter(figure['engine']).title:14} "
    if figure.get("state") == "other":
        return line + f"other    {in_words(figure['difference'])}: {figure['reason']}"
    if "steady" not in figure:
        return line + f"{figure['state']:8} {figure.get('reason', '')}"
    times = "   ".join(
        f"{name} {figure[name]['cpu']:8.3f} s CPU {figure[name]['clock']:8.3f} s"
        for name in ("steady", "first")
    )
    return line + f"{figure['matches']:9,} rows   {times}   {figure['steady_peak']:6,} MB"


def keep(record: dict[str, Any]) -> None:
    """Add a record to those of its day, and write the page."""
    import page

    RECORDS.mkdir(exist_ok=True)
    with (RECORDS / f"field-{record['date']}.jsonl").open("a") as out:
        out.write(json.dumps(record) + "\n")
    page.write()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of each set, at most")
    parser.add_argument("--only", default=",".join(NAMES), help="duckdb,celc")
    parser.add_argument("--tasks", default="", help="parts of their names: absence,late")
    parser.add_argument("--data", default="", help="flights,weather")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--most", type=float, default=60, help="seconds for one answer")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    unknown = set(asked.only.split(",")) - set(NAMES)
    if unknown:
        parser.error(
            f"--only: no such engine: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    if asked.data and (unknown := set(asked.data.split(",")) - set(SETS)):
        parser.error(
            f"--data: no such set: {', '.join(sorted(unknown))}; there are {', '.join(SETS)}"
        )
    try:
        chosen, absent = chosen_of(asked.tasks, asked.data)
    except ValueError as error:
        parser.error(str(error))
    for name in dict.fromkeys(task.data.name for task in named(asked.tasks)):
        if name in absent:
            print(f"left out: the data set {name}: {absent[name]}", file=sys.stderr)
    engines = engines_of(asked.only.split(","))
    for name in asked.only.split(","):
        if engines[name]["lacking"] is not None:
            print(
                f"left out: {engines[name]['title']}: {engines[name]['lacking']}", file=sys.stderr
            )
    names = [name for name in NAMES if engines[name]["lacking"] is None]
    record = environment(asked.rows) | {"engines": engines, "absent": absent, "loads": {}}
    record["figures"] = kept = []
    begun = time.perf_counter()
    try:
        for figure in measure(chosen, names, asked.rows, asked.turns, asked.most):
            if "loads" in figure:
                record["loads"][figure["engine"]] = figure["loads"]
            else:
                kept.append(figure)
                print(_told(figure), flush=True)
    finally:  # a run that is stopped keeps what it has measured
        record["seconds"] = round(time.perf_counter() - begun, 1)
        if asked.record and kept:
            keep(record)
    print(f"{record['seconds']:,.0f} seconds", file=sys.stderr)


if __name__ == "__main__":
    main()

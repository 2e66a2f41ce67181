"""Every route on a cluster of processes: equal answers, killed executors, time by phase.

    python benchmarks/cluster.py [--rows N] [--keys N] [--kinds KIND ...] [--routes NAME ...]
        [--turns N] [--record]
    python benchmarks/cluster.py --table RECORD ...

A cluster has three executors of one core: local-cluster, Spark's standalone master with three
workers, or local-cluster behind a server of Connect. The number of rows that each route returns,
and their checksum, must be those of `match_table` on one machine. Half of all rows have one key.
Then an executor is killed in the middle of a batch job and of a stream, whose answers must be the
same. No executor may compile a kernel twice.

Seconds by phase are what Spark's tasks tell, of the turn with the least CPU; CPU is that of all
processes, the masters and the driver included. `--table` writes records into docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import event_log
from cluster_routes import (
    ROUTES,
    Answer,
    Data,
    Queries,
    Query,
    answer_of_one_machine,
    answer_on_spark,
    write,
)
from clusters import EXECUTORS, KINDS, Cluster, cluster, killed_during
from common import environment
from event_log import Task
from processes import seconds_of

RECORDS = Path(__file__).parent / "records"
PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
BEGIN, END = "<!-- made by benchmarks/cluster.py -->", "<!-- end of what is made -->"

OVER_CONNECT = ("match", "SQL", "FOR EACH", "statement", "stream")
"""The routes whose calls Connect has in ways of its own; the plans of the others are the same."""

KILLED = ("match", "stream")

ROWS_OF_A_TASK = 1_000_000  # of a shuffle: workers then need some hundred megabytes


@dataclass(frozen=True)
class Measured:
    """A job: its answer, and what it cost.

    seconds: of CPU, of all processes; clock: by the clock. Of tasks, together: held, the seconds
    for which they held a core; reading of files; shuffle, writing and waiting; python, the seconds
    for which Python workers ran; gc, of Java. Bytes: shuffled, sent to Python and returned.
    tasks; failed, of them those that had to run again. kernels: made by each executor so far.
    """

    kind: str
    route: str
    turn: int
    rows: int
    checksum: int
    seconds: float
    clock: float
    held: float
    reading: float
    shuffle: float
    python: float
    gc: float
    shuffled: int
    sent: int
    returned: int
    tasks: int
    failed: int
    kernels: dict[str, int]


# --- one cluster ----------------------------------------------------------------------------------


class Watched:
    """A cluster whose jobs are measured one after the other."""

    def __init__(self, kind: str, running: Cluster) -> None:
        self._kind, self._running = kind, running
        self._seen = 0
        self._kernels: dict[str, dict[str, int]] = {}

    def measured(self, route: str, turn: int, job: Callable[[], Answer]) -> Measured:
        """Run a job, and tell what it cost."""
        found: list[Answer] = []
        begun = time.perf_counter()
        seconds = seconds_of(lambda: found.append(job()))
        clock = time.perf_counter() - begun
        tasks = event_log.settled(self._running.log)
        new, self._seen = tasks[self._seen :], len(tasks)
        answer = found[0]
        return Measured(
            kind=self._kind,
            route=route,
            turn=turn,
            rows=answer.rows,
            checksum=answer.checksum,
            seconds=round(seconds, 2),
            clock=round(clock, 2),
            **phases(new),
            kernels=self._new_kernels(),
        )

    def _new_kernels(self) -> dict[str, int]:
        """How many kernels each executor has made; raises RuntimeError for one made twice."""
        now = self._running.kernels()
        for executor, before in self._kernels.items():
            again = [name for name, at in before.items() if now[executor].get(name) != at]
            if again:
                raise RuntimeError(f"executor {executor} has made {', '.join(again)} twice")
        self._kernels = now
        return {executor: len(made) for executor, made in sorted(now.items())}


def phases(tasks: Sequence[Task]) -> dict[str, Any]:
    """What the tasks of a job say, in seconds and bytes."""

    def metric(*names: str) -> float:
        return sum(task.number(*names) for task in tasks)

    def total(name: str) -> int:
        return sum(task.sums.get(name, 0) for task in tasks)

    waiting = metric("Shuffle Read Metrics", "Fetch Wait Time") / 1e3
    writing = metric("Shuffle Write Metrics", "Shuffle Write Time") / 1e9
    return {
        "held": round(metric("Executor Run Time") / 1e3, 2),
        "reading": round(total("scan time") / 1e3, 2),
        "shuffle": round(waiting + writing, 2),
        "python": round(total("time to execute Python code") / 1e3, 2),
        "gc": round(metric("JVM GC Time") / 1e3, 2),
        "shuffled": sum(task.shuffled for task in tasks),
        "sent": total("data sent to Python workers"),
        "returned": total("data returned from Python workers"),
        "tasks": len(tasks),
        "failed": sum(task.failed for task in tasks),
    }


def answers_of_one_machine(data: Data, names: Sequence[str]) -> dict[str, Answer]:
    """The answer of each query by `match_table`."""
    queries = Queries(data)
    return {name: answer_of_one_machine(data, getattr(queries, name)) for name in names}


def on_cluster(
    kind: str, data: Data, routes: Sequence[str], turns: int, wanted: dict[str, Answer]
) -> list[Measured]:
    """Run routes on a cluster of its own, KILLED beside them of a classic session, and compare.

    wanted: the answer of each query. To be called once in a process. Raises RuntimeError for
    another answer, and where a kill has hit no task.
    """
    queries = Queries(data)
    found: list[Measured] = []

    def add(route: str, turn: int, killed: bool) -> None:
        name, run = ROUTES[route]
        query: Query = getattr(queries, name)

        def job() -> Answer:
            return answer_on_spark(run(running.spark, data, query), query.columns)

        def with_a_kill() -> Answer:
            answer: Answer = killed_during(running.spark, job)
            return answer

        title = f"{route}, an executor killed" if killed else route
        one = watched.measured(title, turn, with_a_kill if killed else job)
        print(_line(one), flush=True)
        if (one.rows, one.checksum) != wanted[name]:
            raise RuntimeError(f"{kind}, {title}: {one} where one machine has {wanted[name]}")
        if killed and not one.failed:
            raise RuntimeError(f"{kind}, {title}: no task was lost")
        found.append(one)

    partitions = max(2 * EXECUTORS, data.rows // ROWS_OF_A_TASK)
    with cluster(kind, data.folder / kind, partitions) as running:
        watched = Watched(kind, running)
        for route in routes:
            for turn in range(turns):
                add(route, turn, killed=False)
        for route in KILLED:
            if route in routes and kind != "connect":
                add(route, 0, killed=True)
    return found


def _line(one: Measured) -> str:
    kernels = ", ".join(f"{executor}: {count}" for executor, count in one.kernels.items())
    return (
        f"{one.kind:13} {one.route:28} {one.rows:>10,} rows {one.checksum:>20} "
        f"{one.seconds:7.1f} s of CPU {one.clock:6.1f} s {one.failed:2} of {one.tasks:3} tasks lost"
        f"  kernels {kernels}"
    )


# --- the page -------------------------------------------------------------------------------------

_COLUMNS = ("rows", "CPU", "clock", "tasks", "reading", "shuffle", "Python", "GC", "shuffled")
_HEAD = f"| cluster, route | {' | '.join(_COLUMNS)} |\n| --- |{' ---: |' * len(_COLUMNS)}\n"


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The tables of records, one for each number of rows; of each route the turn of the least CPU.

    lines: of each run what `environment` says, and then its jobs.
    """
    sizes: dict[tuple[int, int], dict[tuple[str, str], dict[str, Any]]] = {}
    machine: dict[str, Any] = {}
    dates: list[str] = []
    for line in lines:
        if "commit" in line:
            machine = line
            dates.append(line["date"])
            continue
        least = sizes.setdefault((machine["events"], machine["keys"]), {})
        key = line["kind"], line["route"]
        if key not in least or line["seconds"] < least[key]["seconds"]:
            least[key] = line
    days = " and ".join(dict.fromkeys(dates))
    made = f"On {machine['machine']}, {machine['cores']} cores, {days}; seconds.\n"
    for (rows, keys), least in sizes.items():
        made += f"\n{rows:,} rows, half of them of one key and the others of {keys:,}:\n\n{_HEAD}"
        made += "".join(map(_row, least.values()))
    return made


def _row(one: dict[str, Any]) -> str:
    phases = (
        one[name] for name in ("seconds", "clock", "held", "reading", "shuffle", "python", "gc")
    )
    cells = [f"{one['rows']:,}", *(f"{seconds:.1f}" for seconds in phases)]
    return f"| {one['kind']}, {one['route']} | {' | '.join(cells)} | {_mib(one['shuffled'])} |\n"


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def write_page(records: Sequence[Path]) -> None:
    """Write the tables of records between the marks of the page."""
    lines = [line for one in records for line in one.read_text("utf-8").splitlines()]
    made = table([json.loads(line) for line in lines])
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN + "\n")
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}", "utf-8")


# --- the command line -----------------------------------------------------------------------------


def main() -> int:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, help="other than the hot one; a hundredth of the rows")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=tuple(ROUTES))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument(
        "--folder", type=Path, help="for events and answers; one for temporary files"
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--table", type=Path, nargs="+", metavar="RECORD")
    given = parser.parse_args()
    if given.table:
        write_page(given.table)
        return 0
    keys = given.keys or max(1, given.rows // 100)
    machine = {**environment("benchmarks/cluster.py", given.rows), "keys": keys}
    record = RECORDS / f"cluster-{machine['date']}.jsonl" if given.record else None
    keep(record, machine)
    with tempfile.TemporaryDirectory(prefix="celc-cluster-", dir=given.folder) as folder:
        data = Data(Path(folder).resolve(), given.rows, keys)
        for one in measure(data, given.kinds, given.routes, given.turns):
            keep(record, asdict(one))
    return 0


def keep(record: Path | None, line: dict[str, Any]) -> None:
    """Add a line to a record."""
    if record is not None:
        with record.open("a", encoding="utf-8") as lines:
            lines.write(f"{json.dumps(line)}\n")


def measure(
    data: Data, kinds: Sequence[str], routes: Sequence[str], turns: int
) -> Iterator[Measured]:
    """Write events, and run routes on each kind of cluster, in processes of their own."""
    write(data)
    begun = time.perf_counter()
    names = [*dict.fromkeys(ROUTES[route][0] for route in routes)]
    wanted = _apart(answers_of_one_machine, data, names)
    print(f"one machine: {time.perf_counter() - begun:.1f} s", flush=True)
    for kind in kinds:
        chosen = [route for route in routes if kind != "connect" or route in OVER_CONNECT]
        yield from _apart(on_cluster, kind, data, chosen, turns, wanted)


def _apart(function: Callable[..., Any], *given: Any) -> Any:
    """What a function gives in a process of its own, whose memory is then free again."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(function, *given).result()


if __name__ == "__main__":
    sys.exit(main())

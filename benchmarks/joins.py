"""`match(df, plan="joins")` beside the kernel: 48 shapes of query, and one band.

    python benchmarks/joins.py [--events N] [--limit SECONDS] [--only WORDS] [--choices] [--record]

The rule of `plan="auto"` was made from the first twelve shapes, and from one band over windows of
several lengths. It was tried on twelve other shapes. The fresh ones were written after the rule was
done, so they test it. The last shape is the band over 400,000 events of two types.

Events are of three types and come one at a time. A window is a span of time: a wide one holds a
tenth of all events, a narrow one fifty events. Both ways must find the same matches.

Times are CPU seconds of all processes, with the structs of labels built and without positions: the
least of some runs, after a first one. If both ways take nearly the same time, they are run more
often. Jobs run in a process of their own. If a run takes more CPU seconds than the limit, the
process is ended, that way is recorded as null, and the other one has won. If the benchmark itself
is ended, it records what it has measured.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import Calibration, environment
from processes import end_tree, seconds_of, tree_seconds
from spark_jobs import answer, run_made, session, write

import celc

_RUNS = 2  # of each way, after a first one that is checked
_MORE_RUNS = 3  # of both ways, if the ratio of their times is less than `_CLOSE`
_CLOSE = 1.6
_WAYS = ("kernel", "joins")
_TYPES = "ABC"
_ATTRIBUTES = "id: INT, few: INT, v: DOUBLE, u: DOUBLE, ts: LONG"
_HEAD = f"CREATE STREAM S {{ {', '.join(f'EVENT {t} {{ {_ATTRIBUTES} }}' for t in _TYPES)} }}\n"


@dataclass(frozen=True, slots=True)
class Shape:
    """A query, and the events that it is run over."""

    formula: str  # the text behind WHERE; `wide` stands for the length of a wide window
    times: float = 1  # how many times the events that the command line asks for
    types: str = _TYPES  # of the events

    def text(self, events: int) -> str:
        """The query, where a wide window has a tenth of all events."""
        return f"{_HEAD}SELECT * FROM S WHERE {self.formula.replace('wide', str(events // 10))}"


_BAND = "ABS(x.v - y.v) < 1e-4"
MADE_FROM = {
    "band, wide": f"(A AS x ; B AS y) FILTER {_BAND} WITHIN wide [ts]",
    "band, narrow": f"(A AS x ; B AS y) FILTER {_BAND} WITHIN 50 [ts]",
    "band and key, wide": f"(A AS x ; B AS y) FILTER {_BAND} AND x.few = y.few WITHIN wide [ts]",
    "two bands, wide": f"(A AS x ; B AS y ; C AS z) FILTER {_BAND} AND ABS(y.v - z.v) < 1e-4 "
    "WITHIN wide [ts]",
    "band, then any, narrow": f"(A AS x ; B AS y ; C AS z) FILTER {_BAND} WITHIN 50 [ts]",
    "band with ALL, wide": f"(A AS x ALL B AS y) FILTER {_BAND} WITHIN wide [ts]",
    "key of many, wide": "(A AS x ; B AS y) FILTER x.id = y.id WITHIN wide [ts]",
    "key of many, narrow": "(A AS x ; B AS y) FILTER x.id = y.id WITHIN 50 [ts]",
    "keys in a chain, wide": "(A AS x ; B AS y ; C AS z) FILTER x.id = y.id AND y.id = z.id "
    "WITHIN wide [ts]",
    "greater, narrow": "(A AS x ; B AS y) FILTER x.v > y.v WITHIN 50 [ts]",
    "rare events, wide": "(A AS x ; B AS y) FILTER x.v > 0.999 AND y.v > 0.999 WITHIN wide [ts]",
    "absence with keys, wide": "(A AS x ; !(C AS z FILTER z.id = x.id) ; B AS y) "
    "FILTER x.id = y.id WITHIN wide [ts]",
}
WINDOWS = (200, 1_000, 2_000, 5_000)
TRIED_ON = {
    "wider band, wide": "(A AS x ; B AS y) FILTER ABS(x.v - y.v) < 1e-3 WITHIN wide [ts]",
    "band of sums, wide": "(A AS x ; B AS y) FILTER ABS(x.v + x.u - y.v) < 1e-4 WITHIN wide [ts]",
    "band of two events later, wide": "(A AS x ; B AS y ; C AS z) FILTER x.id = y.id "
    "AND ABS(x.v - z.v) < 1e-4 WITHIN wide [ts]",
    "band, one type twice, wide": f"(A AS x ; A AS y) FILTER {_BAND} WITHIN wide [ts]",
    "band without C between, wide": f"(A AS x ; !(C AS z FILTER ABS(z.v - x.v) < 1e-5) ; B AS y) "
    f"FILTER {_BAND} WITHIN wide [ts]",
    "band of parts, wide": f"(A AS x ; B AS y) FILTER {_BAND} PARTITION BY few WITHIN wide [ts]",
    "band or key, narrow": f"(A AS x ; B AS y) FILTER {_BAND} OR x.id = y.id WITHIN 50 [ts]",
    "key of few, narrow": "(A AS x ; B AS y) FILTER x.few = y.few WITHIN 50 [ts]",
    "parts, wide": "(A AS x ; B AS y) PARTITION BY id WITHIN wide [ts]",
    "sequence, narrow": "(A ; B ; C) WITHIN 20 [ts]",
    "ALL with key, wide": "(A AS x ALL B AS y) FILTER x.id = y.id WITHIN wide [ts]",
    "a chain of four with keys, wide": "(A AS x ; B AS y ; C AS z ; A AS w) FILTER x.id = y.id "
    "AND y.id = z.id AND z.id = w.id WITHIN wide [ts]",
}
FRESH = {
    "band of the other value, wide": "(A AS x ; B AS y) FILTER ABS(x.u - y.u) < 1e-4 "
    "WITHIN wide [ts]",
    "band of a product, wide": "(A AS x ; B AS y) FILTER ABS(x.v * x.u - y.v) < 1e-4 "
    "WITHIN wide [ts]",
    "narrower band, wide": "(A AS x ; B AS y) FILTER ABS(x.v - y.v) < 1e-6 WITHIN wide [ts]",
    "band of whole numbers, wide": "(A AS x ; B AS y) FILTER ABS(x.id - y.id) <= 1 "
    "WITHIN wide [ts]",
    "band by BETWEEN, wide": "(A AS x ; B AS y) FILTER y.v BETWEEN x.v - 1e-4 AND x.v + 1e-4 "
    "WITHIN wide [ts]",
    "band of two comparisons, wide": "(A AS x ; B AS y) FILTER y.v > x.v AND y.v < x.v + 1e-4 "
    "WITHIN wide [ts]",
    "band and greater, wide": f"(A AS x ; B AS y) FILTER {_BAND} AND x.u < y.u WITHIN wide [ts]",
    "band behind a rare event, wide": f"(A AS x ; B AS y) FILTER x.u > 0.99 AND {_BAND} "
    "WITHIN wide [ts]",
    "band of either type, wide": f"((A OR C) AS x ; B AS y) FILTER {_BAND} WITHIN wide [ts]",
    "band over C, wide": f"(A AS x ; C AS z ; B AS y) FILTER {_BAND} AND x.id = z.id "
    "WITHIN wide [ts]",
    "band in many parts, wide": f"(A AS x ; B AS y) FILTER {_BAND} PARTITION BY id "
    "WITHIN wide [ts]",
    "band in events, wide": f"(A AS x ; B AS y) FILTER {_BAND} WITHIN wide EVENTS",
    "two keys, wide": "(A AS x ; B AS y) FILTER x.id = y.id AND x.few = y.few WITHIN wide [ts]",
    "key and rising, wide": "(A AS x ; B AS y) FILTER x.id = y.id AND x.v < y.v WITHIN wide [ts]",
    "key of few and a rare event, wide": "(A AS x ; B AS y) FILTER x.few = y.few AND x.v > 0.999 "
    "WITHIN wide [ts]",
    "key, one type twice, wide": "(A AS x ; A AS y) FILTER x.id = y.id WITHIN wide [ts]",
    "key of either type, narrow": "((A OR C) AS x ; B AS y) FILTER x.id = y.id WITHIN 50 [ts]",
    "key, then any, narrow": "(A AS x ; B AS y ; C AS z) FILTER x.id = y.id WITHIN 50 [ts]",
    "parts in a chain, wide": "(A AS x ; B AS y ; C AS z) PARTITION BY id WITHIN wide [ts]",
    "parts of few, narrow": "(A AS x ; B AS y) PARTITION BY few WITHIN 50 [ts]",
    "rare begin, any end, wide": "(A AS x ; B AS y) FILTER x.v > 0.9999 WITHIN wide [ts]",
    "absence of a rare event, narrow": "(A AS x ; !(C AS z FILTER z.v > 0.99) ; B AS y) "
    "WITHIN 20 [ts]",
    "ALL of three with keys, wide": "(A AS x ALL B AS y ALL C AS z) FILTER x.id = y.id "
    "AND y.id = z.id WITHIN wide [ts]",
    "equal numbers of three, narrow": "(A AS x ; B AS y ; C AS z) FILTER x.few = y.few "
    "AND y.few = z.few WITHIN 50 [ts]",
}
SHAPES = {
    **{name: Shape(formula) for name, formula in MADE_FROM.items()},
    **{
        f"band, window of {length:,}{name}": Shape(
            f"(A AS x ; B AS y) FILTER {_BAND} WITHIN {length} [ts]", times
        )
        for times, name in ((1, ""), (4, ", four times the events"))
        for length in WINDOWS
    },
    **{name: Shape(formula) for name, formula in TRIED_ON.items()},
    **{f"fresh: {name}": Shape(formula) for name, formula in FRESH.items()},
    "band over 400,000 events of two types": Shape(
        f"(A AS x ; B AS y) FILTER {_BAND} WITHIN 20000 [ts]", 2, "AB"
    ),
}


def events(rows: int, types: str) -> pa.Table:
    """The events, in the order of time."""
    rng = np.random.default_rng(27)
    return pa.table(
        {
            "type": pa.array(np.array([*types])[rng.integers(0, len(types), rows)]),
            "id": pa.array(rng.integers(0, max(1, rows // 200), rows), pa.int32()),
            "few": pa.array(rng.integers(0, 20, rows), pa.int32()),
            "v": pa.array(rng.random(rows)),
            "u": pa.array(rng.random(rows)),
            "ts": pa.array(np.arange(rows)),
        }
    )


# --- the process of the jobs ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A query over the events of a folder, by one way."""

    folder: str
    text: str
    way: str = "auto"  # the argument `plan` of `match`
    runs: int = 0  # timed runs after the first one, which is checked; 0: only explain the plan


def serve(jobs: Connection) -> None:
    """Run the jobs that come over the connection, in their order.

    A job is answered by its matches (`answer`) and then the seconds of each run, or by the text of
    `explain_plan`.
    """
    with session() as spark:

        @cache
        def query(text: str) -> Any:
            return celc.compile(text, order_by="ts")

        while True:
            try:
                job = jobs.recv()
            except EOFError:
                return
            asked, frame = query(job.text), spark.read.parquet(job.folder)
            if not job.runs:
                jobs.send(asked.explain_plan(frame))
                continue
            jobs.send(answer(asked.match(frame, plan=job.way)))
            for _ in range(job.runs):
                jobs.send(seconds_of(partial(run_made, partial(asked.match, frame, plan=job.way))))


class Jobs:
    """Runs jobs in a process, which is started again after one that was ended at the limit.

    `warm`: a job that each new process runs first, because the first jobs of a session cost more.
    """

    def __init__(self, warm: Job, limit: float) -> None:
        self._warm = warm
        self._limit = limit
        self._process: Any = None
        self._ours: Any = None

    def explained(self, job: Job) -> str:
        """What `auto` says of a query."""
        return str(next(self._answers(job, 1)))

    def timed(self, job: Job) -> tuple[tuple[Any, ...] | None, float | None]:
        """(the number of matches and their checksum, the least CPU seconds of a run); None for what
        was not reached within the limit."""
        found: tuple[Any, ...] | None = None
        seconds: float | None = None
        answers = self._answers(job, 1 + job.runs)
        try:
            found = next(answers)
            for one in answers:
                seconds = min(one, seconds or math.inf)
        except TimeoutError:
            self.end()
        return found, seconds

    def _answers(self, job: Job, number: int) -> Iterator[Any]:
        if self._process is None:
            self._start()
        self._ours.send(job)
        for _ in range(number):
            yield self._received()

    def _received(self) -> Any:
        start = tree_seconds(self._process.pid)
        while not self._ours.poll(0.5):
            if not self._process.is_alive():
                raise RuntimeError("the process of the jobs has ended; its output says why")
            if tree_seconds(self._process.pid) - start > self._limit:
                raise TimeoutError
        return self._ours.recv()

    def _start(self) -> None:
        started = multiprocessing.get_context("spawn")
        self._ours, theirs = started.Pipe()
        self._process = started.Process(target=serve, args=(theirs,))
        self._process.start()
        theirs.close()
        for way in _WAYS:
            self.timed(Job(self._warm.folder, self._warm.text, way, 1))

    def end(self) -> None:
        """End the process and all that it has started."""
        if self._process is not None:
            end_tree(self._process.pid)
            self._process.join()
            self._ours.close()
        self._process = None


# --- figures --------------------------------------------------------------------------------------


def choice(jobs: Jobs, job: Job) -> dict[str, str]:
    """The way that `auto` takes, and why."""
    plan = jobs.explained(job).splitlines()
    joins = next((line for line in plan if line.startswith("plan: joins of Spark")), None)
    if joins is not None:
        return {"auto": "joins", "why": joins}
    return {"auto": "kernel", "why": next(line for line in plan if line.startswith("joins:"))}


def measure(jobs: Jobs, job: Job, name: str) -> dict[str, Any]:
    """The figures of one shape: CPU seconds by way, matches, and what `auto` takes."""
    chosen = choice(jobs, job)
    answers: dict[str, Any] = {}
    seconds: dict[str, float | None] = {}
    runs = _RUNS
    while runs:
        for way in _WAYS:
            if seconds.get(way, 0) is None:
                continue
            found, least = jobs.timed(Job(job.folder, job.text, way, runs))
            if found is not None:
                answers[way] = found
            known = seconds.get(way)
            seconds[way] = least if known is None or least is None else min(known, least)
        if len({*answers.values()}) > 1:
            raise RuntimeError(f"{name}: joins find other matches (rows, checksum): {answers}")
        ended = [one for one in seconds.values() if one is not None]
        is_close = len(ended) == len(_WAYS) and max(ended) < _CLOSE * min(ended)
        runs = _MORE_RUNS if runs == _RUNS and is_close else 0
    return {
        **seconds,
        "matches": next(iter(answers.values()), (None,))[0],
        **chosen,
    }


def line(name: str, figures: Mapping[str, Any], limit: float) -> str:
    """A line that shows the figures of one shape."""
    shown = [f"> {limit:,.0f}" if figures[way] is None else f"{figures[way]:.2f}" for way in _WAYS]
    return (
        f"{name:44} kernel {shown[0]:>7} s, joins {shown[1]:>7} s, auto {figures['auto']:6} "
        f"{figures['matches'] or 0:>9,} matches"
    )


@contextmanager
def _folders() -> Iterator[Any]:
    """A function that writes the events of a shape, once, and returns their folder."""
    with tempfile.TemporaryDirectory(prefix="celc-bench-") as root:

        @cache
        def folder(rows: int, types: str) -> str:
            return str(write(Path(root) / f"{types}-{rows}", events(rows, types)))

        yield folder


def _measured(asked: argparse.Namespace, figures: dict[str, Any]) -> None:
    """Fill in the figures, shape by shape."""
    with _folders() as folder:

        def job(shape: Shape) -> Job:
            rows = int(asked.events * shape.times)
            return Job(folder(rows, shape.types), shape.text(rows))

        jobs = Jobs(job(SHAPES["band, narrow"]), asked.limit)
        try:
            for name, shape in SHAPES.items():
                if not all(word in name for word in asked.only):
                    continue
                if asked.choices:
                    figures[name] = choice(jobs, job(shape))
                    print(f"{name:44} {figures[name]['why']}", flush=True)
                    continue
                figures[name] = measure(jobs, job(shape), name)
                print(line(name, figures[name], asked.limit), flush=True)
        finally:
            jobs.end()


def main() -> None:
    """Measure, show, and record if asked to, up to where the run is broken off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds of one run")
    parser.add_argument("--only", nargs="*", default=[], help="shapes with these words")
    parser.add_argument("--choices", action="store_true", help="what auto takes; no times")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    record = environment("benchmarks/joins.py", asked.events) | {"limit": asked.limit}
    calibrated = Calibration()
    figures: dict[str, Any] = {}
    record |= {"calibration": calibrated(), "figures": figures}
    try:
        _measured(asked, figures)
    finally:
        if asked.record:
            path = Path(__file__).parent / "records" / f"joins-{record['date']}.jsonl"
            with path.open("a") as out:
                out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()

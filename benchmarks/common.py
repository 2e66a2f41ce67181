"""What the benchmarks share: measuring beside a calibration kernel, and figures.

Every figure is CPU time, repeated, and each repetition stands beside the calibration kernel timed
directly before and after it: one Numba loop over an int32 type code, a float64 and an int32 column
that counts the rows passing one comparison on each. Machines differ and are shared; the ratio is
what to compare. Repetitions of several tasks are interleaved, so that a slow minute of the machine
meets all of them.
"""

from __future__ import annotations

import datetime
import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from celc_runtime.run.run_of import run_of
from numba import njit

NOMINAL = 2.05e9
"""Rows per second of the calibration kernel where goals in events per second were set: a goal of
g events per second is a ratio of g / NOMINAL."""

CALIBRATION_ROWS = 10_000_000
"""Always as many, because fewer fit into caches and are read faster."""


# --- the calibration kernel -----------------------------------------------------------------------


@njit(nogil=True)  # type: ignore[untyped-decorator]
def calibration(types: Any, reals: Any, numbers: Any) -> int:
    """The reference: one comparison on each of three columns."""
    count = 0
    for row in range(types.shape[0]):
        count += (types[row] == 1) & (reals[row] > 0.5) & (numbers[row] < 50)
    return count


class Calibration:
    """Times the calibration kernel; calling it gives rows per second, the best of two readings."""

    def __init__(self, rows: int = CALIBRATION_ROWS) -> None:
        rng = np.random.default_rng(1)
        self._columns = (
            rng.integers(0, 4, rows).astype(np.int32),
            rng.random(rows),
            rng.integers(0, 100, rows).astype(np.int32),
        )
        self._rows = rows
        self.seen: list[float] = []
        calibration(*(column[:8] for column in self._columns))

    def __call__(self) -> float:
        rate = self._rows / best_of(lambda: calibration(*self._columns), 2)
        self.seen.append(rate)
        return rate


def calibrate(_events: int) -> Callable[[], float]:
    """A function that times the calibration kernel, in rows per second."""
    return Calibration()


# --- measuring ------------------------------------------------------------------------------------


def best_of(run: Callable[[], object], runs: int = 5) -> float:
    """The least CPU time of this thread over several runs, in seconds."""
    return min(_seconds(run, time.thread_time) for _ in range(runs))


def _seconds(run: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    run()
    return clock() - start


@dataclass(frozen=True, slots=True)
class Task:
    """What is timed: `run`, after `before`, which is not."""

    name: str
    run: Callable[[], object]
    before: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Repetitions of a task: CPU seconds, and the calibration kernel's rows per second at each."""

    seconds: tuple[float, ...]
    calibrated: tuple[float, ...]

    @property
    def rows(self) -> tuple[float, ...]:
        """What each repetition took, in rows of the calibration kernel."""
        return tuple(s * c for s, c in zip(self.seconds, self.calibrated, strict=True))


@dataclass(frozen=True, slots=True)
class Settings:
    """How much a run of the suite measures."""

    full: bool
    repetitions: int
    calibrated: Callable[[], float]

    @property
    def events(self) -> int:
        """The length of a stream of random events: long enough that no processor learns it."""
        return 10_000_000 if self.full else 1_000_000

    @property
    def fewer(self) -> int:
        """Repetitions of what takes seconds each."""
        return max(1, self.repetitions * 3 // 5)

    def repeated(
        self,
        tasks: Sequence[Task],
        *,
        repetitions: int | None = None,
        clock: Callable[[], float] = time.thread_time,
        warm: bool = True,
    ) -> dict[str, Timing]:
        """Repeat the tasks in turns, each between two readings of the calibration kernel.

        With `warm`, a first turn is not counted: it compiles. `clock`: `time.process_time` for
        what runs in Arrow's threads as well.
        """
        seconds: dict[str, list[float]] = {task.name: [] for task in tasks}
        calibrated: dict[str, list[float]] = {task.name: [] for task in tasks}
        for turn in range(0 if warm else 1, (repetitions or self.repetitions) + 1):
            before = self.calibrated()
            for task in tasks:
                if task.before is not None:
                    task.before()
                gc.disable()
                taken = _seconds(task.run, clock)
                gc.enable()
                after = self.calibrated()
                if turn:
                    seconds[task.name].append(taken)
                    # Times are averaged, not rates: the task took part in both.
                    calibrated[task.name].append(2 / (1 / before + 1 / after))
                before = after
        return {name: Timing(tuple(seconds[name]), tuple(calibrated[name])) for name in seconds}


# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity with all its repetitions.

    `calibrated`: rows per second of the calibration kernel beside each value; empty where the value
    says nothing about the machine's speed (a quotient, bytes). `goal`: in the unit of the values,
    for a machine whose calibration kernel reads NOMINAL rows per second. `context`: sizes that
    must be equal for two figures to be compared, and what a plot needs. `compared`: false for what
    only says another figure again. `part`: the part of the suite, which fills it in.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    calibrated: tuple[float, ...] = ()
    higher_is_better: bool = True
    goal: float | None = None
    context: dict[str, Any] = field(default_factory=dict)
    compared: bool = True
    part: str = ""

    @property
    def normal(self) -> tuple[float, ...]:
        """The values as they compare between machines: rates as ratios to the calibration kernel,
        seconds as the rows that it reads meanwhile."""
        if not self.calibrated:
            return self.values
        pairs = zip(self.values, self.calibrated, strict=True)
        if self.higher_is_better:
            return tuple(value / rate for value, rate in pairs)
        return tuple(value * rate for value, rate in pairs)

    @property
    def normal_goal(self) -> float | None:
        """The goal as it compares with `normal`."""
        if self.goal is None or not self.calibrated:
            return self.goal
        return self.goal / NOMINAL if self.higher_is_better else self.goal * NOMINAL

    @property
    def missed_by(self) -> float | None:
        """How far the median misses the goal, as a share of the goal; 0 or less: reached."""
        goal = self.normal_goal
        if goal is None:
            return None
        return self._short_of(goal, self.normal)

    @property
    def missed_here_by(self) -> float | None:
        """The same for the values as they are, on this machine in this minute."""
        return None if self.goal is None else self._short_of(self.goal, self.values)

    def _short_of(self, goal: float, values: Sequence[float]) -> float:
        share = statistics.median(values) / goal
        return 1 - share if self.higher_is_better else share - 1

    @property
    def best(self) -> float:
        """The best of the values."""
        return max(self.values) if self.higher_is_better else min(self.values)


def rate(
    name: str, unit: str, amount: float, timing: Timing, goal: float | None = None, **context: Any
) -> Figure:
    """Things a second, for a task that does `amount` of them."""
    values = tuple(amount / seconds for seconds in timing.seconds)
    return Figure(name, unit, values, timing.calibrated, goal=goal, context=context)


def duration(name: str, timing: Timing, goal: float | None = None, **context: Any) -> Figure:
    """Seconds."""
    return Figure(
        name,
        "s",
        timing.seconds,
        timing.calibrated,
        higher_is_better=False,
        goal=goal,
        context=context,
    )


def quotient(
    name: str,
    costs: Sequence[float],
    of: Sequence[float],
    goal: float | None = None,
    *,
    higher_is_better: bool = False,
    **context: Any,
) -> Figure:
    """How many times one cost another is, repetition by repetition."""
    values = tuple(cost / other for cost, other in zip(costs, of, strict=True))
    return Figure(
        name, "times", values, higher_is_better=higher_is_better, goal=goal, context=context
    )


def size(name: str, unit: str, value: float, goal: float | None = None, **context: Any) -> Figure:
    """Something that is counted, not timed; the less, the better."""
    return Figure(name, unit, (value,), higher_is_better=False, goal=goal, context=context)


# --- the environment ------------------------------------------------------------------------------


def matches_of(query: Any, batch: pa.RecordBatch) -> int:
    """Read the batch; returns how many matches were listed, up to the buffers of the kernel."""
    run, found = run_of(query.program), 0

    def take(*_: object) -> tuple[()]:
        nonlocal found
        found += int(run._output.used[0])
        run._output.used[:] = 0
        return ()

    run._take = take  # type: ignore[method-assign, assignment]
    for _ in (*run.push(batch), *run.rest()):
        pass
    return found


def rows_of(query: Any, batch: pa.RecordBatch) -> int:
    """The number of rows of `match_arrow`."""
    return sum(len(rows) for rows in query.match_arrow([batch]))


def environment(script: str, events: int) -> dict[str, Any]:
    """What a record must say besides its figures."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": f"python {script} " + " ".join(sys.argv[1:]),
        "events": events,
        "commit": _commit(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
    }


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

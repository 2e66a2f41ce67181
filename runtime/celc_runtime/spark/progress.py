"""The progress of a Spark job: `match(df, progress=True)`.

`match` runs nothing, so there is no progress until an action runs its DataFrame. Then a line says
how many tasks Spark has done. In the end a line says how many matches were found and left
undecided, and further lines tell the numbers of `explain_plan` as they were measured. The counts
are Spark's own metrics (`DataFrame.observe`), which come with the first action and are exact if it
reads everything. Tasks are those of the whole session: neither a classic session nor Connect says
which action a task belongs to before the task is done.

A classic session is asked twice a second, by a thread that ends with the action; Connect calls
back.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Iterable
from dataclasses import replace
from textwrap import indent
from typing import TYPE_CHECKING, Any, TextIO

from celc_runtime.program import Program
from celc_runtime.spark.answers.undecided import leaves_undecided
from celc_runtime.spark.in_numbers import PlanNumbers, in_numbers
from celc_runtime.spark.input.probe import jobs_told
from celc_runtime.spark.match import AUTO, spark_plan, warn_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_BUSY, _IDLE = 0.5, 2.0
"""Seconds between two looks, while jobs run and while none runs."""

_LAST_WORD = 2.0
"""Seconds that the end of the program waits for the counts of an action that has just ended."""


def watched(
    program: Program,
    events: DataFrame,
    stream: TextIO,
    ranges: int | None,
    *,
    presorted: bool,
    how: str = AUTO,
) -> DataFrame:
    """The matches of a DataFrame; the progress of its first action is written to `stream`."""
    from pyspark.sql import Observation, functions

    rows = functions.count(functions.lit(1)).alias("rows")
    read: list[Any] = []

    def counting(frame: DataFrame) -> DataFrame:
        read.append(Observation())
        return frame.observe(read[-1], rows)

    found = Observation()
    undecided = Observation() if leaves_undecided(program.plan) else None
    with jobs_told() as jobs:
        plan = spark_plan(
            program,
            events,
            ranges,
            presorted=presorted,
            counting=counting,
            undecided=undecided,
            how=how,
        )
    warn_of(plan)
    matches = plan.matches.observe(found, rows)
    numbers = in_numbers(plan.rows(), plan.matches, jobs)
    left = undecided if plan.counts_undecided else None
    watch = _Watch(program.name, numbers, read, found, Line(stream), left)
    if type(events).__module__.startswith("pyspark.sql.connect"):
        _of_session(events.sparkSession).append(watch)
    else:
        watch.follow(events.sparkSession.sparkContext.statusTracker())
    return matches


class Line:
    """A line that is written anew each time in a notebook and on a terminal; elsewhere only its
    last text is written, which may have more lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = 0
        self._live = stream.isatty()
        self._cell = _notebook_cell()

    @property
    def is_live(self) -> bool:
        """Whether more than the last text is shown."""
        return self._live or self._cell is not None

    def show(self, text: str) -> None:
        """Show a text in the place of the last one."""
        if self._cell is not None:
            self._cell.update({"text/plain": text}, raw=True)
        elif self._live:
            first, *more = text.split("\n")
            self._stream.write("\n".join(("\r" + first.ljust(self._width), *more)))
            self._stream.flush()
            self._width = len(first)

    def leave(self) -> None:
        """Let the text stand, because something else may be written next."""
        if self._cell is None and self._live and self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0

    def end(self, text: str) -> None:
        """Show the last text."""
        self.show(text)
        self.leave()
        if not self.is_live:
            self._stream.write(f"{text}\n")
            self._stream.flush()


def _notebook_cell() -> Any:
    """A display in the notebook cell that runs, to be updated; None outside of notebooks."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    if interactive is None or not hasattr(shell, "kernel"):
        return None
    from importlib import import_module

    display = import_module("IPython.display").display
    return display({"text/plain": ""}, raw=True, display_id=True)


class _Watch:
    """One DataFrame until its first action is over."""

    def __init__(
        self,
        name: str,
        numbers: PlanNumbers,
        read: list[Any],
        found: Any,
        line: Line,
        undecided: Any = None,
    ) -> None:
        self._name = name
        self._numbers = numbers
        self._read = read
        self._found = found
        self._undecided = undecided
        self._line = line
        self._seen = False
        self._over = threading.Event()

    def running(self, done: int, tasks: int, active: int) -> None:
        """Show the numbers of tasks that Spark runs."""
        self._seen = True
        if not self._over.is_set():
            self._line.show(f"{self._name}: {done} of {tasks} tasks done, {active} running")

    def ended(self, tracker: Any = None) -> bool:
        """Whether an action that has ended was this DataFrame's; if so, its counts are shown."""
        matches = self._found.get
        if "rows" not in matches:
            self._line.leave()
            return False
        self._over.set()
        count = matches["rows"]
        read = sum(observed.get.get("rows", 0) for observed in self._read)
        failed = "; Spark's last job failed" if tracker and _last_failed(tracker) else ""
        said = f"{self._name}: {count:,} match{'es' * (count != 1)}{self._left()}{failed}"
        numbers = replace(self._numbers, rows=self._numbers.rows.measured(read))
        self._line.end(f"{said}\n{indent(str(numbers), '  ')}")
        return True

    def _left(self) -> str:
        """How many matches were left undecided, in words."""
        count = 0 if self._undecided is None else self._undecided.get.get("undecided", 0)
        if not count:
            return ""
        return f", {count:,} undecided (if no more events come: with_options(at_end='closed'))"

    def follow(self, tracker: Any) -> None:
        """Watch a classic session, from threads that do not keep a program from ending."""
        last = threading.Thread(target=self._wait, args=(tracker,), daemon=True)
        last.start()
        if self._line.is_live:
            threading.Thread(target=self._look, args=(tracker,), daemon=True).start()
        # Spark reports the end of an action a moment after the action has returned.
        atexit.register(self._leave, last)

    def _leave(self, last: threading.Thread) -> None:
        if self._seen:
            last.join(_LAST_WORD)

    def _wait(self, tracker: Any) -> None:
        from py4j.protocol import Py4JError

        try:
            self.ended(tracker)  # asking a classic session for counts waits for them
        except (Py4JError, OSError):
            self._over.set()  # the session was closed before any action: nothing to show

    def _look(self, tracker: Any) -> None:
        from py4j.protocol import Py4JError

        while not self._over.wait(_BUSY if self._seen else _IDLE):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except (Py4JError, OSError):
                return
            self._seen = bool(stages)
            if known := [stage for stage in stages if stage is not None]:
                self.running(
                    sum(stage.numCompletedTasks for stage in known),
                    sum(stage.numTasks for stage in known),
                    sum(stage.numActiveTasks for stage in known),
                )


def _last_failed(tracker: Any) -> bool:
    """Whether the newest job of a classic session has failed: its counts are then those of the
    tasks that had not failed."""
    jobs = tracker.getJobIdsForGroup()
    info = tracker.getJobInfo(max(jobs)) if jobs else None
    return info is not None and info.status == "FAILED"


# --- Connect --------------------------------------------------------------------------------------

_watches: dict[int, tuple[Any, list[_Watch]]] = {}
"""The watches of each session, by its id: a session has one handler for all of them, because a
handler cannot be removed while handlers are called."""


def _of_session(session: Any) -> list[_Watch]:
    if id(session) not in _watches:
        watches: list[_Watch] = []

        def handler(
            stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool
        ) -> None:
            if done:
                watches[:] = [watch for watch in watches if not watch.ended()]
                return
            known = list(stages or ())
            for watch in watches:
                watch.running(
                    sum(stage.num_completed_tasks for stage in known),
                    sum(stage.num_tasks for stage in known),
                    inflight_tasks,
                )

        session.registerProgressHandler(handler)
        _watches[id(session)] = (session, watches)
    return _watches[id(session)][1]

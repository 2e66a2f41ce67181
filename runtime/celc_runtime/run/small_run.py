"""A run over few rows, which come in one batch that has been checked.

Of a hundred rows, kernels take a tenth of a call. So a run whose parts keep nothing between batches
is not made anew for each call: its memory is wiped, and the next call takes it. Calls never share
one: a run waits with its program, and a call takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.events.columns import Prepared
from celc_runtime.arrow.late_rows import LateRows
from celc_runtime.engine.arena.batch import Batch
from celc_runtime.engine.arena.nodes import DONE, FIRED, start_again
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import MatchRows
from celc_runtime.run.choice.choices import ChoiceOfRun
from celc_runtime.run.feeding import read_all
from celc_runtime.run.function_errors import naming_functions
from celc_runtime.run.run import Run
from celc_runtime.run.run_of import parts_of_run
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.update.updates import BranchFreePiles, PileUpdate
from celc_runtime.run.walk.many_matches import ManyMatches
from celc_runtime.run.walk.walks import AllWalk, RunsWalk

_KEEP_NOTHING = {PileUpdate, BranchFreePiles, AllWalk, RunsWalk, ChoiceOfRun, MatchRows}
"""The parts of a run that need not be told of the end of a batch, nor of the input."""

_MOST_WAITING = 2  # runs of one query

_SMALL = RunOptions(is_small=True)


class SmallRun(Run):
    """Reads few rows, all at once; where its parts keep nothing, others after them (`is_ready`)."""

    _code: Any = None  # the machine code of the update, for arguments of the types that come
    _was_used = False  # by a call before this one

    def __init__(self, program: Program) -> None:
        super().__init__(program, *parts_of_run(program, _SMALL), _SMALL)
        of_run = self._update, self._walk, self._choice, self._answer
        self._keeps_nothing = all(type(part) in _KEEP_NOTHING for part in of_run)
        self._first_output = self._output

    @property
    def is_ready(self) -> bool:
        """Whether it can read other rows now. Buffers that have grown are not kept."""
        return (
            self._keeps_nothing
            and self._output is self._first_output
            and len(self._memory.nodes) == _SMALL.nodes
        )

    @naming_functions
    def matches(self, rows: LateRows) -> Iterator[pa.RecordBatch]:
        """The rows of the answer to all events."""
        if not self._keeps_nothing:
            yield from read_all(self, [rows])
            return
        reading = self._source.taken(rows)
        batch = reading.prepared.batch
        self._answer.enter(reading, 0, self._kept_rows(batch))
        status = self._read(batch)
        if status != DONE or self._memory.counters[FIRED] or self._output.used[0]:
            self._many = ManyMatches(self._plan, self._walk)
            yield from self._listed(reading, status)
        if reading.prepared.tied is not None:
            self.finish()
        start_again(self._memory)
        self._answer.store.let_go()
        self._was_used = True

    def _was_last(self, prepared: Prepared) -> bool:
        return not (self._walk.reads_alone or self._plan.choice.deadlines)

    def _read(self, batch: Batch) -> int:
        if self._code is not None:
            return int(self._code(batch, self._memory, self._output, self._kinds))
        status = super()._read(batch)
        kernel: Any = getattr(self._update, "kernel", None)
        if self._was_used and getattr(kernel, "is_compiled", False):
            # To find the types of thirty arrays takes twice as long as to read a hundred rows, and
            # to look them up takes longer than that.
            arguments = batch, self._memory, self._output, self._kinds
            self._code = kernel.code_for(arguments)
        return status


def matches_of_few(program: Program, rows: LateRows) -> list[pa.RecordBatch]:
    """The matches of few rows. Several threads may call it for one program."""
    waiting: list[SmallRun] = program.kept.setdefault("waiting", [])
    try:
        run = waiting.pop()  # so that no other call has it
    except IndexError:
        run = SmallRun(program)
    found = list(run.matches(rows))
    if run.is_ready and len(waiting) < _MOST_WAITING:
        waiting.append(run)
    return found

"""Runs whose rows are about groups of matches: what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.program import Program
from celc_runtime.run.run import Run
from celc_runtime.run.source.stretches import Stretches


def of_single_matches(program: Program) -> Program:
    """The program whose answer are the matches that the rows of another one are about."""
    plan = replace(program.plan, totals=None, collapsed=False, positions=True)
    return replace(program, plan=plan)


class GroupedRun(Run):
    """Feeds batches to a query, and hands out rows about groups of its matches.

    A row is handed out when no later match can be in its group: where each group is of one end,
    after the batch with this end; where matches are decided later, or groups have several ends,
    when the partition or the input is over. `are_of_ends`: each group is of one end.
    """

    def __init__(self, program: Program, *, are_of_ends: bool, **options: Any) -> None:
        super().__init__(of_single_matches(program), **options)
        self._of_groups = program.plan
        self._rows_schema = program.output_schema
        self._at_ends = are_of_ends and not program.plan.deadlines
        self._by_parts = not (program.plan.deadlines or program.plan.interleaves)

    def push(
        self,
        events: pa.RecordBatch,
        positions: np.ndarray | None = None,
        absent: np.ndarray | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read a batch of events; yields the rows that are known."""
        yield from self._rows_of(self._pushed(events, positions, absent))

    def push_parts(
        self, events: pa.RecordBatch, codes: np.ndarray, parts: np.ndarray, positions: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """Read whole partitions; yields the rows that are known."""
        yield from self._rows_of(self._pushed_parts(events, codes, parts, positions))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows that wait for more events, of which there are none."""
        for matches in self._rest():
            self._add(matches)
        yield from self._taken(but_last_part=False)

    def end_of_instant(self) -> Iterator[pa.RecordBatch]:
        """The rows of an instant that waits for more events: there are none of it."""
        yield from self._rows_of(self._end_of_instant())

    def push_stretches(self, stretches: Stretches) -> Iterator[pa.RecordBatch]:
        """Read stretches of partitions, the only events of this run; yields the rows of the matches
        that end in rows that are not silent."""
        for matches in super().push_stretches(stretches):
            self._add(matches)
        yield from self._taken(but_last_part=False)

    def _rows_of(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for matches in found:
            self._add(matches)
        if self._at_ends:
            yield from self._taken(but_last_part=False)
        elif self._by_parts:
            yield from self._taken(but_last_part=True)

    def _add(self, matches: pa.RecordBatch) -> None:
        """Take in matches."""
        raise NotImplementedError

    def _taken(self, *, but_last_part: bool) -> Iterator[pa.RecordBatch]:
        """The rows that wait, which do so no longer; `but_last_part`: without those of the
        partition that came last."""
        raise NotImplementedError

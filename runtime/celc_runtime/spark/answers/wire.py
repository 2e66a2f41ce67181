"""How matches travel from the tasks to Spark.

The driver chooses one of three ways, and sends it with the task:

============ ====================================================================================
`Wire`       a row is a match; labels of one event are columns (`single_labels`)
`Factorised` a row holds all matches that end at one event (`factorised`)
`Compact`    a row is a compact answer (`compact`)
============ ====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.program import Program, ShippedFunction
from celc_runtime.rules.any_query import new_run
from celc_runtime.run.feeding import ReadsRanges
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.answers.compact import compact_wire_ddl, under_sent_names, with_form
from celc_runtime.spark.answers.factorised import (
    Factors,
    factorised_ddl,
    factorised_run,
    factors_of,
    taken_apart,
)
from celc_runtime.spark.answers.single_labels import wire_ddl, with_lists, with_single_fields
from celc_runtime.spark.answers.undecided import DDL as UNDECIDED_DDL
from celc_runtime.spark.answers.undecided import counted, with_undecided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


class Wire:
    """One row for each match."""

    line = ""
    """The line about it in a plan."""

    def __init__(self, program: Program, counts: bool = False) -> None:
        """counts: each task sends one more row, with the number of its undecided matches."""
        self._program = program
        self._counts = counts

    def __reduce__(self) -> Any:
        made = ShippedFunction(self._program, "match", type(self))
        return made, (self._counts,)

    @property
    def ddl(self) -> str:
        """The columns that travel, in Spark's notation."""
        ddl = wire_ddl(self._program.plan)
        if not self._counts:
            return ddl
        return f"{ddl}, {UNDECIDED_DDL}" if ddl else UNDECIDED_DDL

    def new_run(self, program: Program, options: RunOptions) -> ReadsRanges:
        """A fresh run, whose rows are to be packed."""
        return new_run(program, options)

    def pack(
        self, found: Iterator[pa.RecordBatch], undecided: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """The rows that a task sends.

        undecided: numbers of undecided matches, complete once `found` has been read.
        """
        plan = self._program.plan
        sent = (with_single_fields(plan, batch) for batch in found)
        if not self._counts:
            return sent
        nothing = pa.RecordBatch.from_pylist([], schema=self._program.output_schema)
        return with_undecided(with_single_fields(plan, nothing).schema, sent, undecided)

    def unpack(self, sent: DataFrame, undecided: Observation | None = None) -> DataFrame:
        """The answer, from all that tasks send; `undecided` observes their numbers."""
        if self._counts:
            sent = counted(sent, undecided)
        return with_lists(self._program.plan, sent)


class Factorised(Wire):
    """One row for the matches that end at one event, for a program that has factors."""

    line = (
        "matches: those that end at one event travel as one row, which Spark takes apart (inline, "
        "explode)"
    )

    @cached_property
    def _factors(self) -> Factors:
        factors = factors_of(self._program)
        assert factors is not None
        return factors

    @property
    def ddl(self) -> str:
        return factorised_ddl(self._factors)

    def new_run(self, program: Program, options: RunOptions) -> ReadsRanges:
        return factorised_run(program, options)

    def pack(
        self, found: Iterator[pa.RecordBatch], undecided: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        return found

    def unpack(self, sent: DataFrame, undecided: Observation | None = None) -> DataFrame:
        return taken_apart(self._program.plan, self._factors, sent)


class Compact(Wire):
    """One row for each compact answer."""

    @property
    def ddl(self) -> str:
        return compact_wire_ddl(self._program.plan)

    def new_run(self, program: Program, options: RunOptions) -> ReadsRanges:
        return new_run(program, options, is_compact=True)

    def pack(
        self, found: Iterator[pa.RecordBatch], undecided: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        return map(under_sent_names, found)

    def unpack(self, sent: DataFrame, undecided: Observation | None = None) -> DataFrame:
        return with_form(self._program, sent)


def wire_of(program: Program, *, is_compact: bool = False, counts: bool = False) -> Wire:
    """The way for a program. counts: as for `Wire`; the other ways ignore it."""
    if is_compact:
        return Compact(program)
    if factors_of(program) is not None:
        return Factorised(program)
    return Wire(program, counts)

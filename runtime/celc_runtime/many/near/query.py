"""The near misses of a table on one machine, and of a DataFrame of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.events.sorting import sorted_for
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.many.groups import reading_all
from celc_runtime.many.near.on_spark import as_on_spark, on_spark
from celc_runtime.many.near.search import Runs, Search
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.near.queries import MATCHES, ROW, TOLD, TOUCHED, NearPlan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program, Rows, ShippedFunction
from celc_runtime.rules.any_query import with_tables
from celc_runtime.rules.inner import over_events, rows_needed
from celc_runtime.spark.answers.compact import is_spark_frame
from celc_runtime.spark.input.pipelines import refuse_in_pipelines
from celc_runtime.values.warned import warn


@dataclass(frozen=True, eq=False)
class NearRuns:
    """A query with its bent forms: `queries` are those of their module, by name."""

    plan: NearPlan
    queries: Mapping[str, Runs]

    @cached_property
    def reading(self) -> Program:
        """A program that reads what all of the queries need of the events of a call; it is never
        run."""
        return reading_all({n: _of_input(query.program) for n, query in self.queries.items()})

    @property
    def answer(self) -> Program:
        """The query that has the columns of a match."""
        return self.queries[self.plan.answer].program

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of a near miss on one machine: those of a match, and what was bent."""
        told = (pa.field(name, arrow_type(type)) for name, type in TOLD.items())
        return pa.schema([*self.answer.output_schema, *told])

    @cached_property
    def bent_reading(self) -> Program:
        """The same of the queries that are run, with the numbers of rows."""
        names = [MATCHES, *(one.name for one in self.plan.bent)]
        reading = reading_all({name: self.queries[name].program for name in names})
        source = reading.plan.source
        kept = tuple(one for one in source.attributes if one.name != TOUCHED)
        plan = replace(reading.plan, source=replace(source, attributes=kept))
        return replace(reading, plan=plan)

    def near_misses(self, events: Any, **parameters: Any) -> Any:
        """The near misses of a table, in the order of their parts and starts; of a DataFrame of
        Spark a DataFrame.

        events: as for `match_table`, or a DataFrame, classic or of Connect, of which each part is
        one task. parameters: of a query FOR EACH its table. A row has the columns of a match, and
        `part`, `line` and `column` (the text of what was bent, and its place), `asked` and `found`,
        and `amount`: how far it was bent, from 0 to 1.

        Warns of how many rows there are because a comparison was taken away; on Spark, where
        nothing has run yet, it does not. Raises what `match_table` and `match` raise.
        """
        given = self.given(parameters)
        if is_spark_frame(events):
            refuse_in_pipelines(events.sparkSession, "match", "call match of the query itself")
            function = ShippedFunction(given, "near_misses", near_of_part)
            return on_spark(function, given, self.output_schema, self.plan, events)
        found = self.of_table(given, events)
        self._tell_of_taken(found)
        return found

    def given(self, parameters: Mapping[str, Any]) -> Program:
        """The query that has the columns of a match, with its table of a call."""
        given = with_tables(self.answer, parameters)
        if given.plan.source.parameters is not None:
            rows_needed(given)
        return given

    def of_table(self, given: Program, events: Any, **options: Any) -> pa.Table:
        """The near misses of a table; `given` is the program of the answer with its parameters.
        options: as `with_options` takes them, of all queries that are run."""
        table = self._read(events)
        asked = self.plan, self.queries, self.output_schema
        found = [
            Search(*asked, table, one, options, self.bent_reading).found()
            for one in _row_by_row(given)
        ]
        return pa.concat_tables([*found, self.output_schema.empty_table()])

    def _tell_of_taken(self, found: pa.Table) -> None:
        """Warn of the rows whose comparison was taken away: they can be ordinary events."""
        taken = [(one.part, one.line, one.column) for one in self.plan.bent if one.taken]
        if not taken:
            return
        told = zip(*(found[name].to_pylist() for name in ("part", "line", "column")), strict=True)
        rows = sum(one in taken for one in told)
        if rows:
            warn(
                f"query {self.plan.query!r}: in {rows:,} of {len(found):,} near misses a "
                "comparison that cannot bend is taken away (parts='all'), so they can be ordinary "
                "events",
                EventWarning,
            )

    def _read(self, events: Any) -> pa.Table:
        """The events with all columns that any query reads, sorted and numbered."""
        table, numbered = sorted_for(self.answer.plan, table_of(self.reading, events))
        if numbered is not None:
            table = table.drop_columns([numbered])
        return table.append_column(ROW, pa.array(np.arange(len(table))))


def _row_by_row(given: Program) -> list[dict[str, Rows]]:
    """The parameters of a program row by row."""
    if given.plan.source.parameters is None:
        return [{}]
    rows, name = rows_needed(given), given.plan.source.parameters.name
    return [{name: rows.take(np.array([number]))} for number in range(rows.count)]


def near_of_part(program: Program, part: pa.Table) -> pa.Table:
    """The near misses of one part on Spark; `program` is that of the answer of a module of near
    misses, with its parameters."""
    near: NearRuns = program.module["NEAR_MISSES"]
    return as_on_spark(near.plan, near.of_table(program, part))


def _of_input(program: Program) -> Program:
    """A program that reads what a query needs of the events of a call; it is never run."""
    plan = program.plan if program.plan.source.parameters is None else over_events(program.plan)
    plan = plan.of_inputs
    kept = tuple(one for one in plan.source.attributes if one.name not in (ROW, TOUCHED))
    return replace(program, plan=replace(plan, source=replace(plan.source, attributes=kept)))

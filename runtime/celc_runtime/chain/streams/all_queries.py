"""The names of a generated module that run all of its queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.arrow.tables.slices import EventsBetween, common_stretch, slice_of
from celc_runtime.chain.all_on_spark import matches_of_module_on_spark
from celc_runtime.chain.all_tables import matches_of_module
from celc_runtime.chain.streams.explain import explain_module
from celc_runtime.chain.streams.match import Call, module_stream
from celc_runtime.many.answers import rows_of
from celc_runtime.many.rules import QueriesOfRules, programs_of
from celc_runtime.plan.errors import EventError
from celc_runtime.program import Program, warn_of_growth
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.spark.answers.compact import check_frame
from celc_runtime.spark.input.parameters import with_their_tables
from celc_runtime.spark.slices import slicing_all
from celc_runtime.stream.finish import kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AllQueries:
    """All queries of a generated module, run in one pass over the events."""

    def __init__(self, queries: Mapping[str, Any]) -> None:
        self._queries = queries
        self._programs = programs_of(queries)

    def match_all(
        self,
        events: DataFrame,
        *,
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> DataFrame:
        """The answers of all queries to a Spark DataFrame, with one scan and one shuffle.

        Each row answers one query. `query` has its name, and the column with this name has the row
        as a struct; the columns of the other queries are NULL. `rows` returns the answer of one
        query as its `match` does. One task reads all queries without PARTITION BY. after, until: as
        `match` takes them, of all queries. parameters: the
        tables of the queries FOR EACH, each by the name of its set and as `match` takes it; queries
        with one set share its table.

        Raises EventError if a query names no order column, the DataFrame does not fit the queries,
        or their names cannot be columns of one table; TypeError where a set has no table or a table
        no set.
        """
        check_frame(events, "match_all", "match_all_table")
        programs = self._entered(Route.ALL, parameters)
        on_spark: Mapping[str, Program]
        on_spark = {name: program.on_spark for name, program in programs.items()}
        on_spark, events, keeps = slicing_all(on_spark, events, (after, until))
        found = matches_of_module_on_spark(on_spark, events)
        return found if keeps is None else keeps(found)

    def match_all_stream(
        self,
        events: DataFrame,
        *,
        tiebreak: str | Sequence[str] | None = None,
        watermark: str = "10 seconds",
        late: str = "drop",
        api: str | None = None,
        allow_unbounded_state: bool = False,
        max_event_time_skew: str | None = None,
        buckets: int | None = None,
        checkpoint: str | None = None,
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> DataFrame:
        """The answers of all queries to a streaming DataFrame, each row once, as soon as it is
        certain.

        Rows are as those of `match_all`, and the options as those of `match_stream`. One
        operator runs all queries but those with another event time, FOR EACH, or with EVENT OTHER:
        one scan and one shuffle. Those with the same PARTITION BY share buckets, and an event that
        is late for one of them is late for all. `celc_runtime.finish` ends
        the stream. With `checkpoint`, a stream goes on with the queries of a changed module: a new
        query begins with the events that arrive from then on, and the state of one that is gone is
        dropped.

        Raises EventError where a query or the DataFrame does not fit a stream, also a query that
        counts events with after and until, StateError where the
        checkpoint has queries that cannot go on, ValueError, TypeError and RuntimeError as
        `match_stream`.
        """
        check_frame(events, "match_all_stream")
        names = None if tiebreak is None else _names(tiebreak)
        programs = self._entered(
            Route.UNBOUNDED if allow_unbounded_state else Route.STREAM, parameters
        )
        on_spark: Mapping[str, Program] = {
            name: program.with_options(tiebreak=names).on_spark
            for name, program in programs.items()
        }
        call = Call(
            watermark,
            late,
            api,
            allow_unbounded_state,
            max_event_time_skew,
            buckets,
            checkpoint,
        )
        if after is not None or until is not None:
            _refuse_positions(on_spark)
        on_spark, events, keeps = slicing_all(on_spark, events, (after, until))
        return kept(module_stream(on_spark, events, names, call), keeps)

    def explain_all_stream(self, events: DataFrame) -> str:
        """The plan of `match_all_stream` for a streaming DataFrame: which queries share an
        operator, which of them their events, and why.

        Raises EventError where a query or the DataFrame does not fit a stream.
        """
        check_frame(events, "explain_all_stream")
        programs = {name: program.on_spark for name, program in self._programs.items()}
        return explain_module(programs, events)

    def match_all_table(
        self, events: Any, *, after: object = None, until: object = None, **parameters: Any
    ) -> dict[str, pa.Table]:
        """The answers of all queries to a table, by name, on this machine and without Spark.

        events, after, until, parameters: as for `match_table`. Raises the same errors, ValueError
        for after or until with queries of several order columns.
        """
        programs = self._entered(Route.ALL_TABLE, parameters)
        slices = {name: slice_of(one, after, until) for name, one in programs.items()}
        made = {name: one for name, one in slices.items() if one is not None}
        if not made:
            return self._by_name(matches_of_module(programs, events))
        for slice in made.values():
            slice.tell()
        read = EventsBetween(events, common_stretch(made.values()))
        found = matches_of_module({name: one.program for name, one in made.items()}, read)
        return self._by_name(
            {
                name: found[name].filter(one.rows.holds(found[name].column(one.rows.column)))
                for name, one in made.items()
            }
        )

    def _by_name(self, found: dict[str, pa.Table]) -> dict[str, pa.Table]:
        if isinstance(self._queries, QueriesOfRules):
            return self._queries.with_all_rules(found)
        return found

    def rows(self, answers: Any, name: str) -> Any:
        """One query's part of the answers of `match_all` or `match_all_table`.

        Raises ValueError for an unknown query, TypeError for other answers.
        """
        if isinstance(self._queries, QueriesOfRules):
            return rows_of(answers, name, self._queries.shapes)
        return rows_of(answers, name, {one: one for one in self._queries})

    def _entered(self, route: Route, tables: Mapping[str, Any]) -> dict[str, Program]:
        """The programs with the tables of a call, if the route can run them all."""
        for program in self._programs.values():
            check(program, route)
        warn_of_growth(self._programs.values())
        return with_their_tables(self._programs, tables)


def _refuse_positions(programs: Mapping[str, Program]) -> None:
    """Raises EventError for a query that shows positions: those of a slice would be others."""
    for name, program in programs.items():
        if program.plan.answer.positions:
            raise EventError(
                f"query {name!r} counts events, so that its answer in match_all_stream has "
                f"positions, and with after or until it has none: run it alone, as in "
                f"module.{name}.match_stream(df, after=…)"
            )


def _names(tiebreak: str | Sequence[str]) -> tuple[str, ...]:
    return (tiebreak,) if isinstance(tiebreak, str) else tuple(tiebreak)

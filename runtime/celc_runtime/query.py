"""A compiled query as its users see it: schemas, and the ways to run it.

Long: all that users call, each with its documentation.

A route is imported when it is first taken: most processes take one, and Spark's, streams and chains
are half of the runtime.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.chain.columns import source_of
from celc_runtime.display import queries_html, query_text
from celc_runtime.plan.errors import EventError, EventWarning
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import input_schema
from celc_runtime.program import Program, ShippedFunction, warn_of_growth
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.rules.any_query import (
    between,
    compact_of_events,
    compact_of_table,
    given_run,
    matches_of_events,
    matches_of_frame,
    matches_of_table,
    sliced_run,
    with_tables,
)
from celc_runtime.rules.inner import rows_needed
from celc_runtime.run.feeding import Reads
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.threads import check_threads
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from celc_runtime.chain.on_spark import ChainPlan
    from celc_runtime.spark.match import SparkPlan


class CompiledQuery:
    """One query of a generated module, as its users call it. Made by generated modules only."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __repr__(self) -> str:
        return query_text(self.plan)

    def _repr_html_(self) -> str:
        return queries_html([self.plan], self.text)

    @property
    def plan(self) -> Plan:
        """The query as data: its columns, order, window and output."""
        return self.program.plan

    @property
    def name(self) -> str:
        """The query's name."""
        return self.plan.name

    @property
    def text(self) -> str:
        """The text of the file that the query was compiled from."""
        return self.program.text

    @property
    def order_by(self) -> tuple[str, ...]:
        """The order columns; empty: the events are read in the order in which they come."""
        return self.plan.source.order_by

    @property
    def input_schema(self) -> pa.Schema:
        """The columns that the query reads, directly or through the queries that it reads."""
        return input_schema(source_of(self.program).plan)

    @property
    def file_schema(self) -> pa.Schema:
        """The columns to read from a file: the input columns, and the tiebreak columns (NULL: in
        the type that the file has)."""
        return source_of(self.program).file_schema

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of a match, as `match_table`, `match_arrow` and `match_pandas` give it."""
        return self.program.output_schema

    @property
    def output_ddl(self) -> str:
        """The columns of a match in Spark's notation, for `mapInArrow` and `applyInPandas`."""
        return self.plan.output_ddl()

    # The names of a generated module: a query among several can be used like a module of one query.
    QUERY_NAME = name
    ORDER_BY = order_by
    INPUT_SCHEMA = input_schema
    OUTPUT_SCHEMA = output_schema
    OUTPUT_DDL = output_ddl

    def with_parameters(self, /, **parameters: Any) -> CompiledQuery:
        """The same query with the table of its parameter set, so that no call need be given it.

        parameters: of a query FOR EACH the table, by the name of the set: in any form that events
        can have, or a DataFrame of Spark, which is collected now. Of equal rows one counts. All
        ways to run the query take the table as well, by the same name. Raises TypeError for a table
        of another name and for what is no table, EventError where it does not fit its declaration.
        """
        return CompiledQuery(_with_tables(self.program, parameters))

    def run(
        self,
        *,
        ties_are_errors: bool = False,
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> Reads[pa.RecordBatch]:
        """A fresh run, to be fed batch by batch.

        A query that reads others is fed the events of the declared streams. after, until: as for
        `match_table`; events that are not needed for them can be left out, and are not read.
        parameters: of a query FOR EACH its table, as `with_parameters` takes it. Such a run yields
        matches row by row.
        """
        program = self._entered(Route.RUN, parameters)
        options = RunOptions(ties_are_errors=ties_are_errors)
        new = partial(self._run, options=options)
        return sliced_run(program, (after, until), new, source_of)

    @staticmethod
    def _run(program: Program, options: RunOptions) -> Reads[pa.RecordBatch]:
        if program.plan.source.reads:
            from celc_runtime.chain.tables import chain_run

            return chain_run(program, options)
        return given_run(program, options)

    @property
    def match_arrow(self) -> ShippedFunction:
        """The matches of a stream of batches, as batches of bounded size.

        A function from an iterable of record batches, or events in any other form that
        `match_table` takes, to an iterator of record batches. The events come in the order of the
        stream, with PARTITION BY one partition after another (CONSUME BY ANY: in one common order).
        For `mapInArrow` on partitioned and sorted data. Of a query FOR EACH the function takes the
        table by the name of its set too: `query.match_arrow(batches, rule=rows)`, or
        `query.with_parameters(rule=rows).match_arrow` for `mapInArrow`. Its matches come when a
        partition is over. The function takes after and until by name, as `match_table` does.
        """
        from celc_runtime.chain.tables import chain_of_events

        self._enter(Route.ARROW)
        matches = chain_of_events if self.plan.source.reads else matches_of_events
        return ShippedFunction(self.program, "match_arrow", matches)

    @property
    def match_pandas(self) -> ShippedFunction:
        """The matches of a pandas frame, for `df.groupBy(key).applyInPandas(query.match_pandas,
        query.output_ddl)`.

        A function from a frame to a frame. A frame holds the events of one partition, or of
        several, in any order. pandas cannot tell NULL from NaN in a column of numbers, so NaN
        counts as NULL here, and Spark hands over times without their zone, so literals in
        conditions are read in the session's time zone; `match` and `match_arrow` have neither
        limit. The table of a query FOR EACH, after and until are given as to `match_arrow`.
        """
        from celc_runtime.chain.tables import chain_of_frame

        self._enter(Route.PANDAS)
        matches = chain_of_frame if self.plan.source.reads else matches_of_frame
        return ShippedFunction(self.program, "match_pandas", matches)

    def _enter(self, route: Route) -> None:
        """Refuse what the route cannot run, and tell the caller of a method what may take long."""
        if route not in self.program.kept:
            check(self.program, route)
            self.program.kept[route] = True
        warn_of_growth([self.program])

    def _entered(self, route: Route, tables: Mapping[str, Any]) -> Program:
        """The program with the tables of a call to a route.

        Raises TypeError for tables that the query does not take, and where one is lacking.
        """
        program = _with_tables(self.program, tables)
        if program.plan.source.parameters is not None:
            rows_needed(program)
        self._enter(route)
        return program

    def match_table(
        self,
        events: Any,
        *,
        max_matches: int | None = None,
        threads: int | None = None,
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> pa.Table:
        """All matches of a table, on this machine and without Spark.

        events: a pyarrow Table, RecordBatch, RecordBatchReader or dataset, record batches one
        after another, a data frame of pandas or polars (a LazyFrame is run), a relation of DuckDB,
        anything else with `__arrow_c_stream__`, a dictionary of columns, or the path of a Parquet
        file. Of other columns than the query reads nothing is copied. Rows are sorted by PARTITION
        BY and the order columns where they are not sorted yet; rows equal in all of them keep their
        order. max_matches: stop after so many in all, with an EventWarning that says so; LIMIT in a
        query is for each event that ends a match. threads: how many cores to use; None: those that
        this process may use from half a million rows on, and one for fewer rows, or inside a task
        of Spark. The answer and its order are the same for any number. A small table
        is read by one thread, and so is a query that is one scan by its meaning, as `celc explain`
        says. after, until: values of the first order column;
        the rows that become known (`decided_time`, else `end_time`) after the one and up to the
        other, without positions. No event up to `until` may be missing; then slices of time are
        together the answer to all events. parameters: of a query FOR EACH the table of its
        parameter set, by the name of the set and in any form that events can have; of equal rows
        one counts. Its matches are found row by row, and then put in order: max_matches leaves
        those of the first rows, in that order.

        Raises TypeError for what is no table, EventError where it does not fit the query, and where
        the query has no slices, and ValueError for numbers and times that cannot be.
        """
        check_threads(threads)
        program, events, keeps = between(
            self._entered(Route.TABLE, parameters), events, after, until
        )
        first = FirstMatches(max_matches, keeps=keeps)
        if self.plan.source.reads:
            from celc_runtime.chain.tables import chain_of_table

            found = chain_of_table(program, events, first, threads)
        else:
            found = matches_of_table(program, events, first, threads=threads)
        if first.are_all:
            warn(
                f"query {self.name!r} was stopped after {max_matches:,} "
                f"match{'' if max_matches == 1 else 'es'} (max_matches); there may be more",
                EventWarning,
            )
        return found

    def match_compact(
        self,
        events: Any,
        *,
        ranges: int | None = None,
        presorted: bool = False,
        threads: int | None = None,
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> Any:
        """All matches as graphs: one row for each event that ends matches.

        events: as for `match_table`, which gives a pyarrow Table; or a DataFrame of Spark, which
        gives a DataFrame, by the plan of `match`. ranges, presorted: as for `match`, for Spark
        alone. threads, after, until: as for `match_table`. A row has the partition attributes, the
        end, and the matches as `events` and `nodes`; its size is bounded by the events of the
        window and the query, however many matches there are. `celc_runtime.expand` gives the rows
        of `match_table` back. parameters: of a query FOR EACH its table, as for `match_table`; each
        row of the table has graphs of its own.

        Raises EventError where no graph says which matches there are (uncertain time,
        SELECT FIRST and LONGEST, absences at the end, aggregates of the query's file), and as
        `match_table` and `match` do.
        """
        from celc_runtime.spark.answers.compact import is_spark_frame

        check_threads(threads)
        program = self._entered(Route.COMPACT, parameters)
        reads = bool(program.plan.source.reads)
        if is_spark_frame(events):
            from celc_runtime.chain.on_spark import chain_compact_on_spark
            from celc_runtime.spark.input.pipelines import refuse_in_pipelines
            from celc_runtime.spark.match import spark_compact
            from celc_runtime.spark.slices import slicing

            if threads is not None:
                raise ValueError("threads are for a table on this machine: leave them out")
            refuse_in_pipelines(events.sparkSession, "match_compact", "call match")
            program, events, keeps = slicing(program.on_spark, events, (after, until))
            found = chain_compact_on_spark if reads else spark_compact
            graphs = found(program, events, ranges, presorted=presorted)
            return graphs if keeps is None else keeps(graphs)
        if ranges is not None or presorted:
            raise ValueError("ranges and presorted are for a DataFrame of Spark: leave them out")
        program, events, keeps = between(program, events, after, until)
        if reads:
            from celc_runtime.chain.tables import chain_compact

            return chain_compact(program, events, keeps, threads)
        return compact_of_table(program, events, keeps, threads=threads)

    def expand(self, compact: Any, limit: int | None = None) -> Any:
        """`celc_runtime.expand`, also where a standalone module brings the runtime."""
        from celc_runtime.expanding import expand

        return expand(compact, limit)

    @property
    def match_compact_arrow(self) -> ShippedFunction:
        """`match_compact` of a stream of batches, as batches of bounded size; see `match_arrow`."""
        self._enter(Route.COMPACT)
        if self.plan.source.reads:
            from celc_runtime.chain.tables import chain_compact_of_events

            return ShippedFunction(self.program, "match_compact_arrow", chain_compact_of_events)
        return ShippedFunction(self.program, "match_compact_arrow", compact_of_events)

    def match(
        self,
        events: DataFrame,
        *,
        ranges: int | None = None,
        presorted: bool = False,
        progress: bool | TextIO = False,
        plan: str = "auto",
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> DataFrame:
        """All matches of a Spark DataFrame, `df.transform(query.match)`.

        They have positions where `with_options(positions=True)` asks for them, or the query counts
        events.
        Partitions are spread over the cluster by PARTITION BY. Without it, a query with a window is
        run on several time ranges side by side where its meaning allows that, and so is a partition
        that is much larger than the others; else one task reads everything. `explain_plan` shows
        the choice, and its reasons.

        ranges: how many time ranges to cut the stream into (or for how many tasks large partitions
        are cut); 1: none; None: as many as tasks run at a time, if the DataFrame comes from files
        or a cache and is large enough. To find the ranges, jobs are run at once that read the
        order and partition columns. presorted: the events of each partition are in one Spark
        partition and in order; they are not shuffled or sorted again. progress: show how far the
        first action is, on standard error, in the notebook, or on the given stream, and at its end
        how many rows were read, and how many matches were found and left undecided. plan: "joins"
        finds the matches by joins of Spark, without Python, for patterns of a few single events;
        "kernel" by the query's own code; "auto" chooses, as `explain_plan` tells. after, until: as
        for `match_table`; the events that are read for them are a filter on the order column, which
        reaches the files. parameters: of a query FOR EACH the table of its parameter set, by the
        name of the set: a DataFrame, which is collected now, or a table in any form that
        `match_table` takes. It is sent to all tasks.

        Raises EventError where the query names no order column, or the DataFrame does not fit it,
        ValueError for options that cannot be, and where no joins say what the query says.
        """
        from celc_runtime.chain.on_spark import chain_matches
        from celc_runtime.spark.answers.compact import check_frame
        from celc_runtime.spark.input.declared import declared_events
        from celc_runtime.spark.match import spark_matches
        from celc_runtime.spark.progress import watched
        from celc_runtime.spark.slices import slicing

        check_frame(events, "match")
        events = declared_events(source_of(self.program).plan, events)
        if plan == "joins":
            program = _with_tables(self.program, parameters).on_spark
        else:
            program = self._entered(Route.SPARK, parameters).on_spark
        program, events, keeps = slicing(program, events, (after, until))
        if program.plan.source.reads and plan != "joins":
            found = chain_matches(program, events, ranges, presorted=presorted, progress=progress)
        elif progress is False:
            found = spark_matches(program, events, ranges, presorted=presorted, how=plan)
        else:
            stream = sys.stderr if progress is True else progress
            found = watched(program, events, stream, ranges, presorted=presorted, how=plan)
        return found if keeps is None else keeps(found)

    def explain_plan(
        self,
        events: DataFrame,
        *,
        ranges: int | None = None,
        presorted: bool = False,
        plan: str = "auto",
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> str:
        """The plan of `match` for a DataFrame, or of `match_stream` for a stream, its reasons in
        words, and what it costs in numbers as far as they are known before the run.

        Looks at the data as `match` does, but finds no matches; plan, after, until and parameters
        as `match` takes them. Raises ValueError for `ranges` or
        `presorted` with a stream.
        """
        from celc_runtime.arrow.tables.slices import slice_of
        from celc_runtime.spark.answers.compact import check_frame
        from celc_runtime.spark.slices import events_of

        check_frame(events, "explain_plan")
        program = _with_tables(self.program, parameters).on_spark
        if program.plan.source.parameters is not None and plan != "joins":
            rows_needed(program)
        slice = slice_of(program, after, until)
        if slice is not None:
            program, events = slice.program, events_of(slice, events)
        text = self._plan_text(program, events, ranges, presorted=presorted, plan=plan)
        if slice is None:
            return text
        head, _, rest = text.partition("\n")
        return f"{head}\n{slice.line()}\n{rest}"

    @staticmethod
    def _plan_text(
        program: Program, events: DataFrame, ranges: int | None, *, presorted: bool, plan: str
    ) -> str:
        from celc_runtime.chain.on_spark import chain_plan
        from celc_runtime.spark.in_numbers import in_numbers
        from celc_runtime.spark.input.probe import jobs_told
        from celc_runtime.spark.match import spark_plan
        from celc_runtime.stream.explain import explain_stream

        if events.isStreaming:
            if ranges is not None or presorted:
                raise ValueError("a stream has no ranges and no order: leave out ranges, presorted")
            if program.plan.source.reads:
                from celc_runtime.chain.streams.explain import explain_chain

                return explain_chain(program, events)
            return explain_stream(program, events)
        found: ChainPlan | SparkPlan
        with jobs_told() as jobs:
            if program.plan.source.reads and plan != "joins":
                found = chain_plan(program, events, ranges, presorted=presorted)
            else:
                found = spark_plan(program, events, ranges, presorted=presorted, how=plan)
        return f"{found.text}\n{in_numbers(found.rows(), found.matches, jobs)}"

    def match_stream(
        self,
        events: DataFrame,
        *,
        event_time: str | None = None,
        tiebreak: str | Sequence[str] | None = None,
        watermark: str = "10 seconds",
        late: str = "drop",
        api: str | None = None,
        allow_unbounded_state: bool = False,
        max_event_time_skew: str | None = None,
        key_ttl: str | None = None,
        buckets: int | None = None,
        checkpoint: str | None = None,
        emit: str = "final",
        after: object = None,
        until: object = None,
        **parameters: Any,
    ) -> DataFrame:
        """All matches of a streaming DataFrame: the rows that `match` gives on the same events, in
        append mode, each as soon as the watermark has passed its last event.

        event_time: the TIMESTAMP column that orders events; None: the query's first order column.
        tiebreak: columns that tell apart events of one time, as in `with_options`. watermark: by
        how much events may come out of order, as '10 seconds' or '1 hour 30 minutes'. late: what
        happens to late events, up to whose time their partition has been run: 'drop' counts them,
        'error' ends the stream, 'side' returns them between the matches with a column `kind`, for
        `celc_runtime.split_late`. api: Spark's interface for the operator, 'row' (PySpark 4.1) or
        'pandas'; None: the faster one available. allow_unbounded_state: run a query whose state the
        window does not bound. max_event_time_skew: events further ahead of the clock than this do
        not move the watermark, and are treated like late events. key_ttl: forget a partition, with
        its positions, this long after its last event. buckets: into how many buckets partitions are
        hashed, each of which is run and kept as a whole; fixed for a checkpoint; None: the number
        in `checkpoint`, or four for each task that keeps states; without PARTITION BY there is one.
        checkpoint: the stream's checkpoint; it is refused here if `celc_runtime.finish` has ended
        it or another query has written it (without this option the first micro-batch refuses
        another query's). emit: when rows of SELECT TOTAL … PER PARTITION come: 'final', at
        `finish`; 'running', one for each end at which matches end, with the totals of its partition
        so far, and the columns of PER END. after, until: as for `match_table`, so that a stream
        goes on where a batch ended, or where another query did; what happened before is read again
        as far as the query asks for it, and with `until` the stream does not end. parameters: the
        table of a query FOR EACH, as `match` takes it; its rows are fixed for a checkpoint. Of a
        set with VALID it can be a streaming DataFrame, whose rows come before their `since`.

        Needs PySpark 4.0. Sets Spark's RocksDB state store in a session that names no store, and
        says so. Raises EventError where
        the query or the DataFrame does not fit a stream, ValueError for options that cannot be,
        TypeError where `buckets` is no whole number, RuntimeError for a session that cannot run it.
        """
        from celc_runtime.spark.answers.compact import check_frame
        from celc_runtime.spark.input.declared import declared_events
        from celc_runtime.spark.slices import slicing
        from celc_runtime.stream.emitted import emitting
        from celc_runtime.stream.finish import kept

        check_frame(events, "match_stream")
        events = declared_events(source_of(self.program).plan, events)
        query = self
        if tiebreak is not None:
            query = query.with_options(tiebreak=tiebreak)
        query = query._at(event_time)
        route = Route.UNBOUNDED if allow_unbounded_state else Route.STREAM
        changing = _changing_table(query.program, parameters)
        if changing is None:
            program = query._entered(route, parameters).on_spark
        else:
            query._enter(route)
            program = query.program.on_spark
        program, events, keeps = slicing(emitting(program, emit), events, (after, until))
        found = _streamed(
            program,
            events,
            key_ttl,
            changing,
            watermark=watermark,
            late=late,
            api=api,
            allow_unbounded_state=allow_unbounded_state,
            max_event_time_skew=max_event_time_skew,
            buckets=buckets,
            checkpoint=checkpoint,
        )
        return kept(found, keeps)

    def _at(self, event_time: str | None) -> CompiledQuery:
        """The query in the order of a column that it names, or of one that it is given."""
        order = self.plan.source.order_by
        if event_time is None or order[:1] == (event_time,):
            return self
        if order:
            raise ValueError(
                f"query {self.name!r} is ordered by {', '.join(order)}, so its "
                f"event time is {order[0]!r}, not {event_time!r}: use "
                f"with_options(order_by={event_time!r}) first, or leave out event_time"
            )
        return self.with_options(order_by=event_time)

    def register(
        self,
        spark: SparkSession,
        name: str | None = None,
        *,
        sorts: bool = False,
        **parameters: Any,
    ) -> Any:
        """Makes the query a table function of a Spark session, called like the query or `name`.

        `SELECT * FROM name(TABLE(events) PARTITION BY (key) ORDER BY (ts))`; a query without
        PARTITION BY, or with CONSUME BY ANY, takes its table WITH SINGLE PARTITION. Returns the
        function, for `function(df.asTable().partitionBy("key").orderBy("ts"))`. Needs PySpark 4.1.

        sorts: each task holds its rows and sorts them itself, which costs less than Spark's sort:
        `SELECT * FROM name(TABLE(SELECT * FROM events DISTRIBUTE BY key))`. A task then needs
        memory or a temporary file for all its rows.

        parameters: of a query FOR EACH its table, as `match` takes it; the function brings its rows
        along.

        Raises EventError where the query has no order column; ValueError for a name that SQL
        cannot call or that a function of Spark has, and where a query's rows cannot be sorted by
        tasks.
        """
        from celc_runtime.spark.sql import registered

        program = self._entered(Route.SQL, parameters).on_spark
        if program.plan.source.reads:
            from celc_runtime.chain.sql import registered_chain

            return registered_chain(program, spark, name, sorts=sorts)
        return registered(program, spark, name, sorts=sorts)

    def with_options(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        tiebreak: str | Sequence[str] | None = None,
        ties: str | None = None,
        max_work: int | None = None,
        type_column: str | None = None,
        positions: bool | None = None,
        at_end: str | None = None,
        clock: object = None,
        match_id: bool | None = None,
    ) -> CompiledQuery:
        """The same query with other order columns, tiebreak columns or limits; schemas follow.

        order_by: attributes that the query declares. tiebreak: any columns that can be sorted.
        ties: "simultaneous" for events that are equal in all order columns; the query must have
        been compiled so.
        max_work: steps that conditions across events may take at one event without finding a match
        before WorkLimitError is raised. type_column: the column of the event types, where that is
        not `type`; a query of one event type reads it as well once it is named. positions: whether
        the output has start_pos, end_pos and the field pos of labels (a label that shows nothing
        else has no column without them). Where nothing is said, it has them on one machine, and on
        Spark only where the query counts events (WITHIN 5 EVENTS); without them Spark leaves out
        rows that can change nothing. at_end: "closed" where no more events come after the input, so
        that all matches with an absence at their end (`A ; !B FOR 1 HOUR`) are decided; "open":
        only those are matches that no later event could undo. clock: the time of the first order
        column up to which the whole input reaches, or a DataFrame of Spark with all events, whose
        latest time a job finds now; for routes that see some partitions alone, and where `match`
        need not look for it. match_id: whether the first column is `match_id`, 16 bytes that tell a
        match from all others and are the same on every route: a hash of its partition, and of the
        order and the values that the query reads of its events, by label. None leaves a choice as
        it is. Raises ValueError for a column or a number that cannot serve, and where no column of
        the output would be left, EventError for a DataFrame without events.
        """
        changed = self.program.with_options(
            order_by=order_by,
            tiebreak=tiebreak,
            ties=ties,
            max_work=max_work,
            type_column=type_column,
            positions=positions,
            at_end=at_end,
            match_id=match_id,
        )
        if clock is not None:
            from celc_runtime.spark.answers.compact import is_spark_frame

            frame: Any = clock
            if is_spark_frame(frame):
                from celc_runtime.chain.on_spark import latest_time
                from celc_runtime.spark.input.pipelines import refuse_in_pipelines

                refuse_in_pipelines(
                    frame.sparkSession, "clock=… with a DataFrame", "give the time itself"
                )
                clock = latest_time(changed, frame)
            changed = changed.with_options(clock=clock)
        return CompiledQuery(changed)

    def __reduce__(self) -> Any:
        return self.program.shipped.__reduce__()


def _streamed(
    program: Program,
    events: DataFrame,
    key_ttl: str | None,
    changing: DataFrame | None,
    **options: Any,
) -> DataFrame:
    """The matches of a query on a stream, by the operator for one query or for several. changing:
    the table of parameters that is a stream as well."""
    if changing is not None:
        from celc_runtime.stream.changing_match import changing_matches

        return changing_matches(program, events, changing, key_ttl=key_ttl, **options)
    if not program.plan.source.reads:
        from celc_runtime.stream.match import stream_matches

        return stream_matches(program, events, key_ttl=key_ttl, **options)
    from celc_runtime.chain.streams.match import Call, chain_stream

    if key_ttl is not None:
        raise EventError(
            f"query {program.name!r} reads other queries, and key_ttl would forget partitions of "
            "each at other times: leave it out"
        )
    return chain_stream(program, events, Call(**options))


def _changing_table(program: Program, tables: Mapping[str, Any]) -> Any:
    """The table of parameters among those of a call that is a stream of Spark; None: none is."""
    if not any(type(table).__module__.startswith("pyspark.sql") for table in tables.values()):
        return None
    from celc_runtime.stream.changing_match import changing_table

    return changing_table(program, tables)


def _with_tables(program: Program, tables: Mapping[str, Any]) -> Program:
    """A program with tables of parameters, those of Spark collected."""
    return with_tables(program, {name: _collected(program, name, tables[name]) for name in tables})


def _collected(program: Program, name: str, table: Any) -> Any:
    if not type(table).__module__.startswith("pyspark.sql"):
        return table
    from celc_runtime.spark.input.parameters import collected

    return collected(program, name, table)


_SHOWN = 100  # names that a message lists, at most

_NAMES_OF_ALL = ("explain_all_stream", "match_all", "match_all_stream", "match_all_table", "rows")

_MODULE_NAMES = (
    "INPUT_SCHEMA",
    "ORDER_BY",
    "OUTPUT_DDL",
    "OUTPUT_SCHEMA",
    "QUERY_NAME",
    "expand",
    "explain_plan",
    "match",
    "match_arrow",
    "match_compact",
    "match_compact_arrow",
    "match_pandas",
    "match_stream",
    "match_table",
    "register",
    "with_options",
    "with_parameters",
)


def module_names(
    queries: Mapping[str, CompiledQuery],
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a generated module: its queries by name, the ways to run all
    of them at once, and in a module of one query its attributes as well."""
    of_query = _MODULE_NAMES if len(queries) == 1 else ()
    names = [*queries, *of_query, *_NAMES_OF_ALL]

    def attribute(name: str) -> Any:
        # A query may be called like one of these names; QUERIES has it then.
        if name in of_query:
            (query,) = queries.values()
            return getattr(query, name)
        if name in _NAMES_OF_ALL:
            from celc_runtime.chain.streams.all_queries import AllQueries

            return getattr(AllQueries(queries), name)
        if name in queries:
            return queries[name]
        shown = names if len(names) <= _SHOWN else [*names[:_SHOWN], "…"]
        raise AttributeError(f"a module of celc with {', '.join(shown)} has no {name!r}")

    return attribute, lambda: ["CELC_VERSION", "QUERIES", "QUERY", *names]

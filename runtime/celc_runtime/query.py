"""A compiled query as its users see it: schemas, and the ways to run it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from celc_runtime.by_definition import Definition
from celc_runtime.checked import Checks, checked_listing
from celc_runtime.display import queries_html, query_text
from celc_runtime.errors import EventWarning
from celc_runtime.forms import batches_of, table_of
from celc_runtime.frames import pandas_matches
from celc_runtime.joins import Joins
from celc_runtime.output import FirstMatches
from celc_runtime.paths import received
from celc_runtime.plan import Plan
from celc_runtime.progress import watched
from celc_runtime.range_reader import ShippedRange, matches_in_ranges
from celc_runtime.run import Run
from celc_runtime.selection import Earliest, Selection
from celc_runtime.shipping import pickled
from celc_runtime.spark import spark_matches, spark_plan
from celc_runtime.sql import TaskStream, registered
from celc_runtime.stream import stream_matches
from celc_runtime.stream_tasks import (
    PartitionTask,
    StreamFormats,
    finished,
    options_of,
    packed,
    unpacked,
)
from celc_runtime.table import sorted_for

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession


class Route:
    """One way to run a query: a function that Spark can send to its workers.

    A bound method would do, were it not that Spark's pickler refers to a method's function by the
    module it is defined in, which a worker need not have.
    """

    def __init__(self, query: CompiledQuery, name: str, function: Callable[..., Any]) -> None:
        self._query = query
        self._name = name
        self._function = function

    def __repr__(self) -> str:
        return f"<{self._name} of query {self._query.name!r}>"

    def __call__(self, *arguments):  # type: ignore[no-untyped-def]
        # Not one named argument: Spark counts those, `self` included, and would take a second one
        # for a wish to be handed a group's key. And no type: where there is one it asks for the
        # types of all arguments, of a function, and warns that this is none.
        return self._function(*arguments)

    def __reduce__(self) -> Any:
        return getattr, (self._query, self._name)


class CompiledQuery:
    """One query of a generated module.

    Made by generated modules only: from the plan, the compiled kernels, the `globals()` of the
    module, which is how its text is found when the query is shipped to a Spark worker, the
    automaton of a selector under WITHIN, and for conditions across events what is kept apart by
    keys, what is checked while matches are listed, or the formula of a query run by definition.
    """

    def __init__(
        self,
        plan: Plan,
        classify: Callable[..., None],
        update: Callable[..., int],
        module: dict[str, Any],
        selection: Selection | Earliest | None = None,
        *,
        definition: Definition | None = None,
        joins: Joins | None = None,
        checks: Checks | None = None,
    ) -> None:
        self.plan = plan
        self.selection = selection
        self.definition = definition
        self.joins = joins
        self.checks = checks
        self.listing: Callable[..., int] | None = None
        if checks is not None:
            self.listing = checked_listing(checks.admits, checks.completes)
        self.classify = classify
        self.update = update
        self._module = module
        self._output_schema: pa.Schema | None = None

    def __repr__(self) -> str:
        return query_text(self.plan)

    def _repr_html_(self) -> str:
        return queries_html([self.plan], self.text)

    @property
    def name(self) -> str:
        """The query's name."""
        return self.plan.name

    @property
    def text(self) -> str:
        """The text of the file that the query was compiled from."""
        return str(self._module["QUERY"])

    @property
    def sees_all(self) -> bool:
        """Whether matches depend on events before the window, whatever they are."""
        return self.definition is not None and self.definition.sees_all

    @property
    def order_by(self) -> tuple[str, ...]:
        """The order columns; none: the events are taken in the order they come in."""
        return self.plan.order_by

    @property
    def input_schema(self) -> pa.Schema:
        """The columns that the query reads."""
        return self.plan.input_schema()

    @property
    def file_schema(self) -> pa.Schema:
        """The columns to read from a file: the input columns, and the tiebreak columns (NULL: in
        the type that the file has)."""
        known = self.plan.input_schema()
        if not self.plan.type_column:
            # A file may have the column all the same; then it is honoured.
            known = known.append(pa.field(self.plan.type_name, pa.string()))
        extra = [name for name in self.plan.tiebreak if name not in known.names]
        return pa.schema([*known, *(pa.field(name, pa.null()) for name in extra)])

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of a match."""
        if self._output_schema is None:
            # Runs of a few events ask for it, and making it takes longer than they do.
            self._output_schema = self.plan.output_schema()
        return self._output_schema

    @property
    def output_ddl(self) -> str:
        """The columns of a match in Spark's notation."""
        return self.plan.output_ddl()

    # The names of the architecture's module table, so that a query of a file with several can be
    # used like a module of one.
    QUERY_NAME = name
    ORDER_BY = order_by
    INPUT_SCHEMA = input_schema
    OUTPUT_SCHEMA = output_schema
    OUTPUT_DDL = output_ddl

    def run(self, *, ties_are_errors: bool = False) -> Run:
        """A fresh run, to be fed batch by batch."""
        return Run(self, ties_are_errors=ties_are_errors)

    @property
    def match_arrow(self) -> Route:
        """The matches of a stream of batches, as batches of bounded size.

        A function from an iterable of record batches, or events in any other form that
        `match_table` takes, to an iterator of record batches. The events come in the order of the
        stream, with PARTITION BY one partition after another (CONSUME BY ANY: in one common order).
        For `mapInArrow` on partitioned and sorted data.
        """
        return Route(self, "match_arrow", self._match_arrow)

    @property
    def match_arrow_without_ties(self) -> Route:
        """`match_arrow` for a distributed table: two events that the order leaves equal are an
        error."""
        return Route(self, "match_arrow_without_ties", self._match_arrow_without_ties)

    @property
    def match_pandas(self) -> Route:
        """The matches of a pandas frame, for `df.groupBy(key).applyInPandas(query.match_pandas,
        query.output_ddl)`.

        A function from a frame to a frame. A frame holds the events of one partition, or of
        several, in any order. pandas cannot tell NULL from NaN in a column of numbers, so NaN
        counts as NULL here, and Spark hands over times without their zone, so literals in
        conditions are read in the session's time zone; `match` and `match_arrow` have neither
        limit.
        """
        return Route(self, "match_pandas", self._match_pandas)

    @property
    def ranges_route(self) -> Route:
        """What a Spark task runs that reads time ranges: a function from the name of the column
        that numbers them (none: there is one), the ranges, and batches."""
        return Route(self, "ranges_route", self._match_ranges)

    def _match_ranges(
        self, column: str, ranges: tuple[ShippedRange, ...], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return matches_in_ranges(self, column, ranges, map(received, batches))

    def _match_arrow(self, events: Any) -> Iterator[pa.RecordBatch]:
        return self._matches(batches_of(self, events), ties_are_errors=False)

    def _match_arrow_without_ties(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return self._matches(map(received, batches), ties_are_errors=True)

    def _match_pandas(self, frame: pandas.DataFrame) -> pandas.DataFrame:
        return pandas_matches(self, frame)

    def _matches(
        self, batches: Iterable[pa.RecordBatch], *, ties_are_errors: bool
    ) -> Iterator[pa.RecordBatch]:
        return self._read(Run(self, ties_are_errors=ties_are_errors), batches)

    @staticmethod
    def _read(run: Run, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from run.push(batch)
        run.finish()

    def match_table(self, events: Any, *, max_matches: int | None = None) -> pa.Table:
        """All matches of a table, on this machine and without Spark.

        events: a pyarrow Table, RecordBatch, RecordBatchReader or dataset, record batches one
        after another, a data frame of pandas or polars (a LazyFrame is run), a relation of DuckDB,
        anything else with `__arrow_c_stream__`, a dictionary of columns, or the path of a Parquet
        file. Of other columns than the query reads nothing is copied. Rows are sorted by PARTITION
        BY and the order columns where they are not sorted yet; rows equal in all of them keep their
        order. max_matches: stop after so many in all, with an EventWarning that says so; LIMIT in a
        query is for each event that ends a match.

        Raises TypeError for what is no table, EventError where it does not fit the query, and
        ValueError for a number of matches that cannot be.
        """
        first = FirstMatches(max_matches)
        table, numbered = sorted_for(self.plan, table_of(self, events))
        run = Run(self, numbered=numbered)
        matches = first.of(self._read(run, table.to_batches(max_chunksize=1 << 22)))
        found = pa.Table.from_batches(matches, self.output_schema)
        if first.are_all:
            warnings.warn(
                f"query {self.name!r} was stopped after {max_matches:,} "
                f"match{'' if max_matches == 1 else 'es'} (max_matches); there may be more",
                EventWarning,
                stacklevel=2,
            )
        return found

    def match(
        self,
        events: DataFrame,
        *,
        ranges: int | None = None,
        presorted: bool = False,
        progress: bool | TextIO = False,
    ) -> DataFrame:
        """All matches of a Spark DataFrame, `df.transform(query.match)`.

        Partitions are spread over the cluster by PARTITION BY. Without it, a query with a window is
        run on several time ranges side by side where its meaning allows that, and so is a partition
        that is much larger than the others; else one task reads everything. `explain_plan` says
        what was chosen, and why.

        ranges: how many time ranges to cut the stream into (or for how many tasks large partitions
        are cut); 1: none; None: as many as tasks run at a time, if the DataFrame comes from files
        or a cache and is large enough. To find the ranges, jobs are run at once that read the
        order and partition columns. presorted: the events of each partition are in one Spark
        partition and in order; they are not shuffled or sorted again. progress: tell what the first
        action is at, on standard error, in the notebook, or on the stream that is given, and at its
        end how many rows were read and matches found.

        Raises EventError where the query names no order column, or the DataFrame does not fit it.
        """
        if progress is False:
            return spark_matches(self, events, ranges, presorted=presorted)
        stream = sys.stderr if progress is True else progress
        return watched(self, events, stream, ranges, presorted=presorted)

    def explain_plan(
        self, events: DataFrame, *, ranges: int | None = None, presorted: bool = False
    ) -> str:
        """What `match` does with a DataFrame, and why, in words.

        Looks at the data as `match` does, but finds no matches.
        """
        return spark_plan(self, events, ranges, presorted=presorted).text

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
        checkpoint: str | None = None,
    ) -> DataFrame:
        """All matches of a streaming DataFrame: the rows that `match` gives on the same events, in
        append mode, each as soon as the watermark has passed its last event.

        event_time: the TIMESTAMP column that orders events; None: the query's first order column.
        tiebreak: columns that tell apart events of one time, as in `with_options`. watermark: by
        how much events may come out of order, as '10 seconds' or '1 hour 30 minutes'. late: what is
        done with events up to whose time their partition has been run already: 'drop' counts them,
        'error' ends the stream, 'side' returns them between the matches with a column `kind`, for
        `celc_runtime.split_late`. api: Spark's interface for the operator, 'row' (PySpark 4.1) or
        'pandas'; None: the faster one there is. allow_unbounded_state: run a query whose state the
        window does not bound. max_event_time_skew: events further ahead of the clock than this do
        not move the watermark, and are treated like late ones. key_ttl: forget a partition this
        long after its last event, its positions with it. checkpoint: where the stream will be
        started from; one that `celc_runtime.finish` has ended or that another query was run with is
        refused here and now (the latter is in any case, by the first micro-batch).

        Needs PySpark 4.0 and, in the session, Spark's RocksDB state store. Raises EventError where
        the query or the DataFrame does not fit a stream, ValueError for options that cannot be,
        RuntimeError for a session that cannot run it.
        """
        query = self
        if tiebreak is not None:
            query = query.with_options(tiebreak=tiebreak)
        if event_time is not None and query.plan.order_by[:1] != (event_time,):
            if query.plan.order_by:
                raise ValueError(
                    f"query {self.name!r} is ordered by {', '.join(query.plan.order_by)}, so its "
                    f"event time is {query.plan.order_by[0]!r}, not {event_time!r}: use "
                    f"with_options(order_by={event_time!r}) first, or leave out event_time"
                )
            query = query.with_options(order_by=event_time)
        return stream_matches(
            query,
            events,
            watermark=watermark,
            late=late,
            api=api,
            allow_unbounded_state=allow_unbounded_state,
            max_event_time_skew=max_event_time_skew,
            key_ttl=key_ttl,
            checkpoint=checkpoint,
        )

    @property
    def stream_packing_route(self) -> Route:
        """What a stream's rows go through before the shuffle: a function of options and batches."""
        return Route(self, "stream_packing_route", self._packed)

    @property
    def stream_task_route(self) -> Route:
        """What makes the worker's side of a stream's operator, from options."""
        return Route(self, "stream_task_route", self._stream_task)

    @property
    def stream_unpacking_route(self) -> Route:
        """What makes rows of what the operator gives: a function of options and batches."""
        return Route(self, "stream_unpacking_route", self._unpacked)

    @property
    def stream_finishing_route(self) -> Route:
        """What runs the rest of a stream: a function of options and batches of states."""
        return Route(self, "stream_finishing_route", self._finished)

    def check_stream_state(self, options: dict[str, Any], state: bytes) -> None:
        """Raises StateError where bytes are not a state of this query on a stream."""
        StreamFormats(self, options_of(options)).states.read(state)

    def _finished(
        self, options: dict[str, Any], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return finished(self, options_of(options), batches)

    def _packed(
        self, options: dict[str, Any], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return packed(self, options_of(options), batches)

    def _stream_task(self, options: dict[str, Any]) -> PartitionTask:
        return PartitionTask(self, options_of(options))

    def _unpacked(
        self, options: dict[str, Any], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        return unpacked(self, options_of(options), batches)

    def register(self, spark: SparkSession, name: str | None = None) -> Any:
        """Makes the query a table function of a Spark session, called like the query or `name`.

        `SELECT * FROM name(TABLE(events) PARTITION BY (key) ORDER BY (ts))`; a query without
        PARTITION BY, or with CONSUME BY ANY, takes its table WITH SINGLE PARTITION. Returns the
        function, for `function(df.asTable().partitionBy("key").orderBy("ts"))`. Needs PySpark 4.1.
        Raises EventError where the query has no order column, ValueError for a name that SQL
        cannot call or that a function of Spark has.
        """
        return registered(self, spark, name)

    @property
    def task_stream(self) -> TaskStream:
        """What instances of the table function share in a task."""
        return TaskStream(self)

    def with_options(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        tiebreak: str | Sequence[str] | None = None,
        max_work: int | None = None,
        type_column: str | None = None,
        positions: bool | None = None,
    ) -> CompiledQuery:
        """The same query with other order columns, tiebreak columns or limits; schemas follow.

        order_by: attributes that the query declares. tiebreak: any columns that can be sorted.
        max_work: steps that conditions across events may take at one event without finding a match
        before WorkLimitError is raised. type_column: the column of the event types, where that is
        not `type`; a query of one event type reads it as well once it is named. positions: whether
        the output has start_pos, end_pos and the field pos of labels (a label that shows nothing
        else has no column without them); where it has not, `match` leaves out rows that can change
        nothing. None leaves a choice as it is. Raises ValueError for a column or a number that
        cannot serve, and where no column of the output would be left.
        """
        plan = self.plan
        if order_by is not None:
            plan = _ordered(plan, _given_names(order_by))
        if tiebreak is not None:
            plan = replace(plan, tiebreak=_given_names(tiebreak))
        if max_work is not None:
            if type(max_work) is not int or not 1 <= max_work <= _MOST_WORK:
                raise ValueError(
                    f"max_work must be a whole number from 1 to {_MOST_WORK}, not {max_work!r}"
                )
            plan = replace(plan, max_work=max_work)
        if type_column is not None:
            plan = _typed(plan, type_column)
        if positions is not None:
            if type(positions) is not bool:
                raise ValueError(f"positions must be True or False, not {positions!r}")
            plan = replace(plan, positions=positions)
        if not plan.output_schema().names:
            raise ValueError(
                f"query {plan.name!r} would have no column without positions: select an attribute "
                "or COUNT of a label, or name order columns"
            )
        changed = CompiledQuery(
            plan,
            self.classify,
            self.update,
            self._module,
            self.selection,
            definition=self.definition,
            joins=self.joins,
            checks=self.checks,
        )
        changed.listing = self.listing
        return changed

    def __reduce__(self) -> Any:
        options = {
            "order_by": self.plan.order_by,
            "tiebreak": self.plan.tiebreak,
            "max_work": self.plan.max_work,
            "type_column": self.plan.type_name if self.plan.type_column else None,
            "positions": self.plan.positions,
        }
        return pickled(self._module, options, self.name)


_MOST_WORK = 2**63 - 1
"""What kernels can count."""

_MODULE_NAMES = (
    "INPUT_SCHEMA",
    "ORDER_BY",
    "OUTPUT_DDL",
    "OUTPUT_SCHEMA",
    "QUERY_NAME",
    "explain_plan",
    "match",
    "match_arrow",
    "match_pandas",
    "match_stream",
    "match_table",
    "register",
    "with_options",
)


def module_names(
    queries: dict[str, CompiledQuery],
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a generated module: its queries by name, and where there is
    one query only, what that offers."""
    of_query = _MODULE_NAMES if len(queries) == 1 else ()
    names = [*queries, *of_query]

    def attribute(name: str) -> Any:
        # A query may be called like one of these names; QUERIES has it then.
        if name in of_query:
            (query,) = queries.values()
            return getattr(query, name)
        if name in queries:
            return queries[name]
        raise AttributeError(f"a module of celc with {', '.join(names)} has no {name!r}")

    return attribute, lambda: ["CELC_VERSION", "QUERIES", "QUERY", *names]


def _given_names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _typed(plan: Plan, type_column: str) -> Plan:
    taken = {a.name for a in (*plan.attributes, *plan.order_candidates)}
    if plan.stream_column:
        taken.add("stream")
    if type_column in taken:
        raise ValueError(
            f"query {plan.name!r} cannot read its event types from {type_column!r}, which is "
            "a column of its own: rename one of the two"
        )
    return replace(plan, type_column=True, type_name=type_column)


def _ordered(plan: Plan, order_by: tuple[str, ...]) -> Plan:
    known = {attribute.name for attribute in plan.order_candidates}
    for name in order_by:
        if name not in known:
            raise ValueError(
                f"query {plan.name!r} cannot be ordered by {name!r}: it must be an attribute of "
                f"all its event types; those are: {', '.join(sorted(known)) or 'none'}"
            )
    window = plan.window
    if window is not None and window.unit == "MICROSECONDS" and window.attribute is None:
        types = {a.name: a.type for a in plan.order_candidates}
        if not order_by or types[order_by[0]] not in ("TIMESTAMP", "DATE"):
            raise ValueError(
                f"query {plan.name!r} has a window of time, which needs a TIMESTAMP or DATE as its "
                "first order column"
            )
    read = {attribute.name for attribute in plan.attributes}
    added = tuple(a for a in plan.order_candidates if a.name in order_by and a.name not in read)
    return replace(plan, order_by=order_by, attributes=plan.attributes + added)

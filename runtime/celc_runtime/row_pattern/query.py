"""A query of MATCH_RECOGNIZE as its users call it."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.arrow.arrays import no_rows
from celc_runtime.arrow.tables.event_tables import batches_of, table_of
from celc_runtime.arrow.tables.pandas_frames import frame_of
from celc_runtime.jit.shipping import pickled
from celc_runtime.many.answers import QUERY, check_names, rows_of
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.row_pattern.match_ids import with_match_id
from celc_runtime.row_pattern.on_spark import matched_frame, plan_text, registered
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.run import RowRun
from celc_runtime.row_pattern.schemas import input_schema, output_schema
from celc_runtime.row_pattern.tables import Reader
from celc_runtime.run.feeding import Reads, read_all
from celc_runtime.run.parts import threads_of
from celc_runtime.run.threads import check_threads
from celc_runtime.spark.answers.compact import check_frame
from celc_runtime.spark.in_numbers import ALL, RowNumbers, in_numbers
from celc_runtime.spark.input.columns import column_named
from celc_runtime.spark.input.declared import declared_rows
from celc_runtime.spark.input.pipelines import is_stream
from celc_runtime.spark.input.probe import told_rows

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession

_MOST_WORK = 2**62


class RowPatternQuery:
    """One query of a generated module. Made by generated modules only."""

    def __init__(self, program: RowProgram) -> None:
        self.program = program

    def __repr__(self) -> str:
        types = zip(self.output_schema.names, self.plan.output_types(), strict=True)
        columns = ", ".join(f"{name} {type}" for name, type in types)
        return f"MATCH_RECOGNIZE {self.name}: {columns}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre><p>{html.escape(repr(self))}</p>"

    def __reduce__(self) -> Any:
        options = {"max_work": self.plan.max_work, "match_id": self.plan.match_id}
        return pickled(self.program.module, options, self.name)

    @property
    def plan(self) -> RowPlan:
        """The query as data."""
        return self.program.plan

    @property
    def name(self) -> str:
        """The query's name."""
        return self.plan.name

    @property
    def text(self) -> str:
        """The text that the query was compiled from."""
        return str(self.program.module["QUERY"])

    @property
    def order_by(self) -> tuple[str, ...]:
        """The columns of ORDER BY."""
        return tuple(self.plan.columns[one.column].name for one in self.plan.order_by)

    @property
    def input_schema(self) -> pa.Schema:
        """The columns that the query reads."""
        return input_schema(self.plan)

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the result."""
        return output_schema(self.plan)

    @property
    def output_ddl(self) -> str:
        """The columns of the result in Spark's notation."""
        return self.plan.output_ddl()

    QUERY_NAME = name
    ORDER_BY = order_by
    INPUT_SCHEMA = input_schema
    OUTPUT_SCHEMA = output_schema
    OUTPUT_DDL = output_ddl

    def with_options(
        self, *, max_work: int | None = None, match_id: bool | None = None
    ) -> RowPatternQuery:
        """The same query with other options; None leaves one as it is.

        max_work: the steps that its search may take for one start. match_id: whether the first
        column is `match_id`, 16 bytes that tell a match from all others. Raises ValueError for what
        is no number of steps, and where the result has a column of that name.
        """
        plan = self.plan
        if max_work is not None:
            if type(max_work) is not int or not 1 <= max_work <= _MOST_WORK:
                raise ValueError(
                    f"max_work must be a whole number from 1 to {_MOST_WORK}, not {max_work!r}"
                )
            plan = replace(plan, max_work=max_work)
        if match_id is not None:
            plan = with_match_id(plan) if match_id else replace(plan, match_id=False)
        return RowPatternQuery(replace(self.program, plan=plan))

    def _refuse_slices(self, after: object, until: object) -> None:
        """Raises EventError where a bound is given: rows are known at no time."""
        for bound, route in ((after, Route.AFTER), (until, Route.UNTIL)):
            if bound is not None:
                check(self.program, route)

    def match_table(
        self,
        rows: Any,
        *,
        threads: int | None = None,
        after: object = None,
        until: object = None,
    ) -> pa.Table:
        """The result for a table, on this machine and without Spark.

        rows: a pyarrow Table, RecordBatch, RecordBatchReader or dataset, record batches, a data
        frame of pandas or polars, a relation of DuckDB, a dictionary of columns, or the path of a
        Parquet file; in any order, because the query says the order; rows equal in it keep theirs.
        threads: how many cores to use for partitions of a large table; None: those that this
        process may use, and one inside a task of Spark. The result is the same for any number.
        Raises TypeError for what is no table, EventError where it does not fit the query, and for
        after and until, which queries of CEL take, and ValueError for what is no number of threads.
        """
        check_threads(threads)
        self._refuse_slices(after, until)
        table = table_of(Reader(self.plan).program, rows)
        batches = table.to_batches() or [no_rows(table.schema)]
        threads = threads_of(len(table), threads)
        run = RowRun(self.program, in_parts=False, threads=threads)
        found = read_all(run, batches)
        return pa.Table.from_batches(found, self.output_schema)

    @property
    def match_arrow(self) -> RowRoute:
        """The result for batches that hold one partition after another, as batches, for
        `mapInArrow` on partitioned data; within a partition rows come in any order."""
        return RowRoute(self, "match_arrow", _match_arrow)

    @property
    def match_pandas(self) -> RowRoute:
        """The result for a pandas frame of one partition or of several, as a frame, for
        `df.groupBy(key).applyInPandas(query.match_pandas, query.output_ddl)`; rows come in any
        order. NaN counts as NULL, and times have no zone, as in `match_pandas` of CEL."""
        return RowRoute(self, "match_pandas", _match_pandas)

    @property
    def match_derived(self) -> RowRoute:
        """The result as batches, for rows to which Spark has added the derived columns."""
        return RowRoute(self, "match_derived", _match_derived)

    def run(self) -> Reads[pa.RecordBatch]:
        """A fresh run, to be fed batch by batch, one partition after another; within a partition
        rows come in any order. It yields the result for partitions that are over."""
        return RowRun(self.program, in_parts=True)

    def match(self, rows: DataFrame, *, after: object = None, until: object = None) -> DataFrame:
        """The result for a Spark DataFrame, `df.transform(query.match)`: spread over the cluster by
        PARTITION BY, else by one task. Raises EventError for after and until, which queries of CEL
        take."""
        check_frame(rows, "match")
        self._refuse_slices(after, until)
        rows = declared_rows(self.plan, rows)
        if is_stream(rows):
            return self.match_stream(rows)
        return matched_frame(self.plan, self.match_derived, rows)

    def explain_plan(self, rows: DataFrame) -> str:
        """How `match` or, for a stream, `match_stream` runs on a DataFrame, in words and, for
        `match`, in numbers."""
        if rows.isStreaming:
            from celc_runtime.row_pattern.streams.match import explain_rows

            return explain_rows(self.program, rows)
        numbers = RowNumbers(told_rows(rows), ALL, ALL)
        text = plan_text(self.plan, rows)
        return f"{text}\n{in_numbers(numbers, self.match(rows), jobs=())}"

    def register(self, spark: SparkSession, name: str | None = None) -> Any:
        """Make the query a table function of Spark SQL:

            SELECT * FROM name(TABLE(t) PARTITION BY (k) ORDER BY (ts))

        Needs PySpark 4.1. Raises RuntimeError where that is missing, ValueError for a name that SQL
        cannot call.
        """
        return registered(self.plan, self.match_arrow, spark, name)

    def match_stream(
        self,
        rows: DataFrame,
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
    ) -> DataFrame:
        """The result for a streaming DataFrame: the rows that `match` gives on the same rows, in
        append mode, each as soon as the watermark has passed its last row and no later row can
        change its match.

        tiebreak: columns that tell apart rows which are equal in ORDER BY. allow_unbounded_state:
        run a query whose pattern has loops and no WITHIN, so that a partition may keep its rows for
        ever. watermark, late, api, max_event_time_skew, buckets, checkpoint: as `match_stream` of a
        query of CEL takes them. Needs PySpark 4.0. Raises EventError where the query or the
        DataFrame does not fit a stream, and for after and until, ValueError for options that cannot
        be, RuntimeError for a session that cannot run it.
        """
        from celc_runtime.row_pattern.streams.match import stream_rows

        check_frame(rows, "match_stream")
        self._refuse_slices(after, until)
        rows = declared_rows(self.plan, rows)
        names = () if tiebreak is None else (tiebreak,) if isinstance(tiebreak, str) else tiebreak
        return stream_rows(
            self.program,
            (self.stream_step, self.stream_task),
            rows,
            tiebreak=tuple(names),
            watermark=watermark,
            late=late,
            api=api,
            allow_unbounded_state=allow_unbounded_state,
            max_event_time_skew=max_event_time_skew,
            buckets=buckets,
            checkpoint=checkpoint,
        )

    @property
    def stream_step(self) -> RowRoute:
        """The steps of `match_stream` before and after its operator, for Spark's workers."""
        return RowRoute(self, "stream_step", _stream_step)

    @property
    def stream_task(self) -> RowRoute:
        """What its operator runs."""
        return RowRoute(self, "stream_task", _stream_task)


class AllRowPatterns:
    """The query of a module, by the names of modules with several."""

    def __init__(self, query: RowPatternQuery) -> None:
        self._query = query

    def match_all_table(self, rows: Any) -> dict[str, pa.Table]:
        """The result of `match_table` by the query's name."""
        return {self._query.name: self._query.match_table(rows)}

    def match_all(self, rows: DataFrame) -> DataFrame:
        """The result of `match` as a module of several queries gives it: a column `query`, and the
        rows as a struct in a column called like the query.

        Raises EventError for a query that is called `query`.
        """
        from pyspark.sql import functions

        name = self._query.name
        check_names([name])
        found = self._query.match(rows)
        row = functions.struct(*map(column_named, found.columns))
        own = row.cast(f"struct<{self._query.output_ddl}>").alias(name)
        return found.select(functions.lit(name).alias(QUERY), own)

    def rows(self, answers: Any, name: str) -> Any:
        """The query's part of the answers of `match_all` or `match_all_table`.

        Raises ValueError for another query, TypeError for other answers.
        """
        return rows_of(answers, name, {self._query.name: self._query.name})


class RowRoute:
    """A way to run a query that Spark can send to its workers; see `ShippedFunction`."""

    def __init__(self, query: RowPatternQuery, name: str, function: Callable[..., Any]) -> None:
        self._query = query
        self._name = name
        self._function = function

    def __call__(self, *arguments):  # type: ignore[no-untyped-def]
        return self._function(self._query, *arguments)

    def __reduce__(self) -> Any:
        return getattr, (self._query, self._name)


def _match_arrow(query: RowPatternQuery, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    batches = batches_of(Reader(query.plan).program, rows)
    return read_all(RowRun(query.program, in_parts=True), batches)


def _match_pandas(query: RowPatternQuery, frame: pandas.DataFrame) -> pandas.DataFrame:
    return frame_of(query.match_table(frame))


def _match_derived(query: RowPatternQuery, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    return read_all(RowRun(query.program, in_parts=True, derived=True), rows)


def _stream_step(query: RowPatternQuery, *arguments: Any) -> Any:
    from celc_runtime.row_pattern.streams.tasks import run_step

    return run_step(query.program, *arguments)


def _stream_task(query: RowPatternQuery, options: dict[str, Any]) -> Any:
    from celc_runtime.row_pattern.streams.tasks import task_of
    from celc_runtime.stream.tasks import options_of

    return task_of(query.program, options_of(options))


def row_pattern_names(
    queries: dict[str, RowPatternQuery],
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a generated module: its queries by name, `register_all`, and
    in a module of one query what that has."""

    def register_all(spark: SparkSession) -> None:
        """Make each query a table function of Spark SQL, under its name; see `register`."""
        for query in queries.values():
            query.register(spark)

    offered = ["register_all", *(_OF_ONE if len(queries) == 1 else ())]

    def find(name: str) -> Any:
        if name in queries:
            return queries[name]
        if name == "register_all":
            return register_all
        query = next(iter(queries.values()))
        if name in offered:
            return getattr(AllRowPatterns(query) if name in _OF_ALL else query, name)
        if len(queries) == 1 and name in {one.value for one in Route}:
            check(query.program, Route(name))
        raise AttributeError(
            f"the generated module has no {name!r}; it has: {', '.join([*offered, *queries])}"
        )

    return find, lambda: sorted([*offered, *queries, "QUERIES", "QUERY", "CELC_VERSION"])


_OF_ALL = ("match_all", "match_all_table", "rows")
_OF_ONE = (
    *_OF_ALL,
    *("match_table", "match_arrow", "match_pandas", "match", "match_stream", "explain_plan"),
    *("register", "with_options"),
    *("QUERY_NAME", "ORDER_BY", "INPUT_SCHEMA", "OUTPUT_SCHEMA", "OUTPUT_DDL"),
)
"""What a module of one query has of it, besides its name."""

"""A query as a table function of Spark SQL.

    SELECT * FROM fires(TABLE(events) PARTITION BY (station) ORDER BY (ts))
    SELECT * FROM fires(
      TABLE(events) PARTITION BY (station) ORDER BY (ts), clock => (SELECT MAX(ts) FROM events)
    )

An `arrow_udtf`: Spark sorts, hands over batches that never hold two partitions, and makes one
instance of a class for each partition. All instances of a task share one run, for two reasons. A
run of its own costs each partition 30 µs to make and 100 µs for buffers that no cache holds yet,
beside the 330 µs of a batch of a hundred rows. And only a run that sees all partitions of a task
can find that the table is partitioned otherwise than the query.

With `sorts=True` the rows of a task come in no order, and are sorted when all have come, as those
of `match` are (`sorted_rows`): that costs less than Spark's own sort.

Spark refuses `analyze()` for this kind of function, so the function knows nothing but the rows that
come. Two things cannot be checked: that a query of the whole stream reads all of it, and that all
rows of a partition reach one task. Rejected: a UDTF of rows, which can have `analyze()` and with it
ask for order and partitions itself, but costs 37 µs a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.arrow.events.partition_keys import partition_keys
from celc_runtime.arrow.tables.event_tables import entered
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, ShippedFunction
from celc_runtime.routes.features import CLOCK_OF_ALL, CLOCKED
from celc_runtime.rules.any_query import new_run
from celc_runtime.run.feeding import Reads
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.spark.input.columns import spark_type
from celc_runtime.spark.worker.sorted_rows import HeldRows, sorted_table, why_not_sorted
from celc_runtime.spark.worker.task_sort import why_spark_sorts

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def registered(
    program: Program,
    spark: Any,
    name: str | None,
    *,
    sorts: bool = False,
    streams: tuple[type[TaskStream], type[TaskStream]] | None = None,
) -> Any:
    """A query's table function, registered in a Spark session; see `CompiledQuery.register`.

    streams: of its tasks, for rows that Spark sorts and for rows that come in no order; None: those
    of a query that reads no others.
    """
    from pyspark.sql import functions

    called = program.name if name is None else name
    check_function(spark, called, "fires")
    sorted_by_spark, sorting = streams or (TaskStream, SortingStream)
    stream = (sorting if sorts else sorted_by_spark)(program)
    plan = stream.reading.plan
    if sorts and (why := why_spark_sorts(plan, _declared_types(plan))):
        raise ValueError(
            f"query {program.name!r} cannot be registered with sorts=True, because {why}: leave "
            "sorts out, and write ORDER BY or SORT BY in the call"
        )
    function = functions.arrow_udtf(_handler(stream), returnType=program.output_ddl)
    return spark.udtf.register(called, function)


def check_function(spark: Any, name: str, example: str) -> None:
    """Raise where a session cannot have a table function of a name. example: a name that it can.

    Raises RuntimeError for an old PySpark, ValueError for the name, TypeError for no session.
    """
    from pyspark.sql import functions

    if not hasattr(functions, "arrow_udtf"):
        from pyspark import __version__

        raise RuntimeError(
            f"a table function for SQL needs PySpark 4.1 or newer, and this is {__version__}: "
            "install a newer one, or use match(df) and register its result as a view"
        )
    written = f"as in register(spark, name={example!r})"
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(
            f"SQL cannot call a function {name!r}: choose a name of letters, digits and _, "
            f"{written}"
        )
    if not hasattr(spark, "tvf"):
        raise TypeError(f"register takes a SparkSession, and this is {type(spark).__name__}")
    if hasattr(spark.tvf, name.lower()):
        raise ValueError(
            f"Spark SQL has a table function {name!r} of its own, which this one would replace: "
            f"choose another name, {written}"
        )


def _declared_types(plan: Plan) -> dict[str, str]:
    """The types of the columns to sort by, as far as the query declares them; those of the others
    are seen with the rows."""
    declared = {one.name: spark_type(one.type) for one in plan.source.attributes}
    return dict.fromkeys(plan.source.tiebreak, "bigint") | declared


def _handler(stream: TaskStream) -> type:
    """The class of which Spark makes an instance for each partition.

    Its methods mention no name but `stream`: Spark's pickler sends the class itself, because no
    module has it by name, but refers to other names in its methods by their modules. There is no
    `terminate` where a match is found at its last event, so that none waits for the end of a
    partition; but where simultaneous events have no order, one can wait for the end of an instant.
    """

    class Matches:
        def __init__(self) -> None:
            stream.begin()

        def eval(
            self, events: pa.RecordBatch, clock: pa.Array | None = None
        ) -> Iterator[pa.RecordBatch]:
            stream.tell(clock)
            return stream.read(events)

        def cleanup(self) -> None:
            stream.end()

    if not stream.waits:
        return Matches

    class MatchesOfInstants(Matches):
        def terminate(self) -> Iterator[pa.RecordBatch]:
            return stream.rest()

    return MatchesOfInstants


class TaskStream:
    """The events of one task as a table function sees them: partition after partition.

    Unpickled once in each task, so all instances of the class in a task share it. `reading` is a
    program that reads the events.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self.reading = self._reading_of(program)
        self._run: Reads[pa.RecordBatch] | None = None
        self._is_told = False
        self._begins = False
        self._last: tuple[object, ...] | None = None

    def __reduce__(self) -> Any:
        return ShippedFunction(self._program, "register", type(self)), ()

    def _reading_of(self, program: Program) -> Program:
        return program

    def _new_run(self) -> Reads[pa.RecordBatch]:
        return new_run(self._program, RunOptions(ties_are_errors=True))

    @property
    def waits(self) -> bool:
        """Whether matches can wait for the end of a partition."""
        plan = self._program.plan
        late = bool(plan.choice.deadlines) or plan.choice.per_start is not None
        late |= plan.answer.totals is not None and plan.answer.totals.per != "END"
        return plan.source.takes_ties or late or plan.source.parameters is not None

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The matches that wait for more events: the partition is over."""
        if self._run is not None:
            yield from self._run.rest()

    def begin(self) -> None:
        """A partition of the table begins."""
        self._begins = True

    def tell(self, clock: pa.Array | None) -> None:
        """The clock of a call, in each of its rows; None: the call has none.

        Raises EventError where the query needs one and where it can have none, ValueError for a
        value that is no time of the order column.
        """
        if self._is_told:
            return
        self._is_told = True
        program, order = self._program, self._program.plan.source.order_by[0]
        if clock is None and CLOCK_OF_ALL.is_in(program):
            raise EventError(
                f"query {program.name!r}: whether a match with an absence at its end is decided "
                f"depends on the greatest {order!r} of all partitions, which a task does not see: "
                f"write clock => (SELECT MAX({order}) FROM …) behind the table, or say that the "
                "input is over with with_options(at_end='closed')"
            )
        if clock is None:
            return
        if not CLOCKED.is_in(program):
            raise EventError(
                f"query {program.name!r} has no absence at its end that a clock decides, or its "
                "input is over: leave out clock"
            )
        self._program = program.with_options(clock=clock[0].as_py())

    def read(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The matches that end in a batch. Raises EventError where the order leaves two events
        equal, and where the partitions of the table are smaller than those of the query."""
        if not len(events):
            return
        for batch in entered(self.reading, pa.Table.from_batches([events])):
            yield from self._pushed(batch)

    def _pushed(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The matches that end in a batch of events with all their columns."""
        if self._run is None:
            self._run = self._new_run()
        self._check_partition(events)
        yield from self._run.push(events)

    def end(self) -> None:
        """The task ends."""
        if self._run is not None:
            self._run.finish()

    def _check_partition(self, events: pa.RecordBatch) -> None:
        plan = self.reading.plan
        whole = plan.interleaves or not plan.source.partition_by
        keys: list[tuple[object, ...]] = [()] if whole else partition_keys(plan, events)
        if not keys:
            return
        first = keys[0]
        # Spark takes each NaN for a partition of its own; the run does not, and that is right.
        is_nan = "NaN" in first
        if self._begins and first == self._last and (self.waits or not is_nan):
            if is_nan:
                raise EventError(
                    f"query {plan.name!r} has matches that wait for the end of their partition, "
                    "and a table function of Spark ends a partition after each row where "
                    f"{', '.join(plan.source.key_columns)} is NaN: use match(df), or give it the "
                    "table without such rows"
                )
            if whole:
                raise EventError(
                    f"query {plan.name!r} reads its whole stream in one order, so in SQL it takes "
                    "the table WITH SINGLE PARTITION, not PARTITION BY: "
                    f"TABLE(…) WITH SINGLE PARTITION ORDER BY ({', '.join(plan.source.order_by)})"
                )
            raise EventError(
                f"query {plan.name!r} is partitioned by {', '.join(plan.source.key_columns)}, "
                "but the table by something else: two of its partitions have "
                + ", ".join(
                    f"{name}={value!r}"
                    for name, value in zip(plan.source.key_columns, first, strict=True)
                )
                + f"; write TABLE(…) PARTITION BY ({', '.join(plan.source.key_sql)})"
            )
        self._begins = False
        self._last = keys[-1]


class SortingStream(TaskStream):
    """The events of one task, where the rows of a partition of the table come in no order."""

    waits = True

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._held = HeldRows()
        self._seen = 0

    def begin(self) -> None:
        super().begin()
        self._held.close()
        self._held = HeldRows()

    def read(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Hold what the query reads of a batch. Raises EventError where it does not fit the query,
        and where a column to sort by cannot be sorted here."""
        if not len(events):
            return iter(())
        (events,) = entered(self.reading, pa.Table.from_batches([events]))
        events = conforming(self.reading.plan, events, self._seen)
        self._seen += len(events)
        if why := why_not_sorted(self.reading.plan, events.schema):
            raise EventError(
                f"query {self._program.name!r} was registered with sorts=True, but {why}: register "
                "it without, and write ORDER BY or SORT BY in the call"
            )
        self._held.add(events)
        return iter(())

    def rest(self) -> Iterator[pa.RecordBatch]:
        """All matches: the partition is over, and its rows are sorted and read."""
        for batch in sorted_table(self.reading.plan, self._held.table()):
            yield from self._pushed(batch)
        self._held.close()
        yield from super().rest()

    def end(self) -> None:
        self._held.close()
        super().end()

"""What is known of a query and of the DataFrame that it reads.

What takes a job, or a look at Spark's plans, is asked when it is first wanted, and once. Most of it
is read from the key or the order column alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from celc_runtime.program import Program, growth_line
from celc_runtime.run.ranges import Number, Sample
from celc_runtime.spark.answers.undecided import leaves_undecided
from celc_runtime.spark.file_statistics import DeclaredTypes, FilesTell, told_by_files
from celc_runtime.spark.hot_keys import HotKey, KeySample, hot_keys, sampled_keys
from celc_runtime.spark.input.columns import column_named, needed_columns
from celc_runtime.spark.input.event_types import is_of_types
from celc_runtime.spark.input.key_columns import with_key_columns
from celc_runtime.spark.input.order_column import OrderColumn, ValueColumn
from celc_runtime.spark.input.parameters import planned, rules_line
from celc_runtime.spark.input.pipelines import in_query_function
from celc_runtime.spark.input.probe import (
    Size,
    arrow_line,
    asked,
    is_spread_by,
    parallelism,
    size_of,
    told_rows,
    why_not_read_twice,
)
from celc_runtime.spark.input.pushdown import can_matter, positions_line, why_not_filtered
from celc_runtime.spark.numbering import why_not_numbered
from celc_runtime.spark.steps import Step, applied, told
from celc_runtime.spark.time_ranges import counted, sampled
from celc_runtime.spark.worker.task_sort import why_spark_sorts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_FRACTION_OF_KEYS = 0.01
_FEW_SAMPLED = 10_000

_FEW_ROWS = 1 << 18
"""Rows by which one task reads all keys, if Spark knows that there are hardly more. A shuffle is a
second stage, of several tasks: of 100,000 rows it was 74 of 222 ms of CPU of a job whose function
did nothing."""

_UNDECIDED = (
    "undecided: matches whose absence at the end is not certain yet are left out; "
    "match(df, progress=True) counts them, and with_options(at_end='closed') decides them all"
)


class Facts:
    """What is known of a query on a DataFrame."""

    reading: Sequence[Step]
    """The first steps of each plan, which end with `rows`."""

    types: dict[str, str]
    """The columns of `rows`, and their types as Spark spells them."""

    keys: Sequence[ValueColumn]
    """The columns of PARTITION BY."""

    order: OrderColumn
    """The first column of the order."""

    by_key: bool
    """Whether each key can be read by a task of its own."""

    is_filtered: bool
    """Whether `rows` are only those that can matter."""

    is_numbered: bool
    """Whether the rows that cannot matter are left out once all rows have been numbered."""

    counted_by_files: int | None = None
    """How many rows there are by the statistics of files, once these have been asked."""

    sampled: int | None = None
    """About how many rows can matter, once a sample of them has been read."""

    def __init__(self, program: Program, events: DataFrame) -> None:
        """Raises EventError where the DataFrame does not have the columns that the query reads."""
        plan, in_pipeline = planned(program), in_query_function(events.sparkSession)
        self.all_rows, clock = needed_columns(plan, events), ""
        if plan.asks_for_clock:
            program, clock = with_clock(program, self.all_rows)
            plan = planned(program)
        self.program, self.plan = program, plan
        unfiltered = why_not_filtered(plan)
        self.is_filtered = not unfiltered
        # In a pipeline nobody may ask for the columns that Spark adds: the runs number the rows.
        numbers = bool(unfiltered) and not in_pipeline
        self.is_numbered = numbers and not why_not_numbered(plan)
        self.by_key = bool(plan.source.partition_by) and not plan.interleaves
        names = self.all_rows.schema.names
        told_of = f"{len(names)} of the DataFrame's {len(events.columns)}"
        lines = [
            positions_line(plan),
            clock,
            "" if program.rows is None else rules_line(program.plan, program.rows.count),
            _UNDECIDED if leaves_undecided(plan) else "",
            arrow_line(events.sparkSession),
            growth_line(program) if program.growth else "",
        ]
        self.reading = [
            told(f"columns: {', '.join(names)} ({told_of})"),
            (
                told(f"rows: all are read, because {unfiltered}")
                if unfiltered
                else Step(
                    lambda rows: rows.where(can_matter(plan, self.all_rows.schema)),
                    "rows: those that can change nothing are filtered before they are moved",
                )
            ),
            *map(told, lines),
            Step(partial(with_key_columns, plan)),
        ]
        self.rows = applied(self.reading, self.all_rows)
        # Of a DataFrame whose schema is known already: to ask for another one takes calls of Java.
        known = self.rows if plan.source.chosen_columns else self.all_rows
        types = {field.name: field.dataType.simpleString() for field in known.schema.fields}
        self.types = types
        of, first = plan.source.type_of, plan.source.order_by[0]
        self.keys = [ValueColumn(name, of(name), types[name]) for name in plan.source.key_columns]
        self.order = OrderColumn(first, of(first), types[first])

    # --- of Spark's plans and statistics ----------------------------------------------------------

    @cached_property
    def size(self) -> Size:
        """How large the DataFrame is."""
        return size_of(self.rows)

    @cached_property
    def are_few(self) -> bool:
        """Whether Spark knows that one task reads all keys with less work than several do."""
        most, is_read = self.size
        is_short = most is not None and most <= _FEW_ROWS
        return is_short and is_read and not why_spark_sorts(self.plan, self.types)

    @cached_property
    def told_rows(self) -> str:
        """How many rows there are, as far as Spark knows, in words."""
        return told_rows(self.all_rows)

    @cached_property
    def why_not_read_twice(self) -> str:
        """Why no job should read the rows before the run; empty where one may."""
        return why_not_read_twice(self.rows)

    @cached_property
    def shuffle_tasks(self) -> int:
        """How many tasks there are behind a shuffle."""
        return int(self.rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)

    def files(self, ranges: int) -> FilesTell:
        """The statistics of files, as many as a cut into this number of ranges needs."""
        source, types = self.plan.source, None
        typed = source.type_name in self.rows.columns and not source.rest
        if not self.is_filtered and typed:
            # Else all rows have positions, or the query needs none.
            names = () if source.stream_column else [name for _, name in source.declared_types]
            types = DeclaredTypes(source.type_name, tuple(names))
        found = told_by_files(self.all_rows, self.order, ranges, types)
        self.counted_by_files = None if found.unknown else found.sample.rows
        return found

    # --- by jobs ----------------------------------------------------------------------------------

    @cached_property
    def parallelism(self) -> int:
        """How many tasks run at a time."""
        return parallelism(self.rows)

    def sample(self, *, whole: bool) -> Sample:
        """The quantiles of the order; `whole`: of all rows where a sample of them is small."""
        found = sampled(self._drawn, self.order, whole=whole)
        self.sampled = found.rows
        return found

    def counted(self, borders: Sequence[Number]) -> list[int]:
        """How many rows there are between borders."""
        return counted(self._declared_rows, self.order, borders)

    @cached_property
    def key_sample(self) -> KeySample:
        """A sample of the rows, counted by their keys."""
        found = sampled_keys(self._drawn, self.keys, _FRACTION_OF_KEYS)
        self.sampled = found.estimated
        return found

    def hot_keys(self, tasks: int, *, asked_for: bool) -> list[HotKey]:
        """The keys with more than a task's share of the work.

        `asked_for`: the caller wants them found, even if that takes a look at all rows, and even if
        their ranges read many rows twice.
        """
        sample, window = self.key_sample, self.plan.whole_window
        assert window is not None
        if asked_for and sample.total < _FEW_SAMPLED:
            sample = sampled_keys(self._drawn, self.keys, 1)
        reach = window, self.plan.farthest_deadline
        rows = self._declared_rows
        return hot_keys(rows, sample, self.keys, self.order, reach, tasks, always=asked_for)

    @cached_property
    def knows_spread(self) -> bool:
        """Whether Spark knows that each key is in one of its partitions."""
        return is_spread_by(*self._named_keys)

    @cached_property
    def key_in_parts(self) -> Row | None:
        """A key that lies in more than one of Spark's partitions, and in how many; None: no key
        does."""
        from pyspark.sql import functions

        keys, names = self._named_keys
        places = keys.select(*names, functions.spark_partition_id().alias("place")).distinct()
        counts = places.groupBy(*names).agg(functions.count(functions.lit(1)).alias("places"))
        found = asked(counts.where("places > 1").limit(1), "where the keys lie")
        return found[0] if found else None

    # --- the rows that are asked about ------------------------------------------------------------

    @property
    def _named_keys(self) -> tuple[DataFrame, list[str]]:
        names = [f"key{number}" for number in range(len(self.keys))]
        columns = (key.column.alias(name) for key, name in zip(self.keys, names, strict=True))
        return self._declared_rows.select(*columns), names

    @cached_property
    def _declared_rows(self) -> DataFrame:
        """The rows of declared types, which alone have positions, and rows without a type: the
        task that reads such a row refuses it."""
        source = self.plan.source
        if source.type_name not in self.rows.columns:
            return self.rows
        known = is_of_types(self.plan, source.declared_types)
        if not source.stream_column:
            known = known | column_named(source.type_name).isNull()
        return self.rows.where(known)

    def _drawn(self, fraction: float) -> DataFrame:
        """A sample of the rows that are read, the same one each time; of the fraction 1, all rows.

        Each row is drawn before it is looked at, and rows without an order are not asked for, whose
        column would be read for it: of ten million rows this took 0.5 s of CPU, a sample of the
        filtered rows 1.2. In one condition, because Spark moves none past a sample, and then reads
        files that the condition on the rows rules out.
        """
        from pyspark.sql import functions

        if fraction == 1:
            return self.rows
        rows, wanted = self.all_rows, functions.rand(seed=1) < fraction
        if self.is_filtered:
            wanted = wanted & can_matter(self.plan, rows.schema, faulty=False)
        return with_key_columns(self.plan, rows.where(wanted))


def with_clock(program: Program, rows: DataFrame) -> tuple[Program, str]:
    """The program with its clock, and a line that says where that is from.

    Without an event, the clock stays unknown.
    """
    plan = program.plan
    source = plan.source
    if plan.choice.clock is not None:
        return program, "clock: as it was given, which decides matches with an absence at their end"
    first = source.order_by[0]
    if source.type_name in rows.columns:
        rows = rows.where(is_of_types(plan, source.declared_types))
    found = OrderColumn(first, source.type_of(first), rows.schema[first].dataType.simpleString())
    latest = found.latest(rows)
    line = (
        f"clock: the greatest {first!r} of all events, which a job over this column has found; it "
        "decides matches with an absence at their end"
    )
    return replace(program, plan=replace(plan, choice=replace(plan.choice, clock=latest))), line

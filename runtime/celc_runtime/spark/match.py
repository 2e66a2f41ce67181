"""`match`: the plan of a query on a DataFrame, chosen and built.

========================== =========================================================================
partition by, any window   one shuffle by the key, a sort (by the tasks, or by Spark where a task
                           could not hold its rows), and one pass over each Spark partition
the same, and a hot key    the hot key's events in time ranges, which go through the same shuffle
already spread and sorted  no shuffle and no sort; the order is checked
no key, bounded window     time ranges, each reading its part of the files
all else                   one task
========================== =========================================================================

Everything here is DataFrames and columns, so it runs on Spark Connect as well. Facts about the data
that a plan needs (how many rows, where to cut) come from jobs that read the key or the order column
alone, when `match` is called; where to cut also from the statistics of files.

Longer than 450 lines: the plans share what is known of the columns, the rows and the reasons.

Long: what one step of a plan finds out about the rows, the next ones build on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

from celc_runtime.arrow.sorting import sort_columns, sort_columns_without_order
from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, growth_line
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.rules.inner import with_event_windows
from celc_runtime.rules.rows import Rows
from celc_runtime.spark.columns import (
    Counting,
    column_named,
    mapped,
    needed_columns,
)
from celc_runtime.spark.event_types import is_of_types
from celc_runtime.spark.file_statistics import DeclaredTypes, FilesTell, told_by_files
from celc_runtime.spark.group_cuts import cuts_between_groups
from celc_runtime.spark.hot_keys import HotKey, KeySample, hot_keys, range_numbers, sampled_keys
from celc_runtime.spark.in_numbers import ALL, MATTERING, NONE, RowNumbers
from celc_runtime.spark.joins import joined, why_kernel
from celc_runtime.spark.key_columns import with_key_columns
from celc_runtime.spark.numbering import Numbering, RangeColumns, why_not_numbered
from celc_runtime.spark.order_column import OrderColumn, ValueColumn
from celc_runtime.spark.parameters import rules_line, with_values_of
from celc_runtime.spark.probe import (
    UNKNOWN,
    arrow_line,
    asked,
    is_spread_by,
    most_rows,
    parallelism,
    told_rows,
    why_not_read_twice,
)
from celc_runtime.spark.pushdown import can_matter, positions_line, why_not_filtered
from celc_runtime.spark.task_columns import EVENTS_ALONE, TaskColumns
from celc_runtime.spark.task_sort import MOST_ROWS, unsorted_rows, why_spark_sorts
from celc_runtime.spark.tasks import Task
from celc_runtime.spark.time_ranges import (
    Cuts,
    Sample,
    TimeRange,
    counted,
    cuts_for,
    is_even,
    ranges_of,
    sampled,
    why_not_split,
    within,
    worthwhile,
)
from celc_runtime.spark.undecided import leaves_undecided
from celc_runtime.spark.wire import wire_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


AUTO, KERNEL, JOINS = HOW = ("auto", "kernel", "joins")
"""Who finds the matches: the query's own code, or joins of Spark; or whichever is chosen."""

_ROWS_PER_RANGE = 1 << 22
"""To read fewer rows than this costs less than to find a range of them. Measured on two cores, on
the clock: of ten million rows two ranges were read 1.2 to 1.6 times as fast as one where all rows
reach Python (a window of EVENTS)."""

_FEW_OF_A_KEY = 4
_FILTERED = 2
"""So many times as many rows of keys where Spark leaves out those that cannot matter, and of a
stream without keys where it filters them before all else. Measured without keys, 1 % that can
matter, two cores, the clock: filtered, two ranges of 10 million rows were read as fast as one, of
20 million 1.25 times as fast; numbered by Spark, of 9 million 1.4 and of 20 million 1.7 times."""

_WHY_JOINS = (
    "a condition keeps two events in a narrow band, no key ties them, and the windows have many "
    "events; plan='kernel' takes the query's own code"
)

_NUMBERS = "numbers: Spark numbers the sorted rows, and hands to Python those that can matter"

_PUT_BACK = "counting: the tasks put back rows that only count, by the numbers of those around them"

_TASKS_SORT = "sort: by the tasks, which hold their rows in memory"
_TASKS_NUMBER = (
    "numbers: the tasks number the sorted rows, and keep those that can matter; of the others "
    "their keys and their order are moved alone"
)
_ONE_TASK_SORTS = "sort: by the task, which holds its rows in memory"
_ONE_TASK_NUMBERS = (
    "numbers: the task numbers the sorted rows, and keeps those that can matter; of the others "
    "their order alone reaches Python"
)

_CUT_BY_FILES = "cuts: by the statistics of the files' row groups; the rows between were counted"
_CUT_AT_GROUPS = (
    "cuts: where row groups of the files begin, so that their statistics tell how many rows are "
    "between"
)

_UNDECIDED = (
    "undecided: matches whose absence at the end is not certain yet are left out; "
    "match(df, progress=True) counts them, and with_options(at_end='closed') decides them all"
)

_FRACTION_OF_KEYS = 0.01
_FEW_SAMPLED = 10_000


@dataclass(frozen=True, slots=True)
class SparkPlan:
    """How a query runs on a DataFrame: its matches, the choices and their reasons in words, and a
    warning."""

    matches: DataFrame
    text: str
    rows: Callable[[], RowNumbers]
    """How many rows it reads, which costs a look at Spark's statistics."""
    warning: str = ""


def spark_matches(
    program: Program,
    events: DataFrame,
    ranges: int | None,
    *,
    presorted: bool,
    rules: Rows | None = None,
    how: str = AUTO,
) -> DataFrame:
    """All matches of a DataFrame as a DataFrame; see `CompiledQuery.match`. `rules` are the rows of
    the parameter table, `how` is one of `HOW`."""
    plan = spark_plan(program, events, ranges, presorted=presorted, rules=rules, how=how)
    warn_of(plan)
    return plan.matches


def warn_of(plan: SparkPlan) -> None:
    """Tell the caller of a method of the query what a plan warns of."""
    if plan.warning:
        warnings.warn(plan.warning, PlanWarning, stacklevel=4)


def spark_plan(
    program: Program,
    events: DataFrame,
    ranges: int | None,
    *,
    presorted: bool,
    rules: Rows | None = None,
    counting: Counting | None = None,
    undecided: Observation | None = None,
    how: str = AUTO,
) -> SparkPlan:
    """The plan of a query on a DataFrame; `rules`: the rows of its parameter table, `how`: one of
    `HOW`. `counting` counts the rows that reach Python, and `undecided` the matches that are left
    undecided.

    Raises EventError where the query names no order column, because a distributed table has no
    order of its own, and where the DataFrame does not have the columns that the query reads;
    ValueError for options that cannot be.
    """
    _check_options(ranges, presorted=presorted)
    _check_how(how, ranges, presorted=presorted)
    kernel = "plan='kernel' was asked for"
    if how != KERNEL:
        check_events(program, events, Route.SPARK)
    if how == AUTO:
        kernel = why_kernel(program, events, ranges, presorted=presorted)
    if how == JOINS or not kernel:
        why = "plan='joins' was asked for" if how == JOINS else _WHY_JOINS
        found, lines = joined(program, events, why, counting)
        text = "\n".join([f"query {program.name!r}", *lines])
        return SparkPlan(found, text, partial(_numbers_of_joins, program.plan, events))
    planner = _Planner(program, events, rules, counting, undecided)
    made = _plan_of(planner, ranges, presorted=presorted)
    return replace(made, text=f"{made.text}\njoins: none, because {kernel}")


def _plan_of(planner: _Planner, ranges: int | None, *, presorted: bool) -> SparkPlan:
    if presorted:
        return planner.presorted()
    if planner.plan.source.partition_by and not planner.plan.interleaves:
        return planner.by_key(ranges)
    return planner.without_key(ranges)


def spark_compact(
    program: Program, events: DataFrame, ranges: int | None, *, presorted: bool
) -> DataFrame:
    """The compact answers of a DataFrame as a DataFrame, by the plan of `match`; see
    `CompiledQuery.match_compact`."""
    _check_options(ranges, presorted=presorted)
    plan = _plan_of(_Planner(program, events, is_compact=True), ranges, presorted=presorted)
    warn_of(plan)
    return plan.matches


def _numbers_of_joins(plan: Plan, events: DataFrame) -> RowNumbers:
    reads_all = bool(why_not_filtered(plan))
    return RowNumbers(
        told_rows(events),
        ALL if reads_all else UNKNOWN,
        NONE,
        counts_read=reads_all,
        counts_relevant=not reads_all,
    )


def _check_options(ranges: int | None, *, presorted: bool) -> None:
    if ranges is not None and (type(ranges) is not int or ranges < 1):
        raise ValueError(f"ranges must be a whole number from 1 on, or None, not {ranges!r}")
    if presorted and ranges not in (None, 1):
        raise ValueError(
            "presorted events are read as they lie, and cannot be cut into ranges: leave out "
            "presorted or ranges"
        )


def _check_how(how: str, ranges: int | None, *, presorted: bool) -> None:
    if how not in HOW:
        raise ValueError(f"plan must be one of {', '.join(map(repr, HOW))}, not {how!r}")
    if how == JOINS and (ranges is not None or presorted):
        raise ValueError(
            "with plan='joins' Spark spreads the events itself: leave out ranges and presorted"
        )


# --- the columns and rows that are read -----------------------------------------------------------


def check_events(program: Program, events: DataFrame, route: Route) -> None:
    """Raises EventError for a stream, and for a query that Spark cannot run by this route."""
    if events.isStreaming:
        raise EventError(
            f"query {program.name!r}: {route.value} reads a DataFrame that is there as a whole, "
            "and this one is a stream: use match_stream, or read the data with spark.read"
        )
    check(program, route)


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


def _planned(program: Program, rules: Rows | None) -> Plan:
    """The plan of a query as it reads events."""
    if rules is None:
        return program.plan
    return with_event_windows(with_values_of(program.plan, rules))


class _Planner:
    """Makes the plan of one query on one DataFrame, and describes it in words."""

    # Long: each line needs what those before it found out.
    def __init__(
        self,
        program: Program,
        events: DataFrame,
        rules: Rows | None = None,
        counting: Counting | None = None,
        undecided: Observation | None = None,
        *,
        is_compact: bool = False,
    ) -> None:
        plan = _planned(program, rules)
        check_events(program, events, Route.COMPACT if is_compact else Route.SPARK)
        narrow = needed_columns(plan, events)
        clock = ""
        if plan.asks_for_clock:
            program, clock = with_clock(program, narrow)
            plan = _planned(program, rules)
        self._program = program
        self._plan = plan
        self._counting = counting
        self._undecided = undecided if leaves_undecided(plan) else None
        counts = self._undecided is not None
        self._wire = wire_of(program, rules, is_compact=is_compact, counts=counts)
        unfiltered = why_not_filtered(plan)
        self._is_filtered = not unfiltered
        self._all_rows = narrow
        self._rows = narrow if unfiltered else narrow.where(can_matter(plan, narrow.schema))
        self._lines = [
            f"query {plan.name!r}",
            f"columns: {', '.join(narrow.columns)} ({len(narrow.columns)} of the DataFrame's "
            f"{len(events.columns)})",
            (
                f"rows: all are read, because {unfiltered}"
                if unfiltered
                else "rows: those that can change nothing are filtered before they are moved"
            ),
            positions_line(plan),
        ]
        if clock:
            self._lines.append(clock)
        if rules is not None:
            self._lines.append(rules_line(program.plan, rules.count))
        if leaves_undecided(plan):
            self._lines.append(_UNDECIDED)
        self._rows = with_key_columns(plan, self._rows)
        self._types = {f.name: f.dataType.simpleString() for f in self._rows.schema.fields}
        types = self._types
        self._keys = [
            ValueColumn(name, plan.source.type_of(name), types[name])
            for name in plan.source.key_columns
        ]
        first = plan.source.order_by[0]
        self._order = OrderColumn(first, plan.source.type_of(first), types[first])
        sort = sort_columns_without_order(plan)
        self._sort = [column_named(name) for name in sort]
        self._sort_in_key = [
            column_named(name) for name in sort if name not in plan.source.key_columns
        ]
        self._is_numbered = bool(unfiltered) and not why_not_numbered(plan)
        self._numbers_rows = False
        self._read_twice = 0.0
        self._told: int | None = None
        self._sampled: int | None = None
        self._rows_per_range = _ROWS_PER_RANGE
        if plan.source.key_columns:
            self._rows_per_range *= _FEW_OF_A_KEY if not unfiltered or self._is_numbered else 1
        elif not unfiltered:
            self._rows_per_range *= _FILTERED
        if arrow := arrow_line(narrow.sparkSession):
            self._lines.append(arrow)
        if program.growth:
            self._lines.append(growth_line(program))

    @property
    def plan(self) -> Plan:
        """The query's plan."""
        return self._plan

    # --- plans ------------------------------------------------------------------------------------

    def presorted(self) -> SparkPlan:
        """The events as they lie."""
        plan = self._plan
        sort = ", ".join(sort_columns(plan))
        if plan.source.partition_by and not plan.interleaves:
            self._lines.append(
                "plan: no shuffle and no sort, because presorted=True; each task reads its Spark "
                f"partition and checks that it is sorted by {sort}"
            )
            self._check_spread()
            return self._made(self._mapped(self._rows))
        self._lines.append(
            "plan: one task, no sort, because presorted=True; it reads the Spark partitions one "
            f"after another and checks that they are sorted by {sort}"
        )
        return self._made(self._mapped(self._rows.coalesce(1)))

    def by_key(self, ranges: int | None) -> SparkPlan:
        """The events of a key in one task, of a hot key in several."""
        plan = self._plan
        hot, why = self._hot_keys(ranges)
        keys, sort = ", ".join(plan.source.key_columns), ", ".join(sort_columns_without_order(plan))
        self._lines.append(
            f"plan: a shuffle by {keys} and a sort by {sort}; each task reads many keys one after "
            "another (PARTITION BY)"
        )
        if not hot:
            self._lines.append(f"hot keys: none is cut into time ranges, because {why}")
            return self._made(self._mapped(*self._sorted_by_key()))
        for key in hot:
            shown = ", ".join(
                f"{name}={value!r}"
                for name, value in zip(plan.source.key_columns, key.values, strict=True)
            )
            self._lines.append(f"hot key: {shown} is cut into {self._shown(key.ranges)}")
        return self._made(self._with_hot_keys(hot))

    def without_key(self, ranges: int | None) -> SparkPlan:
        """Time ranges, or one task."""
        parts, why, warning = self._time_ranges(ranges)
        if len(parts) < 2:
            self._lines.append(f"plan: one task reads all events, because {why}")
            return self._made(self._mapped(*self._of_one_task(self._rows)), warning)
        reach = f"window on {self._order.name!r} or of EVENTS"
        if self._plan.matching.window is None:
            reach = "matches of one event"
        self._lines.append(
            f"plan: {self._shown(parts)}; each is read and sorted by one task (no PARTITION BY, "
            f"{reach})"
        )
        sent = [self._sent(*self._of_range(within(self._order, part), part)) for part in parts]
        united = reduce(lambda one, other: one.unionAll(other), sent)
        return self._made(self._received(self._side_by_side(united)))

    def _shown(self, parts: Sequence[TimeRange]) -> str:
        total = max(1, sum(part.rows for part in parts))
        own = parts[-1].first_position + parts[-1].rows
        self._read_twice = (total - own) / max(1, own)
        return f"{len(parts)} time ranges, which read {self._read_twice:.1%} of the events twice"

    def _made(self, matches: DataFrame, warning: str = "") -> SparkPlan:
        if self._wire.line:
            self._lines.append(self._wire.line)
        return SparkPlan(matches, "\n".join(self._lines), self._row_numbers, warning)

    def _row_numbers(self) -> RowNumbers:
        """How many rows the plan reads, as far as the plan has found it out or Spark knows it."""
        sampled = "" if self._sampled is None else f"about {self._sampled:,} (by a sample)"
        if self._told is not None:
            read = f"{self._told:,} (by the statistics of the files)"
        else:
            read = "" if self._is_filtered else sampled
        relevant = UNKNOWN if self._is_numbered else ALL
        if self._is_filtered:
            relevant = sampled or UNKNOWN
        hands_all = not self._is_filtered and not self._numbers_rows
        twice = f", {self._read_twice:.1%} of them twice" if self._read_twice else ""
        counts_relevant = self._is_filtered or (hands_all and not self._is_numbered)
        return RowNumbers(
            read or told_rows(self._all_rows),
            relevant,
            f"{ALL if hands_all else MATTERING}{twice}",
            counts_read=hands_all and not twice,
            counts_relevant=counts_relevant and not twice,
        )

    # --- building ---------------------------------------------------------------------------------

    def _mapped(
        self,
        ordered: DataFrame,
        columns: TaskColumns = EVENTS_ALONE,
        ranges: Sequence[TimeRange] = (),
    ) -> DataFrame:
        """The matches that tasks find in rows which are spread and sorted."""
        return self._received(self._sent(ordered, columns, ranges))

    def _sent(
        self, ordered: DataFrame, columns: TaskColumns, ranges: Sequence[TimeRange]
    ) -> DataFrame:
        """What tasks send of the matches that they find."""
        if made := set(self._plan.source.chosen_columns):
            kept = [name for name in ordered.columns if name not in made]
            ordered = ordered.select(*map(column_named, kept))
        shipped = tuple(part.shipped for part in ranges)
        task = Task(self._program, self._wire, columns.shipped(), shipped)
        return mapped(ordered, task, self._wire.ddl, self._counting)

    def _received(self, sent: DataFrame) -> DataFrame:
        """The matches of all that tasks send."""
        return self._wire.unpack(sent, self._undecided)

    def _of_one_task(self, rows: DataFrame) -> tuple[DataFrame, TaskColumns]:
        """All rows, in their order or as one task sorts them."""
        why = why_spark_sorts(self._plan, self._types) or self._why_too_large_for_one()
        if why:
            self._lines.append(f"sort: by Spark, because {why}")
            if self._is_numbered:
                numbering = self._numbering_in_one_task
                return numbering.of(), numbering.columns
            return rows.coalesce(1).sortWithinPartitions(*self._sort), EVENTS_ALONE
        self._lines.append(_ONE_TASK_SORTS)
        if self._is_numbered:
            self._tell_numbers(_ONE_TASK_NUMBERS)
        return unsorted_rows(self._plan, rows, [], numbered=self._is_numbered)

    def _of_range(
        self, is_inside: Column, part: TimeRange
    ) -> tuple[DataFrame, TaskColumns, list[TimeRange]]:
        """The rows of a range in their order, as one task reads them."""
        from pyspark.sql import functions

        if not self._is_numbered:
            rows = self._rows.where(is_inside)
            ordered = rows.coalesce(1).sortWithinPartitions(*self._sort)
            return ordered, EVENTS_ALONE, [part]
        is_foreign = self._is_outside(self._start_of(part), self._later_of(part))
        of_range = RangeColumns(functions.lit(part.rows), is_foreign)
        numbering = self._numbering_in_one_task
        return numbering.of(of_range, is_inside), numbering.columns, [part]

    def _sorted_by_key(self) -> tuple[DataFrame, TaskColumns]:
        """The rows of each key in one task, sorted there or by Spark."""
        keys = [key.column for key in self._keys]
        why = why_spark_sorts(self._plan, self._types) or self._why_too_large()
        if not why:
            self._lines.append(_TASKS_SORT)
            if self._is_numbered:
                self._tell_numbers(_TASKS_NUMBER)
            return unsorted_rows(self._plan, self._rows, keys, numbered=self._is_numbered)
        self._lines.append(f"sort: by Spark, because {why}")
        if self._is_numbered:
            numbering = self._numbering(self._rows, keys)
            return numbering.of(), numbering.columns
        return self._rows.repartition(*keys).sortWithinPartitions(*self._sort), EVENTS_ALONE

    @cached_property
    def _numbering_in_one_task(self) -> Numbering:
        return self._numbering(self._rows, [])

    def _numbering(
        self, rows: DataFrame, keys: Sequence[Column], range_name: str = ""
    ) -> Numbering:
        """What gives Spark's numbers to rows, and leaves out those that cannot matter."""
        self._tell_numbers(_NUMBERS)
        self._numbers_rows = True
        return Numbering(self._plan, rows, keys, self._sort_in_key, range_name)

    def _tell_numbers(self, line: str) -> None:
        self._lines.append(line)
        if self._plan.source.told_apart is not None:
            self._lines.append(_PUT_BACK)

    def _start_of(self, part: TimeRange) -> Column:
        """The place in the order at which a range's own events begin; NULL: at the first event."""
        from pyspark.sql import functions

        if part.start is None:
            return functions.lit(None)
        return self._order.border(part.start)

    def _later_of(self, part: TimeRange) -> Column:
        """The place in the order behind a range's own events; NULL: it reads no others there."""
        from pyspark.sql import functions

        return functions.lit(None) if part.later is None else self._order.border(part.later)

    def _is_outside(self, start: Column, later: Column) -> Column:
        """Whether a row is before a range's own events, which begin at `start`, or behind them,
        from `later` on; never NULL."""
        from pyspark.sql import functions

        never, column = functions.lit(False), self._order.column
        before = functions.coalesce(column < start, never)
        return before | functions.coalesce(column >= later, never)

    def _side_by_side(self, united: DataFrame) -> DataFrame:
        """The union with one more part, which has no rows and no Spark partition.

        From Spark 4.1 on, a union of parts with one Spark partition each has one partition, which a
        single task would read (`spark.sql.unionOutputPartitioning`). A part of another kind
        prevents that. Its columns are NULL, but depend on a number: of a constant Spark would find
        out that the filter of a job leaves no row, and would take the part away.
        """
        from pyspark.sql import functions

        nulls = functions.array(functions.lit(None).cast(united.schema))
        row = functions.get(nulls, functions.col("id").cast("int"))
        nothing = self._rows.sparkSession.range(0).select(row.alias("row")).select("row.*")
        return united.unionAll(nothing)

    def _with_hot_keys(self, hot: Sequence[HotKey]) -> DataFrame:
        from pyspark.sql import functions

        name = unused_name("range", self._rows.columns)
        numbers = functions.explode(range_numbers(self._keys, self._order, hot))
        in_ranges = self._rows.withColumn(name, numbers)
        by_key = [*(key.column for key in self._keys), functions.col(name)]
        ranges = [part for key in hot for part in key.ranges]
        if not self._is_numbered:
            spread = in_ranges.repartition(*by_key)
            ordered = spread.sortWithinPartitions(*by_key, *self._sort_in_key)
            return self._mapped(ordered, TaskColumns(range=name), ranges)
        # One look into an array, however many ranges there are; NULL for range 0, which is none.
        place = functions.col(name) - 1
        rows = functions.get(functions.array(*(functions.lit(p.rows) for p in ranges)), place)
        starts = functions.array(*(self._start_of(part) for part in ranges))
        laters = functions.array(*(self._later_of(part) for part in ranges))
        is_foreign = self._is_outside(functions.get(starts, place), functions.get(laters, place))
        numbering = self._numbering(in_ranges, by_key, name)
        found = numbering.of(RangeColumns(rows, is_foreign))
        return self._mapped(found, numbering.columns, ranges)

    # --- looking at the data ----------------------------------------------------------------------

    def _declared_rows(self) -> DataFrame:
        """The rows of declared types, which alone have positions, and rows without a type: the
        task that reads such a row refuses it."""
        if self._plan.source.type_name not in self._rows.columns:
            return self._rows
        known = is_of_types(self._plan, self._plan.source.declared_types)
        if not self._plan.source.stream_column:
            known = known | column_named(self._plan.source.type_name).isNull()
        return self._rows.where(known)

    def _why_too_small(self) -> str:
        """Why the data is not looked at: even a sample of it costs as much as to read a column."""
        most = self._most_rows
        if most is None or most >= 2 * self._rows_per_range:
            return ""
        return f"by its size it has hardly more than {most:,} events"

    @cached_property
    def _most_rows(self) -> int | None:
        return most_rows(self._rows)

    @cached_property
    def _key_sample(self) -> KeySample:
        found = sampled_keys(self._drawn, self._keys, _FRACTION_OF_KEYS)
        self._sampled = found.estimated
        return found

    def _drawn(self, fraction: float) -> DataFrame:
        """A sample of the rows that are read, the same one each time; of the fraction 1, all rows.

        Each row is drawn before it is looked at, and rows without an order are not asked for, whose
        column would be read for it: of ten million rows this took 0.5 s of CPU, a sample of the
        filtered rows 1.2. In one condition, because Spark moves none past a sample, and then reads
        files that the condition on the rows rules out.
        """
        from pyspark.sql import functions

        if fraction == 1:
            return self._rows
        rows, wanted = self._all_rows, functions.rand(seed=1) < fraction
        if self._is_filtered:
            wanted = wanted & can_matter(self._plan, rows.schema, faulty=False)
        return with_key_columns(self._plan, rows.where(wanted))

    def _why_too_large(self) -> str:
        """Why a task may get more rows than it can hold."""
        if self._most_rows is not None and self._most_rows <= MOST_ROWS:
            return ""
        why = why_not_read_twice(self._rows)
        if why:
            return f"{why}, and it is not known how many events a task would get"
        tasks = int(self._rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        sample = self._key_sample
        expected = round(sample.estimated / tasks + sample.largest * sample.weight)
        return "" if expected <= MOST_ROWS else f"a task would get about {expected:,} events"

    def _why_too_large_for_one(self) -> str:
        """Why one task may get more rows than it can hold."""
        most = self._most_rows
        if most is None:
            return "it is not known how many events there are"
        return "" if most <= MOST_ROWS else f"by its size it may have {most:,} events"

    def _why_not_cut(self) -> str:
        """Why the query cannot be run on parts of the stream, or of a key."""
        return why_not_split(self._plan) or self._order.why_not_cut

    def _time_ranges(self, ranges: int | None) -> tuple[list[TimeRange], str, str]:
        """The ranges of the whole stream, the reason if there are none, and a warning."""
        why = self._why_not_cut()
        if self._plan.interleaves:
            why = "with CONSUME BY ANY a match depends on those of all partitions"
        if why:
            remedy = "" if self._plan.source.partition_by else "; PARTITION BY would spread it"
            name = self._plan.name
            return [], why, f"query {name!r} is run by one task, because {why}{remedy}"
        if ranges == 1:
            return [], "ranges=1 was asked for", ""
        if ranges is None:
            why = self._why_too_small() or why_not_read_twice(self._rows)
            if why:
                return [], f"{why} (ranges=… cuts it all the same)", ""
        tasks = parallelism(self._rows) if ranges is None else ranges
        told = told_by_files(self._all_rows, self._order, tasks, self._counted_types)
        unknown = told.unknown
        if not unknown:
            found, why, line = self._cut_by_files(told, tasks, ranges)
            if line:
                if len(found) > 1:
                    self._lines.append(line)
                return found, why, ""
            unknown = why
        sample = sampled(self._drawn, self._order, whole=ranges is not None)
        self._sampled = sample.rows
        found, why, _ = self._cut(sample, tasks, ranges)
        if len(found) > 1:
            self._lines.append(f"cuts: by a sample, because {unknown}")
        return found, why, ""

    def _cut_by_files(
        self, told: FilesTell, tasks: int, asked: int | None
    ) -> tuple[list[TimeRange], str, str]:
        """The ranges by what files tell, the reason if there is one only, and a line that says how
        they were cut; no line: a sample has to cut them, for that reason."""
        self._told, uncounted = told.sample.rows, told.uncounted
        wanted = self._wanted(told.sample.rows, tasks, asked)
        if wanted < 2:  # also of filtered rows, which are fewer
            return [], _too_few(told.sample.rows), _CUT_BY_FILES
        if told.cuts is not None:
            plan, known, window = self._plan, told.cuts, self._plan.whole_window
            assert window is not None
            cuts = cuts_between_groups(known, self._order, window, wanted, plan.farthest_deadline)
            if cuts is not None:
                found, why, even = self._ranges(cuts, known.counts(cuts), asked)
                if even:
                    found = [part._replace(is_checked=not self._is_filtered) for part in found]
                    return found, why, _CUT_AT_GROUPS
            uncounted = "not enough row groups begin near the cuts"
        if self._is_filtered:
            # What statistics tell of other places is of all rows.
            return [], f"rows are filtered, and {uncounted}", ""
        found, why, even = self._cut(told.sample, tasks, asked)
        if not even:
            return [], "the files' statistics would cut uneven ranges", ""
        return found, why, f"{_CUT_BY_FILES}, because {uncounted}"

    def _cut(
        self, sample: Sample, tasks: int, asked: int | None
    ) -> tuple[list[TimeRange], str, bool]:
        """The ranges by a sample, for so many tasks or as many as were asked for, the reason if
        there is one only, and whether they are even."""
        plan, window = self._plan, self._plan.whole_window
        assert window is not None
        wanted = self._wanted(sample.rows, tasks, asked)
        if asked is None and wanted < 2:
            return [], _too_few(sample.rows), True
        cuts = cuts_for(sample, self._order, window, wanted, plan.farthest_deadline)
        counts = counted(self._declared_rows(), self._order, cuts.borders)
        return self._ranges(cuts, counts, asked)

    def _wanted(self, rows: int, tasks: int, asked: int | None) -> int:
        """The number of ranges for so many rows and tasks, or that which was asked for."""
        return min(tasks, rows // self._rows_per_range) if asked is None else asked

    def _ranges(
        self, cuts: Cuts, counts: Sequence[int], asked: int | None
    ) -> tuple[list[TimeRange], str, bool]:
        """The ranges between cuts, as `_cut` tells them."""
        window = self._plan.whole_window
        assert window is not None
        found = (worthwhile if asked is None else ranges_of)(cuts, counts, window)
        why = (
            "the window holds too large a part of the events"
            if cuts.seams
            else f"{self._order.name!r} has too few values to cut between"
        )
        return found, why, is_even(cuts, counts)

    @property
    def _counted_types(self) -> DeclaredTypes | None:
        """The types whose rows have positions; None: all rows have, or the query needs none."""
        plan = self._plan
        source = plan.source
        if self._is_filtered or source.type_name not in self._rows.columns:
            return None
        names = () if source.stream_column else tuple(name for _, name in source.declared_types)
        return DeclaredTypes(source.type_name, names)

    def _hot_keys(self, ranges: int | None) -> tuple[list[HotKey], str]:
        """The keys to be cut, and the reason if there are none."""
        why = self._why_not_cut()
        if why:
            return [], why
        if ranges == 1:
            return [], "ranges=1 was asked for"
        odd = [key for key in self._keys if not key.fits]
        if odd:
            return [], f"the column {odd[0].name!r} is of type {odd[0].found}"
        window = self._plan.whole_window
        assert window is not None
        if ranges is None:
            why = self._why_too_small() or why_not_read_twice(self._rows)
            if why:
                return [], f"{why} (ranges=… looks for them all the same)"
        rows, tasks = self._declared_rows(), ranges
        sample = self._key_sample
        if tasks is None:
            if sample.estimated < 2 * self._rows_per_range:
                return [], f"about {sample.estimated:,} events are too few"
            tasks = min(parallelism(rows), sample.estimated // self._rows_per_range)
        elif sample.total < _FEW_SAMPLED:
            sample = sampled_keys(self._drawn, self._keys, 1)
        hot = hot_keys(
            rows,
            sample,
            self._keys,
            self._order,
            (window, self._plan.farthest_deadline),
            tasks,
            always=ranges is not None,
        )
        return hot, f"none has more than its share of the work of {tasks} tasks"

    def _check_spread(self) -> None:
        """Raises EventError unless each key is in one Spark partition. Where Spark does not know,
        the keys are read."""
        from pyspark.sql import functions

        names = [f"key{number}" for number in range(len(self._keys))]
        keys = self._declared_rows().select(
            *(key.column.alias(name) for key, name in zip(self._keys, names, strict=True))
        )
        if is_spread_by(keys, names):
            self._lines.append("keys: Spark knows that each is in one Spark partition")
            return
        self._lines.append(
            "keys: Spark does not know that each is in one Spark partition, so they were read once "
            "to see it"
        )
        places = keys.select(*names, functions.spark_partition_id().alias("place")).distinct()
        counts = places.groupBy(*names).agg(functions.count(functions.lit(1)).alias("places"))
        found = asked(counts.where("places > 1").limit(1), "where the keys lie")
        if found:
            shown = ", ".join(
                f"{key.name}={value!r}" for key, value in zip(self._keys, found[0], strict=False)
            )
            raise EventError(
                f"query {self._plan.name!r}: presorted=True, but the partition {shown} lies in "
                f"{found[0]['places']} Spark partitions: repartition the DataFrame by "
                f"{', '.join(self._plan.source.key_sql)} and sort it within partitions, or leave "
                "out presorted"
            )


def _too_few(rows: int) -> str:
    return f"about {rows:,} events are too few for more"

"""`match`: the plan of a query on a DataFrame, as users ask for it, and as EXPLAIN tells it.

Everything here is DataFrames and columns, so it runs on Spark Connect as well. What is known of the
data stands in `facts`, the choice in `choose`, and how matches travel in `wire`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from celc_runtime.plan.errors import EventError, PlanWarning
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import check
from celc_runtime.spark.answers.undecided import leaves_undecided
from celc_runtime.spark.answers.wire import wire_of
from celc_runtime.spark.choose import Request, choose
from celc_runtime.spark.facts import Facts
from celc_runtime.spark.in_numbers import ALL, NONE, RowNumbers
from celc_runtime.spark.input.columns import Counting
from celc_runtime.spark.input.pipelines import NOT_ASKED, as_ddl, in_query_function, is_stream
from celc_runtime.spark.input.probe import UNKNOWN, told_rows
from celc_runtime.spark.input.pushdown import why_not_filtered
from celc_runtime.spark.joins import joined, why_kernel
from celc_runtime.spark.steps import Step, applied, task_step
from celc_runtime.values.warned import warn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


AUTO, KERNEL, JOINS = HOW = ("auto", "kernel", "joins")
"""Who finds the matches: the query's own code, or joins of Spark; or whichever is chosen."""

_WHY_JOINS = (
    "a condition keeps two events in a narrow band, no key ties them, and the windows have many "
    "events; plan='kernel' takes the query's own code"
)


@frozen
class SparkPlan:
    """How a query runs on a DataFrame: its matches, the choices and their reasons in words, and a
    warning."""

    matches: DataFrame
    text: str
    rows: Callable[[], RowNumbers]
    """How many rows it reads, which costs a look at Spark's statistics."""
    warning: str = ""
    counts_undecided: bool = False
    """Whether the matches that are left undecided are observed."""


def spark_matches(
    program: Program,
    events: DataFrame,
    ranges: int | None,
    *,
    presorted: bool,
    how: str = AUTO,
) -> DataFrame:
    """All matches of a DataFrame as a DataFrame; see `CompiledQuery.match`. `how` is one of
    `HOW`."""
    plan = spark_plan(program, events, ranges, presorted=presorted, how=how)
    warn_of(plan)
    return plan.matches


def spark_compact(
    program: Program, events: DataFrame, ranges: int | None, *, presorted: bool
) -> DataFrame:
    """The compact answers of a DataFrame as a DataFrame, by the plan of `match`; see
    `CompiledQuery.match_compact`."""
    plan = spark_plan(program, events, ranges, presorted=presorted, how=KERNEL, route=Route.COMPACT)
    warn_of(plan)
    return plan.matches


def warn_of(plan: SparkPlan) -> None:
    """Tell the caller of a method of the query what a plan warns of."""
    if plan.warning:
        warn(plan.warning, PlanWarning)


def spark_plan(
    program: Program,
    events: DataFrame,
    ranges: int | None,
    *,
    presorted: bool,
    counting: Counting | None = None,
    undecided: Observation | None = None,
    how: str = AUTO,
    route: Route = Route.SPARK,
) -> SparkPlan:
    """The plan of a query on a DataFrame; `how`: one of `HOW`. `counting` counts the rows that
    reach Python, and `undecided` the matches that are left undecided. `route`: matches, or compact
    answers.

    Raises EventError where the query names no order column, because a distributed table has no
    order of its own, and where the DataFrame does not have the columns that the query reads;
    ValueError for options that cannot be.
    """
    _check_options(ranges, presorted=presorted)
    _check_how(how, ranges, presorted=presorted)
    if in_query_function(events.sparkSession):
        _check_in_pipeline(program, how, ranges, presorted=presorted)
    kernel = "plan='kernel' was asked for"
    if how != KERNEL:
        check_events(program, events, route)
    if how == AUTO:
        kernel = why_kernel(program, events, ranges, presorted=presorted)
    if how == JOINS or not kernel:
        why = "plan='joins' was asked for" if how == JOINS else _WHY_JOINS
        found, lines = joined(program, events, why, counting)
        text = "\n".join([f"query {program.name!r}", *lines])
        return SparkPlan(found, text, partial(_numbers_of_joins, program.plan, events))
    check_events(program, events, route)
    facts = Facts(program, events)
    counts = undecided is not None and leaves_undecided(facts.plan)
    wire = wire_of(facts.program, is_compact=route is Route.COMPACT, counts=counts)
    task = partial(task_step, facts.program, wire, counting)
    chosen = choose(facts, Request(ranges, presorted, task))
    steps = [*chosen.steps, Step(partial(wire.unpack, undecided=undecided), wire.line)]
    lines = [step.line for step in (*facts.reading, *steps) if step.line]
    text = "\n".join([f"query {facts.plan.name!r}", *lines, f"joins: none, because {kernel}"])
    numbers = partial(chosen.numbers, facts)
    matches = applied(steps, facts.rows)
    if route is Route.SPARK:
        matches = as_ddl(matches, program.output_ddl)
    return SparkPlan(matches, text, numbers, chosen.warning, counts_undecided=counts)


def check_events(program: Program, events: DataFrame, route: Route) -> None:
    """Raises EventError for a stream, and for a query that Spark cannot run by this route."""
    if is_stream(events):
        raise EventError(
            f"query {program.name!r}: {route.value} reads a DataFrame that is there as a whole, "
            "and this one is a stream: use match_stream, or read the data with spark.read"
        )
    check(program, route)


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


def _check_in_pipeline(program: Program, how: str, ranges: int | None, *, presorted: bool) -> None:
    """Raises EventError for what asks Spark a question: options, and an absence at the end that is
    decided by the latest event."""
    named = f"query {program.name!r}: "
    for option, is_given in (
        ("ranges=…", ranges not in (None, 1)),
        ("presorted=True", presorted),
        ("plan='joins'", how == JOINS),
    ):
        if is_given:
            raise EventError(
                f"{named}{option} asks Spark a question, and {NOT_ASKED}: leave it out"
            )
    if program.plan.asks_for_clock and program.plan.choice.clock is None:
        raise EventError(
            f"{named}the latest time of all events decides its absence at the end, and "
            f"{NOT_ASKED}: with_options(at_end='closed') decides all matches, as if no more events "
            "came, and with_options(clock=…) says up to which time the events reach"
        )

"""The plan of a query on a stream, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celc_runtime.program import Program, growth_line
from celc_runtime.spark.input.columns import needed_columns
from celc_runtime.spark.input.parameters import rules_line
from celc_runtime.spark.input.pushdown import positions_line, why_not_filtered
from celc_runtime.stream.buckets import FOR_EACH_TASK
from celc_runtime.stream.match import check_stream, default_buckets
from celc_runtime.stream.one_bucket.known_keys import key_values, window_length
from celc_runtime.stream.rules import stream_program
from celc_runtime.stream.stored.state_rows import KEPT_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_VALUES = {
    "position": "its next position",
    "frontier": "the time up to which it has been run",
    "first": "the first position that later matches can use",
    "context": "the context of nested selectors",
    "value": "the last value that WITHIN is measured on",
    "after": "where the last match of DISJOINT ends",
    KEPT_ROWS: "the rows that LIMIT … PER has counted, or the totals so far",
}


def explain_stream(program: Program, events: DataFrame) -> str:
    """The plan of `match_stream` for a DataFrame, with its default options, and its reasons.

    Raises EventError if the query cannot run on it, with
    bounded or unbounded state.
    """
    check_stream(program, events, allow_unbounded_state=True)
    plan = program.plan
    source = plan.source
    columns = needed_columns(plan, events).columns
    unfiltered = why_not_filtered(plan)
    lines = [
        f"query {plan.name!r}",
        f"columns: {', '.join(columns)} ({len(columns)} of the DataFrame's {len(events.columns)})",
        (
            f"rows: all are packed and shuffled, because {unfiltered}"
            if unfiltered
            else "rows: those that can change nothing are filtered before they are packed"
        ),
        positions_line(plan),
    ]
    if program.rows is not None:
        lines.append(rules_line(plan, program.rows.count))
    if program.growth:
        lines.append(growth_line(program))
    program = stream_program(program)
    keys = [] if source.parameters is None else [f"rows of {source.parameters.name!r}"]
    if program.plan.source.key_columns:
        keys += [f"the keys of {', '.join(source.partition_by)}"] if source.partition_by else []
        buckets = default_buckets(events.sparkSession)
        lines.append(
            f"buckets: {buckets} of {' and '.join(keys)} (at most {FOR_EACH_TASK} for each task "
            "that keeps states)"
        )
    else:
        lines.append("buckets: 1, because without PARTITION BY there is one partition")
    length = window_length(program)
    kept = "until their window has passed"
    if length is None:
        kept = "until later events put them out of the window"
        if any(map(plan.counts, plan.choice.deadlines)):
            kept = "until later events have put them out of the window, and decided their matches"
    if (plan.matching.window is None and not plan.matching.one_event) or program.sees_all:
        kept = "for ever"
    lines.append(f"state: the events that can matter, {kept}")
    values = [_VALUES[name] for name in key_values(program, None)]
    lines.append(f"state of a partition besides: {'; '.join(values) or 'nothing'}")
    return "\n".join(lines)

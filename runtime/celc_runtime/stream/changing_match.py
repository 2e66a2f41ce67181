"""A query FOR EACH on Structured Streaming whose table of parameters is a stream as well.

    events → watermark → packed by bucket ┐
                                          ├ union → transformWithState → matches as bytes → matches
    rows of the table → packed for all buckets ┘

Only the events have a watermark. So a table that is silent holds nothing up, and what it sends at
last counts from the watermark on at the earliest. `changing_rules` has what workers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.schemas import output_schema
from celc_runtime.program import Program
from celc_runtime.rules.inner import over_events, parameters_of
from celc_runtime.rules.rows import asked_set, reader_of
from celc_runtime.spark.answers.compact import is_spark_frame
from celc_runtime.spark.input.columns import mapped, needed_columns
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.pipelines import is_stream, refuse_in_pipelines
from celc_runtime.stream.changing_rules import (
    OWN_COUNTS,
    OWN_DDL,
    check_header,
    step_route,
    task_route,
)
from celc_runtime.stream.emitted import emit_of
from celc_runtime.stream.finish import check_checkpoint, remember_plan
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.going_on import telling_way_out
from celc_runtime.stream.match import (
    buckets_of,
    check_late,
    check_stream,
    chosen_api,
    duration,
    in_buckets,
    instant_of,
    kept_rows,
    tiebreak_types,
    watermarked,
)
from celc_runtime.stream.packing import PACKED_DDL
from celc_runtime.stream.processor import STATE
from celc_runtime.stream.session import prepare
from celc_runtime.stream.tasks import COUNTS, STEP_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def changing_table(program: Program, tables: Mapping[str, Any]) -> DataFrame | None:
    """The table of parameters of a call if it is a stream of Spark; None: it is none.

    Raises TypeError for a name that is not that of the query's set.
    """
    if not any(is_spark_frame(table) and is_stream(table) for table in tables.values()):
        return None
    for table in tables.values():
        refuse_in_pipelines(
            table.sparkSession,
            f"query {program.name!r}: a table of parameters that is a stream",
            "give a table of pandas or Arrow, whose rows are fixed for a run",
        )
    found: DataFrame = tables[asked_set(program, tables).name]
    return found


def changing_matches(
    program: Program,
    events: DataFrame,
    table: DataFrame,
    *,
    watermark: str,
    late: str,
    api: str | None,
    allow_unbounded_state: bool,
    max_event_time_skew: str | None,
    key_ttl: str | None,
    buckets: int | None,
    checkpoint: str | None,
) -> DataFrame:
    """All matches of a streaming DataFrame for the rows of another; see
    `CompiledQuery.match_stream`."""
    check_stream(program, events, allow_unbounded_state=allow_unbounded_state)
    _check(program, late, key_ttl)
    if program.positions is None:
        program = program.with_options(positions=False)
    plan = program.plan
    check_late(late, f"query {plan.name!r}", output_schema(plan).names)
    duration(watermark, "watermark")
    rules = _rows_of(program, table)
    rows = needed_columns(over_events(plan), events)
    types = {f.name: f.dataType.simpleString() for f in rows.schema.fields}
    order = plan.source.order_by[0]
    instant = instant_of(OrderColumn(order, "TIMESTAMP", types[order]))
    kept = partial(kept_rows, over_events(plan))
    rows, moment = watermarked(rows, instant, watermark, max_event_time_skew, kept)
    spark = events.sparkSession
    has_keys = bool(plan.source.key_columns)
    options = StreamOptions(
        tiebreak_types=tiebreak_types(plan, types),
        late=late,
        has_types=plan.source.type_name in types,
        ahead=moment,
        buckets=buckets_of(spark, buckets, checkpoint, has_keys=has_keys),
        emit=emit_of(program),
    )
    chosen = chosen_api(api)
    prepare(spark)
    if checkpoint is not None:
        header = partial(check_header, program, options._asdict())
        with telling_way_out([program], events, checkpoint):
            check_checkpoint(spark, checkpoint, f"query {program.name!r}", {STATE: header})
    sent = options._asdict()
    matches = in_buckets(
        rows,
        partial(step_route(program, "packed_events"), sent),
        partial(task_route(program), sent),
        partial(step_route(program, "unpacked_matches"), sent),
        plan.output_ddl(),
        api=chosen,
        metrics=program.name,
        beside=mapped(rules, partial(step_route(program, "packed_rules"), sent), PACKED_DDL),
        step_ddl=f"{STEP_DDL}, {OWN_DDL}",
        counts=(*COUNTS, *OWN_COUNTS),
    )
    last = partial(step_route(program, "finished_matches"), sent)
    return remember_plan(matches, program.name, {STATE: last})


def _check(program: Program, late: str, key_ttl: str | None) -> None:
    """Raises EventError where rows cannot come and go."""
    parameters = parameters_of(program.plan)
    name = f"query {program.name!r}: the table of parameters {parameters.name!r} is a stream"
    valid = parameters.valid
    if valid is None:
        raise EventError(
            f"{name}, and nothing says from when to when a row counts: declare it with "
            "VALID [since, until], or read the table with spark.read"
        )
    if valid.looks_out:
        raise EventError(
            f"{name}, and a match depends on events before its first labelled one, or takes events "
            "without a label (an absence before a match, NOT, PROJECT), which may have gone before "
            "a row comes: write the query without it, or read the table with spark.read"
        )
    if program.positions:
        raise EventError(
            f"{name}, and positions count events that have gone before a row comes: leave out "
            "positions=True"
        )
    if late == "side":
        raise EventError(
            f"{name}, and late='side' tells a late event for each row of a table that is there as "
            "a whole: use late='drop' or late='error'"
        )
    if key_ttl is not None:
        raise EventError(
            f"{name}, and key_ttl would forget partitions whose rows are held: leave it out"
        )


def _rows_of(program: Program, table: DataFrame) -> DataFrame:
    """The columns of the table that the set declares; raises EventError where they do not fit."""
    parameters = parameters_of(program.plan)
    try:
        return needed_columns(reader_of(program.name, parameters).plan, table)
    except EventError as problem:
        raise EventError(f"parameters {parameters.name!r}: {problem}") from None

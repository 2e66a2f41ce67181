"""A query on Structured Streaming: `match_stream`. The plan is that of `celc_runtime.stream.match`,
with the steps of `tasks`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from celc_runtime.engine.values.spark_arithmetic import MICROSECONDS_PER_DAY
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.row_pattern import RowPlan
from celc_runtime.row_pattern.on_spark import columns_of, kernel_text, rows_read, with_derived
from celc_runtime.row_pattern.program import RowProgram
from celc_runtime.row_pattern.schemas import output_schema
from celc_runtime.row_pattern.streams.decided import reads_numbers, rows_before
from celc_runtime.row_pattern.streams.reading import formats_of, reading_of
from celc_runtime.spark.input.columns import column_named
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.stream.buckets import FOR_EACH_TASK, labels_of
from celc_runtime.stream.finish import check_checkpoint, remember_plan
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.going_on import telling_way_out
from celc_runtime.stream.match import (
    buckets_of,
    check_late,
    check_stream,
    chosen_api,
    default_buckets,
    duration,
    in_buckets,
    instant_of,
    side_ddl,
    tiebreak_types,
    watermarked,
)
from celc_runtime.stream.processor import STATE
from celc_runtime.stream.session import prepare
from celc_runtime.stream.tasks import refused_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# Long: the options of a stream, one after another.
def stream_rows(
    program: RowProgram,
    steps: tuple[Any, Any],
    rows: DataFrame,
    *,
    tiebreak: tuple[str, ...],
    watermark: str,
    late: str,
    api: str | None,
    allow_unbounded_state: bool,
    max_event_time_skew: str | None,
    buckets: int | None,
    checkpoint: str | None,
) -> DataFrame:
    """The result for a streaming DataFrame; see `RowPatternQuery.match_stream`.

    steps: the functions that Spark's workers run, as `tasks.run_step` and `tasks.task_of`, without
    the program.
    """
    plan = program.plan
    check_stream(program, rows, allow_unbounded_state=allow_unbounded_state)
    check_late(late, f"query {plan.name!r}", output_schema(plan).names)
    duration(watermark, "watermark")
    chosen = _chosen(plan, rows, tiebreak)
    types = {f.name: f.dataType.simpleString() for f in chosen.schema.fields}
    order = plan.columns[plan.order_by[0].column].name
    instant = instant_of(OrderColumn(order, "TIMESTAMP", types[order]))
    if types[order] == "date":
        instant = midnight_of(order)
    marked, ahead = watermarked(chosen, instant, watermark, max_event_time_skew, lambda _: None)
    reading = reading_of(program, tiebreak)
    options = StreamOptions(
        tiebreak_types=tiebreak_types(reading.plan, types),
        tiebreak=tiebreak,
        late=late,
        has_types=False,
        ahead=ahead,
        buckets=buckets_of(
            rows.sparkSession, buckets, checkpoint, has_keys=bool(plan.partition_by)
        ),
    )
    ddl = plan.output_ddl()
    if late == "side":
        ddl = side_ddl(ddl, refused_schema(reading.plan, options))
    api = chosen_api(api)
    prepare(rows.sparkSession)
    if checkpoint is not None:
        checks = {STATE: partial(_check_header, program, options)}
        with telling_way_out([program], rows, checkpoint):
            check_checkpoint(rows.sparkSession, checkpoint, f"query {plan.name!r}", checks)
    run, make_task = steps
    sent = options._asdict()
    matches = in_buckets(
        marked,
        partial(run, "packed", sent),
        partial(make_task, sent),
        partial(run, "unpacked", sent),
        ddl,
        api=api,
        metrics=plan.name,
    )
    return remember_plan(matches, plan.name, {STATE: partial(run, "finished", sent)})


def midnight_of(day: str) -> Column:
    """The beginning of the days of a DATE column in UTC, as an instant."""
    from pyspark.sql import functions

    days = functions.unix_date(column_named(day)).cast("long")
    return functions.timestamp_micros(days * functions.lit(MICROSECONDS_PER_DAY))


def _chosen(plan: RowPlan, rows: DataFrame, tiebreak: tuple[str, ...]) -> DataFrame:
    """The columns that the query reads, and those that tell rows of one place apart."""
    read = [one.name for one in plan.attributes_read]
    given = [one.name for one in plan.attributes_of_table]
    for name in tiebreak:
        if name not in rows.columns:
            raise EventError(
                f"query {plan.name!r}: there is no tiebreak column {name!r}; the columns are: "
                f"{', '.join(map(repr, rows.columns))}"
            )
    chosen = rows_read(plan, rows, [name for name in tiebreak if name not in {*read, *given}])
    further = [name for name in tiebreak if name not in read]
    return with_derived(plan, chosen, further)


def _check_header(program: RowProgram, options: StreamOptions, label: int, header: bytes) -> None:
    labels = labels_of(options.buckets).tolist()
    number = labels.index(label) if label in labels else -1
    formats = formats_of(reading_of(program, options.tiebreak), options)
    formats.states.read(header, number)


def explain_rows(program: RowProgram, rows: DataFrame) -> str:
    """The plan of `match_stream` for a DataFrame, with its default options, in words."""
    check_stream(program, rows, allow_unbounded_state=True)
    plan = program.plan
    columns_of(plan, rows)
    keys = [plan.columns[number].name for number in plan.partition_by]
    buckets = "buckets: 1, because without PARTITION BY there is one partition"
    if keys:
        buckets = (
            f"buckets: {default_buckets(rows.sparkSession)} of the keys of {', '.join(keys)} (at "
            f"most {FOR_EACH_TASK} for each task that keeps states)"
        )
    until = "until its match is decided, which may be never"
    if plan.within is not None:
        until = "until its match is decided, or WITHIN has passed"
    elif not plan.can_wait:
        until = "until its match is decided, by the next few rows of its partition"
    before = rows_before(plan)
    also = f", and {before} rows before it" if before else ""
    number = "; the number of its matches" if reads_numbers(plan) else ""
    return "\n".join(
        [
            f"query {plan.name!r}",
            buckets,
            f"state of a partition: the rows from the first start that is not decided{also}, "
            f"{until}{number}",
            kernel_text(plan),
        ]
    )

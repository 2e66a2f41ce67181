"""A query on Structured Streaming: `match_stream`.

    rows → watermark → packed by bucket → transformWithState → matches as bytes → matches

The plan is made here, on the driver. `packing` and `tasks` have the functions that workers run,
`bucket` has what happens to one bucket of partitions, and `state` what a checkpoint holds of it.

Spark's own filter for late rows is not used. It drops rows before the watermark of the previous
micro-batch, even if no event of the row's partition has been run, and it does not know packed rows.
`bucket` decides which events are late, in the same way for each value of `late`, and counts them.

Long: what a call is checked for, in its order, and the plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.near.queries import TOLD
from celc_runtime.plan.plan import Plan, quoted
from celc_runtime.plan.schemas import named_type, output_schema
from celc_runtime.program import Program, Rows
from celc_runtime.routes.rules import Route
from celc_runtime.routes.why_not import Asked, check
from celc_runtime.spark.input.columns import (
    INTERVALS,
    column_named,
    mapped,
    needed_columns,
)
from celc_runtime.spark.input.ddl import schema_of_ddl
from celc_runtime.spark.input.key_columns import utc_instant
from celc_runtime.spark.input.order_column import OrderColumn
from celc_runtime.spark.input.pipelines import (
    as_ddl,
    is_stream,
    still_known,
)
from celc_runtime.spark.input.pushdown import can_matter, why_not_filtered
from celc_runtime.stream.buckets import FOR_EACH_TASK, MOST_BUCKETS
from celc_runtime.stream.emitted import emit_of
from celc_runtime.stream.finish import (
    check_checkpoint,
    kept,
    recorded_buckets,
    remember_plan,
)
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.going_on import go_on, rows_since
from celc_runtime.stream.monitor import METRICS
from celc_runtime.stream.one_bucket.known_keys import adds_up
from celc_runtime.stream.packing import PACKED_DDL
from celc_runtime.stream.processor import STATE, bucket_processor
from celc_runtime.stream.rules import hash_of_rows, in_one_order, stream_program
from celc_runtime.stream.session import TASKS, TASKS_OF_SPARK, check_size, prepare, tell_of_tables
from celc_runtime.stream.tasks import (
    COUNTS,
    STEP_DDL,
    check_header,
    finishing_route,
    formats_of,
    packing_route,
    refused_schema,
    task_route,
    unpacking_route,
)
from celc_runtime.values.types import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_LATE = ("drop", "error", "side")
_APIS = ("row", "pandas")

_TIEBREAK_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "INT",
    "smallint": "INT",
    "int": "INT",
    "bigint": "LONG",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "date": "DATE",
    **dict.fromkeys(INTERVALS, "INTERVAL"),
}

_UNITS = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


def stream_matches(
    program: Program,
    events: DataFrame,
    *,
    watermark: str,
    late: str,
    api: str | None,
    allow_unbounded_state: bool,
    max_event_time_skew: str | None,
    key_ttl: str | None,
    buckets: int | None,
    checkpoint: str | None,
    state: str = STATE,
) -> DataFrame:
    """All matches of a streaming DataFrame; see `CompiledQuery.match_stream`. state: the name of
    the state variable."""
    program, rules = replace(program, rows=None), program.rows  # each step is given these
    plan = program.plan
    check_stream(program, events, allow_unbounded_state=allow_unbounded_state)
    if rules is not None:
        rules = in_one_order(rules)
    check_late(late, f"query {plan.name!r}", output_schema(plan).names)
    if key_ttl is not None:
        _check_key_ttl(plan)
    duration(watermark, "watermark")
    rows = needed_columns(plan, events)
    types = {f.name: f.dataType.simpleString() for f in rows.schema.fields}
    order = plan.source.order_by[0]
    instant = instant_of(OrderColumn(order, "TIMESTAMP", types[order]))
    rows, moment = watermarked(
        rows, instant, watermark, max_event_time_skew, partial(kept_rows, plan)
    )
    options = StreamOptions(
        tiebreak_types=tiebreak_types(plan, types),
        late=late,
        key_ttl=None if key_ttl is None else duration(key_ttl, "key_ttl"),
        has_types=plan.source.type_name in types,
        ahead=moment,
        buckets=buckets_of(
            events.sparkSession,
            buckets,
            checkpoint,
            has_keys=bool(stream_program(program).plan.source.key_columns),
        ),
        emit=emit_of(program),
        rules=0 if rules is None else hash_of_rows(rules),
    )
    chosen = chosen_api(api)
    prepare(events.sparkSession)
    since = None
    if checkpoint is not None:
        spark = events.sparkSession
        found = go_on(program, formats_of(program, options), spark, checkpoint, state)
        options, since = options._replace(accepts=found.accepts), found.since
        header = partial(check_header, program, options._asdict())
        check_checkpoint(spark, checkpoint, f"query {program.name!r}", {state: header})
    matches = _steps(program, rows, options, chosen, rules, state)
    return kept(matches, rows_since(program, since))


def _check_key_ttl(plan: Plan) -> None:
    """Raises EventError for a query of whose partitions something must be known for ever."""
    lost = None
    if plan.choice.deadlines:
        lost = (
            "forgets partitions with all their events, also while matches with an absence at their "
            "end wait there"
        )
    elif plan.choice.waits:
        lost = (
            f"would forget matches of SELECT {plan.choice.per_start} that wait for their window to "
            "pass"
        )
    elif adds_up(plan):
        lost = "would forget the totals of partitions that come again"
    if lost is not None:
        raise EventError(f"query {plan.name!r}: key_ttl {lost}: leave out key_ttl")


def check_stream(program: Asked, events: DataFrame, *, allow_unbounded_state: bool) -> None:
    """Raises EventError if a query cannot run on a DataFrame as a stream."""
    if not is_stream(events):
        raise EventError(
            f"query {program.name!r}: match_stream reads a stream (spark.readStream), and this "
            "DataFrame is there as a whole: use match"
        )
    check(program, Route.UNBOUNDED if allow_unbounded_state else Route.STREAM)
    tell_of_tables(f"query {program.name!r}", events)


def check_late(late: str, named: str, columns: Iterable[str]) -> None:
    """Raises ValueError for a word that `late` does not have, EventError where late='side' would
    add a column of a name that is there; Spark takes `Kind` and `kind` for one.

    named: the queries, as messages call them; columns: those of their rows.
    """
    if late not in _LATE:
        raise ValueError(f"late must be one of {', '.join(map(repr, _LATE))}, not {late!r}")
    taken = [name for name in columns if name.casefold() in ("kind", "event")]
    if late == "side" and taken:
        raise EventError(
            f"{named}: there is a column {taken[0]!r}, and late='side' adds one: choose another "
            "name with AS, or for the query"
        )


_DURATION = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.IGNORECASE)


def duration(text: str, name: str) -> int:
    """Microseconds of '10 seconds', '1 hour 30 minutes'; raises ValueError for anything else."""
    parts = _DURATION.findall(text) if isinstance(text, str) else []
    units = [unit.lower().removesuffix("s") for _, unit in parts]
    if not parts or _DURATION.sub("", text) or not set(units) <= set(_UNITS):
        raise ValueError(
            f"{name} must be a duration like '10 seconds' or '1 hour 30 minutes' (units: "
            f"{', '.join(_UNITS)}), not {text!r}"
        )
    return sum(int(number) * _UNITS[unit] for (number, _), unit in zip(parts, units, strict=True))


def chosen_api(api: str | None) -> str:
    from pyspark import __version__
    from pyspark.sql import GroupedData

    if api is not None and api not in _APIS:
        raise ValueError(f"api must be 'row', 'pandas' or None, not {api!r}")
    if api == "row" and not hasattr(GroupedData, "transformWithState"):
        raise RuntimeError(
            f"transformWithState for rows needs PySpark 4.1 or newer, and this is {__version__}: "
            "use api='pandas'"
        )
    # Rows cost half as much for each partition, because no frame is made of one row.
    return api or ("row" if hasattr(GroupedData, "transformWithState") else "pandas")


def buckets_of(
    spark: SparkSession, wanted: int | None, checkpoint: str | None, *, has_keys: bool
) -> int:
    """The number of buckets: that of the checkpoint if known, unless another one is asked for."""
    check_buckets(wanted)
    if not has_keys:
        return 1  # there is only one partition
    if wanted is not None:
        return wanted
    recorded = None if checkpoint is None else recorded_buckets(spark, checkpoint)
    return recorded or default_buckets(spark)


def check_buckets(wanted: int | None) -> None:
    """Raises TypeError or ValueError for what is no number of buckets."""
    if wanted is None:
        return
    if type(wanted) is not int:
        raise TypeError(f"buckets must be a whole number, not {wanted!r}")
    if not 1 <= wanted <= MOST_BUCKETS:
        raise ValueError(f"buckets must be between 1 and {MOST_BUCKETS:,}, not {wanted:,}")


def default_buckets(spark: SparkSession, for_each_task: int = FOR_EACH_TASK) -> int:
    """The number of buckets of a new checkpoint for which none is asked for."""
    tasks = int(str(spark.conf.get(TASKS, str(TASKS_OF_SPARK))))
    return min(MOST_BUCKETS, for_each_task * tasks)


def tiebreak_types(plan: Plan, types: dict[str, str]) -> dict[str, str]:
    """The types of the tiebreak columns that are no attributes.

    types: of the columns as Spark writes them. Raises EventError for a type that a state does not
    hold.
    """
    known = {a.name for a in plan.source.attributes}
    found = {}
    for name in plan.source.tiebreak:
        if name in known:
            continue
        spark_type = types[name].split(" ")[0]
        if spark_type not in _TIEBREAK_TYPES:
            raise EventError(
                f"query {plan.name!r}: the tiebreak column {name!r} is of type {types[name]}, "
                "which the state of a stream does not hold: cast it to one of "
                f"{', '.join(sorted(set(_TIEBREAK_TYPES)))}"
            )
        found[name] = _TIEBREAK_TYPES[spark_type]
    return found


# --- the plan -------------------------------------------------------------------------------------


def instant_of(order: OrderColumn) -> Column:
    """The time of an event as an instant; a time without a zone is in UTC."""
    return utc_instant(order.column) if order.found == "timestamp_ntz" else order.column


def watermarked(
    rows: DataFrame,
    instant: Column,
    delay: str,
    skew: str | None,
    kept: Callable[[DataFrame], Column | None],
) -> tuple[DataFrame, str]:
    """The rows that can matter, with a watermark, and the name of the column that marks rows too
    far ahead of the clock (empty: there is no such column).

    kept: a condition on the rows that can matter; None: all can.
    """
    from pyspark.sql import functions

    names = rows.columns
    time, ahead = (unused_name(name, names) for name in ("celc_time", "celc_ahead"))
    if skew is None:
        marked = rows.withColumn(time, instant).withWatermark(time, delay)
        found = _filtered(kept(rows), marked, time).select(*map(column_named, names))
        return still_known(found, rows, names), ""
    # The clock is that of the micro-batch, which Spark stores with its offsets. So a micro-batch
    # that is run again makes the same decisions.
    limit = functions.unix_micros(functions.current_timestamp()) + duration(
        skew, "max_event_time_skew"
    )
    too_far = functions.coalesce(functions.unix_micros(instant) > limit, functions.lit(False))
    marked = rows.withColumn(ahead, too_far).withColumn(
        time,
        functions.when(column_named(ahead), functions.timestamp_micros(functions.lit(0))).otherwise(
            instant
        ),
    )
    marked = marked.withWatermark(time, delay)
    marked = _filtered(kept(rows), marked, time)
    found = marked.select(*map(column_named, (*names, ahead)))
    return still_known(found, rows, (*names, ahead), {ahead: "BOOLEAN"}), ahead


def kept_rows(plan: Plan, rows: DataFrame) -> Column | None:
    """The condition on rows that can matter to a query, for `watermarked`; None: all can."""
    return None if why_not_filtered(plan) else can_matter(plan, rows.schema)


def _filtered(kept: Column | None, marked: DataFrame, time: str) -> DataFrame:
    """The rows that can matter; all rows still move the watermark.

    Spark moves a filter before the watermark unless the filter names the watermark's own column.
    """
    return marked if kept is None else marked.where(kept | column_named(time).isNull())


def _steps(
    program: Program,
    rows: DataFrame,
    options: StreamOptions,
    api: str,
    rules: Rows | None,
    state: str,
) -> DataFrame:
    sent = options._asdict()
    table = None if rules is None else rules.batch
    matches = in_buckets(
        rows,
        partial(packing_route(program), sent, table),
        partial(task_route(program), sent),
        partial(unpacking_route(program), sent, table),
        _ddl(program.plan, options),
        api=api,
        metrics=program.name,
        state=state,
    )
    last = partial(finishing_route(program), sent, table)
    return remember_plan(matches, program.name, {state: last})


def in_buckets(
    rows: DataFrame,
    packing: Any,
    task: Any,
    unpacking: Any,
    ddl: str,
    *,
    api: str,
    metrics: str,
    state: str = STATE,
    beside: DataFrame | None = None,
    step_ddl: str = STEP_DDL,
    counts: Sequence[str] = COUNTS,
) -> DataFrame:
    """The three steps of a stream over rows with a watermark.

    packing, unpacking: functions for `mapInArrow`. task: makes the task of a worker. ddl: of the
    answer. metrics: the name of the counts after `METRICS`. state: the name of the state variable.
    beside: further rows of the packed form. step_ddl, counts: of the rows of steps.
    """
    from pyspark.sql import functions

    processor = bucket_processor(task, api, state)
    check_size(rows.sparkSession, processor)
    blocks = mapped(rows, packing, PACKED_DDL)
    if beside is not None:
        blocks = blocks.union(beside)
    grouped = blocks.groupBy("bucket")
    run = grouped.transformWithState if api == "row" else grouped.transformWithStateInPandas
    steps = run(processor, schema_of_ddl(step_ddl), "append", "EventTime")
    steps = steps.observe(
        METRICS + metrics,
        *(functions.coalesce(functions.sum(n), functions.lit(0)).alias(n) for n in counts),
    )
    return as_ddl(steps, step_ddl).mapInArrow(unpacking, schema_of_ddl(ddl))


def _ddl(plan: Plan, options: StreamOptions) -> str:
    own = plan.output_ddl()
    return own if options.late != "side" else side_ddl(own, refused_schema(plan, options))


def side_ddl(own: str, refused: pa.Schema) -> str:
    """The columns of matches (`own`, in Spark's notation) and of the events that are not run."""
    fields = []
    for field in refused.field("event").type:
        type = named_type(field.type) or "BINARY"
        fields.append(f"{quoted(field.name)}: {ddl_of(type)}")
    return f"kind STRING, {own}{', ' if own else ''}`event` STRUCT<{', '.join(fields)}>"


def split_late(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The matches of a micro-batch and its late events: `late='side'` has both in one DataFrame.

    For `foreachBatch`. Late events have the columns of `event` and `kind` (`late`, or `ahead` if
    too far ahead of the clock). Of a stream with near misses these are among the matches, which
    keep `kind`. Raises EventError for a DataFrame without these columns.
    """
    names = frame.columns
    if "kind" not in names or "event" not in names:
        raise EventError(
            "split_late takes what match_stream(df, late='side') gives; this DataFrame has the "
            f"columns: {', '.join(map(repr, names))}"
        )
    is_match = column_named("kind").isin("match", "near")
    has_near = [name for name in names if name in TOLD] == [*TOLD]
    matches = frame.where(is_match).drop("event", *([] if has_near else ["kind"]))
    return matches, frame.where(~is_match).select("kind", "event.*")

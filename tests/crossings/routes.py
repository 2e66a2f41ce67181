"""The ways to run a compiled query on one machine, and as a stream."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from calendar_columns import with_calendar_intervals
from celc_runtime import CompiledQuery
from celc_runtime.arrow.tables.derived import with_derived
from celc_runtime.chain.columns import source_of
from celc_runtime.chain.run import why_gathered
from celc_runtime.chain.streams.operators import Wanted, group_of
from celc_runtime.program import Rows
from celc_runtime.routes.rules import Reason, Route
from celc_runtime.routes.why_not import why_not
from celc_runtime.rules.rows import rows_of
from celc_runtime.run.feeding import read_all
from celc_runtime.stream.formats import StreamOptions
from celc_runtime.stream.rules import hash_of_rows, in_one_order
from celc_runtime.stream.stored import sections
from celc_runtime.stream.tasks import BucketTask
from coded_columns import with_coded_columns
from engines import Row, batches_of, in_parts, table_of, with_texts_of_any_form
from module_streams_by_hand import module_streamed
from parameters import rows_table
from queries_over_queries import source_table
from streams_by_hand import Operator, microseconds, shuffled

from .drafts import ORDER, TIEBREAK, TYPES
from .events import Events


def table_for(query: CompiledQuery, events: Events) -> pa.Table:
    """The events as the query reads them, `row` besides."""
    if not query.plan.source.reads:
        return table_of(query.plan, events)
    table = source_table(query, events)
    if source_of(query.program).plan.source.stream_column:
        streams = pa.array([event["stream"] for event in events], pa.string())
        table = table.append_column("stream", streams)
    rows = pa.array([event[TIEBREAK] for event in events], pa.int64())
    return table.append_column(TIEBREAK, rows)


def given_rules(query: CompiledQuery, rules: Sequence[Row]) -> dict[str, pa.Table]:
    """The table of a query FOR EACH, as calls take it."""
    return {} if query.plan.source.parameters is None else {"rule": rows_table(query, rules)}


def by_table(query: CompiledQuery, events: Events, rules: Sequence[Row]) -> list[Row]:
    """`match_table`, of texts and durations in any form, some columns coded."""
    rng = random.Random(len(events))
    table = with_texts_of_any_form(table_for(query, events), rng)
    table = with_coded_columns(with_calendar_intervals(table, rng), rng)
    found = query.match_table(table, **given_rules(query, rules))
    assert found.schema.equals(query.output_schema)
    rows: list[Row] = found.to_pylist()
    return rows


def by_batches(
    query: CompiledQuery, events: Events, rules: Sequence[Row], rng: random.Random
) -> list[Row]:
    """`match_arrow` of batches at random, of one row each, of two, of all."""
    plan = query.plan
    table = table_for(query, events)
    if plan.source.reads:
        table = _in_parts(query, table)
    elif plan.source.partition_by and not plan.interleaves:
        table = table_of(plan, in_parts(plan, events))
    given, batches = given_rules(query, rules), _batches(table, rng)
    if plan.source.reads or rng.random() < 0.5 or why_not(query.program, Route.RUN):
        found = query.match_arrow(batches, **given)
    else:
        found = read_all(query.run(**given), batches)
    return [row for batch in found for row in batch.to_pylist()]


def compact_tables(query: CompiledQuery, events: Events) -> tuple[pa.Table, pa.Table] | None:
    """The events of a query that reads others, and in the order of batches; None: of one that does
    not."""
    if not query.plan.source.reads:
        return None
    table = table_for(query, events)
    return table, _in_parts(query, table)


def _in_parts(query: CompiledQuery, table: pa.Table) -> pa.Table:
    """A table as the batches of a chain come, partition by partition."""
    if not query.plan.source.partition_by or why_gathered(query.program):
        return table
    names = (*query.plan.source.partition_by, *query.plan.source.order_by)
    return table.take(pc.sort_indices(table, [(name, "ascending") for name in names]))


def can_be_a_frame(query: CompiledQuery, events: Events) -> bool:
    """Whether `match_pandas` has the same answer; in a frame NaN is NULL."""
    plan = query.plan
    reason = why_not(query.program, Route.PANDAS)
    # A clock can be given.
    if plan.answer.totals is not None or (reason is not None and reason.code != "unknown-clock"):
        return False
    if (plan.asks_for_clock or reason is not None) and _clock(query, events) is None:
        return False
    return not any(event["key"] != event["key"] for event in events)


def _clock(query: CompiledQuery, events: Events) -> Any:
    """The greatest value of the order among declared events, which a frame of one partition does
    not tell."""
    order = query.plan.source.order_by[0]
    return max((event[order] for event in events if event["type"] in TYPES), default=None)


def by_frame(query: CompiledQuery, events: Events, rules: Sequence[Row]) -> list[Row]:
    """`match_pandas` of a frame, times without a zone, as Spark hands it over."""
    if query.plan.asks_for_clock or why_not(query.program, Route.PANDAS) is not None:
        query = query.with_options(clock=_clock(query, events))
    table = table_for(query, events)
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            naive = table.column(number).cast(pa.timestamp("us"))
            table = table.set_column(number, field.name, naive)
    found = query.match_pandas(
        table.to_pandas(integer_object_nulls=True), **given_rules(query, rules)
    )
    rows: list[Row] = pa.Table.from_pandas(
        found, schema=query.output_schema, preserve_index=False
    ).to_pylist()
    return rows


def _batches(table: pa.Table, rng: random.Random) -> Iterator[pa.RecordBatch]:
    size = rng.choice((1, 2, 3, 0, 0))
    if not size:
        yield from batches_of(table, rng)
        return
    yield from table.combine_chunks().to_batches(max_chunksize=size)


# --- streams --------------------------------------------------------------------------------------


def stream_query(query: CompiledQuery) -> CompiledQuery | Reason:
    """The query as a stream runs it; the reason where it is refused."""
    plan = query.plan
    if plan.choice.at_end != "open":
        query = query.with_options(at_end="open")
    reason = why_not(query.program, Route.UNBOUNDED)
    return query if reason is None else reason


def by_stream(
    query: CompiledQuery, events: Events, rules: Sequence[Row], rng: random.Random, *, late: bool
) -> tuple[list[Row], Events]:
    """The rows that come out of micro-batches, and the events that were not late. Workers begin
    anew from the state that was saved at any time. With `late` events come later than the watermark
    allows."""
    plan = query.plan
    if plan.source.reads:
        return _by_chain(query, events, rng), events
    given: Rows | None = None
    if plan.source.parameters is not None:
        given = in_one_order(rows_of(query.name, plan.source.parameters, rows_table(query, rules)))
    options = StreamOptions(
        {TIEBREAK: "LONG"} if plan.source.tiebreak else {},
        late="side" if late else "drop",
        buckets=rng.choice((1, 3)) if plan.source.partition_by else 1,
        rules=0 if given is None else hash_of_rows(given),
    )
    with pytest.MonkeyPatch.context() as patch:
        if rng.random() < 0.5:
            patch.setattr(sections, "WHOLE", 2)
            patch.setattr(sections, "_ROWS", 1)
        operator = Operator(query, options, rng=rng, rules=given)
        rows = list(_rows(operator, events, rng, late=late))
    if not late:
        assert not operator.counts["late"], "no event was late"
        return rows, events
    too_late = {row["event"][TIEBREAK] for row in rows if row["kind"] != "match"}
    found = [row for row in rows if row.pop("kind") == "match"]
    for row in found:
        del row["event"]
    return found, [event for event in events if event[TIEBREAK] not in too_late]


def _by_chain(query: CompiledQuery, events: Events, rng: random.Random) -> list[Row]:
    """The rows of a query that reads others, from the operator of the whole chain."""
    table = table_for(query, events)
    buckets = rng.choice((1, 3)) if query.plan.source.partition_by else 1
    ties = {TIEBREAK: "LONG"} if query.plan.source.tiebreak else {}
    return module_streamed(
        group_of(query.program, Wanted()),
        table,
        rng,
        time=ORDER,
        options=StreamOptions(ties, buckets=buckets),
    )


def _rows(
    operator: Operator, events: Events, rng: random.Random, *, late: bool
) -> Iterator[dict[str, Any]]:
    times = [microseconds(event[ORDER]) for event in events]
    delay = rng.choice((1, 2, 5, 1000))
    order = shuffled(times, rng.choice((3, 8, 50)) if late else delay, rng)
    delay = rng.choice((0, 1, 2)) if late else delay
    # Spark makes derived columns before its workers see the rows.
    table = with_derived(operator.query.plan, table_of(operator.query.plan, events))
    place = latest = 0
    while place < len(order):
        count = 0 if rng.random() < 0.1 else rng.randint(1, 3)
        chosen = order[place : place + count]
        yield from operator.advance(table.take(chosen) if chosen else None, max(0, latest - delay))
        latest = max([latest, *(times[number] // 1000 for number in chosen)])
        place += count
        if rng.random() < 0.3:
            operator.task = BucketTask(operator.query.program, operator.options)
    if rng.random() < 0.5:
        yield from operator.advance(None, max(0, latest - delay))
    yield from operator.finish()


def in_one_spelling(rows: Iterable[Row]) -> list[Row]:
    """Rows in which 0.0 has one spelling."""
    return [
        {name: value + 0.0 if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def without_positions(row: Row, names: Sequence[str]) -> Row:
    """A row as `positions=False` shows it, in which labels without attributes have no column."""
    return {
        name: [_bare(one) for one in value] if isinstance(value, list) else value
        for name, value in row.items()
        if name in names
    }


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: value[name] for name in value if name != "pos"}

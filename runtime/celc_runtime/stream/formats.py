"""The options with which a query runs on a stream, and the formats of the events and states that
they decide."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import NamedTuple

from celc_runtime.engine.totals.measures import measures_of
from celc_runtime.engine.totals.stored_sums import most_words
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.stream.one_bucket.known_keys import key_values
from celc_runtime.stream.stored.needs import needs_of, record_of
from celc_runtime.stream.stored.rows import RowField, RowLayout
from celc_runtime.stream.stored.state import StateFormat


class StreamOptions(NamedTuple):
    """How a query is run on a stream; sent to workers as a plain dictionary."""

    tiebreak_types: dict[str, str]  # the types of tiebreak columns that are not attributes
    late: str = "drop"
    key_ttl: int | None = None  # microseconds
    has_types: bool = True  # whether rows have a column of event types
    ahead: str = ""  # the column that marks times too far ahead of the clock; empty: no such limit
    buckets: int = 1  # the number of buckets
    wanted: tuple[str, ...] = ()
    """Of an operator of several queries, for each unit the column that marks the rows that can
    matter to it; empty: all can."""
    emit: str = "final"  # when rows come, as `emitting` takes it
    tiebreak: tuple[str, ...] = ()  # the tiebreak columns of a query of MATCH_RECOGNIZE
    rules: int = 0  # a hash of the rows of a query FOR EACH (`rules_of_stream`); 0: not FOR EACH
    accepts: tuple[tuple[bytes, bytes], ...] = ()
    """The queries whose states the stream goes on with: their identities, and the records of what
    they need."""


class StreamFormats:
    """The formats of a query's events and states.

    leaves_earlier: the argument of `StateFormat`. values: the columns of what is known of each
    partition (`key_values`). most_kept: how many numbers are kept with a partition (`row_layout`).
    Both None: what a query of CEL needs. is_recorded: whether headers say what the query needs of a
    state, so that another query can go on with it.
    """

    def __init__(
        self,
        program: Program,
        options: StreamOptions,
        leaves_earlier: Sequence[int] = (0,),
        *,
        values: tuple[str, ...] | None = None,
        most_kept: int | None = None,
        is_recorded: bool = False,
    ) -> None:
        self.events: RowLayout = row_layout(program.plan, options.tiebreak_types, most_kept)
        known = key_values(program, options.key_ttl) if values is None else values
        record: Callable[[], bytes] = bytes
        if is_recorded:
            record = cache(partial(_record, program, self.events, known))
        self.states = StateFormat(
            program.plan,
            self.events,
            program.text,
            program.contexts,
            known,
            buckets=options.buckets,
            rules=options.rules,
            leaves_earlier=leaves_earlier,
            record=record,
            accepts=dict(options.accepts),
        )


def _record(program: Program, layout: RowLayout, values: Sequence[str]) -> bytes:
    return record_of(needs_of(program, layout, values))


def row_layout(
    plan: Plan, tiebreak_types: dict[str, str], most_kept: int | None = None
) -> RowLayout:
    """The layout of a query's events: all columns that it reads, those of `key_columns` last.

    tiebreak_types: the types of tiebreak columns that are no attributes. most_kept: how many
    numbers are kept with a partition; None: as many as a query of CEL needs.
    """
    types = {a.name: a.type for a in plan.source.attributes}
    names = dict.fromkeys([*plan.source.order_by, *(a.name for a in plan.source.attributes)])
    fields = [RowField(name, types[name]) for name in names if name not in plan.source.key_columns]
    fields += [
        RowField(name, tiebreak_types[name])
        for name in plan.source.tiebreak
        if name not in types and name in tiebreak_types
    ]
    keys = [RowField(name, plan.source.type_of(name)) for name in plan.source.key_columns]
    if most_kept is None:
        most_kept = _most_kept(plan)
    return RowLayout(fields, keys, max(1, len(plan.source.declared_types)), most_kept)


def _most_kept(plan: Plan) -> int:
    """How many numbers are kept with a partition, for LIMIT … PER or for totals."""
    if plan.answer.totals is not None and plan.answer.totals.of_partitions:
        return most_words(measures_of(plan.answer.totals.functions))
    rate = plan.choice.rate
    if rate is None:
        return 0
    return 1 if rate.length is None else rate.count

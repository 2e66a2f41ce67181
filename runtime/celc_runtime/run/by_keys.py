"""A keyed query over more events than memory holds: one range of keys after another.

One run reads partitions in the order of their keys. So the answers for ranges of the first key, one
after another, are the answer: nothing is merged. The events are read once more for each range.

Rejected: partitions by a hash of the key, which a first reading writes to a disk. Their answers
would have to be merged, and a disk be found that has room; to read a file of Parquet again takes
less than to write it down in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.arrays import in_one_piece, plain
from celc_runtime.arrow.events.conforming import names_read
from celc_runtime.arrow.events.sorting import Sorted, order_for
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.names import unused_name
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.program import Program
from celc_runtime.run.choice.deadlines import latest_time
from celc_runtime.run.feeding import read_all
from celc_runtime.run.parts import (
    MOST_AT_ONCE,
    ROWS_THAT_PAY,
    Answer,
    Part,
    answer_of_parts,
    parts_of,
    threads_of,
)
from celc_runtime.run.run_of import run_of
from celc_runtime.run.seen import warn_at_the_end
from celc_runtime.run.source.run_options import RunOptions
from celc_runtime.run.threads import workers_of

Read = Callable[[], Iterable[pa.RecordBatch]]
"""Reads the events from their beginning, as often as it is called, in the columns of a query."""

_SAMPLED = 1 << 12  # rows of a batch whose keys are looked at


def why_at_once(plan: Plan) -> str:
    """Why all events of a query have to be in memory together; empty where they need not be."""
    if plan.source.parameters is not None:
        return "it is FOR EACH row of a table"
    if plan.source.reads:
        return "it reads the rows of other queries"
    if plan.interleaves:
        return "with CONSUME BY ANY a match depends on those of all partitions"
    if not plan.source.key_columns:
        return "it has no PARTITION BY, and the events are not in their order"
    name = plan.source.key_columns[0]
    if name in plan.source.chosen_columns:
        return f"its first key {name!r} is another attribute for each event type"
    type = arrow_type(plan.source.type_of(name))
    is_ordered = (
        pa.types.is_integer(type)
        or pa.types.is_string(type)
        or pa.types.is_timestamp(type)
        or pa.types.is_date(type)
    )
    return "" if is_ordered else f"its first key {name!r} is a {plan.source.type_of(name)}"


class KeyRange(NamedTuple):
    """The partitions whose first key is at least `low` and below `high`; None: there is no such
    border, and NULL is below all."""

    low: Any
    high: Any

    def mask(self, keys: pa.Array) -> pa.Array:
        """bool[rows]: which rows are in it."""
        if self.low is None and self.high is None:
            return pa.array(np.ones(len(keys), np.bool_))
        if self.low is None:
            return pc.fill_null(pc.less(keys, self.high), True)
        inside = pc.greater_equal(keys, self.low)
        if self.high is not None:
            inside = pc.and_(inside, pc.less(keys, self.high))
        return pc.fill_null(inside, False)


class Keys:
    """Some of the first keys of events, up to 4,096 of each batch."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._found: list[pa.Array] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next batch of events. Raises EventError for a column that is derived."""
        key = _key(self._program, table_of(self._program, batch, self._rows))
        self._rows += len(batch)
        if len(key) > _SAMPLED:
            key = key.take(np.linspace(0, len(key) - 1, _SAMPLED).astype(np.int64))
        self._found.append(key)

    def ranges(self, wanted: int) -> list[KeyRange]:
        """About `wanted` ranges of keys with about the same number of events; fewer if keys are
        few."""
        known = pc.drop_null(pa.concat_arrays(self._found)) if self._found else pa.nulls(0)
        known = known.take(pc.sort_indices(known))
        places = [len(known) * number // wanted for number in range(1, wanted)]
        borders = pc.unique(known.take(pa.array(places, pa.int64())))
        # Below the least key there is none.
        borders = [one for one in borders if one != known[0]]
        return [
            KeyRange(low, high)
            for low, high in zip([None, *borders], [*borders, None], strict=True)
        ]


def _key(program: Program, table: pa.Table) -> pa.Array:
    return plain(in_one_piece(table.column(program.plan.source.key_columns[0])))


def matches_by_keys(
    program: Program, read: Read, ranges: Sequence[KeyRange], threads: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The matches of `match_table`, in its order, with the events of one range in memory at a time.

    ranges: in order, and of all keys. threads: as for `match_table`. Raises EventError, with the
    numbers of rows as they are read.
    """
    plan, options, seen = program.plan, RunOptions(), None
    if plan.asks_for_clock and plan.choice.clock is None:
        options = replace(options, clock=_clock(program, read, ranges, threads))
    for one in ranges:
        answer = _answer(program, *_in_order(program, read, one, threads), options)
        seen = answer.seen if seen is None else seen.and_later(answer.seen)
        while answer.batches:
            yield answer.batches.pop(0)  # which is not held any longer
    if seen is not None:
        warn_at_the_end(plan, *seen)


def _answer(program: Program, rows: Sorted, threads: int, options: RunOptions) -> Answer:
    """The matches of the events of a range."""
    count = rows.size
    parts = parts_of(program, rows, threads) or [Part(0, 0, count, count)]
    answer = answer_of_parts(program, rows, parts, options, threads)
    if answer is None:
        run = run_of(program, replace(options, numbered=rows.numbered))
        for _ in read_all(run, rows.batches(0, count, MOST_AT_ONCE)):
            pass
        raise AssertionError("one run reads what several could not")
    return answer


def _clock(
    program: Program, read: Read, ranges: Sequence[KeyRange], threads: int | None
) -> int | None:
    """The key of the greatest time of all events; None where one is wrong, which a run says."""
    try:
        found = [
            latest_time(program.plan, rows.batches(0, rows.size, MOST_AT_ONCE))
            for rows, _ in (_in_order(program, read, one, threads) for one in ranges)
        ]
    except EventError:
        return None
    return max((one for one in found if one is not None), default=None)


def _in_order(
    program: Program, read: Read, keys: KeyRange, threads: int | None
) -> tuple[Sorted, int]:
    """(The events of a range of keys in the order of the query, with the numbers of their rows; the
    threads that read them)."""
    plan, tables, before = program.plan, [], 0
    numbered = None
    for table in _tables(program, read):
        numbered = numbered or unused_name("row", [*table.column_names, *names_read(plan)])
        numbers = pa.array(np.arange(before, before + len(table)))
        before += len(table)
        chosen = keys.mask(_key(program, table))
        # Coded texts are decoded when they are few: not all batches have one code.
        tables.append(_plain(table.append_column(numbered, numbers).filter(chosen)))
    # In one piece, so that sorting copies none.
    gathered = pa.concat_tables(tables, promote_options="default").combine_chunks()
    tables.clear()
    count = threads_of(len(gathered), threads, ROWS_THAT_PAY)
    rows = order_for(plan, gathered, workers=workers_of(count))
    return rows._replace(numbered=numbered), count


def _plain(table: pa.Table) -> pa.Table:
    columns = [plain(in_one_piece(column)) for column in table.itercolumns()]
    return pa.Table.from_arrays(columns, table.column_names)


def _tables(program: Program, read: Read) -> Iterator[pa.Table]:
    """The columns that a query reads, batch by batch, those that it derives too."""
    before = 0
    for batch in read():
        yield table_of(program, batch, before)
        before += len(batch)

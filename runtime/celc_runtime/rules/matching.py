"""The matches of a query FOR EACH on one machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import in_one_piece, whole_numbers
from celc_runtime.arrow.columns import Columns
from celc_runtime.arrow.event_tables import batches_of, table_of
from celc_runtime.arrow.event_types import type_numbers
from celc_runtime.arrow.output import FirstMatches
from celc_runtime.arrow.sorting import sorted_for
from celc_runtime.engine.batch import positions_in_parts
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.parameters import Parameters, Pattern
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program
from celc_runtime.rules.index import RowIndex
from celc_runtime.rules.inner import over_events, over_pairs, parameters_of
from celc_runtime.rules.pairs import AllPairs, Pairs
from celc_runtime.rules.patterns import answers
from celc_runtime.rules.rows import Rows, given_rows
from celc_runtime.rules.texts import with_one_dictionary
from celc_runtime.run.positions import InterleavedPositions
from celc_runtime.run.run import Run

_PAIRS = 1 << 21
"""About so many pairs are run at a time."""


def matches_for_each(
    program: Program, events: Any, tables: Mapping[str, Any], first: FirstMatches
) -> pa.Table:
    """The matches of a table for each row of a parameter table; see `CompiledQuery.match_table`."""
    rows = given_rows(program, tables)
    table, numbered = sorted_for(over_events(program.plan), table_of(program, events))
    found = _matches(program, rows, read_events(program, table, numbered))
    return pa.Table.from_batches(first.of(found), program.output_schema)


def batches_for_each(
    program: Program, events: Any, tables: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """The same of events in the order of the stream, as batches of bounded size."""
    rows = given_rows(program, tables)
    batches: Iterable[pa.RecordBatch] = batches_of(program, events)
    table = pa.Table.from_batches(batches)
    return _matches(program, rows, read_events(program, table, None))


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Events:
    """Events of all partitions, one after another, that conform and are in order.

    types: int64, the places of their types in `plan.declared_types`. parts: int64, a number for the
    partition of each; positions: int64, of the events in their partitions. clock: the key of the
    greatest time of the first order column, where that decides matches.
    """

    columns: pa.RecordBatch
    types: np.ndarray
    parts: np.ndarray
    positions: np.ndarray
    clock: int | None



def read_events(program: Program, table: pa.Table, numbered: str | None) -> Events:
    """The events of a table in the order of the stream; raises EventError for what does not fit.

    numbered: the column of the rows' numbers, where these are not in their first places.
    """
    plan = over_events(program.plan)
    reader = Columns(plan, ties_are_errors=False, numbered=numbered)
    columns = [in_one_piece(column) for column in table.columns]
    batch = pa.RecordBatch.from_arrays(columns, table.column_names)
    prepared = reader.prepare(batch)
    events = prepared.events
    if numbered is not None:
        events = events.drop_columns([numbered])
    _warn_of_undeclared(plan, reader)
    rows = np.arange(len(events))
    if plan.interleaves:
        parts = prepared.batch.slots
        none_before = np.zeros(reader.partitions_seen, np.int64)
        positions = InterleavedPositions(prepared, none_before).of(rows)
    elif len(prepared.parts):
        starts = np.zeros(len(events), np.int64)
        starts[prepared.parts] = 1
        parts = np.cumsum(starts)
        positions = positions_in_parts(rows, prepared.parts, 0)
    else:
        parts, positions = np.zeros(len(events), np.int64), rows
    clock = None
    if plan.asks_for_clock and plan.clock is None and len(events):
        clock = int(whole_numbers(events.column(plan.order_by[0])).max())
    return Events(events, type_numbers(plan, events, "a row"), parts, positions, clock)


def _warn_of_undeclared(plan: Plan, reader: Columns) -> None:
    undeclared = reader.undeclared
    if undeclared.total:
        pairs = plan.declared_types
        declared = [f"{s}>{name}" if plan.stream_column else name for s, name in pairs]
        warnings.warn(
            f"query {plan.name!r}: {undeclared.total:,} of the rows have a type that none of "
            f"its streams declares: {undeclared.words(declared)}; they are not part of the "
            "stream",
            EventWarning,
            stacklevel=4,
        )


# --- pairs ----------------------------------------------------------------------------------------


def _matches(program: Program, rows: Rows, events: Events) -> Iterator[pa.RecordBatch]:
    parameters = parameters_of(program.plan)
    inner = over_pairs(program)
    if not rows.count or not len(events.columns):
        return
    columns, of_rows = with_one_dictionary(program.plan, events.columns, rows.columns)
    shown, rows = rows, replace(rows, columns=of_rows)
    events = replace(events, columns=columns)
    pairs = pairs_of(program.plan, rows, events)
    if parameters.row_by_row:
        for row in range(rows.count):
            for matches in _of_row(inner, parameters, rows, events, pairs, row):
                numbers = np.full(len(matches), row, np.int64)
                yield with_rows(program, shown, matches, numbers)
        return
    run = Run(inner, clock=events.clock)
    for first, behind in pairs.chunks(min(_PAIRS, run.most_rows or _PAIRS)):
        of_rows, chosen = pairs.of(first, behind)
        if not len(chosen):
            continue
        batch = pair_batch(parameters, rows, events, of_rows, chosen)
        parts = events.parts[chosen]
        begins = np.ones(len(chosen), np.bool_)
        begins[1:] = (of_rows[1:] != of_rows[:-1]) | (parts[1:] != parts[:-1])
        found = run.push_parts(
            batch,
            events.types[chosen].astype(np.int32),
            np.flatnonzero(begins),
            events.positions[chosen],
        )
        for matches in found:
            yield with_rows(program, shown, matches)
    for matches in run.rest():
        yield with_rows(program, shown, matches)
    run.finish()


def pairs_of(plan: Plan, rows: Rows, events: Events) -> Pairs:
    """The events that concern each row."""
    parameters = parameters_of(plan)
    if parameters.concerns is None:
        return AllPairs(len(events.columns), rows.count)
    index = RowIndex(rows, parameters.concerns)
    found = []
    for number, type in enumerate(plan.declared_types):
        of_type = np.flatnonzero(events.types == number)
        if len(of_type):
            found += index.find(type, of_type, events.columns)
    return Pairs(found, rows.count)


def pair_batch(
    parameters: Parameters,
    rows: Rows,
    events: Events,
    of_rows: np.ndarray,
    chosen: np.ndarray,
) -> pa.RecordBatch:
    """Pairs as events of `over_pairs`: rows by their numbers (int64), events by their places
    (int32)."""
    places, numbers = pa.array(chosen), pa.array(of_rows)
    source = events.columns
    columns = {name: source.column(name).take(places) for name in source.schema.names}
    for column, name in parameters.columns:
        columns[column] = rows.columns[name].take(numbers)
    for pattern in parameters.patterns:
        columns[pattern.column] = _answers(pattern, rows, events, of_rows, chosen)
    if parameters.position is not None:
        columns[parameters.position] = pa.array(events.positions[chosen])
    if not parameters.row_by_row:
        columns[parameters.number] = numbers
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _answers(
    pattern: Pattern, rows: Rows, events: Events, of_rows: np.ndarray, chosen: np.ndarray
) -> pa.Array:
    texts = events.columns.column(pattern.attribute)
    return answers(pattern, texts, rows.columns[pattern.parameter], chosen, of_rows)


def _of_row(
    inner: Program, parameters: Parameters, rows: Rows, events: Events, pairs: Pairs, row: int
) -> Iterator[pa.RecordBatch]:
    """The matches of one row by a run of its own: its partitions interleave."""
    of_rows, chosen = pairs.of(row, row + 1)
    if not len(chosen):
        return
    batch = pair_batch(parameters, rows, events, of_rows, chosen)
    run = Run(inner, clock=events.clock)
    yield from run.push(batch, events.positions[chosen])
    yield from run.rest()
    run.finish()


def with_rows(
    program: Program, rows: Rows, matches: pa.RecordBatch, numbers: np.ndarray | None = None
) -> pa.RecordBatch:
    """Matches of pairs with the column of the parameter set; numbers: int64[matches], those of the
    rows, None: they are the first column."""
    plan = program.plan
    parameters = parameters_of(plan)
    columns = list(matches.columns)
    places = columns.pop(0) if numbers is None else pa.array(numbers)
    shown = [rows.columns[name].take(places) for name in parameters.shown]
    if shown:
        structs = pa.StructArray.from_arrays(shown, fields=list(plan.row_type))
    else:
        structs = pa.array([{}] * len(matches), plan.row_type)
    columns.insert(len(plan.partition_by), structs)
    return pa.RecordBatch.from_arrays(columns, schema=program.output_schema)

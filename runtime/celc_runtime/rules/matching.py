"""Events and rows as pairs, and matches of pairs with their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.matches.match_ids import hashes, with_rows_in
from celc_runtime.engine.arena.batch import NO_INTEGERS
from celc_runtime.plan.parameters import Course, Parameters, Pattern
from celc_runtime.plan.plan import Plan
from celc_runtime.program import Program, Rows
from celc_runtime.rules.courses import Follower
from celc_runtime.rules.index import RowIndex, index_of
from celc_runtime.rules.inner import over_events, parameters_of
from celc_runtime.rules.pairs import AllPairs, Pairs, united
from celc_runtime.rules.patterns import answers
from celc_runtime.rules.texts import with_one_dictionary


def _none() -> np.ndarray:
    return NO_INTEGERS


@dataclass(frozen=True)
class Events:
    """Events of all partitions, one after another, conforming and sorted."""

    columns: pa.RecordBatch
    types: np.ndarray  # int64, the places of their types in `declared_types`
    parts: np.ndarray  # int64, a number for the partition of each
    positions: np.ndarray  # int64, in their partitions
    times: np.ndarray = field(default_factory=_none)
    """int64, what the window is measured on; empty: there is no window."""
    floors: np.ndarray = field(default_factory=_none)
    """int64, the least time in the window that ends at each event."""

    @cached_property
    def has_parts(self) -> bool:
        return bool((self.parts != self.parts[0]).any())

    @cached_property
    def _one_type(self) -> int | None:
        first = int(self.types[0])
        return first if (self.types == first).all() else None

    @cached_property
    def _first_position(self) -> int | None:
        first, count = int(self.positions[0]), len(self.positions)
        return first if (self.positions == np.arange(first, first + count)).all() else None

    def types_of(self, chosen: np.ndarray) -> np.ndarray:
        """int32: the types of events by index.

        If all are equal, nothing is looked up, because the indices of many pairs are far apart.
        """
        found: np.ndarray
        if self._one_type is None:
            found = self.types[chosen].astype(np.int32)
        else:
            found = np.full(len(chosen), self._one_type, np.int32)
        return found

    def positions_of(self, chosen: np.ndarray) -> np.ndarray:
        """int64: the positions of events by index; likewise if they have no gaps."""
        found: np.ndarray
        if self._first_position is None:
            found = self.positions[chosen]
        else:
            found = chosen.astype(np.int64) + self._first_position
        return found

    def slice(self, first: int, behind: int) -> Events:
        part = slice(first, behind)
        columns = self.columns.slice(first, behind - first)
        return Events(
            columns,
            self.types[part],
            self.parts[part],
            self.positions[part],
            self.times[part],
            self.floors[part],
        )


def pairs_of(plan: Plan, index: RowIndex | None, rows: int, events: Events) -> Pairs:
    """The events that concern each row; without an index all do."""
    if index is None:
        return AllPairs(len(events.columns), rows)
    found: list[Pairs] = []
    for number, type in enumerate(plan.source.declared_types):
        of_type = np.flatnonzero(events.types == number)
        if len(of_type):
            found += index.find(type, of_type, events.columns)
    return united(found, rows)


def pairs_followed(
    plan: Plan, parameters: Parameters, course: Course, rows: Rows, events: Events
) -> Pairs:
    """The events to read for each row of a course."""
    types = plan.source.declared_types
    concerns = parameters.concerns
    if "course" not in rows.kept:
        rows.kept["course"] = Follower(rows, course, types, follows_all=concerns is None)
    follower = rows.kept["course"]
    assert isinstance(follower, Follower)
    window = events.parts, events.times, events.floors
    if concerns is not None and not follower.pays(events.columns, *window):
        return pairs_of(plan, index_of(rows, concerns), rows.count, events)
    index = index_of(rows, course.begins)
    assert index is not None
    following = follower.of_events(
        events.columns, events.types, events.parts, events.times, events.floors
    )
    found: list[Pairs] = []
    for number, type in enumerate(types):
        of_type = np.flatnonzero(events.types == number)
        if len(of_type):
            found += index.follow(type, of_type, events.columns, following)
    if follower.left_out.any():
        others = index_of(rows, concerns, only=follower.left_out)
        found.append(pairs_of(plan, others, rows.count, events))
    return united(found, rows.count)


def pair_batch(
    parameters: Parameters,
    rows: Rows,
    events: Events,
    of_rows: np.ndarray,
    chosen: np.ndarray,
    numbers: np.ndarray | None = None,
) -> pa.RecordBatch:
    """Pairs as events of `over_pairs`: rows by their places (int64), events by index (int32).

    numbers: int64[pairs], by which the query names the rows; None: their places.
    """
    places, of_places = pa.array(chosen), pa.array(of_rows)
    source = events.columns
    columns = {
        name: pc.take(source.column(name), places, boundscheck=False)
        for name in source.schema.names
    }
    for column, name in parameters.columns:
        columns[column] = pc.take(rows.columns[name], of_places, boundscheck=False)
    for pattern in parameters.patterns:
        columns[pattern.column] = _answers(pattern, rows, events, of_rows, chosen)
    if parameters.position is not None:
        columns[parameters.position] = pa.array(events.positions[chosen])
    if not parameters.row_by_row:
        columns[parameters.number] = of_places if numbers is None else pa.array(numbers)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def pair_batches(
    plan: Plan, rows: Rows, events: Events, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray, pa.RecordBatch]]:
    """The pairs of rows and events that can concern them, row by row, about `most` at a time.

    Each item is (int64, the rows; int32, the events; the pairs as events of `over_pairs`). There is
    at least one batch, which may have no pairs.
    """
    parameters, events_plan = parameters_of(plan), over_events(plan)
    events = replace(events, columns=with_one_dictionary(events_plan, events.columns, {})[0])
    pairs = pairs_of(plan, index_of(rows, parameters.concerns), rows.count, events)
    for first, behind in [*pairs.chunks(most)] or [(0, 0)]:
        numbers, chosen = pairs.of(first, behind)
        # Few of many rows concern an event, so only these are coded.
        paired, places = np.unique(numbers, return_inverse=True)
        few = rows.take(paired)
        columns, of_rows = with_one_dictionary(events_plan, events.columns, few.columns)
        of_events, few = replace(events, columns=columns), replace(few, columns=of_rows)
        yield numbers, chosen, pair_batch(parameters, few, of_events, places, chosen, numbers)


def _answers(
    pattern: Pattern, rows: Rows, events: Events, of_rows: np.ndarray, chosen: np.ndarray
) -> pa.Array:
    texts = events.columns.column(pattern.attribute)
    return answers(pattern, texts, rows.columns[pattern.parameter], chosen, of_rows)


def with_rows(
    program: Program,
    rows: Rows,
    matches: pa.RecordBatch,
    numbers: np.ndarray | None = None,
    schema: pa.Schema | None = None,
) -> pa.RecordBatch:
    """Matches of pairs, or compact answers, with the column of the parameter set, if it is shown.

    numbers: int64[matches], the numbers of the rows; None: they are the first column. schema: of
    what is returned; None: of matches.
    """
    plan = program.plan
    parameters = parameters_of(plan)
    columns = list(matches.columns)
    ids = None if plan.answer.match_id is None else columns.pop(0)
    places = columns.pop(0) if numbers is None else pa.array(numbers)
    if plan.answer.totals is not None:
        del columns[: len(plan.answer.totals.row_columns)]
    schema = schema or program.output_schema
    if not parameters.hidden:
        type = schema.field(parameters.name).type
        shown = [rows.columns[field.name].take(places) for field in type]
        if shown:
            structs = pa.StructArray.from_arrays(shown, fields=list(type))
        else:
            structs = pa.array([{}] * len(matches), type)
        columns.insert(len(plan.source.partition_by), structs)
    if ids is not None:
        if "hashes" not in rows.kept:
            declared = {one.name: rows.columns[one.name] for one in parameters.attributes}
            rows.kept["hashes"] = hashes(declared, rows.count)
        columns.insert(0, with_rows_in(ids, rows.kept["hashes"][:, np.asarray(places)]))
    return pa.RecordBatch.from_arrays(columns, schema=schema)

"""The search for near misses: the first run finds the events that matches have. Each bent query
then gives the matches that have none of these events; of each start the nearest stays.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.many.near.few_rows import FewRows, takes_few
from celc_runtime.many.near.measuring import compared, distance, took, whole
from celc_runtime.many.near.nearest import Candidates, nearest
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.near.queries import (
    FOUND,
    MATCHES,
    ROW,
    TOUCHED,
    UNDECIDED,
    BentComparison,
    BentQuery,
    Evidence,
    NearPlan,
    Took,
    Whole,
)
from celc_runtime.program import Program, Rows
from celc_runtime.rules.any_query import matches_of_table, with_tables


class Runs(Protocol):
    """A query of a module."""

    @property
    def program(self) -> Program: ...


class Known(NamedTuple):
    """Matches of the query that no near miss can be, and their starts."""

    matches: frozenset[Any]
    starts: frozenset[int]


@dataclass(frozen=True, eq=False)
class Search:
    """The near misses of one table, of a query FOR EACH for one row of its parameters.

    table: the events, sorted, with the number of each row in `ROW`. schema: of the answer. options:
    as `with_options` takes them, of all queries that are run. reading: reads what the bent queries
    do; it is never run.
    """

    plan: NearPlan
    queries: Mapping[str, Runs]
    schema: pa.Schema
    table: pa.Table
    parameters: Mapping[str, Rows]
    options: Mapping[str, Any]
    reading: Program

    @property
    def answer(self) -> Program:
        """The query that has the columns of a match."""
        return self.queries[self.plan.answer].program

    def found(self) -> pa.Table:
        """The near misses, in the order of their parts and starts."""
        touched = np.zeros(len(self.table), np.bool_)
        few = self._few_rows()
        matches = None if few is None else few.matches(MATCHES)
        if matches is None:
            matches = self._run(MATCHES, self._table(touched))
        for name in self.plan.lists:
            touched[matches[name].combine_chunks().flatten().to_numpy()] = True
        # A match without labels touches nothing.
        of_query = [_without_labels(matches, self.plan.lists)]
        if self.plan.waits:
            of_query.append(self._run(UNDECIDED, self._table(touched), at_end="closed"))
        known = Known(
            frozenset().union(*map(self._identities, of_query)),
            frozenset().union(*(one["start_pos"].to_pylist() for one in of_query)),
        )
        if few is not None:
            few.touch(touched)
        found = []
        for bent in self.plan.bent:
            rows = None if few is None else few.matches(bent.name)
            if rows is None:
                rows = self._run(bent.name, self._table(touched))
            found.append(self._candidates(bent, self.table, rows, known))
        keys = self.answer.plan.source.key_columns
        numbers, chosen = nearest(found, keys, self.plan.shown)
        for number, one in enumerate(found):
            of_bent = chosen[numbers == number]
            if one.query.evidence is not None and len(of_bent):
                self._find(one, of_bent)
        return self._answer(found, numbers, chosen)

    def _table(self, touched: np.ndarray) -> pa.Table:
        """The events, each with whether a match of the query has it (bool[rows])."""
        return self.table.append_column(TOUCHED, pa.array(touched))

    def _few_rows(self) -> FewRows | None:
        """The events for those queries that can do without others; None: there are none."""
        names = [MATCHES, *(one.name for one in self.plan.bent)]
        programs = {name: self.queries[name].program for name in names}
        few = {name: one for name, one in programs.items() if takes_few(one)}
        if self.options or not few:
            return None
        batches = self.table.combine_chunks().to_batches()
        if len(batches) != 1:
            return None
        return FewRows(self.reading, few, dict(self.plan.needs), dict(self.plan.tied), batches[0])

    def _run(self, name: str, table: pa.Table, **options: Any) -> pa.Table:
        """The matches of one of the queries. What a run warns of is about matches, of which near
        misses tell nothing."""
        rows = {name: one.for_another() for name, one in self.parameters.items()}
        program = with_tables(self.queries[name].program, rows)
        options = {**self.options, **options}
        if options:
            program = program.with_options(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            return matches_of_table(program, table, FirstMatches(None))

    def _identities(self, rows: pa.Table) -> set[Any]:
        """The part, the start, the end and the rows of all labels of each match."""
        if not len(rows):
            return set()
        names = [*self.answer.plan.source.key_columns, "start_pos", "end_pos"]
        columns = [rows[name].to_pylist() for name in names]
        columns += [one.to_pylist() for one in self._lists(rows).values()]
        return {repr(one) for one in zip(*columns, strict=True)}

    def _lists(self, rows: pa.Table) -> dict[str, pa.ListArray]:
        """The rows of each label; of one that is gone with a part none."""
        nothing = np.zeros(len(rows) + 1, np.int32)
        empty = pa.ListArray.from_arrays(pa.array(nothing), pa.array([], pa.int64()))
        return {
            label: rows[name].combine_chunks() if name in rows.column_names else empty
            for label, name in self.plan.columns
        }

    def _candidates(
        self, bent: BentQuery, table: pa.Table, rows: pa.Table, known: Known
    ) -> Candidates:
        lists = self._lists(rows)
        match bent.measure:
            case Whole():
                measured = whole(bent.measure, len(rows))
            case Took():
                measured = took(bent.measure, rows, table, [*lists.values()])
            case BentComparison():
                program = self.queries[bent.measure.query].program
                given = len(rows), table, program, self.parameters
                measured = compared(bent.measure, lists, *given)
        if known.matches:
            of_starts = np.flatnonzero(np.isin(rows["start_pos"].to_numpy(), [*known.starts]))
            for row in of_starts.tolist():
                if self._identities(rows.slice(row, 1)) <= known.matches:
                    measured.amounts[row] = math.nan
        return Candidates(bent, rows, lists, measured)

    def _find(
        self,
        candidates: Candidates,
        rows: np.ndarray,
    ) -> None:
        """Tell of near misses what stood where it must be absent: the first event of it."""
        evidence = candidates.query.evidence
        assert evidence is not None
        others = np.ones(len(self.table), np.bool_)
        labels = {
            row: tuple(tuple(one[row].as_py()) for one in candidates.lists.values())
            for row in rows.tolist()
        }
        for every in labels.values():
            for places in every:
                others[list(places)] = False
        table = self._table(others)
        found = self._run(evidence.query, table)
        starts = dict(zip(labels.values(), rows.tolist(), strict=True))
        first: dict[int, Any] = {}
        columns = [one.to_pylist() for one in self._lists(found).values()]
        for number, events in enumerate(found[FOUND].to_pylist()):
            row = starts.get(tuple(tuple(column[number]) for column in columns))
            if row is None or not self._counts(evidence, events[0], candidates.rows, row, table):
                continue
            if row not in first or events[0][ROW] < first[row][ROW]:
                first[row] = events[0]
        candidates.measured.events = {
            row: self._event_text(event, table) for row, event in first.items()
        }

    def _counts(
        self, evidence: Evidence, event: Any, rows: pa.Table, row: int, table: pa.Table
    ) -> bool:
        """Whether an event before a match stands near enough."""
        if evidence.size is None:
            return True
        start = rows["start_pos"][row].as_py()
        if evidence.attribute is None:
            return bool(start - event["pos"] <= evidence.size)
        # Within its part, rows are as far from each other as positions.
        column = table[evidence.attribute]
        at = event[ROW] + start - event["pos"]
        return bool(distance(column[event[ROW]], column[at]) <= evidence.size)

    def _event_text(self, event: Any, table: pa.Table) -> str:
        """An event by its type and time, without an order column by its position."""
        source = self.answer.plan.source
        name = source.type_name
        (_, only), *_ = source.declared_types
        kind = table[name][event[ROW]].as_py() if name in table.column_names else only
        if not source.order_by:
            return f"{kind} #{event['pos']}"
        time = table[source.order_by[0]].slice(event[ROW], 1).combine_chunks()
        return f"{kind} at {pc.cast(time, pa.string())[0].as_py()}"

    def _answer(
        self, found: Sequence[Candidates], numbers: np.ndarray, rows: np.ndarray
    ) -> pa.Table:
        if not found:
            return self.schema.empty_table()
        pieces = [
            _told(one, rows[numbers == number], self.schema) for number, one in enumerate(found)
        ]
        order = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
        return pa.concat_tables(pieces).take(pa.array(order))


def _told(candidates: Candidates, rows: np.ndarray, schema: pa.Schema) -> pa.Table:
    """The rows of a bent query with what was bent; columns of labels that are gone are NULL."""
    shown = [name for name in schema.names if name in candidates.rows.column_names]
    taken = candidates.rows.select(shown).take(pa.array(rows))
    asked, found = candidates.measured.texts(rows)
    bent = candidates.query
    told = {
        "part": pa.repeat(bent.part, len(rows)),
        "line": pa.repeat(bent.line, len(rows)),
        "column": pa.repeat(bent.column, len(rows)),
        "asked": asked,
        "found": found,
        "amount": pa.array(candidates.measured.amounts[rows]),
    }
    columns = []
    for field in schema:
        if field.name in told:
            columns.append(told[field.name].cast(field.type))
        elif field.name in shown:
            column = taken[field.name]
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    return pa.table(columns, schema=schema)


def _without_labels(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The matches that bind no label."""
    sizes = np.zeros(len(rows), np.int64)
    for name in columns:
        sizes += pc.list_value_length(rows[name]).to_numpy()
    return rows.filter(pa.array(sizes == 0))

"""The search for near misses: the first run finds the events that matches have. Each bent query
then gives the matches that have none of these events; of each start the nearest stays.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.many.near.measuring import Measured, compared, distance, took, whole
from celc_runtime.plan.errors import EventWarning
from celc_runtime.plan.frozen import frozen
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


@frozen
class Candidates:
    """The matches of a bent query: their rows, the lists of rows of their labels, and how far they
    bend."""

    query: BentQuery
    rows: pa.Table
    lists: Mapping[str, pa.ListArray]
    measured: Measured


@dataclass(frozen=True, eq=False)
class Search:
    """The near misses of one table, of a query FOR EACH for one row of its parameters.

    table: the events, sorted, with the number of each row in `ROW`. schema: of the answer. options:
    as `with_options` takes them, of all queries that are run.
    """

    plan: NearPlan
    queries: Mapping[str, Runs]
    schema: pa.Schema
    table: pa.Table
    parameters: Mapping[str, Rows]
    options: Mapping[str, Any]

    @property
    def answer(self) -> Program:
        """The query that has the columns of a match."""
        return self.queries[self.plan.answer].program

    def found(self) -> pa.Table:
        """The near misses, in the order of their parts and starts."""
        table = self.table
        touched = np.zeros(len(table), np.bool_)
        plain = table.append_column(TOUCHED, pa.array(touched))
        matches = self._run(MATCHES, plain)
        for name in self.plan.lists:
            touched[matches[name].combine_chunks().flatten().to_numpy()] = True
        table = table.append_column(TOUCHED, pa.array(touched))
        # A match without labels touches nothing.
        known = self._identities(_without_labels(matches, self.plan.lists))
        if self.plan.waits:
            known |= self._identities(self._run(UNDECIDED, table, at_end="closed"))
        found = [self._candidates(bent, table) for bent in self.plan.bent]
        chosen = self._nearest(found, known)
        for number, one in enumerate(found):
            rows = np.array([row for query, row in chosen if query == number], np.int64)
            if one.query.evidence is not None and len(rows):
                self._find(one, rows, table)
        return self._answer(found, chosen)

    def _run(self, name: str, table: pa.Table, **options: Any) -> pa.Table:
        """The matches of one of the queries. What a run warns of is about matches, of which near
        misses tell nothing."""
        program = with_tables(self.queries[name].program, self.parameters)
        options = {**self.options, **options}
        if options:
            program = program.with_options(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EventWarning)
            return matches_of_table(program, table, FirstMatches(None))

    def _identities(self, rows: pa.Table) -> set[Any]:
        """The part, the start, the end and the rows of all labels of each match."""
        names = [*self.answer.plan.source.key_columns, "start_pos", "end_pos"]
        columns = [rows[name].to_pylist() for name in names]
        columns += [one.to_pylist() for one in self._lists(rows).values()]
        return {repr(one) for one in zip(*columns, strict=True)}

    def _lists(self, rows: pa.Table) -> dict[str, pa.ListArray]:
        """The rows of each label; of one that is gone with a part none."""
        empty = pa.array([[]] * len(rows), pa.list_(pa.int64()))
        return {
            label: rows[name].combine_chunks() if name in rows.column_names else empty
            for label, name in self.plan.columns
        }

    def _candidates(self, bent: BentQuery, table: pa.Table) -> Candidates:
        rows = self._run(bent.name, table)
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
        return Candidates(bent, rows, lists, measured)

    def _find(
        self,
        candidates: Candidates,
        rows: np.ndarray,
        table: pa.Table,
    ) -> None:
        """Tell of near misses what stood where it must be absent: the first event of it."""
        evidence = candidates.query.evidence
        assert evidence is not None
        others = np.ones(len(table), np.bool_)
        labels = {
            row: tuple(tuple(one[row].as_py()) for one in candidates.lists.values())
            for row in rows.tolist()
        }
        for every in labels.values():
            for places in every:
                others[list(places)] = False
        table = table.set_column(table.schema.get_field_index(TOUCHED), TOUCHED, pa.array(others))
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
        texts = candidates.measured.found.to_pylist()
        for row, event in first.items():
            texts[row] = self._event_text(event, table)
        candidates.measured.tell(pa.array(texts, pa.string()))

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

    def _nearest(self, found: Sequence[Candidates], known: set[Any]) -> list[tuple[int, int]]:
        """Of each part and start the nearest candidate: the number of its query, and its row."""
        keys = self.answer.plan.source.key_columns
        sizes = [len(one.rows) for one in found]
        if not sum(sizes):
            return []
        amounts = np.concatenate([one.measured.amounts for one in found])
        starts, ends = (
            np.concatenate([one.rows[name].to_numpy() for one in found])
            for name in ("start_pos", "end_pos")
        )
        parts = numbered_parts([one.rows.select(keys) for one in found], sum(sizes))
        order = np.lexsort((ends, amounts, starts, parts))
        order = order[~np.isnan(amounts[order])]
        begins = np.cumsum([0, *sizes])
        chosen: list[tuple[float, int, int]] = []
        for _, group in itertools.groupby(order.tolist(), lambda at: (parts[at], starts[at])):
            best = None
            for at in group:
                near = amounts[at], ends[at]
                if best is not None and near > best[0][:2]:
                    break
                number = int(np.searchsorted(begins, at, "right")) - 1
                row = at - int(begins[number])
                place = self._place(found[number], row, near, number, known)
                if place is not None and (best is None or place < best[0]):
                    best = place, number, row
            if best is not None:
                chosen.append((best[0][2][0], *best[1:]))
        # Rows are numbered part by part.
        return [(number, row) for _, number, row in sorted(chosen)]

    def _place(
        self,
        candidates: Candidates,
        row: int,
        near: tuple[float, int],
        number: int,
        known: set[Any],
    ) -> tuple[Any, ...] | None:
        """Where a candidate stands among those of its start, the nearest first; None: it is an
        undecided match of the query."""
        labels = {name: tuple(one[row].as_py()) for name, one in candidates.lists.items()}
        if known and self._identities(candidates.rows.slice(row, 1)) <= known:
            return None
        support = sorted({place for rows in labels.values() for place in rows})
        shown = tuple(labels[name] for name in self.plan.shown)
        return *near, (*support, math.inf), number, shown

    def _answer(self, found: Sequence[Candidates], chosen: Sequence[tuple[int, int]]) -> pa.Table:
        schema = self.schema
        if not found:
            return schema.empty_table()
        pieces, order = [], np.empty(len(chosen), np.int64)
        at = 0
        for number, one in enumerate(found):
            mine = [place for place, (query, _) in enumerate(chosen) if query == number]
            rows = np.array([chosen[place][1] for place in mine], np.int64)
            order[mine] = np.arange(at, at + len(mine))
            at += len(mine)
            pieces.append(_told(one, rows, schema))
        return pa.concat_tables(pieces).take(pa.array(order))


def _told(candidates: Candidates, rows: np.ndarray, schema: pa.Schema) -> pa.Table:
    """The rows of a bent query with what was bent; columns of labels that are gone are NULL."""
    taken = candidates.rows.take(pa.array(rows))
    asked, found = candidates.measured.texts(rows)
    bent = candidates.query
    told = {
        "part": [bent.part] * len(rows),
        "line": [bent.line] * len(rows),
        "column": [bent.column] * len(rows),
        "asked": asked,
        "found": found,
        "amount": candidates.measured.amounts[rows],
    }
    columns = []
    for field in schema:
        if field.name in told:
            columns.append(pa.array(told[field.name], field.type))
        elif field.name in taken.column_names:
            columns.append(taken[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    return pa.table(columns, schema=schema)


def _without_labels(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The matches that bind no label."""
    sizes = np.zeros(len(rows), np.int64)
    for name in columns:
        sizes += pc.list_value_length(rows[name]).to_numpy()
    return rows.filter(pa.array(sizes == 0))


def numbered_parts(keys: Sequence[pa.Table], rows: int) -> np.ndarray:
    """A number for each match, equal where the parts are."""
    if not keys[0].column_names:
        return np.zeros(rows, np.int64)
    table = pa.concat_tables(keys)
    numbers = np.zeros(rows, np.int64)
    for column in table.columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0, column.type))  # -0.0 is the key 0.0
        codes = column.combine_chunks().dictionary_encode("encode").indices.to_numpy()
        numbers = numbers * (int(codes.max()) + 1) + codes
        numbers = np.unique(numbers, return_inverse=True)[1]
    return numbers

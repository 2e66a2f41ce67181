"""The answer of COLLAPSED: one row for each end, with the union of its matches."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from celc_runtime.arrow.arrays import whole_numbers
from celc_runtime.arrow.matches.total_rows import decimals
from celc_runtime.arrow.matches.total_values import WITHOUT_LIMIT, range_error
from celc_runtime.engine.totals.wide_columns import (
    WideColumn,
    leaves_38_digits,
    sums_of_groups,
    together,
    wide,
)
from celc_runtime.plan.plan import MATCHES, Plan
from celc_runtime.plan.strategy import are_united
from celc_runtime.program import Program
from celc_runtime.run.answer.answers import GroupRows
from celc_runtime.run.answer.match_groups import changes, partition_numbers
from celc_runtime.run.walk.listed import Listed

_MOST_ROWS = 1 << 16
_WHERE_ALONE = "SELECT MAX and SELECT ANY show where matches end"


class CollapsedRows(GroupRows):
    def __init__(self, program: Program, *, in_instants: bool) -> None:
        super().__init__(program, are_of_ends=True, in_instants=in_instants)
        self._waiting: list[pa.RecordBatch] = []
        self._counts: list[WideColumn] = []
        self._rows = self._merged = 0
        # Whether each row covers all matches of an end already.
        self._are_unions = are_united(program.listing)
        self._lasting = program.plan.source.begin is not None

    @property
    def nbytes(self) -> int:
        return int(sum(rows.nbytes for rows in self._waiting) + 16 * self._rows)

    def add(self, rows: pa.RecordBatch, listed: Listed | None) -> Iterator[pa.RecordBatch]:
        counts = None if listed is None else listed.walk.counts(listed.output)
        if counts is None:
            counts = wide(np.ones(len(rows), np.int64))
        if self._are_unions:
            # An event that is marked in two ways came twice.
            labels = [item.name for item in self._of_groups.answer.items]
            rows = united(rows, np.arange(len(rows)), labels, lasting=self._lasting)
        self._keep(rows, counts)
        if self._rows > max(_MOST_ROWS, 2 * self._merged):
            self._keep(*self._together()[:2])
            self._merged = self._rows
        yield from ()

    def _keep(self, rows: pa.RecordBatch, counts: WideColumn) -> None:
        self._waiting.append(rows)
        self._counts.append(counts)
        self._rows += len(rows)

    def _taken(self, *, but_last_part: bool) -> Iterator[pa.RecordBatch]:
        if not self._rows:
            return
        rows, counts, parts = self._together()
        known = int(np.searchsorted(parts, parts[-1])) if but_last_part else len(rows)
        if known < len(rows):
            self._keep(rows.slice(known), counts.taken(np.arange(known, len(rows))))
        if known:
            shown = counts.taken(np.arange(known))
            self._check(rows, shown)
            yield shown_rows(self._of_groups, self._rows_schema, rows.slice(0, known), shown)

    def _check(self, rows: pa.RecordBatch, counts: WideColumn) -> None:
        """Raise TotalError if a count has more than 38 digits."""
        wrong = leaves_38_digits(counts)
        if not wrong.any():
            return
        # Only a listing counts sets; totals do not.
        instead = WITHOUT_LIMIT if self._are_unions else _WHERE_ALONE
        end = rows.column("end_pos")[int(np.argmax(wrong))].as_py()
        what = "the number of matches has more than 38 digits"
        raise range_error(self._of_groups, what, end, instead)

    def _together(self) -> tuple[pa.RecordBatch, WideColumn, np.ndarray]:
        """Remove the waiting rows: one for each end, its number of matches, its partition
        (int64)."""
        (rows,) = pa.Table.from_batches(self._waiting).combine_chunks().to_batches()
        counts = together(self._counts)
        self._waiting, self._counts = [], []
        self._rows = self._merged = 0
        keys = [rows.column(name) for name in self._of_groups.source.partition_by]
        parts = partition_numbers(keys, len(rows))
        ends = np.asarray(rows.column("end_pos"))
        order = np.lexsort((ends, parts))
        if (np.diff(order) < 0).any():
            rows, counts = rows.take(pa.array(order)), counts.taken(order)
            parts, ends = parts[order], ends[order]
        starts = np.flatnonzero(changes([parts, ends]))
        if len(starts) == len(rows):
            return rows, counts, parts
        labels = [item.name for item in self._of_groups.answer.items]
        found = united(rows, starts, labels, lasting=self._lasting)
        return found, sums_of_groups(counts, starts, counts=True), parts[starts]


def united(
    rows: pa.RecordBatch, starts: np.ndarray, labels: Sequence[str], *, lasting: bool
) -> pa.RecordBatch:
    """One row for each group of rows; groups begin at `starts` (int64).

    It has the least start of the group, and under each label the union of the events, by position.
    lasting: events have a duration, so the match with the least position may not start first.
    """
    group = np.zeros(len(rows), np.int64)
    group[starts] = 1
    group = np.cumsum(group) - 1
    # The first row of each group with its least start.
    by_start = np.lexsort((np.asarray(rows.column("start_pos")), group))
    firsts = earliest = pa.array(by_start[starts])
    if lasting:
        times = whole_numbers(rows.column("start_time"))
        earliest = pa.array(np.lexsort((times, group))[starts])
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if name in labels:
            columns.append(_union(column, group, len(starts)))
        else:
            columns.append(column.take(earliest if name == "start_time" else firsts))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _union(column: pa.ListArray, group: np.ndarray, groups: int) -> pa.ListArray:
    offsets = np.asarray(column.offsets)
    of_events = np.repeat(group, np.diff(offsets))
    events = column.flatten()
    positions = np.asarray(events.field("pos"))
    order = np.lexsort((positions, of_events))
    kept = order[changes([of_events[order], positions[order]])] if len(order) else order
    counts = np.bincount(of_events[kept], minlength=groups)
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), events.take(pa.array(kept)))


def shown_rows(
    plan: Plan, schema: pa.Schema, rows: pa.RecordBatch, counts: WideColumn
) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.name == MATCHES:
            columns.append(decimals(counts, None))
            continue
        column = rows.column(field.name)
        if not plan.answer.positions and pa.types.is_list(field.type):
            events = column.flatten()
            names = [one.name for one in field.type.value_type]
            shown = [events.field(name) for name in names]
            structs = pa.StructArray.from_arrays(shown, fields=list(field.type.value_type))
            offsets = np.asarray(column.offsets)
            column = pa.ListArray.from_arrays(pa.array(offsets - offsets[0]), structs)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)

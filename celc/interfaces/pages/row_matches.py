"""The report on a query of MATCH_RECOGNIZE: rows are marks, matches are bars.

The result of such a query does not say which rows are in its matches. So the query runs here, by
the same code, and its matches are kept.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from celc_runtime.arrow.tables.event_tables import table_of
from celc_runtime.row_pattern.arranged import arranged
from celc_runtime.row_pattern.passes import FIRST_LABEL, LENGTH, MATCH_COLUMNS, PARTITION, START
from celc_runtime.row_pattern.query import RowPatternQuery
from celc_runtime.row_pattern.run import run_of
from celc_runtime.row_pattern.schemas import column_type
from celc_runtime.row_pattern.tables import Reader, conforming_table

from celc.interfaces.pages.marks import Marks
from celc.interfaces.pages.matches import Limits, Words, page_of_tables
from celc.interfaces.pages.page import Page

NO_MATCH = "in no match"


def page_of_rows(
    query: RowPatternQuery, rows: pa.Table, title: str | None = None, limits: Limits | None = None
) -> Page:
    """The page of a query over rows. Raises EventError where these do not fit the query."""
    plan = query.plan
    table = conforming_table(plan, table_of(Reader(plan).program, rows), derived=False)
    words = Words(title or query.name, query.text.strip("\n"))
    columns: dict[int, pa.Array] = {}
    offsets, found = np.zeros(1, np.int64), []
    if len(table):
        ordered = arranged(plan, table)
        columns, offsets = ordered.rows(0, len(table)), ordered.offsets
        found = list(run_of(query.program, columns, offsets).matches_and_result())
    if not found:
        nothing = np.zeros((0, MATCH_COLUMNS), np.int64), np.zeros(0, np.int32)
        found = [(*nothing, pa.RecordBatch.from_pylist([], query.output_schema))]
    chunks = [(matches, variables) for matches, variables, _ in found]
    marks = _marks(query, columns, offsets, chunks)
    results = [batch for _, _, batch in found] if plan.rows == "ONE ROW" else None
    count = sum(len(batch) for _, _, batch in found)
    notes = _notes(query, chunks, count)
    words = Words(words.title, words.text, notes=tuple(notes))
    matches = _matches(query, marks, offsets, chunks, results)
    return page_of_tables(marks, matches, words, limits or Limits())


_Chunks = Sequence[tuple[np.ndarray, np.ndarray]]


def _notes(query: RowPatternQuery, chunks: _Chunks, rows: int) -> list[str]:
    notes = []
    if query.plan.rows != "ONE ROW":
        notes.append(
            f"The query has a result of {rows:,} rows, one for each row of its matches. The list "
            "has one line for each match."
        )
    if any(_overlap(matches) for matches, _ in chunks):
        notes.append("A row in several matches has the colour of its variable in the first one.")
    return notes


def _overlap(matches: np.ndarray) -> bool:
    real = matches[matches[:, LENGTH] > 0]
    ends = real[:, START] + real[:, LENGTH]
    return bool((real[1:, START] < ends[:-1]).any())


def _marks(
    query: RowPatternQuery, columns: dict[int, pa.Array], offsets: np.ndarray, chunks: _Chunks
) -> Marks:
    plan = query.plan
    rows = int(offsets[-1])
    names = [*plan.variables, NO_MATCH]
    types = np.full(rows, len(plan.variables), np.int64)
    for matches, variables in reversed(chunks):
        for match in reversed(matches[matches[:, LENGTH] > 0].tolist()):
            start, length, first = match[START], match[LENGTH], match[FIRST_LABEL]
            types[start : start + length] = variables[first : first + length]
    empty = {n: pa.nulls(0, column_type(plan, n)) for n in (*plan.partition_by, *_ordering(query))}
    columns = columns or empty
    order = _ordering(query)
    return Marks(
        table=pa.table({plan.columns[n].name: columns[n] for n in columns}),
        keys=tuple(columns[n] for n in plan.partition_by),
        key_names=tuple(plan.columns[n].name for n in plan.partition_by),
        positions=np.arange(rows) - np.repeat(offsets[:-1], np.diff(offsets)),
        types=types,
        type_names=tuple(names),
        quiet=len(plan.variables),
        order=columns[order[0]] if order else None,
        order_name=plan.columns[order[0]].name if order else None,
    )


def _ordering(query: RowPatternQuery) -> list[int]:
    return [one.column for one in query.plan.order_by][:1]


def _matches(
    query: RowPatternQuery,
    marks: Marks,
    offsets: np.ndarray,
    chunks: _Chunks,
    results: list[pa.RecordBatch] | None,
) -> pa.Table:
    """A table of matches in the form of CEL's matches. `results` are their rows of the result."""
    names = query.plan.variables
    tables = []
    for number, (matches, variables) in enumerate(chunks):
        given = matches if results is not None else matches[matches[:, LENGTH] > 0]
        first = offsets[given[:, PARTITION]]
        empty = given[:, LENGTH] <= 0
        last = given[:, START] + np.maximum(given[:, LENGTH], 1) - 1
        starts, ends = pa.array(given[:, START]), pa.array(last)
        columns = {
            name: key.take(starts) for name, key in zip(marks.key_names, marks.keys, strict=True)
        }
        columns["start_pos"] = pa.array(given[:, START] - first)
        columns["end_pos"] = pa.array(last - first)
        if marks.order is not None:
            columns["start_time"] = marks.order.take(starts)
            columns["end_time"] = marks.order.take(ends)
        if results is not None:
            batch = results[number]
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                if name not in marks.key_names:
                    columns[_free(name, [*columns, *names])] = column
        labels = _labels(given, variables, first, empty, len(names))
        columns |= dict(zip(names, labels, strict=True))
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += " (measure)"
    return name


def _labels(
    matches: np.ndarray, variables: np.ndarray, first: np.ndarray, empty: np.ndarray, count: int
) -> list[pa.Array]:
    """For each variable the rows of each match, as lists of positions."""
    lengths = np.where(empty, 0, matches[:, LENGTH])
    of_match = np.repeat(np.arange(len(matches)), lengths)
    place = np.arange(len(of_match)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    taken = variables[matches[of_match, FIRST_LABEL] + place]
    positions = matches[of_match, START] + place - first[of_match]
    found = []
    for variable in range(count):
        of_variable = taken == variable
        sizes = np.bincount(of_match[of_variable], minlength=len(matches))
        borders = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        events = pa.StructArray.from_arrays([pa.array(positions[of_variable])], ["pos"])
        found.append(pa.ListArray.from_arrays(pa.array(borders, pa.int32()), events))
    return found

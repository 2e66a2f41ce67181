"""`celc.report`: a page of matches and their events, from tables in any form."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from celc_runtime.arrow.arrays import plain_batch
from celc_runtime.arrow.events.conforming import conforming
from celc_runtime.chain.columns import source_of
from celc_runtime.plan.schemas import input_schema
from celc_runtime.query import CompiledQuery
from celc_runtime.row_pattern.query import RowPatternQuery
from celc_runtime.rules.inner import over_events

from celc.interfaces.pages.marks import Marks, marks_of_columns, marks_of_program, no_marks
from celc.interfaces.pages.matches import Limits, Words, gathering, matches_page, page_of_tables
from celc.interfaces.pages.page import Page
from celc.interfaces.pages.row_matches import page_of_rows
from celc.interfaces.pages.tables import arrow_table, first_key
from celc.interfaces.pages.wording import words_of

_PLACES = ("start_pos", "start_time", "end_pos", "end_time", "span_start")


def report(
    matches: Any,
    events: Any,
    path: str | Path | None,
    *,
    query: Any,
    title: str | None,
    limits: Limits,
    near: Any = None,
) -> Page:
    """See `celc.report`."""
    found = arrow_table(matches, "matches")
    table = None if events is None else arrow_table(events, "events")
    compiled = _query(query)
    bent = None if near is None else arrow_table(near, "near misses")
    if isinstance(compiled, RowPatternQuery):
        if near is not None:
            raise ValueError("MATCH_RECOGNIZE has no near misses: leave out near")
        page = _page_of_rows(compiled, found, table, title, limits)
        return _written(page, path)
    if table is None:
        marks = no_marks()
    elif compiled is not None:
        marks = marks_of_program(compiled.program, table)
    else:
        marks = _marks_of_table(found, table)
    words = Words(title or "Matches") if compiled is None else words_of(compiled, title)
    return _written(page_of_tables(marks, found, words, limits, bent), path)


def _written(page: Page, path: str | Path | None) -> Page:
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _page_of_rows(
    query: RowPatternQuery,
    result: pa.Table,
    rows: pa.Table | None,
    title: str | None,
    limits: Limits,
) -> Page:
    if rows is None:
        raise ValueError("the result of MATCH_RECOGNIZE does not name its rows: give them as well")
    again = query.match_table(rows)
    if result.num_rows != again.num_rows or result.schema.names != again.schema.names:
        raise ValueError(
            f"the matches are not of these events: the query gives {again.num_rows:,} rows of "
            f"{', '.join(again.schema.names)}, and there are {result.num_rows:,} of "
            f"{', '.join(result.schema.names)}"
        )
    return page_of_rows(query, rows, title, limits)


def _query(given: Any) -> CompiledQuery | RowPatternQuery | None:
    """The compiled query behind the argument `query=`: a query, a matcher, or a module with one
    query."""
    if given is None or isinstance(given, CompiledQuery | RowPatternQuery):
        return given
    queries = getattr(given, "QUERIES", None) or {}
    if len(queries) != 1:
        names = ", ".join(queries) or "none"
        raise ValueError(
            f"query= is for one compiled query, and this has: {names}; give one of them, as in "
            "query=matcher.queries['name']"
        )
    (query,) = queries.values()
    assert isinstance(query, CompiledQuery | RowPatternQuery)
    return query


class ReportOfRun:
    """The page of one run of a query. Matches arrive batch by batch; the events are kept.

    Raises EventError where the events do not fit the query.
    """

    def __init__(self, query: CompiledQuery, events: Iterable[pa.RecordBatch]) -> None:
        self.table = table = conforming_table(query, events)
        self._batches = table.to_batches(max_chunksize=1 << 20)
        self._words = words_of(query)
        self._marks = marks_of_program(query.program, table)
        self._limits = Limits()
        self._gathered = gathering(self._marks, query.output_schema, self._limits)

    def batches(self) -> list[pa.RecordBatch]:
        return list(self._batches)

    def add(self, matches: pa.RecordBatch) -> None:
        self._gathered.add(matches)

    def page(self, near: pa.Table | None = None) -> Page:
        """The page; near: the near misses of `table`."""
        return matches_page(self._marks, self._gathered, self._words, self._limits, near)


def conforming_table(query: CompiledQuery, events: Iterable[pa.RecordBatch]) -> pa.Table:
    """The columns that a query reads, in their declared types, because files can disagree on a
    type.

    Raises EventError where the events do not fit the query.
    """
    plan = query.plan if query.plan.source.parameters is None else over_events(query.plan)
    plan = source_of(query.program).plan if plan.source.reads else plan
    plan = plan.of_inputs
    batches, rows = [], 0
    for batch in events:
        batches.append(plain_batch(conforming(plan, batch, rows)))
        rows += len(batch)
    if not batches:
        return input_schema(plan).empty_table()
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables, promote_options="default")


# --- without the query ----------------------------------------------------------------------------


def _marks_of_table(matches: pa.Table, events: pa.Table) -> Marks:
    """The marks of events. The columns of the matches say which columns are keys and order.

    Raises ValueError where these columns do not say enough.
    """
    names = matches.schema.names[first_key(matches.schema) :]
    keys = names[: next((n for n, name in enumerate(names) if name in _PLACES), 0)]
    lacking = [name for name in keys if name not in events.schema.names]
    if lacking:
        raise ValueError(
            f"the matches are of partitions by {', '.join(keys)}, and the events have no column "
            f"{', '.join(lacking)}: give query=, the matcher that found the matches"
        )
    types = [matches.schema.field(name).type for name in keys]
    order = _order_column(matches, events, keys)
    return marks_of_columns(events, keys, order, types)


def _order_column(matches: pa.Table, events: pa.Table, keys: list[str]) -> str | None:
    """The column of events that has the times of matches; None where matches have no times."""
    if "start_time" not in matches.schema.names or "start_pos" not in matches.schema.names:
        return None
    wanted = matches.schema.field("start_time").type
    candidates: list[str] = [
        field.name
        for field in events.schema
        if _kind(field.type) == _kind(wanted) and field.name not in keys
    ]
    types = [matches.schema.field(name).type for name in keys]
    if len(candidates) > 1 and len(matches):
        candidates = [
            name
            for name in candidates
            if _fits(marks_of_columns(events, keys, name, types), matches)
        ]
    if len(candidates) != 1:
        told = ", ".join(candidates) or "none"
        raise ValueError(
            "the order of the events is not clear: the columns whose values are the times of the "
            f"matches are: {told}; give query=, the matcher that found the matches"
        )
    return candidates[0]


def _kind(type: pa.DataType) -> str:
    for kind, test in (
        ("timestamp", pa.types.is_timestamp),
        ("date", pa.types.is_date),
        ("number", lambda one: pa.types.is_integer(one) or pa.types.is_floating(one)),
        ("text", lambda one: pa.types.is_string(one) or pa.types.is_large_string(one)),
    ):
        if test(type):
            return kind
    return str(type)


def _fits(marks: Marks, matches: pa.Table) -> bool:
    from celc.interfaces.pages.bars import bars_of, lanes_of

    try:
        bars_of(marks, lanes_of(marks, matches), matches)
    except ValueError:
        return False
    return True

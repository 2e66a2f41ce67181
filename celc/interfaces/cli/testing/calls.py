"""`celc.testing.check`: a case that is given in Python, for a query that is compiled already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from celc_runtime.chain.columns import source_of
from celc_runtime.query import CompiledQuery
from celc_runtime.row_pattern.query import RowPatternQuery
from celc_runtime.rules.inner import over_events

from celc.diagnostics.errors import CelError
from celc.diagnostics.messages.wording import quoted
from celc.diagnostics.source import Source, Span
from celc.driver.matcher import Matcher
from celc.interfaces.cli.reading.parameter_tables import wanted_of_set
from celc.interfaces.cli.reading.wanted import Wanted
from celc.interfaces.cli.run_rows import wanted_of_rows
from celc.interfaces.cli.testing.causes import near_misses_of_rows
from celc.interfaces.cli.testing.expected import Columns, toml_of
from celc.interfaces.cli.testing.files import Case, Row
from celc.interfaces.cli.testing.given import Rows, rows_of, rows_of_text, table_of
from celc.interfaces.cli.testing.reports import told_of
from celc.interfaces.cli.testing.running import (
    AnyQuery,
    Asked,
    compared,
    labels_of,
    on_this_machine,
)
from celc.options import Options

_NOWHERE = Span(0, 0)


def difference(
    query: Any,
    given: Any,
    expected: int | Sequence[Mapping[str, Any]],
    name: str | None,
    parameters: Mapping[str, Any],
) -> str | None:
    """How an answer differs from what is expected; None: it does not. Raises as
    `celc.testing.check` does."""
    one = _query(query, name)
    columns = Columns(one.output_schema, labels_of(one))
    rows = _expected(expected, columns)
    tables = {set: _of_set(one, set, table) for set, table in parameters.items()}
    asked = Asked(one, _wanted(one), columns, _events(one, given), tables)
    case = Case("check", _NOWHERE, (), None, _NONE_GIVEN, {}, rows, Options())
    outcome = compared(case, asked, on_this_machine(asked))
    if outcome.passed:
        return None
    find: Callable[..., pa.Table] | None = None
    if isinstance(query, Matcher) and isinstance(one, CompiledQuery):
        find = partial(query.near_misses, asked.events, query=one.name, **tables)
    return told_of(outcome, near_misses_of_rows(outcome, find), "the query")


_NONE_GIVEN = Rows("json", b"", _NOWHERE, ())


def _query(query: Any, name: str | None) -> AnyQuery:
    if isinstance(query, CompiledQuery | RowPatternQuery):
        return query
    queries = getattr(query, "queries", None) or getattr(query, "QUERIES", None)
    if not queries:
        raise TypeError(
            "a query is what celc.compile returns, one query of it, or the path of a file, not "
            f"{type(query).__name__}"
        )
    if name is None and len(queries) == 1:
        return next(iter(queries.values()))  # type: ignore[no-any-return]
    if name not in queries:
        what = f"there is no query {name!r}" if name is not None else "say which query, by name=…"
        raise ValueError(f"{what}; there are {quoted(queries)}")
    return queries[name]  # type: ignore[no-any-return]


def _expected(
    expected: int | Sequence[Mapping[str, Any]], columns: Columns
) -> int | tuple[Row, ...]:
    if isinstance(expected, int) and not isinstance(expected, bool):
        return expected
    if isinstance(expected, str | Mapping | bool) or not all(
        isinstance(one, Mapping) for one in expected
    ):
        raise TypeError("expected is a number of rows, or a list of dictionaries")
    lines = [toml_of(one) for one in expected]
    rows, at = [], 0
    for one, line in zip(expected, lines, strict=True):
        rows.append(Row(one, Span(at, at + len(line))))
        at += len(line) + 1
    wrong = tuple(problem for row in rows for problem in columns.wrong(row))
    if wrong:
        raise ValueError(str(CelError(Source("expected", "\n".join(lines)), wrong)))
    return tuple(rows)


def _events(query: AnyQuery, given: Any) -> pa.Table:
    if (found := _as_rows(given)) is not None:
        return _read(found, _wanted(query))
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    raise TypeError(
        "given is a text of CSV or of lines of JSON, a list of rows, a dictionary of columns, or a "
        f"table of Arrow, pandas, polars or DuckDB, not {type(given).__name__}"
    )


def _of_set(query: AnyQuery, name: str, given: Any) -> Any:
    sets = query.plan.source.parameters if isinstance(query, CompiledQuery) else None
    if sets is None or sets.name != name:
        return given  # the query says what it takes
    found = _as_rows(given)
    if found is None:
        return given
    wanted = wanted_of_set(f"parameter set {sets.name!r}", sets)
    return _read(found, wanted, whole=True).select([one.name for one in sets.attributes])


def _as_rows(given: Any) -> tuple[Rows, Source] | None:
    """What is given as text, rows or columns, with a text for messages; None: it is a table."""
    if isinstance(given, str):
        return rows_of_text(given, Span(0, len(given)), _line_spans(given)), Source("given", given)
    if isinstance(given, list | dict) and not (
        isinstance(given, list) and given and not isinstance(given[0], Mapping)
    ):
        columns = {name: [*one] for name, one in given.items()} if isinstance(given, dict) else None
        rows = rows_of(columns or given, _NOWHERE, lambda number: _NOWHERE, "")
        if isinstance(rows, str):
            raise ValueError(rows)
        text = rows.data.decode()
        source = Source("given", text)
        return rows_of_text(text, Span(0, len(text)), _line_spans(text)), source
    return None


def _line_spans(text: str) -> tuple[Span, ...]:
    found, at = [], 0
    for line in text.split("\n"):
        found.append(Span(at, at + len(line)))
        at += len(line) + 1
    return tuple(found)


def _read(found: tuple[Rows, Source], wanted: Wanted, *, whole: bool = False) -> pa.Table:
    rows, source = found
    try:
        return table_of(rows, wanted, source, whole=whole)
    except CelError as problem:
        raise ValueError(str(problem)) from None


def _wanted(query: AnyQuery) -> Wanted:
    """The columns that a query reads. A compiled query tells no attributes that it does not
    read."""
    if isinstance(query, RowPatternQuery):
        return wanted_of_rows(query)
    plan = source_of(query.program).plan
    if plan.source.parameters is not None:
        plan = over_events(plan)
    source = plan.source
    read = {one.name for one in source.input_attributes} & {*query.file_schema.names}
    types = frozenset(type for _, type in source.declared_types)
    owners = dict.fromkeys(read, types)
    required = {*source.order_by, *source.tiebreak}
    required |= {name for name in (plan.window_attribute,) if name is not None}
    required |= {*source.text_columns}
    return Wanted(
        query.name,
        query.file_schema,
        frozenset(required & {*query.file_schema.names}),
        source.type_name,
        owners,
        frozenset({*owners, source.type_name, "stream"}),
    )

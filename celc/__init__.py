"""celc compiles CEL, a logic of complex events, and MATCH_RECOGNIZE to PySpark UDF modules.

The compiler and the runtime are imported where they are first used. `celc --version` needs neither,
and `celc check` needs no runtime. (Numba and pyarrow alone take half a second.)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK
from celc.version import VERSION as __version__

if TYPE_CHECKING:
    from celc.diagnostics.errors import CelError, CelWarning, Diagnostic
    from celc.diagnostics.source import Source
    from celc.loader import Matcher
    from celc.pages.page import Page

__all__ = [
    "CelError",
    "CelWarning",
    "Diagnostic",
    "Matcher",
    "__version__",
    "check",
    "compile",
    "format_text",
    "report",
]

_IMPORTED_ON_FIRST_USE = {
    "CelError": "celc.diagnostics.errors",
    "CelWarning": "celc.diagnostics.errors",
    "Diagnostic": "celc.diagnostics.errors",
    "Matcher": "celc.loader",
}


def __getattr__(name: str) -> Any:
    module = _IMPORTED_ON_FIRST_USE.get(name)
    if module is None:
        raise AttributeError(f"module 'celc' has no attribute {name!r}")
    import importlib

    globals()[name] = getattr(importlib.import_module(module), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Long: most of it says to whom each option goes.
def compile(
    text: str,
    *,
    name: str = "query.cel",
    order_by: str | Sequence[str] | None = None,
    tiebreak: str | Sequence[str] = (),
    ties: str | None = None,
    at_end: str = "open",
    positions: bool = False,
    match_id: bool = False,
    max_states: int = DEFAULT_MAX_STATES,
    max_work: int = DEFAULT_MAX_WORK,
    first_order: bool = False,
    max_compile_seconds: float | None = None,
    dialect: str = "cel",
    schema: Any = None,
) -> Matcher:
    """Compile the text of a `.cel` file, or of a query with MATCH_RECOGNIZE, and load the result.

    name: stands for the file in messages, and its stem is the name of a query without one.
    order_by, tiebreak: column names, as `celc compile --order-by --tiebreak`.
    ties: "simultaneous": events that are equal in all order columns are one instant, as with
    `celc compile --ties simultaneous`.
    at_end: "closed": no more events come after the input, so that all matches with an absence at
    their end are decided, as with `celc compile --at-end closed`.
    positions: answers have positions on Spark as well, as with `celc compile --positions`.
    match_id: answers whose rows are matches have a first column `match_id`, as with
    `celc compile --match-id`.
    max_work: the most steps that conditions across events may take at one event without finding a
    match; after these the run ends with an error.
    first_order: read labels as `celc compile --first-order` does.
    max_compile_seconds: the most seconds that the compilation may take; after these it ends with an
    error.
    dialect: "cel", or "match_recognize" for SQL's row patterns, which take no options but name,
    max_work and schema.
    schema: the columns of the table of MATCH_RECOGNIZE where the text has no CREATE TABLE: a
    mapping from names to types as CREATE TABLE writes them, an Arrow schema, or that of a Spark
    DataFrame.
    The warnings of the compiler go to Python's `warnings`, as CelWarning, and are in `warnings` of
    the result. Raises CelError with all errors of the text. Raises ValueError for a wrong value of
    max_work, max_compile_seconds, ties, at_end or dialect, and where match_id is the name of
    another column.
    """
    from celc.diagnostics.source import Source
    from celc.loader import Matcher

    if _is_row_pattern(dialect, schema):
        given = {
            "order_by": order_by,
            "tiebreak": tiebreak or None,
            "ties": ties,
            "at_end": None if at_end == "open" else at_end,
            "positions": positions or None,
            "match_id": match_id or None,
            "first_order": first_order or None,
        }
        _refuse_options(given)
        from celc.row_pattern.compiler import compile_rows

        name = "query.sql" if name == "query.cel" else name
        source = Source(name, text)
        rows = compile_rows(source, _stem(name), schema, max_work)
        _warn(source, rows.warnings)
        return Matcher(rows.module_parts(f"celc.compile(..., name={name!r})"), rows.warnings)
    from celc.loader.ahead import Ahead
    from celc.options import Options
    from celc.pipeline import compile_files

    options = Options(
        None if order_by is None else _names(order_by),
        _names(tiebreak),
        ties=ties,
        at_end=at_end,
        positions=positions,
        match_id=match_id,
        max_states=max_states,
        max_work=max_work,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
    )
    source = Source(name, text)
    ahead = Ahead(source, options)
    try:
        compilation = compile_files([source], options, resolved=ahead.begin)
    finally:
        ahead.end()
    flag = ", first_order=True" if first_order else ""
    flag += f", ties={ties!r}" if ties is not None else ""
    flag += f", at_end={at_end!r}" if at_end != "open" else ""
    flag += ", positions=True" if positions else ""
    flag += ", match_id=True" if match_id else ""
    again = partial(
        _compile_quietly,
        text,
        name=name,
        tiebreak=options.tiebreak,
        at_end=at_end,
        positions=positions,
        match_id=match_id,
        max_states=max_states,
        max_work=max_work,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
    )
    module = compilation.module_parts(f"celc.compile(..., name={name!r}{flag})")
    _warn(source, compilation.warnings)
    return Matcher(module, compilation.warnings, again)


def _warn(source: Source, found: Sequence[Diagnostic]) -> None:
    """Give the warnings of a text to Python's, with the line that called `compile`."""
    from celc.diagnostics.errors import CelWarning

    for one in found:
        warnings.warn(one.render(source), CelWarning, stacklevel=3)


def _compile_quietly(text: str, **options: Any) -> Matcher:
    """The same text with other options, without the warnings that were given before."""
    from celc.diagnostics.errors import CelWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CelWarning)
        return compile(text, **options)


def check(
    text: str,
    *,
    name: str = "query.cel",
    order_by: str | Sequence[str] | None = None,
    ties: str | None = None,
    first_order: bool = False,
    max_compile_seconds: float | None = None,
    dialect: str = "cel",
    schema: Any = None,
) -> tuple[Diagnostic, ...]:
    """All errors and warnings of a text, in the order of their places.

    max_compile_seconds: the most seconds that it may take to find them; too little time is one of
    the errors. dialect, schema: as for `compile`.
    """
    from celc.diagnostics.errors import CelError
    from celc.diagnostics.source import Source

    if _is_row_pattern(dialect, schema):
        _refuse_options({"order_by": order_by, "ties": ties, "first_order": first_order or None})
        from celc.row_pattern.compiler import compile_rows

        name = "query.sql" if name == "query.cel" else name
        try:
            return compile_rows(Source(name, text), _stem(name), schema).warnings
        except CelError as problem:
            return problem.diagnostics
    from celc.options import Options
    from celc.pipeline import compile_source

    options = Options(
        None if order_by is None else _names(order_by),
        ties=ties,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
    )
    try:
        return compile_source(Source(name, text), options).warnings
    except CelError as problem:
        return problem.diagnostics


def format_text(text: str, *, name: str = "query.cel", dialect: str = "cel") -> str:
    """A text in the canonical layout, as `celc fmt` writes it.

    Only white space and the case of keywords change; comments stay. name, dialect: as for
    `compile`. Raises CelError with all errors of a text that is not in the language.
    """
    from celc.diagnostics.source import Source
    from celc.editor.formatting.text import formatted

    if _is_row_pattern(dialect, None):
        name = "query.sql" if name == "query.cel" else name
        return formatted(Source(name, text), "match_recognize")
    return formatted(Source(name, text))


def report(
    matches: Any,
    events: Any = None,
    path: Any = None,
    *,
    query: Any = None,
    title: str | None = None,
    max_events: int = 100_000,
    max_matches: int = 10_000,
) -> Page:
    """A page of HTML with matches over their events, which needs no network; a notebook shows it.

    matches: what `match_table` returns, as a table of Arrow, pandas, polars or DuckDB, or the
    DataFrame of `match`. events: the events that the query was run on, in any of these forms; None:
    only matches. A Spark DataFrame is collected if it has a million rows at most. path: a file to
    write the page to as well. query: the matcher or the compiled query that found the matches: its
    partitions, order, types and text are then known, else they are found out by the columns.
    title: default: the query's name. max_events, max_matches: if there are more, the page shows
    this many, the same each time, and says so; its counts are those of all.

    Raises ValueError where the matches are not of these events, or where it is not clear without
    `query` what orders the events; TypeError for an argument that is not a table; OSError for a
    path that cannot be written.
    """
    from celc.pages.matches import Limits
    from celc.pages.report import report as made

    limits = Limits(max_events, max_matches)
    return made(matches, events, path, query=query, title=title, limits=limits)


def _is_row_pattern(dialect: str, schema: object) -> bool:
    """Whether a text is MATCH_RECOGNIZE. Raises ValueError for a dialect that there is none of."""
    if dialect not in ("cel", "match_recognize"):
        raise ValueError(f"dialect must be 'cel' or 'match_recognize', not {dialect!r}")
    if dialect == "cel" and schema is not None:
        raise ValueError("schema is for dialect='match_recognize': CEL declares its events itself")
    return dialect == "match_recognize"


def _refuse_options(given: Mapping[str, object]) -> None:
    wrong = [name for name, value in given.items() if value is not None]
    if wrong:
        raise ValueError(
            f"MATCH_RECOGNIZE has no option {', '.join(wrong)}: its text says the order"
        )


def _stem(name: str) -> str:
    """The name of a query that is called like its file."""
    from pathlib import PurePath

    return PurePath(name).stem


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)

"""celc compiles CEL, a logic of complex events, and MATCH_RECOGNIZE to PySpark UDF modules.

The compiler and the runtime are imported where they are first used. `celc --version` needs neither,
and `celc check` needs no runtime. (Numba and pyarrow alone take half a second.)

Long: all functions that users call stand here, with what users must know of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK
from celc.diagnostics.own_runtime import refuse_none
from celc.version import VERSION as __version__

refuse_none()

if TYPE_CHECKING:
    from celc.diagnostics.errors import CelError, CelWarning, Diagnostic
    from celc.diagnostics.source import Source
    from celc.driver.matcher import Matcher
    from celc.editor.languages import Language
    from celc.interfaces.pages.page import Page
    from celc.options import Options
    from celc.statements.hosts import HostError

__all__ = [
    "CelError",
    "CelWarning",
    "Diagnostic",
    "HostError",
    "Matcher",
    "__version__",
    "check",
    "compile",
    "compile_files",
    "declare",
    "doctor",
    "events_of",
    "format_text",
    "report",
    "sql",
]

_IMPORTED_ON_FIRST_USE = {
    "CelError": "celc.diagnostics.errors",
    "CelWarning": "celc.diagnostics.errors",
    "Diagnostic": "celc.diagnostics.errors",
    "HostError": "celc.statements.hosts",
    "Matcher": "celc.driver.matcher",
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
    type_column: str | None = None,
    max_states: int = DEFAULT_MAX_STATES,
    max_work: int = DEFAULT_MAX_WORK,
    first_order: bool = False,
    max_compile_seconds: float | None = None,
    dialect: str = "cel",
    schema: Any = None,
    processes: int | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
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
    type_column: the column of the event types, if it is not called `type`, as with `celc compile
    --type-column`.
    max_work: the most steps that conditions across events may take at one event without finding a
    match; after these the run ends with an error.
    first_order: read labels as `celc compile --first-order` does.
    max_compile_seconds: the most seconds that the compilation may take; after these it ends with an
    error.
    dialect: "cel", or "match_recognize" for SQL's row patterns, which take no options but name,
    max_work and schema.
    schema: the columns of a table that the text does not declare by CREATE STREAM (MATCH_RECOGNIZE:
    by CREATE TABLE): a mapping from names to types as written there, an Arrow schema, that of a
    Spark DataFrame, or a table of Arrow, pandas, polars or DuckDB. `FROM t` then reads the event
    types that the formula names, each with all columns; without a column of types it has one,
    called `t`.
    processes: make the machine code of all queries at once, in so many processes at a time, for the
    cache, as `celc warm` does; None: each process makes it when it needs it.
    functions: the functions of Python that the text declares with FUNCTION, by their names. Their
    source is copied, with all that it uses of its file, and Numba compiles it.
    The warnings of the compiler go to Python's `warnings`, as CelWarning, and are in `warnings` of
    the result. Raises CelError with all errors of the text. Raises ValueError for a wrong value of
    max_work, max_compile_seconds, ties, at_end, dialect or processes, and where match_id or
    type_column is the name of another column.
    """
    from celc.options import Options

    _refuse_no_process(processes)
    options = Options(
        None if order_by is None else _names(order_by),
        _names(tiebreak),
        ties=ties,
        at_end=at_end,
        positions=positions,
        match_id=match_id,
        type_column=type_column,
        max_states=max_states,
        max_work=max_work,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
        functions=_given(functions),
    )
    language, source = _language_and_source(dialect, name, text)
    call = f"compile(..., name={source.name!r}"
    return _warmed(_matcher([source], language, options, schema, call), processes)


def compile_files(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    schema: Any = None,
    processes: int | None = None,
    **options: Any,
) -> Matcher:
    """Compile query files into one module and load it, as `celc compile` does.

    paths: a file, a folder, of which all `.cel` files count, or several of them. A file that is
    named twice counts once. The queries of all files are those of the module, and what several
    files declare must be declared in the same way in all of them. A `.sql` file has
    MATCH_RECOGNIZE, and becomes a module of its own.
    schema, processes: as for `compile`. options: those of `compile`, from order_by to
    max_compile_seconds, which is the time for all files together, and functions.

    Warns as `compile` does. Raises CelError with all errors of all files: its text shows them, and
    its `problems` are those of each file. Raises OSError where a file cannot be read, ValueError
    where one is no text and for the values that `compile` refuses.
    """
    from pathlib import Path

    from celc.diagnostics.files import names_of, query_files, read_file
    from celc.editor.languages import language_of
    from celc.options import Options

    _refuse_no_process(processes)
    given = [paths] if isinstance(paths, str | PathLike) else paths
    files, wrong = query_files(map(Path, given))
    if wrong or not files:
        raise ValueError("; ".join(wrong) or "there is no file to compile")
    if unknown := options.keys() - Options.__annotations__.keys():
        raise TypeError(f"compile_files takes no argument {', '.join(map(repr, sorted(unknown)))}")
    for name in options.keys() & {"order_by", "tiebreak"}:
        options[name] = None if options[name] is None else _names(options[name])
    options["functions"] = _given(options.get("functions"))
    language, chosen = language_of(*files), Options(**options)
    sources = list(map(read_file, files, names_of(files)))
    names = ", ".join(repr(file.name) for file in files)
    call = f"compile_files([{names}]"
    return _warmed(_matcher(sources, language, chosen, schema, call), processes)


def sql(host: Any, text: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
    """The answer of one SQL statement with MATCH_RECOGNIZE anywhere in it, as the host answers.

    host: a SparkSession, classic or of Connect (the answer is a DataFrame, and lazy); a connection
    of DuckDB (a relation, which stays readable); a dictionary of Arrow tables by their names (an
    Arrow table; DuckDB reads them). All but the clause is the host's: its functions, types and time
    zone. Names stand in double quotes or backquotes on every host, texts in single quotes.
    parameters: values for `?` in their order, or by name for `:name`.

    Warns as `compile` does. Raises CelError with all that is wrong with a clause, at its place in
    the text; HostError for what the host refuses; TypeError for another
    kind of host.
    """
    from celc.statements.hosts import host_of
    from celc.statements.statement import run

    return run(host_of(host), text, parameters)


def _warmed(matcher: Matcher, processes: int | None) -> Matcher:
    """A matcher; with a number of processes, they put its machine code into the cache."""
    if processes is not None:
        from celc.driver.warm import NotWarmed, warm_all

        try:
            warm_all(matcher, processes)
        except NotWarmed as problem:
            from celc_runtime.values.warned import warn

            warn(str(problem), RuntimeWarning)
    return matcher


def _matcher(
    sources: Sequence[Source], language: Language, options: Options, schema: Any, call: str
) -> Matcher:
    """The compiled texts, loaded; `call` begins the call that the module names.

    Their warnings are given to Python's, with the line of the user.
    """
    from celc_runtime.values.warned import warn

    from celc.diagnostics.errors import CelWarning
    from celc.driver.matcher import Matcher

    _refuse_foreign(language, options)
    compilation = language.compile(sources, options, schema)
    said = {
        "first_order": options.first_order or None,
        "ties": options.ties,
        "at_end": None if options.at_end == "open" else options.at_end,
        "positions": options.positions or None,
        "match_id": options.match_id or None,
        "type_column": options.type_column,
    }
    flags = [f", {name}={value!r}" for name, value in said.items() if value is not None]
    module = compilation.module_parts(f"celc.{call}{''.join(flags)})")
    for file in compilation.files:
        for one in file.warnings:
            warn(one.render(file.source), CelWarning)
    again = partial(_matcher_again, sources, language, options, call)
    return Matcher(module, compilation.warnings, again, partial(_near, sources, options, schema))


def _near(*asked: Any) -> Any:
    """The bent forms of a query; see `celc.driver.near.told_near_query`."""
    from celc.driver.near import told_near_query

    return told_near_query(*asked)


def _matcher_again(
    sources: Sequence[Source],
    language: Language,
    options: Options,
    call: str,
    *,
    ties: str | None,
    order_by: str | Sequence[str] | None,
) -> Matcher:
    """The same texts with other options, without the warnings that were given before."""
    from celc.diagnostics.errors import CelWarning

    order = None if order_by is None else _names(order_by)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CelWarning)
        return _matcher(sources, language, replace(options, ties=ties, order_by=order), None, call)


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
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> tuple[Diagnostic, ...]:
    """All errors and warnings of a text, in the order of their places.

    max_compile_seconds: the most seconds that it may take to find them; too little time is one of
    the errors. dialect, schema: as for `compile`. functions: as for `compile`; None: only what the
    text says of its functions is checked. The answer is shown as `celc check` prints it.
    """
    from celc.diagnostics.errors import findings
    from celc.options import Options

    options = Options(
        None if order_by is None else _names(order_by),
        ties=ties,
        first_order=first_order,
        max_compile_seconds=max_compile_seconds,
        functions=_given(functions),
    )
    language, source = _language_and_source(dialect, name, text)
    _refuse_foreign(language, options)
    return findings(source, language.check(source, options, schema))


def format_text(text: str, *, name: str = "query.cel", dialect: str = "cel") -> str:
    """A text in the canonical layout, as `celc fmt` writes it.

    Only white space and the case of keywords change; comments stay. name, dialect: as for
    `compile`. Raises CelError with all errors of a text that is not in the language.
    """
    from celc.editor.formatting.statements import formatted_text

    language, source = _language_and_source(dialect, name, text)
    return formatted_text(source, language)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext celc` calls in a notebook: from then on `%%cel` compiles and runs a cell."""
    from celc.interfaces.notebook.magic import load

    load(shell, compile, report)


def declare(table: Any, *, type_column: str | None = None, name: str | None = None) -> str:
    """CREATE STREAM for a table, with a first query, as `celc init` writes them for files.

    table: a DataFrame of Spark, pandas or polars, a relation of DuckDB, a table or dataset of
    pyarrow, anything else with `__arrow_c_stream__`, a dictionary of columns, or the path of a file
    or folder that `celc run` reads, or several. At most 100,000 rows are looked at; the text says
    so. type_column: the column of the event types, by default `type` where there is one. name: that
    of the stream; by default the file's name, or `events`.

    Raises ValueError where type_column is not there or has no texts, where there are no columns,
    and where a file cannot be read; TypeError for what is no table.
    """
    from celc.interfaces.cli.declaring.tables import declared

    return declared(table, type_column, name)


def doctor(spark: Any = None) -> str:
    """What this machine has for celc, and what to mend, as `celc doctor` prints it.

    spark: a session, whose settings are looked at in place of this machine's Java, workers and
    defaults of Spark. Lines begin with ok, with -- for what only some uses need, or with !! for
    what will fail or be slow; below such a line stands what to write. Nothing is changed.
    """
    from celc.interfaces import doctor as doctors
    from celc.interfaces.doctor.findings import told

    return told(doctors.of_machine() if spark is None else doctors.of_session(spark))


def events_of(matches: Any, events: Any) -> Any:
    """The events of matches: one row for each event under each label of each match.

    matches: an answer with the column `match_id` (`with_options(match_id=True)`), as a DataFrame of
    Spark, or a table of Arrow, pandas, polars or DuckDB. events: the table that it was found in, in
    any of these forms, both of Spark or none. The result has `match_id`, `label`, and all columns
    of the events: a DataFrame of Spark or pandas if the events are one, else a table of Arrow. On
    one machine its rows are in the order of the matches, and in each match by label.

    An event is found by the attributes that its label keeps (`SELECT hot[value, ts]`) and by the
    columns of PARTITION BY, NULL equal to NULL; positions are not looked at. Raises ValueError for
    matches without ids, labels or attributes; EventError where no row of the events, or more than
    one, is equal in these columns (on Spark when the rows are computed).
    """
    from celc.interfaces.events_of import events_of as joined

    return joined(matches, events)


def report(
    matches: Any,
    events: Any = None,
    path: Any = None,
    *,
    query: Any = None,
    near: Any = None,
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
    near: what `near_misses` returned; they are grey bars that tell what was bent. title: default:
    the query's name. max_events, max_matches: if there are more, the page shows this many (of near
    misses max_matches as well), the same each time, and says so; its counts are those of all.

    Raises ValueError where the matches are not of these events, or where it is not clear without
    `query` what orders the events; TypeError for an argument that is not a table; OSError for a
    path that cannot be written.
    """
    from celc.interfaces.pages.matches import Limits
    from celc.interfaces.pages.report import report as made

    limits = Limits(max_events, max_matches)
    return made(matches, events, path, query=query, title=title, limits=limits, near=near)


def _language_and_source(dialect: str, name: str, text: str) -> tuple[Language, Source]:
    """Raises ValueError for a dialect that there is none of and for the name of a file, TypeError
    for what is no text."""
    from celc.diagnostics.source import Source
    from celc.editor.languages import CEL, LANGUAGES

    language = next((one for called, one in LANGUAGES.items() if called == dialect), None)
    if language is None:
        raise ValueError(f"dialect must be 'cel' or 'match_recognize', not {dialect!r}")
    if not isinstance(text, str):
        raise TypeError(f"the text of a query is a str, and this is {type(text).__name__}")
    if text.endswith((".cel", ".sql")) and "\n" not in text and " " not in text:
        raise ValueError(
            f"{text!r} is the name of a file, and the text of a query is wanted here: "
            f"celc.compile_files({text!r}) compiles a file"
        )
    if language is not CEL and name == "query.cel":
        name = f"query{language.suffix}"
    return language, Source(name, text)


def _given(functions: Mapping[str, Callable[..., Any]] | None) -> Any:
    """The functions as `Options` have them. Raises ValueError for a value that is no function."""
    if functions is None:
        return None
    from celc.driver.given_functions import given_functions

    return given_functions(functions)


def _refuse_no_process(processes: int | None) -> None:
    """Raises ValueError for a number of processes that cannot be."""
    if processes is not None and processes < 1:
        raise ValueError(f"processes must be 1 or more, not {processes}")


def _refuse_foreign(language: Language, options: Options) -> None:
    """Raises ValueError for what is of the other language."""
    if wrong := language.foreign(options):
        why = "its text says the order"
        if wrong == ["functions"]:
            why = "FUNCTION declares them in CEL"
        raise ValueError(f"{language.title} has no option {', '.join(wrong)}: {why}")


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)

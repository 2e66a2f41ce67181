"""`%%cel`: the text of a cell is compiled, and run on a table of the notebook."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from celc_runtime.display import as_html
from celc_runtime.plan.errors import EventError
from celc_runtime.spark.answers.compact import is_spark_frame
from IPython.core.error import UsageError

from celc.diagnostics.errors import CelError
from celc.driver.matcher import Matcher
from celc.interfaces.cli.arguments import add_options
from celc.interfaces.notebook.completing import completer

MAGIC = "cel"
_ROWS = 20  # matches below a cell

_HELP = """Compile the queries of the cell. NAME becomes the matcher, as celc.compile makes it.

With --on the query is run: a table of Arrow, pandas, polars or DuckDB, a dictionary of columns, the
path of a Parquet file, or a DataFrame of Spark. NAME_matches becomes the matches, and the first 20
are shown."""


def load(shell: Any, compile: Callable[..., Matcher], report: Callable[..., Any]) -> None:
    """What `%load_ext celc` does: the magic, its completion, and errors without a traceback.
    `compile` and `report` are those of `celc`."""
    magic = _Magic(shell, compile, report)
    shell.register_magic_function(magic.run, magic_kind="cell", magic_name=MAGIC)
    shell.set_custom_exc((CelError, EventError), _told)
    shell.Completer.custom_matchers.append(completer(shell, MAGIC))


def _told(shell: Any, kind: type, value: BaseException, _: Any, tb_offset: Any = None) -> list[str]:
    """An error of a text or of events as its own words: a traceback says nothing of either."""
    lines = [str(value)] if isinstance(value, CelError) else [f"{kind.__name__}: {value}"]
    shell._showtraceback(kind, value, lines)
    return lines


class _Parser(argparse.ArgumentParser):
    """Arguments of a magic: a wrong one is an error of the cell, and ends no process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%{MAGIC}: {message}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or f"%%{MAGIC} was not run")


def _parser() -> _Parser:
    parser = _Parser(f"%%{MAGIC}", description=_HELP, add_help=False)
    parser.add_argument("name", metavar="NAME", help="the variable that becomes the matcher")
    parser.add_argument("--on", metavar="TABLE", help="a variable, or another expression")
    parser.add_argument("--query", help="which query of the cell is run, where there are several")
    parser.add_argument(
        "--parameters",
        action="append",
        default=[],
        metavar="SET=TABLE",
        help="the rows of a parameter set (FOR EACH SET)",
    )
    parser.add_argument("--report", action="store_true", help="show the matches as a report")
    parser.add_argument(
        "--dialect",
        choices=["cel", "match_recognize"],
        default="cel",
        help="the language of the cell (default: cel)",
    )
    add_options(parser)
    return parser


class _Magic:
    def __init__(
        self, shell: Any, compile: Callable[..., Matcher], report: Callable[..., Any]
    ) -> None:
        self._shell = shell
        self._compile = compile
        self._report = report

    def run(self, line: str, cell: str) -> Any:
        """Compile the queries of this cell, and run one: %%cel NAME [--on TABLE] …"""
        try:
            words = shlex.split(line)
        except ValueError as problem:
            raise UsageError(f"%%{MAGIC}: {problem} in {line!r}") from None
        given = _parser().parse_args(words)
        if not given.name.isidentifier():
            raise UsageError(f"%%{MAGIC}: {given.name!r} is no name of a variable")
        # The first line of the cell is that of the magic, so places in messages are its lines.
        matcher = self._compile("\n" + cell, name=f"{given.name}.cel", **_options(given))
        self._shell.push({given.name: matcher})
        if given.on is None:
            if given.report or given.parameters or given.query:
                raise UsageError(f"%%{MAGIC}: nothing is run without --on TABLE")
            return matcher
        query = _chosen(matcher, given.query)
        tables = {name: self._value(text) for name, text in map(_named, given.parameters)}
        return self._found(given, query, self._value(given.on), tables)

    def _found(self, given: Any, query: Any, events: Any, tables: Mapping[str, Any]) -> Any:
        """Run the query; the matches as the cell shows them."""
        if is_spark_frame(events):
            if events.isStreaming:
                raise UsageError(
                    f"%%{MAGIC}: {given.on} is a stream: leave out --on, and write "
                    f"{given.name}.match_stream({given.on}) in a cell of its own"
                )
            matches = query.match(events, **tables)
            first = matches.limit(_ROWS + 1).toArrow()
        else:
            matches = first = query.match_table(events, **tables)
        self._shell.push({f"{given.name}_matches": matches})
        if given.report:
            return self._report(matches, events, query=query)
        if is_spark_frame(events) and first.num_rows > _ROWS:
            return as_html(first.slice(0, _ROWS), more=True)
        return as_html(first, rows=_ROWS)

    def _value(self, text: str) -> Any:
        try:
            return self._shell.ev(text)
        except Exception as problem:  # the expression is the user's, and can raise anything
            what = f"{type(problem).__name__}: {problem}"
            raise UsageError(f"%%{MAGIC}: {text} is no table: {what}") from None


def _options(given: argparse.Namespace) -> dict[str, Any]:
    names = ("ties", "at_end", "type_column", "max_states", "max_work", "first_order")
    options = {name: getattr(given, name) for name in (*names, "max_compile_seconds")}
    for name in ("order_by", "tiebreak"):
        if getattr(given, name) is not None:
            options[name] = [one.strip() for one in getattr(given, name).split(",")]
    if given.dialect == "match_recognize":
        return {"dialect": given.dialect, "max_work": given.max_work}
    return options


def _chosen(matcher: Matcher, name: str | None) -> Any:
    queries = matcher.queries
    if name is None and len(queries) == 1:
        return next(iter(queries.values()))
    if name not in queries:
        what = "say which query is run" if name is None else f"there is no query {name!r}"
        raise UsageError(f"%%{MAGIC}: {what}: --query is one of {', '.join(queries)}")
    return queries[name]


def _named(text: str) -> tuple[str, str]:
    name, sign, table = text.partition("=")
    if not sign:
        raise UsageError(f"%%{MAGIC}: --parameters {text}: write SET=TABLE, as in rule=rules")
    return name, table

"""`celc run` for a whole statement with MATCH_RECOGNIZE: DuckDB reads files as its tables."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celc_runtime.plan.errors import EventError

from celc.diagnostics.errors import CelWarning, Diagnostics
from celc.diagnostics.source import Source
from celc.interfaces.cli import match_formats
from celc.interfaces.cli.output import check_name, check_output, tell
from celc.interfaces.cli.problems import FINE, CommandProblem
from celc.interfaces.cli.queries import read_source
from celc.interfaces.cli.run import output_of, writer_of
from celc.statements.checked import DIALECT, declarations
from celc.statements.hosts import Duck, HostError
from celc.statements.statement import run_source
from celc.statements.words import words_of

if TYPE_CHECKING:
    import duckdb

_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".txt": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
_OF_TEXT = ("read_csv", "read_json")
_FORMATS = {"csv": "read_csv", "parquet": "read_parquet", "json": "read_json"}


def reads_text(arguments: argparse.Namespace) -> bool:
    """Whether DuckDB is there to read the one file that is given, as a table whose types its text
    shows, and no option asks for another reader."""
    files = [file for file in arguments.events if Path(file).is_file()]
    if len(files) != 1 or len(arguments.events) != 1 or find_spec("duckdb") is None:
        return False
    try:
        _refuse_options(arguments, arguments.format or "table")
    except CommandProblem:
        return False
    return _reader_of(files[0], arguments) in _OF_TEXT


def run(arguments: argparse.Namespace) -> int:
    """Run the statement over files; returns the exit code."""
    check_name(arguments.output)
    format = match_formats.format_of(arguments.output, arguments.format)
    match_formats.check_csv_safe(format, safe=arguments.csv_safe)
    _refuse_options(arguments, format)
    tables = _tables_of(arguments)
    source = read_source(arguments.source)
    (output,) = match_formats.files_of(arguments.output, format, [arguments.source.stem])
    inputs = [arguments.source, *map(Path, tables.values())]
    check_output(output, force=arguments.force, inputs=inputs)
    try:
        import duckdb
    except ImportError:
        raise CommandProblem(
            "DuckDB runs the statement around MATCH_RECOGNIZE, and is not installed: "
            "pip install duckdb"
        ) from None
    with duckdb.connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("always", CelWarning)
        warnings.showwarning = lambda message, *_: tell(str(message))
        rest = _declared(source, connection, tables, arguments)
        try:
            found = run_source(Duck(connection, arguments.threads), rest, None)
        except HostError as problem:
            raise CommandProblem(
                f"{problem.host} refuses the statement: {problem.reason}"
            ) from None
        except EventError as problem:
            raise CommandProblem(str(problem)) from None
        rows = found.to_arrow_table() if found is not None else None
    if rows is None:
        return FINE
    with output_of(output, format) as out:
        answer = match_formats.OtherRows(arguments.source.stem, rows.schema)
        write = writer_of(format, answer, out, arguments)
        left = rows if arguments.max_matches is None else rows.slice(0, arguments.max_matches)
        for batch in left.to_batches():
            write(batch)
        write(None)
    if len(left) < len(rows):
        tell(f"celc: stopped after {len(left):,} rows (--max-matches); there are more")
    return FINE


def _refuse_options(arguments: argparse.Namespace, format: str) -> None:
    given = {
        "--parameters": arguments.parameters,
        "--match-id": arguments.match_id,
        "--after": arguments.after is not None,
        "--until": arguments.until is not None,
        "--on-null-type": arguments.on_null_type != "error",
        "--on-bad-row": arguments.on_bad_row,
        "--strict-schema": arguments.strict_schema,
        "--time-format": arguments.time_format,
        "--time-zone": arguments.time_zone != "UTC",
        "--query": arguments.query,
        "--memory": arguments.memory is not None,
    }
    for option, is_given in given.items():
        if is_given:
            raise CommandProblem(
                f"{option} is not for whole statements, whose files and rows DuckDB reads: "
                "write it in SQL"
            )
    if format == "html":
        raise CommandProblem(
            "a report shows the matches of one query, and this is a whole statement: choose "
            "another format"
        )


def _tables_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The files by the names of their tables."""
    found: dict[str, str] = {}
    named = [(Path(file).name.partition(".")[0], file) for file in arguments.events]
    for option in arguments.table:
        name, equals, file = option.partition("=")
        if not (name and equals and file):
            raise CommandProblem(f"--table {option}: write NAME=FILE, as in ticker=ticker.csv")
        named.append((name, file))
    for name, file in named:
        if name in found:
            raise CommandProblem(f"there are two files for the table {name}: {found[name]}, {file}")
        if file == "-":
            raise CommandProblem("a statement reads files, and no standard input: name a file")
        found[name] = file
    return found


def _declared(
    source: Source,
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, str],
    arguments: argparse.Namespace,
) -> Source:
    """Make the tables; returns the statement behind each CREATE TABLE, at its place."""
    found = declarations(words_of(source, DIALECT, Diagnostics(source)))
    for one in found:
        _execute(connection, source.slice(one.span))
    if found:
        end = found[-1].span.end
        blank = "".join(sign if sign == "\n" else " " for sign in source.text[:end])
        source = replace(source, text=blank + source.text[end:])
    declared = {one.table.casefold() for one in found}
    for name, file in tables.items():
        rows = f"SELECT * FROM {_reader(file, arguments)}"
        quoted = '"' + name.replace('"', '""') + '"'
        if name.casefold() in declared:
            _execute(connection, f"INSERT INTO {quoted} BY NAME {rows}")
        else:
            _execute(connection, f"CREATE VIEW {quoted} AS {rows}")
    return source


def _reader(file: str, arguments: argparse.Namespace) -> str:
    """What reads a file in DuckDB. Raises CommandProblem for another kind of file."""
    reader = _reader_of(file, arguments)
    if reader is None:
        raise CommandProblem(
            f"{file}: the ending of its name says no format; write --input-format csv, json or "
            "parquet, or a pattern of names in quotes"
        )
    options = ""
    if reader == "read_csv":
        if arguments.delimiter is not None:
            sign = {"\\t": "\t", "tab": "\t"}.get(arguments.delimiter, arguments.delimiter)
            options += f", delim = {_text(sign)}"
        if arguments.null_text:
            options += f", nullstr = [{', '.join(map(_text, ['', *arguments.null_text]))}]"
    return f"{reader}({_text(file)}{options})"


def _reader_of(file: str, arguments: argparse.Namespace) -> str | None:
    if arguments.input_format is not None:
        return _FORMATS[arguments.input_format]
    suffixes = [one for one in Path(file).suffixes if one != ".gz"]
    return _READERS.get(suffixes[-1].lower()) if suffixes else None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _execute(connection: Any, text: str) -> None:
    import duckdb

    try:
        connection.execute(text)
    except duckdb.Error as problem:
        raise CommandProblem(f"DuckDB refuses it: {str(problem).splitlines()[0]}") from None

"""`celc run` for MATCH_RECOGNIZE: rows in, rows out."""

import argparse
from collections.abc import Callable
from typing import IO

import pyarrow as pa
from celc_runtime.plan.errors import EventError
from celc_runtime.row_pattern.query import RowPatternQuery

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source
from celc.driver.matcher import Matcher
from celc.interfaces.cli import match_formats
from celc.interfaces.cli.declaring.samples import typed_columns
from celc.interfaces.cli.output import check_name, check_output, tell
from celc.interfaces.cli.problems import FINE, CommandProblem
from celc.interfaces.cli.progress import compiling_shown
from celc.interfaces.cli.reading.origins import opened_origins
from celc.interfaces.cli.reading.stream import EventStream
from celc.interfaces.cli.reading.wanted import Wanted
from celc.interfaces.cli.row_patterns import compiled
from celc.interfaces.cli.run import check_form, damage_of, form_of, output_of, writer_of
from celc.row_pattern.parser import parse


def table_of_file(arguments: argparse.Namespace, source: Source) -> str | None:
    """The table of a query alone that nobody declares, and whose file DuckDB reads; else None."""
    try:
        query = parse(source)
    except CelError:
        return None
    if query.table is not None:
        return None
    from celc.interfaces.cli import run_statement  # it imports sqlglot

    return query.source.text if run_statement.reads_text(arguments) else None


def run(arguments: argparse.Namespace) -> int:
    """Match the rows of files; returns the exit code."""
    check_name(arguments.output)
    format = match_formats.format_of(arguments.output, arguments.format)
    match_formats.check_csv_safe(format, safe=arguments.csv_safe)
    form = form_of(arguments)
    of_cel = {
        "--parameters": arguments.parameters,
        "--after": arguments.after is not None,
        "--until": arguments.until is not None,
        "--on-null-type": arguments.on_null_type != "error",
    }
    for option, given in of_cel.items():
        if given:
            raise CommandProblem(f"{option} is for CEL; MATCH_RECOGNIZE has no such thing")
    with opened_origins(arguments.events, arguments.input_format) as origins:
        inputs = [arguments.source, *(origin.file for origin in origins)]
        check_form(arguments, origins)
        of_files = None
        if origins and origins[0].format == "parquet":
            of_files = typed_columns(origins, form, None)
        compilation = compiled(arguments, arguments.source, of_files)
        matcher = Matcher(compilation.module_parts("celc run"))
        (query,) = matcher.queries.values()
        if arguments.match_id:
            query = query.with_options(match_id=True)
        (output,) = match_formats.files_of(arguments.output, format, [query.name])
        check_output(output, force=arguments.force, inputs=inputs)
        if format == "html" and arguments.max_matches is not None:
            raise CommandProblem(
                "--max-matches counts rows of the result, and a report of MATCH_RECOGNIZE shows "
                "matches: leave it out"
            )
        if format == "html" and arguments.threads is not None:
            raise CommandProblem(
                "a report of MATCH_RECOGNIZE is made by one thread: leave out --threads"
            )
        if arguments.memory is not None:
            raise CommandProblem(
                "the rows of MATCH_RECOGNIZE are all in memory: --memory is for queries of CEL"
            )
        with (
            output_of(output, format) as out,
            damage_of(arguments, origins, inputs, [output]) as damage,
        ):
            rows = EventStream(origins, wanted_of_rows(query), form, damage)
            stopped = False
            if format == "html":
                _report(query, rows, out)
            else:
                write = writer_of(format, query, out, arguments)
                with compiling_shown(query.name):
                    stopped = _match(query, rows, write, arguments)
            rows.tell_left_out()
    if stopped:
        count = f"{arguments.max_matches:,} row{'' if arguments.max_matches == 1 else 's'}"
        tell(f"celc: stopped after {count} (--max-matches); there may be more")
    return FINE


def wanted_of_rows(query: RowPatternQuery) -> Wanted:
    """The columns that a query with MATCH_RECOGNIZE reads from a file."""
    plan = query.plan
    keys = {plan.columns[one.column].name for one in plan.order_by}
    keys |= {plan.columns[number].name for number in plan.partition_by}
    made = {one.name: {name for name, _ in one.reads} for one in plan.derived}
    required = {name for key in keys for name in made.get(key, {key})}
    names = frozenset(query.input_schema.names)
    owners = {name: frozenset({query.name}) for name in names}
    return Wanted(query.name, query.input_schema, frozenset(required), "", owners, names)


def _report(query: RowPatternQuery, rows: EventStream, out: IO[bytes]) -> None:
    """Write a page with the matches and all rows."""
    from celc.interfaces.pages.row_matches import page_of_rows

    try:
        out.write(page_of_rows(query, _table(query, rows)).encode())
    except EventError as problem:
        raise CommandProblem(rows.placed(str(problem))) from None


def _table(query: RowPatternQuery, rows: EventStream) -> pa.Table:
    gathered = [pa.Table.from_batches([batch]) for batch in rows.batches()]
    if not gathered:
        gathered = [query.input_schema.empty_table()]
    return pa.concat_tables(gathered, promote_options="default")


def _match(
    query: RowPatternQuery,
    rows: EventStream,
    write: Callable[[pa.RecordBatch | None], None],
    arguments: argparse.Namespace,
) -> bool:
    """Write the result. Returns whether it was cut off."""
    left = arguments.max_matches
    try:
        found = query.match_table(_table(query, rows), threads=arguments.threads)
        for batch in found.to_batches():
            if left is not None and len(batch) > left:
                write(batch.slice(0, left))
                write(None)
                return True
            left = None if left is None else left - len(batch)
            write(batch)
        write(None)
    except EventError as problem:
        raise CommandProblem(rows.placed(str(problem))) from None
    return False

"""`celc run`: events in, matches out."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from celc_runtime.arrow.matches.output import FirstMatches
from celc_runtime.arrow.tables.slices import bound_of_text, slice_of
from celc_runtime.plan.errors import EventError, EventWarning
from celc_runtime.query import CompiledQuery

from celc.diagnostics.files import SUFFIX, SUFFIXES, query_files
from celc.driver.matcher import Matcher, matches_of, matches_together, sharing
from celc.interfaces.cli import match_formats
from celc.interfaces.cli.declaring.schemas import SchemaOfFiles, told_of_sample
from celc.interfaces.cli.near.misses import (
    check_near_of_run,
    near_misses_of,
    near_of,
    rows_of,
    write_near_misses,
)
from celc.interfaces.cli.output import (
    check_name,
    check_output,
    is_written_directly,
    standard_output,
    tell,
    written,
)
from celc.interfaces.cli.problems import FINE, CommandProblem
from celc.interfaces.cli.progress import shown
from celc.interfaces.cli.queries import chosen_queries, compiled
from celc.interfaces.cli.reading.events import Form
from celc.interfaces.cli.reading.left_out import Damage
from celc.interfaces.cli.reading.origins import Origin, opened_origins
from celc.interfaces.cli.reading.parameter_tables import (
    check_sets,
    named_files,
    opened_tables,
    tables_of,
)
from celc.interfaces.cli.reading.stream import EventStream
from celc.interfaces.cli.reading.times import EPOCH_UNITS, TimeForm
from celc.interfaces.cli.reading.wanted import Wanted

if TYPE_CHECKING:
    from celc_runtime.chain.streams.near.query import NearQuery


WIDTH = 80  # signs in a line of a table that does not go to a terminal


def run(arguments: argparse.Namespace) -> int:
    """Match each chosen query against the events; returns the exit code."""
    with ExitStack() as opened:
        return _run(arguments, opened)


# Long: the steps of the command, each of one or two lines.
def _run(arguments: argparse.Namespace, opened: ExitStack) -> int:
    warnings.simplefilter("always", EventWarning)
    check_name(arguments.output)
    format = match_formats.format_of(arguments.output, arguments.format)
    match_formats.check_csv_safe(format, safe=arguments.csv_safe)
    check_near_of_run(arguments)
    if format == "html" and arguments.memory is not None:
        raise CommandProblem(
            "a report shows all events, so that they are in memory: leave out --memory"
        )
    form = form_of(arguments)
    paths, events_of = _queries_and_events(arguments)
    # The columns of the events are looked up only for a query that declares none.
    named_origins = cache(
        lambda: opened.enter_context(opened_origins(events_of, arguments.input_format))
    )
    schema = SchemaOfFiles(named_origins, form, arguments.type_column)
    with told_of_sample(schema, None, events_of):
        compilation = compiled(arguments, paths, schema)
    asked = [one.query for one in chosen_queries(compilation, arguments.query)]
    outputs = match_formats.files_of(arguments.output, format, [query.name for query in asked])
    named = named_files(arguments.parameters)
    check_sets(named, asked)
    first = FirstMatches(arguments.max_matches)
    with (
        told_of_sample(schema, compilation, events_of),
        opened_tables(named) as files,
        ExitStack() as closing,
    ):
        origins = named_origins()
        read = [*origins, *(one for file in files.values() for one in file.origins)]
        inputs = [*paths, *(origin.file for origin in read)]
        for path in dict.fromkeys(outputs):
            check_output(path, force=arguments.force, inputs=inputs)
        check_form(arguments, origins)
        matcher = Matcher(compilation.module_parts("celc run"))
        damage = closing.enter_context(damage_of(arguments, origins, inputs, outputs))
        of_file = [stages.query for stages in compilation.queries]
        queries = {query.name: matcher.queries[query.name] for query in asked}
        queries, bounds = _as_asked(arguments, format, queries)
        outs = _Outputs(arguments, format, dict(zip(queries, outputs, strict=True)), closing)
        wanted = {one.name: Wanted.of(one, queries[one.name], of_file) for one in asked}
        # Rows are left out by the columns that are read, so each query leaves out its own.
        alone = format == "html" or arguments.max_matches is not None or damage.skips_bad_rows
        alone = alone or bool(bounds) or arguments.near or len({*outputs}) == 1
        # Queries that share a reading have one thread, and all its events.
        alone = alone or arguments.threads is not None or arguments.memory is not None
        for names in _readings(queries, alone=alone):
            query, *others = (queries[name] for name in names)
            columns = wanted[query.name].with_others(wanted[one.name] for one in others)
            near = None
            if arguments.near:
                near = near_of(arguments, compilation, query.name, schema)
                columns = columns.reading(near.reading.file_schema)
            events = EventStream(origins, columns, form, damage)
            tables = tables_of(query, files, form)
            if near is not None and format != "html":
                _near_misses(near, events, outs, tables)
            elif others:
                _match_together([query, *others], events, outs)
            elif format == "html":
                more = near, arguments.threads
                _report(query, events, first, outs.of(query.name), tables, *more)
            else:
                of_call = {"threads": arguments.threads, "memory": arguments.memory}
                given = {"bounds": bounds.get(query.name), **of_call}
                _match(query, events, first, outs.live(query), tables, given)
            events.tell_left_out()
            if first.are_all:
                break  # the rest of the events was not read, and may have what these lack
            _tell_lacking(events, strict=arguments.strict_schema)
    if first.are_all:
        count = f"{arguments.max_matches:,} match{'' if arguments.max_matches == 1 else 'es'}"
        tell(f"celc: stopped after {count} (--max-matches); there may be more")
    return FINE


def _as_asked(
    arguments: argparse.Namespace, format: str, queries: Mapping[str, CompiledQuery]
) -> tuple[dict[str, CompiledQuery], dict[str, dict[str, Any]]]:
    """The queries with the options of the call, and by name the bounds of their slices."""
    bounds = _bounds_of(arguments, format, queries)
    has_id, positions = arguments.match_id or None, False if bounds else None
    asked = {
        name: one.with_options(match_id=has_id, positions=positions)
        for name, one in queries.items()
    }
    return asked, bounds


def _bounds_of(
    arguments: argparse.Namespace, format: str, queries: Mapping[str, CompiledQuery]
) -> dict[str, dict[str, Any]]:
    """For each query `after` and `until` of its slice; empty: neither is given. Raises
    CommandProblem where a query has no slices, and for a text that is no value of its order."""
    given = {"after": arguments.after, "until": arguments.until}
    given = {word: text for word, text in given.items() if text is not None}
    if given and format == "html":
        raise CommandProblem(
            "a report draws matches by their positions, and with --after or --until they have "
            "none: choose another format"
        )
    if given and arguments.near:
        raise CommandProblem(
            "--after and --until choose matches by the time at which they are known, and near "
            "misses have none: leave out --near"
        )
    found: dict[str, dict[str, Any]] = {}
    for name, query in queries.items() if given else ():
        try:
            bounds = {
                word: bound_of_text(query.plan, word, text, arguments.time_zone)
                for word, text in given.items()
            }
            slice_of(query.program, bounds.get("after"), bounds.get("until"))
        except (EventError, TypeError, ValueError) as problem:
            raise CommandProblem(str(problem)) from None
        found[name] = bounds
    if len(given) == 2 and any(one["after"] == one["until"] for one in found.values()):
        told = (
            f"--after {given['after']} and --until {given['until']} are one time: no row is between"
        )
        warnings.warn(told, EventWarning, stacklevel=2)
    return found


def _queries_and_events(arguments: argparse.Namespace) -> tuple[list[Path], list[str]]:
    """The query files and the names of events. Names before the first one without the ending of
    query files are query files, and so are the files of a folder that comes first."""
    given: list[str] = arguments.events
    events = (n for n, name in enumerate(given) if not name.endswith(SUFFIX))
    more = next(events, len(given) - 1)
    first = str(arguments.source)
    if not first.endswith(SUFFIXES) and given[-1].endswith(SUFFIXES) and not Path(first).is_dir():
        raise CommandProblem(f"the query comes before its events: celc run {given[-1]} {first}")
    paths, wrong = query_files([arguments.source, *map(Path, given[:more])])
    if wrong:
        raise CommandProblem("; ".join(wrong))
    return paths, given[more:]


def form_of(arguments: argparse.Namespace) -> Form:
    """The form of texts in files, from the options."""
    delimiter = arguments.delimiter
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise CommandProblem(
                f"--delimiter {arguments.delimiter}: give one ASCII sign that is no quotation mark "
                "and no end of a line; \\t or tab is a tab"
            )
    times = TimeForm(arguments.time_format, arguments.time_zone)
    times.check()
    return Form(delimiter, tuple(arguments.null_text), times)


def check_form(arguments: argparse.Namespace, origins: Sequence[Origin]) -> None:
    """Raises CommandProblem for an option that has no meaning for any of the files."""
    formats = {origin.format for origin in origins}
    for option, given, needed in (
        ("--delimiter", arguments.delimiter is not None, {"csv"}),
        ("--null-text", bool(arguments.null_text), {"csv"}),
        ("--time-format", arguments.time_format is not None, {"csv", "json"}),
    ):
        if given and not formats & needed:
            raise CommandProblem(
                f"{option} is for {' and '.join(sorted(needed))}, and the events are "
                f"{' and '.join(sorted(formats))}: leave it out"
            )

    numbers = arguments.time_format in EPOCH_UNITS and "parquet" not in formats
    if numbers and arguments.time_zone != "UTC":
        raise CommandProblem(
            f"--time-zone is for times that are texts, and --time-format {arguments.time_format} "
            "says that they are numbers since 1970 in UTC: leave it out"
        )


@contextmanager
def damage_of(
    arguments: argparse.Namespace,
    origins: Sequence[Origin],
    inputs: Sequence[Path],
    outputs: Sequence[Path | None] = (),
) -> Iterator[Damage]:
    """What is done with damaged rows, with the file that they are written to. Raises CommandProblem
    for a file that must not be written, and for an option without a meaning."""
    nulls = arguments.on_null_type == "skip"
    given: Path | None = arguments.on_bad_row
    if given in (None, Path("error")):
        yield Damage(skips_null_types=nulls)
        return
    assert given is not None
    if all(origin.format == "parquet" for origin in origins):
        raise CommandProblem(
            "--on-bad-row is for csv and json, and the events are parquet, whose values have types "
            "already: leave it out"
        )
    if given == Path("skip"):
        yield Damage(skips_bad_rows=True, skips_null_types=nulls)
        return
    check_output(given, force=arguments.force, inputs=inputs)
    if any(os.path.realpath(given) == os.path.realpath(one) for one in outputs if one is not None):
        raise CommandProblem(f"--on-bad-row {given} and -o name one file: name two")
    with written(given) as out:
        yield Damage(skips_bad_rows=True, bad_rows=out, skips_null_types=nulls)


class _Outputs:
    """What the queries write to, by name. Files appear together, when `closing` ends."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        format: str,
        paths: Mapping[str, Path | None],
        closing: ExitStack,
    ) -> None:
        self._arguments = arguments
        self._format = format
        self._paths = paths
        self._closing = closing
        self._opened: dict[Path | None, IO[bytes]] = {}

    def of(self, name: str) -> IO[bytes]:
        """The output of a query, which others may share."""
        path = self._paths[name]
        if path not in self._opened:
            self._opened[path] = self._closing.enter_context(output_of(path, self._format))
        return self._opened[path]

    def live(self, query: match_formats.AnyRows) -> Callable[[Any], None]:
        """A writer whose matches a waiting program can read at once."""
        out, path = self.of(query.name), self._paths[query.name]
        write = writer_of(self._format, query, out, self._arguments)
        if path is not None and not is_written_directly(path):
            return write

        def write_at_once(matches: Any) -> None:
            write(matches)
            out.flush()

        return write_at_once


def _report(
    query: CompiledQuery,
    events: EventStream,
    first: FirstMatches,
    out: IO[bytes],
    tables: Mapping[str, Any],
    near: NearQuery | None,
    threads: int | None,
) -> None:
    """Write a page with the matches of one query and all its events, which are read into memory,
    and if `near` with its near misses."""
    from celc.interfaces.pages.report import ReportOfRun

    try:
        with shown(events.size, query.name) as bar:
            page = ReportOfRun(query, events.batches(bar.read if bar is not None else None))
            for batch in first.of(matches_of(query, page.batches, tables, threads=threads)):
                if bar is not None:
                    bar.found(len(batch))
                page.add(batch)
        bent = None if near is None else near_misses_of(near, events, tables)
        out.write(page.page(bent).encode())
    except EventError as problem:
        raise placed(events, problem) from None


def _match(
    query: CompiledQuery,
    events: EventStream,
    first: FirstMatches,
    write: Callable[[Any], None],
    tables: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:
    """The matches of one query. `tables` are those of its parameter set; `given`: the bounds of a
    slice, the number of threads and the memory, as `matches_of` takes them."""
    try:
        with shown(events.size, query.name) as bar:
            read = partial(events.batches, bar.read if bar is not None else None)
            for batch in first.of(matches_of(query, read, tables, **given)):
                if bar is not None:
                    bar.found(len(batch))
                write(batch)
        write(None)
    except EventError as problem:
        raise placed(events, problem) from None


def _near_misses(
    near: NearQuery, events: EventStream, outs: _Outputs, tables: Mapping[str, Any]
) -> None:
    """The near misses of one query."""
    try:
        write_near_misses(near, events, outs.live(rows_of(near)), tables)
    except EventError as problem:
        raise placed(events, problem) from None


def _readings(queries: Mapping[str, CompiledQuery], *, alone: bool) -> list[list[str]]:
    """The queries by name, those together that share a reading of the events."""
    together = [] if alone else [*sharing(queries)]
    return [*filter(None, [together]), *([name] for name in queries if name not in together)]


def _match_together(queries: Sequence[CompiledQuery], events: EventStream, outs: _Outputs) -> None:
    """The matches of queries that share their reading, each written to its own file."""
    writers = {query.name: outs.live(query) for query in queries}
    try:
        with shown(events.size, ", ".join(writers)) as bar:
            read = partial(events.batches, bar.read if bar is not None else None)
            for name, batch in matches_together({one.name: one for one in queries}, read):
                if bar is not None:
                    bar.found(len(batch))
                writers[name](batch)
        for write in writers.values():
            write(None)
    except EventError as problem:
        raise placed(events, problem) from None


def placed(events: EventStream, problem: EventError) -> CommandProblem:
    """A problem with events, with its file and line."""
    # Events that lack an attribute of the query often have another mistake as well.
    events.refuse_misspelt()
    return CommandProblem(events.placed(str(problem)))


def _tell_lacking(events: EventStream, *, strict: bool) -> None:
    """Warn at the end of attributes that the events lacked. With `strict` it raises
    CommandProblem."""
    events.refuse_misspelt()
    if lacking := events.lacking():
        text = events.words_on(lacking)
        if strict:
            raise CommandProblem(f"{text} (--strict-schema)")
        warnings.warn(text, EventWarning, stacklevel=2)


def output_of(path: Path | None, format: str) -> AbstractContextManager[IO[bytes]]:
    if path is not None:
        return written(path)
    if format in ("parquet", "html") and sys.stdout is not None and sys.stdout.isatty():
        raise CommandProblem(f"{format} is not for terminals: name a file with -o")
    return standard_output()


def writer_of(
    format: str,
    query: match_formats.AnyRows,
    out: IO[bytes],
    arguments: argparse.Namespace,
) -> Callable[[Any], None]:
    """A function that takes each batch of matches, and None at the end."""
    match format:
        case "json":
            return match_formats.json_lines(query, out)
        case "rows":
            return match_formats.rows_as_json(query, out)
        case "csv":
            return match_formats.csv(query, out, safe=arguments.csv_safe)
        case "parquet":
            return match_formats.parquet(query, out)
        case _:
            from celc.interfaces.cli.table import table

            in_file = arguments.output is not None
            most = match_formats.ROWS_IN_FILE if in_file else match_formats.ROWS_SHOWN
            width = shutil.get_terminal_size((WIDTH, 0)).columns if out.isatty() else WIDTH
            return table(query, out, most, width, warn_beyond=in_file)

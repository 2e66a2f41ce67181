"""`celc run`: events in, matches out."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from celc_runtime import EventError, EventWarning
from celc_runtime.output import FirstMatches
from celc_runtime.query import CompiledQuery

from celc.cli import writing
from celc.cli.command import chosen_queries, compiled
from celc.cli.events import EventFile
from celc.cli.output import check_output, standard_output, tell, written
from celc.cli.problems import FINE, CommandProblem, words
from celc.cli.wanted import Wanted
from celc.matcher import Matcher, matches_of
from celc.pipeline import Stages


def run(arguments: argparse.Namespace) -> int:
    """Match each chosen query against the events; returns the exit code."""
    warnings.simplefilter("always", EventWarning)
    format = writing.format_of(arguments.output, arguments.format)
    if arguments.output is not None:
        inputs = [arguments.source, arguments.events]
        check_output(arguments.output, force=arguments.force, inputs=inputs)
    compilation = compiled(arguments)
    chosen = chosen_queries(compilation, arguments.query)
    if len(chosen) > 1 and format != "json":
        names = ", ".join(stages.query.name for stages in chosen)
        raise CommandProblem(f"name a query with --query ({names}), or use --format json")
    _check_events(arguments.events)
    matcher = Matcher(compilation.module_text("celc run"))
    first = FirstMatches(arguments.max_matches)
    with _output(arguments.output, format) as out:
        for stages in chosen:
            query = matcher.queries[stages.query.name]
            write = _writer(format, query, out, in_file=arguments.output is not None)
            _match(stages, query, arguments, write, first)
            if first.are_all:
                break
    if first.are_all:
        count = f"{arguments.max_matches:,} match{'' if arguments.max_matches == 1 else 'es'}"
        tell(f"celc: stopped after {count} (--max-matches); there may be more")
    return FINE


def _check_events(path: Path) -> None:
    try:
        there = path.is_file()
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    if not there:
        raise CommandProblem(f"{path}: there is no such file")


def _match(
    stages: Stages,
    query: CompiledQuery,
    arguments: argparse.Namespace,
    write: Callable[[Any], None],
    first: FirstMatches,
) -> None:
    """The matches of one query, and at the end a word on what the events lacked."""
    events = EventFile(arguments.events, Wanted.of(stages.query, query))
    try:
        with _progress(arguments.events) as progress:
            for batch in first.of(matches_of(query, partial(events.batches, progress))):
                write(batch)
            write(None)
    except EventError as problem:
        # Events that lack what the query reads are often wrong in another way as well.
        events.refuse_misspelt()
        raise CommandProblem(str(problem)) from None
    if first.are_all:
        return  # the rest of the events was not read, and may have what these lack
    events.refuse_misspelt()
    if lacking := events.lacking():
        text = events.words_on(lacking)
        if arguments.strict_schema:
            raise CommandProblem(f"{text} (--strict-schema)")
        warnings.warn(text, EventWarning, stacklevel=2)


def _output(path: Path | None, format: str) -> AbstractContextManager[IO[bytes]]:
    if path is not None:
        return written(path)
    if format == "parquet" and sys.stdout is not None and sys.stdout.isatty():
        raise CommandProblem("parquet is not for terminals: name a file with -o")
    return standard_output()


@contextmanager
def _progress(path: Path) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on a terminal, for input that is long enough to ask for one."""
    size = path.stat().st_size
    if sys.stderr is None or not sys.stderr.isatty() or size < 64 << 20:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(path.name, total=size)
        yield lambda done: bar.update(task, completed=done)


def _writer(
    format: str, query: CompiledQuery, out: IO[bytes], *, in_file: bool
) -> Callable[[Any], None]:
    """A function that is given each batch of matches, and None at the end."""
    match format:
        case "json":
            return writing.json_lines(query, out)
        case "csv":
            return writing.csv(query, out)
        case "parquet":
            return writing.parquet(query, out)
        case _:
            most = writing.ROWS_IN_FILE if in_file else writing.ROWS_SHOWN
            return writing.table(query, out, most)

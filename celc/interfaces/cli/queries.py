"""The query file that a command line names: read, compiled, its queries chosen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK
from celc.diagnostics.errors import render_all
from celc.diagnostics.files import names_of, read_file
from celc.diagnostics.source import Source
from celc.interfaces.cli.output import tell
from celc.interfaces.cli.problems import CommandProblem, words
from celc.options import Options

if TYPE_CHECKING:
    from celc.driver.pipeline import Compilation, Stages

STANDARD_INPUT = Path("-")

_SHOWN_FILES = 3  # so many files are named in the header of a module


def options_of(arguments: argparse.Namespace) -> Options:
    """The options of the command line for a compilation."""
    return Options(
        None if arguments.order_by is None else _columns(arguments.order_by),
        () if arguments.tiebreak is None else _columns(arguments.tiebreak),
        ties=arguments.ties,
        at_end=arguments.at_end,
        positions=getattr(arguments, "positions", False),
        match_id=arguments.command == "compile" and arguments.match_id,
        max_states=arguments.max_states,
        max_work=arguments.max_work,
        first_order=arguments.first_order,
        max_compile_seconds=arguments.max_compile_seconds,
        joins=arguments.command != "run",
    )


def module_path(paths: Sequence[Path]) -> Path:
    """Where `celc compile` writes the module of query files unless told otherwise."""
    return Path(f"{paths[0].stem}_udf.py")


def shown_command(
    arguments: argparse.Namespace, paths: Sequence[Path], output: Path | None = None
) -> str:
    """The command for the module's header: files without folders, the same on every machine."""
    names = [path.name for path in paths]
    if len(names) > _SHOWN_FILES:
        names = [*names[:_SHOWN_FILES], f"… ({len(names)} files)"]
    parts = ["celc compile", *names, "-o", (output or module_path(paths)).name]
    if arguments.order_by is not None:
        parts += ["--order-by", arguments.order_by]
    if arguments.tiebreak is not None:
        parts += ["--tiebreak", arguments.tiebreak]
    if arguments.ties is not None:
        parts += ["--ties", arguments.ties]
    if arguments.at_end != "open":
        parts += ["--at-end", arguments.at_end]
    if getattr(arguments, "positions", False):
        parts.append("--positions")
    if arguments.command == "compile" and arguments.match_id:
        parts.append("--match-id")
    if getattr(arguments, "standalone", False):
        parts.append("--standalone")
    if arguments.max_states != DEFAULT_MAX_STATES:
        parts += ["--max-states", str(arguments.max_states)]
    if arguments.max_work != DEFAULT_MAX_WORK:
        parts += ["--max-work", str(arguments.max_work)]
    if arguments.first_order:
        parts.append("--first-order")
    return " ".join(parts)


def compiled(arguments: argparse.Namespace, paths: Sequence[Path]) -> Compilation:
    """The compiled query files, for one module; their warnings go to standard error, with --query
    those about that query and the queries that it reads."""
    from celc.driver.pipeline import compile_files

    compilation = compile_files(read_sources(paths), options_of(arguments))
    chosen = _read_by(compilation, getattr(arguments, "query", None))
    told = []
    for file in compilation.files:
        others = [one.query.span for one in file.queries if one.query.name not in chosen]
        warnings = [
            warning
            for warning in file.warnings
            if not any(one.start <= warning.span.start < one.end for one in others)
        ]
        if warnings:
            told.append(render_all(file.source, warnings))
    if told:
        tell("\n\n".join(told))
    return compilation


def _read_by(compilation: Compilation, name: str | None) -> Collection[str]:
    """The query of a name and those that it reads; all, where there is no such query."""
    by_name = {one.query.name: one.query for one in compilation.queries}
    if name not in by_name:
        return by_name.keys()
    needed = [name]
    for one in needed:
        needed += [other for other in by_name[one].reads if other not in needed]
    return needed


def chosen_queries(compilation: Compilation, name: str | None) -> tuple[Stages, ...]:
    """The queries that `--query` chooses; all queries without it."""
    if name is None:
        return compilation.queries
    found = tuple(stages for stages in compilation.queries if stages.query.name == name)
    if not found:
        names = ", ".join(stages.query.name for stages in compilation.queries)
        where = "the file" if len(compilation.files) == 1 else "the files"
        raise CommandProblem(f"there is no query '{name}' in {where}; its queries: {names}")
    return found


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise CommandProblem(f"'{text}' is no list of column names separated by commas")
    return names


def read_source(path: Path, name: str | None = None) -> Source:
    """A query file, which messages call `name`. Raises CommandProblem where it cannot be read as
    one."""
    try:
        return read_file(path, name or path.name)
    except FileNotFoundError:
        if path == STANDARD_INPUT:
            raise CommandProblem("only check and fmt read a query from standard input") from None
        raise CommandProblem(f"{path}: there is no such file") from None
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    except ValueError as problem:
        raise CommandProblem(str(problem)) from None


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """Query files that become one module. Raises CommandProblem with all that cannot be read."""
    sources, wrong = [], []
    for path, name in zip(paths, names_of(paths), strict=True):
        try:
            sources.append(read_source(path, name))
        except CommandProblem as problem:
            wrong.append(str(problem))
    if wrong:
        raise CommandProblem("; ".join(wrong))
    return sources


def standard_input(name: str = "stdin.cel") -> Source:
    """The query on standard input. Raises CommandProblem where there is none."""
    if sys.stdin is None:
        raise CommandProblem("standard input is closed")
    try:
        data = sys.stdin.buffer.read()
    except OSError as problem:
        raise CommandProblem(f"standard input: {words(problem)}") from None
    try:
        return Source(name, data.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as trouble:
        byte = f"byte {trouble.start} is 0x{data[trouble.start]:02x}"
        raise CommandProblem(f"standard input is not UTF-8 text: {byte}") from None

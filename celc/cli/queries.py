"""The query file that a command line names: read, compiled, its queries chosen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from celc.cli.output import tell
from celc.cli.problems import CommandProblem, words
from celc.core.limits import DEFAULT_MAX_STATES, DEFAULT_MAX_WORK
from celc.diagnostics.source import Source
from celc.options import Options

if TYPE_CHECKING:
    from celc.cli.together import CompiledFiles
    from celc.pipeline import Stages

MAX_BYTES = 4 << 20

SUFFIX = ".cel"

SQL_SUFFIX = ".sql"
"""The ending of a file with MATCH_RECOGNIZE."""

SUFFIXES = (SUFFIX, SQL_SUFFIX)

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


def compiled(arguments: argparse.Namespace, paths: Sequence[Path]) -> CompiledFiles:
    """The compiled query files, for one module; their warnings go to standard error, with --query
    those about that query."""
    from celc.cli.together import compile_files

    compilation = compile_files(list(map(read_source, paths)), options_of(arguments))
    if shown := compilation.rendered_warnings(getattr(arguments, "query", None)):
        tell(shown)
    return compilation


def chosen_queries(compilation: CompiledFiles, name: str | None) -> tuple[Stages, ...]:
    """The queries that `--query` chooses; all queries without it."""
    if name is None:
        return compilation.queries
    found = tuple(stages for stages in compilation.queries if stages.query.name == name)
    if not found:
        names = ", ".join(stages.query.name for stages in compilation.queries)
        where = "the file" if len(compilation.files) == 1 else "the files"
        raise CommandProblem(f"there is no query '{name}' in {where}; its queries: {names}")
    return found


def query_files(
    paths: Iterable[Path], suffixes: Sequence[str] = (SUFFIX,)
) -> tuple[list[Path], list[str]]:
    """The query files that paths of files and folders name, each once, and the problems of
    folders, of which files with these endings count."""
    files: dict[Path, None] = {}
    wrong = []
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        below = sorted(
            one for suffix in suffixes for one in path.rglob(f"*{suffix}") if one.is_file()
        )
        if not below:
            ending = " or ".join(suffixes)
            wrong.append(f"{path}: there is no {ending} file in this folder")
        files.update(dict.fromkeys(below))
    return list(files), wrong


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise CommandProblem(f"'{text}' is no list of column names separated by commas")
    return names


def read_source(path: Path) -> Source:
    """A query file. Raises CommandProblem where it cannot be read as one."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CommandProblem(f"{path} is larger than {MAX_BYTES >> 20} MiB; is it a query?")
        data = path.read_bytes()
    except FileNotFoundError:
        raise CommandProblem(f"{path}: there is no such file") from None
    except OSError as problem:
        raise CommandProblem(f"{path}: {words(problem)}") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise CommandProblem(
            f"{path} is not UTF-8 text: byte {problem.start} is 0x{data[problem.start]:02x}"
        ) from None
    return Source(path.name, text.removeprefix("\ufeff"))


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

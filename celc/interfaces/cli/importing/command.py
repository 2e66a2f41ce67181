"""`celc import`: files of rules → files of CEL."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from celc.diagnostics.errors import CelError
from celc.diagnostics.files import SUFFIX
from celc.interfaces.cli.output import check_output, say, tell, written
from celc.interfaces.cli.problems import FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.queries import read_source
from celc.interfaces.importing.eql.rules import Columns
from celc.interfaces.importing.files import SUFFIXES, imported


def run(arguments: argparse.Namespace) -> int:
    """Translate all files; returns the exit code. A file that cannot be translated is told with its
    errors, and the others are still written."""
    columns = Columns(arguments.time_column, arguments.category_column)
    paths = list(_files(arguments.rules))
    output: Path | None = arguments.output
    if output is None and len(paths) > 1:
        raise CommandProblem(f"{len(paths)} rules become a file each: name their folder with -o")
    wrong = 0
    for path, to in _targets(paths, output):
        check_output(to, force=arguments.force, inputs=paths)
        try:
            text = imported(read_source(path, path.as_posix()), columns)
        except CelError as problem:
            tell(f"{problem}\n")
            wrong += 1
            continue
        if to is None:
            say(text)
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            with written(to) as out:
                out.write(text.encode())
    if output is not None or wrong:
        tell(_summary(len(paths) - wrong, wrong))
    return QUERY_WRONG if wrong else FINE


def _files(given: list[Path]) -> Iterator[Path]:
    for path in given:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES)
        if not inside:
            raise CommandProblem(f"{path} has no files that end with {' or '.join(SUFFIXES)}")
        yield from inside


def _targets(paths: list[Path], output: Path | None) -> Iterator[tuple[Path, Path | None]]:
    """Each file with the file to write; None is standard output."""
    if output is None or (len(paths) == 1 and not output.is_dir()):
        yield from ((path, output) for path in paths)
        return
    named: dict[Path, Path] = {}
    for path in paths:
        to = output / path.with_suffix(SUFFIX).name
        if to in named:
            raise CommandProblem(f"{named[to]} and {path} would both become {to}: rename one")
        named[to] = path
    yield from ((path, to) for to, path in named.items())


def _summary(written: int, wrong: int) -> str:
    found = f"{written} {'rule' if written == 1 else 'rules'} translated"
    return f"{found}, {wrong} not" if wrong else found

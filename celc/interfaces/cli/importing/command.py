"""`celc import`: files of rules → files of CEL."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from celc.diagnostics.errors import CelError
from celc.diagnostics.files import SUFFIX
from celc.diagnostics.source import Source
from celc.interfaces.cli.output import check_output, say, tell, written
from celc.interfaces.cli.problems import FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.queries import read_source
from celc.interfaces.importing.languages import COLUMNS, SUFFIXES, Columns, Translated


def run(arguments: argparse.Namespace) -> int:
    """Translate all files; returns the exit code. A file that cannot be translated is told with its
    errors, and the others are still written."""
    language: str = arguments.language
    usual = COLUMNS[language]
    if arguments.kind_column is not None and language == "flink":
        raise CommandProblem("rules of FlinkCEP ask for no kind of event: leave out --kind-column")
    columns = Columns(arguments.time_column or usual.time, arguments.kind_column or usual.kind)
    paths = list(_files(arguments.rules, SUFFIXES[language]))
    output: Path | None = arguments.output
    if output is None and len(paths) > 1:
        raise CommandProblem(f"{len(paths)} files become a file each: name their folder with -o")
    targets = {path.as_posix(): to for path, to in _targets(paths, output)}
    for to in targets.values():
        check_output(to, force=arguments.force, inputs=paths)
    sources = [read_source(path, path.as_posix()) for path in paths]
    try:
        from celc.interfaces.importing.files import imported

        found = list(imported(language, sources, columns))
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("lark", "sigma", "yaml"):
            raise
        raise CommandProblem(
            f"rules are read by the package {missing.name}: pip install 'celc[rules]'"
        ) from None
    for source, one in found:
        to = targets[source.name]
        if to is not None and isinstance(one, Translated) and one.tests:
            check_output(_tests_of(to), force=arguments.force, inputs=paths)
    return _write(found, targets, output)


def _write(
    found: Sequence[tuple[Source, Translated | CelError]],
    targets: Mapping[str, Path | None],
    output: Path | None,
) -> int:
    wrong = tested = 0
    for source, one in found:
        to = targets[source.name]
        if isinstance(one, CelError):
            tell(f"{one}\n")
            wrong += 1
            continue
        if one.warnings and to is not None:
            tell(f"{one.warnings}\n")
        if to is None:
            say(one.text)
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        with written(to) as out:
            out.write(one.text.encode())
        if one.tests:
            tested += 1
            with written(_tests_of(to)) as out:
                out.write(one.tests.encode())
    if output is not None or wrong:
        tell(_summary(len(found) - wrong, wrong, tested))
    return QUERY_WRONG if wrong else FINE


def _tests_of(path: Path) -> Path:
    """The test file beside a query file."""
    return path.with_suffix(".test.toml")


def _files(given: Sequence[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    for path in given:
        if not path.is_dir():
            yield path
            continue
        inside = sorted(one for one in path.rglob("*") if one.suffix in suffixes)
        if not inside:
            raise CommandProblem(f"{path} has no files that end with {' or '.join(suffixes)}")
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


def _summary(written: int, wrong: int, tested: int) -> str:
    found = f"{written} {'file' if written == 1 else 'files'} translated"
    found += f", {tested} with tests" if tested else ""
    return f"{found}, {wrong} not" if wrong else found

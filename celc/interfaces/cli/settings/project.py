"""The settings of the project that a command works in."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from celc.diagnostics.errors import error
from celc.diagnostics.files import SUFFIXES, query_files
from celc.editor.languages import ROW_PATTERNS, language_of
from celc.interfaces.cli.arguments import parser
from celc.interfaces.cli.declaring.schemas import schema_of
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.queries import STANDARD_INPUT, options_of
from celc.interfaces.cli.settings.files import Settings, SettingsError, settings_for
from celc.interfaces.cli.settings.options import EVENTS, PATHS, files_of, words_of
from celc.interfaces.doctor.findings import Finding, ok, wrong
from celc.options import Options

_OF_MANY = ("check", "fmt")
"""Commands that take the files of `paths` where none is named. Their files may be in several
languages."""


def with_settings(
    known: argparse.ArgumentParser, parsed: argparse.Namespace, given: Sequence[str]
) -> list[str]:
    """The command line with the settings of its project: their words come before those given, so
    that an option which is given wins.

    The project is the one of the files that are named, else of the folder of the caller. Raises
    SettingsError for a wrong file of settings, and CommandProblem where files have several.
    """
    name: str = parsed.command
    if name in ("completion", "doctor", "lsp"):
        # A language server serves files of several projects: `choices_for` looks each up.
        return list(given)
    given_files = _given_files(parsed)
    named = [path for path in given_files if path != STANDARD_INPUT]
    settings = _settings_of(named)
    words: list[str] = []
    if settings is not None:
        of_rows = name not in _OF_MANY and any(map(_is_of_rows, named))
        words = words_of(settings, _command(known, name), of_rows=of_rows)
    files: list[str] = []
    if not given_files and name in _OF_MANY:
        files = files_of(settings, PATHS) if settings else []
        if not files:
            raise CommandProblem(
                f"name files or folders, as in celc {name} . ; without a name, the files of the "
                "setting paths are taken, and there is none"
            )
    at = given.index(name)
    return [*given[: at + 1], *words, *given[at + 1 :], *files]


def choices_for(given: Sequence[str], file: Path | None) -> tuple[Options, Any]:
    """What the language server compiles a file with: options, and the columns of tables that it
    does not declare. `given`: the server's command line; None: a text that is no file.

    Raises SettingsError for a wrong file of settings.
    """
    command = parser()
    settings = settings_for(Path.cwd() if file is None else file.parent)
    words = [] if settings is None else words_of(settings, _command(command, given[0]))
    parsed = command.parse_args([given[0], *words, *given[1:]])
    schema = schema_of(parsed)
    try:
        if schema is not None:
            schema.schema  # noqa: B018 - read now, where a problem has a place in the settings
    except CommandProblem as problem:
        if settings is None or "schema" not in settings.values:
            raise
        found = error("settings", settings.place("schema"), f"schema: {problem}")
        raise SettingsError(settings.source, (found,)) from None
    return options_of(parsed), schema


def options_for(file: Path) -> Options:
    """What the settings of its project say of the compilation of a query file.

    Raises SettingsError for a wrong file of settings.
    """
    command = parser()
    settings = settings_for(file.parent)
    words: list[str] = []
    if settings is not None:
        words = words_of(settings, _command(command, "check"), of_rows=_is_of_rows(file))
    return options_of(command.parse_args(["check", *words]))


def events_for(file: Path) -> list[str]:
    """The names of the setting `events` of a query file's project.

    Raises SettingsError for a wrong file of settings.
    """
    settings = settings_for(file.parent)
    return [] if settings is None else files_of(settings, EVENTS)


def words_for_run(given: Sequence[str], file: Path) -> list[str]:
    """What stands behind `celc run` for a file that the language server was asked to run. `given`:
    the server's command line, whose --schema is left out: the events have the columns.

    Raises SettingsError for a wrong file of settings.
    """
    settings = settings_for(file.parent)
    words: list[str] = []
    if settings is not None:
        words = words_of(settings, _command(parser(), "run"), of_rows=_is_of_rows(file))
    schema = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    schema.add_argument("--schema")
    return [*words, *schema.parse_known_args(given[1:])[1]]


def findings() -> Iterator[Finding]:
    """What `celc doctor` says of the settings of this folder's project."""
    try:
        settings = settings_for(Path.cwd())
        if settings is None:
            return
        known = parser()
        words_of(settings, _command(known, "run"))
        listed = ", ".join(f"{key} = {value!r}" for key, value in settings.values.items())
        yield ok(f"settings of {settings.source.name}: {listed or 'none'}")
    except SettingsError as problem:
        for one in problem.diagnostics:
            line, column = problem.source.line_and_column(one.span.start)
            yield wrong(f"{problem.source.name}:{line}:{column}: {one.message}", *one.help[:1])


def _given_files(parsed: argparse.Namespace) -> list[Path]:
    source = getattr(parsed, "source", None)
    return [source] if isinstance(source, Path) else list(source or ())


def _settings_of(named: Sequence[Path]) -> Settings | None:
    """The settings of files and folders; those of the caller's folder where none is named."""
    folders = dict.fromkeys(path.resolve().parent for path in query_files(named, SUFFIXES)[0])
    found: dict[Path | None, Settings | None] = {}
    for folder in folders or [Path.cwd()]:
        settings = settings_for(folder)
        found.setdefault(settings.path if settings else None, settings)
    if len(found) > 1:
        paths = " and ".join(str(path or "no settings") for path in found)
        raise CommandProblem(
            f"the files are of projects with other settings ({paths}): run celc for each alone"
        )
    return next(iter(found.values()))


def _is_of_rows(path: Path) -> bool:
    return language_of(path) is ROW_PATTERNS


def _command(known: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    for action in known._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: argparse.ArgumentParser = action.choices[name]
            return found
    raise AssertionError(name)

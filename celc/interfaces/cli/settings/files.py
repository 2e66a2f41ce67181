"""The file with the settings of a project: where it is, and what it says, with places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError, error
from celc.diagnostics.files import read_file
from celc.diagnostics.source import Source, Span
from celc.interfaces.cli.problems import words

OWN = "celc.toml"
SHARED = "pyproject.toml"
TABLE = "tool.celc"
"""The table of the shared file that has the settings. The own file has no table."""

_BEGIN = Span(0, 0)


class SettingsError(CelError):
    """A file of settings that is wrong: all that is wrong in it, with places."""


@frozen
class Settings:
    """The settings of one file. Its name in messages is its path from the folder of the caller, if
    it is below it."""

    path: Path
    source: Source
    values: Mapping[str, Any]

    def place(self, key: str) -> Span:
        """Where a key stands; the begin of the file where it is written in an unusual way."""
        begin, end = self._table()
        name = re.escape(key)
        found = re.compile(rf"""^[ \t]*((?:{name}|"{name}"|'{name}'))[ \t]*=""", re.MULTILINE)
        at = found.search(self.source.text, begin, end)
        return _BEGIN if at is None else Span(*at.span(1))

    def _table(self) -> tuple[int, int]:
        """The part of the text in which the settings stand."""
        text = self.source.text
        if self.path.name == OWN:
            return 0, len(text)
        head = re.compile(rf"^[ \t]*\[[ \t]*{re.escape(TABLE)}[ \t]*\].*$", re.MULTILINE)
        begin = head.search(text)
        if begin is None:
            return 0, len(text)
        end = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, begin.end())
        return begin.end(), len(text) if end is None else end.start()


def settings_for(folder: Path) -> Settings | None:
    """The settings of the nearest folder, from this one upward, that has some.

    Raises SettingsError for a file that cannot be read or is no TOML, and where a folder has two.
    """
    for one in _upward(folder):
        found = [settings for settings in map(_read, (one / OWN, one / SHARED)) if settings]
        if len(found) > 1:
            message = f"[{TABLE}] of {SHARED} in this folder has settings as well: keep one of them"
            raise _wrong(found[0].source, message)
        if found:
            return found[0]
    return None


def _upward(folder: Path) -> Iterator[Path]:
    folder = folder.resolve()
    yield folder
    yield from folder.parents


def _read(path: Path) -> Settings | None:
    """The settings of a file; None where there is no such file, or no settings in it."""
    if not path.is_file():
        return None
    try:
        source = read_file(path, shown(path))
    except OSError as problem:
        raise _wrong(Source(shown(path), ""), words(problem)) from None
    except ValueError as problem:
        raise _wrong(Source(shown(path), ""), str(problem)) from None
    if path.name == SHARED and "celc" not in source.text:
        return None
    values: Any = _parsed(source)
    if path.name == SHARED:
        for name in TABLE.split("."):
            values = values.get(name) if isinstance(values, dict) else None
        if values is None:
            return None
        if not isinstance(values, dict):
            message = f"{TABLE} is a table of settings: write [{TABLE}], and one setting a line"
            raise _wrong(source, message)
    return Settings(path, source, values)


def _parsed(source: Source) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(problem))
        said = str(problem) if found is None else str(problem)[: found.start()]
        span = _BEGIN
        if found is not None and found[1] is not None:
            before = source.text.split("\n")[: int(found[1]) - 1]
            at = sum(len(line) + 1 for line in before) + int(found[2]) - 1
            span = Span(at, at)
        elif found is not None:
            span = Span(len(source.text), len(source.text))
        message = f"this is no TOML: {said[:1].lower()}{said[1:]}"
        raise _wrong(source, message, span) from None


def _wrong(source: Source, message: str, span: Span = _BEGIN) -> SettingsError:
    return SettingsError(source, (error("settings", span, message),))


def shown(path: Path) -> str:
    """A path from the folder of the caller, if it is below it."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()

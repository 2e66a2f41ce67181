"""The file with the settings of a project: where it is, and what it says, with places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError, error
from celc.diagnostics.files import read_file
from celc.diagnostics.source import Source, Span
from celc.interfaces.cli.problems import words
from celc.interfaces.cli.toml.places import places_of
from celc.interfaces.cli.toml.reading import values_of

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
        """Where a key stands."""
        path = (key,) if self.path.name == OWN else (*TABLE.split("."), key)
        return places_of(self.source.text)[path].key


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
    try:
        values: Any = values_of(source, "settings")
    except CelError as problem:
        raise SettingsError(problem.source, problem.diagnostics) from None
    if path.name == SHARED:
        for name in TABLE.split("."):
            values = values.get(name) if isinstance(values, dict) else None
        if values is None:
            return None
        if not isinstance(values, dict):
            message = f"{TABLE} is a table of settings: write [{TABLE}], and one setting a line"
            raise _wrong(source, message)
    return Settings(path, source, values)


def _wrong(source: Source, message: str, span: Span = _BEGIN) -> SettingsError:
    return SettingsError(source, (error("settings", span, message),))


def shown(path: Path) -> str:
    """A path from the folder of the caller, if it is below it."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()

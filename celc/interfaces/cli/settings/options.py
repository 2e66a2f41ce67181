"""Settings as options: a setting of the file becomes a word of the command line.

Each command parses these words before those that the user wrote. So a setting means what its option
means, it is checked as the option is, and an option on the command line wins.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from celc.diagnostics.errors import Diagnostic, error
from celc.diagnostics.messages.wording import guess, quote, quoted
from celc.editor.languages import ROW_PATTERNS
from celc.interfaces.cli.settings.files import Settings, SettingsError, shown
from celc.options import Options

PATHS = "paths"
"""The setting with the query files of a command that names none."""

EVENTS = "events"
"""The setting with the events for `celc run` without a file of events, and for editors."""

# What the value of a setting is, in the words of messages. A column is a text without a comma.
_COLUMNS = "a column, or a list of columns"
_TEXT = "a text"
_TEXTS = "a text, or a list of texts"
_NUMBER = "a number"
_SWITCH = "true or false"
_FILE = "the path of a file, from the folder of this one"
_FILES = "a list of files and folders, from the folder of this one"

KEYS: Mapping[str, str] = {
    "order_by": _COLUMNS,
    "tiebreak": _COLUMNS,
    "ties": _TEXT,
    "at_end": _TEXT,
    "type_column": _TEXT,
    "first_order": _SWITCH,
    "max_states": _NUMBER,
    "max_work": _NUMBER,
    "max_compile_seconds": _NUMBER,
    "schema": _FILE,
    "delimiter": _TEXT,
    "null_text": _TEXTS,
    "time_format": _TEXT,
    "time_zone": _TEXT,
    "on_null_type": _TEXT,
    PATHS: _FILES,
    EVENTS: _FILES,
}
"""All settings, each with what its value is. Other options belong to a single call."""

_NO_SETTINGS = {
    "functions": "a file of Python is run only where the command line names it: --functions",
}
"""Options that no file may set, each with the help that says why."""

_OF_OPTIONS = frozenset(one.name for one in fields(Options))


def words_of(
    settings: Settings, command: argparse.ArgumentParser, *, of_rows: bool = False
) -> list[str]:
    """The settings that a command has options for, as words of the command line.

    of_rows: the command reads a text with MATCH_RECOGNIZE, which does not have all options of CEL.

    Raises SettingsError with all mistakes of the file, also in settings that this command does not
    use: a misspelt key is never ignored.
    """
    found: list[str] = []
    wrong: list[Diagnostic] = []
    actions = {action.dest: action for action in command._actions if action.option_strings}
    for key, value in settings.values.items():
        texts = _texts(settings, key, value, wrong)
        action = actions.get(key)
        if not texts or action is None:
            continue
        if of_rows and key in _OF_OPTIONS and key not in ROW_PATTERNS.options:
            continue
        flag = action.option_strings[-1]
        if action.nargs == 0:
            found.append(flag)
            continue
        problem = next(filter(None, (_refused(action, text) for text in texts)), None)
        if problem is not None:
            wrong.append(error("settings", settings.place(key), f"{key}: {problem}"))
        found += [f"{flag}={text}" for text in texts]
    if wrong:
        wrong.sort(key=lambda one: one.span.start)
        raise SettingsError(settings.source, tuple(wrong))
    return found


def files_of(settings: Settings, key: str) -> list[str]:
    """The files and folders of the setting PATHS or EVENTS; empty if the file does not set it."""
    wrong: list[Diagnostic] = []
    texts = _texts(settings, key, settings.values[key], wrong) if key in settings.values else []
    if wrong:
        raise SettingsError(settings.source, tuple(wrong))
    return texts


def _texts(settings: Settings, key: str, value: Any, wrong: list[Diagnostic]) -> list[str]:
    """The value of a setting as its option takes it, one text for each time that the option is
    given; empty for `false`. A mistake goes to `wrong`, and the result is empty."""
    place = settings.place(key)
    if key not in KEYS:
        if key in _NO_SETTINGS:
            wrong.append(error("settings", place, f"{key} is no setting", _NO_SETTINGS[key]))
        else:
            known = f"settings: {', '.join(map(quote, KEYS))}"
            wrong.append(
                error(
                    "settings", place, f"there is no setting {quote(key)}", *guess(key, KEYS), known
                )
            )
        return []
    kind = KEYS[key]
    texts = _of_kind(settings, kind, value)
    if texts is None:
        wrong.append(error("settings", place, f"{key} is {kind}, and this is {_said(value)}"))
        return []
    return texts


def _of_kind(settings: Settings, kind: str, value: Any) -> list[str] | None:
    """The texts of a value; None if the value is not of this kind (a value of KEYS)."""
    if kind is _SWITCH:
        return None if not isinstance(value, bool) else ["true"] * value
    if kind is _NUMBER:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return [str(value)] if is_number else None
    listed = kind in (_COLUMNS, _TEXTS, _FILES)
    given = [value] if isinstance(value, str) and kind is not _FILES else value
    if not listed:
        given = [value]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        return None
    if kind in (_FILE, _FILES):
        return [shown(settings.path.parent / one) for one in given]
    return [",".join(given)] if kind is _COLUMNS and given else given


def _said(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "a list of other values" if value else "an empty list"
    if isinstance(value, dict):
        return "a table"
    return quote(value) if isinstance(value, str) else str(value)


def _refused(action: argparse.Action, text: str) -> str | None:
    """Why an option refuses a text; None if it takes it."""
    value: Any = text
    if action.type is not None:
        try:
            value = action.type(text)  # type: ignore[operator]
        except argparse.ArgumentTypeError as problem:
            return str(problem)
        except ValueError:
            return f"{text} is no whole number" if action.type is int else f"it cannot be {text}"
    if action.choices is not None and value not in action.choices:
        return f"it cannot be {quote(text)}; it can be {quoted(map(str, action.choices))}"
    return None

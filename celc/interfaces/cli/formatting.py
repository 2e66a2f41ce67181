"""`celc fmt`: files in the canonical layout."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from celc.diagnostics.errors import CelError
from celc.diagnostics.files import SUFFIXES, query_files
from celc.diagnostics.source import Source, visible
from celc.editor.formatting.statements import formatted_text
from celc.editor.languages import LANGUAGES, Dialect, language_of
from celc.interfaces.cli.output import say, tell, written
from celc.interfaces.cli.problems import FILE_WRONG, FINE, QUERY_WRONG, CommandProblem
from celc.interfaces.cli.queries import STANDARD_INPUT, read_source, standard_input


@dataclass(slots=True)
class _Counts:
    """How many files had another layout, had this layout, and could not be read."""

    changed: int = 0
    unchanged: int = 0
    wrong: int = 0


def format_paths(paths: Sequence[Path], dialect: Dialect | None, *, check: bool, diff: bool) -> int:
    """Write files in the canonical layout; returns the exit code.

    Standard input (`-`) goes to standard output; `dialect` is its language. With `check` or `diff`
    no file is written. A file with errors stays as it is, and the others are still formatted.
    """
    files, problems = query_files(paths, SUFFIXES)
    if dialect is not None and STANDARD_INPUT not in files:
        raise CommandProblem("--dialect is of standard input; of files the ending says it")
    counts = _Counts()
    for path in files:
        try:
            _format(path, dialect, counts, named=path in paths, check=check, diff=diff)
        except CommandProblem as problem:
            problems.append(str(problem))
        except CelError as problem:
            tell(f"{problem}\n")
            counts.wrong += 1
    for told in problems:
        tell(f"celc: {visible(told)}")
    if files != [STANDARD_INPUT]:
        tell(_summary(counts, would=check or diff))
    if problems:
        return FILE_WRONG
    return QUERY_WRONG if counts.wrong or (check and counts.changed) else FINE


def _format(
    path: Path, dialect: Dialect | None, counts: _Counts, *, named: bool, check: bool, diff: bool
) -> None:
    """Format a file. Other SQL is left alone where the command has not named it."""
    is_input = path == STANDARD_INPUT
    if is_input:
        language = LANGUAGES[dialect or "cel"]
        source = standard_input(f"stdin{language.suffix}")
    else:
        language = language_of(path)
        source = read_source(path, path.as_posix())
    if not named and not language.has(source):
        return
    text = formatted_text(source, language)
    # Files with a byte order mark, or with "\r\n", have another layout, too.
    same = text == source.text and (is_input or text.encode() == path.read_bytes())
    counts.unchanged += same
    counts.changed += not same
    if diff:
        say(_difference(source, text))
    elif is_input and not check:
        say(text)
    elif not same:
        if not check:
            with written(path) as out:
                out.write(text.encode())
        tell(f"{'would change' if check else 'changed'} {visible(source.name)}")


def _difference(source: Source, text: str) -> str:
    lines = difflib.unified_diff(
        _lines(source.text),
        _lines(text),
        source.name,
        f"{source.name} (formatted)",
    )
    shown = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(shown)


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends. Unlike in `str.splitlines`, only line ends end a
    line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _summary(counts: _Counts, *, would: bool) -> str:
    parts = []
    for count, what in [
        (counts.changed, "would change" if would else "changed"),
        (counts.unchanged, "unchanged"),
        (counts.wrong, "with errors"),
    ]:
        if count:
            parts.append(f"{count} file{'s' if count != 1 else ''} {what}")
    return ", ".join(parts) or "no file"

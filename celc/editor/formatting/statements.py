"""The layout of any text: of a whole statement of SQL that of its clauses, and the text around them
as it is."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

from celc.diagnostics.errors import CelError, Diagnostics
from celc.diagnostics.source import Source
from celc.editor.formatting.text import formatted
from celc.editor.languages import ROW_PATTERNS, Language

if TYPE_CHECKING:
    from celc.statements.checked import PlacedClause

_WORD = "MATCH_RECOGNIZE"
_WHOLE = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\"[^\"]*\"|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*")
"""Texts, quoted names and comments, which can hold line ends that are their own."""


def formatted_text(source: Source, language: Language) -> str:
    """A text in the canonical layout. Raises `CelError` where it is not in the language."""
    if language is ROW_PATTERNS and ROW_PATTERNS.is_statement(source):
        return _statement(source)
    return formatted(source, language)


def _statement(source: Source) -> str:
    """The statement with its clauses in the canonical layout, each indented as its line is.

    Raises `CelError` where a clause is not in the language, with its place in the statement.
    """
    from celc.statements.checked import clauses_in  # with sqlglot, which other texts do not need

    text, made, end = source.text, "", 0
    for clause in clauses_in(source):
        begin = clause.span.start
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        indent = line[: len(line) - len(line.lstrip())]
        made += text[end:begin] + _indented(_clause(source, clause), indent)
        end = clause.span.end
    made += text[end:]
    assert _spelled(source) == _spelled(Source(source.name, made)), "the layout has changed words"
    return made


def _clause(source: Source, clause: PlacedClause) -> str:
    """A clause in the canonical layout."""
    from celc.statements.checked import BEFORE
    from celc.statements.places import MadeText

    text, made, end = source.text, MadeText(clause.span.start), clause.span.start
    made.write(BEFORE.format("t"), end)
    names = {}
    for number, span in enumerate(clause.parameters):
        made.copy(text[end : span.start], end)
        name = f"celc_parameter_{number}_"
        names[name] = source.slice(span)
        made.write(name, span.start)
        end = span.end
    made.copy(text[end : clause.span.end], end)
    try:
        found = formatted(Source(source.name, made.text), ROW_PATTERNS)
    except CelError as problem:
        diagnostics = tuple(map(made.back, problem.diagnostics))
        raise CelError(source, diagnostics) from None
    found = found[found.index(_WORD) :].rstrip("\n")
    for name, written in names.items():
        found = found.replace(name, written)
    return found


def _indented(text: str, indent: str) -> str:
    """Lines behind the first one with an indent, unless they begin within a text or a comment."""
    whole = [one.span() for one in _WHOLE.finditer(text)]
    lines = text.split("\n")
    begins = accumulate((len(line) + 1 for line in lines), initial=0)
    return "\n".join(
        (
            indent + line
            if number and line and not any(start < at < end for start, end in whole)
            else line
        )
        for number, (line, at) in enumerate(zip(lines, begins, strict=False))
    )


def _spelled(source: Source) -> list[tuple[str, str]]:
    from celc.statements.checked import DIALECT
    from celc.statements.words import words_of

    words = words_of(source, DIALECT, Diagnostics(source))
    return [(word.key, word.text if word.is_quoted or word.is_text else "") for word in words]

"""A whole statement of SQL: the layout of its clauses, and the text around them as it is."""

from __future__ import annotations

import re
from itertools import accumulate

from celc.diagnostics.errors import CelError, Diagnostics
from celc.diagnostics.source import Source
from celc.editor.formatting.text import formatted
from celc.editor.languages import Language
from celc.statements.checked import BEFORE, DIALECT, PlacedClause, clauses_in
from celc.statements.places import MadeText
from celc.statements.words import words_of

_WORD = "MATCH_RECOGNIZE"
_WHOLE = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\"[^\"]*\"|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*")
"""Texts, quoted names and comments, which can hold line ends that are their own."""


def formatted_statement(source: Source, language: Language) -> str:
    """The statement with its clauses in the canonical layout, each indented as its line is.

    Raises `CelError` where a clause is not in the language, with its place in the statement.
    """
    text, made, end = source.text, "", 0
    for clause in clauses_in(source):
        begin = clause.span.start
        line = text[text.rfind("\n", 0, begin) + 1 : begin]
        indent = line[: len(line) - len(line.lstrip())]
        made += text[end:begin] + _indented(_clause(source, clause, language), indent)
        end = clause.span.end
    made += text[end:]
    assert _spelled(source) == _spelled(Source(source.name, made)), "the layout has changed words"
    return made


def _clause(source: Source, clause: PlacedClause, language: Language) -> str:
    """A clause in the canonical layout."""
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
        found = formatted(Source(source.name, made.text), language)
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
    words = words_of(source, DIALECT, Diagnostics(source))
    return [(word.key, word.text if word.is_quoted or word.is_text else "") for word in words]

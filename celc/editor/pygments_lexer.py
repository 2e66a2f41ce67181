"""Colours for Pygments, which Sphinx, MkDocs, IPython and rich use.

The classes of words are looked up when the first text is coloured, so Pygments can list its lexers
without reading a grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from celc.editor.colours import words_by_class
from celc.editor.languages import Dialect
from celc.parse.tables import grammar

_AS_TOKENS = {
    "constant": Keyword.Constant,
    "operator": Operator.Word,
    "keyword": Keyword,
    "type": Keyword.Type,
    "function": Name.Builtin,
    "unit": Keyword.Constant,
}


# Many keywords are names where only a name can stand.
_AFTER_AS = re.compile(r"\bAS\s+\Z", re.IGNORECASE)
_NEVER_NAMES = frozenset({"PROJECT", "CASE", "INTERVAL", "RUNNING", "FINAL"})


def _word(lexer: _Words, match: re.Match[str]) -> Iterator[tuple[int, Any, str]]:
    yield match.start(), _AS_TOKENS.get(lexer.class_of(match), Name), match.group()


class _Words(RegexLexer):  # type: ignore[misc]
    """What both dialects have in common."""

    dialect: ClassVar[Dialect]
    flags = re.MULTILINE

    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"--[^\n]*", Comment.Single),
            (r"/\*[\s\S]*?(?:\*/|\Z)", Comment.Multiline),
            (r"'(?:[^']|'')*(?:'|\Z)", String.Single),
            (r"`(?:[^`]|``)*(?:`|\Z)", Name.Variable),
            (r"(?<!\.)(\.)(\s*)([^\W\d]\w*)", bygroups(Punctuation, Whitespace, Name.Attribute)),
            (r"\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)", Number.Float),
            (r"\d+", Number.Integer),
            (r"[^\W\d]\w*", _word),
            (r"->|:\+|\{-|-\}|<>|!=|<=|>=|==|\.\.|[-+*/%=<>!?|^$:;]", Operator),
            (r"[()\[\]{},.]", Punctuation),
        ]
    }

    def class_of(self, match: re.Match[str]) -> str:
        """The class of a word, empty for a name."""
        word = match.group().upper()
        of = words_by_class(self.dialect)
        behind = match.string[match.end() : match.end() + 1]
        is_name = behind in (".", "[") or _AFTER_AS.search(match.string[: match.start()][-9:])
        if is_name and word not in _NEVER_NAMES and word not in grammar().reserved:
            return ""
        if word in of["function"] and behind == "(":
            return "function"
        if word in of["type"] and not re.match(r"\s*'", match.string[match.end() :][:9]):
            return "type"
        if word in of["unit"] and re.search(r"\d['\s]+\Z", match.string[: match.start()][-9:]):
            return "unit"
        return next((name for name in ("constant", "operator", "keyword") if word in of[name]), "")


class CelLexer(_Words):
    """CEL, the logic of complex events (not Google's Common Expression Language)."""

    name = "celc"
    aliases: ClassVar[list[str]] = ["celc", "complex-event-logic"]
    filenames: ClassVar[list[str]] = ["*.cel"]
    mimetypes: ClassVar[list[str]] = ["text/x-celc"]
    dialect = "cel"

    @staticmethod
    def analyse_text(text: str) -> float:
        """How much a text looks like CEL, from 0 to 1."""
        declares = re.search(r"\bCREATE\s+STREAM\s+\S+\s*\{", text, re.IGNORECASE)
        selects = re.search(r"^\s*SELECT\b[\s\S]*?\bWHERE\b", text, re.IGNORECASE | re.MULTILINE)
        return 0.9 if declares else 0.3 if selects else 0.0


class MatchRecognizeLexer(_Words):
    """Queries with MATCH_RECOGNIZE."""

    name = "MATCH_RECOGNIZE"
    aliases: ClassVar[list[str]] = ["match_recognize"]
    mimetypes: ClassVar[list[str]] = []
    dialect = "match_recognize"

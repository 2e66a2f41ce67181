"""A statement as the words of its host: names, texts and comments are told apart as there.

Names stand in double quotes or backquotes on every host, texts in single quotes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from celc_runtime.plan.frozen import frozen
from sqlglot import Tokenizer
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import statements as messages
from celc.diagnostics.source import Source, Span


class _SparkWords(Spark.Tokenizer):
    COMMANDS: ClassVar[set[Any]] = set()  # the rest of EXPLAIN is words as well
    QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']


class _DuckWords(DuckDB.Tokenizer):
    COMMANDS: ClassVar[set[Any]] = set()
    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]


_TEXTS = {
    *("STRING", "RAW_STRING", "HEREDOC_STRING", "BYTE_STRING", "UNICODE_STRING"),
    *("NATIONAL_STRING", "HEX_STRING", "BIT_STRING"),
}
"""The kinds of sqlglot's tokens that are texts."""


@frozen
class Word:
    """A word of a statement: `text` as it is written, a quoted name without its quotes. `key` is
    what it is compared by: capitals, empty for texts, numbers and quoted names."""

    text: str
    key: str
    is_quoted: bool
    is_text: bool
    span: Span

    @property
    def can_be_name(self) -> bool:
        """Whether it can be the name of a table or an alias."""
        return self.is_quoted or (self.key.isidentifier() and self.key not in _NO_NAMES)


_NO_NAMES = frozenset(
    {
        *("SELECT", "FROM", "WHERE", "JOIN", "ON", "USING", "AS", "AND", "OR", "NOT", "IN", "IS"),
        *("GROUP", "ORDER", "BY", "HAVING", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT"),
        *("WITH", "CASE", "WHEN", "THEN", "ELSE", "END", "EXISTS", "BETWEEN", "LIKE", "NULL"),
        *("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER", "NATURAL", "SEMI", "ANTI", "LATERAL"),
        *("ALL", "DISTINCT", "SET", "VALUES", "QUALIFY", "WINDOW"),
    }
)


def words_of(source: Source, dialect: str, found: Diagnostics) -> list[Word]:
    """The words of a statement, without comments. Raises `CelError` where a text, a quoted name or
    a comment has no end."""
    try:
        tokens = _tokenizer(dialect).tokenize(source.text)
    except TokenError:
        found.add(messages.unclosed_text(_unclosed(source.text)))
        found.raise_errors()
    made = []
    for token in tokens:
        span = Span(token.start, token.end + 1)
        is_quoted = token.token_type.name == "IDENTIFIER"
        is_text = token.token_type.name in _TEXTS
        text = token.text if is_quoted else source.slice(span)
        key = "" if is_quoted or is_text else text.upper()
        made.append(Word(text, key, is_quoted, is_text, span))
    return made


@cache
def _tokenizer(dialect: str) -> Tokenizer:
    return {"spark": _SparkWords, "duckdb": _DuckWords}[dialect](dialect=dialect)


def _unclosed(text: str) -> Span:
    """The last quote or comment that opens and does not close."""
    at, opened = 0, len(text)
    while at < len(text):
        if text.startswith("--", at):
            end = text.find("\n", at)
        elif text.startswith("/*", at):
            opened, end = at, text.find("*/", at + 2)
        elif text[at] in "'\"`":
            opened, end = at, text.find(text[at], at + 1)
        else:
            at += 1
            continue
        if end < 0:
            return Span(opened, min(len(text), opened + 2))
        at = end + (2 if text.startswith("*/", end) else 1)
    return Span(max(0, len(text) - 1), len(text))

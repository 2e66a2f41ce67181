"""The only way from a query's text into generated code.

Names of a query never become identifiers there, because those are numbered. So its text can appear
in two places: in a string literal and in a comment.
"""

from collections.abc import Iterable

from celc.diagnostics.source import visible


def string_literal(text: str) -> str:
    """A Python string literal in ASCII for any text, lone surrogates included."""
    literal = ascii(text)
    if literal.startswith("'") and '"' not in literal and "\\'" not in literal:
        return '"' + literal[1:-1] + '"'
    return literal


def literal(value: int | float | str | bool | None) -> str:
    """A Python literal of a constant of the query."""
    return string_literal(value) if isinstance(value, str) else repr(value)


def literal_lines(text: str) -> list[str]:
    """String literals of the lines of a text, to be joined by newlines. If there are very many
    lines, several share a literal, because black takes time for each literal."""
    lines = text.split("\n")
    step = 1 + len(lines) // 2000
    return [string_literal("\n".join(lines[at : at + step])) for at in range(0, len(lines), step)]


def comment_text(text: str, *, limit: int = 200) -> str:
    """A text as one line of a comment: no character ends the comment or hides others."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def tuple_text(items: Iterable[str]) -> str:
    parts = list(items)
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


def string_tuple(texts: Iterable[str]) -> str:
    return tuple_text(map(string_literal, texts))

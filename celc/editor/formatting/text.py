"""A text → the same text in the canonical layout, which is compared with it before it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from celc.diagnostics.source import Source
from celc.editor.formatting import cel
from celc.editor.formatting.documents import Box, lines_of
from celc.editor.formatting.tokens import Word, comments_of
from celc.editor.trees import same_tree

Dialect = Literal["cel", "match_recognize"]


def formatted(source: Source, dialect: Dialect = "cel") -> str:
    """The text in the canonical layout: only white space and the case of keywords change.

    Raises `CelError` where the text is not in the language. A result that says something else is a
    mistake of celc: an AssertionError.
    """
    tree, words = _read(source, dialect)
    tokens, comments = _spelled(words), comments_of(words)
    text = lines_of(_document(tree, words, dialect))
    tree_after, after = _read(Source(source.name, text), dialect)
    assert _spelled(after) == tokens, "the layout has lost or joined words"
    assert comments_of(after) == comments, "the layout has lost a comment"
    assert same_tree(tree, tree_after), "the layout has changed the formula"
    return text


def _read(source: Source, dialect: Dialect) -> tuple[Any, list[Word]]:
    return cel.words_of(source)


def _document(tree: Any, words: list[Word], dialect: Dialect) -> Box:
    return cel.document_of(tree, words)


def _spelled(words: Sequence[Word]) -> list[tuple[str, str]]:
    return [(word.kind, word.text) for word in words]

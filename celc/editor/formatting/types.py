"""The words of other systems for types → the language's words."""

from itertools import pairwise

from celc.diagnostics.source import Source
from celc.parse import syntax
from celc.parse.parser import parse
from celc.parse.trees import nodes_of
from celc.parse.types import type_word


def in_own_words(source: Source) -> Source:
    """The text with `STRING` for `VARCHAR(20)`, `DECIMAL(12, 4)` for `NUMERIC(12, 4)` and the like.

    Raises `CelError` where the text is not in the language.
    """
    file, text = parse(source), source.text
    parts = (file.streams, file.parameters, file.aggregates, file.functions, file.queries)
    changes = sorted(
        (node.name.span.start, _end(node, text), type_word(node.name.text))
        for node in nodes_of(parts)
        if isinstance(node, syntax.WrittenType)
        and type_word(node.name.text) != node.name.text.upper()
        and not _has_comment(text[node.name.span.start : node.name.span.end])
    )
    bounds = [(0, 0, ""), *changes, (len(text), len(text), "")]
    texts = (word + text[end:start] for (_, end, word), (start, _, _) in pairwise(bounds))
    return Source(source.name, "".join(texts)) if changes else source


def _end(node: syntax.WrittenType, text: str) -> int:
    """The end of what the word replaces: with the length of a text, unless there is a comment."""
    is_text = type_word(node.name.text) == "STRING"
    inside = text[node.name.span.end : node.span.end]
    return node.span.end if is_text and not _has_comment(inside) else node.name.span.end


def _has_comment(text: str) -> bool:
    return "--" in text or "/*" in text

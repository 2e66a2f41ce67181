"""A text → the same text in the canonical layout, after a check that it is the same."""

from collections.abc import Sequence
from itertools import pairwise

from celc.diagnostics.source import Source
from celc.editor.formatting.documents import lines_of
from celc.editor.formatting.tokens import Word
from celc.editor.languages import Language
from celc.editor.trees import same_tree


def formatted(source: Source, language: Language) -> str:
    """The text in the canonical layout. Only white space, the case of keywords and other systems'
    words for types change.

    Raises `CelError` where the text is not in the language. A result with another meaning is a
    mistake of celc: an AssertionError.
    """
    source = language.in_own_words(source)
    tree, words = language.read_words(source)
    tokens, comments = _spelled(words), _between(source.text, words)
    text = lines_of(language.layout(tree, words))
    tree_after, after = language.read_words(Source(source.name, text))
    assert _spelled(after) == tokens, "the layout has lost or joined words"
    assert _between(text, after) == comments, "the layout has lost a comment"
    assert same_tree(tree, tree_after), "the layout has changed the formula"
    return text


def _spelled(words: Sequence[Word]) -> list[tuple[str, str]]:
    return [(word.kind, word.text) for word in words]


def _between(text: str, words: Sequence[Word]) -> str:
    """All that stands between the words, without white space: their comments."""
    bounds = pairwise([0, *(place for word in words for place in (word.start, word.end))])
    between = "".join("".join(text[start:end].split()) for start, end in list(bounds)[::2])
    return between.removeprefix("\ufeff")

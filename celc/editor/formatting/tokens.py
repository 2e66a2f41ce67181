"""Tokens with the comments around them, for both dialects.

A comment after a token on its line belongs to that token, any other comment to the next token. This
also holds in a text in the canonical layout, so a second run finds the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from celc.editor.formatting.documents import Comment, Piece

BEGIN_PARTS = frozenset({"part", "branch"})
"""Roles of words that begin a part of a chain without an operator. A line takes several of each
"part"."""

_COMMENT = re.compile(r"--[^\n]*|/\*[\s\S]*?\*/")


@dataclass(slots=True)
class Word:
    """A token before it becomes a piece. `kind` is its terminal, `text` its canonical spelling.

    `level` is how early a box is broken before it (None: never; see `chains`). `spaced`: a space
    comes before it. `role` is for the dialect's own use.
    """

    kind: str
    text: str
    start: int
    end: int
    level: int | None = None
    spaced: bool = True
    role: str = ""
    above: list[Comment] = field(default_factory=list)
    behind: list[Comment] = field(default_factory=list)
    blank: bool = False

    def piece(self) -> Piece:
        """The piece of a document."""
        return Piece(self.text, tuple(self.above), tuple(self.behind), self.blank)


def attach_comments(text: str, words: Sequence[Word]) -> None:
    """Give each word its comments. The last word is the end of the text."""
    behind, place = None, 1 if text.startswith("\ufeff") else 0
    for word in words:
        end = place
        for found in _COMMENT.finditer(text, place, word.start):
            blank = text.count("\n", end, found.start()) > 1
            comment = Comment(found.group().replace("\r\n", "\n").rstrip(), blank)
            if behind is not None and "\n" not in text[place : found.start()]:
                behind.behind.append(comment)
            else:
                word.above.append(comment)
            end = found.end()
        word.blank = text.count("\n", end, word.start) > 1
        behind, place = word, word.end


def has_comment(text: str) -> bool:
    """Whether there is a comment in a text, or what looks like one in a quoted text."""
    return _COMMENT.search(text) is not None


def move_comments(words: Sequence[Word], is_comma: Sequence[bool]) -> None:
    """Move comments away from operators, which begin a line, and from commas, which end one. They
    move only where their order stays, and where none ends the line of another."""
    for before, word, after, comma in zip(words, words[1:], words[2:], is_comma[1:], strict=False):
        if word.level is None or word.role in BEGIN_PARTS:
            continue
        if comma:
            if not word.behind:
                after.above[:0] = word.above
                word.above.clear()
            if not word.above and not (word.behind and before.piece().ends_line):
                word.behind[:0] = before.behind
                before.behind.clear()
            continue
        if not word.above and not (word.behind and before.piece().ends_line):
            before.behind += word.behind
            word.behind.clear()
        if not word.behind:
            word.above += after.above
            after.above.clear()

"""Boxes of tokens → lines of a text.

A box that fits into the rest of the line is written there. Another box is broken at its own places,
and its inner boxes are treated in the same way. This is the printer of Wadler's "A prettier
printer" (2003), with a loop instead of laziness. Comments have no width, so the layout does not
depend on them. A comment that ends its line breaks all boxes that go on after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

WIDTH = 88  # the width of a line, where it can be broken

INDENT = 2


@frozen
class Comment:
    """A comment as written. `blank`: there is an empty line above it."""

    text: str
    blank: bool = False

    @property
    def ends_line(self) -> bool:
        """Whether what follows must begin a line."""
        return self.text.startswith("--") or "\n" in self.text


@frozen
class Piece:
    """A token in its canonical spelling, the comments on lines above it, and those after it.
    `blank`: there is an empty line directly above it."""

    text: str
    above: tuple[Comment, ...] = ()
    behind: tuple[Comment, ...] = ()
    blank: bool = False

    @property
    def ends_line(self) -> bool:
        """Whether what follows must begin a line."""
        return any(comment.ends_line for comment in self.behind)


@frozen
class Space:
    """A space, except at the beginning and the end of a line."""


@frozen
class Break:
    """A place where a box can be broken. `flat` is written there if it is not.

    - `always`: it is broken, even if the box fits
    - `blank`: an empty line is written there
    - `keeps_blank`: an empty line of the text stays
    """

    flat: str = " "
    always: bool = False
    blank: bool = False
    keeps_blank: bool = False


@frozen
class Box:
    """Parts one after another. `whole` boxes are broken at all of their own places, or at none.

    `indent` is added to lines that begin inside. `breaks`: it is broken, even if it fits. `above`,
    `ends_line`: those of its first and last piece.
    """

    parts: tuple[Document, ...]
    whole: bool
    indent: int
    breaks: bool
    above: bool
    ends_line: bool


Document: TypeAlias = Piece | Space | Break | Box

SPACE = Space()


def box(*parts: Document, whole: bool = False, indent: int = 0) -> Box:
    """A box of parts."""
    breaks, first, ends = False, True, False
    above = False
    for part in parts:
        match part:
            case Space():
                continue
            case Break():
                breaks |= part.always
                continue
            case Box():
                part_above, part_ends = part.above, part.ends_line
                breaks |= part.breaks
            case Piece():
                part_above, part_ends = bool(part.above), part.ends_line
        breaks |= ends or (part_above and not first)
        if first:
            above = part_above
        first, ends = False, part_ends
    return Box(parts, whole, indent, breaks, above, ends)


def lines_of(document: Document) -> str:
    """The text of a document; it ends with a line end."""
    writer = _Writer()
    waiting: list[tuple[Document, int, bool]] = [(document, 0, False)]
    while waiting:
        part, indent, is_flat = waiting.pop()
        match part:
            case Piece():
                writer.piece(part, indent)
            case Space():
                writer.space()
            case Break():
                if is_flat:
                    if part.flat:
                        writer.space()
                else:
                    writer.line(part)
            case Box():
                if part.whole and not is_flat:
                    is_flat = not part.breaks and _fits(part, waiting, writer.room(indent))
                inner = indent + part.indent
                waiting += [(one, inner, is_flat) for one in reversed(part.parts)]
    return writer.text()


def _fits(first: Box, after: list[tuple[Document, int, bool]], room: int) -> bool:
    """Whether a box, with what follows up to the next place for a line end, fits into `room`
    columns."""
    for width, ends in _widths(first, after):
        room -= width
        if room < 0:
            return False
        if ends:
            return True
    return True


def _widths(first: Box, after: list[tuple[Document, int, bool]]) -> Iterator[tuple[int, bool]]:
    """The widths of the written parts, and whether a line can end there."""
    waiting: list[tuple[Document, bool]] = [(first, True)]
    next_after = len(after)
    while waiting or next_after:
        if not waiting:
            next_after -= 1
            waiting.append((after[next_after][0], after[next_after][2]))
        part, is_flat = waiting.pop()
        match part:
            case Space():
                yield 1, False
            case Break():
                if not is_flat:
                    yield 0, True
                    return
                yield len(part.flat), False
            case Box():
                waiting += [(one, is_flat) for one in reversed(part.parts)]
            case Piece():
                if part.above and not is_flat:
                    yield 0, True
                    return
                yield len(part.text.partition("\n")[0]), part.ends_line or "\n" in part.text


class _Writer:
    """The lines written so far, and the one that is being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._column = 0
        self._has_space = self._must_end = False
        # An empty line of the text may stay here.
        self._keeps_blank = True

    def room(self, indent: int) -> int:
        """The columns that are left in the line."""
        return WIDTH - (self._column + self._has_space if self._line else indent)

    def space(self) -> None:
        self._has_space = bool(self._line)

    def line(self, place: Break) -> None:
        self._end_line()
        if place.blank:
            self._empty_line()
        self._keeps_blank = place.keeps_blank or place.blank

    def piece(self, piece: Piece, indent: int) -> None:
        if self._must_end or (piece.above and self._line):
            self._end_line()
        for comment in piece.above:
            if comment.blank and self._keeps_blank:
                self._empty_line()
            self._write(comment.text, indent)
            self._end_line()
        if piece.blank and self._keeps_blank and not self._line:
            self._empty_line()
        self._write(piece.text, indent)
        for comment in piece.behind:
            self.space()
            self._write(comment.text, indent)
            self._must_end |= comment.ends_line
        self._has_space |= bool(piece.behind)
        self._keeps_blank = False

    def text(self) -> str:
        self._end_line()
        while self._lines and not self._lines[-1]:
            self._lines.pop()
        return "".join(f"{line}\n" for line in self._lines)

    def _write(self, text: str, indent: int) -> None:
        if not text:
            return
        before = " " * indent if not self._line else " " * self._has_space
        self._line += [before, text]
        self._column += len(before) + len(text)
        if "\n" in text:
            self._column = len(text) - text.rindex("\n") - 1
        self._has_space = False

    def _end_line(self) -> None:
        if self._line:
            self._lines.append("".join(self._line))
        self._line = []
        self._column = 0
        self._has_space = self._must_end = False

    def _empty_line(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

"""Query texts and places in them: the coordinates that every later stage carries along."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from celc_runtime.plan.frozen import frozen


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of character offsets into `Source.text`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@frozen
class Source:
    """One query text with the name under which messages speak of it: a file, or the path of one
    among several."""

    name: str
    text: str
    _line_starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Only "\n" ends a line here. str.splitlines() would also split at form feeds, U+2028 and
        # others, and its line numbers would then disagree with those of every editor.
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        object.__setattr__(self, "_line_starts", tuple(starts))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column (in characters) of an offset; the text's end is valid."""
        line = bisect_right(self._line_starts, min(offset, len(self.text)))
        return line, offset - self._line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its line end."""
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def slice(self, span: Span) -> str:
        """The text under a span."""
        return self.text[span.start : span.end]


def text_of(sources: Sequence[Source]) -> str:
    """The text of files that become one module. If there are several, a comment names each."""
    if len(sources) == 1:
        return sources[0].text
    return "\n".join(
        f"-- {visible(PurePath(source.name).name)}\n{source.text.rstrip()}\n" for source in sources
    )


def visible(text: str) -> str:
    """`text` with every character that could change how a terminal shows it written as an escape.

    Control characters, bidirectional controls, invisible format characters and lone surrogates
    become `\\x1b`-like escapes; a tab becomes one space, so that carets stay where they belong.
    """
    if text.isprintable():
        return text
    return "".join(_visible_character(character) for character in text)


def visible_lines(text: str) -> str:
    """As `visible`, for a text of several lines: their line ends are kept."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(text: str) -> str:
    """As `visible`, for a text of JSON: the escapes are those of JSON, so its meaning stays."""
    if text.isprintable():
        return text
    return "".join(map(_visible_in_json, text))


def _visible_in_json(character: str) -> str:
    # A string of JSON has no character below U+0020, so such a character is layout.
    if character < " " or _visible_character(character) == character:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at:at + 2].hex()}" for at in range(0, len(units), 2))


def _visible_character(character: str) -> str:
    if character == "\t":
        return " "
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character

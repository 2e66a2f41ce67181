"""The words and symbols of a `.cel` file, and a cursor over them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from .decimals import WrittenInteger, written
from .values import CelError

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>`[^`]*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>:\+|:\{|->|\|\||\.\.|==|<=|>=|<>|!=|[{}\[\](),;:+*/%=<>!?.-])
    """,
    re.VERBOSE | re.DOTALL,
)

# Words that cannot name a label, type, stream or query unless they are quoted.
_RESERVED = """
    ALL AND ANY AS BETWEEN BY CONSUME CREATE EVENT FALSE FILTER FROM IN IS LAST LIKE LIMIT MAX NEXT
    NONE NOT NULL NXT OR PARTITION PROJECT QUERY RLIKE SELECT STREAM STRICT TRUE UNLESS WHERE WITHIN
"""
RESERVED = frozenset(_RESERVED.split())


_MICROSECONDS = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
# The words that make a duration of the number before them, in microseconds.
UNITS = {name + ending: size for name, size in _MICROSECONDS.items() for ending in ("", "S")}


class Token(NamedTuple):
    """A token: `kind` is number, string, quoted, word, symbol or end; `text` without quotes. It
    stands from `place` to before `end`."""

    kind: str
    text: str
    place: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in capitals, empty for all that is not a bare word."""
        return self.text.upper() if self.kind == "word" else ""


def tokenize(text: str) -> list[Token]:
    """All tokens of the text, comments left out, and one of kind `end`."""
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise CelError(f"line {line_of(text, place)}: {text[place]!r} has no place in CEL")
        kind, found = str(match.lastgroup), match.group()
        if kind == "string":
            found = found[1:-1].replace("''", "'")
        elif kind == "quoted":
            found = found[1:-1]
        if kind != "space":
            tokens.append(Token(kind, found, place, match.end()))
        place = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def line_of(text: str, place: int) -> int:
    """The number of the line, from 1, that the place is in."""
    return text.count("\n", 0, place) + 1


class Cursor:
    """A place in the tokens of one text, with the small steps that parsers are made of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0

    def peek(self, ahead: int = 0) -> Token:
        """The token `ahead` steps from here, without going there."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        """The token here; the cursor goes on."""
        token = self.peek()
        self.index += 1
        return token

    def since(self, index: int) -> tuple[int, int]:
        """Where the text stands that was taken since the cursor was at `index`."""
        return self.tokens[index].place, self.tokens[self.index - 1].end

    def error(self, wanted: str) -> CelError:
        """An error that says what was wanted here and what stands here instead."""
        token = self.peek()
        found = repr(token.text) if token.kind != "end" else "the end"
        line = line_of(self.text, token.place)
        return CelError(f"line {line}: expected {wanted}, found {found}")

    def at_word(self, *words: str, ahead: int = 0) -> bool:
        """Whether one of these keywords stands here."""
        return self.peek(ahead).keyword in words

    def at(self, *symbols: str, ahead: int = 0) -> bool:
        """Whether one of these symbols stands here."""
        token = self.peek(ahead)
        return token.kind == "symbol" and token.text in symbols

    def accept_word(self, *words: str) -> str | None:
        """Take one of these keywords if it stands here, and say which."""
        return self.take().keyword if self.at_word(*words) else None

    def accept(self, *symbols: str) -> str | None:
        """Take one of these symbols if it stands here, and say which."""
        return self.take().text if self.at(*symbols) else None

    def expect_word(self, *words: str) -> str:
        """Take one of these keywords, or fail."""
        found = self.accept_word(*words)
        if found is None:
            raise self.error(" or ".join(words))
        return found

    def expect(self, *symbols: str) -> str:
        """Take one of these symbols, or fail."""
        found = self.accept(*symbols)
        if found is None:
            raise self.error(" or ".join(repr(symbol) for symbol in symbols))
        return found

    def name(self) -> str:
        """Take an identifier: a word that is not reserved, or a quoted one."""
        token = self.peek()
        if token.kind == "quoted" or (token.kind == "word" and token.keyword not in RESERVED):
            return self.take().text
        raise self.error("a name")

    def attribute(self) -> str:
        """Take an attribute name: any word."""
        if self.peek().kind in ("quoted", "word"):
            return self.take().text
        raise self.error("an attribute")

    def at_duration(self) -> bool:
        """Whether a number with a unit of time stands here."""
        return self.peek().kind == "number" and self.at_word(*UNITS, ahead=1)

    def duration(self) -> Fraction:
        """Take all numbers with units that stand here, in microseconds."""
        total = Fraction(0)
        while self.at_duration():
            total += Fraction(self.take().text) * UNITS[self.take().keyword]
        return total

    def number(self) -> int | float:
        """Take a number."""
        if self.peek().kind != "number":
            raise self.error("a number")
        text = self.take().text
        if text.isdigit():
            return WrittenInteger(text)
        return float(text) if "e" in text.lower() else written(text)

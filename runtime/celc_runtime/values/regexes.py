"""Regular expressions of RE2 whose groups are taken out of texts (REGEXP_EXTRACT).

On one machine RE2 itself runs them. On Spark Java's `java.util.regex` does, so an expression is
written anew for it: with the same meaning, or not at all. Left out is what no short form of Java's
says (`\\b`, flags, classes of POSIX and of scripts), and repeated groups that can be empty, whose
last round the two count differently. Both choose the same match: the leftmost, and of those the
first way in the order of the alternatives.
"""

import re
from typing import NamedTuple

_SPACE = r"\t\n\f\r "
_CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W"}
_SIGNS = {"n": r"\n", "t": r"\t", "r": r"\r", "f": r"\f", "a": r"\x07", "v": r"\x0B"}
_SPECIAL = frozenset("\\^$.|?*+()[]{}&-~")
_HEXADECIMAL = re.compile(r"x(?:[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\})")
_CATEGORY = re.compile(r"[pP](?:[A-Z]|\{[A-Z][a-z]?\})")
_REPEATED = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_OPENS = re.compile(r"\((?:\?(?::|P?<[^>=!]+>))?")


class Regex(NamedTuple):
    """An expression in both languages."""

    groups: int
    named: str
    """For RE2, with the names `g1`, `g2`, … for its groups, and `g0` around the whole."""
    java: str


class RegexError(ValueError):
    """A part of an expression has no counterpart in Java's. The text of the error is that part."""


def read_regex(pattern: str) -> Regex:
    """An expression that RE2 accepts. Raises RegexError."""
    return _Reader(pattern).read()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = 0
        self._re2: list[str] = []
        self._java: list[str] = []
        self._open = [[True]]
        """For each open group whether each way through it can be empty, the present one last."""

    def read(self) -> Regex:
        while self._at < len(self._pattern):
            self._part()
        return Regex(self._groups, f"(?P<g0>{''.join(self._re2)})", "".join(self._java))

    def _take(self, length: int, java: str, re2: str | None = None) -> None:
        text = self._pattern[self._at : self._at + length]
        self._at += length
        self._re2.append(text if re2 is None else re2)
        self._java.append(java)

    def _part(self) -> None:
        sign = self._pattern[self._at]
        if sign == "(":
            self._group()
        elif sign == ")":
            ways = self._open.pop()
            self._take(1, ")")
            self._repeated(can_be_empty=any(ways), is_group=True)
        elif sign == "|":
            self._open[-1].append(True)
            self._take(1, "|")
        elif sign in "^$":
            self._take(1, r"\A" if sign == "^" else r"\z")
            if _REPEATED.match(self._pattern, self._at):
                raise RegexError(self._pattern[self._at - 1 : self._at + 1])
        else:
            self._character(sign)
            if self._re2[-1] not in (r"\A", r"\z"):
                self._repeated(can_be_empty=False)

    def _group(self) -> None:
        found = _OPENS.match(self._pattern, self._at)
        assert found is not None
        opening = found[0]
        if opening == "(" and self._pattern[self._at + 1 : self._at + 2] == "?":
            raise RegexError(self._pattern[self._at : self._at + 4])
        captures = opening != "(?:"
        self._groups += captures
        named = f"(?P<g{self._groups}>" if captures else opening
        self._take(len(opening), "(" if captures else opening, named)
        self._open.append([True])

    def _repeated(self, *, can_be_empty: bool, is_group: bool = False) -> None:
        """The repetition behind a part, which may be none."""
        found = _REPEATED.match(self._pattern, self._at)
        if found is None:
            self._open[-1][-1] &= can_be_empty
            return
        often = found[0][0] in "*+{"
        if often and can_be_empty and is_group:
            raise RegexError(found[0])
        least = re.match(r"\{(\d+)", found[0])
        is_none = found[0][0] in "*?" or (least is not None and int(least[1]) == 0)
        self._open[-1][-1] &= can_be_empty or is_none
        self._take(len(found[0]), found[0])

    def _character(self, sign: str) -> None:
        if sign == "[":
            self._class()
        elif sign == "\\":
            self._escape(inside=False)
        elif sign == ".":
            self._take(1, r"[^\n]")
        else:
            self._take(1, _literal(sign))

    def _escape(self, *, inside: bool) -> None:
        rest = self._pattern[self._at + 1 :]
        sign = rest[:1]
        if found := _HEXADECIMAL.match(rest):
            self._take(1 + len(found[0]), rf"\x{{{found[0][1:].strip('{}')}}}")
        elif found := _CATEGORY.match(rest):
            self._take(1 + len(found[0]), "\\" + found[0])
        elif sign in _CLASSES:
            self._take(2, _CLASSES[sign])
        elif sign == "s":
            self._take(2, _SPACE if inside else f"[{_SPACE}]")
        elif sign == "S" and not inside:
            self._take(2, f"[^{_SPACE}]")
        elif sign in _SIGNS:
            self._take(2, _SIGNS[sign])
        elif sign in ("A", "z") and not inside:
            self._take(2, f"\\{sign}")
            if _REPEATED.match(self._pattern, self._at):
                raise RegexError(f"\\{sign}{self._pattern[self._at]}")
        elif sign.isascii() and not sign.isalnum():
            self._take(2, _literal(sign))
        else:
            raise RegexError(f"\\{sign}")

    def _class(self) -> None:
        negated = self._pattern.startswith("[^", self._at)
        self._take(1 + negated, "[^" if negated else "[")
        first = self._at
        while self._pattern[self._at] != "]" or self._at == first:
            sign = self._pattern[self._at]
            if sign == "[" and self._pattern.startswith("[:", self._at):
                raise RegexError(self._pattern[self._at : self._at + 2])
            if sign == "\\":
                self._escape(inside=True)
            elif sign == "-" and self._at != first and self._pattern[self._at + 1] != "]":
                self._take(1, "-")  # of a range
            else:
                self._take(1, _literal(sign))
        self._take(1, "]")


def _literal(sign: str) -> str:
    """A character that stands for itself, for Java."""
    return f"\\{sign}" if sign in _SPECIAL else sign

"""Where the keys and values of a TOML text stand.

`tomllib` reads the values and gives no places. This scan finds the places of a text that `tomllib`
has read, so it need not know what is wrong TOML. A library that keeps places is not needed for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span

Path: TypeAlias = tuple[str | int, ...]
"""The keys that lead to a value; a number counts in an array, from 0."""

_QUOTES = ('"""', "'''", '"', "'")
_BLANKS = " \t\r"


@frozen
class Place:
    """Where a key stands, and its value. A table under a header has only the header, and an element
    of an array only its value."""

    key: Span
    value: Span


def places_of(text: str) -> Mapping[Path, Place]:
    """The places of all keys, values and elements of a text that is TOML."""
    scan = _Scan(text)
    scan.file()
    return scan.found


class _Scan:
    """A reading of the text from left to right; `at` is the next sign."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, Place] = {}
        self.arrays: dict[Path, int] = {}
        """Arrays of tables, with how many tables each has so far."""

    def file(self) -> None:
        table: Path = ()
        self.skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip()

    def skip(self, signs: str = _BLANKS + "\n") -> None:
        """Pass over blanks, ends of lines and comments."""
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                self.at = self._end_of_line()
            elif self.text[self.at] in signs:
                self.at += 1
            else:
                return

    def _end_of_line(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def header(self) -> Path:
        """`[a.b]` or `[[a.b]]`: the path of the table that begins."""
        start = self.at
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        self.at += brackets
        names = self.key()
        self.skip(_BLANKS)
        self.at += brackets
        path: Path = ()
        for number, name in enumerate(names, start=1):
            path = (*path, name)
            if brackets == 2 and number == len(names):
                self.arrays[path] = self.arrays.get(path, -1) + 1
            if path in self.arrays:
                path = (*path, self.arrays[path])
        span = Span(start, self.at)
        for depth in range(1, len(path) + 1):
            self.found.setdefault(path[:depth], Place(span, span))
        return path

    def pair(self, table: Path) -> None:
        """`key = value`."""
        start = self.at
        path = (*table, *self.key())
        key = Span(start, self.at)
        self.skip(_BLANKS)
        self.at += 1  # =
        self.skip(_BLANKS)
        value = self.value(path)
        for depth in range(len(table) + 1, len(path)):
            self.found.setdefault(path[:depth], Place(key, value))
        self.found[path] = Place(key, value)

    def key(self) -> tuple[str, ...]:
        """`a.b`; it ends after its last part."""
        names: list[str] = []
        while True:
            self.skip(_BLANKS)
            start = self.at
            if self.text[start] in "\"'":
                self.quoted()
                names.append(tomllib.loads(f"a={self.text[start:self.at]}")["a"])
            else:
                while self.text[self.at].isalnum() or self.text[self.at] in "-_":
                    self.at += 1
                names.append(self.text[start : self.at])
            end = self.at
            self.skip(_BLANKS)
            if self.at >= len(self.text) or self.text[self.at] != ".":
                self.at = end
                return tuple(names)
            self.at += 1

    def quoted(self) -> None:
        """A text in quotation marks of any kind."""
        quote = next(one for one in _QUOTES if self.text.startswith(one, self.at))
        self.at += len(quote)
        while not self.text.startswith(quote, self.at):
            self.at += 2 if quote[0] == '"' and self.text[self.at] == "\\" else 1
        self.at += len(quote)
        # Up to two quotation marks may stand before the three that end a text.
        while len(quote) == 3 and self.text.startswith(quote[0], self.at):
            self.at += 1

    def value(self, path: Path) -> Span:
        """A value of any kind, with what is in it."""
        start = self.at
        if self.text[start] in "\"'":
            self.quoted()
        elif self.text[start] == "[":
            self.array(path)
        elif self.text[start] == "{":
            self.inline(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1
            while self.text[self.at - 1] in _BLANKS:
                self.at -= 1
        return Span(start, self.at)

    def array(self, path: Path) -> None:
        self.at += 1
        self.skip()
        number = 0
        while self.text[self.at] != "]":
            inside = (*path, number)
            span = self.value(inside)
            self.found[inside] = Place(span, span)
            number += 1
            self.skip()
            if self.text[self.at] == ",":
                self.at += 1
                self.skip()
        self.at += 1

    def inline(self, path: Path) -> None:
        self.at += 1
        self.skip()
        while self.text[self.at] != "}":
            self.pair(path)
            self.skip()
            if self.text[self.at] == ",":
                self.at += 1
                self.skip()
        self.at += 1

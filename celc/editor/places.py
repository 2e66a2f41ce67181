r"""Offsets in a text ↔ lines and characters as editors count them.

Lines end with "\\n", "\\r\\n" or a single "\\r". Characters are units of an encoding: UTF-16,
unless an editor asks for another.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import field

from celc_runtime.plan.frozen import frozen

_UNITS: Mapping[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}
_LINE_END = re.compile(r"\r\n|\n|\r")


@frozen
class Places:
    """The places of a text. `encoding` is utf-8, utf-16 or utf-32."""

    text: str
    encoding: str = "utf-16"
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = (0, *(found.end() for found in _LINE_END.finditer(self.text)))
        object.__setattr__(self, "_starts", starts)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the character of an offset, both from 0."""
        line = bisect_right(self._starts, min(offset, len(self.text))) - 1
        return line, _UNITS[self.encoding](self.text[self._starts[line] : offset])

    def offset(self, line: int, character: int) -> int:
        """The offset of a place. A place beyond the end of its line is the end of the line."""
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        found = _LINE_END.search(self.text, start)
        end = found.start() if found else len(self.text)
        units = _UNITS[self.encoding]
        if units(self.text[start:end]) <= character:
            return end
        at = start
        while character > 0:
            character -= units(self.text[at])
            at += 1
        return at

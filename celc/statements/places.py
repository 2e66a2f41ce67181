"""A text that is made from parts of another one, and the places there of what is said about it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from celc.diagnostics.errors import Diagnostic
from celc.diagnostics.source import Span


@dataclass
class MadeText:
    """`text` grows by copied and by written parts. `origin`: what stands for a place before all
    copied ones."""

    origin: int
    text: str = ""
    _starts: list[int] = field(default_factory=list)
    _places: list[tuple[int, bool]] = field(default_factory=list)

    def copy(self, text: str, start: int) -> None:
        """Add a part of the other text, which begins there at `start`."""
        self._add(text, start, copied=True)

    def write(self, text: str, start: int) -> None:
        """Add what stands for something at `start` of the other text."""
        self._add(text, start, copied=False)

    def _add(self, text: str, start: int, *, copied: bool) -> None:
        self._starts.append(len(self.text))
        self._places.append((start, copied))
        self.text += text

    def place(self, offset: int) -> int:
        """The offset in the other text."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return self.origin
        start, copied = self._places[at]
        return start + (offset - self._starts[at] if copied else 0)

    def span(self, span: Span) -> Span:
        """A place in the other text."""
        start = self.place(span.start)
        # The end of a span is behind its last character.
        end = self.place(span.end - 1) + 1 if span.end > span.start else start
        return Span(start, max(start, end))

    def back(self, one: Diagnostic) -> Diagnostic:
        """A diagnostic of the made text at its place in the text that was given."""
        return replace(
            one,
            span=self.span(one.span),
            related=tuple(replace(r, span=self.span(r.span)) for r in one.related),
            fixes=tuple(replace(f, span=self.span(f.span)) for f in one.fixes),
        )

"""Places in the text of a rule that a library has read, which does not say where things stand."""

from __future__ import annotations

import re

from celc.diagnostics.errors import Diagnostics, error, warning
from celc.diagnostics.source import Source, Span


class Places:
    """Finds words in the text of a file of rules, from where its present rule begins."""

    def __init__(self, source: Source, diagnostics: Diagnostics | None = None) -> None:
        self.source = source
        self.diagnostics = diagnostics or Diagnostics(source)
        self._begin = 0

    def begin_rule(self, title: str) -> None:
        """The rule with this title is read next."""
        self._begin = max(0, self.source.text.find(title))

    def of(self, word: str) -> Span:
        """Where a word stands first in the present rule; where it does not, the rule's begin."""
        text, begin = self.source.text, self._begin
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(text, begin) if word else None
        at = whole.start() if whole else text.find(word, begin) if word else -1
        return Span(begin, begin + 1) if at < 0 else Span(at, at + len(word))

    def of_field(self, name: str) -> Span:
        """Where a field is a key of the present rule."""
        found = re.compile(rf"(?<![\w.]){re.escape(name)}(?=\s*[|:])").search(
            self.source.text, self._begin
        )
        return Span(*found.span()) if found else self.of(name)

    def wrong(self, word: str, message: str, *help: str) -> None:
        """What cannot be translated, at the place of a word."""
        self.diagnostics.add(error("import-unsupported", self.of(word), message, *help))

    def wrong_field(self, name: str, message: str) -> None:
        """What cannot be translated, at the key of a field."""
        self.diagnostics.add(error("import-unsupported", self.of_field(name), message))

    def told(self, word: str, message: str) -> None:
        """What of the examples of a rule is not read, at the place of a word."""
        self.diagnostics.add(warning("import-example", self.of(word), message))

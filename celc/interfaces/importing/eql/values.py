"""A translated expression of EQL, and what its parts are asked."""

from __future__ import annotations

from typing import Protocol

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.source import Span
from celc.interfaces.importing.fields import Kind
from celc.interfaces.importing.words import Words


@frozen
class Value:
    """A translated expression: its text, its type if it is known, and what it is in EQL."""

    words: Words
    kind: Kind | None
    span: Span
    constant: str | int | float | bool | None = None
    name: str | None = None  # of a field
    is_null: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is a text written in the query."""
        return isinstance(self.constant, str)


class Uses(Protocol):
    """What the translation of a call asks of that of its query."""

    def text(self, value: Value) -> None:
        """A value is used as a text."""

    def computed(self, left: Value, operator: str, right: Value, span: Span) -> Value:
        """Arithmetic of two values."""
        ...

    def wrong(self, span: Span, message: str, *help: str) -> None:
        """What cannot be translated, with its place."""

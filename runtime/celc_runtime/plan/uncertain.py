"""Uncertain time as a generated module writes it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

CONFIDENCE = "confidence"
"""The column that says how likely a match is."""

TOLERANCE = 1e-9
"""How far a confidence may be from its bound, and from its exact value."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The time of an event is one of low, low + step, … up to high, each as likely.

    `low` and `high` are columns, `step` is in the units of their type: whole numbers, microseconds
    or days. Only matches whose confidence reaches `least`, or is above it where `strict`, are rows;
    None: all matches that are possible.
    """

    low: str
    high: str
    step: int
    _: KW_ONLY
    least: float | None = None
    strict: bool = False

    @property
    def bound(self) -> float:
        """A row's confidence is greater than this."""
        if self.least is None:
            return 0.0
        return max(0.0, self.least + (TOLERANCE if self.strict else -TOLERANCE))

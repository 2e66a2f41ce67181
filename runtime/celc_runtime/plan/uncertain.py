"""Uncertain time as a generated module writes it."""

from dataclasses import KW_ONLY

from celc_runtime.plan.frozen import frozen

CONFIDENCE = "confidence"  # the column with the probability of a match

TOLERANCE = 1e-9  # how far a confidence may be from its bound, and from its exact value


@frozen
class Uncertain:
    """The time of an event is one of low, low + step, … up to high."""

    low: str  # a column, as `high`
    high: str
    step: int  # in the units of their type: whole numbers, microseconds or days
    _: KW_ONLY
    weights: str | None = None  # a column with a weight for each; None: they are equally likely
    least: float | None = None  # the least confidence of a row; None: all possible matches
    strict: bool = False  # whether a confidence must be greater than `least`

    @property
    def bound(self) -> float:
        """The confidence of a row is greater than this."""
        if self.least is None:
            return 0.0
        return max(0.0, self.least + (TOLERANCE if self.strict else -TOLERANCE))

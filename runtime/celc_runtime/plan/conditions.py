"""Conditions on texts, evaluated once for each distinct text instead of once for each event.

Data only: `arrow.text_conditions` evaluates them.
"""

from celc_runtime.plan.frozen import frozen


@frozen
class TextCondition:
    """A condition on one column."""

    operator: str
    """`=`, `!=`, `<`, `<=`, `>`, `>=`, in, rlike, is_null, not_in, not_rlike or is_not_null; the
    compiler turns LIKE into rlike."""
    attribute: str
    operands: tuple[str, ...] = ()  # a text, the values of a list, or a regular expression of RE2

    @property
    def of_null(self) -> bool:
        """Whether the condition is TRUE of NULL."""
        return self.operator == "is_null"

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)


@frozen
class TextComparison:
    """A comparison of two text columns of one event."""

    operator: str
    left: str
    right: str

    @property
    def attributes(self) -> tuple[str, str]:
        return (self.left, self.right)

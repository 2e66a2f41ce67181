"""How a broken representation is reported."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen


@frozen
class Violation:
    """One part of a representation that breaks an invariant; both in words."""

    invariant: str
    part: str


Violations: TypeAlias = Iterator[Violation]
"""They come in the order in which they are found. The check stops where no more are asked for."""


class VerificationError(Exception):
    """A pass has made a wrong representation. This is a mistake of celc, whatever the query is.

    `representation` names it in words.
    """

    def __init__(self, after: str, representation: str, violation: Violation) -> None:
        super().__init__(after, representation, violation)
        self.after = after
        self.representation = representation
        self.violation = violation

    def __str__(self) -> str:
        return (
            f"after the pass '{self.after}', {self.representation}: "
            f"{self.violation.invariant}, but {self.violation.part}"
        )


def verify(after: str, representation: str, violations: Iterable[Violation]) -> None:
    """Raises VerificationError for the first violation."""
    for violation in violations:
        raise VerificationError(after, representation, violation)

"""The events that can change an answer, as data: Spark filters by it before it moves any rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class AttributeTest:
    """A condition on one attribute that means the same in Spark as here, ANSI mode or not.

    `operator`: `=`, `!=`, `<`, `<=`, `>`, `>=`, in, not_in, like, not_like, is_null, is_not_null.
    `type`: the type in which it is compared. `operands`: constants of that type, TIMESTAMP as
    microseconds and DATE as days since 1970, INTERVAL as microseconds; a pattern without escapes
    for like.
    """

    operator: str
    attribute: str
    type: str
    operands: tuple[int | float | str | bool, ...] = ()


Clause: TypeAlias = tuple[AttributeTest, ...]
Way: TypeAlias = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Relevant:
    """The events of one type that can change an answer: those for which one of `ways` is true, or
    one of `idempotent`; without both, all events of the type.

    A way is an AND of ORs; one without conditions is true of all events of the type. Ways may be
    true of more events than matter, but never of fewer: a condition that Spark might decide
    otherwise is left out. Those of `idempotent` are exact. Events on them that are on none of
    `ways` are in no match. They do what one event on each of these ways does, in any order and
    number. So between two events on `ways`, of this type or another one, the first event on each
    way of `idempotent` stands for all.
    """

    stream: str
    type: str
    ways: tuple[Way, ...] = ()
    _: KW_ONLY
    idempotent: tuple[Way, ...] = ()

    @property
    def all_ways(self) -> tuple[Way, ...]:
        """The ways of all these events; none: all events of the type."""
        found = (*self.ways, *self.idempotent)
        return found if all(found) else ()

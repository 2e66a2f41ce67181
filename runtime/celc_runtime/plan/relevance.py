"""The events that can change an answer, as data: Spark filters by it before it moves any rows."""

from dataclasses import KW_ONLY
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen


@frozen
class AttributeTest:
    """A condition on one attribute that means the same in Spark as here, with or without ANSI
    mode."""

    operator: str
    """`=`, `!=`, `<`, `<=`, `>`, `>=`, in, not_in, like, not_like, is_null, is_not_null."""
    attribute: str
    type: str  # the type in which values are compared
    operands: tuple[int | float | str | bool, ...] = ()
    """Constants of that type: TIMESTAMP and INTERVAL in microseconds, DATE in days since 1970; for
    like a pattern without escapes."""


Clause: TypeAlias = tuple[AttributeTest, ...]
Way: TypeAlias = tuple[Clause, ...]


@frozen
class Relevant:
    """The events of one type that can change an answer; without ways, all events of the type.

    A way is an AND of ORs; an empty way is true of all events of the type.
    """

    stream: str
    type: str
    ways: tuple[Way, ...] = ()
    """The events for which one of these is true. A way may be true of more events than matter, but
    never of fewer: a condition that Spark might decide differently is left out."""
    _: KW_ONLY
    idempotent: tuple[Way, ...] = ()
    """Also the events for which one of these is true; these ways are exact. Events on them and on
    none of `ways` are in no match. Any number of them, in any order, do what one event on each way
    does. So between two events on `ways` of any type, the first event on each of these ways stands
    for all."""
    left_out: str = ""
    """Where the events that matter are fewer than the ways say: a digest of the exact conditions.
    Events that have been kept by them suffice to no other conditions (`stream/stored/needs`)."""

    @property
    def all_ways(self) -> tuple[Way, ...]:
        """The ways of all these events; empty: all events of the type."""
        found = (*self.ways, *self.idempotent)
        return found if all(found) else ()

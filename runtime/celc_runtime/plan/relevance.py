"""The events that can change an answer, as data: Spark filters by it before it moves any rows."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Relevant:
    """The events of one type that can change an answer: the events for which one of `ways` is true.

    Without `ways`: all events of the type. A way is an AND of ORs. It may be true of more events
    than matter, but never of fewer: a condition that Spark might decide otherwise is left out.
    """

    stream: str
    type: str
    ways: tuple[tuple[tuple[AttributeTest, ...], ...], ...] = ()

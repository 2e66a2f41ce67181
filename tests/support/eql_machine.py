"""EQL's sequences by the machine that Elasticsearch's documents describe ("How sequence queries
handle matches" in the EQL syntax reference), in plain Python and without anything of celc.

For each value of the keys there is at most one partial match in each state. An event of the kind of
step k moves the partial match of state k − 1 into state k, where it takes the place of another one.
An event of `until` ends what is pending, but not what it is part of: "between matching events".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """A step of a sequence."""

    takes: Callable[[Event], bool]  # whether an event is of its kind
    keys: tuple[str, ...] = ()  # fields whose values all steps share
    is_missing: bool = False  # whether no such event may come here: `![…]`

    def key(self, event: Event) -> tuple[Hashable, ...] | None:
        """The keys of an event; None if one is NULL."""
        values = tuple(event[name] for name in self.keys)
        return None if None in values else values


def sequences(
    events: Sequence[Event],
    steps: Sequence[Asked],
    *,
    until: Asked | None = None,
    maxspan: int | None = None,
) -> list[tuple[int, ...]]:
    """The positions of all matches; the events have a whole number `t` and stand in its order."""
    present = [one for one in steps if not one.is_missing]
    last = len(present) - 1
    states: dict[tuple[Hashable, ...], dict[int, tuple[int, ...]]] = {}
    complete: list[tuple[int, ...]] = []
    for position, event in enumerate(events):
        for number in range(last, -1, -1):
            step = present[number]
            key = step.key(event)
            if key is None or not step.takes(event):
                continue
            held = states.setdefault(key, {})
            before = () if number == 0 else held.pop(number - 1, None)
            if before is None:
                continue
            if before and maxspan is not None and event["t"] - events[before[0]]["t"] > maxspan:
                continue
            if number == last:
                complete.append((*before, position))
            else:
                held[number] = (*before, position)
        if until is not None and until.takes(event):
            held = states.get(until.key(event) or (), {})
            for number in [one for one in held if held[one][-1] < position]:
                del held[number]
    return [one for one in complete if _nothing_between(events, steps, one)]


def _nothing_between(
    events: Sequence[Event], steps: Sequence[Asked], found: tuple[int, ...]
) -> bool:
    place = 0
    key = next(one for one in steps if not one.is_missing).key(events[found[0]])
    for step in steps:
        if not step.is_missing:
            place += 1
            continue
        between = events[found[place - 1] + 1 : found[place]]
        if any(step.takes(event) and step.key(event) == key for event in between):
            return False
    return True

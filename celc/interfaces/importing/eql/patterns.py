"""A sequence of EQL → the formula of CEL that has the same matches.

Elasticsearch reads a sequence by a machine for each value of the keys ("How sequence queries handle
matches" in its EQL syntax reference). A state has at most one partial match. An event of the kind
of step k moves the partial match of state k − 1 into state k, where it takes the place of another
one. So e1 … en is a match if and only if

- each e(k+1) is the first event of its kind after e(k), and
- no newer chain of the first k kinds, which begins after e1, is complete before e(k+1).

Such a chain ends behind e(k), because an older one would have taken the place of e1 … ek before.
For k = 1 the second line is `!A` between the two events. For k > 1 it is UNLESS: the chain lies
strictly inside the match, so an event of the first kind stands before it, and one of the last kind
behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.names import unused_name

from celc.diagnostics.source import Span
from celc.interfaces.importing.words import (
    Level,
    Words,
    attribute,
    event,
    joined,
    of_label,
    spelled,
)


@frozen
class Key:
    """A field that the events of a match have in common."""

    field: str
    is_optional: bool


@frozen
class Step:
    """One event of a sequence, or one that must be missing."""

    event_type: str
    condition: Words | None
    keys: tuple[Key, ...]  # of this step alone
    is_missing: bool
    span: Span


def labels_of(steps: Sequence[Step], taken: Collection[str]) -> list[str]:
    """The labels of steps: the event type where it stands once, else with a number behind it. None
    is one of the event types `taken`.

    An event with keys of its own is numbered, too: it is named inside absences of its event type,
    and every event type is a label of CEL, which there means another event.
    """
    times = Counter(one.event_type for one in steps)
    seen: Counter[str] = Counter()
    labels = []
    for one in steps:
        seen[one.event_type] += 1
        if times[one.event_type] > 1 or one.keys:
            labels.append(unused_name(f"{one.event_type}{seen[one.event_type]}", taken))
        else:
            labels.append(one.event_type)
    return labels


@frozen
class EventSequence:
    """A sequence: its steps that are no missing ones, what must be missing behind each, and what
    ends it."""

    steps: tuple[Step, ...]
    missing: tuple[tuple[Step, ...], ...]  # [k]: behind step k
    until: Step | None
    needed: tuple[Words, ...] = ()  # what the first event must satisfy besides

    @property
    def _types(self) -> set[str]:
        every = [*self.steps, *(one for some in self.missing for one in some)]
        return {one.event_type for one in (*every, *([self.until] if self.until else []))}

    def formula(self) -> str:
        """The text of the formula. It has a parenthesis around each operand that needs one."""
        labels = labels_of(self.steps, self._types)
        text = self._event(0, labels[0])
        for number in range(1, len(self.steps)):
            absent = self._absent(number, labels)
            text += "".join(f" ; !{absent}" for absent in absent)
            text += f" ; FIRST {self._event(number, labels[number], labels[0])}"
            if number > 1:
                text = f"({text}) UNLESS ({self._newer(number, labels)})"
                if number + 1 < len(self.steps):
                    text = f"({text})"
        last = self.missing[-1]
        if last:
            text += f" ; !{_either([self._other(one, labels) for one in last])}"
        return text

    def _event(self, number: int, label: str, first: str | None = None) -> str:
        step = self.steps[number]
        asked = [] if step.condition is None else [step.condition]
        asked += self.needed if number == 0 else ()
        conditions = [of_label(label, joined(asked, Level.AND))] if asked else []
        if first is not None:
            conditions += _same_keys(label, step.keys, first, self.steps[0].keys)
        return event(step.event_type, label, conditions)

    def _other(self, step: Step, labels: Sequence[str], label: str = "") -> str:
        """An event of the kind of a step that is none of the match."""
        if not label:
            is_named = step.event_type in labels or step.keys
            label = unused_name("other", self._types) if is_named else step.event_type
        conditions = [of_label(label, step.condition)] if step.condition is not None else []
        conditions += _same_keys(label, step.keys, labels[0], self.steps[0].keys)
        return event(step.event_type, label, conditions)

    def _absent(self, number: int, labels: Sequence[str]) -> list[str]:
        """What is missing before a step, as one operand of `!`."""
        parts = [self._other(self.steps[0], labels)] if number == 1 else []
        parts += [self._other(one, labels) for one in self.missing[number - 1]]
        if self.until is not None:
            parts.append(self._other(self.until, labels))
        return [_either(parts)] if parts else []

    def _newer(self, number: int, labels: Sequence[str]) -> str:
        """A newer chain of the steps before one, strictly inside the match."""
        chain = [self.steps[0], *self.steps[:number], self.steps[number]]
        names = [unused_name(f"other{place}", self._types) for place in range(1, len(chain) + 1)]
        return " ; ".join(
            self._other(one, labels, name) for one, name in zip(chain, names, strict=True)
        )


def _either(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0] if parts[0].startswith("(") or " " not in parts[0] else f"({parts[0]})"
    return f"({' OR '.join(parts)})"


def _same_keys(label: str, keys: Sequence[Key], first: str, of_first: Sequence[Key]) -> list[str]:
    return [
        f"{spelled(label)}.{attribute(key.field)} "
        f"{'IS NOT DISTINCT FROM' if key.is_optional and other.is_optional else '='} "
        f"{spelled(first)}.{attribute(other.field)}"
        for key, other in zip(keys, of_first, strict=True)
    ]

"""Conditions on the events of a stream, given the positions of labels.

What single events decide is asked once for these events, in whichever stream they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from celc.core import formula as core
from celc.verify.prove.expressions import (
    NOTHING_BEFORE,
    OF_NUMBERS,
    Leaf,
    MalformedError,
    Meaning,
    aggregate,
    parts_of,
)
from celc.verify.prove.verdict import NotUnderstoodError

_Read: TypeAlias = tuple[str, str, int]
"""One event that a leaf reads: (how, the label, a distance). How: "at" the chosen position of the
label, "before" it by the distance, or the "FIRST" or "LAST" event of the label."""


class _OfEvents:
    """What is known of predicates that read single events: the values of these decide."""

    def __init__(self, predicates: tuple[core.Predicate, ...]) -> None:
        self.predicates = predicates  # which live as long as their number is a key
        self.reads: tuple[_Read, ...] | None = None
        """None: they read more."""
        self.truths: dict[tuple[int, ...], tuple[bool, list[Mapping[str, Any] | None]]] = {}
        """By the numbers of events; the events live as long."""
        reads: list[_Read] = []
        for one in parts_of(predicates):
            match one:
                case core.AttributeValue():
                    reads.append(("at", one.label, 0))
                case core.Previous():
                    reads.append(("before", one.label, one.distance))
                case core.Aggregate(function="FIRST" | "LAST", prior=False, more=()):
                    reads.append((one.function, one.label, 0))
                case core.Aggregate() | core.Quantified():
                    return
        self.reads = tuple(dict.fromkeys(reads))


def _before(positions: Sequence[int], place: int, distance: int) -> int | None:
    """The position that is `distance` places before `place`; None: there is none."""
    number = bisect_left(positions, place) - distance
    return positions[number] if number >= 0 else None


class OfStream:
    """Conditions on the events of a stream, given the positions of labels.

    `events[position]` are the values of an event by attribute; what it lacks is NULL.
    """

    def __init__(
        self, events: Sequence[Mapping[str, Any]], decimals: frozenset[str] = frozenset()
    ) -> None:
        self.events = events
        self._decimals = decimals
        self._known: dict[int, _OfEvents] = {}

    def clause_holds(self, clause: core.Clause, sets: Mapping[str, Sequence[int]]) -> bool:
        """Whether a clause holds: for every choice of a position for each of its labels one of its
        predicates is TRUE."""
        if len(clause.labels) == 1:
            (label,) = clause.labels
            for place in sets.get(label, ()):
                if not self.any_true(clause.predicates, {label: place}, sets):
                    return False
            return True
        ways = [sets.get(label, ()) for label in clause.labels]
        return all(
            self.any_true(clause.predicates, dict(zip(clause.labels, way, strict=True)), sets)
            for way in product(*ways)
        )

    def any_true(
        self,
        predicates: tuple[core.Predicate, ...],
        chosen: Mapping[str, int],
        sets: Mapping[str, Sequence[int]],
    ) -> bool:
        """Whether some predicate is TRUE of the chosen positions. Where single events decide, it is
        asked once for the same ones."""
        known = self._known.get(id(predicates))
        if known is None:
            known = self._known[id(predicates)] = _OfEvents(predicates)
        events = None if known.reads is None else self._read(known.reads, chosen, sets)
        if events is None:
            meaning = self._meaning(chosen, sets)
            return any(meaning.truth(one) for one in predicates)
        key = tuple(map(id, events))
        found = known.truths.get(key)
        if found is None:
            meaning = self._meaning(chosen, sets)
            found = any(meaning.truth(one) for one in predicates), events
            known.truths[key] = found
        return found[0]

    def _read(
        self, reads: Iterable[_Read], chosen: Mapping[str, int], sets: Mapping[str, Sequence[int]]
    ) -> list[Mapping[str, Any] | None] | None:
        """The events that are read, None where nothing is there; None: a label is not chosen."""
        found: list[Mapping[str, Any] | None] = []
        for kind, label, distance in reads:
            place: int | None
            if kind in ("at", "before"):
                if label not in chosen:
                    return None
                place = chosen[label]
                if kind == "before":
                    place = _before(sets.get(label, ()), place, distance)
            else:
                positions = sets.get(label)
                place = positions[0 if kind == "FIRST" else -1] if positions else None
            found.append(None if place is None else self.events[place])
        return found

    def _meaning(self, chosen: Mapping[str, int], sets: Mapping[str, Sequence[int]]) -> Meaning:
        def read(leaf: Leaf) -> Any:
            single = isinstance(leaf, core.AttributeValue | core.Previous) or leaf.prior
            if single and leaf.label not in chosen:
                raise MalformedError(f"a condition reads {leaf.label!r}, and does not name it")
            if isinstance(leaf, core.AttributeValue):
                return self.events[chosen[leaf.label]].get(leaf.attribute)
            positions = sets.get(leaf.label, ())
            if isinstance(leaf, core.Previous):
                before = _before(positions, chosen[leaf.label], leaf.distance)
                if before is None:
                    return NOTHING_BEFORE
                return self.events[before].get(leaf.attribute)
            if leaf.prior:
                positions = [one for one in positions if one < chosen[leaf.label]]
                if not positions:
                    return NOTHING_BEFORE
            if leaf.attribute is None:
                return len(positions)
            if leaf.attribute in self._decimals and leaf.function in OF_NUMBERS:
                raise NotUnderstoodError(f"{leaf.function} of DECIMALs")
            if leaf.more:
                raise NotUnderstoodError("a function of several attributes")
            return aggregate(leaf, [self.events[one].get(leaf.attribute) for one in positions])

        def quantified(asked: core.Quantified) -> bool:
            ways = product(*[sets.get(label, ()) for label in asked.labels])
            found = (
                bool(
                    self._meaning(
                        {**chosen, **dict(zip(asked.labels, way, strict=True))}, sets
                    ).truth(asked.condition, vacuous=asked.every)
                )
                for way in ways
            )
            return (all(found) if asked.every else any(found)) != asked.negated

        return Meaning(read, quantified)

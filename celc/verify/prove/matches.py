"""Matches on a stream by their definitions, one end after another: what both evaluators share.

A match is a start, an end and the labels of its events. Matches do not depend on later events, so a
stream that grows by an event gets only the matches that end there, and one that shrinks forgets
them. That makes all streams up to a length cheap. Where something does ask for later events (an
absence at the end, an instant that is not over), `whole` is set, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from celc.core.formula import Clause, DataType, DecimalType, Query, Window, WindowUnit
from celc.verify.prove.expressions import OfStream, labels_named
from celc.verify.prove.labellings import NOWHERE, Labelling, Labels, Positions, last_of
from celc.verify.prove.verdict import NotUnderstoodError

Match: TypeAlias = tuple[int, Labelling]
"""The start of a match and the labels of its events; its end is known from outside."""

Seen: TypeAlias = Mapping[str, "Positions | None"]
"""The positions of labels in the scopes around; None: not known yet, and no condition is asked."""

ALONE: Seen = {}
Ends: TypeAlias = Callable[[int], "frozenset[Match]"]


class OutOfStepsError(Exception):
    """The steps of a bounded comparison are used up."""


class Steps:
    """The steps that are left, so that a comparison takes the same time in each run."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self, steps: int = 1) -> None:
        """Count some steps. Raises OutOfStepsError."""
        self.left -= steps
        if self.left < 0:
            raise OutOfStepsError


class Stream:
    """A stream that grows and shrinks at its end."""

    def __init__(self, query: Query | None = None) -> None:
        """A stream of a query; None: of symbols, without times."""
        self.events: list[dict[str, Any]] = []
        self._order = () if query is None else tuple(one.name for one in query.order_by)
        self._instants = query is not None and query.simultaneous
        types = {
            one.name: one.type
            for stream in ([] if query is None else query.streams)
            for event_type in stream.event_types
            for one in event_type.attributes
        }
        self._dates = {name for name, type_ in types.items() if type_ is DataType.DATE}
        decimals = (name for name, type_ in types.items() if isinstance(type_, DecimalType))
        self.labels = Labels()
        self.conditions = OfStream(self.events, frozenset(decimals))

    def instant_of(self, position: int) -> tuple[int, int]:
        """The first and the last position of the instant of an event."""
        if not self._instants:
            return position, position
        time = self._time(position)
        first = last = position
        while first and self._time(first - 1) == time:
            first -= 1
        while last + 1 < len(self.events) and self._time(last + 1) == time:
            last += 1
        return first, last

    def _time(self, position: int) -> list[Any]:
        return [self.events[position][name] for name in self._order]

    def fits(self, window: Window, begin: int, end: int) -> bool:
        """Whether two positions are no further apart than a window."""
        if window.begin is not None or window.to_start:
            raise NotUnderstoodError("windows of events that last")
        if window.unit is WindowUnit.EVENTS:
            return end - begin <= window.size
        name = self._order[0] if window.attribute is None else window.attribute.name
        one, other = self.events[begin][name], self.events[end][name]
        size = window.size
        if window.unit is WindowUnit.MICROSECONDS and name in self._dates:
            size = int(window.size) // 86_400_000_000
        return bool(other - one <= size)


class Evaluator:
    """What evaluators of formulas and of forms have in common."""

    def __init__(self, stream: Stream, steps: Steps, *, whole: bool) -> None:
        self.stream = stream
        self.labels = stream.labels
        self.steps = steps
        self._whole = whole
        self._known: list[dict[Any, frozenset[Match]]] = []
        self._truths: list[dict[Any, bool]] = []
        self._names: dict[int, tuple[str, ...]] = {}

    def forget(self, length: int) -> None:
        """The stream has now this length: what depended on events behind it is forgotten."""
        del self._known[0 if self._whole else length :]
        del self._truths[length:]

    def kept(
        self, key: Any, seen: Seen, names: Iterable[str], end: int, make: Ends
    ) -> frozenset[Match]:
        """What `make` gives for an end, computed once."""
        there = tuple([seen.get(name, NOWHERE) for name in names]) if names else ()
        if not there and not self._whole:
            level = end
        elif self._whole:
            level = len(self.stream.events) - 1
        else:
            level = max([end, *[last_of(one) for one in there if one is not None]])
        while len(self._known) <= level:
            self._known.append({})
        full = (key, there, end)
        found = self._known[level].get(full)
        if found is None:
            self.steps.spend()
            found = self._known[level][full] = make(end)
        return found

    # --- conditions -------------------------------------------------------------------------------

    def names(self, clause: Clause) -> tuple[str, ...]:
        """The labels that a clause names, in order."""
        if id(clause) not in self._names:
            self._names[id(clause)] = tuple(sorted(labels_named(clause)))
        return self._names[id(clause)]

    def decided(
        self,
        key: int,
        there: Mapping[str, Positions],
        make: Callable[[Mapping[str, tuple[int, ...]]], bool],
    ) -> bool:
        """What `make` says of a condition and the positions of the labels that it reads, asked once
        for the same ones."""
        every = 0
        for one in there.values():
            every |= one
        last = max(0, last_of(every))
        while len(self._truths) <= last:
            self._truths.append({})
        full = (key, *there.values())
        found = self._truths[last].get(full)
        if found is None:
            found = make({name: self.labels.places(one) for name, one in there.items()})
            self._truths[last][full] = found
        return found

    def satisfying(
        self, matches: Iterable[Match], clauses: Iterable[Clause], own: frozenset[str], seen: Seen
    ) -> Iterator[Match]:
        """The matches of which clauses hold, given the labels that are their own. A clause that
        names a label that is not known yet is not asked."""
        asked = [(clause, self.names(clause)) for clause in clauses]
        for match in matches:
            for clause, names in asked:
                there = self.sets_of(match[1], own, seen, names)
                if there is not None and not self._holds(clause, there):
                    break
            else:
                yield match

    def sets_of(
        self, mu: Labelling, own: frozenset[str], seen: Seen, names: Iterable[str]
    ) -> dict[str, Positions] | None:
        """The positions of the labels that a clause names: own ones of the match, others of the
        scopes around. None where one is not known yet."""
        found = {}
        for name in names:
            here = self.labels.positions(mu, name) if name in own else seen.get(name, NOWHERE)
            if here is None:
                return None
            found[name] = here
        return found

    def _holds(self, clause: Clause, there: Mapping[str, Positions]) -> bool:
        ask = self.stream.conditions.clause_holds
        return self.decided(id(clause), there, lambda sets: ask(clause, sets))

    # --- operators --------------------------------------------------------------------------------

    def then(self, left: Ends, right: Ends, end: int, *, contiguous: bool) -> frozenset[Match]:
        """A match of the left side, and one of the right side behind it."""
        rights: dict[int, list[Labelling]] = {}
        for start, other in right(end):
            rights.setdefault(start, []).append(other)
        return frozenset(
            [
                (i, one | other)
                for start, others in rights.items()
                for k in self._before(start, contiguous)
                for i, one in left(k)
                for other in others
            ]
        )

    @staticmethod
    def _before(start: int, contiguous: bool) -> range:
        return range(max(0, start - 1), start) if contiguous else range(start)

    def together(self, left: Ends, right: Ends, end: int) -> frozenset[Match]:
        """ALL: the union of a match of each, placed anyhow."""
        found = set()
        for k in range(end + 1):
            for one, other in ((left, right), (right, left)):
                late, early = one(end), other(k)
                self.steps.spend(len(late) * len(early) // 8)
                found |= {(min(i, o), a | b) for i, a in late for o, b in early}
        return frozenset(found)

    @staticmethod
    def lies_inside(absent: Ends, first: int, last: int) -> bool:
        """Whether a match of what must be absent lies from one position to another."""
        return any(start >= first for end in range(first, last + 1) for start, _ in absent(end))


def chosen(
    strategy: str, matches: Iterable[Match], support: Callable[[Labelling], Positions]
) -> frozenset[Match]:
    """The matches of one end that a selector keeps."""
    found = [(support(mu), (start, mu)) for start, mu in matches]
    supports = {one for one, _ in found}
    kept = {one for one in supports if _is_chosen(strategy, one, supports)}
    return frozenset(match for one, match in found if one in kept)


def _is_chosen(strategy: str, mine: Positions, others: set[Positions]) -> bool:
    match strategy:
        case "STRICT":
            in_row = mine // (mine & -mine) if mine else 0
            return not in_row & in_row + 1
        case "MAX":
            return not any(mine != other and mine & other == mine for other in others)
        case "NXT":
            return all(mine == one or mine & _first(mine ^ one) for one in others)
        case "LAST":
            return all(mine == one or mine >> last_of(mine ^ one) & 1 for one in others)
    raise NotUnderstoodError(f"the selector {strategy}")


def _first(positions: Positions) -> Positions:
    return positions & -positions


def guessed(
    superset: frozenset[Match],
    labels: Labels,
    looked_at: Sequence[str],
    seen: Seen,
    evaluate: Callable[[Seen], frozenset[Match]],
) -> frozenset[Match]:
    """⟦φ⟧*ν of a scope whose conditions look at its own labels: each value that these have in a
    superset is tried as what they see, and the matches that agree with it stay."""
    guesses: dict[tuple[Positions, ...], set[Match]] = {}
    for match in superset:
        guess = tuple(labels.positions(match[1], label) for label in looked_at)
        guesses.setdefault(guess, set()).add(match)
    found: set[Match] = set()
    for guess, candidates in guesses.items():
        there = {**seen, **dict(zip(looked_at, guess, strict=True))}
        found |= candidates & evaluate(there)
    return frozenset(found)


def matches_text(found: frozenset[Match], labels: Labels) -> str:
    """Matches of one end, for people."""
    shown = [
        f"from {start} with " + (", ".join(f"{one}@{place}" for one, place in pairs) or "-")
        for start, pairs in sorted((start, sorted(labels.pairs(mu))) for start, mu in found)
    ]
    return "{" + "; ".join(shown) + "}"

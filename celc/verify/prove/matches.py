"""Matches on a stream by their definitions, one end after another: what both evaluators share.

A match is a start, an end and the labels of its events. Matches do not depend on later events, so a
stream that grows by an event gets only the matches that end there, and one that shrinks forgets
them. That makes all streams up to a length cheap. Some parts do ask for later events (an absence at
the end, an instant that is not over): `whole` says that there are such parts. What is known of them
is forgotten with each change of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from celc.core import formula as core
from celc.core.formula import Clause, DataType, DecimalType, Query, Window, WindowUnit
from celc.normal import normal_form as lp
from celc.verify.prove.expressions import labels_named, parts_of
from celc.verify.prove.labellings import NOWHERE, Labelling, Labels, Positions, last_of
from celc.verify.prove.stream_conditions import OfStream
from celc.verify.prove.verdict import NotUnderstoodError

Match: TypeAlias = tuple[int, Labelling]
"""The start of a match and the labels of its events; its end is known from outside."""

Seen: TypeAlias = Mapping[str, "Positions | None"]
"""The positions of labels in the scopes around; None: not known yet, and no condition is asked."""

AFTER = core.AbsenceAfter | lp.AbsenceAfter
"""The parts that ask for events behind their ends."""

ALONE: Seen = {}
NOTHING_AROUND: Mapping[str, Positions] = {}
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

    def __init__(self, query: Query | None = None, labels: Labels | None = None) -> None:
        """A stream of a query; None: of symbols, without times. `labels`: those of matches that are
        kept beyond this stream."""
        self.events: list[dict[str, Any]] = []
        self._order = () if query is None else tuple(one.name for one in query.order_by)
        self.has_instants = query is not None and query.simultaneous
        types = {
            one.name: one.type
            for stream in ([] if query is None else query.streams)
            for event_type in stream.event_types
            for one in event_type.attributes
        }
        self._dates = {name for name, type_ in types.items() if type_ is DataType.DATE}
        decimals = (name for name, type_ in types.items() if isinstance(type_, DecimalType))
        self.labels = Labels() if labels is None else labels
        self.conditions = OfStream(self.events, frozenset(decimals))

    def instant_of(self, position: int) -> tuple[int, int]:
        """The first and the last position of the instant of an event."""
        if not self.has_instants:
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
        self._ended: dict[Any, list[tuple[Match, ...]]] = {}
        self._of_whole: dict[Any, frozenset[Match]] = {}
        self._later: dict[int, bool] = {}
        self._truths: dict[Any, dict[Labelling, bool]] = {}
        self._told: list[list[tuple[dict[Labelling, bool], Labelling]]] = []
        self._names: dict[int, tuple[str, ...]] = {}

    def forget(self, length: int) -> None:
        """The stream has now this length: what depended on events behind it is forgotten."""
        del self._known[length:]
        self._of_whole.clear()
        for asked in self._told[length:]:
            for truths, there in asked:
                del truths[there]
        del self._told[length:]
        for ended in self._ended.values():
            del ended[length + 1 :]

    def looks_later(self, part: Any) -> bool:
        """Whether matches of a part depend on events behind their ends."""
        found = self._later.get(id(part))
        if found is None:
            after = any(isinstance(one, AFTER) for one in parts_of(part))
            found = self._later[id(part)] = self._whole and (after or self.stream.has_instants)
        return found

    def recalled(self, key: Any, end: int) -> frozenset[Match] | None:
        """What is known of an end and a part that depends on nothing around it and behind it."""
        return self._known[end].get(key) if end < len(self._known) else None

    def kept(
        self, part: Any, key: Any, seen: Seen, names: Iterable[str], end: int, make: Ends
    ) -> frozenset[Match]:
        """What `make` gives for a part and an end, computed once."""
        level = end
        if names:
            there = tuple([seen.get(name, NOWHERE) for name in names])
            key = (key, there, end)
            level = max([end, *[last_of(one) for one in there if one is not None]])
        if self._whole and self.looks_later(part):
            known, key = self._of_whole, (key, end, len(self.stream.events))
        else:
            while len(self._known) <= level:
                self._known.append({})
            known = self._known[level]
        found = known.get(key)
        if found is None:
            self.steps.left -= 1
            if self.steps.left < 0:
                raise OutOfStepsError
            found = known[key] = make(end)
        return found

    # --- conditions -------------------------------------------------------------------------------

    def names(self, clause: Clause) -> tuple[str, ...]:
        """The labels that a clause names, in order."""
        if id(clause) not in self._names:
            self._names[id(clause)] = tuple(sorted(labels_named(clause)))
        return self._names[id(clause)]

    def satisfying(
        self, matches: Collection[Match], clauses: Iterable[Clause], own: frozenset[str], seen: Seen
    ) -> Collection[Match]:
        """The matches of which clauses hold, given the labels that are their own. A clause that
        names a label that is not known yet is not asked."""
        for clause in clauses:
            if not matches:
                break
            matches = self._of_clause(matches, clause, own, seen)
        return matches

    def _of_clause(
        self, matches: Collection[Match], clause: Clause, own: frozenset[str], seen: Seen
    ) -> Collection[Match]:
        names = self.names(clause)
        around: dict[str, Positions] = {}
        for name in names:
            if name not in own:
                there = seen.get(name, NOWHERE)
                if there is None:
                    return matches
                around[name] = there
        ask = partial(self.stream.conditions.clause_holds, clause)
        return self.holding(matches, id(clause), own.intersection(names), ask, around)

    def holding(
        self,
        matches: Iterable[Match],
        key: int,
        names: Collection[str],
        ask: Callable[[Mapping[str, tuple[int, ...]]], bool],
        around: Mapping[str, Positions] = NOTHING_AROUND,
    ) -> list[Match]:
        """The matches for which a condition holds. It depends on the positions of some of their
        labels and of labels around them, and is asked once for the same ones."""
        labels = self.labels
        bands = labels.bands(names)
        known = self._truths.setdefault((key, bands, *around.values()), {})
        found = []
        for match in matches:
            mu = match[1] & bands
            holds = known.get(mu)
            if holds is None:
                there = {**around, **{name: labels.positions(mu, name) for name in names}}
                holds = known[mu] = ask({name: labels.places(one) for name, one in there.items()})
                last = max([0, *map(last_of, there.values())])
                while len(self._told) <= last:
                    self._told.append([])
                self._told[last].append((known, mu))
            if holds:
                found.append(match)
        return found

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

    # --- operators --------------------------------------------------------------------------------

    def then(
        self, left: Ends, right: Ends, end: int, *, contiguous: bool, key: Any = None
    ) -> frozenset[Match]:
        """A match of the left side, and one of the right side behind it; `key`: of the left side,
        as for `before`."""
        rights: dict[int, list[Labelling]] = {}
        for start, other in right(end):
            rights.setdefault(start, []).append(other)
        found: list[Match] = []
        for start, others in rights.items():
            if contiguous:
                before: Iterable[Match] = left(start - 1) if start else ()
            else:
                before = self.before(left, start, key)
            found += [(i, one | other) for i, one in before for other in others]
        return frozenset(found)

    def before(self, ends: Ends, position: int, key: Any) -> tuple[Match, ...]:
        """The matches that end before a position. `key`: of these matches, if no label around them
        and no later event matters; they are then collected as the stream grows."""
        if key is None:
            return tuple([one for k in range(position) for one in ends(k)])
        ended = self._ended.setdefault(key, [()])
        while len(ended) <= position:
            ended.append((*ended[-1], *ends(len(ended) - 1)))
        return ended[position]

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

"""Spots, by which the events of a match go: states with the kinds of the events that lead there.

A spot knows which of the roles in FIRST(…) have come before, and, by a guess that the end of a
match confirms, which of those in LAST(…) still come. So it says of its event whether it is the
first or the last one of a role. Spots from which the same steps lead on become one, so a guess that
changes nothing costs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.automata.determinize import START, DetState
from celc.core import formula as core
from celc.core.formula import ROLE
from celc.normal.flat_form import RoleClause
from celc.plan.tables import Tables

BEFORE, HERE = f"{ROLE}before", f"{ROLE}here"
"""The labels in the conditions of a step: the event before it, and the one that it leads to."""

MOST_STEPS = 62
"""A number of 64 bits holds the steps that two neighbours allow."""

UNMARKED = -1
"""The kind of an event of a match without a mark."""

_MOST_SPOTS = 500  # before equal ones become one


@frozen
class Step:
    """A step from one spot to another; `source` None: a match begins.

    `symbols` are those of the events that can take it, and `conditions` the numbers of those that
    must hold between the event and the one before it.
    """

    source: int | None
    target: int
    symbols: frozenset[int]
    conditions: frozenset[int]


@frozen
class LocalCondition:
    """A condition between two neighbours, whose labels are BEFORE and HERE; `written` is the one of
    the query that it is a part of."""

    clause: core.Clause
    written: RoleClause


@frozen
class AdjoiningRuns:
    """The spots and steps of all matches, those with which a match begins first.

    `kinds` are those of the spots, `ends` the spots in which a match is complete.
    """

    kinds: tuple[int, ...]
    ends: frozenset[int]
    steps: tuple[Step, ...]
    conditions: tuple[LocalCondition, ...]

    @property
    def clauses(self) -> tuple[RoleClause, ...]:
        """The conditions of the query, each once."""
        return tuple(dict.fromkeys(one.written for one in self.conditions))


Which: TypeAlias = Literal["each", "FIRST", "LAST", "PREV"]


@frozen
class Term:
    """What a condition reads: an event of a role. `each`: a condition is asked for every one."""

    role: str
    which: Which


@frozen
class _Spot:
    """How an event takes part in a match: its kind, and the state after it (None: the match ends).

    `seen` are the roles in FIRST(…) that have come before, `later` those in LAST(…) that come.
    """

    kind: int
    state: DetState | None
    seen: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()


_Edge: TypeAlias = tuple[int | None, int]


@frozen
class Spots:
    """All spots that lie on some way from a start to an end, and the edges between them."""

    spots: tuple[_Spot, ...]
    marks: tuple[frozenset[str], ...]  # for each spot, those of its events
    edges: Mapping[_Edge, frozenset[int]]  # with the symbols of the events that take them
    after: tuple[frozenset[int], ...]  # for each spot, the next ones

    @classmethod
    def of(cls, tables: Tables, terms: Iterable[Term]) -> Spots | None:
        """None: there are too many, or no match."""
        terms = tuple(terms)
        of_first = frozenset(one.role for one in terms if one.which == "FIRST")
        of_last = frozenset(one.role for one in terms if one.which == "LAST")
        ahead = _forward(tables, of_first)
        if ahead is None:
            return None
        moves = _backward(tables, ahead, of_last)
        if not moves:
            return None
        spots = tuple(dict.fromkeys(target for _, target in moves))
        number = {spot: place for place, spot in enumerate(spots)}
        edges = {
            (None if source is None else number[source], number[target]): symbols
            for (source, target), symbols in moves.items()
        }
        after = tuple(
            frozenset(target for source, target in edges if source == place)
            for place in range(len(spots))
        )
        marks = tuple(frozenset(_marks(tables, spot.kind)) for spot in spots)
        found = cls(spots, marks, edges, after)
        ends_have = {role for role in of_first | of_last if not found._can_lack(role)}
        # Without an event, FIRST and LAST are NULL.
        return found if ends_have == of_first | of_last else None

    def _can_lack(self, role: str) -> bool:
        """Whether some match has no event of a role."""
        waiting = [target for source, target in self.edges if source is None]
        reached: set[int] = set()
        while waiting:
            spot = waiting.pop()
            if spot in reached or role in self.marks[spot]:
                continue
            if self.spots[spot].state is None:
                return True
            reached.add(spot)
            waiting += self.after[spot]
        return False

    def starts_carry(self, roles: Sequence[str]) -> bool:
        """Whether some roles are those of first events alone, and all of these are of one kind."""
        if not roles:
            return True
        starts = {target for source, target in self.edges if source is None}
        others = {target for source, target in self.edges if source is not None}
        return len({self.spots[spot].kind for spot in starts}) == 1 and not any(
            role in self.marks[spot] for spot in others for role in roles
        )

    def _is(self, term: Term, spot: int) -> bool:
        """Whether an event in a spot is one of those that a term stands for."""
        if term.role not in self.marks[spot]:
            return False
        match term.which:
            case "FIRST":
                return term.role not in self.spots[spot].seen
            case "LAST":
                return term.role not in self.spots[spot].later
            case _:
                return True

    def are_near(self, terms: Sequence[Term]) -> bool:
        """Whether the events for each two terms of a condition are the same or neighbours."""
        if any(term.which == "PREV" for term in terms):
            (role,) = {term.role for term in terms}
            return not self._is_far(Term(role, "each"), Term(role, "each"), over=role)
        pairs = itertools.permutations(terms, 2)
        return not any(self._is_far(one, other) for one, other in pairs)

    def _is_far(self, one: Term, other: Term, *, over: str | None = None) -> bool:
        """Whether a way of two steps or more leads from an event for `one` to an event for `other`.
        `over`: a role that no event in between has."""
        for spot in range(len(self.spots)):
            if not self._is(one, spot):
                continue
            waiting, reached = [*self.after[spot]], set[int]()
            while waiting:
                between = waiting.pop()
                if between in reached or (over is not None and over in self.marks[between]):
                    continue
                reached.add(between)
                if any(self._is(other, spot) for spot in self.after[between]):
                    return True
                waiting += self.after[between]
        return False

    def places(self, terms: Sequence[Term], edge: _Edge) -> Iterator[dict[Term, str]]:
        """The ways in which the events that a condition compares are the two of an edge, and its
        later one is among them."""
        source, target = edge
        choices = []
        for term in terms:
            here = self._is(term, target) and term.which != "PREV"
            before = source is not None and self._is(term, source)
            if term.which == "each" and any(one.which == "PREV" for one in terms):
                before = False  # PREV stands for the event before it
            choices.append([BEFORE] * before + [HERE] * here)
        for places in itertools.product(*choices):
            if HERE in places:
                yield dict(zip(terms, places, strict=True))

    def merged(self, conditions: Mapping[_Edge, frozenset[int]]) -> AdjoiningRuns:
        """The steps between as few spots as tell the matches apart; `conditions` are those of
        edges, by number."""
        nothing = frozenset[int]()
        steps = {
            (source, target, conditions.get((source, target), nothing)): symbols
            for (source, target), symbols in self.edges.items()
        }
        kinds = [spot.kind for spot in self.spots]
        ends = {number for number, spot in enumerate(self.spots) if spot.state is None}
        kinds, ends, steps = _merged(kinds, ends, steps, forward=True)
        kinds, ends, steps = _merged(kinds, ends, steps, forward=False)
        found = [Step(*edge[:2], symbols, edge[2]) for edge, symbols in steps.items()]
        found.sort(key=lambda step: step.source is not None)
        return AdjoiningRuns(tuple(kinds), frozenset(ends), tuple(found), ())


_Steps: TypeAlias = dict[tuple[int | None, int, frozenset[int]], frozenset[int]]
"""(source, target, conditions) → the symbols."""


def _merged(
    kinds: list[int], ends: set[int], steps: _Steps, *, forward: bool
) -> tuple[list[int], set[int], _Steps]:
    """The spots and steps, where spots are one if the same steps lead on from them (`forward`), or
    lead to them.

    Either way no match is lost or found twice: two ways through the same spots, but for those that
    become one, would be two ways of one match before.
    """
    looks: list[object] = [(kind, number in ends and forward) for number, kind in enumerate(kinds)]
    count = 0
    while len({*looks}) > count:
        numbers = {look: number for number, look in enumerate(dict.fromkeys(looks))}
        of_spot = [numbers[look] for look in looks]
        count = len(numbers)
        around: list[dict[object, frozenset[int]]] = [{} for _ in kinds]
        for (source, target, asked), symbols in steps.items():
            if source is None and forward:
                continue
            other = target if forward else source
            own = source if forward and source is not None else target
            key = (None if other is None else of_spot[other], asked)
            around[own][key] = around[own].get(key, frozenset()) | symbols
        looks = [(of_spot[n], frozenset(steps.items())) for n, steps in enumerate(around)]
    found: _Steps = {}
    for (source, target, asked), symbols in steps.items():
        edge = (None if source is None else of_spot[source], of_spot[target], asked)
        found[edge] = found.get(edge, frozenset()) | symbols
    made = dict(zip(of_spot, kinds, strict=True))
    return [made[number] for number in range(count)], {of_spot[end] for end in ends}, found


_Moves: TypeAlias = dict[tuple[_Spot | None, _Spot], frozenset[int]]


def _marks(tables: Tables, kind: int) -> tuple[str, ...]:
    return () if kind == UNMARKED else tables.kinds[kind].marks


def _moves_of(tables: Tables) -> Iterator[tuple[DetState, int, int, DetState | None]]:
    """(state, symbol, kind, next state) of all moves of the tables."""
    for symbol, row in enumerate(tables.steps):
        for step in row:
            for source in step.sources:
                yield source, symbol, step.kind, step.target
    for state, targets in enumerate(tables.skip):
        for symbol, passed in enumerate(targets):
            if passed is not None:
                yield DetState(state), symbol, UNMARKED, passed


def _forward(tables: Tables, of_first: frozenset[str]) -> _Moves | None:
    """All moves between spots that a start leads to, which know what has been seen."""
    of_state: dict[DetState, list[tuple[int, int, DetState | None]]] = {}
    for state, symbol, kind, target in _moves_of(tables):
        of_state.setdefault(state, []).append((symbol, kind, target))
    found: dict[tuple[_Spot | None, _Spot], set[int]] = {}
    waiting: list[_Spot | None] = [None]
    reached: set[_Spot | None] = {None}
    while waiting:
        before = waiting.pop()
        from_state: DetState | None = START
        seen = frozenset[str]()
        if before is not None:
            from_state = before.state
            seen = before.seen | of_first.intersection(_marks(tables, before.kind))
        for symbol, kind, target in of_state.get(from_state, ()) if from_state is not None else ():
            following = _Spot(kind, target, seen)
            found.setdefault((before, following), set()).add(symbol)
            if following not in reached:
                if len(reached) > _MOST_SPOTS:
                    return None
                reached.add(following)
                waiting.append(following)
    return {edge: frozenset(symbols) for edge, symbols in found.items()}


def _backward(tables: Tables, moves: _Moves, of_last: frozenset[str]) -> _Moves | None:
    """The moves from which an end is reached, between spots that know what comes later."""
    into: dict[_Spot, list[tuple[_Spot | None, frozenset[int]]]] = {}
    for (source, target), symbols in moves.items():
        into.setdefault(target, []).append((source, symbols))
    waiting = [spot for spot in into if spot.state is None]
    reached = {*waiting}
    found: _Moves = {}
    while waiting:
        spot = waiting.pop()
        later = spot.later | of_last.intersection(_marks(tables, spot.kind))
        for source, symbols in into[replace(spot, later=frozenset())]:
            before = None if source is None else replace(source, later=later)
            found[before, spot] = symbols
            if before is not None and before not in reached:
                if len(reached) > _MOST_SPOTS:
                    return None
                reached.add(before)
                waiting.append(before)
    return found

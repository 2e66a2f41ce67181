"""Matches of uncertain time that only whole worlds decide.

Whether events are a match can depend on more than their order: on events that must be absent, on
events of one time (ALL), and on how long a part takes (`WITHIN[…]`). Then each set of events that
the relaxed formula admits, in any order, is judged by the definition in all worlds of its events,
and of those that can be between them where something must be absent. All other events change
nothing.

Worlds with one order of these events are alike unless a part has a window. An event that overlaps
no other one of them has one place in all orders. So only events that overlap are multiplied, and
their worlds are counted before they are gone through (`max_work`). Where each event that must be
absent rules a match out by itself (`A ; !C ; B`), only the events of the match are multiplied.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import TypeAlias

import numpy as np

from celc_runtime.arrow.matches.possible_rows import NO_ROWS, Rows
from celc_runtime.engine.definition.instants import ALONE, BETWEEN, FIRST, LAST
from celc_runtime.engine.definition.nodes import Node, NotBetween, OneEvent, Without
from celc_runtime.engine.definition.open_questions import Budget, Condition, Labels, Stretch
from celc_runtime.engine.worlds.possible_moves import START, PossibleMoves
from celc_runtime.engine.worlds.possible_orders import share_of
from celc_runtime.engine.worlds.possible_reach import PossibleEvents
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import ByDefinition
from celc_runtime.run.past.history import History
from celc_runtime.run.source.waiting_events import WaitingEvents

_Set: TypeAlias = frozenset[tuple[int, Labels]]
"""Events, by their numbers, with their labels."""
_Kinds: TypeAlias = tuple[tuple[int, Labels | None], ...]
"""Events by their symbols and their labels in a match; None: not in it."""
_Order: TypeAlias = tuple[int, ...]
_Known: TypeAlias = tuple[dict[_Order, bool], dict[tuple[_Order, int], tuple[bool, ...]]]
"""Whether events are a match in each order, and where another event may come then."""
_KNOWN = 1 << 12
"""For so many kinds of matches what is known is kept."""


class JudgedWorlds:
    """Judges sets of events; `history` holds what conditions read of them.

    window, step: as in `Question`. alone: whether each event that is not in a match rules it out by
    itself. Then these are independent in a world of the match's events. by_symbol: whether the
    symbols of the events tell all that conditions ask.
    """

    def __init__(
        self,
        definition: ByDefinition,
        plan: Plan,
        history: History,
        moves: PossibleMoves,
        window: int,
        step: int,
        *,
        alone: bool,
    ) -> None:
        self._definition = definition
        self._plan = plan
        self._history = history
        self._window, self._step = window, step
        self._alone = alone
        symbols, asks = _ruling_out(definition.formula)
        self._absent, self.by_symbol = _Symbols(symbols), not asks
        self._lengths = [int(one.size) for one in plan.matching.local_windows]
        self._known: dict[_Kinds, _Known] = {}
        names = plan.answer.label_names
        self._labels = [
            frozenset(names[column] for column in kind.columns) for kind in plan.matching.kinds
        ]
        self._kinds = {labels: kind for kind, labels in enumerate(self._labels)}
        self._ends, self._into = _by_state(moves)

    @property
    def measures(self) -> bool:
        """Whether times count beside the order of events."""
        return bool(self._lengths)

    def known_of(self, kinds: _Kinds) -> _Known:
        """What is known of matches of such events, to be added to."""
        if len(self._known) >= _KNOWN:
            self._known.clear()
        return self._known.setdefault(kinds, ({}, {}))

    def rows(
        self,
        events: PossibleEvents,
        waiting: WaitingEvents,
        first: int,
        stop: int,
        bound: float,
    ) -> Rows:
        """The matches with a confidence above `bound` whose greatest event is in a cluster, from
        `first` to before `stop`. Raises OutOfWorkError."""
        budget = Budget(self._plan.choice.max_work)
        ends, tags, confidences = [], [], []
        for one in self._admitted(events, first, stop, budget):
            budget.left = self._plan.choice.max_work
            share = self._confidence(one, events, waiting, budget)
            if share <= bound:
                continue
            bits = self._plan.matching.kind_bits
            tags += [event << bits | self._kinds[labels] for event, labels in one]
            ends.append(len(tags))
            confidences.append(share)
        if not ends:
            return NO_ROWS
        return Rows(np.array(ends, np.int64), np.array(tags, np.int64), np.array(confidences))

    def _admitted(
        self, events: PossibleEvents, first: int, stop: int, budget: Budget
    ) -> Iterator[_Set]:
        """The sets of events that the relaxed formula admits in some order, events of one time in
        any order; each once."""
        low, last, step = events.low, events.last, self._step
        longest = int((last - low).max(initial=0))
        found: set[_Set] = set()
        known: set[tuple[_Set, int, int]] = set()
        # A set, its first event, the state before it, and the latest time at which that can be.
        open_sets: list[tuple[_Set, int, int, int]] = []
        for event in range(first, stop):
            for source, kind in self._ends.get(int(events.symbols[event]), ()):
                one = frozenset({(event, self._labels[kind])})
                if source == START:
                    found.add(one)
                else:
                    open_sets.append((one, event, source, int(last[event])))
        while open_sets:
            chosen, event, state, time = open_sets.pop()
            taken = {one for one, _ in chosen}
            part, behind = int(events.part[event]), int(events.part_end[event])
            if self._window >= 0:
                floor = max(int(low[one]) for one in taken) - self._window
                part += int(np.searchsorted(low[part:behind], floor - longest))
            for other in range(part, part + int(np.searchsorted(low[part:behind], time, "right"))):
                budget.spend()
                if other in taken or (self._window >= 0 and last[other] < floor):
                    continue
                least = int(low[other])
                latest = min(int(last[other]), least + (time - least) // step * step)
                for source, kind in self._into.get((int(events.symbols[other]), state), ()):
                    one = chosen | {(other, self._labels[kind])}
                    if source == START:
                        found.add(one)
                    elif (one, other, source) not in known:
                        known.add((one, other, source))
                        open_sets.append((one, other, source, latest))
        # The others come with the cluster of their greatest event.
        return (one for one in found if first <= max(event for event, _ in one) < stop)

    def _confidence(
        self, wanted: _Set, events: PossibleEvents, waiting: WaitingEvents, budget: Budget
    ) -> float:
        """The probability of the worlds in which the events are a match."""
        low, last = events.low, events.last
        members = sorted(event for event, _ in wanted)
        begin, end = min(low[event] for event in members), max(last[event] for event in members)
        others: list[int] = []
        if self._absent:
            part, behind = int(events.part[members[0]]), int(events.part_end[members[0]])
            # Of one time with the first or the last event too: UNLESS sees such events.
            between = (low[part:behind] <= end) & (last[part:behind] >= begin)
            between &= self._absent.of(events.symbols[part:behind])
            others = [
                one for one in (np.flatnonzero(between) + part).tolist() if one not in members
            ]
        involved = [*members, *others]
        points = [self._points(one, involved, len(members), events) for one in involved]
        if self._alone:
            told, apart = points[: len(members)], [
                *zip(others, points[len(members) :], strict=True)
            ]
        else:
            members, told, apart = involved, points, []
        budget.spend(math.prod(map(len, told)) * (Budget.STEP + sum(len(one) for _, one in apart)))
        judge = _Judge(self, wanted, members, waiting)
        found = 0.0
        for world in itertools.product(*told):
            times = [time for time, _ in world]
            of_match = times[: len(wanted)]
            if self._window >= 0 and max(of_match) - min(of_match) > self._window:
                continue
            share = math.prod(one for _, one in world)
            order = judge.order(times)
            if share <= 0.0 or not judge.admits(order, times):
                continue
            instants = sorted({*times}) if apart else []
            for other, of_other in apart:
                allowed = judge.places(order, times, other)
                if not all(allowed):
                    share *= sum(one for time, one in of_other if allowed[_gap(instants, time)])
                if share <= 0.0:
                    break
            found += share
        return found

    def _points(
        self, event: int, involved: list[int], members: int, events: PossibleEvents
    ) -> list[tuple[int, float]]:
        """The times of an event with their probabilities; of one that overlaps no other of those
        involved, the first of which are the members of the match, one time stands for all unless
        its time counts."""
        is_member = event in involved[:members]
        counts = bool(self._lengths) or (is_member and self._window >= 0)
        # Each of the others is seen with the members alone.
        seen = involved if is_member or not self._alone else involved[:members]
        if not counts and not self._overlaps(event, seen, events):
            return [(int(events.low[event]), 1.0)]
        return [
            (int(events.low[event]) + point * self._step, float(share_of(events, event, point)))
            for point in range(int(events.points[event]))
        ]

    def _overlaps(self, event: int, others: list[int], events: PossibleEvents) -> bool:
        low, last = events.low, events.last
        return any(
            other != event and low[other] <= last[event] and last[other] >= low[event]
            for other in others
        )

    def holds(
        self,
        wanted: _Set,
        involved: list[int],
        times: Sequence[int],
        waiting: WaitingEvents,
        *,
        scale: int = 1,
    ) -> bool:
        """Whether the events are a match where all involved events come at these times, which are
        `scale` times too great. Raises OutOfWorkError."""
        budget = Budget(self._plan.choice.max_work)
        in_order = sorted(zip(times, involved, strict=True))
        world, order = [time for time, _ in in_order], [event for _, event in in_order]
        stretch = Stretch(
            waiting.entries[order].tolist(),
            waiting.symbols[order].tolist(),
            waiting.positions[order].tolist(),
            [_place(world, at) for at in range(len(world))],
            self._history.past,
            self._history.first,
            0,
            budget,
            world=world,
            lengths=[scale * one for one in self._lengths],
        )
        latest = max(time for time, event in in_order if any(event == one for one, _ in wanted))
        end = len(world) - 1 - world[::-1].index(latest)
        with np.errstate(all="ignore"):
            matches = self._definition.formula.ending(stretch, end)
        found = ({(order[at], labels) for at, labels in match.labels} for match in matches)
        return any(one == wanted for one in found)


class _Judge:
    """What the definition says of the worlds of the events of a match, each order asked once.

    Without conditions between events only their symbols count, and what is found goes for all
    matches of such events.
    """

    def __init__(
        self, worlds: JudgedWorlds, wanted: _Set, members: list[int], waiting: WaitingEvents
    ) -> None:
        self._worlds, self._wanted, self._members = worlds, wanted, members
        self._waiting = waiting
        self._known: dict[_Order, bool] = {}
        self._allowed: dict[tuple[_Order, int], tuple[bool, ...]] = {}
        if worlds.by_symbol:
            labels = dict(wanted)
            kinds = tuple((self._symbol(one), labels.get(one)) for one in members)
            self._known, self._allowed = worlds.known_of(kinds)

    def _symbol(self, event: int) -> int:
        return int(self._waiting.symbols[event])

    def order(self, times: list[int]) -> _Order:
        """The order in which these events come; where windows of parts count, how far apart."""
        if self._worlds.measures:
            least = min(times)
            return tuple(time - least for time in times)
        ranks = {time: rank for rank, time in enumerate(sorted({*times}))}
        return tuple(ranks[time] for time in times)

    def admits(self, order: _Order, times: list[int]) -> bool:
        """Whether the events are a match in this order."""
        known = self._known.get(order)
        if known is None:
            known = self._worlds.holds(self._wanted, self._members, times, self._waiting)
            self._known[order] = known
        return known

    def places(self, order: _Order, times: list[int], other: int) -> tuple[bool, ...]:
        """Where another event may come: before the first instant of these events, in it, between it
        and the next one, and so on."""
        key = order, self._symbol(other) if self._worlds.by_symbol else other
        allowed = self._allowed.get(key)
        if allowed is None:
            # Doubled times have room for an event between any two instants.
            twice = [2 * time for time in times]
            instants = sorted({*twice})
            tried = [instants[0] - 1, *(place for time in instants for place in (time, time + 1))]
            allowed = self._allowed[key] = tuple(
                self._worlds.holds(
                    self._wanted, [*self._members, other], [*twice, place], self._waiting, scale=2
                )
                for place in tried
            )
        return allowed


def _gap(instants: list[int], time: int) -> int:
    """The place of a time among instants, as `_Judge.places` counts them."""
    at = bisect_left(instants, time)
    return 2 * at + (at < len(instants) and instants[at] == time)


class _Symbols:
    """Some symbols."""

    def __init__(self, symbols: set[int]) -> None:
        self._has = np.zeros(max(symbols, default=-1) + 1, np.bool_)
        self._has[list(symbols)] = True

    def __bool__(self) -> bool:
        return len(self._has) > 0

    def of(self, symbols: np.ndarray) -> np.ndarray:
        """Which of these are among them."""
        inside = (symbols >= 0) & (symbols < len(self._has))
        return inside & self._has[np.where(inside, symbols, 0)]


def _ruling_out(formula: object) -> tuple[set[int], bool]:
    """The symbols of the events that must be absent somewhere in a formula, and whether it has
    conditions between events."""
    nodes = _below(formula)
    absent = [
        one.right if isinstance(one, Without) else one.middle
        for one in nodes
        if isinstance(one, Without | NotBetween)
    ]
    symbols = {
        symbol
        for part in absent
        for one in _below(part)
        if isinstance(one, OneEvent)
        for symbol in one.symbols
    }
    return symbols, any(isinstance(one, Condition) for one in nodes)


def _below(top: object) -> list[Node | Condition]:
    """A node and all nodes and conditions below it, each once: rounds follow themselves."""
    found: dict[int, Node | Condition] = {}
    waiting = [top]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple | list):
            waiting += one
        elif isinstance(one, Node | Condition) and id(one) not in found:
            found[id(one)] = one
            if is_dataclass(one):
                waiting += [getattr(one, part.name) for part in fields(one)]
    return [*found.values()]


def _place(world: list[int], at: int) -> int:
    """The place of an event in its instant."""
    begins = at == 0 or world[at - 1] < world[at]
    ends = at + 1 == len(world) or world[at + 1] > world[at]
    return (ALONE if ends else FIRST) if begins else (LAST if ends else BETWEEN)


_Moves: TypeAlias = list[tuple[int, int]]


def _by_state(moves: PossibleMoves) -> tuple[dict[int, _Moves], dict[tuple[int, int], _Moves]]:
    """The moves that end a match by symbol, and those into a state by symbol and state: the state
    before each, and the kind."""
    ends: dict[int, _Moves] = {}
    into: dict[tuple[int, int], _Moves] = {}
    for symbol in range(len(moves.node_first) - 1):
        for at in range(moves.ends_first[symbol], moves.ends_first[symbol + 1]):
            move = int(moves.ends_sources[at]), int(moves.ends_kinds[at])
            ends.setdefault(symbol, []).append(move)
        for node in range(moves.node_first[symbol], moves.node_first[symbol + 1]):
            state = int(moves.node_states[node])
            for at in range(moves.into_first[node], moves.into_first[node + 1]):
                move = int(moves.into_sources[at]), int(moves.into_kinds[at])
                into.setdefault((symbol, state), []).append(move)
    return ends, into

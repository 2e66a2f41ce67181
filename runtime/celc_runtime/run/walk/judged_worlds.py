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
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from celc_runtime.arrow.matches.possible_rows import NO_ROWS, Rows
from celc_runtime.engine.definition.instants import ALONE, BETWEEN, FIRST, LAST
from celc_runtime.engine.definition.open_questions import Budget, Labels, Stretch
from celc_runtime.engine.worlds.possible_moves import START, PossibleMoves
from celc_runtime.engine.worlds.possible_orders import share_of
from celc_runtime.engine.worlds.possible_reach import PossibleEvents
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import ByDefinition
from celc_runtime.run.past.history import History
from celc_runtime.run.source.waiting_events import WaitingEvents

_Set: TypeAlias = frozenset[tuple[int, Labels]]
"""Events, by their numbers, with their labels."""


class JudgedWorlds:
    """Judges sets of events; `history` holds what conditions read of them.

    window, step: as in `Question`. outside: whether events can rule out a match that are not in it.
    alone: whether each of these does so by itself. Then they are independent in a world of the
    match's events.
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
        outside: bool,
        alone: bool,
    ) -> None:
        self._definition = definition
        self._plan = plan
        self._history = history
        self._window, self._step = window, step
        self._outside, self._alone = outside, alone
        self._lengths = [int(one.size) for one in plan.matching.local_windows]
        names = plan.answer.label_names
        self._labels = [
            frozenset(names[column] for column in kind.columns) for kind in plan.matching.kinds
        ]
        self._kinds = {labels: kind for kind, labels in enumerate(self._labels)}
        self._ends, self._into = _by_state(moves)

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
        if self._outside:
            part, behind = int(events.part[members[0]]), int(events.part_end[members[0]])
            # Of one time with the first or the last event too: UNLESS sees such events.
            between = (low[part:behind] <= end) & (last[part:behind] >= begin)
            others = [
                one for one in (np.flatnonzero(between) + part).tolist() if one not in members
            ]
        involved = [*members, *others]
        points = [self._points(one, involved, len(members), events) for one in involved]
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}

        def holds(chosen: list[int], times: list[int]) -> bool:
            if not self._lengths:
                ranks = {time: rank for rank, time in enumerate(sorted({*times}))}
                times = [ranks[time] for time in times]
            key = tuple(chosen), tuple(times)
            if key not in known:
                known[key] = self._holds(wanted, chosen, key[1], waiting, budget)
            return known[key]

        told, apart = points, [*zip(others, points[len(members) :], strict=True)]
        if self._alone:
            told = points[: len(members)]
            at_once = sum((len(of_other) for _, of_other in apart), Budget.STEP)
        else:
            members, apart, at_once = involved, [], Budget.STEP
        budget.spend(math.prod(map(len, told)) * at_once)
        found = 0.0
        for world in itertools.product(*told):
            times = [time for time, _ in world]
            of_match = times[: len(wanted)]
            if self._window >= 0 and max(of_match) - min(of_match) > self._window:
                continue
            share = math.prod(one for _, one in world)
            if share <= 0.0 or not holds(members, times):
                continue
            for other, of_other in apart:
                share *= sum(
                    one
                    for time, one in of_other
                    if one > 0.0 and holds([*members, other], [*times, time])
                )
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

    def _holds(
        self,
        wanted: _Set,
        involved: list[int],
        times: tuple[int, ...],
        waiting: WaitingEvents,
        budget: Budget,
    ) -> bool:
        """Whether the events are a match where all involved events come at these times."""
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
            lengths=self._lengths,
        )
        latest = max(time for time, event in in_order if any(event == one for one, _ in wanted))
        end = len(world) - 1 - world[::-1].index(latest)
        with np.errstate(all="ignore"):
            matches = self._definition.formula.ending(stretch, end)
        found = ({(order[at], labels) for at, labels in match.labels} for match in matches)
        return any(one == wanted for one in found)


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

"""Matches of uncertain time that only whole worlds decide.

Whether events are a match can depend on more than their order: on events that must be absent, on
events of one time (ALL), and on how long a part takes (`WITHIN[…]`). Then each set of events that
the relaxed formula admits, in any order, is judged by the definition in all worlds of its events,
and of those that can be between them where something must be absent. All other events change
nothing.

Worlds with one order of these events are alike unless a part has a window. So the definition is
asked once for each order; `judged_sets` lists the sets, and `judged_shares` adds the worlds up. An
event that overlaps no other one of them has one place in all orders. So only events that overlap
are multiplied, and their worlds are counted before they are gone through (`max_work`). Where each
event that must be absent rules a match out by itself (`A ; !C ; B`), only the events of the match
are multiplied.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from typing import TypeAlias

import numpy as np

from celc_runtime.arrow.matches.possible_rows import Rows
from celc_runtime.engine.definition.instants import ALONE, BETWEEN, FIRST, LAST
from celc_runtime.engine.definition.nodes import Node, NotBetween, OneEvent, Without
from celc_runtime.engine.definition.open_questions import (
    Budget,
    Condition,
    Labels,
    OutOfWorkError,
    Stretch,
)
from celc_runtime.engine.worlds.judged_sets import (
    Asking,
    Judged,
    judged_sets,
    sets_of_clusters,
)
from celc_runtime.engine.worlds.judged_shares import (
    ADMITTED,
    MATCH,
    REFUSED,
    UNKNOWN,
    Answers,
    Asks,
    add_worlds,
    copy_answers,
    steps_of,
)
from celc_runtime.engine.worlds.possible_matches import taken_matches
from celc_runtime.engine.worlds.possible_moves import PossibleMoves
from celc_runtime.engine.worlds.possible_reach import PossibleEvents
from celc_runtime.jit.kernels import STEPS_IN_PYTHON, compiling
from celc_runtime.plan.plan import Plan
from celc_runtime.plan.strategy import ByDefinition
from celc_runtime.run.past.history import History
from celc_runtime.run.source.waiting_events import WaitingEvents

_Set: TypeAlias = frozenset[tuple[int, Labels]]
"""Events, by their numbers, with their labels."""
_TAGS = 1 << 15  # events of sets that are judged together
_ASKS = 1 << 12  # orders that are asked about together
_KNOWN = 1 << 16  # answers that are kept for later events


class TooManyWorldsError(Exception):
    """The worlds of the matches that end at an event, or before it, take too many steps."""

    def __init__(self, event: int) -> None:
        super().__init__()
        self.event = event


class JudgedWorlds:
    """Judges sets of events; `history` holds what conditions read of them.

    window, step: as in `Question`. alone: whether each event that is not in a match rules it out by
    itself. Then these are independent in a world of the match's events.
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
        self._moves = moves
        self._lengths = [int(one.size) for one in plan.matching.local_windows]
        names = plan.answer.label_names
        self._labels = [
            frozenset(names[column] for column in kind.columns) for kind in plan.matching.kinds
        ]
        of_labels = {labels: kind for kind, labels in enumerate(self._labels)}
        symbols, asks = _ruling_out(definition.formula)
        absent = np.zeros(max(symbols, default=-1) + 1, np.bool_)
        absent[list(symbols)] = True
        self._asked = Asking(
            step,
            window,
            plan.matching.kind_bits,
            plan.choice.max_work,
            0,
            np.array([of_labels[labels] for labels in self._labels], np.int64),
            absent,
            alone,
            not asks,
            bool(self._lengths),
        )
        self._answers = _no_answers(1 << 10)

    def rows(
        self, events: PossibleEvents, waiting: WaitingEvents, starts: np.ndarray, bound: float
    ) -> Iterator[tuple[int, Rows]]:
        """The matches with a confidence above `bound` whose greatest events are in some clusters,
        each time with the event before which all have come.

        starts: int64[clusters + 1], the first event of each, and the one behind the last. Raises
        TooManyWorldsError.
        """
        longest = int((events.last - events.low).max(initial=0))
        asked = self._asked._replace(longest=longest)
        if not asked.by_symbol or self._answers.used[0] > _KNOWN:
            self._answers = _no_answers(1 << 10)
        cluster = 0
        while cluster < len(starts) - 1:
            # An event is in several sets.
            with compiling() if 8 * len(events.low) > STEPS_IN_PYTHON else nullcontext():
                cluster, too_much, ends, tags = sets_of_clusters(
                    starts, cluster, _TAGS, events, self._moves, asked
                )
            if len(ends):
                judged = Judged(*judged_sets(ends, tags, events, asked))
                shares = self._confidences(judged, events, waiting, asked)
                kept = np.flatnonzero(shares > bound)
                yield int(starts[cluster]), Rows(*taken_matches(ends, tags, shares, kept))
            if too_much:
                raise TooManyWorldsError(int(starts[cluster + 1]) - 1)

    def _confidences(
        self, judged: Judged, events: PossibleEvents, waiting: WaitingEvents, asked: Asking
    ) -> np.ndarray:
        """float64[sets]: the probabilities of the worlds in which the events are a match."""
        steps, beyond = steps_of(judged, events, asked)
        if beyond >= 0:
            raise TooManyWorldsError(int(judged.tags[judged.ends[beyond] - 1] >> asked.bits))
        shares = np.full(len(judged.ends), -1.0)
        most = int(np.diff(judged.told_ends, prepend=0).max())
        asks = _no_asks(min(_ASKS, max(16, steps)), most)
        while True:
            with compiling() if steps > STEPS_IN_PYTHON else nullcontext():
                is_done = add_worlds(judged, events, asked, self._answers, asks, shares)
            if is_done:
                return shares
            self._answer(asks, judged, waiting)
            if 4 * int(self._answers.used[0]) >= len(self._answers.slots):
                larger = _no_answers(4 * len(self._answers.slots))._replace(
                    places=self._answers.places
                )
                copy_answers(self._answers, larger)
                self._answers = larger

    def _answer(self, asks: Asks, judged: Judged, waiting: WaitingEvents) -> None:
        """Let the definition answer."""
        answers, places = self._answers, [self._answers.places]
        count = len(answers.places)
        for ask in range(int(asks.used[0])):
            number, other = int(asks.sets[ask]), int(asks.others[ask])
            begin = int(judged.told_ends[number - 1]) if number else 0
            told = judged.told[begin : judged.told_ends[number]].tolist()
            times = asks.times[ask, : len(told)].tolist()
            wanted = self._set_of(judged, number)
            try:
                if other == MATCH:
                    holds = self._holds(wanted, told, times, waiting)
                    answers.values[asks.slots[ask]] = ADMITTED if holds else REFUSED
                    continue
                allowed = self._places(wanted, told, times, other, waiting)
            except OutOfWorkError:
                raise TooManyWorldsError(max(event for event, _ in wanted)) from None
            answers.values[asks.slots[ask]] = count
            places.append(allowed)
            count += len(allowed)
        asks.used[0] = 0
        self._answers = answers._replace(places=np.concatenate(places))

    def _set_of(self, judged: Judged, number: int) -> _Set:
        begin, bits = int(judged.ends[number - 1]) if number else 0, self._asked.bits
        tags = judged.tags[begin : judged.ends[number]].tolist()
        return frozenset((tag >> bits, self._labels[tag & ((1 << bits) - 1)]) for tag in tags)

    def _places(
        self, wanted: _Set, told: list[int], times: list[int], other: int, waiting: WaitingEvents
    ) -> np.ndarray:
        """Where another event may come: before the first instant of these events, in it, between it
        and the next one, and so on. bool[2 * instants + 1]."""
        # Doubled times have room for an event between any two instants.
        twice = [2 * time for time in times]
        instants = sorted({*twice})
        tried = [instants[0] - 1, *(place for time in instants for place in (time, time + 1))]
        return np.array(
            [
                self._holds(wanted, [*told, other], [*twice, place], waiting, scale=2)
                for place in tried
            ],
            np.bool_,
        )

    def _holds(
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


def _no_answers(size: int) -> Answers:
    """An empty table; size: a power of two."""
    return Answers(
        np.full(size, -1, np.int64),
        np.zeros((size, 2), np.int64),
        np.full(size, UNKNOWN, np.int64),
        np.zeros(0, np.bool_),
        np.zeros(1, np.int64),
    )


def _no_asks(size: int, most: int) -> Asks:
    """Empty room for `size` asks, each about a set with at most `most` events."""
    slots, sets, others = np.zeros((3, size), np.int64)
    return Asks(slots, sets, others, np.zeros((size, most), np.int64), np.zeros(1, np.int64))


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

"""The search for matches by the definitions: events, matches, and conditions that still wait.

A condition may name a label of a scope around it, which is bound only later. Then a match waits
with an *open question*, and the scope that binds the label answers it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from celc_runtime.plan.past_columns import of_window

Labels: TypeAlias = frozenset[str]


class Budget:
    """Steps that may still be taken; a comparison of two events is one of them."""

    STEP = 20
    """A step of this search takes as long as so many steps of a listing."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = STEP) -> None:
        """Take steps; raises OutOfWorkError where fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfWorkError


class OutOfWorkError(Exception):
    """There are no steps left for the matches of one event."""


class Condition:
    """A clause about several events.

    `labels`: the labels that it names; the first `chosen` of them stand outside of functions, so an
    event of each is chosen. `test`: the generated function; it takes the remembered columns, then
    for each label its events (int64 indices into the columns, in stream order), and for the first
    `chosen` labels the place of the chosen event among them.
    """

    def __init__(self, test: Callable[..., Any], labels: tuple[str, ...], chosen: int) -> None:
        self.test = test
        self.labels = labels
        self.chosen = chosen

    def holds(
        self, past: tuple[np.ndarray, ...], events: Sequence[np.ndarray], budget: Budget
    ) -> bool:
        """Whether it is TRUE for every choice; vacuously where a chosen label has no event."""
        for choice in itertools.product(*(range(len(e)) for e in events[: self.chosen])):
            budget.spend()
            places = (*choice, *[None] * (len(events) - self.chosen))
            arguments: list[Any] = []
            for some, place in zip(events, places, strict=True):
                arguments += [some] if place is None else [some, place]
            if not self.test(past, *arguments):
                return False
        return True


class Open(NamedTuple):
    """A condition that waits for labels of a scope around it; `known`: labels with their events."""

    condition: Condition
    known: tuple[tuple[str, tuple[int, ...]], ...]


class NoneOf(NamedTuple):
    """Whether in each of the cases some question has the answer no."""

    cases: frozenset[frozenset[Any]]


Question: TypeAlias = Open | NoneOf
Questions: TypeAlias = frozenset[Question]
ANSWERED: Questions = frozenset()


Begin: TypeAlias = tuple[int, int, int]


class Found(NamedTuple):
    """A match, by indices into the events of a partition: first and last event, the events that
    carry labels with their labels, and the questions that must have the answer yes.

    Where events last, `start` is the first event that does not end before the match starts, and
    `begin` is (the time at which it starts, the first event of the instant in which its first event
    ends, an event that starts when it starts).
    """

    start: int
    end: int
    labels: tuple[tuple[int, Labels], ...]
    questions: Questions
    begin: Begin = (0, 0, 0)


@dataclass(slots=True)
class Stretch:
    """Events of one partition, from index `first` on, and the matches found among them.

    `entries`, `symbols`, `positions` and `places` (in their instants) are lists of all events of
    the partition; `past` are the remembered columns, and `base` is the entry at their index 0.
    `times` and `begins`: the times at which events end and start; empty where events do not last.
    `whole` is the stretch that nested selectors see. `memo`: the matches by node and end event.
    `parts`: the stretches that begin later. `by_entry`: the events of a label go by their entries,
    because those of the stretch come in another order than that of their positions.
    """

    entries: list[int]
    symbols: list[int]
    positions: list[int]
    places: list[int]
    past: tuple[np.ndarray, ...]
    base: int
    first: int
    budget: Budget
    whole: Stretch | None = None
    times: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    memo: dict[tuple[int, int], list[Found]] = field(default_factory=dict)
    parts: dict[int, Stretch] = field(default_factory=dict)
    by_entry: bool = False

    def beginning_at(self, first: int) -> Stretch:
        """The same stretch from an index on; nested selectors see what they see here."""
        if first == self.first:
            return self
        if first not in self.parts:
            whole = self.whole or self
            self.parts[first] = replace(self, first=first, whole=whole, memo={}, parts={})
        self.parts[first].budget = self.budget
        return self.parts[first]

    def window(self, number: int) -> Sequence[np.ndarray]:
        """Key and floor of each remembered event for a window inside the formula."""
        return of_window(self.past, number)

    def events_of(self, label: str, match: Found) -> tuple[int, ...]:
        """The events of a label, in the order of their positions."""
        found = (event for event, carried in match.labels if label in carried)
        return tuple(sorted(found, key=self.entries.__getitem__) if self.by_entry else found)

    def answered(self, questions: Questions, labels: Labels, match: Found) -> Questions | None:
        """The questions still open once a match has bound `labels`; None: one has the answer no."""
        if not questions:
            return questions
        rest = []
        for question in questions:
            answer = self._answer(question, labels, match)
            if answer is False:
                return None
            if answer is not True:
                rest.append(answer)
        return frozenset(rest)

    def _answer(self, question: Question, labels: Labels, match: Found) -> Question | bool:
        if isinstance(question, NoneOf):
            cases = set()
            for case in question.cases:
                rest = self.answered(case, labels, match)
                if rest == ANSWERED:
                    return False
                if rest is not None:
                    cases.add(rest)
            return NoneOf(frozenset(cases)) if cases else True
        condition, known = question
        have = dict(known)
        for label in condition.labels:
            if label not in have and label in labels:
                have[label] = self.events_of(label, match)
        if len(have) < len(condition.labels):
            return Open(condition, tuple(sorted(have.items())))
        return condition.holds(
            self.past,
            [
                np.array([self.entries[e] - self.base for e in have[label]], np.int64)
                for label in condition.labels
            ],
            self.budget,
        )

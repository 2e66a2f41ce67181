"""The data of the search by definition: events, matches, and conditions that are still undecided.

A condition may name a label that an enclosing scope binds later. Until then the match carries the
condition as an *open question*. The scope that binds the label answers it.
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
    """The number of steps left. A comparison of two events is one step."""

    STEP = 20  # steps of a listing that take as long as one step of this search

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = STEP) -> None:
        """Count some steps; raises OutOfWorkError if fewer are left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfWorkError


class OutOfWorkError(Exception):
    """The matches of one event took too many steps."""


class Condition:
    """A clause about several events.

    labels: the labels that it names. The first `chosen` of them stand outside of functions, so one
    event is chosen for each of these. test: the generated function (columns, events of each label,
    place of the chosen event for each of the first `chosen` labels) → bool. Events are int64
    indices into the remembered columns, in stream order.
    """

    def __init__(self, test: Callable[..., Any], labels: tuple[str, ...], chosen: int) -> None:
        self.test = test
        self.labels = labels
        self.chosen = chosen

    def holds(
        self, past: tuple[np.ndarray, ...], events: Sequence[np.ndarray], budget: Budget
    ) -> bool:
        """Whether it is TRUE for every choice; also if a chosen label has no event."""
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
    """A condition that still needs labels of an enclosing scope."""

    condition: Condition
    known: tuple[tuple[str, tuple[int, ...]], ...]  # the labels bound so far, with their events
    last: tuple[tuple[str, int], ...] = ()
    """Labels that are needed as they are to the left of a FIRST, each with the last event there."""

    def to_the_left(self, labels: Labels, last: int) -> Open:
        """The question of a condition in a FIRST, about these labels up to an event."""
        bound = {label for label, _ in self.last}
        needed = labels.intersection(self.condition.labels) - bound
        if not needed:
            return self
        return self._replace(last=(*self.last, *((label, last) for label in sorted(needed))))


class NoneOf(NamedTuple):
    """TRUE if each case contains a question whose answer is no."""

    cases: frozenset[frozenset[Any]]

    def to_the_left(self, labels: Labels, last: int) -> NoneOf:
        """The question about conditions in a FIRST, which see these labels up to an event."""
        return NoneOf(
            frozenset(
                frozenset(one.to_the_left(labels, last) for one in case) for case in self.cases
            )
        )


class NoneInGap(NoneOf):
    """A question about what is absent before the first round of a FIRST. It stays open until all
    rounds are known."""

    __slots__ = ()


Question: TypeAlias = Open | NoneOf
Questions: TypeAlias = frozenset[Question]
ANSWERED: Questions = frozenset()


Begin: TypeAlias = tuple[int, int, int]
"""Where a match of events with a duration begins (`Found.begin`)."""


class Found(NamedTuple):
    """A match. Events are indices into the events of a partition."""

    start: int
    """The first event. For events with a duration: the first one that does not end before the match
    starts."""
    end: int  # the last event
    labels: tuple[tuple[int, Labels], ...]  # the events that carry labels, with these
    questions: Questions  # those that must have the answer yes
    begin: Begin = (0, 0, 0)
    """For events with a duration: (the time at which the match starts, the first event of the
    instant in which its first event ends, an event that starts when the match starts)."""


@dataclass(slots=True)
class Stretch:
    """The events of one partition from index `first` on, and the matches found among them."""

    entries: list[int]  # of all events of the partition, as the next three
    symbols: list[int]
    positions: list[int]
    places: list[int]  # in their instants
    past: tuple[np.ndarray, ...]  # the remembered columns
    base: int  # the entry at index 0 of these
    first: int
    budget: Budget
    whole: Stretch | None = None  # the stretch that nested selectors see
    times: list[int] = field(default_factory=list)  # when events end; empty: they have no duration
    begins: list[int] = field(default_factory=list)  # when events start; likewise
    world: Sequence[int] = ()  # the time of each event in a possible world; empty: time is certain
    lengths: Sequence[int] = ()  # for these, the lengths of the windows inside the formula
    memo: dict[tuple[int, int], list[Found]] = field(default_factory=dict)  # by node and end event
    parts: dict[int, Stretch] = field(default_factory=dict)  # the stretches that begin later

    def beginning_at(self, first: int) -> Stretch:
        """The part of this stretch from an index on; nested selectors still see all of it."""
        if first == self.first:
            return self
        if first not in self.parts:
            whole = self.whole or self
            self.parts[first] = replace(self, first=first, whole=whole, memo={}, parts={})
        self.parts[first].budget = self.budget
        return self.parts[first]

    def window(self, number: int) -> Sequence[np.ndarray]:
        """The key and the floor of each remembered event, for one window inside the formula."""
        return of_window(self.past, number)

    def events_of(self, label: str, match: Found) -> tuple[int, ...]:
        """The events of a label, in the order of the stretch."""
        return tuple(event for event, carried in match.labels if label in carried)

    def answered(self, questions: Questions, labels: Labels, match: Found) -> Questions | None:
        """The questions still open when a match has bound `labels`; None: some answer is no."""
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
        condition, known, last = question
        have, until = dict(known), dict(last)
        for label in condition.labels:
            if label not in have and label in labels:
                events = self.events_of(label, match)
                if label in until:
                    events = tuple(event for event in events if event <= until[label])
                have[label] = events
        if len(have) < len(condition.labels):
            needed = tuple(one for one in last if one[0] not in have)
            return Open(condition, tuple(sorted(have.items())), needed)
        return condition.holds(
            self.past,
            [
                np.array([self.entries[e] - self.base for e in have[label]], np.int64)
                for label in condition.labels
            ],
            self.budget,
        )

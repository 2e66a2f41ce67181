"""Core formula → normal form: both have the same matches on all streams up to a length."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from celc.core import formula as core
from celc.verify.prove.definitions import Definitions, answer
from celc.verify.prove.exploring import compare_all
from celc.verify.prove.expressions import MalformedError, parts_of
from celc.verify.prove.forms import Forms
from celc.verify.prove.labellings import Labels
from celc.verify.prove.matches import (
    AFTER,
    ALONE,
    Match,
    OutOfStepsError,
    Steps,
    Stream,
    matches_text,
)
from celc.verify.prove.representations import Representations
from celc.verify.prove.streams import Event, check_understood, following
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

STEP = "core formula → normal form"
MOST_STEPS = 160_000  # of both evaluators, about a second


def to_normal(given: Representations) -> Verdict:
    """Whether the normal form has the matches that the formula has by the table of definitions."""
    query, form = given.query, given.normal_form
    try:
        check_understood(query)
        windows = [one for one in parts_of(query.formula) if isinstance(one, core.Window)]
        compared = Compared(given, windows, [query.formula, form])
        one = Definitions(compared.stream, compared.steps, whole=compared.whole)
        other = Forms(compared.stream, compared.steps, whole=compared.whole)
        shown = shown_labels(query)
        return compared.verdict(
            STEP,
            [one, other],
            lambda end: answer(one, query, shown, end),
            lambda end: compared.of_form(other, end),
        )
    except NotUnderstoodError as problem:
        return Verdict(STEP, "tested", str(problem))


def shown_labels(query: core.Query) -> tuple[str, ...]:
    """The labels of the answer: those of its columns, those that its expressions read, and all of
    totals."""
    if query.total is not None:
        every = list(parts_of(query.formula))
        atoms = [one.label for one in every if isinstance(one, core.Atom | core.As)]
        new = [one.new for one in every if isinstance(one, core.Rename)]
        kept = [name for one in every if isinstance(one, core.Project) for name in one.labels]
        return tuple(dict.fromkeys([*atoms, *new, *kept]))
    found = [one.label for one in query.output if isinstance(one, core.OutputLabel)]
    for one in query.output:
        if isinstance(one, core.OutputExpression):
            found += one.labels
    if query.rate is not None and query.rate.support is not None:
        found.append(query.rate.support)
    return tuple(dict.fromkeys(found))


def ends_later(query: core.Query, read: Iterable[Any]) -> bool:
    """Whether matches of formulas or forms depend on events behind their ends."""
    after = any(isinstance(one, AFTER) for part in read for one in parts_of(part))
    return after or query.simultaneous


class Compared:
    """A comparison of two sets of matches on the streams of a query."""

    def __init__(
        self, given: Representations, windows: Iterable[core.Window], read: Iterable[Any]
    ) -> None:
        self.given = given
        self.query = given.query
        self.classes = given.known.classes(given.query, windows)
        self.steps = Steps(MOST_STEPS)
        self.stream = Stream(given.query, given.known.labels)
        self.whole = ends_later(given.query, read)

    def of_form(self, forms: Forms, end: int) -> frozenset[Match]:
        """The matches of the normal form that end at a position."""
        make = partial(forms.matches, self.given.normal_form, ALONE)
        return self.given.known.matches(self.stream, end, make)

    def verdict(
        self,
        step: str,
        evaluators: Iterable[Any],
        left: Callable[[int], frozenset[Match]],
        right: Callable[[int], frozenset[Match]],
        *,
        at_least: bool = False,
    ) -> Verdict:
        """Whether both sides have the same matches at each end; with `at_least` whether the right
        side has those of the left one."""
        try:
            return self._verdict(step, evaluators, left, right, at_least=at_least)
        except MalformedError as problem:
            return Verdict(step, "wrong", "a representation has no meaning", str(problem))

    # Long: short streams of all classes, then longer ones.
    def _verdict(
        self,
        step: str,
        evaluators: Iterable[Any],
        left: Callable[[int], frozenset[Match]],
        right: Callable[[int], frozenset[Match]],
        *,
        at_least: bool,
    ) -> Verdict:
        evaluators = tuple(evaluators)
        events, stream = self.classes, self.stream.events
        longer = found = 0

        def differs() -> str | None:
            nonlocal found
            ends = range(len(stream)) if self.whole else (len(stream) - 1,)
            for end in ends:
                one, other = left(end), right(end)
                found += len(one)
                if not (one <= other if at_least else one == other):
                    return _told(stream, self.stream.labels, end, one, other)
            return None

        def cut(size: int) -> None:
            del stream[size:]
            for evaluator in evaluators:
                evaluator.forget(size)

        def push(event: Event, compares: bool) -> str | None:
            stream.append(event)
            return differs() if compares else None

        def following_ones() -> list[Event]:
            last, gaps = (stream[-1], len(events.gaps)) if stream else (None, 1)
            numbers = range(len(events.events))
            return [events.event(number, gap, last) for number in numbers for gap in range(gaps)]

        length, _ = events.streams()
        done, problem = compare_all(length, self.steps, following_ones, push, cut)
        try:
            self.steps.left = MOST_STEPS // 2
            for made in following(self.query, events) if problem is None else ():
                cut(0)
                for event in made:
                    stream.append(event)
                    problem = problem or differs()
                longer += 1
                if problem is not None:
                    break
        except OutOfStepsError:
            pass
        if problem is not None:
            return Verdict(step, "wrong", "they differ on a stream", problem)
        classes = f"{len(events.events)} classes of events"
        if len(events.gaps) > 1:
            classes += f" at {len(events.gaps)} distances in time"
        some = "" if events.is_whole else " (some of them)"
        what = (
            f"the same matches on all streams of up to {done} events of {classes}{some}, "
            f"and on {longer} longer streams that follow the formula; {found} matches were compared"
        )
        return Verdict(step, "bounded", what)


def _told(
    stream: Iterable[Event],
    labels: Labels,
    end: int,
    left: frozenset[Match],
    right: frozenset[Match],
) -> str:
    events = "; ".join(
        ", ".join(f"{name}={value!r}" for name, value in event.items()) for event in stream
    )
    return (
        f"on the events [{events}] the matches that end at {end} are "
        f"{matches_text(left, labels)} and {matches_text(right, labels)}"
    )

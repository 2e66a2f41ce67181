"""LP-normal forms by their meaning: the other side of the first step of a proof.

It reads the same nodes as the passes behind `normalize`, and shares with `definitions` only what
the words match, end and selector mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from celc.core import formula as core
from celc.normal import normal_form as lp
from celc.verify.prove.expressions import labels_named
from celc.verify.prove.labellings import NOWHERE, Labelling, Positions
from celc.verify.prove.languages import changed_marks, is_label
from celc.verify.prove.matches import (
    Ends,
    Evaluator,
    Match,
    Seen,
    Steps,
    Stream,
    chosen,
    guessed,
)
from celc.verify.prove.verdict import NotUnderstoodError

Satisfies = Callable[[core.EventType, tuple[lp.EventClause, ...], int], bool]
"""Whether the event at a position has a type and satisfies clauses."""


class Forms(Evaluator):
    """The matches of a form and its parts. `satisfies` may read symbols in place of events."""

    def __init__(
        self, stream: Stream, steps: Steps, *, whole: bool, satisfies: Satisfies | None = None
    ) -> None:
        super().__init__(stream, steps, whole=whole)
        self.satisfied = self._by_values if satisfies is None else satisfies
        self._outside: dict[int, tuple[str, ...]] = {}

    def outside(self, form: lp.NormalForm) -> tuple[str, ...]:
        """The labels that conditions in a form look for in the scopes around it."""
        if id(form) not in self._outside:
            self._outside[id(form)] = tuple(sorted(self._looks(form)))
        return self._outside[id(form)]

    def _looks(self, form: lp.NormalForm) -> frozenset[str]:
        def of(*parts: lp.NormalForm | None) -> frozenset[str]:
            return frozenset(n for one in parts if one is not None for n in self.outside(one))

        match form:
            case lp.Event():
                return frozenset()
            case lp.Sequence() | lp.Disjunction():
                return of(*form.operands)
            case lp.Conjunction() | lp.All():
                return of(form.left, form.right)
            case lp.Unless():
                return of(form.left) | of(form.right) - {*form.sees}
            case lp.Absence():
                return of(form.left, form.right) | of(form.middle) - {*form.sees}
            case lp.AbsenceBefore() | lp.AbsenceAfter():
                return of(form.operand) | of(form.absent) - {*form.sees}
            case lp.ThenFirst():
                rounds = of(form.chosen) | of(form.absent) - {*form.own}
                gap = of(form.gap) - {*form.gap_sees, *form.gap_rounds}
                return of(form.left) | gap | rounds - {*form.sees}
            case lp.Correlated():
                return of(form.operand) | labels_named(form.clauses) - {*form.own}
            case lp.Scope():
                return of(form.operand) - {*form.labels}
            case _:
                return of(form.operand)

    def matches(self, form: lp.NormalForm, seen: Seen, end: int) -> frozenset[Match]:
        """The matches of a form of which `end` is the last position."""
        found = self.recalled(id(form), end)
        if found is not None:
            return found
        return self.kept(
            form,
            id(form),
            seen,
            self.outside(form),
            end,
            lambda end: frozenset(self._matches(form, seen, end)),
        )

    def _at(self, form: lp.NormalForm, seen: Seen) -> Ends:
        return lambda end: self.matches(form, seen, end)

    # Long: a case for each kind of form.
    def _matches(self, form: lp.NormalForm, seen: Seen, end: int) -> Iterable[Match]:
        match form:
            case lp.Event():
                return self._event(form, end)
            case lp.Sequence(operands=operands):
                return self._sequence(form, len(operands) - 1, seen, end)
            case lp.Iteration():
                return self._iteration(form, seen, end)
            case lp.Disjunction(operands=operands):
                found = (self.matches(one, seen, end) for one in operands)
                return frozenset[Match]().union(*found)
            case lp.Conjunction(left=left, right=right):
                return self._both(left, right, seen, end)
            case lp.All(left=left, right=right):
                return self.together(self._at(left, seen), self._at(right, seen), end)
            case lp.Unless(left=left, right=right, sees=sees):
                return (
                    (i, mu)
                    for i, mu in self.matches(left, seen, end)
                    if not self.lies_inside(self._absent(right, sees, seen, mu), i, end)
                )
            case lp.Absence():
                return self._absence(form, seen, end)
            case lp.AbsenceBefore(operand=operand, absent=absent, length=length, sees=sees):
                return (
                    (i, mu)
                    for i, mu in self.matches(operand, seen, end)
                    if not any(
                        self.stream.fits(length, start, i)
                        for last in range(i)
                        for start, _ in self._absent(absent, sees, seen, mu)(last)
                    )
                )
            case lp.AbsenceAfter():
                return self._absence_after(form, seen, end)
            case lp.ThenFirst():
                return self._then_first(form, seen, end)
            case lp.Selected():
                return self._selected(form, seen, end)
            case lp.Relabel(operand=operand, changes=changes):
                return (
                    (i, self._relabelled(mu, changes)) for i, mu in self.matches(operand, seen, end)
                )
            case lp.Where(operand=operand, fact=fact):
                kept = self.matches(operand, seen, end)
                return (one for one in kept if self.is_true(fact, one[1]))
            case lp.Correlated():
                return self._correlated(form, seen, end)
            case lp.Scope():
                return self._scope(form, seen, end)
            case lp.Within(operand=operand, window=window):
                kept = self.matches(operand, seen, end)
                return (one for one in kept if self.stream.fits(window, one[0], end))
            case lp.MarkedEnds(operand=operand, first=first, last=last):
                return (
                    (i, mu | self.labels.at(first, i) | self.labels.at(last, end))
                    for i, mu in self.matches(operand, seen, end)
                )
        raise AssertionError(form)

    def _both(
        self, left: lp.NormalForm, right: lp.NormalForm, seen: Seen, end: int
    ) -> Iterable[Match]:
        """AND: the same labels on the same events; each side may have roles of its own."""
        alike: dict[tuple[int, Labelling], list[Labelling]] = {}
        for i, mu in self.matches(right, seen, end):
            alike.setdefault((i, self.labels.kept(mu, is_label)), []).append(mu)
        for i, mu in self.matches(left, seen, end):
            for other in alike.get((i, self.labels.kept(mu, is_label)), ()):
                yield i, mu | other

    def _event(self, form: lp.Event, end: int) -> Iterable[Match]:
        first, last = self.stream.instant_of(end) if form.simultaneous else (end, end)
        if last != end:
            return
        for place in range(first, last + 1):
            if self.satisfied(form.type, form.clauses, place):
                yield first, self.labels.at(form.labels, place)

    def _by_values(
        self, event_type: core.EventType, clauses: tuple[lp.EventClause, ...], place: int
    ) -> bool:
        text = f"{event_type.stream}>{event_type.name}"
        if self.stream.events[place][core.TYPE] != text:
            return False
        return all(self._of_event(clause, place) for clause in clauses)

    def _of_event(self, clause: lp.EventClause, place: int) -> bool:
        return self.stream.conditions.any_true(clause.predicates, {lp.EVENT: place}, {})

    def _sequence(self, form: lp.Sequence, number: int, seen: Seen, end: int) -> frozenset[Match]:
        if number == 0:
            return self.matches(form.operands[0], seen, end)

        key = id(form), number
        found = self.recalled(key, end)
        if found is not None:
            return found
        names = self.outside(form)
        collected = None if names or self.looks_later(form) else key

        def make(end: int) -> frozenset[Match]:
            left = lambda k: self._sequence(form, number - 1, seen, k)  # noqa: E731
            right = self._at(form.operands[number], seen)
            contiguous = form.contiguous[number - 1]
            return self.then(left, right, end, contiguous=contiguous, key=collected)

        return self.kept(form, key, seen, names, end, make)

    def _iteration(self, form: lp.Iteration, seen: Seen, end: int) -> frozenset[Match]:
        if form.most is None:
            return self._rounds(form, form.least, seen, end)
        found = frozenset[Match]()
        for number in range(form.least, min(form.most, end + 1) + 1):
            found |= self._rounds(form, number, seen, end)
        return found

    def _rounds(self, form: lp.Iteration, number: int, seen: Seen, end: int) -> frozenset[Match]:
        """The matches of `number` rounds. If that is the least number of a repetition without a
        limit: the matches of `number` rounds or more."""
        found = self.recalled(("rounds", id(form), number), end)
        if found is not None:
            return found
        names = self.outside(form)
        collects = not names and not self.looks_later(form)

        def make(end: int) -> frozenset[Match]:
            one = self._at(form.operand, seen)
            found = one(end) if number == 1 else frozenset[Match]()
            earlier = {number - 1} if number > 1 else set[int]()
            if form.most is None and number == form.least:
                earlier.add(number)
            for rounds in sorted(earlier):
                left: Ends = lambda k, n=rounds: self._rounds(form, n, seen, k)  # type: ignore[misc] # noqa: E731
                key = ("rounds", id(form), rounds) if collects else None
                found |= self.then(left, one, end, contiguous=form.contiguous, key=key)
            return found

        return self.kept(form, ("rounds", id(form), number), seen, names, end, make)

    # --- what must be absent ----------------------------------------------------------------------

    def _absent(self, form: lp.NormalForm, sees: Iterable[str], seen: Seen, mu: Labelling) -> Ends:
        own = frozenset(sees)
        there = self.sets_of(mu, own, seen, self.outside(form))
        if there is None:
            return lambda end: frozenset()
        return lambda end: self.matches(form, there, end)

    def _absence(self, form: lp.Absence, seen: Seen, end: int) -> Iterable[Match]:
        for start, other in self.matches(form.right, seen, end):
            for k in range(start):
                for i, one in self.matches(form.left, seen, k):
                    absent = self._absent(form.middle, form.sees, seen, one | other)
                    if not self.lies_inside(absent, k + 1, start - 1):
                        yield i, one | other

    def _absence_after(self, form: lp.AbsenceAfter, seen: Seen, end: int) -> Iterable[Match]:
        for i, mu in self.matches(form.operand, seen, end):
            absent = self._absent(form.absent, form.sees, seen, mu)
            begin = i if form.from_start else end
            if not any(
                start > end and self.stream.fits(form.length, begin, last)
                for last in range(end + 1, len(self.stream.events))
                for start, _ in absent(last)
            ):
                yield i, mu

    def _then_first(self, form: lp.ThenFirst, seen: Seen, end: int) -> Iterable[Match]:
        if form.around:
            raise NotUnderstoodError("FIRST whose conditions look at more than its left side")
        for k in range(end):
            for i, mu in self.matches(form.left, seen, k):
                yield from self._first_rounds(form, seen, (k, k, -1, i, mu), end, 1)

    def _first_rounds(
        self,
        form: lp.ThenFirst,
        seen: Seen,
        chain: tuple[int, int, int, int, Labelling],
        end: int,
        number: int,
    ) -> Iterable[Match]:
        left, k, first, i, mu = chain
        choose = self._absent(form.chosen, form.sees, seen, mu)
        soonest: list[Match] = []
        last = k
        while last < end and not soonest:
            last += 1
            soonest = [one for one in choose(last) if one[0] > k]
        around = {**seen, **{name: self.labels.positions(mu, name) for name in form.sees}}
        for start, more in soonest:
            if form.absent is not None:
                absent = self._absent(form.absent, form.own, around, more)
                if self.lies_inside(absent, k + 1, start - 1):
                    continue
            begun, joined = start if number == 1 else first, mu | more
            if last == end and number >= form.least:
                gap: Ends = lambda end: frozenset()  # noqa: E731
                if form.gap is not None:
                    sees = (*form.gap_sees, *form.gap_rounds)
                    gap = self._absent(form.gap, sees, seen, joined)
                if not self.lies_inside(gap, left + 1, begun - 1):
                    yield i, joined
            if form.most is None or number < form.most:
                longer = (left, last, begun, i, joined)
                yield from self._first_rounds(form, seen, longer, end, number + 1)

    # --- conditions and choices -------------------------------------------------------------------

    def _selected(self, form: lp.Selected, seen: Seen, end: int) -> Iterable[Match]:
        matches = self.matches(form.operand, seen, end)
        if any(seen.get(name, NOWHERE) is None for name in self.outside(form)):
            return matches
        if form.strategy not in ("FIRST_OF_START", "NXT_OF_ENDS"):
            return chosen(form.strategy, matches, self.support)
        sooner = set[int]()
        if form.strategy == "FIRST_OF_START":
            looks = self.outside(form.operand) or self.looks_later(form.operand)
            key = None if looks else id(form)
            sooner = {i for i, _ in self.before(self._at(form.operand, seen), end, key)}
        found = set[Match]()
        for start in {i for i, _ in matches} - sooner:
            found |= chosen("NXT", [one for one in matches if one[0] == start], self.support)
        return found

    def is_true(self, fact: lp.Fact, mu: Labelling) -> bool:
        """Whether a fact is true of a match."""
        match fact:
            case lp.Not():
                return not self.is_true(fact.fact, mu)
            case lp.AnyOf():
                return any(self.is_true(one, mu) for one in fact.facts)
            case lp.CountOf(label=label, truths=truths):
                return truths[min(self.labels.positions(mu, label).bit_count(), len(truths) - 1)]
            case lp.SomeEvent(label=label, clause=clause, holds=holds):
                return any(self._asked(clause, place) == holds for place in self._places(mu, label))
            case lp.EndEvent(end=end, label=label, clause=clause):
                places = self._places(mu, label)
                return bool(places) and self._asked(clause, places[0 if end == "FIRST" else -1])

    def _asked(self, clause: lp.EventClause, place: int) -> bool:
        """Whether an event of a match satisfies a clause of a fact."""
        return self._of_event(clause, place)

    def _correlated(self, form: lp.Correlated, seen: Seen, end: int) -> Iterable[Match]:
        kept = self.matches(form.operand, seen, end)
        return self.satisfying(kept, form.clauses, frozenset(form.own), seen)

    def _scope(self, form: lp.Scope, seen: Seen, end: int) -> frozenset[Match]:
        looked_at = sorted({*form.labels} & {*self.outside(form.operand)})
        if not looked_at:
            return self.matches(form.operand, seen, end)
        superset = self.matches(form.operand, {**seen, **dict.fromkeys(looked_at)}, end)
        return guessed(
            superset,
            self.labels,
            looked_at,
            seen,
            lambda there: self.matches(form.operand, there, end),
        )

    def _relabelled(self, mu: Labelling, changes: Iterable[Any]) -> Labelling:
        marks: dict[int, frozenset[str]] = {}
        for label, place in self.labels.pairs(mu):
            marks[place] = marks.get(place, frozenset()) | {label}
        for change in changes:
            if isinstance(change, lp.AddToAll):
                raise NotUnderstoodError("a role of events without labels")
            marks = {place: changed_marks(labels, change) for place, labels in marks.items()}
        found = 0
        for place, labels in marks.items():
            found |= self.labels.at(labels, place)
        return found

    def _places(self, mu: Labelling, label: str) -> tuple[int, ...]:
        return self.labels.places(self.labels.positions(mu, label))

    def support(self, mu: Labelling) -> Positions:
        """The positions with a label; roles are none."""
        return self.labels.support(mu, is_label)

"""The core formula by the table of definitions: the beginning of every proof.

Nothing here is shared with the passes. The tests compare it with the answers of the conformance
cases, which were made by another evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable

from celc.core import formula as core
from celc.verify.prove.expressions import labels_named
from celc.verify.prove.labellings import NOWHERE, Labelling, Positions
from celc.verify.prove.matches import (
    ALONE,
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


class Definitions(Evaluator):
    """⟦φ⟧ of a formula and its parts."""

    def __init__(self, stream: Stream, steps: Steps, *, whole: bool) -> None:
        super().__init__(stream, steps, whole=whole)
        self._bound: dict[int, frozenset[str]] = {}
        self._outside: dict[int, tuple[str, ...]] = {}

    # --- labels -----------------------------------------------------------------------------------

    def bound(self, formula: core.Formula) -> frozenset[str]:
        """The labels that a formula binds."""
        if id(formula) not in self._bound:
            self._bound[id(formula)] = self._labels(formula)
        return self._bound[id(formula)]

    def _labels(self, formula: core.Formula) -> frozenset[str]:
        match formula:
            case core.Atom(label=label):
                return frozenset({label})
            case core.As():
                return self.bound(formula.operand) | {formula.label}
            case core.Rename():
                return self.bound(formula.operand) - {formula.old} | {formula.new}
            case core.Project():
                return frozenset(formula.labels)
            case core.Sequence() | core.Disjunction():
                return frozenset[str]().union(*map(self.bound, formula.operands))
            case core.Conjunction() | core.All() | core.Absence():
                return self.bound(formula.left) | self.bound(formula.right)
            case core.Unless():
                return self.bound(formula.left)
            case core.ThenFirst():
                return self.bound(formula.left) | self.bound(formula.operand)
            case _:
                return self.bound(formula.operand)

    def outside(self, formula: core.Formula) -> tuple[str, ...]:
        """The labels that conditions in a formula look for in the scopes around them."""
        if id(formula) not in self._outside:
            self._outside[id(formula)] = tuple(sorted(self._looks(formula)))
        return self._outside[id(formula)]

    def scope_outside(self, formula: core.Formula) -> frozenset[str]:
        """The same of a formula that is a scope."""
        return frozenset(self.outside(formula)) - self.bound(formula)

    def _looks(self, formula: core.Formula) -> frozenset[str]:
        match formula:
            case core.Atom():
                return frozenset()
            case core.Filter():
                named = labels_named(formula.clauses) - self.bound(formula.operand)
                return named | {*self.outside(formula.operand)}
            case core.Iteration() | core.Project() | core.Rename() | core.Selector():
                return self.scope_outside(formula.operand)
            case core.Sequence() | core.Disjunction():
                return frozenset(name for one in formula.operands for name in self.outside(one))
            case core.Conjunction() | core.All():
                return frozenset({*self.outside(formula.left), *self.outside(formula.right)})
            case core.Unless():
                absent = self.scope_outside(formula.right) - self.bound(formula.left)
                return absent | {*self.outside(formula.left)}
            case core.Absence():
                absent = self.scope_outside(formula.middle) - self.bound(formula)
                return absent | {*self.outside(formula.left), *self.outside(formula.right)}
            case core.AbsenceBefore() | core.AbsenceAfter():
                absent = self.scope_outside(formula.absent) - self.bound(formula)
                return absent | {*self.outside(formula.operand)}
            case core.ThenFirst():
                gap = frozenset() if formula.gap is None else self.scope_outside(formula.gap)
                return (gap - self.bound(formula)) | {*self.outside(formula.left)}
            case _:
                return frozenset(self.outside(formula.operand))

    # --- matches ----------------------------------------------------------------------------------

    def scope(self, formula: core.Formula, seen: Seen, end: int) -> frozenset[Match]:
        """⟦φ⟧*ν at an end."""
        looked_at = sorted(self.bound(formula) & {*self.outside(formula)})
        if not looked_at:
            return self.matches(formula, seen, end)

        def make(end: int) -> frozenset[Match]:
            superset = self.matches(formula, {**seen, **dict.fromkeys(looked_at)}, end)
            return guessed(
                superset,
                self.labels,
                looked_at,
                seen,
                lambda there: self.matches(formula, there, end),
            )

        names = sorted(self.scope_outside(formula))
        return self.kept(formula, ("scope", id(formula)), seen, names, end, make)

    def matches(self, formula: core.Formula, seen: Seen, end: int) -> frozenset[Match]:
        """⟦φ⟧ν at an end: the matches of which `end` is the last position."""
        found = self.recalled(id(formula), end)
        if found is not None:
            return found
        return self.kept(
            formula,
            id(formula),
            seen,
            self.outside(formula),
            end,
            lambda end: frozenset(self._matches(formula, seen, end)),
        )

    def _support(self, mu: Labelling) -> Positions:
        return self.labels.support(mu)

    def _at(self, formula: core.Formula, seen: Seen) -> Ends:
        return lambda end: self.matches(formula, seen, end)

    # Long: a case for each kind of formula.
    def _matches(self, formula: core.Formula, seen: Seen, end: int) -> Iterable[Match]:
        match formula:
            case core.Atom():
                return self._atom(formula, end)
            case core.As(operand=operand, label=label):
                return (
                    (i, mu | self.labels.labelled(self._support(mu), label))
                    for i, mu in self.matches(operand, seen, end)
                )
            case core.Rename(operand=operand, old=old, new=new):
                return (
                    (i, self.labels.renamed(mu, old, new))
                    for i, mu in self.scope(operand, seen, end)
                )
            case core.Project(operand=operand, labels=labels):
                bands = self.labels.bands(labels)
                return ((i, mu & bands) for i, mu in self.scope(operand, seen, end))
            case core.Sequence(operands=operands):
                return self._sequence(formula, len(operands) - 1, seen, end)
            case core.Iteration(least=least, most=most):
                if most is None:
                    return self._rounds(formula, least, seen, end)
                found = (
                    self._rounds(formula, number, seen, end)
                    for number in range(least, min(most, end + 1) + 1)
                )
                return frozenset[Match]().union(*found)
            case core.Disjunction(operands=operands):
                found = (self.matches(one, seen, end) for one in operands)
                return frozenset[Match]().union(*found)
            case core.Conjunction(left=left, right=right):
                return self.matches(left, seen, end) & self.matches(right, seen, end)
            case core.All(left=left, right=right):
                return self.together(self._at(left, seen), self._at(right, seen), end)
            case core.Filter():
                return self._filter(formula, seen, end)
            case core.Within(operand=operand, window=window):
                inside = self.matches(operand, seen, end)
                return (one for one in inside if self.stream.fits(window, one[0], end))
            case core.Selector(strategy=strategy, operand=operand):
                matches = self.scope(operand, seen, end)
                if any(seen.get(name, NOWHERE) is None for name in self.outside(formula)):
                    return matches  # what is chosen from a superset need not be one
                return chosen(strategy, matches, self._support)
            case core.Unless(left=left, right=right):
                return (
                    (i, mu)
                    for i, mu in self.matches(left, seen, end)
                    if not self.lies_inside(self._absent(right, left, seen, mu), i, end)
                )
            case core.Absence():
                return self._absence(formula, seen, end)
            case core.AbsenceBefore(operand=operand, absent=absent, length=length):
                return (
                    (i, mu)
                    for i, mu in self.matches(operand, seen, end)
                    if not any(
                        self.stream.fits(length, start, i)
                        for last in range(i)
                        for start, _ in self._absent(absent, operand, seen, mu)(last)
                    )
                )
            case core.AbsenceAfter():
                return self._absence_after(formula, seen, end)
            case core.ThenFirst():
                return self._then_first(formula, seen, end)
        raise AssertionError(formula)

    def _atom(self, formula: core.Atom, end: int) -> Iterable[Match]:
        first, last = self.stream.instant_of(end)
        if last != end:
            return
        texts = {f"{one.stream}>{one.name}" for one in formula.types}
        for place in range(first, last + 1):
            if self.stream.events[place][core.TYPE] in texts:
                yield first, self.labels.at([formula.label], place)

    def _sequence(
        self, formula: core.Sequence, number: int, seen: Seen, end: int
    ) -> frozenset[Match]:
        """The matches of the operands up to one of them."""
        if number == 0:
            return self.matches(formula.operands[0], seen, end)

        key = id(formula), number
        found = self.recalled(key, end)
        if found is not None:
            return found
        names = self.outside(formula)
        collected = None if names or self.looks_later(formula) else key

        def make(end: int) -> frozenset[Match]:
            left = lambda k: self._sequence(formula, number - 1, seen, k)  # noqa: E731
            right = self._at(formula.operands[number], seen)
            contiguous = formula.contiguous[number - 1]
            return self.then(left, right, end, contiguous=contiguous, key=collected)

        return self.kept(formula, key, seen, names, end, make)

    def _rounds(
        self, formula: core.Iteration, number: int, seen: Seen, end: int
    ) -> frozenset[Match]:
        """The matches of `number` rounds. If that is the least number of a repetition without a
        limit: the matches of `number` rounds or more."""
        found = self.recalled(("rounds", id(formula), number), end)
        if found is not None:
            return found
        repeats = formula.most is None and number == formula.least
        names = self.outside(formula)
        collects = not names and not self.looks_later(formula)

        def make(end: int) -> frozenset[Match]:
            one: Ends = lambda k: self.scope(formula.operand, seen, k)  # noqa: E731
            found = one(end) if number == 1 else frozenset[Match]()
            before = [number - 1] if number > 1 else []
            for earlier in [*before, *([number] if repeats else [])]:
                left: Ends = lambda k, n=earlier: self._rounds(formula, n, seen, k)  # type: ignore[misc] # noqa: E731
                key = ("rounds", id(formula), earlier) if collects else None
                found |= self.then(left, one, end, contiguous=formula.contiguous, key=key)
            return found

        return self.kept(formula, ("rounds", id(formula), number), seen, names, end, make)

    def _filter(self, formula: core.Filter, seen: Seen, end: int) -> Iterable[Match]:
        own = self.bound(formula.operand)
        return self.satisfying(self.matches(formula.operand, seen, end), formula.clauses, own, seen)

    def _absent(
        self, formula: core.Formula, beside: core.Formula, seen: Seen, mu: Labelling
    ) -> Ends:
        """What must be absent, given the match beside it; nothing where that is not known yet."""
        own = self.bound(beside)
        there = {
            name: self.labels.positions(mu, name) if name in own else seen.get(name, NOWHERE)
            for name in self.scope_outside(formula)
        }
        if None in there.values():
            return lambda end: frozenset()
        return lambda end: self.scope(formula, there, end)

    def _absence(self, formula: core.Absence, seen: Seen, end: int) -> Iterable[Match]:
        for start, other in self.matches(formula.right, seen, end):
            for k in range(start):
                for i, one in self.matches(formula.left, seen, k):
                    mu = one | other
                    absent = self._absent(formula.middle, formula, seen, mu)
                    if not self.lies_inside(absent, k + 1, start - 1):
                        yield i, mu

    def _absence_after(self, formula: core.AbsenceAfter, seen: Seen, end: int) -> Iterable[Match]:
        length = len(self.stream.events)
        for i, mu in self.matches(formula.operand, seen, end):
            absent = self._absent(formula.absent, formula.operand, seen, mu)
            begin = i if formula.from_start else end
            if not any(
                start > end and self.stream.fits(formula.length, begin, last)
                for last in range(end + 1, length)
                for start, _ in absent(last)
            ):
                yield i, mu

    def _then_first(self, formula: core.ThenFirst, seen: Seen, end: int) -> Iterable[Match]:
        """Chains of rounds, found forward from each match of the left side."""
        names = self.scope_outside(formula.operand)
        own = self.bound(formula.operand)
        if formula.absent is not None:
            names |= self.scope_outside(formula.absent) - own
        if formula.looks_back or formula.both_sides or not names <= self.bound(formula):
            raise NotUnderstoodError("FIRST whose conditions look at more than its left side")
        for k in range(end):
            for i, mu in self.matches(formula.left, seen, k):
                yield from self._first_rounds(formula, seen, (k, k, -1, i, mu), names, end, 1)

    def _first_rounds(
        self,
        formula: core.ThenFirst,
        seen: Seen,
        chain: tuple[int, int, int, int, Labelling],
        names: frozenset[str],
        end: int,
        number: int,
    ) -> Iterable[Match]:
        left, k, first, i, mu = chain
        there: Seen = {name: self.labels.positions(mu, name) for name in names}
        soonest: list[Match] = []
        last = k
        while last < end and not soonest:
            last += 1
            soonest = [one for one in self.scope(formula.operand, there, last) if one[0] > k]
        for start, more in soonest:
            if formula.absent is not None:
                absent = self._absent(formula.absent, formula.operand, there, more)
                if self.lies_inside(absent, k + 1, start - 1):
                    continue
            begun = start if number == 1 else first
            joined = mu | more
            if (
                last == end
                and number >= formula.least
                and self._gap_is_free(formula, seen, joined, left, begun)
            ):
                yield i, joined
            if formula.most is None or number < formula.most:
                longer = (left, last, begun, i, joined)
                yield from self._first_rounds(formula, seen, longer, names, end, number + 1)

    def _gap_is_free(
        self, formula: core.ThenFirst, seen: Seen, mu: Labelling, left: int, first: int
    ) -> bool:
        if formula.gap is None:
            return True
        absent = self._absent(formula.gap, formula, seen, mu)
        return not self.lies_inside(absent, left + 1, first - 1)


def answer(
    evaluator: Definitions, query: core.Query, shown: tuple[str, ...], end: int
) -> frozenset[Match]:
    """The matches of a whole query that end at a position, without WITHIN: SELECT's selector, then
    the labels that are shown."""
    matches = evaluator.scope(query.formula, ALONE, end)
    if query.strategy not in ("ALL", "ANY"):
        matches = chosen(query.strategy, matches, evaluator.labels.support)
    if query.per_start is not None and query.compares_ends:
        ends: Ends = lambda k: evaluator.scope(query.formula, ALONE, k)  # noqa: E731
        sooner = set[int]()
        if query.per_start.end == "FIRST":
            key = None if evaluator.looks_later(query.formula) else "answer"
            sooner = {i for i, _ in evaluator.before(ends, end, key)}
        kept = set[Match]()
        for start in {i for i, _ in matches} - sooner:
            kept |= chosen(
                "NXT", [one for one in matches if one[0] == start], evaluator.labels.support
            )
        matches = frozenset(kept)
    bands = evaluator.labels.bands(shown)
    return frozenset([(i, mu & bands) for i, mu in matches])

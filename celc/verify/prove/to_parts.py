"""Normal form → what an automaton finds, and what the listing checks.

Conditions between events leave the form: its events get roles, and clauses over roles are checked
of each match that the automaton finds. Both sides are evaluated by their meaning on streams. Where
the whole definition decides, the automaton must find at least what it finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Any

from celc.core import formula as core
from celc.normal import normal_form as lp
from celc.normal.divide import Definitions, Exact, Roles, Windowed
from celc.normal.flat_form import (
    ABSENT,
    AbsentEvent,
    AbsentPart,
    EventAfter,
    EventBefore,
    FlatForm,
    PartAfter,
    PartBefore,
    RoleClause,
)
from celc.verify.prove.expressions import parts_of
from celc.verify.prove.forms import Forms
from celc.verify.prove.labellings import Labelling
from celc.verify.prove.languages import is_label
from celc.verify.prove.matches import ALONE, Match
from celc.verify.prove.representations import Representations
from celc.verify.prove.streams import check_understood
from celc.verify.prove.to_normal import Compared, shown_labels
from celc.verify.prove.verdict import NotUnderstoodError, Verdict

STEP = "normal form → automaton's form and conditions between events"


def to_parts(given: Representations) -> Verdict:
    """Whether the form for the automaton, with the conditions that are left to the listing, has the
    matches of the normal form."""
    form, division = given.normal_form, given.division
    waits = given.query.simultaneous and not any(
        isinstance(one, lp.Event) and one.simultaneous for one in parts_of(division.found)
    )
    match division.rest:
        case Exact() | Windowed():
            rest = division.rest
            same = _plain(division.found) == _plain(form)
            same = same and (isinstance(rest, Exact) or _plain(rest.selected) in _plain_parts(form))
            if not same:
                problem = f"the automaton finds {division.found!r} and not {form!r}"
                return Verdict(STEP, "wrong", "nothing is left to the listing", problem)
            if not waits:
                return Verdict(STEP, "exact", "the automaton finds the whole form")
    if waits:
        what = "simultaneous events that wait for the end of their instant"
        return Verdict(STEP, "tested", what)
    try:
        check_understood(given.query)
        if given.query.uncertain is not None:
            raise NotUnderstoodError("uncertain time")
        windows = [one for one in parts_of((form, division.rest)) if isinstance(one, core.Window)]
        compared = Compared(given, windows, [form, division.rest])
        forms = Forms(compared.stream, compared.steps, whole=compared.whole)
        if isinstance(division.rest, Definitions):
            found = division.found
            return compared.verdict(
                STEP,
                [forms],
                lambda end: compared.of_form(forms, end),
                lambda end: forms.matches(found, ALONE, end),
                at_least=True,
            )
        assert isinstance(division.rest, Roles)
        checks = _Checks(division.rest.flat, forms)
        expected = partial(compared.of_form, forms)
        if division.rest.selector:
            expected = partial(forms.matches, _operand(given, form), ALONE)
        return compared.verdict(STEP, [forms], expected, checks.matches)
    except NotUnderstoodError as problem:
        return Verdict(STEP, "tested", str(problem))


def _operand(given: Representations, form: lp.NormalForm) -> lp.NormalForm:
    """What is below a selector of SELECT: the matches that it compares, with the support."""
    assert isinstance(form, lp.Relabel)
    assert isinstance(form.operand, lp.Selected)
    operand = form.operand.operand
    return lp.Relabel(operand, (lp.KeepSupport(shown_labels(given.query)),), form.span)


def _plain(form: Any) -> Any:
    """A form whose events do not say whether they are simultaneous."""
    if isinstance(form, tuple):
        return tuple(map(_plain, form))
    if isinstance(form, lp.Event):
        return replace(form, simultaneous=False)
    if not is_dataclass(form) or isinstance(form, type) or not _is_form(form):
        return form
    changed = {
        one.name: _plain(getattr(form, one.name))
        for one in fields(form)
        if one.init and one.name != "span"
    }
    return replace(form, **changed)


def _is_form(part: object) -> bool:
    return type(part).__module__ == lp.__name__ and hasattr(part, "span")


def _plain_parts(form: lp.NormalForm) -> list[Any]:
    return [_plain(one) for one in parts_of(form) if isinstance(one, lp.Selected)]


class _Checks:
    """The matches of a flat form that satisfy its clauses."""

    def __init__(self, flat: FlatForm, forms: Forms) -> None:
        if flat.first:
            raise NotUnderstoodError("NXT of events with a key")
        if any(one.part is not None for one in flat.absent):
            raise NotUnderstoodError("an absent part whose events have one key")
        if any(one.key for one in flat.absent_parts):
            raise NotUnderstoodError("an absent part whose events have one key")
        self._flat = flat
        self._forms = forms
        self._stream = forms.stream
        inside = flat.windows or flat.absent or flat.absent_parts
        before = flat.events_before or flat.parts_before
        self._looks_further = bool(inside or before or flat.after)
        self._named: dict[int, tuple[str, ...]] = {}

    def matches(self, end: int) -> frozenset[Match]:
        """Those that end at a position, without their roles."""
        found: Collection[Match] = self._forms.matches(self._flat.form, ALONE, end)
        for one in self._flat.clauses:
            if not found:
                break
            ask = partial(self._decides, one)
            found = self._forms.holding(found, id(one), self._read(one), ask)
        return frozenset(
            [
                (start, self._forms.labels.kept(mu, is_label))
                for start, mu in found
                if self._holds(start, end, mu)
            ]
        )

    def _holds(self, start: int, end: int, mu: Labelling) -> bool:
        """Whether a match that satisfies the clauses satisfies the rest."""
        if not self._looks_further:
            return True
        sets, flat = self._forms.labels.sets(mu), self._flat
        return (
            all(
                self._stream.fits(one.window, first, last)
                for one in flat.windows
                for first, last in _ranges(sets, one.first, one.last, same=True)
            )
            and not any(self._lies(one, sets) for one in flat.absent)
            and not any(self._part_lies(one, sets) for one in flat.absent_parts)
            and not any(self._is_before(one, sets) for one in flat.events_before)
            and not any(self._part_is_before(one, sets) for one in flat.parts_before)
            and not any(self._is_after(one, start, end, sets) for one in flat.after)
        )

    # --- clauses ----------------------------------------------------------------------------------

    def _read(self, one: RoleClause) -> tuple[str, ...]:
        """The labels that a clause names, and the marks of rounds that it asks for."""
        if id(one) not in self._named:
            pairs = combinations(range(len(one.iterations)), 2)
            marks = {one.round_mark, *(one.round_of(a, b) for a, b in pairs)} - {None}
            self._named[id(one)] = (*self._forms.names(one.clause), *sorted(map(str, marks)))
        return self._named[id(one)]

    def _decides(self, one: RoleClause, sets: Mapping[str, tuple[int, ...]]) -> bool:
        clause, conditions = one.clause, self._stream.conditions
        if one.when == "pairs":
            return all(
                conditions.any_true(clause.predicates, chosen, sets)
                for chosen in self._choices(one, sets)
            )
        mark = one.round_mark
        if mark is None:
            rounds = [sets]
        else:
            begins = sets.get(mark, ())
            rounds = [
                {
                    label: tuple(p for p in places if _round(begins, p) == number)
                    for label, places in sets.items()
                }
                for number in range(1, len(begins) + 1)
            ]
        return all(self._in_round(one, inside) for inside in rounds)

    def _in_round(self, one: RoleClause, sets: Mapping[str, tuple[int, ...]]) -> bool:
        clause, conditions = one.clause, self._stream.conditions
        if one.when not in ("earlier", "witness"):
            return conditions.clause_holds(clause, sets)
        (role,) = clause.labels
        places = sets.get(role, ())
        for number, place in enumerate(places):
            truths = [
                conditions.any_true(clause.predicates, {role: place}, {role: (earlier, place)})
                for earlier in places[:number]
            ]
            if truths and not (all(truths) if one.when == "earlier" else any(truths)):
                return False
        return True

    def _choices(
        self, one: RoleClause, sets: Mapping[str, tuple[int, ...]]
    ) -> Iterator[dict[str, int]]:
        roles = one.clause.labels
        if len(one.iterations) != len(roles):
            raise NotUnderstoodError("conditions on rounds and functions of labels")
        pairs = [
            (a, b, mark)
            for a, b in combinations(range(len(roles)), 2)
            if (mark := one.round_of(a, b)) is not None
        ]
        for way in product(*[sets.get(role, ()) for role in roles]):
            if all(
                _round(sets.get(mark, ()), way[a]) == _round(sets.get(mark, ()), way[b])
                for a, b, mark in pairs
            ):
                yield dict(zip(roles, way, strict=True))

    # --- what must not be there -------------------------------------------------------------------

    def _is_one(
        self,
        events: tuple[lp.Event, ...],
        clauses: tuple[RoleClause, ...],
        place: int,
        sets: Mapping[str, tuple[int, ...]],
    ) -> bool:
        if not any(self._forms.satisfied(one.type, one.clauses, place) for one in events):
            return False
        if any(one.round_mark is not None for one in clauses):
            raise NotUnderstoodError("an absence that is compared with a round")
        there = {**sets, ABSENT: (place,)}
        return all(self._stream.conditions.clause_holds(one.clause, there) for one in clauses)

    def _lies(self, one: AbsentEvent, sets: Mapping[str, tuple[int, ...]]) -> bool:
        return any(
            self._is_one(one.events, one.clauses, place, sets)
            for first, last in _ranges(sets, one.first, one.last, same=one.inclusive)
            for place in _inside(first, last, inclusive=one.inclusive)
        )

    def _part_lies(self, one: AbsentPart, sets: Mapping[str, tuple[int, ...]]) -> bool:
        return any(
            start >= inside[0]
            for first, last in _ranges(sets, one.first, one.last, same=one.inclusive)
            if (inside := _inside(first, last, inclusive=one.inclusive))
            for end in inside
            for start in self._starts(one.form, one.window, end)
        )

    def _starts(self, form: lp.NormalForm, window: core.Window | None, end: int) -> Iterator[int]:
        for start, _ in self._forms.matches(form, ALONE, end):
            if window is None or self._stream.fits(window, start, end):
                yield start

    def _is_before(self, one: EventBefore, sets: Mapping[str, tuple[int, ...]]) -> bool:
        return any(
            self._stream.fits(one.length, place, first)
            and self._is_one(one.events, one.clauses, place, sets)
            for first in sets.get(one.first, ())
            for place in range(first)
        )

    def _part_is_before(self, one: PartBefore, sets: Mapping[str, tuple[int, ...]]) -> bool:
        return any(
            self._stream.fits(one.length, start, first)
            for first in sets.get(one.first, ())
            for end in range(first)
            for start in self._starts(one.form, one.window, end)
        )

    def _is_after(
        self,
        one: EventAfter | PartAfter,
        start: int,
        end: int,
        sets: Mapping[str, tuple[int, ...]],
    ) -> bool:
        begin = start if one.from_start else end
        for place in range(end + 1, len(self._stream.events)):
            if not self._stream.fits(one.length, begin, place):
                continue
            if isinstance(one, EventAfter):
                if self._is_one(one.events, one.clauses, place, sets):
                    return True
            elif any(first > end for first in self._starts(one.form, one.window, place)):
                return True
        return False


def _round(begins: tuple[int, ...], place: int) -> int:
    """The number of the round in which a position is, by the first positions of the rounds."""
    return sum(begin <= place for begin in begins)


def _ranges(
    sets: Mapping[str, tuple[int, ...]], first: str, last: str, *, same: bool
) -> Iterator[tuple[int, int]]:
    """From each event with one role to the next one with the other; `same`: it can be one event."""
    for begin in sets.get(first, ()):
        ends = [one for one in sets.get(last, ()) if one > begin or (same and one == begin)]
        if ends:
            yield begin, ends[0]


def _inside(first: int, last: int, *, inclusive: bool) -> range:
    return range(first, last + 1) if inclusive else range(first + 1, last)

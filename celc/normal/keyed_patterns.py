"""Patterns that must be absent and whose events have one common key, by equalities.

Suppose that all conditions across events in an absent pattern are equalities, which tie its events
to each other, and events of the match at most to that key. Then the events of each key can be
followed by themselves, like those of a part without conditions (`AbsentPart`). Only one match of
the pattern is remembered for each key: among those that have ended so far, the one with the latest
start. If any of them lies behind an event, or fits the window around the pattern, this one does.

Equalities are joined where they share a label and its value. A label that some match does not bind
joins nothing, because the condition then holds without it. So every match binds at least two labels
of each join, which makes all values of the join equal; others are compared with one join only. Each
event has one value in each join, of the same attribute for all events. These values make the key.
"""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core.formula import Clause, Expression, Window
from celc.core.terms import labels_in_order
from celc.normal import normal_form as lp
from celc.normal.equalities import MAX_KEY, Term, equality, equality_of
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import always_binds, events_of, is_correlated


class NotKeyedError(Exception):
    """The events of a pattern are not tied to each other by one key."""


@frozen
class OuterTie:
    """The value of a label around the pattern equals a term of the key."""

    label: str
    outer: Expression
    key: Expression
    written: Clause


@frozen
class KeyedPattern:
    """A pattern without its conditions, the window around it, and its key."""

    form: NormalForm
    window: Window | None
    terms: tuple[Expression, ...]
    ties: tuple[OuterTie, ...]


def keyed_pattern_of(form: NormalForm, bound_outside: frozenset[str]) -> KeyedPattern:
    """A form as a pattern with a key. Raises NotKeyedError where it has none. `bound_outside` are
    the labels around it that every match binds."""
    window = None
    whole = form
    while isinstance(whole, lp.Scope | lp.Correlated | lp.Within):
        if isinstance(whole, lp.Within):
            if window is not None:
                raise NotKeyedError
            window = whole.window
        whole = whole.operand
    reader = _Reader(bound_outside)
    plain, _ = reader.read(form, top=True)
    terms, ties = reader.key(len(tuple(events_of(plain))))
    return KeyedPattern(plain, window, terms, ties)


_Node: TypeAlias = tuple[str, frozenset[int], Expression]
"""A label, the numbers of its events (empty: it is bound outside), and a term."""


@dataclass(slots=True)
class _Asked:
    """A clause; for each of its labels that are bound inside, the numbers of its events, and
    whether every match binds it."""

    clause: Clause
    inside: dict[str, tuple[frozenset[int], bool]]


@dataclass(slots=True)
class _Reader:
    bound_outside: frozenset[str]
    events: list[lp.Event] = field(default_factory=list)
    clauses: list[_Asked] = field(default_factory=list)

    def read(self, form: NormalForm, *, top: bool = False) -> tuple[NormalForm, range]:
        """The form without conditions across events, and the numbers of its events."""
        first, before = len(self.events), len(self.clauses)
        if not is_correlated(form):
            self.events += events_of(form)
            return form, range(first, len(self.events))
        match form:
            case lp.Sequence():
                operands = tuple(self.read(one)[0] for one in form.operands)
                plain: NormalForm = replace(form, operands=operands)
            case lp.Correlated():
                plain, numbers = self.read(form.operand, top=top)
                self.clauses += (_Asked(clause, {}) for clause in form.clauses)
                for asked in self.clauses[len(self.clauses) - len(form.clauses) :]:
                    self._bind(asked, form.own, plain, numbers)
            case lp.Scope():
                plain, numbers = self.read(form.operand, top=top)
                for asked in self.clauses[before:]:
                    self._bind(asked, form.labels, plain, numbers)
            case lp.Within() if top:
                plain, _ = self.read(form.operand, top=top)
            case _:
                raise NotKeyedError
        return plain, range(first, len(self.events))

    def _bind(
        self, asked: _Asked, labels: tuple[str, ...], form: NormalForm, numbers: range
    ) -> None:
        """Find the events of the labels that are bound here."""
        for label in labels_in_order(asked.clause):
            if label in labels and label not in asked.inside:
                carry = frozenset(n for n in numbers if label in self.events[n].labels)
                if not carry:
                    raise NotKeyedError  # the condition holds in every match
                asked.inside[label] = carry, always_binds(form, label)

    def key(self, events: int) -> tuple[tuple[Expression, ...], tuple[OuterTie, ...]]:
        """The terms of the key, and what ties labels outside to them."""
        joins: list[dict[_Node, Clause]] = []
        beside: list[tuple[_Node, _Node, Clause]] = []
        for asked in self.clauses:
            sides = equality_of(asked.clause)
            if sides is None or not asked.inside:
                raise NotKeyedError
            (one, is_firm), (other, is_other_firm) = (self._node(asked, side) for side in sides)
            if not is_firm and not is_other_firm:
                raise NotKeyedError
            if not (is_firm and is_other_firm):
                pair = (one, other) if is_firm else (other, one)
                beside.append((*pair, asked.clause))
                continue
            met = [join for join in joins if one in join or other in join]
            joined = {one: asked.clause, other: asked.clause}
            for join in met:
                joined = join | joined
            joins = [*(join for join in joins if join not in met), joined]
        attached: dict[_Node, int] = {}
        for firm, node, clause in beside:
            number = next((n for n, join in enumerate(joins) if firm in join), None)
            if number is None or attached.setdefault(node, number) != number:
                raise NotKeyedError
            joins[number][node] = clause
        terms: dict[Expression, None] = {}
        ties: list[OuterTie] = []
        for join in joins:
            term, found = self._of_join(join, events)
            terms[term] = None
            ties += found
        if not 1 <= len(terms) <= MAX_KEY:
            raise NotKeyedError
        return tuple(terms), tuple(ties)

    def _node(self, asked: _Asked, term: Term) -> tuple[_Node, bool]:
        """A side of an equality, and whether every match binds its label."""
        label, plain = term
        numbers, is_firm = asked.inside.get(label, (frozenset(), label in self.bound_outside))
        return (label, numbers, plain), is_firm

    def _of_join(self, join: dict[_Node, Clause], events: int) -> tuple[Expression, list[OuterTie]]:
        """The term of the key that equal values make, and the labels outside that also have it."""
        inside = [node for node in join if node[1]]
        covered = frozenset[int]().union(*(numbers for _, numbers, _ in inside))
        if len(covered) < events or len({plain for _, _, plain in inside}) != 1:
            raise NotKeyedError
        label, _, term = inside[0]
        ties = []
        for (outer, numbers, plain), clause in join.items():
            if not numbers:
                written = equality((label, term), (outer, plain), clause)
                ties.append(OuterTie(outer, plain, term, written))
        return term, ties

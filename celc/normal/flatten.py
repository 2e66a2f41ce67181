"""Correlated forms → forms without correlation whose events carry *roles*, and clauses over roles.

A role says that an event is one of those that a condition compares: it is a mark like a label, but
one that is shown nowhere. With the roles on the events, all that a match needs to satisfy can be
read off its marked events: for every choice of an event of each role, the clause is TRUE. Where
FILTER stood, and which labels were visible there, no longer matters.

In the rounds of an iteration, a clause compares the events that one round has bound, with each
other and with events bound outside. Where it names several labels of a round, the first event of
each round carries a mark as well, and the clause says which of its roles have to be of one round
(`RoleClause`). A clause about one position of a round and others outside needs no such mark: to
hold in every round is to hold for every position.

What is absent has no events in the match; where it is a single event, it is looked for among all
events that lie in the match's way (`AbsentEvent`). Not everything can be said in roles. Conditions
in longer patterns that must be absent, below selectors, which compare a match with others, and
below AND, and functions of the label sets of one round are left to the definition (`definition` in
the runtime).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, assert_never

from celc.core import formula as core
from celc.core.fold import is_constant
from celc.core.formula import Clause, Expression, Predicate
from celc.core.terms import labels_in_order, looks_back, nodes_named_in
from celc.core.traversal import Leaf, map_expression, map_leaves, nodes_of
from celc.diagnostics.source import Span
from celc.normal import normal_form as lp
from celc.normal.normal_form import (
    ROLE,
    AddRole,
    NormalForm,
    is_correlated,
    shown,
    with_operands,
)
from celc.normal.rewrite import disjunction, relabel

When: TypeAlias = Literal["pairs", "neighbours", "earlier", "witness", "complete"]


@dataclass(frozen=True, slots=True)
class RoleClause:
    """A clause whose labels are roles.

    `iterations`: for each role of the clause, the numbers of the iterations around it, the
    outermost first. `when` it can be decided, as a match is put together from its last event back:

    * `pairs`: as soon as an event is there for each of its roles, for every such choice;
    * `neighbours`: for each event of its one role, when the one before it is there (PREV);
    * `earlier`: the same for all that are before it, which PREV stands for here;
    * `witness`: for each event of its one role but the first, when some event before it is there
      that satisfies it (which PREV stands for); that of the events that still wait which asks for
      most is all that has to be known of them;
    * `complete`: when the match is (functions of a label's set).

    Which events are compared with each other: a scope lies within an iteration or around it, so the
    iterations around one role are the first ones of those around another, or the other way round.
    In a round of the innermost iteration around both, a choice takes both events from that round.
    Where no iteration is around both, nothing ties the two: an event that is bound outside meets
    the events of every round. So a choice is asked exactly if each two of its events are of one
    round of the innermost iteration around both (`round_of`).
    """

    clause: Clause
    written: Clause
    iterations: tuple[tuple[int, ...], ...]
    when: When = "pairs"

    @property
    def round_mark(self) -> str | None:
        """The mark of the innermost rounds around all roles; None: no iteration is around them."""
        around = _common(self.iterations)
        return mark_of_round(around[-1]) if around else None

    def round_of(self, *places: int) -> str | None:
        """The same of some of the roles, by their places in the clause."""
        around = _common([self.iterations[place] for place in places])
        return mark_of_round(around[-1]) if around else None

    def shared_iterations(self) -> frozenset[int]:
        """The iterations whose rounds have to be told apart."""
        if self.when == "pairs":
            pairs = itertools.combinations(self.iterations, 2)
            return frozenset(around[-1] for around in map(_common, pairs) if around)
        around = _common(self.iterations)
        return frozenset(around[-1:])


@dataclass(frozen=True, slots=True)
class AbsentEvent:
    """What must not lie inside a match: one of `events` for which all clauses are TRUE, for every
    choice of an event for each of their other roles. The absent event itself plays `ABSENT`.

    It is looked for from the event that plays `first` to the one that plays `last`, these included
    or not.
    """

    events: tuple[lp.Event, ...]
    clauses: tuple[RoleClause, ...]
    first: str
    last: str
    inclusive: bool


ABSENT = f"{ROLE}absent"


def mark_of_round(iteration: int) -> str:
    """The mark of the first event of each round of an iteration."""
    return f"{ROLE}round {iteration}"


def _common(chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The iterations around all of several roles; each chain goes on as a longer one does."""
    shortest = min(chains, key=len, default=())
    assert all(chain[: len(shortest)] == shortest for chain in chains), chains
    return shortest


@dataclass(frozen=True, slots=True)
class FlatForm:
    """A form whose events carry roles, and what these must satisfy."""

    form: NormalForm
    clauses: tuple[RoleClause, ...]
    absent: tuple[AbsentEvent, ...] = ()


class _NotFlatError(Exception):
    """The conditions cannot be read off the marked events of a match."""


def flatten(form: NormalForm) -> FlatForm | None:
    """A correlated form with roles in place of its correlations; None where that cannot be."""
    flattener = _Flattener()
    try:
        flat = flattener.scope(form)
        clauses = tuple(flattener.clauses)
        # The inner ones first: marking the first round of an iteration takes that round out of it.
        for iteration in sorted(flattener.rounds, reverse=True):
            flat = _with_round_mark(flat, iteration, mark_of_round(iteration))
            assert mark_of_round(iteration) in lp.labels_of(flat)
        if flattener.rounds and flattener.splits:
            return None  # a round that has been taken out of its iteration would go unmarked
    except _NotFlatError:
        return None
    return FlatForm(_without_rounds(flat), clauses, tuple(flattener.absent))


@dataclass(slots=True)
class _Binding:
    """A scope that is being flattened: the labels it binds, the roles asked of them so far, and the
    iterations around it."""

    labels: frozenset[str]
    iterations: tuple[int, ...]
    roles: dict[str, str] = field(default_factory=dict)


class _Flattener:
    def __init__(self) -> None:
        self.clauses: list[RoleClause] = []
        self.rounds: set[int] = set()
        self.absent: list[AbsentEvent] = []
        self.splits = False
        self._scopes: list[_Binding] = []
        self._iterations: list[int] = []
        self._next_role = 0
        self._next_iteration = 0
        self._branches = 0

    def scope(self, form: NormalForm) -> NormalForm:
        """The top of a form, or a scope inside."""
        if not isinstance(form, lp.Scope):
            return self._flat(form)
        binding = _Binding(frozenset(form.labels), tuple(self._iterations))
        self._scopes.append(binding)
        flat = self._flat(form.operand)
        self._scopes.pop()
        return _with_roles(flat, binding.roles)

    def _flat(self, form: NormalForm) -> NormalForm:
        if not is_correlated(form):
            return form
        match form:
            case lp.Scope():
                return self.scope(form)
            case lp.Correlated():
                return self._correlated(form)
            case lp.Sequence():
                return replace(form, operands=tuple(map(self._flat, form.operands)))
            case lp.Disjunction():
                self._branches += 1
                flat_parts = tuple(map(self._flat, form.operands))
                self._branches -= 1
                return disjunction(flat_parts, form.span)
            case lp.Iteration():
                number = self._next_iteration
                self._next_iteration += 1
                self._iterations.append(number)
                flat = self._flat(form.operand)
                self._iterations.pop()
                return lp.Iteration(flat, form.contiguous, form.span, number)
            case lp.All():
                return replace(form, left=self._flat(form.left), right=self._flat(form.right))
            case lp.Unless() if not is_correlated(form.right):
                return replace(form, left=self._flat(form.left))
            case lp.Absence() if not is_correlated(form.middle):
                return replace(form, left=self._flat(form.left), right=self._flat(form.right))
            case lp.Selected() if form.strategy == "STRICT":
                return replace(form, operand=self._flat(form.operand))
            case lp.Relabel():
                flat = self._flat(form.operand)
                for change in form.changes:
                    flat = relabel(flat, change)
                return flat
            case lp.Where():
                return replace(form, operand=self._flat(form.operand))
            case lp.Unless():
                left = self._flat(form.left)
                left, binding = self._without_event(form.right, form.sees, left, left)
                return _with_roles(left, binding.roles)
            case lp.Absence():
                left, right = self._flat(form.left), self._flat(form.right)
                both, binding = self._without_event(form.middle, form.sees, left, right)
                return _with_roles(both, binding.roles)
            case lp.Event() | lp.Conjunction() | lp.Selected():
                raise _NotFlatError
            case _:
                assert_never(form)

    def _without_event(
        self, form: NormalForm, sees: tuple[str, ...], left: NormalForm, right: NormalForm
    ) -> tuple[NormalForm, _Binding]:
        """The left side without an absent event inside it (where it is the right one too), or both
        without one between them; and the roles that are asked of their labels."""
        if self._iterations:
            raise _NotFlatError  # each round would have an absence of its own
        inclusive = left is right
        events, clauses, own = _single_event(form)
        binding = _Binding(frozenset(sees), ())
        self._scopes.append(binding)
        over_roles = tuple(self._absent_clause(clause, events, own) for clause in clauses)
        self._scopes.pop()
        first, last = self._new_role(), self._new_role()
        self.splits |= _has_iteration(left) or _has_iteration(right)
        self.absent.append(AbsentEvent(events, over_roles, first, last, inclusive))
        if inclusive:
            return _marked_last(_marked_first(left, first), last), binding
        sides = (_marked_last(left, first), _marked_first(right, last))
        return lp.Sequence(sides, (False,), form.span), binding

    def _absent_clause(
        self, clause: Clause, events: tuple[lp.Event, ...], own: frozenset[str]
    ) -> RoleClause:
        roles: dict[str, str] = {}
        for label in labels_in_order(clause):
            if all(label in event.labels for event in events):
                roles[label] = ABSENT
                continue
            if label in own:
                raise _NotFlatError  # some of what must be absent does not bind it
            binding = next((b for b in reversed(self._scopes) if label in b.labels), None)
            if binding is None or binding.iterations:
                raise _NotFlatError
            if label not in binding.roles:
                binding.roles[label] = self._new_role()
            roles[label] = binding.roles[label]
        if _when(clause) != "pairs":
            raise _NotFlatError
        predicates = tuple(_renamed(predicate, roles) for predicate in clause.predicates)
        labels = tuple(dict.fromkeys(roles[label] for label in clause.labels))
        return RoleClause(Clause(predicates, labels, clause.span), clause, ((),) * len(labels))

    def _new_role(self) -> str:
        self._next_role += 1
        return f"{ROLE}role {self._next_role - 1}"

    def _correlated(self, form: lp.Correlated) -> NormalForm:
        flat = self._flat(form.operand)
        own = _Binding(frozenset(form.own), tuple(self._iterations))
        applies: str | None = None
        for clause in form.clauses:
            if self._branches and not own.labels.intersection(clause.labels):
                # It is asked only where this branch is taken, which none of its roles says.
                applies = applies or self._role_of_all(flat)
                self._clause(clause, own, applies)
            else:
                self._clause(clause, own, None)
        flat = _with_roles(flat, own.roles)
        for label in form.own if applies else ():
            flat = relabel(flat, AddRole(label, str(applies)))
        return flat

    def _role_of_all(self, form: NormalForm) -> str:
        """A new role, for all events of a form."""
        if not _shows_labels(form):
            raise _NotFlatError  # some match of it might carry no role at all
        return self._new_role()

    def _clause(self, clause: Clause, own: _Binding, applies: str | None) -> None:
        roles: dict[str, str] = {}
        around: dict[str, tuple[int, ...]] = {}
        for label in labels_in_order(clause):
            binding = next((b for b in (own, *reversed(self._scopes)) if label in b.labels), None)
            assert binding is not None, f"nothing binds {label}"
            if label not in binding.roles:
                binding.roles[label] = self._new_role()
            roles[label] = binding.roles[label]
            around[roles[label]] = binding.iterations
        predicates = tuple(_renamed(predicate, roles) for predicate in clause.predicates)
        labels = tuple(roles[label] for label in clause.labels)
        when = _when(clause)
        if applies is not None:
            labels = (*labels, applies)
            around[applies] = own.iterations
            when = "complete" if when == "neighbours" else when
        if when == "complete" and any(around.values()):
            raise _NotFlatError  # the rounds of a complete match are not told apart
        over_roles = Clause(predicates, labels, clause.span)
        witness = sufficient(over_roles) if when == "complete" and applies is None else None
        if witness is not None:
            self._add(witness, clause, around, "witness")
            return
        self._add(over_roles, clause, around, when)
        early = necessary(over_roles)
        if early is not None:
            kind: When = "earlier" if any(map(looks_back, early.predicates)) else "pairs"
            self._add(early, clause, around, kind)

    def _add(
        self, over_roles: Clause, written: Clause, around: dict[str, tuple[int, ...]], when: When
    ) -> None:
        iterations = tuple(around[role] for role in over_roles.labels)
        added = RoleClause(over_roles, written, iterations, when)
        self.rounds |= added.shared_iterations()
        self.clauses.append(added)


def _when(clause: Clause) -> When:
    nodes = [node for predicate in clause.predicates for node in nodes_named_in(predicate)]
    if any(isinstance(node, core.Aggregate) for node in nodes):
        return "complete"
    if not any(map(looks_back, clause.predicates)):
        return "pairs"
    return "neighbours" if len(clause.labels) == 1 else "complete"


def necessary(clause: Clause) -> Clause | None:
    """What a comparison with MAX or MIN asks of each single event, if it asks that of all of them.

    `x.a > MAX(PRIOR x.a)` asks x.a to be greater than each of the values before it, and is decided
    by the first one that is not smaller; `x.a > MIN(PRIOR x.a)` asks that of some value only, and
    so can be decided by nothing but the whole set. These are the false-value and true-value
    consistent conditions of the SASE paper on expensive queries (section 5.2). NULLs are skipped,
    and that some value is not NULL is left to the clause itself.
    """
    sides = _compared_with_extreme(clause)
    if sides is None:
        return None
    left, operator, right, span = sides
    assert right.attribute is not None
    if (right.function, operator[0]) not in (("MAX", ">"), ("MIN", "<")):
        return None
    if right.prior:
        one: Expression = core.Previous(right.label, right.attribute, right.type, right.span)
        labels = clause.labels
        if labels != (right.label,):
            return None
    else:
        one = core.AttributeValue(right.label, right.attribute, right.type, right.span)
        labels = tuple(dict.fromkeys((*clause.labels, right.label)))
        if right.label in clause.labels:
            return None  # the chosen event and the one of the set are two of one role
    return Clause(
        (
            core.Comparison(operator, left, one, span),
            core.NullTest(one, False, span),
        ),
        labels,
        clause.span,
    )


def sufficient(clause: Clause) -> Clause | None:
    """A comparison of x with MIN(PRIOR x.a) or MAX(PRIOR x.a) that a single value before x decides
    to be TRUE, as a comparison with PREV(x.a), which stands for that value.

    Whether it is TRUE of the event that asks for most decides for all that wait with it: those ask
    for less, and what comes before it comes before them.
    """
    sides = _compared_with_extreme(clause)
    if sides is None:
        return None
    left, operator, right, span = sides
    if not right.prior or (right.function, operator[0]) not in (("MIN", ">"), ("MAX", "<")):
        return None
    if clause.labels != (right.label,) or is_constant(left):
        return None
    assert right.attribute is not None
    before = core.Previous(right.label, right.attribute, right.type, right.span)
    return Clause((core.Comparison(operator, left, before, span),), clause.labels, clause.span)


def _compared_with_extreme(
    clause: Clause,
) -> tuple[Expression, core.ComparisonOperator, core.Aggregate, Span] | None:
    """A clause that compares an expression on chosen events with the value of one function."""
    if len(clause.predicates) != 1:
        return None
    (predicate,) = clause.predicates
    if not isinstance(predicate, core.Comparison) or predicate.beside:
        return None
    left, right, operator = predicate.left, predicate.right, predicate.operator
    if isinstance(left, core.Aggregate):
        left, right, operator = right, left, core.MIRRORED[operator]
    if not isinstance(right, core.Aggregate) or right.attribute is None:
        return None
    if any(isinstance(node, core.Aggregate | core.Previous) for node in nodes_of(left)):
        return None
    return left, operator, right, predicate.span


def _renamed(predicate: Predicate, roles: dict[str, str]) -> Predicate:
    def change(node: Leaf) -> Expression:
        return replace(node, label=roles[node.label])

    renamed = map_leaves(predicate, change)
    if isinstance(predicate, core.Comparison | core.Membership) and predicate.beside:
        beside = tuple(map_expression(operand, change) for operand in predicate.beside)
        assert isinstance(renamed, core.Comparison | core.Membership)
        return replace(renamed, beside=beside)
    return renamed


def _with_roles(form: NormalForm, roles: dict[str, str]) -> NormalForm:
    for label, role in roles.items():
        form = relabel(form, AddRole(label, role))
    return form


def _shows_labels(form: NormalForm) -> bool:
    """Whether every event of every match carries a label, as far as that can be seen."""
    if isinstance(form, lp.Event):
        return bool(shown(frozenset(form.labels)))
    if isinstance(form, lp.Unless):
        return _shows_labels(form.left)
    if isinstance(form, lp.Absence):
        return _shows_labels(form.left) and _shows_labels(form.right)
    if isinstance(form, lp.Relabel):
        return all(isinstance(change, AddRole) for change in form.changes) and _shows_labels(
            form.operand
        )
    return all(map(_shows_labels, lp.operands_of(form)))


def _with_round_mark(form: NormalForm, iteration: int, mark: str) -> NormalForm:
    """The form with a mark on the first event of each round of one of its iterations."""
    if isinstance(form, lp.Iteration) and form.number == iteration:
        return replace(form, operand=_marked_first(form.operand, mark))
    return with_operands(form, lambda part: _with_round_mark(part, iteration, mark))


def _marked_first(form: NormalForm, mark: str) -> NormalForm:
    match form:
        case lp.Event():
            return replace(form, labels=tuple(sorted({*form.labels, mark})))
        case lp.Sequence():
            first = _marked_first(form.operands[0], mark)
            return replace(form, operands=(first, *form.operands[1:]))
        case lp.Disjunction():
            return replace(form, operands=tuple(_marked_first(o, mark) for o in form.operands))
        case lp.Iteration():
            # The first round of the inner iteration alone.
            first = _marked_first(form.operand, mark)
            both = lp.Sequence((first, form), (form.contiguous,), form.span)
            return disjunction((first, both), form.span)
        case lp.Absence() | lp.Unless():
            return replace(form, left=_marked_first(form.left, mark))
        case _:
            raise _NotFlatError


def _marked_last(form: NormalForm, mark: str) -> NormalForm:
    match form:
        case lp.Event():
            return replace(form, labels=tuple(sorted({*form.labels, mark})))
        case lp.Sequence():
            last = _marked_last(form.operands[-1], mark)
            return replace(form, operands=(*form.operands[:-1], last))
        case lp.Disjunction():
            return replace(form, operands=tuple(_marked_last(o, mark) for o in form.operands))
        case lp.Iteration():
            last = _marked_last(form.operand, mark)
            both = lp.Sequence((form, last), (form.contiguous,), form.span)
            return disjunction((last, both), form.span)
        case lp.Absence():
            return replace(form, right=_marked_last(form.right, mark))
        case lp.Unless():
            return replace(form, left=_marked_last(form.left, mark))
        case _:
            raise _NotFlatError


def _has_iteration(form: NormalForm) -> bool:
    return any(isinstance(part, lp.Iteration) for part in lp.forms_in(form))


def _single_event(
    form: NormalForm,
) -> tuple[tuple[lp.Event, ...], tuple[Clause, ...], frozenset[str]]:
    """What a form of one event can be, its conditions across events, and the labels it may bind."""
    match form:
        case lp.Event():
            return (form,), (), frozenset()
        case lp.Scope():
            events, clauses, own = _single_event(form.operand)
            return events, clauses, own.union(form.labels)
        case lp.Correlated():
            events, clauses, own = _single_event(form.operand)
            return events, (*clauses, *form.clauses), own.union(form.own)
        case lp.Disjunction() if all(isinstance(o, lp.Event) for o in form.operands):
            return tuple(o for o in form.operands if isinstance(o, lp.Event)), (), frozenset()
        case _:
            raise _NotFlatError


def _without_rounds(form: NormalForm) -> NormalForm:
    """The form without numbers on its iterations."""
    if isinstance(form, lp.Iteration):
        return lp.Iteration(_without_rounds(form.operand), form.contiguous, form.span)
    return with_operands(form, _without_rounds)

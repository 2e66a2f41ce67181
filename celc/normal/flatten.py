"""Correlated forms → flat forms, where possible.

Roles cannot express everything. These conditions are left to the definition (`definition` in the
runtime): conditions in longer patterns that must be absent; conditions below selectors whose choice
is not that of a chain (`chains`); functions of the label sets of one round.

Long: one pass over a form, whose absences and conditions share the scopes around them.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias, assert_never

from celc.core import formula as core
from celc.core.formula import ROLE, Clause, Expression, Predicate
from celc.core.terms import labels_in_order, looks_back
from celc.core.traversal import Leaf, map_expression, map_leaves
from celc.normal import normal_form as lp
from celc.normal.absent_forms import (
    NotFlatError,
    can_be_followed,
    is_single_event,
    is_watchable,
    last_events,
    single_event,
    to_be_absent,
)
from celc.normal.chains import NotAChainError, Place, chain_of
from celc.normal.conditions.extremes import necessary, sufficient
from celc.normal.constructors import disjunction
from celc.normal.equalities import MAX_KEY, equality
from celc.normal.flat_form import (
    ABSENT,
    AbsentEvent,
    AbsentPart,
    EventAfter,
    EventBefore,
    FirstWithKey,
    FlatForm,
    KeyedPart,
    NotFlat,
    PartAfter,
    PartBefore,
    RoleClause,
    RoleWindow,
    When,
    mark_of_round,
    when_decided,
)
from celc.normal.keyed_patterns import NotKeyedError, OuterTie, keyed_pattern_of
from celc.normal.marks import (
    UnmarkableError,
    marked,
    marked_ends,
    marked_first,
    marked_last,
    marked_rounds,
    without_numbers,
)
from celc.normal.normal_form import AddRole, AddToAll, NormalForm, shown
from celc.normal.rewrite import relabel
from celc.normal.traversal import (
    always_binds,
    forms_in,
    is_correlated,
    labels_of,
    operands_of,
)

_ROUNDS = "each round of a repetition has an absence or a choice of its own"
_HELD = "an absence compares events that are not there in each match, or that repeat"
_SEVERAL = "an absence compares several of its events with others, or more than single values"
_OPEN = "a condition is asked only in matches of one branch, which their labels do not show"


def flatten(form: NormalForm, query: core.Query | None = None) -> FlatForm | NotFlat:
    """The flat form of a correlated form; NotFlat where roles cannot express its conditions.

    `query` is the query of the form where its events may last. Then its matches take one event
    after another.
    """
    flattener = _Flattener()
    try:
        flat = flattener.scope(form)
        if query is not None and query.begin is not None:
            flat = flattener.one_ends_before_another(flat, query.begin, query.order_by[0])
        clauses = tuple(flattener.clauses)
        # Inner iterations first: marking the first round of an iteration takes that round out of
        # it.
        for iteration in sorted(flattener.rounds, reverse=True):
            flat = marked_rounds(flat, iteration, mark_of_round(iteration))
            assert mark_of_round(iteration) in labels_of(flat)
        if flattener.rounds and flattener.splits:
            # A round that has been taken out of its iteration would have no mark.
            reason = "an absence has bounds in a repetition whose rounds are compared"
            return NotFlat(reason, form.span)
    except NotFlatError as problem:
        return problem.told
    except UnmarkableError:
        return NotFlat("no one part holds the event at which an absence begins or ends", form.span)
    windows = tuple(flattener.windows)
    return _without_unbound(
        FlatForm(
            without_numbers(flat),
            clauses,
            tuple(flattener.absent),
            tuple(flattener.first),
            windows,
            tuple(flattener.absent_parts),
            tuple(flattener.events_before),
            tuple(flattener.parts_before),
            tuple(flattener.after),
        )
    )


def _without_unbound(flat: FlatForm) -> FlatForm:
    """The form without clauses about roles of no event, because they hold in every match. Another
    condition may have taken away all events of a label, as x IS B does for a label of A."""
    known = labels_of(flat.form) | {ABSENT}

    def asked(clauses: tuple[RoleClause, ...]) -> tuple[RoleClause, ...]:
        return tuple(clause for clause in clauses if known.issuperset(clause.clause.labels))

    after = tuple(
        replace(one, clauses=asked(one.clauses)) if isinstance(one, EventAfter) else one
        for one in flat.after
    )
    before = tuple(replace(one, clauses=asked(one.clauses)) for one in flat.events_before)
    return replace(
        flat,
        clauses=asked(flat.clauses),
        absent=tuple(replace(one, clauses=asked(one.clauses)) for one in flat.absent),
        events_before=before,
        after=after,
    )


@dataclass(slots=True)
class _Binding:
    """A scope that is being flattened: its labels, the iterations around it, and the roles of its
    labels so far."""

    labels: frozenset[str]
    iterations: tuple[int, ...]
    roles: dict[str, str] = field(default_factory=dict)


_Sides: TypeAlias = tuple[NormalForm, ...]
"""The left side of UNLESS alone, or both sides of an absence in between."""


class _Flattener:
    def __init__(self) -> None:
        self.clauses: list[RoleClause] = []
        self.rounds: set[int] = set()
        self.absent: list[AbsentEvent] = []
        self.first: list[FirstWithKey] = []
        self.windows: list[RoleWindow] = []
        self.absent_parts: list[AbsentPart] = []
        self.events_before: list[EventBefore] = []
        self.parts_before: list[PartBefore] = []
        self.after: list[EventAfter | PartAfter] = []
        self.splits = False
        self._scopes: list[_Binding] = []
        self._iterations: list[int] = []
        self._next_role = 0
        self._next_iteration = 0
        self._branches = 0

    def scope(self, form: NormalForm) -> NormalForm:
        """The form without correlation; `form` is a whole form or a scope in it."""
        if not isinstance(form, lp.Scope):
            return self._flat(form)
        binding = _Binding(frozenset(form.labels), tuple(self._iterations))
        self._scopes.append(binding)
        flat = self._flat(form.operand)
        self._scopes.pop()
        return _with_roles(flat, binding.roles)

    def one_ends_before_another(
        self,
        form: NormalForm,
        begin: core.AttributeDeclaration,
        end: core.AttributeDeclaration,
    ) -> NormalForm:
        """The form for events that last: each event of a match starts after the one before has
        ended. `;` and `+` mean this. The order of the stream, by ends, ensures only half of it."""
        role = self._new_role()
        before = core.Previous(role, end.name, end.type, form.span)
        start = core.AttributeValue(role, begin.name, begin.type, form.span)
        starts = core.Comparison("<", before, start, form.span)
        self._add(
            Clause((starts,), (role,), form.span), _overlapping(form), {role: ()}, "neighbours"
        )
        return relabel(form, AddToAll(role))

    # Long: a case for each kind of form.
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
                return replace(form, operand=flat, number=number)
            case lp.All() | lp.Conjunction():
                # The two sides of AND have the same labels. So one match can have the roles of
                # both, and it is a match of both if it satisfies the clauses of both.
                return replace(form, left=self._flat(form.left), right=self._flat(form.right))
            case lp.Unless() if not is_correlated(form.right):
                return replace(form, left=self._flat(form.left))
            case lp.Absence() if not is_correlated(form.middle):
                return replace(form, left=self._flat(form.left), right=self._flat(form.right))
            case lp.ThenFirst() if not any(map(is_correlated, operands_of(form)[1:])):
                return replace(form, left=self._flat(form.left))
            case lp.Selected() if form.strategy == "STRICT":
                return replace(form, operand=self._flat(form.operand))
            case lp.Selected() if form.strategy in ("NXT", "LAST", "MAX"):
                return self._chosen(form)
            case lp.Relabel():
                flat = self._flat(form.operand)
                for change in form.changes:
                    flat = relabel(flat, change)
                return flat
            case lp.Where():
                return replace(form, operand=self._flat(form.operand))
            case lp.Within():
                first, last = self._new_role(), self._new_role()
                self.windows.append(RoleWindow(form.window, first, last))
                return marked_ends(self._flat(form.operand), first, last)
            case lp.Unless() | lp.Absence():
                return self._without(form)
            case lp.ThenFirst():
                reason = "FIRST chooses by conditions that compare events"
                raise NotFlatError(reason, form)
            case lp.AbsenceBefore():
                return self._absence_before(form)
            case lp.AbsenceAfter():
                return self._absence_after(form)
            case lp.Event() | lp.Selected() | lp.MarkedEnds():
                reason = "a selector or an absence inside has conditions that compare events"
                raise NotFlatError(reason, form)
            case _:
                assert_never(form)

    def _chosen(self, form: lp.Selected) -> NormalForm:
        """A nested selector over a chain: its choice is an absence of single events."""
        if self._iterations:
            raise NotFlatError(_ROUNDS, form)
        try:
            chain = chain_of(form.operand, self._new_role)
        except NotAChainError:
            reason = "a selector inside compares matches of more than a chain"
            raise NotFlatError(reason, form) from None
        flat, places = self._flat(chain.form), chain.places
        if form.strategy == "LAST":
            for place, following in pairwise(places):
                self._no_other(place, place, following, places[-1], after=place)
        elif form.strategy == "NXT" and len(places) > 1:
            terms = tuple(dict.fromkeys(tie.term for tie in places[0].ties))
            if places[0].others or not 1 <= len(terms) <= MAX_KEY:
                # All events before the match would have to be searched.
                reason = "NXT inside chooses by all events before the match"
                raise NotFlatError(reason, form)
            self.first.append(FirstWithKey(places[0].events, terms, places[0].role))
            for before, place in pairwise(places[:-1]):
                self._no_other(place, before, place, places[-1], after=before)
        return flat

    def _no_other(
        self, place: Place, first: Place, last: Place, end: Place, *, after: Place
    ) -> None:
        """No other candidate for a place of a chain lies between the events at two others.

        Its equalities compare the event at `after` where possible. That event comes before the
        events that are looked for, so its key finds them.
        """
        clauses = []
        for tie in place.ties:
            known = next((one for one in after.ties if one.join == tie.join), None)
            role, term = (place.role, tie.term) if known is None else (after.role, known.term)
            clause = equality((ABSENT, tie.term), (role, term), tie.written)
            clauses.append(RoleClause(clause, tie.written, ((), ())))
        for written, own in place.others:
            labels = labels_in_order(written)
            roles = {label: ABSENT if label in own else end.role for label in labels}
            clauses.append(_over_absent(written, roles))
        self.absent.append(AbsentEvent(place.events, tuple(clauses), first.role, last.role, False))

    def _without(self, form: lp.Unless | lp.Absence) -> NormalForm:
        """The left side, or both sides, with roles for what must be absent inside or in between.
        Each alternative is handled by itself. What the automaton can decide stays."""
        inside = form.right if isinstance(form, lp.Unless) else form.middle
        sides: _Sides = (form.left,) if isinstance(form, lp.Unless) else (form.left, form.right)
        firm = {label for label in form.sees if any(always_binds(one, label) for one in sides)}
        flat = tuple(map(self._flat, sides))
        plain: NormalForm | None = None
        for part in to_be_absent(inside, frozenset(firm)):
            if not is_correlated(part):
                plain = part
            elif is_watchable(part):
                first, last = self._absent_part(part, inclusive=len(flat) == 1)
                flat = _marked_sides(flat, first, last)
            elif is_single_event(part):
                flat = self._without_event(part, form.sees, flat)
            else:
                flat = self._without_pattern(part, form.sees, frozenset(firm), flat)
        if isinstance(form, lp.Unless):
            return flat[0] if plain is None else lp.Unless(flat[0], plain, form.span)
        left, right = flat
        if plain is None:
            return lp.Sequence((left, right), (False,), form.span)
        return lp.Absence(left, plain, right, form.span)

    def _without_pattern(
        self, form: NormalForm, sees: tuple[str, ...], firm: frozenset[str], sides: _Sides
    ) -> _Sides:
        """The sides of an absence of a pattern whose events have one key, with roles."""
        try:
            pattern = keyed_pattern_of(form, firm)
        except NotKeyedError:
            reason = "the events of an absent pattern have not one key"
            raise NotFlatError(reason, form) from None
        if not can_be_followed(pattern.form):
            reason = "an absent pattern cannot be followed event by event"
            raise NotFlatError(reason, form)
        if pattern.ties and self._iterations:
            raise NotFlatError(_ROUNDS, form)
        first, last, inclusive = self._new_role(), self._new_role(), len(sides) == 1
        binding = _Binding(frozenset(sees), ())
        if not pattern.ties:
            between = (pattern.form, pattern.window, first, last, inclusive)
            self.absent_parts.append(AbsentPart(*between, pattern.terms))
        else:
            self._scopes.append(binding)
            clauses = tuple(self._outer_tie(tie) for tie in pattern.ties)
            self._scopes.pop()
            part = KeyedPart(pattern.form, pattern.window, pattern.terms)
            events = last_events(pattern.form)
            self.absent.append(AbsentEvent(events, clauses, first, last, inclusive, part))
        return tuple(_with_roles(one, binding.roles) for one in _marked_sides(sides, first, last))

    def _outer_tie(self, tie: OuterTie) -> RoleClause:
        """The clause that the key of an absent event equals a label's value around the pattern."""
        binding = next((b for b in reversed(self._scopes) if tie.label in b.labels), None)
        if binding is None or binding.iterations:
            raise NotFlatError(_HELD, tie.written)
        if tie.label not in binding.roles:
            binding.roles[tie.label] = self._new_role()
        outer = binding.roles[tie.label], tie.outer
        clause = equality((ABSENT, tie.key), outer, tie.written)
        return RoleClause(clause, tie.written, ((), ()))

    def _absent_part(self, form: NormalForm, *, inclusive: bool) -> tuple[str, str]:
        """The roles of the events between which a form in a window must not lie."""
        assert isinstance(form, lp.Within)
        first, last = self._new_role(), self._new_role()
        part = AbsentPart(form.operand, form.window, first, last, inclusive)
        self.absent_parts.append(part)
        return first, last

    def _absence_before(self, form: lp.AbsenceBefore) -> NormalForm:
        flat = self._flat(form.operand)
        roles: dict[str, str] = {}
        for part in to_be_absent(form.absent):
            first = self._new_role()
            window = part.window if isinstance(part, lp.Within) else None
            followed = part.operand if isinstance(part, lp.Within) else part
            if can_be_followed(followed):
                self.parts_before.append(PartBefore(followed, window, form.length, first))
                flat = marked(flat, (first,), ())
                continue
            if self._iterations:
                raise NotFlatError(_ROUNDS, part)
            events, clauses, own = single_event(part)
            binding = _Binding(frozenset(form.sees), (), roles)
            over_roles = self._absent_clauses(clauses, binding, events, own)
            self.splits |= _has_iteration(flat)
            self.events_before.append(EventBefore(events, over_roles, form.length, first))
            flat = marked_first(flat, first)
        return _with_roles(flat, roles)

    def _absence_after(self, form: lp.AbsenceAfter) -> NormalForm:
        if self._branches:
            reason = "branches of an OR have absences of their own at the end"
            raise NotFlatError(reason, form.absent)
        assert not self.after, "an absence stands at one end"
        flat = self._flat(form.operand)
        roles: dict[str, str] = {}
        for part in to_be_absent(form.absent):
            window = part.window if isinstance(part, lp.Within) else None
            followed = part.operand if isinstance(part, lp.Within) else part
            if can_be_followed(followed):
                self.after.append(PartAfter(followed, window, form.length, form.from_start))
                continue
            events, clauses, own = single_event(part)
            binding = _Binding(frozenset(form.sees), (), roles)
            over_roles = self._absent_clauses(clauses, binding, events, own)
            self.splits |= _has_iteration(flat)
            self.after.append(EventAfter(events, over_roles, form.length, form.from_start))
        return _with_roles(flat, roles)

    def _absent_clauses(
        self,
        clauses: tuple[Clause, ...],
        binding: _Binding,
        events: tuple[lp.Event, ...],
        own: frozenset[str],
    ) -> tuple[RoleClause, ...]:
        """The clauses on an absent event over roles. `binding` is what they see beside it."""
        self._scopes.append(binding)
        found = tuple(self._absent_clause(clause, events, own) for clause in clauses)
        self._scopes.pop()
        return found

    def _without_event(self, form: NormalForm, sees: tuple[str, ...], sides: _Sides) -> _Sides:
        """The sides of an absence of a single event, with roles for its bounds and for what its
        conditions see.

        With one side the event must not be inside it, otherwise not between the two.
        """
        if self._iterations:
            raise NotFlatError(_ROUNDS, form)
        inclusive = len(sides) == 1
        events, clauses, own = single_event(form)
        binding = _Binding(frozenset(sees), ())
        over_roles = self._absent_clauses(clauses, binding, events, own)
        first, last = self._new_role(), self._new_role()
        self.splits |= any(map(_has_iteration, sides))
        self.absent.append(AbsentEvent(events, over_roles, first, last, inclusive))
        if inclusive:
            found: _Sides = (marked_last(marked_first(sides[0], first), last),)
        else:
            found = (marked_last(sides[0], first), marked_first(sides[1], last))
        return tuple(_with_roles(one, binding.roles) for one in found)

    def _absent_clause(
        self, clause: Clause, events: tuple[lp.Event, ...], own: frozenset[str]
    ) -> RoleClause:
        roles: dict[str, str] = {}
        for label in labels_in_order(clause):
            if all(label in event.labels for event in events):
                roles[label] = ABSENT
                continue
            if label in own:
                # Some alternative of the event does not bind it.
                raise NotFlatError(_HELD, clause)
            binding = next((b for b in reversed(self._scopes) if label in b.labels), None)
            if binding is None or binding.iterations:
                raise NotFlatError(_HELD, clause)
            if label not in binding.roles:
                binding.roles[label] = self._new_role()
            roles[label] = binding.roles[label]
        if when_decided(clause) != "pairs":
            raise NotFlatError(_SEVERAL, clause)
        return _over_absent(clause, roles)

    def _new_role(self) -> str:
        self._next_role += 1
        return f"{ROLE}role {self._next_role - 1}"

    def _correlated(self, form: lp.Correlated) -> NormalForm:
        flat = self._flat(form.operand)
        own = _Binding(frozenset(form.own), tuple(self._iterations))
        applies: str | None = None
        for clause in form.clauses:
            if self._branches and not own.labels.intersection(clause.labels):
                # It is asked only in matches of this branch, and none of its roles shows the
                # branch.
                if not _shows_labels(flat):
                    raise NotFlatError(_OPEN, clause)
                applies = applies or self._new_role()
                self._clause(clause, own, applies)
            else:
                self._clause(clause, own, None)
        flat = _with_roles(flat, own.roles)
        for label in form.own if applies else ():
            flat = relabel(flat, AddRole(label, str(applies)))
        return flat

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
        when = when_decided(clause)
        if applies is not None:
            labels = (*labels, applies)
            around[applies] = own.iterations
            when = "complete" if when == "neighbours" else when
        if when == "complete" and any(around.values()):
            # The rounds of a complete match are not distinguished.
            text = "the events of a repetition inside of another are taken together in a condition"
            raise NotFlatError(text, clause)
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


OVERLAPPING = ("event",)  # the label of the condition that no two events overlap


def _overlapping(form: NormalForm) -> Clause:
    """The condition that no two events overlap, as a person reads it."""
    (label,) = OVERLAPPING
    end = core.Previous(label, "end", core.DataType.LONG, form.span)
    start = core.AttributeValue(label, "start", core.DataType.LONG, form.span)
    return Clause((core.Comparison("<", end, start, form.span),), OVERLAPPING, form.span)


def _over_absent(clause: Clause, roles: dict[str, str]) -> RoleClause:
    """A clause on an absent event over roles. No iteration is around it."""
    predicates = tuple(_renamed(predicate, roles) for predicate in clause.predicates)
    labels = tuple(dict.fromkeys(roles[label] for label in clause.labels))
    return RoleClause(Clause(predicates, labels, clause.span), clause, ((),) * len(labels))


def _renamed(predicate: Predicate, roles: dict[str, str]) -> Predicate:
    def change(node: Leaf) -> Expression:
        return replace(node, label=roles[node.label])

    def of_truth(truth: core.Truth) -> core.Truth:
        if isinstance(truth, core.Every | core.Some):
            return replace(truth, parts=tuple(map(of_truth, truth.parts)))
        return _renamed(truth, roles)

    if isinstance(predicate, core.Quantified):
        labels = tuple(roles[label] for label in predicate.labels)
        return replace(predicate, labels=labels, condition=of_truth(predicate.condition))
    renamed = map_leaves(predicate, change)
    if isinstance(predicate, core.PatternMatch) or not predicate.beside:
        return renamed
    beside = tuple(map_expression(operand, change) for operand in predicate.beside)
    assert not isinstance(renamed, core.PatternMatch | core.Quantified)
    return replace(renamed, beside=beside)


def _marked_sides(sides: _Sides, first: str, last: str) -> _Sides:
    """The sides of an absence, with roles on the events between which it lies."""
    if len(sides) == 1:
        return (marked(sides[0], (first,), (last,)),)
    left, right = sides
    return marked(left, (), (first,)), marked(right, (last,), ())


def _with_roles(form: NormalForm, roles: dict[str, str]) -> NormalForm:
    for label, role in roles.items():
        form = relabel(form, AddRole(label, role))
    return form


def _shows_labels(form: NormalForm) -> bool:
    """Whether every event of every match has a label, as far as the form shows."""
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
    return all(map(_shows_labels, operands_of(form)))


def _has_iteration(form: NormalForm) -> bool:
    return any(isinstance(part, lp.Iteration) for part in forms_in(form))

"""Checks that a formula stays within the first paper's bounds: bound labels, and their filters.

* AS, and the renaming of an event type, go on an event type, which may have labels already; on
  anything else they are errors.
* FILTER needs its labels bound on every branch: in its operand, or beside it in its scope or in a
  scope around it. (The paper's definition of well-formed would let a label that some branch of a
  round binds be completed by a binding outside the `+`; that is refused.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.terms import nodes_written_in
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import first_order
from celc.diagnostics.source import Span
from celc.resolve.first_order.bounds import NO_LABELS, BoundLabels, Bounds, places_binding


@frozen
class Findings:
    """The result of the checks of one formula.

    `judged`: the places where filters name labels. `confused`: the labels that filters, selectors
    or joined sides could confuse with labels of the same name under `+`.
    """

    judged: frozenset[Span]
    confused: frozenset[str]


def check(query: core.Query, bounds: Bounds, found: Diagnostics) -> Findings:
    """Report each part of a query's formula that goes beyond the first-order reading."""
    checker = _Checker(query, bounds, found)
    checker.check_scope(query.formula, None)
    return Findings(frozenset(checker.judged), frozenset(checker.confused))


@frozen
class _Scope:
    """The labels that a filter sees around its operand: those of its scope, and of scopes around.

    `beside` has the labels that are surely bound beside the part at hand.
    """

    whole: BoundLabels
    beside: frozenset[str]
    outer: _Scope | None

    def next_to(self, labels: frozenset[str]) -> _Scope:
        """The same scope for a part of it that has these labels beside it."""
        return replace(self, beside=self.beside | labels)


class _Checker:
    def __init__(self, query: core.Query, bounds: Bounds, found: Diagnostics) -> None:
        self._query = query
        self._bounds = bounds
        self._found = found
        self.judged: set[Span] = set()
        self.confused: set[str] = set()

    def check_scope(self, formula: core.Formula, outer: _Scope | None) -> None:
        """Check a formula that is a scope; `outer` is the scope around it."""
        self._check(formula, _Scope(self._bounds.of(formula), NO_LABELS, outer))

    def _check(self, formula: core.Formula, scope: _Scope) -> None:
        look(formula.span)
        match formula:
            case core.Atom():
                pass
            case core.As():
                if not _is_event(formula.operand):
                    self._found.add(first_order.composite_label(formula.label, formula.span))
                self._check(formula.operand, scope.next_to(frozenset({formula.label})))
            case core.Rename():
                self._check_renaming(formula)
                self.check_scope(formula.operand, scope)
            case core.Project() | core.Iteration():
                self.check_scope(formula.operand, scope)
            case core.Selector():
                bound = self._bounds.of(formula.operand)
                self.confused |= bound.maybe & bound.iterated
                self.check_scope(formula.operand, scope)
            case core.Sequence():
                self._check_side_by_side(formula.operands, scope)
            case core.Disjunction():
                for operand in formula.operands:
                    self._check(operand, scope)
            case core.Conjunction() | core.All():
                left, right = self._bounds.of(formula.left), self._bounds.of(formula.right)
                self.confused |= (left.maybe | right.maybe) & (left.iterated | right.iterated)
                self._check_side_by_side((formula.left, formula.right), scope)
            case core.Absence():
                self._check_side_by_side((formula.left, formula.right), scope)
                left, right = self._bounds.of(formula.left), self._bounds.of(formula.right)
                self.check_scope(formula.middle, scope.next_to(left.surely | right.surely))
            case core.ThenFirst():
                self._found.add(first_order.then_first(formula.span))
            case core.Unless():
                self._check(formula.left, scope)
                self.check_scope(formula.right, scope.next_to(self._bounds.of(formula.left).surely))
            case core.AbsenceBefore() | core.AbsenceAfter():
                self._check(formula.operand, scope)
                beside = self._bounds.of(formula.operand).surely
                self.check_scope(formula.absent, scope.next_to(beside))
            case core.Within():
                self._check(formula.operand, scope)
            case core.Filter():
                self._check(formula.operand, scope)
                self._check_filter(formula, scope)
            case _:
                assert_never(formula)

    def _check_side_by_side(self, parts: Sequence[core.Formula], scope: _Scope) -> None:
        times = Counter(label for part in parts for label in self._bounds.of(part).surely)
        for part in parts:
            own = self._bounds.of(part).surely
            others = frozenset(label for label, n in times.items() if n > (label in own))
            self._check(part, scope.next_to(others))

    def _check_renaming(self, formula: core.Rename) -> None:
        old, new = formula.old, formula.new
        if old in self._bounds.types:
            if not _is_event(formula.operand):
                self._found.add(first_order.composite_rename(old, new, formula.span))
            return
        bound = self._bounds.of(formula.operand)
        if {old, new} & bound.maybe and {old, new} & bound.iterated:
            self.confused |= {old, new}

    def _check_filter(self, formula: core.Filter, scope: _Scope) -> None:
        checked: set[str] = set()
        for clause in formula.clauses:
            for predicate in clause.predicates:
                for node in nodes_written_in(predicate):
                    match node:
                        case core.AttributeValue() | core.Previous() | core.Aggregate():
                            if node.label in self._bounds.types:
                                continue
                            self.judged.add(node.span)
                            if node.label not in checked:
                                self._check_binding(node.label, node.span, formula.operand, scope)
                                checked.add(node.label)
                        case _:
                            pass

    def _check_binding(
        self, label: str, span: Span, operand: core.Formula, innermost: _Scope
    ) -> None:
        """Report a label of a filter that some branch does not bind outside `+`."""
        own = self._bounds.of(operand)
        surely, crossed = label in own.surely, label in own.iterated
        visible = own.surely
        scope: _Scope | None = innermost
        while scope is not None and not surely:
            visible |= scope.beside | scope.whole.surely
            crossed = crossed or label in scope.whole.iterated
            surely = label in scope.beside or label in scope.whole.surely
            if not surely and label in scope.whole.maybe:
                bound = self._first_place(label, operand, under_iteration=False)
                self._found.add(first_order.partly_bound_label(label, sorted(visible), span, bound))
                return
            scope = scope.outer
        if not surely:
            assert crossed, "the resolver knows what binds a label"
            bound = self._first_place(label, operand, under_iteration=True)
            self._found.add(first_order.iterated_label(label, sorted(visible), span, bound))
        elif crossed:
            self.confused.add(label)

    def _first_place(
        self, label: str, nearest: core.Formula, *, under_iteration: bool
    ) -> tuple[Span, ...]:
        """The first place that binds a label, in the nearest formula or else in the whole one."""
        for formula in (nearest, self._query.formula):
            for place in places_binding(formula, label, under_iteration=under_iteration):
                return (place,)
        return ()


def _is_event(formula: core.Formula) -> bool:
    while isinstance(formula, core.As):
        formula = formula.operand
    return isinstance(formula, core.Atom)

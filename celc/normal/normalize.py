"""Formula → LP-normal form: conditions and labels are moved to the events that they are about.

Theorem 2 of the CEL paper rewrites every well-formed formula with unary conditions this way, by
cases, and exponentially in the worst case. Here most conditions need no cases:

* A clause about one label asks the same of every event of that label. So it moves to those events
  wherever they stand, also under `+`.
* A clause about several labels (`x.a > 3 OR y.b < 2`, each comparison about one of them) holds for
  every pair of positions exactly if all of x satisfy its part or all of y satisfy theirs. For
  conditions on independent positions, "for all p, q: P(p) or Q(q)" is "(for all p: P(p)) or (for
  all q: Q(q))", also where a label is empty. Only this needs cases. They are made in the smallest
  part of the formula that binds more than one of the labels.

A condition that stands above a selector, or on a COUNT, MIN, MAX, FIRST or LAST, cannot move. It
stays where it is as a *fact* (`Where`), which an automaton keeps track of. A condition on a label
of another scope is a fact about that scope's match. The matches for which it is true and those for
which it is false are two cases. In each case the condition is a constant.

A clause about several events at a time (an equality of two labels, PREV, a sum) stays where it is
written (`Correlated`), with all its predicates. A later pass decides how to find its events.

Long: one pass, in which all operators share the scopes and the cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import assert_never

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.formula import Clause, Predicate
from celc.core.terms import labels_named, labels_of_clause, looks_back, nodes_named_in
from celc.core.traversal import labels_bound, nodes_of
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics, error
from celc.diagnostics.source import Source, Span
from celc.normal import normal_form as lp
from celc.normal.conditions.constants import with_values
from celc.normal.conditions.count_limits import counts_too_large_in
from celc.normal.conditions.facts import (
    every_event,
    fact_of,
    on_event,
)
from celc.normal.constructors import (
    absence,
    absence_after,
    absence_before,
    all_placed,
    conjunction,
    correlated,
    disjunction,
    is_empty,
    iteration,
    scope,
    selected,
    sequence,
    then_first,
    unless,
    within,
)
from celc.normal.firsts import as_absence, here, with_history
from celc.normal.rewrite import relabel, restrict, restrict_each, truth_of, where
from celc.normal.traversal import count_events, open_labels

_MAX_CASES = 8  # facts about one scope that its parts may ask for; each doubles the cases


def normalize(
    query: core.Query, source: Source, *, max_events: int = 20_000
) -> tuple[lp.NormalForm, tuple[Diagnostic, ...]]:
    """The LP-normal form of a query's formula with only its output labels, and warnings.

    Raises CelError for every COUNT that is compared with too large a number, or where the form
    would have more than `max_events` events.
    """
    diagnostics = Diagnostics(source)
    diagnostics.extend(counts_too_large_in(query.formula))
    diagnostics.raise_errors()
    normalizer = _Normalizer(
        source,
        diagnostics,
        max_events,
        simultaneous=query.simultaneous,
        lasting=query.lasting,
        of_rows=_columns_of_rows(query),
    )
    form = normalizer.scope(query.formula)
    strategy = query.strategy
    if strategy != "ALL" and strategy != "ANY":
        form = selected(strategy, form, query.strategy_span or query.span)
    if query.per_start is not None and query.compares_ends:
        is_first = query.per_start.end == "FIRST"
        form = selected("FIRST_OF_START" if is_first else "NXT_OF_ENDS", form, query.per_start.span)
    form = relabel(form, lp.KeepLabels(output_labels(query)))
    if is_empty(form):
        diagnostics.add(
            warn_no_match(
                query.formula.span, "its conditions exclude each other whatever the events are"
            )
        )
    return form, diagnostics.in_order()


def output_labels(query: core.Query) -> tuple[str, ...]:
    """The labels that a query projects on: its label columns, then labels that only expressions
    name, and the one that all events of a match have for LIMIT … PER.

    Totals are of matches with all their labels; those that the totals name come first. Some may be
    gone with their branches.
    """
    if query.total is not None:
        nodes = [node for item in query.total.items for node in nodes_of(item.value)]
        named = [node.label for node in nodes if isinstance(node, core.TotalOf)]
        known = dict.fromkeys(label for label in named if label is not None)
        return (*known, *sorted(labels_bound(query.formula) - known.keys()))
    shown = [item.label for item in query.output if isinstance(item, core.OutputLabel)]
    asked = [item.labels for item in query.output if isinstance(item, core.OutputExpression)]
    if query.rate is not None and query.rate.support is not None:
        asked.append((query.rate.support,))
    return tuple(dict.fromkeys([*shown, *(label for labels in asked for label in labels)]))


def _columns_of_rows(query: core.Query) -> frozenset[str]:
    """The columns of events that hold attributes of the parameter set's row."""
    if query.parameters is None:
        return frozenset()
    return frozenset(column for column, _ in query.parameters.columns)


def warn_no_match(span: Span, reason: str) -> Diagnostic:
    """The warning that no stream has a match."""
    from celc.diagnostics.errors import warning

    return warning("never-matches", span, f"this formula can match nothing: {reason}")


# --- rewriting ------------------------------------------------------------------------------------


@frozen(eq=False)
class _Binder:
    """Labels that conditions further inside may name, and the facts about them assumed in this
    case."""

    labels: frozenset[str]
    assumed: Mapping[lp.Fact, bool]


class _UndecidedError(Exception):
    """A condition asks for a fact about another scope's labels that is not assumed yet."""

    def __init__(self, binder: _Binder, fact: lp.Fact, span: Span) -> None:
        super().__init__()
        self.binder = binder
        self.fact = fact
        self.span = span


class _Normalizer:
    """Bottom-up rewriting. Every form that it returns has the labels that its formula binds."""

    def __init__(
        self,
        source: Source,
        diagnostics: Diagnostics,
        max_events: int,
        *,
        simultaneous: bool,
        lasting: bool,
        of_rows: frozenset[str],
    ) -> None:
        self._of_rows = of_rows
        self._source = source
        self._lasting = lasting
        self._simultaneous = simultaneous
        self._diagnostics = diagnostics
        self._max_events = max_events
        self._binders: list[_Binder] = []
        self._left = frozenset[str]()  # labels of the scope at hand to the left of the part at hand
        self._outside = 0  # how many binders are outside of the innermost FIRST

    def scope(self, formula: core.Formula) -> lp.NormalForm:
        """The matches of a scope. Conditions inside see the labels of its whole match."""
        labels = labels_bound(formula)
        left, self._left = self._left, frozenset()
        try:
            form = self._in_cases(labels, lambda binding: self._inside(binding, formula))
        finally:
            self._left = left
        return scope(form, labels, formula.span)

    def _inside(self, binding: _Binding, formula: core.Formula) -> lp.NormalForm:
        with binding():
            return self._form(formula)

    @contextmanager
    def _behind(self, labels: frozenset[str]) -> Iterator[None]:
        """While a part is rewritten that has these labels to its left."""
        left, self._left = self._left, self._left | labels
        try:
            yield
        finally:
            self._left = left

    @contextmanager
    def _in_first(self) -> Iterator[None]:
        """While the operand of a FIRST is rewritten, whose conditions see labels around it only as
        they are to its left."""
        outside, self._outside = self._outside, len(self._binders)
        try:
            yield
        finally:
            self._outside = outside

    def _in_cases(
        self,
        labels: frozenset[str],
        build: Callable[[_Binding], lp.NormalForm],
        assumed: Mapping[lp.Fact, bool] | None = None,
    ) -> lp.NormalForm:
        """The form that `build` makes, by cases over the facts that are asked for meanwhile.
        `build` gets a context manager. Conditions that are built inside it see the labels."""
        binder = _Binder(labels, assumed or {})

        @contextmanager
        def binding() -> Iterator[None]:
            self._binders.append(binder)
            try:
                yield
            finally:
                self._binders.pop()

        try:
            return build(binding)
        except _UndecidedError as undecided:
            if undecided.binder is not binder:
                raise
            fact, span = undecided.fact, undecided.span
        if len(binder.assumed) == _MAX_CASES:
            self._too_many_cases(span)
        cases = [
            where(
                self._in_cases(labels, build, {**binder.assumed, fact: truth}),
                fact if truth else lp.negated(fact),
                span,
            )
            for truth in (True, False)
        ]
        form = disjunction(tuple(cases), span)
        self._check_size(form, span)
        return form

    # Long: a case for each kind of formula.
    def _form(self, formula: core.Formula) -> lp.NormalForm:
        look(formula.span)
        match formula:
            case core.Atom():
                return disjunction(
                    tuple(
                        lp.Event(
                            event_type,
                            (),
                            (formula.label,),
                            self._text(formula.span),
                            formula.span,
                            self._simultaneous,
                        )
                        for event_type in formula.types
                    ),
                    formula.span,
                )
            case core.As():
                # The label goes to the support: events without a label stay without one.
                return relabel(self._form(formula.operand), lp.AddLabel(formula.label))
            case core.Rename():
                return relabel(
                    self.scope(formula.operand), lp.RenameLabel(formula.old, formula.new)
                )
            case core.Project():
                return relabel(self.scope(formula.operand), lp.KeepLabels(formula.labels))
            case core.Iteration():
                operand = self.scope(formula.operand)
                bounds = (formula.least, formula.most)
                return iteration(operand, formula.contiguous, formula.span, *bounds)
            case core.Sequence():
                return self._sequence(formula)
            case core.ThenFirst():
                return self._first(formula)
            case core.Disjunction():
                return disjunction(tuple(map(self._form, formula.operands)), formula.span)
            case core.Filter():
                return self._filter(formula)
            case core.Within():
                return within(self._form(formula.operand), formula.window, formula.span)
            case core.Selector():
                return selected(formula.strategy, self.scope(formula.operand), formula.span)
            case core.Conjunction():
                return conjunction(
                    self._form(formula.left), self._form(formula.right), formula.span
                )
            case core.All():
                return all_placed(self._form(formula.left), self._form(formula.right), formula.span)
            case core.Unless():
                return self._in_cases(
                    labels_bound(formula.left), lambda binding: self._unless(binding, formula)
                )
            case core.AbsenceBefore() | core.AbsenceAfter():
                return self._in_cases(
                    labels_bound(formula.operand),
                    lambda binding: self._beside_absence(binding, formula),
                )
            case core.Absence():
                return self._in_cases(
                    labels_bound(formula.left) | labels_bound(formula.right),
                    lambda binding: self._absence(binding, formula),
                )
            case _:
                assert_never(formula)

    def _unless(self, binding: _Binding, formula: core.Unless) -> lp.NormalForm:
        left = self._form(formula.left)
        with binding():
            right = self.scope(formula.right)
        sees = open_labels(right) & labels_bound(formula.left)
        return unless(left, right, formula.span, tuple(sorted(sees)))

    def _beside_absence(
        self, binding: _Binding, formula: core.AbsenceBefore | core.AbsenceAfter
    ) -> lp.NormalForm:
        operand = self._form(formula.operand)
        with binding():
            absent = self.scope(formula.absent)
        sees = tuple(sorted(open_labels(absent) & labels_bound(formula.operand)))
        length, span = formula.length, formula.span
        if isinstance(formula, core.AbsenceBefore):
            return absence_before(operand, absent, length, span, sees)
        from_start = formula.from_start
        return absence_after(operand, absent, length, span, sees, from_start=from_start)

    def _absence(self, binding: _Binding, formula: core.Absence) -> lp.NormalForm:
        left = self._form(formula.left)
        with self._behind(labels_bound(formula.left)):
            right = self._form(formula.right)
        with binding():
            middle = self.scope(formula.middle)
        beside = labels_bound(formula.left) | labels_bound(formula.right)
        sees = open_labels(middle) & beside
        return absence(left, middle, right, formula.span, tuple(sorted(sees)))

    def _sequence(self, formula: core.Sequence) -> lp.NormalForm:
        operands: list[lp.NormalForm] = []
        left = frozenset[str]()
        for operand in formula.operands:
            with self._behind(left):
                operands.append(self._form(operand))
            left |= labels_bound(operand)
        return sequence(tuple(operands), formula.contiguous, formula.span)

    def _first(self, formula: core.ThenFirst) -> lp.NormalForm:
        same = None if self._lasting else as_absence(formula)
        if same is not None:
            return self._form(same)
        labels = labels_bound(formula.left) | labels_bound(formula.operand)
        return self._in_cases(labels, lambda binding: self._then_first(binding, formula))

    def _then_first(self, binding: _Binding, formula: core.ThenFirst) -> lp.NormalForm:
        left = self._form(formula.left)
        own = labels_bound(formula.operand)
        absent = gap = None
        with self._in_first():
            chosen = self.scope(with_history(formula.operand, formula.looks_back))
            for label in formula.looks_back:
                chosen = relabel(chosen, lp.RenameLabel(here(label), label))
            if formula.absent is not None:
                absent = self.scope(formula.absent)
        if formula.gap is not None:
            with binding():
                gap = self.scope(formula.gap)
        named, beside = open_labels(chosen), frozenset[str]()
        if absent is not None:
            beside = open_labels(absent) & own
            named |= open_labels(absent) - own
        before = labels_bound(formula.left) | (own if formula.most != 1 else frozenset())
        further = named & self._left
        asked = (
            frozenset[str]()
            if gap is None
            else open_labels(gap) & (labels_bound(formula.left) | own)
        )
        of_rounds = asked & own if formula.most != 1 else frozenset()
        return then_first(
            lp.ThenFirst(
                left,
                chosen,
                formula.span,
                formula.least,
                formula.most,
                absent,
                gap,
                tuple(sorted((named & before) - further)),
                tuple(sorted(further)),
                tuple(sorted(beside)),
                tuple(sorted(asked - of_rounds)),
                tuple(sorted(of_rounds)),
            )
        )

    def _text(self, span: Span) -> str:
        return " ".join(self._source.slice(span).split())

    def _filter(self, formula: core.Filter) -> lp.NormalForm:
        form = self._form(formula.operand)
        bound = labels_bound(formula.operand)
        plain: list[tuple[str, tuple[Predicate, ...]]] = []
        for clause in with_values(formula.clauses, formula.operand, self._of_rows):
            asked = _asked_of_one_label(clause, bound)
            if asked is not None:
                plain.append(asked)
                continue
            form = self._restricted(restrict_each(form, plain), clause, bound)
            plain = []
            self._check_size(form, clause.span)
        form = restrict_each(form, plain)
        if formula.clauses:
            self._check_size(form, formula.clauses[0].span)
        return form

    def _restricted(
        self, form: lp.NormalForm, clause: Clause, bound: frozenset[str]
    ) -> lp.NormalForm:
        """The matches of a form that satisfy one clause."""
        look(clause.span)
        open_to_events = tuple(
            p for p in clause.predicates if looks_back(p) or fold_predicate(p) is None
        )
        if any(map(_is_correlated, open_to_events)) or self._is_of_the_left(clause, bound):
            if any(fold_predicate(p) for p in clause.predicates if not looks_back(p)):
                return form
            rest = Clause(open_to_events, clause.labels, clause.span)
            return correlated(form, rest, bound, clause.span)
        parts: dict[str, list[Predicate]] = {label: [] for label in clause.labels}
        facts: list[tuple[str, lp.Fact]] = []
        for predicate in clause.predicates:
            truth = fold_predicate(predicate)
            if _is_of_a_set(predicate):
                if truth is None:
                    fact = fact_of(predicate)
                    assert fact is not None, "refused before"
                    facts += [(simple.label, fact) for simple in lp.simple_facts(fact)[:1]]
                    if fact == lp.ALWAYS_TRUE:
                        return form
                elif truth:
                    return form
                continue
            labels = labels_named(predicate)
            if truth:
                # TRUE for every position; without positions the clause holds trivially.
                return form
            if truth is None:
                (label,) = labels
                parts[label].append(on_event(predicate))
        for label in [label for label in parts if label not in bound]:
            facts.append((label, every_event(label, tuple(dict.fromkeys(parts.pop(label))))))
        here: list[lp.Fact] = []
        for label, fact in facts:
            if label in bound:
                here.append(fact)
            elif self._assumed(label, fact, clause.span):
                return form
        predicates = {label: tuple(dict.fromkeys(part)) for label, part in parts.items()}
        if not here:
            return restrict(form, predicates or {lp.EVENT: ()})
        here += [every_event(label, part) for label, part in predicates.items()]
        return where(form, lp.AnyOf(tuple(here)) if len(here) > 1 else here[0], clause.span)

    def _is_of_the_left(self, clause: Clause, bound: frozenset[str]) -> bool:
        """Whether a clause in the operand of a FIRST names a label around it."""
        if not self._outside:
            return False
        inside = bound.union(*(binder.labels for binder in self._binders[self._outside :]))
        return not labels_of_clause(clause) <= inside

    def _assumed(self, label: str, fact: lp.Fact, span: Span) -> bool:
        """Whether a fact about a label of another scope is true in the present case."""
        for binder in reversed(self._binders):
            if label in binder.labels:
                if fact not in binder.assumed:
                    raise _UndecidedError(binder, fact, span)
                return binder.assumed[fact]
        # Nothing binds the label here. For conditions it is a label without positions.
        return truth_of(fact, frozenset()) is True

    def _check_size(self, form: lp.NormalForm, span: Span) -> None:
        if count_events(form) > self._max_events:
            self._diagnostics.add(
                error(
                    "normal-form-too-large",
                    span,
                    f"pushing this condition to its events takes more than "
                    f"{self._max_events:,} cases",
                    "an OR over several labels doubles the formula once more for each such "
                    "clause: put conditions on one label each, or FILTER smaller parts",
                )
            )
            self._diagnostics.raise_errors()

    def _too_many_cases(self, span: Span) -> None:
        self._diagnostics.add(
            error(
                "normal-form-too-large",
                span,
                f"there are more than {_MAX_CASES} different conditions on labels from outside the "
                "formulas that they filter",
                "each doubles the cases: put conditions on a label where it is bound, or split "
                "the query",
            )
        )
        self._diagnostics.raise_errors()


def _asked_of_one_label(
    clause: Clause, bound: frozenset[str]
) -> tuple[str, tuple[Predicate, ...]] | None:
    """A clause on the single events of one bound label; None for all others. Most clauses are of
    this kind. They only add conditions to events."""
    if len(clause.labels) != 1 or clause.labels[0] not in bound:
        return None
    asked = []
    for predicate in clause.predicates:
        if _is_correlated(predicate) or fold_predicate(predicate) is not None:
            return None
        if _is_of_a_set(predicate):
            return None
        asked.append(on_event(predicate))
    return clause.labels[0], tuple(dict.fromkeys(asked))


def _is_of_a_set(predicate: Predicate) -> bool:
    """Whether a predicate asks for all events of a label, and not for a chosen one."""
    return isinstance(predicate, core.Quantified) or any(
        isinstance(node, core.Aggregate) for node in nodes_named_in(predicate)
    )


def _is_correlated(predicate: Predicate) -> bool:
    """Whether a predicate is about more than one event at a time and not finite-state."""
    if isinstance(predicate, core.Quantified):
        return fold_predicate(predicate) is None and fact_of(predicate) is None
    nodes = nodes_named_in(predicate)
    if looks_back(predicate) or len(labels_named(predicate)) > 1:
        return True
    return any(isinstance(node, core.Aggregate) for node in nodes) and fact_of(predicate) is None


_Binding = Callable[[], "contextlib.AbstractContextManager[None]"]

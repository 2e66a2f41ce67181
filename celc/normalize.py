"""Formula → LP-normal form: conditions and labels are pushed to the events they speak of.

Theorem 2 of the CEL paper rewrites every well-formed formula with unary conditions this way, by
cases, and exponentially in the worst case. Here most conditions need no cases:

* A clause about one label asks the same of every event of that label, so it moves to those events
  wherever they stand, also under `+`.
* A clause about several labels (`x.a > 3 OR y.b < 2`, each comparison about one of them) holds for
  every pair of positions exactly if all of x satisfy its part or all of y satisfy theirs: of two
  conditions on independent positions, "for all p, q: P(p) or Q(q)" is "(for all p: P(p)) or (for
  all q: Q(q))", also where a label is empty. Only this needs cases, and it is done in the smallest
  part of the formula that binds more than one of the labels.

A condition that stands above a selector, or on a COUNT, MIN, MAX, FIRST or LAST, cannot move: it
stays where it is as a *fact* (`Where`), which an automaton keeps track of. A condition on a label
of another scope is a fact about that scope's match: the match where it holds and the one where it
fails are two cases, in each of which the condition is a constant.

What later parts of the language bring is refused here, with its place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from celc import formula as core
from celc import normal_form as lp
from celc.errors import Diagnostic, Diagnostics, error
from celc.facts import (
    MAX_COUNT,
    CountTooLargeError,
    every_event,
    fact_of,
    map_leaves,
    nodes_of,
    on_event,
)
from celc.fold import fold_predicate, operands_of
from celc.formula import Clause, Expression, Predicate
from celc.normal_form import (
    EVENT,
    AddLabel,
    AnyOf,
    CountOf,
    Disjunction,
    EndEvent,
    Event,
    EventClause,
    Fact,
    Iteration,
    KeepLabels,
    LabelChange,
    NormalForm,
    Not,
    RenameLabel,
    Sequence,
    SomeEvent,
    Where,
    changed,
    count_events,
    labels_of,
    simple_facts,
)
from celc.predicates import can_hold_together
from celc.source import Source, Span

_MAX_CASES = 8
"""Facts about one scope that its parts may ask for: each doubles the cases."""


def normalize(
    query: core.Query, source: Source, *, max_events: int = 20_000
) -> tuple[NormalForm, tuple[Diagnostic, ...]]:
    """The LP-normal form of a query's formula with only its output labels, and warnings.

    Raises CelError with every place that uses a part of the language that is not supported yet,
    or where the form would grow beyond `max_events` events.
    """
    diagnostics = Diagnostics(source)
    diagnostics.extend(_unsupported_in_clauses(query))
    diagnostics.extend(_unsupported_in(query.formula))
    diagnostics.raise_errors()
    normalizer = _Normalizer(source, diagnostics, max_events)
    form = normalizer.scope(query.formula)
    strategy = query.strategy
    if strategy != "ALL" and strategy != "ANY":
        form = selected(strategy, form, query.strategy_span or query.span)
    form = relabel(form, KeepLabels(output_labels(query)))
    if _is_empty(form):
        diagnostics.add(
            warn_no_match(
                query.formula.span, "its conditions exclude each other whatever the events are"
            )
        )
    assert is_normal(form)
    return form, diagnostics.in_order()


def output_labels(query: core.Query) -> tuple[str, ...]:
    """The labels that a query shows."""
    return tuple(item.label for item in query.output if isinstance(item, core.OutputLabel))


def is_normal(form: NormalForm) -> bool:
    """Whether every condition speaks of its own event only, and none can be decided beforehand."""
    if isinstance(form, Event):
        return all(
            fold_predicate(predicate) is None and not (_labels_named(predicate) - {EVENT})
            for clause in form.clauses
            for predicate in clause.predicates
        )
    return all(map(is_normal, lp.operands_of(form)))


def warn_no_match(span: Span, reason: str) -> Diagnostic:
    """The warning that no stream has a match."""
    from celc.errors import warning

    return warning("never-matches", span, f"this formula can match nothing: {reason}")


# --- what is not supported yet --------------------------------------------------------------------


def _unsupported(span: Span, what: str) -> Diagnostic:
    return error(
        "not-supported",
        span,
        f"{what} not supported yet",
        help=(
            "supported so far in conditions: attributes of one event, and COUNT, MIN, MAX, FIRST "
            "or LAST of one label compared with constants",
        ),
    )


def _unsupported_in_clauses(query: core.Query) -> list[Diagnostic]:
    return [
        error(
            "not-supported",
            item.span,
            "expressions in SELECT are not supported yet",
            help=("list labels, with the attributes to show: x, y[price]",),
        )
        for item in query.output
        if isinstance(item, core.OutputExpression)
    ]


def _unsupported_in(formula: core.Formula) -> list[Diagnostic]:
    """The places of a formula that this version cannot compile, in the order of the text."""
    match formula:
        case core.Atom():
            return []
        case core.As() | core.Rename() | core.Project() | core.Iteration() | core.Selector():
            return _unsupported_in(formula.operand)
        case core.Filter():
            return [
                *_unsupported_in(formula.operand),
                *(found for clause in formula.clauses for found in _unsupported_clause(clause)),
            ]
        case core.Sequence() | core.Disjunction():
            return [found for operand in formula.operands for found in _unsupported_in(operand)]
        case core.Absence():
            return [
                *_unsupported_in(formula.left),
                *_unsupported_in(formula.middle),
                *_unsupported_in(formula.right),
            ]
        case core.Conjunction() | core.All() | core.Unless():
            return [*_unsupported_in(formula.left), *_unsupported_in(formula.right)]
        case _:
            assert_never(formula)


def _unsupported_clause(clause: Clause) -> list[Diagnostic]:
    found = []
    for predicate in clause.predicates:
        nodes = _nodes(predicate)
        functions = [node for node in nodes if isinstance(node, core.Aggregate)]
        previous = [node for node in nodes if isinstance(node, core.Previous)]
        labels = _labels_named(predicate)
        try:
            if functions and fact_of(predicate) is not None:
                continue
        except CountTooLargeError:
            found.append(
                error(
                    "count-too-large",
                    predicate.span,
                    f"COUNT can be compared with numbers up to {MAX_COUNT:,} only",
                    help=(
                        "each number up to it is a state of the automaton: use a smaller one, or "
                        "count in the rows of the output",
                    ),
                )
            )
            continue
        for node in functions:
            name = f"{node.function}(PRIOR …)" if node.prior else f"{node.function}(…)"
            where = "" if node.prior or node.function in ("SUM", "AVG") else " of this shape"
            found.append(_unsupported(node.span, f"{name} in a condition{where} is"))
        found.extend(_unsupported(node.span, "PREV in a condition is") for node in previous)
        if not functions and not previous and len(labels) > 1:
            names = " and ".join(f"'{label}'" for label in sorted(labels))
            found.append(_unsupported(predicate.span, f"a condition that compares {names} is"))
    return found


def _nodes(predicate: Predicate) -> list[Expression]:
    return [node for operand in operands_of(predicate) for node in nodes_of(operand)]


def _labels_named(predicate: Predicate) -> set[str]:
    return {
        node.label
        for node in _nodes(predicate)
        if isinstance(node, core.AttributeValue | core.Aggregate | core.Previous)
    }


# --- rewriting ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Binder:
    """Labels that conditions further in may name, and what is assumed of them in this case."""

    labels: frozenset[str]
    assumed: Mapping[Fact, bool]


class _UndecidedError(Exception):
    """A condition asks for a fact about another scope's labels, of which nothing is assumed yet."""

    def __init__(self, binder: _Binder, fact: Fact, span: Span) -> None:
        super().__init__()
        self.binder = binder
        self.fact = fact
        self.span = span


class _Normalizer:
    """Bottom-up rewriting; every form it returns carries the labels that its formula binds."""

    def __init__(self, source: Source, diagnostics: Diagnostics, max_events: int) -> None:
        self._source = source
        self._diagnostics = diagnostics
        self._max_events = max_events
        self._binders: list[_Binder] = []

    def scope(self, formula: core.Formula) -> NormalForm:
        """The matches of a scope: conditions in it see the labels of its whole match."""
        return self._in_cases(labels_bound(formula), lambda binding: self._inside(binding, formula))

    def _inside(self, binding: _Binding, formula: core.Formula) -> NormalForm:
        with binding():
            return self._form(formula)

    def _in_cases(
        self,
        labels: frozenset[str],
        build: Callable[[_Binding], NormalForm],
        assumed: Mapping[Fact, bool] | None = None,
    ) -> NormalForm:
        """The form that `build` makes, by cases over the facts that are asked for meanwhile.

        `build` is given a context manager; what is built inside it sees the labels.
        """
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

    def _form(self, formula: core.Formula) -> NormalForm:
        match formula:
            case core.Atom():
                return disjunction(
                    tuple(
                        Event(
                            event_type, (), (formula.label,), self._text(formula.span), formula.span
                        )
                        for event_type in formula.types
                    ),
                    formula.span,
                )
            case core.As():
                # The label goes to the support, so not to events that carry none at this point.
                return relabel(self._form(formula.operand), AddLabel(formula.label))
            case core.Rename():
                return relabel(self.scope(formula.operand), RenameLabel(formula.old, formula.new))
            case core.Project():
                return relabel(self.scope(formula.operand), KeepLabels(formula.labels))
            case core.Iteration():
                return iteration(self.scope(formula.operand), formula.contiguous, formula.span)
            case core.Sequence():
                return sequence(
                    tuple(map(self._form, formula.operands)), formula.contiguous, formula.span
                )
            case core.Disjunction():
                return disjunction(tuple(map(self._form, formula.operands)), formula.span)
            case core.Filter():
                return self._filter(formula)
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
            case core.Absence():
                return self._in_cases(
                    labels_bound(formula.left) | labels_bound(formula.right),
                    lambda binding: self._absence(binding, formula),
                )
            case _:
                assert_never(formula)

    def _unless(self, binding: _Binding, formula: core.Unless) -> NormalForm:
        left = self._form(formula.left)
        with binding():
            right = self.scope(formula.right)
        return unless(left, right, formula.span)

    def _absence(self, binding: _Binding, formula: core.Absence) -> NormalForm:
        left, right = self._form(formula.left), self._form(formula.right)
        with binding():
            middle = self.scope(formula.middle)
        return absence(left, middle, right, formula.span)

    def _text(self, span: Span) -> str:
        return " ".join(self._source.slice(span).split())

    def _filter(self, formula: core.Filter) -> NormalForm:
        form = self._form(formula.operand)
        bound = labels_bound(formula.operand)
        for clause in formula.clauses:
            form = self._restricted(form, clause, bound)
            self._check_size(form, clause.span)
        return form

    def _restricted(self, form: NormalForm, clause: Clause, bound: frozenset[str]) -> NormalForm:
        """The matches of a form that satisfy one clause."""
        parts: dict[str, list[Predicate]] = {label: [] for label in clause.labels}
        facts: list[tuple[str, Fact]] = []
        for predicate in clause.predicates:
            truth = fold_predicate(predicate)
            if any(isinstance(node, core.Aggregate) for node in _nodes(predicate)):
                if truth is None:
                    fact = fact_of(predicate)
                    assert fact is not None, "refused before"
                    facts += [(simple.label, fact) for simple in simple_facts(fact)[:1]]
                    if fact == lp.ALWAYS_TRUE:
                        return form
                elif truth:
                    return form
                continue
            labels = _labels_named(predicate)
            if truth:
                # TRUE for every position, and where the label has none the clause holds vacuously.
                return form
            if truth is None:
                (label,) = labels
                parts[label].append(on_event(predicate))
        for label in [label for label in parts if label not in bound]:
            facts.append((label, every_event(label, tuple(dict.fromkeys(parts.pop(label))))))
        here: list[Fact] = []
        for label, fact in facts:
            if label in bound:
                here.append(fact)
            elif self._assumed(label, fact, clause.span):
                return form
        predicates = {label: tuple(dict.fromkeys(part)) for label, part in parts.items()}
        if not here:
            return restrict(form, predicates or {EVENT: ()})
        here += [every_event(label, part) for label, part in predicates.items()]
        return where(form, AnyOf(tuple(here)) if len(here) > 1 else here[0], clause.span)

    def _assumed(self, label: str, fact: Fact, span: Span) -> bool:
        """Whether a fact about a label of another scope is true in the case at hand."""
        for binder in reversed(self._binders):
            if label in binder.labels:
                if fact not in binder.assumed:
                    raise _UndecidedError(binder, fact, span)
                return binder.assumed[fact]
        # Nothing binds the label here, which conditions see as a label without positions.
        return truth_of(fact, frozenset()) is True

    def _check_size(self, form: NormalForm, span: Span) -> None:
        if count_events(form) > self._max_events:
            self._diagnostics.add(
                error(
                    "normal-form-too-large",
                    span,
                    f"pushing this condition to its events takes more than "
                    f"{self._max_events:,} cases",
                    help=(
                        "an OR over several labels doubles the formula once more for each such "
                        "clause: put conditions on one label each, or FILTER smaller parts",
                    ),
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
                help=(
                    "each doubles the cases: put conditions on a label where it is bound, or split "
                    "the query",
                ),
            )
        )
        self._diagnostics.raise_errors()


_Binding = Callable[[], "contextlib.AbstractContextManager[None]"]


def labels_bound(formula: core.Formula) -> frozenset[str]:
    """The labels a formula can bind at its own level (conditions aside)."""
    match formula:
        case core.Atom():
            return frozenset({formula.label})
        case core.As():
            return labels_bound(formula.operand) | {formula.label}
        case core.Rename():
            return (labels_bound(formula.operand) - {formula.old}) | {formula.new}
        case core.Project():
            return frozenset(formula.labels)
        case core.Iteration() | core.Filter() | core.Selector():
            return labels_bound(formula.operand)
        case core.Sequence() | core.Disjunction():
            return frozenset[str]().union(*map(labels_bound, formula.operands))
        case core.Conjunction() | core.All():
            return labels_bound(formula.left) | labels_bound(formula.right)
        case core.Unless():
            return labels_bound(formula.left)
        case core.Absence():
            return labels_bound(formula.left) | labels_bound(formula.right)
        case _:
            assert_never(formula)


# A clause by label: what each label's positions would have to satisfy for the clause to hold.
# The clause that nothing satisfies stands under EVENT.
_Parts = Mapping[str, tuple[Predicate, ...]]


def restrict(form: NormalForm, parts: _Parts) -> NormalForm:
    """The matches of a form that satisfy one clause, given by label."""
    if EVENT in parts:
        return Disjunction((), form.span)
    relevant = {label: parts[label] for label in parts}
    bound = labels_of(form)
    if any(label not in bound for label in relevant):
        # A label without positions: the clause holds vacuously.
        return form
    match form:
        case Event():
            return _restrict_event(form, tuple(p for part in relevant.values() for p in part))
        case Disjunction():
            return disjunction(tuple(restrict(o, parts) for o in form.operands), form.span)
        case Where():
            # Not `where`, which would push the fact in again, past what this has just put there.
            operand = restrict(form.operand, parts)
            return operand if _is_empty(operand) else Where(operand, form.fact, form.span)
        case lp.Unless():
            return unless(restrict(form.left, parts), form.right, form.span)
        case lp.Selected() | lp.Relabel():
            facts = tuple(every_event(label, part) for label, part in relevant.items())
            return Where(form, AnyOf(facts) if len(facts) > 1 else facts[0], form.span)
        case Iteration() if len(relevant) == 1:
            return iteration(restrict(form.operand, parts), form.contiguous, form.span)
        case lp.Conjunction() if len(relevant) == 1:
            return conjunction(restrict(form.left, parts), restrict(form.right, parts), form.span)
        case lp.All() if len(relevant) == 1:
            return all_placed(restrict(form.left, parts), restrict(form.right, parts), form.span)
        case lp.Absence() if len(relevant) == 1:
            return absence(
                restrict(form.left, parts), form.middle, restrict(form.right, parts), form.span
            )
        case Sequence() if len(relevant) == 1:
            return sequence(
                tuple(restrict(o, parts) for o in form.operands), form.contiguous, form.span
            )
        case Sequence():
            binding = [k for k, o in enumerate(form.operands) if labels_of(o) & relevant.keys()]
            if len(binding) == 1:
                operands = list(form.operands)
                operands[binding[0]] = restrict(operands[binding[0]], parts)
                return sequence(tuple(operands), form.contiguous, form.span)
        case Iteration() | lp.Conjunction() | lp.All() | lp.Absence():
            pass
        case _:
            assert_never(form)
    return disjunction(
        tuple(restrict(form, {label: relevant[label]}) for label in relevant), form.span
    )


def _restrict_event(event: Event, predicates: tuple[Predicate, ...]) -> NormalForm:
    clause = clause_on_type(EventClause(predicates), event.type)
    if clause is True:
        return event
    if clause is False:
        return Disjunction((), event.span)
    new = set(clause.predicates)
    if any(set(said.predicates) <= new for said in event.clauses):
        return event  # said already, and more
    kept = tuple(said for said in event.clauses if not new <= set(said.predicates))
    clauses = (*kept, clause)
    if not can_hold_together(clauses):
        return Disjunction((), event.span)
    return Event(event.type, clauses, event.labels, event.name, event.span)


def on_type(predicate: Predicate, event_type: core.EventType) -> Predicate:
    """The predicate on an event of a type: attributes that the type lacks are NULL."""

    def known(node: core.AttributeValue | core.Aggregate) -> Expression:
        assert node.attribute is not None
        if event_type.type_of(node.attribute) is not None:
            return node
        return core.Constant(None, node.type, node.span)

    return map_leaves(predicate, known)


def clause_on_type(clause: EventClause, event_type: core.EventType) -> EventClause | bool:
    """A clause on events of a type; True or False where all of them satisfy it, or none."""
    known: list[Predicate] = []
    for predicate in dict.fromkeys(on_type(p, event_type) for p in clause.predicates):
        truth = fold_predicate(predicate)
        if truth is True:
            return True
        if truth is None:
            known.append(predicate)
    return EventClause(tuple(known)) if known else False


# --- constructors that simplify -------------------------------------------------------------------


def _is_empty(form: NormalForm) -> bool:
    return isinstance(form, Disjunction) and not form.operands


def disjunction(operands: tuple[NormalForm, ...], span: Span) -> NormalForm:
    """OR, without empty operands, repeated ones and nesting."""
    flat: dict[NormalForm, None] = {}
    for operand in operands:
        parts = operand.operands if isinstance(operand, Disjunction) else (operand,)
        flat.update(dict.fromkeys(parts))
    if len(flat) == 1:
        return next(iter(flat))
    return Disjunction(tuple(flat), span)


def sequence(
    operands: tuple[NormalForm, ...], contiguous: tuple[bool, ...], span: Span
) -> NormalForm:
    """`;` and `:`; empty where an operand is."""
    if any(map(_is_empty, operands)):
        return Disjunction((), span)
    return Sequence(operands, contiguous, span)


def iteration(operand: NormalForm, contiguous: bool, span: Span) -> NormalForm:
    """`+` and `:+`; empty where the operand is."""
    if _is_empty(operand):
        return Disjunction((), span)
    return Iteration(operand, contiguous, span)


def conjunction(left: NormalForm, right: NormalForm, span: Span) -> NormalForm:
    """AND; empty where a side is."""
    if _is_empty(left) or _is_empty(right):
        return Disjunction((), span)
    return left if left == right else lp.Conjunction(left, right, span)


def all_placed(left: NormalForm, right: NormalForm, span: Span) -> NormalForm:
    """ALL; empty where a side is."""
    if _is_empty(left) or _is_empty(right):
        return Disjunction((), span)
    return lp.All(left, right, span)


def unless(left: NormalForm, right: NormalForm, span: Span) -> NormalForm:
    """UNLESS; the left alone where the right is empty."""
    if _is_empty(left) or _is_empty(right):
        return left
    return lp.Unless(left, right, span)


def absence(left: NormalForm, middle: NormalForm, right: NormalForm, span: Span) -> NormalForm:
    """`; ! ;`; a plain sequence where the middle is empty."""
    if _is_empty(left) or _is_empty(right):
        return Disjunction((), span)
    if _is_empty(middle):
        return sequence((left, right), (False,), span)
    return lp.Absence(left, middle, right, span)


def selected(strategy: lp.Strategy, operand: NormalForm, span: Span) -> NormalForm:
    """A selector; empty where its operand is."""
    return operand if _is_empty(operand) else lp.Selected(strategy, operand, span)


def where(form: NormalForm, fact: Fact, span: Span) -> NormalForm:
    """The matches of which a fact is true; on the events themselves where that says it all."""
    truth = truth_of(fact, labels_of(form))
    if truth is not None:
        return form if truth else Disjunction((), span)
    if isinstance(fact, Not) and isinstance(fact.fact, SomeEvent) and not fact.fact.holds:
        return restrict(form, {fact.fact.label: fact.fact.clause.predicates})
    if isinstance(form, Disjunction):
        return disjunction(tuple(where(operand, fact, span) for operand in form.operands), span)
    return Where(form, fact, span)


def truth_of(fact: Fact, labels: frozenset[str]) -> bool | None:
    """The truth of a fact about matches that bind no other labels than these, None if open."""
    match fact:
        case Not():
            truth = truth_of(fact.fact, labels)
            return None if truth is None else not truth
        case AnyOf():
            truths = [truth_of(part, labels) for part in fact.facts]
            if True in truths:
                return True
            return None if None in truths else False
        case SomeEvent() | EndEvent():
            return None if fact.label in labels else False
        case CountOf():
            if len(set(fact.truths)) == 1 or fact.label not in labels:
                return fact.truths[0]
            return None
        case _:
            assert_never(fact)


def relabel(form: NormalForm, change: LabelChange) -> NormalForm:
    """The same matches with another label set on each event.

    Every change maps a union of label sets to the union of their images, so it passes ALL too; but
    AND compares label sets, a selector looks at supports and a fact at labels before the change.
    """
    match form:
        case Event():
            return Event(
                form.type, form.clauses, changed(form.labels, [change]), form.name, form.span
            )
        case Iteration():
            return Iteration(relabel(form.operand, change), form.contiguous, form.span)
        case Sequence():
            return Sequence(
                tuple(relabel(o, change) for o in form.operands), form.contiguous, form.span
            )
        case Disjunction():
            return disjunction(tuple(relabel(o, change) for o in form.operands), form.span)
        case lp.All():
            return lp.All(relabel(form.left, change), relabel(form.right, change), form.span)
        case lp.Unless():
            return lp.Unless(relabel(form.left, change), form.right, form.span)
        case lp.Absence():
            return lp.Absence(
                relabel(form.left, change), form.middle, relabel(form.right, change), form.span
            )
        case lp.Relabel():
            return lp.Relabel(form.operand, (*form.changes, change), form.span)
        case lp.Conjunction() | lp.Selected() | Where():
            return lp.Relabel(form, (change,), form.span)
        case _:
            assert_never(form)

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

What later parts of the language bring is refused here, with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from celc import formula as core
from celc.errors import Diagnostic, Diagnostics, error
from celc.fold import fold_predicate
from celc.formula import Clause, Expression, Predicate
from celc.normal_form import (
    EVENT,
    Disjunction,
    Event,
    EventClause,
    Iteration,
    NormalForm,
    Sequence,
    count_events,
    labels_of,
)
from celc.predicates import can_hold_together
from celc.source import Source, Span


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
    form = normalizer.normal_form(query.formula)
    kept = {item.label for item in query.output if isinstance(item, core.OutputLabel)}
    form = _relabel(form, lambda labels: labels & kept)
    if _is_empty(form):
        diagnostics.add(
            _warn_no_match(
                query.formula.span, "its conditions exclude each other whatever the events are"
            )
        )
    assert is_normal(form)
    return form, diagnostics.in_order()


def is_normal(form: NormalForm) -> bool:
    """Whether every condition speaks of its own event only, and none can be decided beforehand."""
    match form:
        case Event():
            return all(
                fold_predicate(predicate) is None and not (_labels_named(predicate) - {EVENT})
                for clause in form.clauses
                for predicate in clause.predicates
            )
        case Iteration():
            return is_normal(form.operand)
        case Sequence() | Disjunction():
            return all(map(is_normal, form.operands))
        case _:
            assert_never(form)


def _warn_no_match(span: Span, reason: str) -> Diagnostic:
    from celc.errors import warning

    return warning("never-matches", span, f"this formula can match nothing: {reason}")


# --- what is not supported yet --------------------------------------------------------------------


def _unsupported(span: Span, what: str) -> Diagnostic:
    return error(
        "not-supported",
        span,
        f"{what} not supported yet",
        help=(
            "supported so far: event types, AS, `;`, `:`, `+`, `:+`, OR, renaming, PROJECT, and "
            "FILTER with conditions that each speak of one event",
        ),
    )


def _unsupported_in_clauses(query: core.Query) -> list[Diagnostic]:
    found = []
    if query.strategy not in ("ALL", "ANY"):
        found.append(
            _unsupported(
                query.strategy_span or query.span, f"the selector SELECT {query.strategy} is"
            )
        )
    found.extend(
        _unsupported(item.span, "expressions in SELECT are")
        for item in query.output
        if isinstance(item, core.OutputExpression)
    )
    return found


def _unsupported_in(formula: core.Formula) -> list[Diagnostic]:
    """The places of a formula that this version cannot compile, in the order of the text."""
    match formula:
        case core.Atom():
            return []
        case core.As() | core.Rename() | core.Project() | core.Iteration():
            return _unsupported_in(formula.operand)
        case core.Filter():
            return [
                *_unsupported_in(formula.operand),
                *(found for clause in formula.clauses for found in _unsupported_clause(clause)),
            ]
        case core.Sequence() | core.Disjunction():
            return [found for operand in formula.operands for found in _unsupported_in(operand)]
        case core.Selector():
            return [
                _unsupported(formula.span, f"the selector {formula.strategy}(…) is"),
                *_unsupported_in(formula.operand),
            ]
        case core.Absence():
            return [
                *_unsupported_in(formula.left),
                _unsupported(formula.middle.span, "`!` is"),
                *_unsupported_in(formula.middle),
                *_unsupported_in(formula.right),
            ]
        case core.Conjunction() | core.All() | core.Unless():
            word = {core.Conjunction: "AND", core.All: "ALL", core.Unless: "UNLESS"}[type(formula)]
            return [
                _unsupported(formula.span, f"{word} between formulas is"),
                *_unsupported_in(formula.left),
                *_unsupported_in(formula.right),
            ]
        case _:
            assert_never(formula)


def _unsupported_clause(clause: Clause) -> list[Diagnostic]:
    found = []
    for predicate in clause.predicates:
        functions = [node for node in _nodes(predicate) if isinstance(node, core.Aggregate)]
        previous = [node for node in _nodes(predicate) if isinstance(node, core.Previous)]
        for node in functions:
            name = f"{node.function}(PRIOR …)" if node.prior else f"{node.function}(…)"
            found.append(_unsupported(node.span, f"{name} in a condition is"))
        found.extend(_unsupported(node.span, "PREV in a condition is") for node in previous)
        labels = _labels_named(predicate)
        if not functions and not previous and len(labels) > 1:
            names = " and ".join(f"'{label}'" for label in sorted(labels))
            found.append(_unsupported(predicate.span, f"a condition that compares {names} is"))
    return found


def _nodes(predicate: Predicate) -> list[Expression]:
    from celc.fold import operands_of

    waiting = list(operands_of(predicate))
    found: list[Expression] = []
    while waiting:
        node = waiting.pop()
        found.append(node)
        match node:
            case core.Arithmetic():
                waiting += [node.left, node.right]
            case core.Negation() | core.Absolute() | core.Cast():
                waiting.append(node.operand)
            case _:
                pass
    return found


def _labels_named(predicate: Predicate) -> set[str]:
    return {
        node.label
        for node in _nodes(predicate)
        if isinstance(node, core.AttributeValue | core.Aggregate | core.Previous)
    }


# --- rewriting ------------------------------------------------------------------------------------


class _Normalizer:
    """Bottom-up rewriting; every form it returns carries the labels that its formula binds."""

    def __init__(self, source: Source, diagnostics: Diagnostics, max_events: int) -> None:
        self._source = source
        self._diagnostics = diagnostics
        self._max_events = max_events

    def normal_form(self, formula: core.Formula) -> NormalForm:
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
                return _relabel(
                    self.normal_form(formula.operand),
                    lambda labels: labels | {formula.label} if labels else labels,
                )
            case core.Rename():
                return _relabel(
                    self.normal_form(formula.operand),
                    lambda labels: (
                        (labels - {formula.old}) | {formula.new}
                        if formula.old in labels
                        else labels
                    ),
                )
            case core.Project():
                kept = frozenset(formula.labels)
                return _relabel(self.normal_form(formula.operand), lambda labels: labels & kept)
            case core.Iteration():
                return iteration(
                    self.normal_form(formula.operand), formula.contiguous, formula.span
                )
            case core.Sequence():
                return sequence(
                    tuple(map(self.normal_form, formula.operands)), formula.contiguous, formula.span
                )
            case core.Disjunction():
                return disjunction(tuple(map(self.normal_form, formula.operands)), formula.span)
            case core.Filter():
                return self._filter(formula)
            case _:
                raise AssertionError(f"{type(formula).__name__} was refused before")

    def _text(self, span: Span) -> str:
        return " ".join(self._source.slice(span).split())

    def _filter(self, formula: core.Filter) -> NormalForm:
        form = self.normal_form(formula.operand)
        bound = labels_bound(formula.operand)
        for clause in formula.clauses:
            outside = [label for label in clause.labels if label not in bound]
            if outside:
                self._diagnostics.add(
                    _unsupported(
                        clause.span,
                        f"a condition on '{outside[0]}', which is bound outside the formula that "
                        "FILTER stands on, is",
                    )
                )
                self._diagnostics.raise_errors()
            form = restrict(form, _parts(clause))
            if count_events(form) > self._max_events:
                self._diagnostics.add(
                    error(
                        "normal-form-too-large",
                        clause.span,
                        f"pushing this condition to its events takes more than "
                        f"{self._max_events:,} cases",
                        help=(
                            "an OR over several labels doubles the formula once more for each such "
                            "clause: put conditions on one label each, or FILTER smaller parts",
                        ),
                    )
                )
                self._diagnostics.raise_errors()
        return form


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
# Predicates without a label stand under EVENT. None: the clause is TRUE whatever the events are.
_Parts = Mapping[str, tuple[Predicate, ...]]


def _parts(clause: Clause) -> _Parts | None:
    parts: dict[str, list[Predicate]] = {label: [] for label in clause.labels}
    for predicate in clause.predicates:
        truth = fold_predicate(predicate)
        labels = _labels_named(predicate)
        if not labels:
            assert truth is not None, "a predicate about no event is constant"
            if truth:
                return None
            continue
        (label,) = labels
        if truth is True:
            # TRUE for every position, and where the label has none the clause holds vacuously.
            return None
        if truth is None:
            parts[label].append(_of_event(predicate))
    if not parts:
        return {EVENT: ()}
    return {label: tuple(dict.fromkeys(predicates)) for label, predicates in parts.items()}


def restrict(form: NormalForm, parts: _Parts | None) -> NormalForm:
    """The matches of a form that satisfy one clause, given by label (None: all of them)."""
    if parts is None:
        return form
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
        case Iteration() if len(relevant) == 1:
            return iteration(restrict(form.operand, parts), form.contiguous, form.span)
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
        case Iteration():
            pass
        case _:
            assert_never(form)
    return disjunction(
        tuple(restrict(form, {label: relevant[label]}) for label in relevant), form.span
    )


def _restrict_event(event: Event, predicates: tuple[Predicate, ...]) -> NormalForm:
    known: list[Predicate] = []
    for predicate in dict.fromkeys(_on_type(p, event.type) for p in predicates):
        truth = fold_predicate(predicate)
        if truth is True:
            return event
        if truth is None:
            known.append(predicate)
    if not known:
        return Disjunction((), event.span)
    new = set(known)
    if any(set(clause.predicates) <= new for clause in event.clauses):
        return event  # said already, and more
    kept = tuple(clause for clause in event.clauses if not new <= set(clause.predicates))
    clauses = (*kept, EventClause(tuple(known)))
    if not can_hold_together(clauses):
        return Disjunction((), event.span)
    return Event(event.type, clauses, event.labels, event.name, event.span)


def _of_event(predicate: Predicate) -> Predicate:
    return _map_attributes(
        predicate, lambda a: core.AttributeValue(EVENT, a.attribute, a.type, a.span)
    )


def _on_type(predicate: Predicate, event_type: core.EventType) -> Predicate:
    """The predicate on an event of a type: attributes that the type lacks are NULL."""
    return _map_attributes(
        predicate,
        lambda a: (
            a
            if event_type.type_of(a.attribute) is not None
            else core.Constant(None, a.type, a.span)
        ),
    )


def _map_attributes(
    predicate: Predicate, change: Callable[[core.AttributeValue], Expression]
) -> Predicate:
    def walk(node: Expression) -> Expression:
        match node:
            case core.AttributeValue():
                return change(node)
            case core.Arithmetic():
                return core.Arithmetic(
                    node.operator, walk(node.left), walk(node.right), node.type, node.span
                )
            case core.Negation():
                return core.Negation(walk(node.operand), node.type, node.span)
            case core.Absolute():
                return core.Absolute(walk(node.operand), node.type, node.span)
            case core.Cast():
                return core.Cast(walk(node.operand), node.type, node.span)
            case core.Constant():
                return node
            case _:
                raise AssertionError(f"{type(node).__name__} was refused before")

    match predicate:
        case core.Comparison():
            return core.Comparison(
                predicate.operator, walk(predicate.left), walk(predicate.right), predicate.span
            )
        case core.Membership():
            return core.Membership(
                walk(predicate.operand),
                predicate.values,
                predicate.has_null,
                predicate.negated,
                predicate.span,
            )
        case core.PatternMatch():
            return core.PatternMatch(
                predicate.operator,
                walk(predicate.operand),
                predicate.pattern,
                predicate.negated,
                predicate.span,
            )
        case core.NullTest():
            return core.NullTest(walk(predicate.operand), predicate.negated, predicate.span)
        case _:
            assert_never(predicate)


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


def _relabel(form: NormalForm, change: Callable[[frozenset[str]], frozenset[str]]) -> NormalForm:
    match form:
        case Event():
            labels = tuple(sorted(change(frozenset(form.labels))))
            return Event(form.type, form.clauses, labels, form.name, form.span)
        case Iteration():
            return Iteration(_relabel(form.operand, change), form.contiguous, form.span)
        case Sequence():
            return Sequence(
                tuple(_relabel(o, change) for o in form.operands), form.contiguous, form.span
            )
        case Disjunction():
            return disjunction(tuple(_relabel(o, change) for o in form.operands), form.span)
        case _:
            assert_never(form)

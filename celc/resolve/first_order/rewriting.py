"""Formulas that mean with sets of events what they mean with the positions of the first paper.

* **`;`, `:`, and the two sides of `!`.** A combination of branches that binds a label twice has no
  match and is removed, which is Theorem 1. The proof writes the whole formula as an OR; here a part
  is written by cases only if labels that clash make it necessary. What is left is *safe*: a filter
  then sees one position, or by the scopes of the language the one that is bound beside it.
* **`+`.** A label that is bound under it differs from the label of the same name outside. Where a
  filter or the sides of AND could confuse the two, the label under `+` gets a name of its own up to
  the top of the formula, where both are joined again. For the paper shows positions, never labels:
  that a label is invisible is a matter of filters. In the output the label holds all events that it
  was ever bound to, also for SELECT, PROJECT and renaming.
* **OR** loses the operands that have no match.
* **AND** takes the same triple on both sides, labels included, as always. A label under `+` differs
  from the label of the same name outside.
* **ALL**, which the paper lacks: both sides share the valuation, so they must bind a common label
  to the same event. That is COUNT(x) <= 1 on the union.
* **UNLESS, `!`.** The forbidden formula is a scope that binds labels of its own, like a round of a
  `+`. If it can match nothing, it forbids nothing.
* **Renaming** where the new name is a label already joins two labels. As one position they must be
  the same event, or there is no match. **PROJECT**: a label that it removes is not bound outside.
* **Selectors** choose among the matches of their own formula. That a choice clashes with a label
  outside is found afterwards, by COUNT, so it does not change the choice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, assert_never

from celc.core import formula as core
from celc.core.formula import MAX_FORMULA_DEPTH
from celc.core.traversal import formulas_in, labels_bound, matched_parts_of, parts_of
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import clauses, first_order
from celc.diagnostics.messages.warnings import never_matches
from celc.diagnostics.source import Span
from celc.resolve.first_order.bounds import NO_LABELS, Bounds, places_binding

ONE_POSITION = "with --first-order a label is one position"


def safe_query(
    query: core.Query,
    bounds: Bounds,
    confused: frozenset[str],
    found: Diagnostics,
    max_events: int,
) -> core.Query:
    """The query with a safe formula; the checks must have found no error in it.

    `confused` are the labels to be told apart from the labels of the same name under `+`. Raises
    CelError where the cases of one part have more than `max_events` events.
    """
    return _Rewriter(query, bounds, confused, found, max_events).safe_query()


_Cases: TypeAlias = Mapping[frozenset[str], core.Formula]
"""A formula by cases: which of some labels a match binds, and the formula of all such matches."""


class _Rewriter:
    """Rewrites the formula of one query.

    `_apart`: the names of labels under `+` that could be confused with labels outside. `_known`:
    the cases of each selector, by identity.
    """

    def __init__(
        self,
        query: core.Query,
        bounds: Bounds,
        confused: frozenset[str],
        found: Diagnostics,
        max_events: int,
    ) -> None:
        self._query = query
        self._bounds = bounds
        self._confused = confused
        self._found = found
        self._max_events = max_events
        self._apart: dict[str, str] = {}
        self._known: dict[tuple[int, frozenset[str]], _Cases] = {}

    def safe_query(self) -> core.Query:
        """The query with a safe formula, or with an OR of nothing where nothing can match."""
        formula = self._query.formula
        before = len(self._found.items)
        safe = self._cases(formula, NO_LABELS).get(NO_LABELS)
        if safe is None:
            if len(self._found.items) == before:
                reason = f"no branch gives each label one position, but {ONE_POSITION}"
                self._found.add(never_matches(reason, "use more labels", formula.span))
            return replace(self._query, formula=core.Disjunction((), formula.span))
        bound = labels_bound(safe)
        for label, name in sorted(self._apart.items()):
            if name in bound:
                safe = core.Rename(safe, name, label, formula.span)
        depth = _depth(safe)
        if depth > MAX_FORMULA_DEPTH:
            self._found.add(clauses.formula_too_deep(depth, MAX_FORMULA_DEPTH, formula.span))
        return replace(self._query, formula=safe)

    # Long: a case for each kind of formula.
    def _cases(self, formula: core.Formula, wanted: frozenset[str]) -> _Cases:
        """A formula, divided by which of the labels `wanted` a match binds outside `+`.

        Cases without a match are left out: no case at all is a formula without a match.
        """
        look(formula.span)
        wanted &= self._bounds.of(formula).maybe
        match formula:
            case core.Atom():
                return {NO_LABELS: formula}
            case core.As():
                made = wanted & {formula.label}
                parts = self._cases(formula.operand, wanted - made)
                return {own | made: replace(formula, operand=part) for own, part in parts.items()}
            case core.Rename():
                return self._renaming_cases(formula, wanted)
            case core.Project():
                parts = self._cases(formula.operand, wanted)
                return {own: self._projected(part, formula) for own, part in parts.items()}
            case core.Iteration():
                return self._iteration_cases(formula)
            case core.Sequence():
                return self._sequence_cases(formula, wanted)
            case core.Disjunction():
                groups: dict[frozenset[str], list[core.Formula]] = {}
                for operand in formula.operands:
                    for own, part in self._cases(operand, wanted).items():
                        groups.setdefault(own, []).append(part)
                return {own: _either(group, formula.span) for own, group in groups.items()}
            case core.Conjunction():
                left = self._cases(formula.left, wanted)
                right = self._cases(formula.right, wanted)
                return {
                    own: replace(formula, left=left[own], right=right[own])
                    for own in left
                    if own in right
                }
            case core.All():
                return self._all_cases(formula, wanted)
            case core.Absence():
                return self._absence_cases(formula, wanted)
            case core.Unless():
                left = self._cases(formula.left, wanted)
                forbidden = self._cases(formula.right, NO_LABELS).get(NO_LABELS)
                if forbidden is None:
                    return left
                return {
                    own: replace(formula, left=part, right=forbidden) for own, part in left.items()
                }
            case core.AbsenceBefore() | core.AbsenceAfter():
                parts = self._cases(formula.operand, wanted)
                forbidden = self._cases(formula.absent, NO_LABELS).get(NO_LABELS)
                if forbidden is None:
                    return parts
                return {
                    own: replace(formula, operand=part, absent=forbidden)
                    for own, part in parts.items()
                }
            case core.Filter() | core.Within():
                parts = self._cases(formula.operand, wanted)
                return {own: replace(formula, operand=part) for own, part in parts.items()}
            case core.Selector():
                return self._selector_cases(formula, wanted)
            case core.ThenFirst():
                raise AssertionError("refused before")
            case _:
                assert_never(formula)

    def _sequence_cases(self, formula: core.Sequence, wanted: frozenset[str]) -> _Cases:
        def build(operands: tuple[core.Formula, ...]) -> core.Formula:
            return replace(formula, operands=operands)

        operators = sorted({"':'" if gap else "';'" for gap in formula.contiguous})
        where = f"on both sides of {' or '.join(operators)}"
        wanted_of_each = wanted | self._bound_by_several(formula.operands)
        # Not in a comprehension: formulas can be so deep that each frame counts.
        cases = []
        for operand in formula.operands:
            cases.append(self._cases(operand, wanted_of_each))
        return self._side_by_side(formula.operands, cases, wanted, build, where, formula.span)

    def _absence_cases(self, formula: core.Absence, wanted: frozenset[str]) -> _Cases:
        forbidden = self._cases(formula.middle, NO_LABELS).get(NO_LABELS)

        def build(operands: tuple[core.Formula, ...]) -> core.Formula:
            left, right = operands
            if forbidden is None:
                return core.Sequence((left, right), (False,), formula.span)
            return replace(formula, left=left, middle=forbidden, right=right)

        sides = (formula.left, formula.right)
        wanted_of_each = wanted | self._bound_by_several(sides)
        left = self._cases(formula.left, wanted_of_each)
        cases = (left, self._cases(formula.right, wanted_of_each))
        return self._side_by_side(sides, cases, wanted, build, "on both sides of ';'", formula.span)

    def _side_by_side(
        self,
        parts: tuple[core.Formula, ...],
        cases: Sequence[_Cases],
        wanted: frozenset[str],
        build: Callable[[tuple[core.Formula, ...]], core.Formula],
        where: str,
        span: Span,
    ) -> _Cases:
        """Parts one after another: the combinations of their cases that bind no label twice.

        `where` says in a message how the parts stand to each other.
        """
        if not all(cases):
            return {}  # the part without a match has been reported
        rows: list[tuple[frozenset[str], tuple[core.Formula, ...], int]] = [(NO_LABELS, (), 0)]
        twice: set[str] = set()
        for of_part in cases:
            choices = [(own, case, _count_events(case)) for own, case in of_part.items()]
            longer = []
            total = 0
            for bound, operands, size in rows:
                for own, case, more in choices:
                    if bound & own:
                        twice |= bound & own
                        continue
                    longer.append((bound | own, (*operands, case), size + more))
                    total += size + more
                    if total > self._max_events:
                        self._refuse(span)
            rows = longer
        if twice:
            self._report_bound_twice(parts, twice, where, span, left_over=bool(rows))
        groups: dict[frozenset[str], list[core.Formula]] = {}
        for bound, operands, _ in rows:
            groups.setdefault(bound & wanted, []).append(build(operands))
        return {own: _either(group, span) for own, group in groups.items()}

    def _bound_by_several(self, parts: Iterable[core.Formula]) -> frozenset[str]:
        """The labels that more than one of the parts may bind."""
        times = Counter(label for part in parts for label in self._bounds.of(part).maybe)
        return frozenset(label for label, n in times.items() if n > 1)

    def _refuse(self, span: Span) -> None:
        self._found.add(first_order.too_many_branches(self._max_events, span))
        self._found.raise_errors()

    def _report_bound_twice(
        self,
        parts: Sequence[core.Formula],
        twice: Iterable[str],
        where: str,
        span: Span,
        *,
        left_over: bool,
    ) -> None:
        times = Counter(label for part in parts for label in self._bounds.of(part).surely)
        # A label that every branch binds twice explains most, so it is named if there is one.
        label = min(twice, key=lambda one: (times[one] < 2, one))
        binding = [part for part in parts if label in self._bounds.of(part).maybe]
        places = [
            place
            for part in binding
            for place in [*places_binding(part, label, under_iteration=False)][:1]
        ]
        first, second = (places[0], places[1]) if len(places) > 1 else (span, span)
        if left_over:
            self._found.add(first_order.unsafe_branches(label, where, second, first))
        else:
            self._found.add(_no_match(label, where, second, first))

    def _all_cases(self, formula: core.All, wanted: frozenset[str]) -> _Cases:
        common = self._bound_by_several((formula.left, formula.right))
        left = self._cases(formula.left, wanted | common)
        right = self._cases(formula.right, wanted | common)
        groups: dict[frozenset[str], list[core.Formula]] = {}
        size = 0
        for of_left, one in left.items():
            for of_right, other in right.items():
                both: core.Formula = replace(formula, left=one, right=other)
                united = _with_one_position(both, of_left & of_right)
                groups.setdefault((of_left | of_right) & wanted, []).append(united)
                size += _count_events(both)
                if size > self._max_events:
                    self._refuse(formula.span)
        return {own: _either(group, formula.span) for own, group in groups.items()}

    def _renaming_cases(self, formula: core.Rename, wanted: frozenset[str]) -> _Cases:
        old, new, bound = formula.old, formula.new, self._bounds.of(formula.operand)
        joined = frozenset({old, new})
        inner = wanted - joined
        if new in wanted or joined <= bound.maybe:
            inner |= joined
        groups: dict[frozenset[str], list[core.Formula]] = {}
        twice = False
        for own, part in self._cases(formula.operand, inner).items():
            result = self._renamed(part, formula)
            if joined <= own:
                if not self._may_share(formula.operand, old, new):
                    twice = True
                    continue
                result = _with_one_position(result, {new})
            made = {new} if own & joined or old in self._bounds.types else NO_LABELS
            groups.setdefault((own - joined) | (wanted & made), []).append(result)
        if twice:
            places = [*places_binding(formula.operand, new, under_iteration=False), formula.span]
            where = f"again by renaming '{old}'"
            if groups:
                report = first_order.unsafe_branches(new, where, formula.span, places[0])
            else:
                report = _no_match(new, where, formula.span, places[0])
            self._found.add(report)
        return {own: _either(group, formula.span) for own, group in groups.items()}

    def _may_share(self, formula: core.Formula, label: str, other: str) -> bool:
        """Whether one event may carry both labels, outside `+`."""
        match formula:
            case core.Atom() | core.Iteration():
                return False
            case core.As():
                pair = {label, other} - {formula.label}
                bound = self._bounds.of(formula.operand).maybe
                return (len(pair) == 1 and pair <= bound) or self._may_share(
                    formula.operand, label, other
                )
            case core.Rename() | core.All():
                return {label, other} <= self._bounds.of(formula).maybe
            case _:
                return any(
                    self._may_share(part, label, other) for part in matched_parts_of(formula)
                )

    def _renamed(self, part: core.Formula, formula: core.Rename) -> core.Formula:
        bound = labels_bound(part)
        if formula.old in bound:
            result: core.Formula = replace(formula, operand=part)
        else:
            # The branches that bound the old name are gone. The rest is still a scope.
            result = core.Project(part, tuple(sorted(bound)), formula.span)
        hidden = self._apart.get(formula.old)
        if hidden is not None and hidden in bound:
            result = core.Rename(result, hidden, self._name_apart(formula.new), formula.span)
        return result

    def _projected(self, part: core.Formula, formula: core.Project) -> core.Formula:
        bound = labels_bound(part)
        apart = (self._apart.get(label) for label in formula.labels)
        kept = (*formula.labels, *(name for name in apart if name is not None))
        return core.Project(part, tuple(one for one in kept if one in bound), formula.span)

    def _iteration_cases(self, formula: core.Iteration) -> _Cases:
        operand = self._cases(formula.operand, NO_LABELS).get(NO_LABELS)
        if operand is None:
            return {}
        result: core.Formula = replace(formula, operand=operand)
        bound = labels_bound(operand)
        for label in sorted(self._bounds.of(formula.operand).maybe & self._confused & bound):
            result = core.Rename(result, label, self._name_apart(label), formula.span)
        return {NO_LABELS: result}

    def _name_apart(self, label: str) -> str:
        """The name, new to the query, that stands for a label under `+` where it is outside."""
        if label not in self._apart:
            taken = self._bounds.types | self._bounds.labels() | set(self._apart.values())
            name = f"{label}+"
            while name in taken:
                name += "+"
            self._apart[label] = name
        return self._apart[label]

    def _selector_cases(self, formula: core.Selector, wanted: frozenset[str]) -> _Cases:
        # Kept, for an operand is asked for its cases twice: selectors in selectors would double
        # the work at each level.
        known = self._known.get((id(formula), wanted))
        if known is not None:
            return known
        cases = self._cases(formula.operand, wanted)
        if formula.strategy == "STRICT":
            # STRICT judges each match by itself.
            result: _Cases = {own: replace(formula, operand=part) for own, part in cases.items()}
        else:
            operand = self._cases(formula.operand, NO_LABELS).get(NO_LABELS)
            chosen = None if operand is None else replace(formula, operand=operand)
            if chosen is None:
                result = {}
            elif len(cases) == 1:
                result = dict.fromkeys(cases, chosen)
            else:
                result = {own: _only(chosen, own, wanted) for own in cases}
        self._known[id(formula), wanted] = result
        return result


def _count_events(formula: core.Formula) -> int:
    return sum(isinstance(part, core.Atom) for part in formulas_in(formula))


def _depth(formula: core.Formula) -> int:
    deepest, waiting = 0, [(formula, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((one, depth + 1) for one in parts_of(part))
    return deepest


def _either(formulas: Sequence[core.Formula], span: Span) -> core.Formula:
    return formulas[0] if len(formulas) == 1 else core.Disjunction(tuple(formulas), span)


def _count(label: str, operator: Literal["=", "<=", ">="], number: int, span: Span) -> core.Clause:
    long = core.DataType.LONG
    counted = core.Aggregate("COUNT", label, None, False, long, span)
    comparison = core.Comparison(operator, counted, core.Constant(number, long, span), span)
    return core.Clause((comparison,), (), span)


def _with_one_position(formula: core.Formula, labels: Iterable[str]) -> core.Formula:
    conditions = tuple(_count(label, "<=", 1, formula.span) for label in sorted(labels))
    return core.Filter(formula, conditions, formula.span) if conditions else formula


def _only(formula: core.Formula, bound: frozenset[str], wanted: frozenset[str]) -> core.Formula:
    """The matches of a formula that bind, of the labels `wanted`, exactly those in `bound`."""
    span = formula.span
    conditions = [
        _count(label, ">=", 1, span) if label in bound else _count(label, "=", 0, span)
        for label in sorted(wanted)
    ]
    result = core.Filter(formula, tuple(conditions), span)
    if bound == wanted:
        return result
    # A filter around the formula must find the label beside it, not here where it is empty.
    return core.Project(result, tuple(sorted(labels_bound(formula) - (wanted - bound))), span)


def _no_match(label: str, where: str, span: Span, first: Span) -> Diagnostic:
    reason = f"label '{label}' is bound {where}, but {ONE_POSITION}"
    return never_matches(reason, "use two labels, or leave --first-order out", span, first)

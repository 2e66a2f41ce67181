"""The first paper's reading of labels, for `--first-order`: core formulas → core formulas.

*Foundations of Complex Event Processing* gives a variable one position, by a valuation that both
sides of a `;` share and that each round of a `+` chooses anew. Labels of the language are sets.
Here a formula is checked to stay within the paper's bounds, and rewritten so that with sets it
means what it means there. Only labels other than event types are concerned. What is decided:

* **Atom, AS.** AS (and the renaming of an event type) goes on an event type, which may have labels
  already; on anything else it is an error.
* **`;`, `:`, and the two sides of `!`.** A combination of branches that binds a label twice has no
  match and is removed, which is Theorem 1. The proof writes the whole formula as an OR; here a part
  is written by cases only if labels that clash make it necessary. What is left is *safe*: a filter
  then sees one position, or by the scopes of the language the one that is bound beside it.
* **`+`.** What is bound under it is another label than that of the same name outside. Where the two
  could be confused (by a filter, by the sides of AND), the one under `+` gets a name of its own up
  to the top of the formula, where they are joined again. For the paper shows positions, never
  labels: that a label is invisible is a matter of filters, and in the output it holds all that it
  was ever bound to, also for SELECT, PROJECT and renaming.
* **OR** loses the operands that have no match.
* **AND** takes the same triple on both sides, labels included, as always. A label under `+` differs
  from one outside.
* **ALL**, which the paper lacks: both sides share the valuation, so they must bind a common label
  to the same event. That is COUNT(x) <= 1 on the union.
* **UNLESS, `!`.** What must not happen is a scope that binds labels of its own, like a round of a
  `+`. If it can match nothing, it forbids nothing.
* **Renaming** where the new name is a label already joins two labels; as one position they must be
  the same event, or there is no match. **PROJECT**: what it removes is not bound outside.
* **Selectors** choose among the matches of their own formula. That a choice clashes with a label
  outside is found afterwards, by COUNT, so it does not change what is chosen.
* **FILTER** needs its labels bound on every branch: in its operand, or beside it in its scope or in
  a scope around it. (The paper's definition of well-formed would let a label that some branch of a
  round binds be completed by one outside the `+`; that is refused.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from celc.core import formula as core
from celc.core.terms import nodes_written_in
from celc.core.traversal import formulas_in, labels_bound, matched_parts_of, parts_of
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import clauses, first_order
from celc.diagnostics.messages.warnings import never_matches
from celc.diagnostics.source import Source, Span
from celc.resolve import MAX_DEPTH

MAX_EVENTS = 20_000
_NONE = frozenset[str]()
_ONE_POSITION = "with --first-order a label is one position"


def read_first_order(
    queries: tuple[core.Query, ...],
    warnings: tuple[Diagnostic, ...],
    source: Source,
    *,
    max_events: int = MAX_EVENTS,
) -> tuple[tuple[core.Query, ...], tuple[Diagnostic, ...]]:
    """The queries of a file with safe formulas, and all warnings about them.

    `warnings` are those of the resolver; what they say of labels as sets is taken back. A formula
    without a match becomes an OR of nothing. Raises CelError where a formula goes beyond the
    first-order reading, or where writing it by cases takes more than `max_events` events.
    """
    found = Diagnostics(source)
    readers = [_Reader(query, found, max_events) for query in queries]
    for reader in readers:
        reader.check()
    judged = frozenset[Span]().union(*(reader.judged for reader in readers))
    found.extend(_taken_back(warnings, judged))
    found.raise_errors()
    safe = tuple(reader.rewritten() for reader in readers)
    found.raise_errors()
    return safe, found.in_order()


def _taken_back(warnings: Iterable[Diagnostic], judged: frozenset[Span]) -> Iterator[Diagnostic]:
    """The resolver's warnings without those that are errors here, or are not so."""
    for warning in warnings:
        match warning.code:
            case "unsafe-label":
                continue
            case "maybe-unbound" if warning.span in judged:
                continue
            case "single-position":
                yield replace(warning, help=(_ONE_POSITION,))
            case _:
                yield warning


@dataclass(frozen=True, slots=True)
class _Bound:
    """The labels, event types aside, that a formula binds.

    `surely`: outside `+` on every branch, the paper's bound(φ). `maybe`: outside `+` on some
    branch, its vdef₊(φ). `iterated`: under `+`.
    """

    surely: frozenset[str] = _NONE
    maybe: frozenset[str] = _NONE
    iterated: frozenset[str] = _NONE

    def union(self, *others: _Bound) -> _Bound:
        """What the parts bind together."""
        return _Bound(
            self.surely.union(*(other.surely for other in others)),
            self.maybe.union(*(other.maybe for other in others)),
            self.iterated.union(*(other.iterated for other in others)),
        )


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a filter sees around its operand: labels of its scope, and of the scopes around.

    `beside` has the labels that are surely bound beside the part at hand.
    """

    whole: _Bound
    beside: frozenset[str]
    outer: _Scope | None

    def next_to(self, labels: frozenset[str]) -> _Scope:
        """The same scope for a part of it that has these labels beside it."""
        return replace(self, beside=self.beside | labels)


_Variants: TypeAlias = Mapping[frozenset[str], core.Formula]
"""A formula by cases: which of some labels a match binds, and the formula of all such matches."""


class _Reader:
    """Checks and rewrites the formula of one query.

    `judged` collects the places where filters name labels, `confused` the labels that are to be
    told apart from those of the same name under `+`, `apart` the names that these have got.
    """

    def __init__(self, query: core.Query, found: Diagnostics, max_events: int) -> None:
        self.query = query
        self.found = found
        self.max_events = max_events
        self.types = {each.name for stream in query.streams for each in stream.event_types}
        self.judged: set[Span] = set()
        self.confused: set[str] = set()
        self.apart: dict[str, str] = {}
        self._bound: dict[int, _Bound] = {}
        self._chosen: dict[tuple[int, frozenset[str]], _Variants] = {}

    # --- what is bound ----------------------------------------------------------------------------

    def bound(self, formula: core.Formula) -> _Bound:
        """What a formula of the query binds; each is looked at once."""
        # By identity: to hash or compare a formula would mean to read all of it. None of them goes
        # away while the query is held.
        known = self._bound.get(id(formula))
        if known is None:
            known = self._bound[id(formula)] = self._bound_by(formula)
        return known

    def _bound_by(self, formula: core.Formula) -> _Bound:
        look(formula.span)
        match formula:
            case core.Atom():
                return _Bound()
            case core.As():
                own = frozenset({formula.label})
                return self.bound(formula.operand).union(_Bound(own, own))
            case core.Rename():
                return self._bound_by_renaming(formula)
            case core.Project():
                part, kept = self.bound(formula.operand), frozenset(formula.labels)
                return _Bound(part.surely & kept, part.maybe & kept, part.iterated & kept)
            case core.Iteration():
                part = self.bound(formula.operand)
                return _Bound(_NONE, _NONE, part.maybe | part.iterated)
            case core.Sequence():
                return _Bound().union(*map(self.bound, formula.operands))
            case core.Disjunction():
                parts = [self.bound(operand) for operand in formula.operands]
                surely = [part.surely for part in parts]
                every = surely[0].intersection(*surely) if surely else _NONE
                return replace(_Bound().union(*parts), surely=every)
            case core.Conjunction() | core.All() | core.Absence():
                return self.bound(formula.left).union(self.bound(formula.right))
            case core.Unless():
                return self.bound(formula.left)
            case core.Filter() | core.Selector():
                return self.bound(formula.operand)
            case _:
                assert_never(formula)

    def _bound_by_renaming(self, formula: core.Rename) -> _Bound:
        part, old, new = self.bound(formula.operand), formula.old, formula.new

        def renamed(labels: frozenset[str]) -> frozenset[str]:
            return (labels - {old}) | {new} if old in labels else labels

        if old in self.types:
            own = frozenset({new})
            return part.union(_Bound(own, own))
        return _Bound(renamed(part.surely), renamed(part.maybe), renamed(part.iterated))

    # --- checks -----------------------------------------------------------------------------------

    def check(self) -> None:
        """Report what goes beyond the first-order reading, and note which labels to tell apart."""
        formula = self.query.formula
        self._check(formula, _Scope(self.bound(formula), _NONE, None))

    def _check(self, formula: core.Formula, scope: _Scope) -> None:
        look(formula.span)
        match formula:
            case core.Atom():
                pass
            case core.As():
                if not _is_event(formula.operand):
                    self.found.add(first_order.composite_label(formula.label, formula.span))
                self._check(formula.operand, scope.next_to(frozenset({formula.label})))
            case core.Rename():
                self._check_renaming(formula)
                self._check_scope(formula.operand, scope)
            case core.Project() | core.Iteration():
                self._check_scope(formula.operand, scope)
            case core.Selector():
                bound = self.bound(formula.operand)
                self.confused |= bound.maybe & bound.iterated
                self._check_scope(formula.operand, scope)
            case core.Sequence():
                self._check_side_by_side(formula.operands, scope)
            case core.Disjunction():
                for operand in formula.operands:
                    self._check(operand, scope)
            case core.Conjunction() | core.All():
                left, right = self.bound(formula.left), self.bound(formula.right)
                self.confused |= (left.maybe | right.maybe) & (left.iterated | right.iterated)
                self._check_side_by_side((formula.left, formula.right), scope)
            case core.Absence():
                self._check_side_by_side((formula.left, formula.right), scope)
                around = self.bound(formula.left).surely | self.bound(formula.right).surely
                self._check_scope(formula.middle, scope.next_to(around))
            case core.Unless():
                self._check(formula.left, scope)
                self._check_scope(formula.right, scope.next_to(self.bound(formula.left).surely))
            case core.Filter():
                self._check(formula.operand, scope)
                self._check_filter(formula, scope)
            case _:
                assert_never(formula)

    def _check_scope(self, formula: core.Formula, outer: _Scope) -> None:
        self._check(formula, _Scope(self.bound(formula), _NONE, outer))

    def _check_side_by_side(self, parts: Sequence[core.Formula], scope: _Scope) -> None:
        times = Counter(label for part in parts for label in self.bound(part).surely)
        for part in parts:
            own = self.bound(part).surely
            others = frozenset(label for label, n in times.items() if n > (label in own))
            self._check(part, scope.next_to(others))

    def _check_renaming(self, formula: core.Rename) -> None:
        old, new = formula.old, formula.new
        if old in self.types:
            if not _is_event(formula.operand):
                self.found.add(first_order.composite_rename(old, new, formula.span))
            return
        bound = self.bound(formula.operand)
        if {old, new} & bound.maybe and {old, new} & bound.iterated:
            self.confused |= {old, new}

    def _check_filter(self, formula: core.Filter, scope: _Scope) -> None:
        told: set[str] = set()
        for clause in formula.clauses:
            for predicate in clause.predicates:
                for part in nodes_written_in(predicate):
                    match part:
                        case core.AttributeValue() | core.Previous() | core.Aggregate():
                            if part.label in self.types:
                                continue
                            self.judged.add(part.span)
                            if part.label not in told:
                                self._look_up(part.label, part.span, formula.operand, scope)
                                told.add(part.label)
                        case _:
                            pass

    def _look_up(
        self, label: str, span: Span, operand: core.Formula, innermost: _Scope | None
    ) -> None:
        """Find out which binding a filter means by a label, if it means one on every branch."""
        own, scope = self.bound(operand), innermost
        surely, crossed = label in own.surely, label in own.iterated
        visible = own.surely
        while scope is not None and not surely:
            visible |= scope.beside | scope.whole.surely
            crossed = crossed or label in scope.whole.iterated
            surely = label in scope.beside or label in scope.whole.surely
            if not surely and label in scope.whole.maybe:
                bound = self._first_place(label, operand, under_iteration=False)
                self.found.add(first_order.partly_bound_label(label, sorted(visible), span, bound))
                return
            scope = scope.outer
        if not surely:
            assert crossed, "the resolver knows what binds a label"
            bound = self._first_place(label, operand, under_iteration=True)
            self.found.add(first_order.iterated_label(label, sorted(visible), span, bound))
        elif crossed:
            self.confused.add(label)

    def _first_place(
        self, label: str, nearest: core.Formula, *, under_iteration: bool
    ) -> tuple[Span, ...]:
        for formula in (nearest, self.query.formula):
            for place in _places(formula, label, under_iteration):
                return (place,)
        return ()

    # --- rewriting --------------------------------------------------------------------------------

    def rewritten(self) -> core.Query:
        """The query with a safe formula; to be asked once the checks have found no error."""
        formula = self.query.formula
        before = len(self.found.items)
        safe = self._split(formula, _NONE).get(_NONE)
        if safe is None:
            if len(self.found.items) == before:
                reason = f"no branch gives each label one position, but {_ONE_POSITION}"
                self.found.add(never_matches(reason, "use more labels", formula.span))
            return replace(self.query, formula=core.Disjunction((), formula.span))
        bound = labels_bound(safe)
        for label, name in sorted(self.apart.items()):
            if name in bound:
                safe = core.Rename(safe, name, label, formula.span)
        depth = _depth(safe)
        if depth > MAX_DEPTH:
            self.found.add(clauses.formula_too_deep(depth, MAX_DEPTH, formula.span))
        return replace(self.query, formula=safe)

    def _split(self, formula: core.Formula, wanted: frozenset[str]) -> _Variants:
        """The formula by which of the labels `wanted` a match binds outside `+`.

        Cases without a match are left out: no case at all is a formula without a match.
        """
        look(formula.span)
        wanted &= self.bound(formula).maybe
        match formula:
            case core.Atom():
                return {_NONE: formula}
            case core.As():
                made = wanted & {formula.label}
                parts = self._split(formula.operand, wanted - made)
                return {k | made: replace(formula, operand=part) for k, part in parts.items()}
            case core.Rename():
                return self._split_renaming(formula, wanted)
            case core.Project():
                parts = self._split(formula.operand, wanted)
                return {k: self._projected(part, formula) for k, part in parts.items()}
            case core.Iteration():
                return self._split_iteration(formula)
            case core.Sequence():
                return self._split_sequence(formula, wanted)
            case core.Disjunction():
                groups: dict[frozenset[str], list[core.Formula]] = {}
                for operand in formula.operands:
                    for k, part in self._split(operand, wanted).items():
                        groups.setdefault(k, []).append(part)
                return {k: _either(group, formula.span) for k, group in groups.items()}
            case core.Conjunction():
                left = self._split(formula.left, wanted)
                right = self._split(formula.right, wanted)
                return {
                    k: replace(formula, left=left[k], right=right[k]) for k in left if k in right
                }
            case core.All():
                return self._split_all(formula, wanted)
            case core.Absence():
                return self._split_absence(formula, wanted)
            case core.Unless():
                left = self._split(formula.left, wanted)
                forbidden = self._split(formula.right, _NONE).get(_NONE)
                if forbidden is None:
                    return left
                return {k: replace(formula, left=p, right=forbidden) for k, p in left.items()}
            case core.Filter():
                parts = self._split(formula.operand, wanted)
                return {k: replace(formula, operand=part) for k, part in parts.items()}
            case core.Selector():
                return self._split_selector(formula, wanted)
            case _:
                assert_never(formula)

    def _split_sequence(self, formula: core.Sequence, wanted: frozenset[str]) -> _Variants:
        def build(operands: tuple[core.Formula, ...]) -> core.Formula:
            return replace(formula, operands=operands)

        operators = sorted({"':'" if gap else "';'" for gap in formula.contiguous})
        where = f"on both sides of {' or '.join(operators)}"
        wanted_of_each = wanted | self._common(formula.operands)
        # Not in a comprehension: formulas can be so deep that each frame counts.
        cases = []
        for operand in formula.operands:
            cases.append(self._split(operand, wanted_of_each))
        return self._side_by_side(formula.operands, cases, wanted, build, where, formula.span)

    def _split_absence(self, formula: core.Absence, wanted: frozenset[str]) -> _Variants:
        forbidden = self._split(formula.middle, _NONE).get(_NONE)

        def build(operands: tuple[core.Formula, ...]) -> core.Formula:
            left, right = operands
            if forbidden is None:
                return core.Sequence((left, right), (False,), formula.span)
            return replace(formula, left=left, middle=forbidden, right=right)

        sides = (formula.left, formula.right)
        wanted_of_each = wanted | self._common(sides)
        left = self._split(formula.left, wanted_of_each)
        cases = (left, self._split(formula.right, wanted_of_each))
        return self._side_by_side(sides, cases, wanted, build, "on both sides of ';'", formula.span)

    def _side_by_side(
        self,
        parts: tuple[core.Formula, ...],
        cases: Sequence[_Variants],
        wanted: frozenset[str],
        build: Callable[[tuple[core.Formula, ...]], core.Formula],
        where: str,
        span: Span,
    ) -> _Variants:
        """Parts one after another: the combinations of their cases that bind no label twice."""
        if not all(cases):
            return {}  # whoever found a part empty has said why
        rows: list[tuple[frozenset[str], tuple[core.Formula, ...], int]] = [(_NONE, (), 0)]
        twice: set[str] = set()
        for variants in cases:
            choices = [(k, case, _count_events(case)) for k, case in variants.items()]
            longer = []
            total = 0
            for bound, operands, size in rows:
                for k, case, more in choices:
                    if bound & k:
                        twice |= bound & k
                        continue
                    longer.append((bound | k, (*operands, case), size + more))
                    total += size + more
                    if total > self.max_events:
                        self._refuse(span)
            rows = longer
        if twice:
            self._report_twice(parts, twice, where, span, left_over=bool(rows))
        groups: dict[frozenset[str], list[core.Formula]] = {}
        for bound, operands, _ in rows:
            groups.setdefault(bound & wanted, []).append(build(operands))
        return {k: _either(group, span) for k, group in groups.items()}

    def _common(self, parts: Iterable[core.Formula]) -> frozenset[str]:
        times = Counter(label for part in parts for label in self.bound(part).maybe)
        return frozenset(label for label, n in times.items() if n > 1)

    def _refuse(self, span: Span) -> None:
        self.found.add(first_order.too_many_branches(self.max_events, span))
        self.found.raise_errors()

    def _report_twice(
        self,
        parts: Sequence[core.Formula],
        twice: Iterable[str],
        where: str,
        span: Span,
        *,
        left_over: bool,
    ) -> None:
        times = Counter(label for part in parts for label in self.bound(part).surely)
        # A label that every branch binds twice explains most, so it is named if there is one.
        label = min(twice, key=lambda one: (times[one] < 2, one))
        binding = [part for part in parts if label in self.bound(part).maybe]
        places = [place for part in binding for place in [*_places(part, label, False)][:1]]
        first, second = (places[0], places[1]) if len(places) > 1 else (span, span)
        if left_over:
            self.found.add(first_order.unsafe_branches(label, where, second, first))
        else:
            self.found.add(_no_match(label, where, second, first))

    def _split_all(self, formula: core.All, wanted: frozenset[str]) -> _Variants:
        common = self._common((formula.left, formula.right))
        left = self._split(formula.left, wanted | common)
        right = self._split(formula.right, wanted | common)
        groups: dict[frozenset[str], list[core.Formula]] = {}
        size = 0
        for k, one in left.items():
            for m, other in right.items():
                both: core.Formula = replace(formula, left=one, right=other)
                groups.setdefault((k | m) & wanted, []).append(_with_one_position(both, k & m))
                size += _count_events(both)
                if size > self.max_events:
                    self._refuse(formula.span)
        return {k: _either(group, formula.span) for k, group in groups.items()}

    def _split_renaming(self, formula: core.Rename, wanted: frozenset[str]) -> _Variants:
        old, new, bound = formula.old, formula.new, self.bound(formula.operand)
        joined = frozenset({old, new})
        inner = wanted - joined
        if new in wanted or joined <= bound.maybe:
            inner |= joined
        groups: dict[frozenset[str], list[core.Formula]] = {}
        twice = False
        for k, part in self._split(formula.operand, inner).items():
            result = self._renamed(part, formula)
            if joined <= k:
                if not self._may_share(formula.operand, old, new):
                    twice = True
                    continue
                result = _with_one_position(result, {new})
            made = {new} if k & joined or old in self.types else _NONE
            groups.setdefault((k - joined) | (wanted & made), []).append(result)
        if twice:
            places = [*_places(formula.operand, new, False), formula.span]
            where = f"again by renaming '{old}'"
            if groups:
                report = first_order.unsafe_branches(new, where, formula.span, places[0])
            else:
                report = _no_match(new, where, formula.span, places[0])
            self.found.add(report)
        return {k: _either(group, formula.span) for k, group in groups.items()}

    def _may_share(self, formula: core.Formula, label: str, other: str) -> bool:
        """Whether one event may carry both labels, outside `+`."""
        match formula:
            case core.Atom() | core.Iteration():
                return False
            case core.As():
                pair = {label, other} - {formula.label}
                bound = self.bound(formula.operand).maybe
                return (len(pair) == 1 and pair <= bound) or self._may_share(
                    formula.operand, label, other
                )
            case core.Rename() | core.All():
                return {label, other} <= self.bound(formula).maybe
            case _:
                return any(
                    self._may_share(part, label, other) for part in matched_parts_of(formula)
                )

    def _renamed(self, part: core.Formula, formula: core.Rename) -> core.Formula:
        bound = labels_bound(part)
        if formula.old in bound:
            result: core.Formula = replace(formula, operand=part)
        else:
            # The branches that bound it are gone. What is left is still a scope.
            result = core.Project(part, tuple(sorted(bound)), formula.span)
        hidden = self.apart.get(formula.old)
        if hidden is not None and hidden in bound:
            result = core.Rename(result, hidden, self._name_apart(formula.new), formula.span)
        return result

    def _projected(self, part: core.Formula, formula: core.Project) -> core.Formula:
        bound = labels_bound(part)
        apart = (self.apart.get(label) for label in formula.labels)
        kept = (*formula.labels, *(name for name in apart if name is not None))
        return core.Project(part, tuple(one for one in kept if one in bound), formula.span)

    def _split_iteration(self, formula: core.Iteration) -> _Variants:
        operand = self._split(formula.operand, _NONE).get(_NONE)
        if operand is None:
            return {}
        result: core.Formula = replace(formula, operand=operand)
        bound = labels_bound(operand)
        for label in sorted(self.bound(formula.operand).maybe & self.confused & bound):
            result = core.Rename(result, label, self._name_apart(label), formula.span)
        return {_NONE: result}

    def _name_apart(self, label: str) -> str:
        """The name, new to the query, that stands for a label under `+` where it is outside."""
        if label not in self.apart:
            taken = self.types | self._all_labels() | set(self.apart.values())
            name = f"{label}+"
            while name in taken:
                name += "+"
            self.apart[label] = name
        return self.apart[label]

    def _all_labels(self) -> set[str]:
        bounds = self._bound.values()
        return {label for bound in bounds for label in bound.maybe | bound.iterated}

    def _split_selector(self, formula: core.Selector, wanted: frozenset[str]) -> _Variants:
        # An operand is asked twice, and selectors in selectors would double that each time.
        known = self._chosen.get((id(formula), wanted))
        if known is not None:
            return known
        cases = self._split(formula.operand, wanted)
        if formula.strategy == "STRICT":
            # It judges each match by itself.
            result: _Variants = {k: replace(formula, operand=part) for k, part in cases.items()}
        else:
            operand = self._split(formula.operand, _NONE).get(_NONE)
            chosen = None if operand is None else replace(formula, operand=operand)
            if chosen is None:
                result = {}
            elif len(cases) == 1:
                result = dict.fromkeys(cases, chosen)
            else:
                result = {k: _only(chosen, k, wanted) for k in cases}
        self._chosen[id(formula), wanted] = result
        return result


# --- parts of formulas ----------------------------------------------------------------------------


def _is_event(formula: core.Formula) -> bool:
    while isinstance(formula, core.As):
        formula = formula.operand
    return isinstance(formula, core.Atom)


def _places(formula: core.Formula, label: str, under_iteration: bool) -> Iterator[Span]:
    """Where AS or a renaming binds a label: outside `+`, or also under it."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        match part:
            case core.As() if part.label == label:
                yield part.span
            case core.Rename() if part.new == label:
                yield part.span
            case core.Iteration() if not under_iteration:
                continue
            case _:
                pass
        waiting.extend(reversed(matched_parts_of(part)))


def _count_events(formula: core.Formula) -> int:
    return sum(isinstance(part, core.Atom) for part in formulas_in(formula))


def _depth(formula: core.Formula) -> int:
    deepest, waiting = 0, [(formula, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((one, depth + 1) for one in parts_of(part))
    return deepest


# --- formulas made here ---------------------------------------------------------------------------


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
    # A filter around it must not find the label here, where it is empty, but beside.
    return core.Project(result, tuple(sorted(labels_bound(formula) - (wanted - bound))), span)


def _no_match(label: str, where: str, span: Span, first: Span) -> Diagnostic:
    reason = f"label '{label}' is bound {where}, but {_ONE_POSITION}"
    return never_matches(reason, "use two labels, or leave --first-order out", span, first)

"""Formulas: the syntax tree with its labels → core CEL, conditions resolved in their scopes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice, pairwise
from typing import Literal, assert_never

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.cnf import clauses_of, size_of
from celc.core.formula import Predicate
from celc.core.terms import labels_asked
from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import absences as messages
from celc.diagnostics.messages import types, warnings
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.event_types import STANDS_FOR
from celc.resolve.extents import merge, one_after_another
from celc.resolve.labels import (
    Hidden,
    Scoped,
    chooses_first,
    fold_joints,
    operands_taken,
)
from celc.resolve.local_windows import is_bounded
from celc.resolve.optional_parts import Chain, Chosen, ways_of
from celc.resolve.parameters import filtered, reads_parameters
from celc.resolve.query_clauses import check_window_length
from celc.resolve.schema import Schema
from celc.resolve.scopes import Beside, Frame, bound_later, surely_bound, to_the_left
from celc.resolve.types.conditions import condition
from celc.resolve.types.expressions import Site
from celc.resolve.warnings.contradictions import by_subject, check_clauses, excluding, exclusive
from celc.resolve.warnings.impossible import check_joints, check_unless
from celc.resolve.warnings.suspicions import check_search, check_sides, check_use, has_choices

_MOST_COMPARED = 50_000  # pairs of conditions of a filter and of those below it that are compared


@frozen
class Builder:
    """Builds the core formula of one query."""

    schema: Schema
    window_of: Callable[[syntax.Window], core.Window | None]  # resolves the window of a part
    hidden: Mapping[str, Hidden]
    found: Diagnostics
    max_clauses: int
    bounded: bool  # a window, STRICT or a formula without choices keeps the search small
    in_parts: bool  # the query has PARTITION BY
    simultaneous: bool = False  # events of one instant have no order
    lasts: bool = False  # events last
    window: core.Window | None = None  # the window of the query
    selector: str | None = None  # the innermost of NXT, LAST and MAX around, if any
    in_first: bool = False  # in the operand of a FIRST
    asked: dict[Span, tuple[Predicate, ...]] = field(default_factory=dict)
    """For each filter, by its place: the conditions on single events that it certainly implies."""

    def build(self, scoped: Scoped, frame: Frame) -> core.Formula:
        """The core formula of a part whose filters see `frame` around their own labels."""
        node, parts = scoped.node, scoped.parts
        look(node.span)
        match node:
            case syntax.EventAtom():
                types_of = self.schema.types_of(scoped.support.types)
                return core.Atom(node.type.text, types_of, node.span)
            case syntax.As():
                sure = {node.label.text: (1,)} if parts[0].support.least else {}
                operand = self.build(parts[0], _beside(frame, sure, 0))
                return core.As(operand, node.label.text, node.span)
            case syntax.Rename():
                operand = self._scope(parts[0], frame)
                return core.Rename(operand, node.old.text, node.new.text, node.span)
            case syntax.Project():
                operand = self._scope(parts[0], frame)
                return core.Project(operand, tuple(scoped.labels), node.span)
            case syntax.Iteration():
                operand = self._scope(parts[0], frame, repeated=node.most is None)
                bounds = (node.least, node.most)
                return core.Iteration(operand, node.contiguous, node.span, *bounds)
            case syntax.Sequence():
                return self._sequence(node, parts, frame)
            case syntax.First():
                return self._scope(parts[0], frame)  # an error, which is reported
            case syntax.Conjunction():
                return self._conjunction(scoped, node, frame)
            case syntax.Disjunction():
                operands = tuple([self.build(part, frame) for part in parts])
                return core.Disjunction(operands, node.span)
            case syntax.Unless():
                return self._unless(scoped, node, frame)
            case syntax.Filter():
                return self._filter(parts[0], node, frame)
            case syntax.Selector():
                return self._selector(parts[0], node, frame)
            case syntax.Within():
                return self._within(parts[0], node, frame)
            case syntax.AbsenceBefore():
                return self._absence_before(scoped, node, frame)
            case syntax.AbsenceAfter():
                return self._absence_after(scoped, node, frame)
            case syntax.OtherEvent():
                raise AssertionError(STANDS_FOR)
            case _:
                assert_never(node)

    def _scope(self, scoped: Scoped, outer: Frame, *, repeated: bool = False) -> core.Formula:
        frame = Frame(scoped.labels, None, outer, repeated or outer.repeated)
        return self.build(scoped, frame)

    def _sequence(
        self, node: syntax.Sequence, parts: Sequence[Scoped], frame: Frame
    ) -> core.Formula:
        negated = (False, *(link.negated for link in node.links))
        taken = [k for k in range(len(parts)) if not negated[k]]
        assert taken[-1] == len(parts) - 1, "the parser refuses '!' at the end of a sequence"
        operators = sorted({"':'" if link.contiguous else "';'" for link in node.links})
        sides = operands_taken(node, parts)
        bound = [side.labels for side in sides]
        check_sides(bound, " or ".join(operators), self.schema, self.found)
        placed = dict(zip(taken, bound, strict=True))
        sure = surely_bound([placed.get(k, {}) for k in range(len(parts))])

        def at(k: int) -> Frame:
            """The frame of an operand, or of what is absent before one."""
            if not chooses_first(parts[k]):
                return _beside(frame, sure, k)
            left = merge([frame.left, *(placed[j] for j in taken if j < k)], one_after_another)
            right = merge([frame.right, *(placed[j] for j in taken if j > k)], one_after_another)
            return replace(_beside(frame, sure, k), left=left, right=right)

        operands = [self.build(parts[0], at(0))]
        gaps: list[bool | core.Formula] = []
        firsts: list[Chosen | None] = [None]
        for before, k in pairwise(taken):
            link = node.links[k - 1]
            if isinstance(link.operand, syntax.First):
                operand, chosen = self._first(parts[k], link.operand, at(k))
                if all(side.optional for side in sides[: len(operands)]):
                    self.found.add(messages.misplaced_first(link.operand.span, missing=True))
                operands.append(operand)
                firsts.append(chosen)
            else:
                operands.append(self.build(parts[k], at(k)))
                firsts.append(None)
            if k == before + 1:
                gaps.append(link.contiguous)
                continue
            assert k == before + 2, "the parser refuses '!' twice in a row"
            labels = merge([placed[j] for j in taken if j <= k], one_after_another)
            there = at(before + 1)
            around = Frame(labels, None, there, frame.repeated, there.left, there.right)
            gaps.append(self._scope(parts[before + 1], around))
        optional = [side.optional for side in sides]
        return ways_of(Chain(operands, optional, gaps, firsts), node.span, lasts=self.lasts)

    def _first(
        self, scoped: Scoped, node: syntax.First, frame: Frame
    ) -> tuple[core.Formula, Chosen]:
        """The operand of FIRST. Its conditions see what is to the left of it; in rounds also what
        earlier rounds have taken."""
        part = scoped.parts[0]
        left = frame.left
        if node.most != 1:
            left = merge([left, part.labels], one_after_another)
        outer = to_the_left(replace(frame, left=left))
        later = {
            label: Hidden("later", binding.place)
            for label, binding in bound_later(replace(frame, left=left)).items()
        }
        inner = replace(self, hidden={**self.hidden, **later}, in_first=True)
        single = {label for label, one in part.labels.items() if one.extent.most == 1}
        history = frozenset(single & left.keys())
        own = Frame(part.labels, None, outer, frame.repeated, history=history)
        operand = inner.build(part, own)
        absent = None
        if node.absent is not None:
            beside = Frame(part.labels, None, outer, frame.repeated, part.labels)
            absent = inner._scope(scoped.parts[1], beside)
        named = labels_asked(operand) | (labels_asked(absent) if absent else frozenset())
        outside = named - part.labels.keys()
        both = sorted(outside & frame.left.keys() & frame.right.keys())
        for label in both:
            place = frame.left[label].place
            self.found.add(messages.sees_the_left(label, node.span, place))
        back = labels_asked(operand, back=True) & history
        if isinstance(node.operand, syntax.Iteration) and node.operand.least == 1:
            self.found.add(messages.of_one_round(node.span))
        return operand, Chosen(node, absent, tuple(sorted(back)), tuple(both))

    def _conjunction(self, scoped: Scoped, node: syntax.Conjunction, frame: Frame) -> core.Formula:
        parts = scoped.parts
        check_joints(scoped, node, self.schema, self.found, simultaneous=self.simultaneous)
        sure = surely_bound([part.labels for part in parts])
        operands = [self.build(part, _beside(frame, sure, k)) for k, part in enumerate(parts)]
        fold_joints(node, [self._asked_of_all(part) for part in parts], self._exclude_sides)
        return fold_joints(node, operands, _balanced)

    def _asked_of_all(self, scoped: Scoped) -> tuple[Predicate, ...]:
        """Conditions that hold for all events of the labels that a part binds; there may be
        more."""
        match scoped.node:
            case syntax.Filter():
                return self.asked[scoped.node.span] + self._asked_of_all(scoped.parts[0])
            case syntax.As() | syntax.Selector() | syntax.Unless() | syntax.Within():
                return self._asked_of_all(scoped.parts[0])
            case syntax.AbsenceBefore() | syntax.AbsenceAfter():
                return self._asked_of_all(scoped.parts[0])
            case _:
                return ()

    def _exclude_sides(
        self, operator: str, sides: Sequence[tuple[Predicate, ...]]
    ) -> tuple[Predicate, ...]:
        if operator == "ALL":
            return ()
        asked = tuple(predicate for side in sides for predicate in side)
        problem = exclusive(asked)
        if problem is None:
            return asked
        self.found.add(problem)
        return ()

    def _unless(self, scoped: Scoped, node: syntax.Unless, frame: Frame) -> core.Formula:
        left, right = scoped.parts
        check_unless(scoped, self.found)
        around = Frame(left.labels, None, frame, frame.repeated, left.labels)
        return core.Unless(self.build(left, frame), self._scope(right, around), node.span)

    def _selector(self, part: Scoped, node: syntax.Selector, frame: Frame) -> core.Formula:
        inner = self
        if self.in_first:
            self.found.add(messages.selector_inside(node.span))
        if node.strategy == "STRICT":
            # Intervals are few, so their matches need no window to stay within bounds.
            inner = replace(self, bounded=True)
        else:
            what = f"what {node.strategy}(…) inside a formula chooses"
            self.found.add(warnings.one_ordered_scan(what, not self.in_parts, node.span))
            # A selector chooses in the whole stream, whatever window or STRICT(…) is around it.
            inner = replace(self, bounded=not has_choices(part), selector=node.strategy)
        return core.Selector(node.strategy, inner._scope(part, frame), node.span)

    def _within(self, part: Scoped, node: syntax.Within, frame: Frame) -> core.Formula:
        operand = replace(self, bounded=True).build(part, frame)
        window = self.window_of(node.window)
        if window is None:
            return operand
        check_window_length(window, part.length, node.operand.span, self.found)
        return core.Within(operand, window, node.span)

    def _absence_before(
        self, scoped: Scoped, node: syntax.AbsenceBefore, frame: Frame
    ) -> core.Formula:
        operand, forbidden = self._beside_absence(scoped, frame)
        length = self.window_of(node.length)
        if length is None:
            return operand
        return core.AbsenceBefore(operand, forbidden, length, node.span)

    def _absence_after(
        self, scoped: Scoped, node: syntax.AbsenceAfter, frame: Frame
    ) -> core.Formula:
        operand, forbidden = self._beside_absence(scoped, frame)
        if node.length is not None:
            length, from_start = self.window_of(node.length), False
        else:
            length, from_start = self.window, True
        if length is None:
            return operand
        return core.AbsenceAfter(operand, forbidden, length, from_start, node.span)

    def _beside_absence(self, scoped: Scoped, frame: Frame) -> tuple[core.Formula, core.Formula]:
        """The part before or after which an absence stands, and what is absent."""
        part, absent = scoped.parts
        left = part.labels if isinstance(scoped.node, syntax.AbsenceAfter) else {}
        around = Frame(part.labels, None, frame, frame.repeated, left)
        operand = self.build(part, frame)
        # Its length bounds what is absent, as a window does.
        return operand, replace(self, bounded=True)._scope(absent, around)

    def _filter(self, part: Scoped, node: syntax.Filter, frame: Frame) -> core.Formula:
        operand = self.build(part, frame)
        self.asked[node.span] = ()
        inner = Frame(part.labels, None, frame, frame.repeated)
        site = Site(self.schema, inner, self.hidden, self.found, "filter", condition)
        tree = condition(node.condition, site)
        if tree is None:
            return operand
        size = size_of(tree)
        if size.exceeds(self.max_clauses):
            self.found.add(
                types.condition_too_large(
                    size.clauses, size.predicates, self.max_clauses, node.condition.span
                )
            )
            return operand
        clauses = clauses_of(tree)
        predicates = check_use(clauses, inner, self.found)
        if not (self.bounded or is_bounded(node.operand)):
            check_search(predicates, inner, self.selector, self.found)
        each = self.schema.for_each
        certain = [one for one in clauses if not reads_parameters(one)]
        asked = check_clauses(certain, inner, self.found)
        here = by_subject(asked)
        below = islice(_filters_within(part), _MOST_COMPARED // (1 + len(asked)))
        problems = (excluding(self.asked[span], here) for span in below)
        problem = next((problem for problem in problems if problem is not None), None)
        if problem is None:
            self.asked[node.span] = asked
        else:
            self.found.add(problem)
        if each is not None:
            return filtered(operand, clauses, part.labels, each, node.span, self.found)
        return core.Filter(operand, clauses, node.span)


def _filters_within(scoped: Scoped) -> Iterator[Span]:
    """The places of the filters whose labels' events are all under the same label in this part.
    Filters that judge each match count only if the labels they name are surely bound."""
    node, parts = scoped.node, scoped.parts
    match node:
        case syntax.EventAtom() | syntax.Rename() | syntax.Project() | syntax.Disjunction():
            return
        case syntax.Filter():
            yield node.span
        case syntax.Sequence():
            # An operand that may be missing judges no match without it.
            parts = tuple(one.part for one in operands_taken(node, parts) if not one.optional)
        case syntax.Unless() | syntax.AbsenceBefore() | syntax.AbsenceAfter():
            parts = parts[:1]
        case syntax.As() | syntax.Iteration() | syntax.Conjunction() | syntax.Selector():
            pass
        case syntax.First():
            parts = parts[:1]
        case syntax.Within():
            pass
        case syntax.OtherEvent():
            raise AssertionError(STANDS_FOR)
        case _:
            assert_never(node)
    for part in parts:
        yield from _filters_within(part)


def _beside(frame: Frame, sure: Mapping[str, tuple[int, ...]], own: int) -> Frame:
    return replace(frame, beside=Beside(sure, own, frame.beside))


def _balanced(operator: Literal["AND", "ALL"], operands: Sequence[core.Formula]) -> core.Formula:
    """Operands in a row, joined as a tree of least depth. Both operators are associative."""
    if len(operands) == 1:
        return operands[0]
    half = (len(operands) + 1) // 2
    left, right = _balanced(operator, operands[:half]), _balanced(operator, operands[half:])
    span = left.span.to(right.span)
    if operator == "AND":
        return core.Conjunction(left, right, span)
    return core.All(left, right, span)

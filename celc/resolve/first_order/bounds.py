"""The labels that formulas bind in the first paper's sense, and the places that bind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.traversal import matched_parts_of
from celc.diagnostics.deadline import look
from celc.diagnostics.source import Span

NO_LABELS = frozenset[str]()


@frozen
class BoundLabels:
    """The labels, event types aside, that a formula binds.

    `surely`: outside `+` on every branch, the paper's bound(φ). `maybe`: outside `+` on some
    branch, its vdef₊(φ). `iterated`: under `+`.
    """

    surely: frozenset[str] = NO_LABELS
    maybe: frozenset[str] = NO_LABELS
    iterated: frozenset[str] = NO_LABELS

    def union(self, *others: BoundLabels) -> BoundLabels:
        """The labels that several parts bind together."""
        return BoundLabels(
            self.surely.union(*(other.surely for other in others)),
            self.maybe.union(*(other.maybe for other in others)),
            self.iterated.union(*(other.iterated for other in others)),
        )


class Bounds:
    """The labels that each formula of one query binds; each formula is looked at once."""

    def __init__(self, query: core.Query) -> None:
        # Held, because the answers are kept by identity: to hash or compare a formula would mean
        # to read all of it.
        self._query = query
        self._known: dict[int, BoundLabels] = {}
        self.types = frozenset(each.name for stream in query.streams for each in stream.event_types)

    def of(self, formula: core.Formula) -> BoundLabels:
        """The labels that a formula of the query binds."""
        known = self._known.get(id(formula))
        if known is None:
            known = self._known[id(formula)] = self._bound_by(formula)
        return known

    def labels(self) -> set[str]:
        """All labels that the formulas asked for so far bind."""
        return {label for known in self._known.values() for label in known.maybe | known.iterated}

    def _bound_by(self, formula: core.Formula) -> BoundLabels:
        look(formula.span)
        match formula:
            case core.Atom():
                return BoundLabels()
            case core.As():
                own = frozenset({formula.label})
                return self.of(formula.operand).union(BoundLabels(own, own))
            case core.Rename():
                return self._bound_by_renaming(formula)
            case core.Project():
                part, kept = self.of(formula.operand), frozenset(formula.labels)
                return BoundLabels(part.surely & kept, part.maybe & kept, part.iterated & kept)
            case core.Iteration():
                part = self.of(formula.operand)
                return BoundLabels(NO_LABELS, NO_LABELS, part.maybe | part.iterated)
            case core.Sequence():
                return BoundLabels().union(*map(self.of, formula.operands))
            case core.Disjunction():
                parts = [self.of(operand) for operand in formula.operands]
                surely = [part.surely for part in parts]
                every = surely[0].intersection(*surely) if surely else NO_LABELS
                return replace(BoundLabels().union(*parts), surely=every)
            case core.Conjunction() | core.All() | core.Absence():
                return self.of(formula.left).union(self.of(formula.right))
            case core.ThenFirst():
                return self.of(formula.left).union(self.of(formula.operand))
            case core.Unless():
                return self.of(formula.left)
            case core.Filter() | core.Selector() | core.Within():
                return self.of(formula.operand)
            case core.AbsenceBefore() | core.AbsenceAfter():
                return self.of(formula.operand)
            case _:
                assert_never(formula)

    def _bound_by_renaming(self, formula: core.Rename) -> BoundLabels:
        part, old, new = self.of(formula.operand), formula.old, formula.new

        def renamed(labels: frozenset[str]) -> frozenset[str]:
            return (labels - {old}) | {new} if old in labels else labels

        if old in self.types:
            own = frozenset({new})
            return part.union(BoundLabels(own, own))
        return BoundLabels(renamed(part.surely), renamed(part.maybe), renamed(part.iterated))


def places_binding(formula: core.Formula, label: str, *, under_iteration: bool) -> Iterator[Span]:
    """The places where AS or a renaming binds a label outside `+`, or also under it."""
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

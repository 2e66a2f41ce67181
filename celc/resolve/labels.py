"""Labels: the names that each part of a formula can bind.

One walk, bottom-up, gives every part of a formula its labels. With each label come the event types
and the number of positions that it can have, judged from the structure alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, TypeVar, assert_never

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics, Fix
from celc.diagnostics.messages import absences, clauses, names
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.event_types import STANDS_FOR, types_called, without
from celc.resolve.extents import (
    NOTHING,
    Binding,
    Combine,
    Extent,
    Labels,
    earliest,
    identical,
    merge,
    one_after_another,
    one_of,
    overlaid,
    repeated,
)
from celc.resolve.optional_parts import size_of_ways
from celc.resolve.schema import Schema

MAX_EVENTS = 20_000
"""The most events of a formula whose rounds, and all ways to leave out operands, are written out.
As many are allowed when its conditions are moved to its events."""

# How far after a name to look for an event that it could be the label of.
_NEAR = 80


@frozen
class Scoped:
    """A formula of the syntax tree with the labels that it can bind."""

    node: syntax.Formula
    labels: Labels
    support: Extent  # the extent of all labelled positions together
    length: int  # the least number of events in a match
    depth: int  # the nesting of the formula in core CEL
    parts: tuple[Scoped, ...]
    """The operands in the order of the text, with those after `!` and right of UNLESS."""
    size: int  # the number of events, with rounds and operands that may be missing written out


def chooses_first(scoped: Scoped) -> bool:
    """Whether a FIRST stands in a formula, or the formula is one."""
    return isinstance(scoped.node, syntax.First) or any(map(chooses_first, scoped.parts))


Cut = Literal["negated", "unless", "projected", "renamed", "undeclared", "later"]


@frozen
class Hidden:
    """A label that some part of the formula binds, and why the rest of the formula lacks it."""

    why: Cut
    place: Span


# --- chains of AND and ALL ------------------------------------------------------------------------

JOINTS: Mapping[str, Combine] = {"AND": identical, "ALL": overlaid}

Value = TypeVar("Value")


def fold_joints(
    node: syntax.Conjunction,
    values: Sequence[Value],
    join: Callable[[Literal["AND", "ALL"], list[Value]], Value],
) -> Value:
    """Evaluate a chain of AND and ALL from left to right; equal operators in a row are joined at
    once."""
    left = values[0]
    steps = zip((joint.operator for joint in node.joints), values[1:], strict=True)
    for operator, run in groupby(steps, key=lambda step: step[0]):
        left = join(operator, [left, *(value for _, value in run)])
    return left


# --- the walk -------------------------------------------------------------------------------------


class Annotator:
    """Gives every part of one query's formula its labels."""

    def __init__(self, schema: Schema, found: Diagnostics, *, lasts: bool = False) -> None:
        self.schema = schema
        self.found = found
        self._lasts = lasts  # whether events last
        self.hidden: dict[str, Hidden] = {}  # the labels that are cut
        self.too_large = False  # whether the formula has too many events, which is reported

    def annotate(self, node: syntax.Formula) -> Scoped:
        """The formula with its labels. Reports names that mean nothing or two things."""
        look(node.span)
        match node:
            case syntax.EventAtom():
                return self._atom(node)
            case syntax.As():
                return self._as(node)
            case syntax.Rename():
                return self._rename(node)
            case syntax.Project():
                return self._project(node)
            case syntax.Iteration():
                return self._iteration(node)
            case syntax.First():
                self.found.add(absences.misplaced_first(node.span))
                return self._first(node)
            case syntax.Sequence():
                return self._sequence(node)
            case syntax.Conjunction():
                return self._conjunction(node)
            case syntax.Disjunction():
                parts = tuple(map(self.annotate, node.operands))
                return Scoped(
                    node,
                    merge([part.labels for part in parts], one_of),
                    one_of([part.support for part in parts]),
                    min(part.length for part in parts),
                    1 + max(part.depth for part in parts),
                    parts,
                    sum(part.size for part in parts),
                )
            case syntax.Unless():
                left, right = self.annotate(node.left), self.annotate(node.right)
                self._hide(right.labels, "unless")
                depth = 1 + max(left.depth, right.depth)
                size = left.size + right.size
                parts = (left, right)
                return Scoped(node, left.labels, left.support, left.length, depth, parts, size)
            case syntax.Filter() | syntax.Selector() | syntax.Within():
                part = self.annotate(node.operand)
                return _around(node, part, part.labels, part.support)
            case syntax.AbsenceBefore() | syntax.AbsenceAfter():
                part, absent = self.annotate(node.operand), self.annotate(node.absent)
                self._hide(absent.labels, "negated")
                depth = 1 + max(part.depth, absent.depth)
                size = part.size + absent.size
                parts = (part, absent)
                return Scoped(node, part.labels, part.support, part.length, depth, parts, size)
            case syntax.OtherEvent():
                return self._other_event(node)
            case _:
                assert_never(node)

    def _other_event(self, node: syntax.OtherEvent) -> Scoped:
        """`NOT(φ)`: any event of FROM, without a label, where φ has no match."""
        hidden = dict(self.hidden)
        scoped = self.annotate(without(node, self.schema))
        self.hidden = hidden  # a label of a NOT is bound nowhere, rather than cut
        return scoped

    def _hide(self, labels: Labels, why: Cut) -> None:
        for label, binding in labels.items():
            self.hidden.setdefault(label, Hidden(why, binding.place))

    def _cut_inside(self, part: Scoped, label: syntax.Name, bound: Labels) -> Diagnostic | None:
        """Why a formula lacks a label that some part of it binds; None where none does."""
        cut = self.hidden.get(label.text)
        span = part.node.span
        if cut is None or not span.start <= cut.place.start < span.end:
            return None
        return names.hidden_label(label.text, cut.why, list(bound), label.span, cut.place)

    def _atom(self, node: syntax.EventAtom) -> Scoped:
        meant = self._meant_as_label(node)
        types = types_called(node.stream, node.type, self.schema, self.found, meant)
        extent = Extent(types, 1, 1)
        binding = Binding(extent, node.span, None, node.span.start)
        atom = Scoped(node, {node.type.text: binding}, extent, 1, 1, (), 1)
        if not any(one.is_rest for one in self.schema.types_of(types)):
            return atom
        # An event of a type that is not declared has no label.
        self._hide(atom.labels, "undeclared")
        around = syntax.Project((), node, node.span)
        return _around(around, atom, {}, support_of(atom, frozenset()))

    def _meant_as_label(self, node: syntax.EventAtom) -> Fix | None:
        """The change for `x : A`, where x was meant as a label."""
        text, end = self.found.source.text, node.span.end
        after = re.match(r"\s*:\s*(\w+)", text[end : end + _NEAR])
        if after is None or after[1] not in self.schema.masks:
            return None
        span = Span(node.span.start, end + after.end())
        return Fix(span, f"{after[1]} AS {self.found.source.slice(node.span)}")

    def _check_new_label(self, label: syntax.Name) -> None:
        if label.text in self.schema.masks:
            place = self.schema.place_of_type(label.text)
            self.found.add(names.label_is_event_type(label.text, label.span, place))

    def _as(self, node: syntax.As) -> Scoped:
        part = self.annotate(node.operand)
        self._check_new_label(node.label)
        labels = {label: replace(binding, bare_at=None) for label, binding in part.labels.items()}
        before = labels.get(node.label.text)
        at = node.label.span.start
        if before is None:
            made = Binding(part.support, node.label.span, at, None)
        else:
            made = replace(before, extent=part.support, named_at=earliest((before.named_at, at)))
        labels[node.label.text] = made
        return _around(node, part, labels, part.support)

    def _rename(self, node: syntax.Rename) -> Scoped:
        part = self.annotate(node.operand)
        old, new = node.old.text, node.new.text
        self._check_new_label(node.new)
        labels = dict(part.labels)
        if old not in labels:
            self.found.add(
                self._cut_inside(part, node.old, labels)
                or names.unbound_in_rename(old, list(labels), node.old.span)
            )
        elif old == new:
            self.found.add(names.rename_to_itself(old, node.span))
        else:
            self._hide({old: labels.pop(old)}, "renamed")
            at, joined = node.new.span.start, labels.get(new)
            labels[new] = Binding(
                support_of(part, frozenset((old, new))),
                joined.place if joined else node.new.span,
                earliest((at, joined.named_at if joined else None)),
                joined.bare_at if joined else None,
            )
        return _around(node, part, labels, part.support)

    def _project(self, node: syntax.Project) -> Scoped:
        part = self.annotate(node.operand)
        kept: dict[str, Binding] = {}
        named: dict[str, Span] = {}
        for label in node.labels:
            name = label.text
            if name in named:
                self.found.add(names.repeated_label(name, "this PROJECT", label.span, named[name]))
            elif name not in part.labels:
                self.found.add(
                    self._cut_inside(part, label, part.labels)
                    or names.unbound_in_project(name, list(part.labels), label.span)
                )
            else:
                kept[name] = replace(part.labels[name], named_at=label.span.start, bare_at=None)
            named.setdefault(name, label.span)
        dropped = {name: part.labels[name] for name in part.labels if name not in kept}
        self._hide(dropped, "projected")
        support = support_of(part, frozenset(kept))
        return _around(node, part, kept, support)

    def _iteration(self, node: syntax.Iteration) -> Scoped:
        part = self.annotate(node.operand)
        labels = {
            label: replace(binding, extent=repeated(binding.extent, node))
            for label, binding in part.labels.items()
        }
        around = _around(node, part, labels, repeated(part.support, node))
        size = part.size * (node.least if node.most is None else node.most)
        return self._sized(replace(around, length=part.length * node.least, size=size))

    def _operand(self, link: syntax.Link) -> Scoped:
        """An operand of a sequence behind the first one, where FIRST can stand."""
        node = link.operand
        if not isinstance(node, syntax.First) or link.negated:
            return self.annotate(node)
        if link.contiguous:
            self.found.add(absences.misplaced_first(node.span, contiguous=True))
        return self._first(node)

    def _first(self, node: syntax.First) -> Scoped:
        """`(!χ ; FIRST ψ){m,n}`, with the labels of its rounds."""
        part = self.annotate(node.operand)
        parts, depth = [part], part.depth
        if node.absent is not None:
            absent = self.annotate(node.absent)
            self._hide(absent.labels, "negated")
            parts, depth = [part, absent], max(depth, absent.depth)
        rounds = node.least if node.most is None else node.most
        labels = {
            label: replace(binding, extent=repeated(binding.extent, node))
            for label, binding in part.labels.items()
        }
        return self._sized(
            Scoped(
                node,
                labels,
                repeated(part.support, node),
                part.length * node.least,
                depth + 1,
                tuple(parts),
                sum(one.size for one in parts) * rounds,
            )
        )

    def _sized(self, scoped: Scoped) -> Scoped:
        """A formula. It is reported where it is the first with too many events."""
        if scoped.size <= MAX_EVENTS or self.too_large:
            return scoped
        self.too_large = True
        self.found.add(clauses.formula_too_large(MAX_EVENTS, scoped.node.span))
        return scoped

    def _sequence(self, node: syntax.Sequence) -> Scoped:
        parts = (self.annotate(node.first), *map(self._operand, node.links))
        for link, part in zip(node.links, parts[1:], strict=True):
            if link.negated:
                self._hide(part.labels, "negated")
        taken = operands_taken(node, parts)
        absences = len(parts) - len(taken)
        optional = any(operand.optional for operand in taken)
        scoped = Scoped(
            node,
            merge([operand.labels for operand in taken], one_after_another),
            one_after_another([operand.support for operand in taken]),
            sum(operand.part.length for operand in taken if not operand.optional),
            1 + absences + 2 * optional + max(part.depth for part in parts),
            parts,
            size_of_ways(node, [part.size for part in parts], lasts=self._lasts),
        )
        return self._sized(scoped) if optional else scoped

    def _conjunction(self, node: syntax.Conjunction) -> Scoped:
        parts = tuple(map(self.annotate, (node.first, *(joint.operand for joint in node.joints))))
        labels = fold_joints(
            node, [part.labels for part in parts], lambda op, run: merge(run, JOINTS[op])
        )
        support = fold_joints(
            node, [part.support for part in parts], lambda op, run: JOINTS[op](run)
        )
        length = max(part.length for part in parts)
        depth = fold_joints(
            node,
            [part.depth for part in parts],
            lambda op, run: max(run) + (len(run) - 1).bit_length(),
        )
        size = sum(part.size for part in parts)
        return Scoped(node, labels, support, length, depth, parts, size)


def _around(node: syntax.Formula, part: Scoped, labels: Labels, support: Extent) -> Scoped:
    """An operator on a single formula, whose matches are as long as those of the formula."""
    return Scoped(node, labels, support, part.length, part.depth + 1, (part,), part.size)


@frozen
class Taken:
    """An operand of a sequence that is part of its match, if it is there at all."""

    part: Scoped
    optional: bool

    @property
    def labels(self) -> Labels:
        """Its labels, with what it adds to the sequence."""
        if not self.optional:
            return self.part.labels
        return {
            label: replace(binding, extent=replace(binding.extent, least=0))
            for label, binding in self.part.labels.items()
        }

    @property
    def support(self) -> Extent:
        """The positions that it adds to those of the sequence."""
        return replace(self.part.support, least=0) if self.optional else self.part.support


def operands_taken(node: syntax.Sequence, parts: Sequence[Scoped]) -> tuple[Taken, ...]:
    """The operands of a sequence that are part of its match: those not after `!`."""
    links = zip(node.links, parts[1:], strict=True)
    first = Taken(parts[0], node.first_is_optional)
    return (first, *(Taken(part, link.optional) for link, part in links if not link.negated))


def positive_parts(node: syntax.Sequence, parts: Sequence[Scoped]) -> tuple[Scoped, ...]:
    links = zip(node.links, parts[1:], strict=True)
    return (parts[0], *(part for link, part in links if not link.negated))


def support_of(scoped: Scoped, wanted: frozenset[str]) -> Extent:
    """The extent of all positions that carry at least one of the labels `wanted`."""
    if not any(label in scoped.labels for label in wanted):
        return NOTHING
    node, parts = scoped.node, scoped.parts
    match node:
        case syntax.EventAtom():
            return scoped.support
        case syntax.As():
            if node.label.text in wanted:
                return scoped.support
            return support_of(parts[0], wanted)
        case syntax.Rename():
            before = wanted - {node.old.text}
            if node.new.text in wanted:
                before |= {node.old.text}
            return support_of(parts[0], before)
        case syntax.Project():
            return support_of(parts[0], wanted & scoped.labels.keys())
        case syntax.Iteration() | syntax.First():
            return repeated(support_of(parts[0], wanted), node)
        case syntax.Sequence():
            extents = [
                replace(extent, least=0) if operand.optional else extent
                for operand in operands_taken(node, parts)
                for extent in [support_of(operand.part, wanted)]
            ]
            return one_after_another(extents)
        case syntax.Disjunction():
            return one_of([support_of(part, wanted) for part in parts])
        case syntax.Conjunction():
            extents = [support_of(part, wanted) for part in parts]
            return fold_joints(node, extents, lambda op, run: JOINTS[op](run))
        case syntax.Unless() | syntax.Filter() | syntax.Selector() | syntax.Within():
            return support_of(parts[0], wanted)
        case syntax.AbsenceBefore() | syntax.AbsenceAfter():
            return support_of(parts[0], wanted)
        case syntax.OtherEvent():
            raise AssertionError(STANDS_FOR)
        case _:
            assert_never(node)

"""Labels: the names that each part of a formula can bind.

One walk, bottom-up, gives every part of a formula its labels, and with each label the event types
and the number of positions that it can have, judged from the structure alone (conditions aside).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, TypeAlias, TypeVar, assert_never

from celc.diagnostics.deadline import look
from celc.diagnostics.errors import Diagnostic, Diagnostics, Fix
from celc.diagnostics.messages import names, warnings
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.other_events import STANDS_FOR, without
from celc.resolve.schema import Schema

MANY = 2
"""Positions are counted 0, 1, many."""

# How far after a name to look for an event that it could be the label of.
_NEAR = 80


@dataclass(frozen=True, slots=True)
class Extent:
    """The positions that a label, or a whole match, can have: event types and number."""

    types: int
    least: int
    most: int


NOTHING = Extent(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Binding:
    """A label of a formula.

    `place` is where the text first binds it. `named_at` is the offset at which AS, a renaming or
    PROJECT first makes or names it, `bare_at` that of the first atom of this event type under no
    AS; `SELECT *` goes by both. Either is None where there is none.
    """

    extent: Extent
    place: Span
    named_at: int | None
    bare_at: int | None


Labels: TypeAlias = Mapping[str, Binding]


@dataclass(frozen=True, slots=True)
class Scoped:
    """A formula of the syntax tree with the labels that it can bind.

    `support` is the extent of all labelled positions together, `length` the least number of
    events in a match, `depth` the nesting that the formula has in core CEL. `parts` are the
    operands in the order of the text, those after `!` and right of UNLESS included.
    """

    node: syntax.Formula
    labels: Labels
    support: Extent
    length: int
    depth: int
    parts: tuple[Scoped, ...]


Cut = Literal["negated", "unless", "projected", "renamed"]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A label that some part of the formula binds, and why the rest of the formula lacks it."""

    why: Cut
    place: Span


# --- how labels combine ---------------------------------------------------------------------------

Combine: TypeAlias = Callable[[Sequence[Extent]], Extent]


def _types(extents: Sequence[Extent]) -> int:
    types = 0
    for extent in extents:
        types |= extent.types
    return types


def one_after_another(extents: Sequence[Extent]) -> Extent:
    """All parts, on different positions."""
    least = min(MANY, sum(extent.least for extent in extents))
    return Extent(_types(extents), least, min(MANY, sum(extent.most for extent in extents)))


def one_of(extents: Sequence[Extent]) -> Extent:
    """One part of several."""
    return Extent(
        _types(extents),
        min(extent.least for extent in extents),
        max(extent.most for extent in extents),
    )


def overlaid(extents: Sequence[Extent]) -> Extent:
    """All parts, perhaps on the same positions."""
    least = max(extent.least for extent in extents)
    return Extent(_types(extents), least, min(MANY, sum(extent.most for extent in extents)))


def identical(extents: Sequence[Extent]) -> Extent:
    """All parts on exactly the same positions."""
    types = extents[0].types
    for extent in extents:
        types &= extent.types
    return Extent(
        types, max(extent.least for extent in extents), min(extent.most for extent in extents)
    )


def merge(parts: Sequence[Labels], combine: Combine) -> dict[str, Binding]:
    """The labels of several parts together; a part without a label gives it no positions."""
    gathered: dict[str, list[Binding]] = {}
    for labels in parts:
        for label, binding in labels.items():
            gathered.setdefault(label, []).append(binding)
    merged = {}
    for label, bindings in gathered.items():
        extents = [binding.extent for binding in bindings]
        if len(bindings) < len(parts):
            extents.append(NOTHING)
        merged[label] = Binding(
            combine(extents),
            bindings[0].place,
            _earliest(binding.named_at for binding in bindings),
            _earliest(binding.bare_at for binding in bindings),
        )
    return merged


def _earliest(offsets: Iterable[int | None]) -> int | None:
    return min((offset for offset in offsets if offset is not None), default=None)


JOINTS: Mapping[str, Combine] = {"AND": identical, "ALL": overlaid}

Value = TypeVar("Value")


def fold_joints(
    node: syntax.Conjunction,
    values: Sequence[Value],
    join: Callable[[Literal["AND", "ALL"], list[Value]], Value],
) -> Value:
    """Evaluate a chain of AND and ALL from left to right, equal operators in a row at once."""
    left = values[0]
    steps = zip((joint.operator for joint in node.joints), values[1:], strict=True)
    for operator, run in groupby(steps, key=lambda step: step[0]):
        left = join(operator, [left, *(value for _, value in run)])
    return left


# --- the walk -------------------------------------------------------------------------------------


class Annotator:
    """Gives every part of one query's formula its labels; `hidden` collects those that are cut."""

    def __init__(self, schema: Schema, found: Diagnostics) -> None:
        self.schema = schema
        self.found = found
        self.hidden: dict[str, Hidden] = {}

    def annotate(self, node: syntax.Formula) -> Scoped:
        """The formula with its labels; reports names that mean nothing or two things."""
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
                )
            case syntax.Unless():
                left, right = self.annotate(node.left), self.annotate(node.right)
                self._hide(right.labels, "unless")
                depth = 1 + max(left.depth, right.depth)
                return Scoped(node, left.labels, left.support, left.length, depth, (left, right))
            case syntax.Filter() | syntax.Selector() | syntax.Within():
                part = self.annotate(node.operand)
                return Scoped(node, part.labels, part.support, part.length, part.depth + 1, (part,))
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
        extent = Extent(self._atom_types(node), 1, 1)
        binding = Binding(extent, node.span, None, node.span.start)
        return Scoped(node, {node.type.text: binding}, extent, 1, 1, ())

    def _atom_types(self, node: syntax.EventAtom) -> int:
        name, schema = node.type.text, self.schema
        declared = schema.declarations.streams
        read = [stream.name for stream in schema.streams]
        if node.stream is None:
            mask = schema.masks.get(name, 0)
            if mask or not declared:
                return mask
            owners = [
                s.name for s in declared.values() if any(t.name == name for t in s.event_types)
            ]
            if owners:
                place = schema.declarations.places[owners[0], name]
                self.found.add(
                    names.event_type_not_in_from(name, owners, read, node.type.span, place)
                )
            else:
                where = "this query's streams"
                self.found.add(
                    names.unknown_event_type(
                        name, list(schema.masks), where, node.type.span, self._meant_as_label(node)
                    )
                )
            return 0
        stream = node.stream.text
        if stream not in declared:
            if declared:
                self.found.add(names.unknown_stream(stream, list(declared), node.stream.span))
            return 0
        if stream not in read:
            self.found.add(names.stream_not_in_from(stream, read, node.stream.span))
            return 0
        for k, event_type in enumerate(schema.event_types):
            if (event_type.stream, event_type.name) == (stream, name):
                if len(read) == 1:
                    self.found.add(warnings.stream_not_read(stream, name, node.span))
                return 1 << k
        offered = [event_type.name for event_type in declared[stream].event_types]
        self.found.add(
            names.unknown_event_type(name, offered, f"stream '{stream}'", node.type.span)
        )
        return 0

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
            made = replace(before, extent=part.support, named_at=_earliest((before.named_at, at)))
        labels[node.label.text] = made
        return Scoped(node, labels, part.support, part.length, part.depth + 1, (part,))

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
                _earliest((at, joined.named_at if joined else None)),
                joined.bare_at if joined else None,
            )
        return Scoped(node, labels, part.support, part.length, part.depth + 1, (part,))

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
        return Scoped(node, kept, support, part.length, part.depth + 1, (part,))

    def _iteration(self, node: syntax.Iteration) -> Scoped:
        part = self.annotate(node.operand)
        labels = {
            label: replace(binding, extent=_repeated(binding.extent))
            for label, binding in part.labels.items()
        }
        return Scoped(node, labels, _repeated(part.support), part.length, part.depth + 1, (part,))

    def _sequence(self, node: syntax.Sequence) -> Scoped:
        parts = tuple(map(self.annotate, (node.first, *(link.operand for link in node.links))))
        taken = positive_parts(node, parts)
        for link, part in zip(node.links, parts[1:], strict=True):
            if link.negated:
                self._hide(part.labels, "negated")
        absences = len(parts) - len(taken)
        return Scoped(
            node,
            merge([part.labels for part in taken], one_after_another),
            one_after_another([part.support for part in taken]),
            sum(part.length for part in taken),
            1 + absences + max(part.depth for part in parts),
            parts,
        )

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
        return Scoped(node, labels, support, length, depth, parts)


def _repeated(extent: Extent) -> Extent:
    return Extent(extent.types, extent.least, MANY) if extent.most else extent


def positive_parts(node: syntax.Sequence, parts: Sequence[Scoped]) -> tuple[Scoped, ...]:
    """The parts of a sequence that take part in its match: those not after `!`."""
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
        case syntax.Iteration():
            return _repeated(support_of(parts[0], wanted))
        case syntax.Sequence():
            taken = positive_parts(node, parts)
            return one_after_another([support_of(part, wanted) for part in taken])
        case syntax.Disjunction():
            return one_of([support_of(part, wanted) for part in parts])
        case syntax.Conjunction():
            extents = [support_of(part, wanted) for part in parts]
            return fold_joints(node, extents, lambda op, run: JOINTS[op](run))
        case syntax.Unless() | syntax.Filter() | syntax.Selector() | syntax.Within():
            return support_of(parts[0], wanted)
        case syntax.OtherEvent():
            raise AssertionError(STANDS_FOR)
        case _:
            assert_never(node)

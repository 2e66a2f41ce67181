"""The query that measures a comparison: its two sides, for one choice of positions.

Each label of it has what one choice gives: the chosen position, all positions, those before the
chosen one. So its expressions are ordinary expressions of SELECT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import BentComparison, Bound
from celc_runtime.values.types import DataType

from celc.diagnostics.source import Span
from celc.near.conditions import MIRRORED, Found, Moving, Names
from celc.near.edits import Edit, quoted, spliced
from celc.parse import syntax
from celc.parse.trees import nodes_of

AGGREGATES = frozenset(
    (
        *("FIRST", "LAST", "MIN", "MAX", "SUM", "AVG", "COUNT", "COLLECT"),
        *("VARIANCE", "STDDEV", "MEDIAN", "NTH"),
    )
)


@frozen
class Sides:
    """The texts of a comparison for one choice of positions."""

    items: tuple[str, ...]
    measure: BentComparison
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of its query, each with the label whose event types it has."""


def measured(query: str, moving: tuple[Moving | None, ...], found: Found, names: Names) -> Sides:
    """The expressions that measure a comparison, as items of SELECT."""
    writer = _Writer(names, found.owner)
    bounds: list[Bound] = []
    items: list[str] = []
    for number, one in enumerate(moving):
        if one is None:
            continue
        operator = one.side.operator if one.left_moves else MIRRORED[one.side.operator]
        parts = {"moving": one.moving, "staying": one.staying}
        for name, node in parts.items():
            text = writer.written(node, node.span)
            items.append(f"({text}) AS {name}{number}")
            if one.type is not DataType.INTERVAL:
                items.append(f"CAST(({text}) AS STRING) AS {name}{number}_text")
        columns = f"moving{number}", f"staying{number}"
        bounds.append(Bound(operator, *columns, one.share, one.room, one.one))
    needed = tuple(name for name in writer.labels if name in writer.looking_back)
    condition = writer.condition(found)
    items.append(f"IF({condition}, TRUE, FALSE) AS holds")
    measure = BentComparison(
        query,
        tuple(bounds),
        tuple(writer.chosen),
        tuple(writer.gathered),
        tuple(writer.before),
        tuple(writer.prior),
        needed,
    )
    return Sides(tuple(items), measure, writer.labels)


class _Writer:
    """Writes conditions over labels that each have what one choice gives them."""

    def __init__(self, names: Names, owner: str | None) -> None:
        self.names, self.owner = names, owner
        self.chosen: dict[str, None] = {}
        self.gathered: dict[str, None] = {}
        self.before: dict[tuple[str, int], None] = {}
        self.prior: dict[str, None] = {}
        self.labels: dict[str, str] = {}
        self.looking_back: set[str] = set()

    def condition(self, found: Found) -> str:
        """The text of the condition around a comparison. Another comparison that looks back is
        TRUE where nothing is before, also under NOT."""
        tree, owner = found.around, found.owner_around
        changes = list(found.left_out)
        gone = [edit.span for edit in found.left_out]
        self._edit(tree, owner, changes, gone)
        around: list[Edit] = []
        self._guard(tree, found.node, True, owner, around, gone)
        return spliced(self.names.source.text, tree.span, _joined(changes, around))

    def _guard(
        self,
        node: Any,
        bent: Any,
        positive: bool,
        owner: str | None,
        edits: list[Edit],
        gone: list[Span],
    ) -> None:
        span = node.span
        if node is bent or any(one.start <= span.start and span.end <= one.end for one in gone):
            return
        match node:
            case syntax.NotCondition():
                self._guard(node.operand, bent, not positive, owner, edits, gone)
            case syntax.AndCondition() | syntax.OrCondition():
                for one in node.operands:
                    self._guard(one, bent, positive, owner, edits, gone)
            case syntax.EventCondition():
                inside = node.label.text
                self._guard(node.condition, bent, positive, inside, edits, gone)
            case _:
                looked = _Writer(self.names, owner)
                looked.written(node, span)
                names = [f"COUNT({quoted(name)})" for name in sorted(looked.looking_back)]
                if names and positive:
                    edits.append(Edit(Span(span.start, span.start), "("))
                    nothing = " OR ".join(f"{name} = 0" for name in names)
                    edits.append(Edit(Span(span.end, span.end), f" OR {nothing})"))
                elif names:
                    edits.append(Edit(Span(span.start, span.start), "("))
                    something = " AND ".join(f"{name} > 0" for name in names)
                    edits.append(Edit(Span(span.end, span.end), f" AND {something})"))

    def written(self, tree: Any, span: Span, edits: tuple[Edit, ...] = ()) -> str:
        """The text of a condition or an expression, with other labels."""
        changes = list(edits)
        gone = [edit.span for edit in edits]
        self._edit(tree, self.owner, changes, gone)
        return spliced(self.names.source.text, span, changes)

    def _edit(self, node: Any, owner: str | None, edits: list[Edit], gone: list[Span]) -> None:
        if isinstance(node, tuple):
            for one in node:
                self._edit(one, owner, edits, gone)
            return
        span = getattr(node, "span", None)
        if span is None or any(one.start <= span.start and span.end <= one.end for one in gone):
            return
        match node:
            case syntax.EventCondition():
                # `x[p]` is p with x before each bare name.
                inside = node.condition.span
                edits.append(Edit(Span(node.span.start, inside.start), "("))
                edits.append(Edit(Span(inside.end, node.span.end), ")"))
                self._edit(node.condition, node.label.text, edits, gone)
                return
            case syntax.Attribute():
                edits.append(Edit(node.span, self._attribute(node, owner)))
                return
            case syntax.TypeTest():
                label = self._label(node.label.text)
                edits.append(Edit(node.label.span, label))
                return
            case syntax.Call(function=name) if name.text.upper() == "PREV":
                edits.append(Edit(node.span, self._previous(node, owner)))
                return
            case syntax.Call(function=name) if (
                name.text.upper() in AGGREGATES or name.text in self.names.gathering
            ):
                for argument in (node.argument, *node.more):
                    self._argument(argument, node.prior, owner, edits)
                if node.prior:
                    text, begin = self.names.source.text, node.function.span.end
                    at = text.upper().index("PRIOR", begin)
                    edits.append(Edit(Span(at, at + len("PRIOR")), ""))
                return
        for value in _children(node):
            self._edit(value, owner, edits, gone)

    def _argument(self, node: Any, prior: bool, owner: str | None, edits: list[Edit]) -> None:
        for one in nodes_of(node):
            if isinstance(one, syntax.Attribute):
                bare = one.label is None and owner is None
                label = (
                    one.attribute.text
                    if bare
                    else (one.label.text if one.label is not None else owner)
                )
                assert label is not None
                kept = self.prior if prior else self.gathered
                kept[label] = None
                if prior:
                    self._label(label)
                name = f"{label} {'prior' if prior else 'all'}"
                if prior:
                    self.looking_back.add(name)
                self.labels[name] = label
                text = quoted(name) if bare else f"{quoted(name)}.{quoted(one.attribute.text)}"
                edits.append(Edit(one.span, text))

    def _previous(self, node: syntax.Call, owner: str | None) -> str:
        argument = node.argument
        assert isinstance(argument, syntax.Attribute)
        label = argument.label.text if argument.label is not None else owner
        assert label is not None
        self._label(label)
        self.before[label, node.distance] = None
        name = f"{label} before {node.distance}"
        self.looking_back.add(name)
        self.labels[name] = label
        return f"{quoted(name)}.{quoted(argument.attribute.text)}"

    def _attribute(self, node: syntax.Attribute, owner: str | None) -> str:
        if node.label is not None and node.label.text in self.names.sets:
            return self.names.source.slice(node.span)
        label = node.label.text if node.label is not None else owner
        assert label is not None, "a bare name is an argument or stands in brackets"
        return f"{self._label(label)}.{quoted(node.attribute.text)}"

    def _label(self, label: str) -> str:
        self.chosen[label] = None
        name = f"{label} chosen"
        self.labels[name] = label
        return quoted(name)


def _joined(changes: list[Edit], around: list[Edit]) -> list[Edit]:
    """Edits of expressions with those around comparisons, in the order in which they are carried
    out: what opens comes before what stands at its place, what closes behind it."""
    opening = [one for one in around if one.text == "("]
    merged = list(changes)
    for one in opening:
        at = next((k for k, old in enumerate(merged) if old.span.start == one.span.start), None)
        if at is None:
            merged.append(one)
        else:
            merged[at] = Edit(merged[at].span, one.text + merged[at].text)
    return [*merged, *(one for one in around if one.text != "(")]


def _children(node: Any) -> Iterator[Any]:
    if is_dataclass(node) and not isinstance(node, Span | syntax.Name):
        for one in fields(node):
            value = getattr(node, one.name)
            if isinstance(value, tuple) or (is_dataclass(value) and not isinstance(value, Span)):
                yield value

"""SELECT: the labels and expressions that become columns, and the names of the columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from celc.core.formula import (
    AttributeDeclaration,
    Collection,
    Expression,
    OutputExpression,
    OutputLabel,
)
from celc.diagnostics.errors import Fix
from celc.diagnostics.messages import names, types
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.resolve.expressions import (
    Site,
    attribute_argument,
    attribute_type,
    binding_of,
    expression,
)
from celc.resolve.extents import Labels

_OWN_COLUMNS = ("start_pos", "end_pos", "start_time", "end_time")


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns that SELECT asks for, and the labels it projects on.

    Those include labels that only expressions mention.
    """

    items: tuple[OutputLabel | OutputExpression, ...]
    labels: frozenset[str]


Items: TypeAlias = syntax.AllItems | syntax.NoItems | tuple[syntax.SelectItem, ...]


def select(
    items: Items | None, site: Site, source: Source, span: Span, partition_by: Container[str] = ()
) -> Selection:
    """What SELECT keeps of a formula whose labels `site` shows; without SELECT the same as `*`.

    `span` is the place of items from `*`. The attributes of `partition_by` are columns anyhow.
    """
    match items:
        case None | syntax.AllItems():
            kept = star(site.frame.labels)
            columns = tuple(_column(label, None, span, site) for label in kept)
            return Selection(columns, frozenset(kept))
        case syntax.NoItems():
            return Selection((), frozenset())
        case _:
            return _listed(items, site, source, partition_by)


def star(labels: Labels) -> tuple[str, ...]:
    """The labels that `SELECT *` keeps, in order of first appearance in the text.

    Those made with AS or by renaming or named in a PROJECT, and the type name of each atom that
    stands under no AS; only as far as they reach the top of the formula.
    """
    places = {}
    for label, binding in labels.items():
        offsets = [at for at in (binding.named_at, binding.bare_at) if at is not None]
        if offsets:
            places[label] = min(offsets)
    return tuple(sorted(places, key=places.__getitem__))


def _column(
    label: str, attributes: tuple[AttributeDeclaration, ...] | None, span: Span, site: Site
) -> OutputLabel:
    if attributes is None:
        mask = site.frame.labels[label].extent.types
        attributes = site.schema.attributes_of(mask)
    return OutputLabel(label, attributes, span)


def _listed(
    items: tuple[syntax.SelectItem, ...], site: Site, source: Source, partition_by: Container[str]
) -> Selection:
    columns: list[OutputLabel | OutputExpression] = []
    places: dict[str, Span] = {}
    mentioned: dict[str, None] = {}
    for item in items:
        if isinstance(item, syntax.ExpressionItem):
            mentioned.update(dict.fromkeys(_labels_in(item.expression)))
            column = _expression_column(item, site, source)
            columns.extend(() if column is None else (column,))
            continue
        label, span = item.label.text, item.label.span
        mentioned[label] = None
        if label in places:
            site.found.add(names.repeated_label(label, "SELECT", span, places[label]))
        elif label in partition_by and label not in site.frame.labels:
            site.found.add(names.partition_in_select(label, span, _without(item, items)))
        elif binding_of(label, span, site) is not None:
            columns.append(_column(label, _attributes(item, site), span, site))
        places.setdefault(label, span)
    return Selection(tuple(columns), frozenset(mentioned))


def _without(item: syntax.SelectItem, items: tuple[syntax.SelectItem, ...]) -> Fix:
    """The change that leaves an item of SELECT out."""
    at = items.index(item)
    if len(items) == 1:
        return Fix(item.span, "NONE")
    if at:
        return Fix(Span(items[at - 1].span.end, item.span.end), "")
    return Fix(Span(item.span.start, items[1].span.start), "")


def _attributes(item: syntax.LabelItem, site: Site) -> tuple[AttributeDeclaration, ...] | None:
    if item.attributes is None:
        return None
    places: dict[str, Span] = {}
    declared = []
    for attribute in item.attributes:
        name = attribute.text
        if name in places:
            where = f"{item.label.text}[…]"
            site.found.add(names.repeated_attribute(name, where, attribute.span, places[name]))
            continue
        places[name] = attribute.span
        data_type = attribute_type(item.label.text, item.label.span, attribute, site)
        if data_type is not None:
            declared.append(AttributeDeclaration(name, data_type))
    return tuple(declared)


def _expression_column(
    item: syntax.ExpressionItem, site: Site, source: Source
) -> OutputExpression | None:
    node = item.expression
    value: Expression | Collection | None
    if isinstance(node, syntax.Call) and node.function.text.upper() == "COLLECT" and not node.prior:
        argument = attribute_argument(node, site)
        value = None if argument is None else Collection(*argument, node.span)
    else:
        value = expression(node, site)
    text = source.slice(node.span)
    if item.name is None:
        site.found.add(types.unnamed_expression(text, _name_for(node), node.span))
        return None
    if value is None:
        return None
    labels = tuple(dict.fromkeys(_labels_in(node)))
    return OutputExpression(item.name.text, text, value, labels, item.name.span)


def _name_for(node: syntax.Expression) -> str:
    """A name for the column of an expression, after what stands in it."""
    match node:
        case syntax.Attribute(label=syntax.Name() as label):
            words = [label.text, node.attribute.text]
        case syntax.Call(argument=syntax.Attribute() as argument):
            words = [node.function.text.lower(), argument.attribute.text]
        case _:
            words = ["value"]
    name = "_".join(words)
    return name if name.isidentifier() else "value"


def _labels_in(node: syntax.Expression) -> Iterator[str]:
    match node:
        case syntax.Attribute():
            yield node.attribute.text if node.label is None else node.label.text
        case syntax.Arithmetic():
            yield from _labels_in(node.left)
            yield from _labels_in(node.right)
        case syntax.Negation():
            yield from _labels_in(node.operand)
        case syntax.Call():
            for argument in (node.argument, *node.more):
                yield from _labels_in(argument)
        case _:
            pass


def check_columns(
    selection: Selection,
    partition_by: tuple[tuple[str, Span], ...],
    star_span: Span,
    site: Site,
    *,
    decided: bool,
) -> None:
    """Report output columns whose names Spark could not tell apart; `decided`: matches can wait for
    an absence at their end, so that the output says when they are decided."""
    own = (*_OWN_COLUMNS, "decided_time") if decided else _OWN_COLUMNS
    taken: dict[str, tuple[str, str, Span | None]] = {
        _key(name): ("the column", name, None) for name in own
    }
    columns = [("partition attribute", name, span) for name, span in partition_by]
    for item in selection.items:
        if isinstance(item, OutputLabel):
            # Items from `*` have no place of their own in SELECT: the label's place is taken.
            span = site.frame.labels[item.label].place if item.span == star_span else item.span
            columns.append(("label", item.label, span))
        else:
            columns.append(("expression", item.name, item.span))
    for what, name, span in columns:
        other = taken.get(_key(name))
        if other is None:
            taken[_key(name)] = (what, name, span)
        else:
            site.found.add(names.duplicate_column(name, what, other[1], other[0], span, other[2]))


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()

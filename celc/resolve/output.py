"""SELECT: the labels and expressions that become columns, and the names of the columns."""

import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.traversal import Leaf, nodes_of
from celc.diagnostics.errors import Diagnostics, Fix
from celc.diagnostics.messages import names, types
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.resolve.extents import Labels
from celc.resolve.types import meant
from celc.resolve.types.expressions import (
    Site,
    attribute_argument,
    attribute_type,
    binding_of,
    expression,
)

_TIMES = ("start_time", "end_time")
OWN_COLUMNS = ("start_pos", "end_pos", *_TIMES)


@frozen
class Selection:
    """The columns that SELECT asks for, and the labels it projects on, with those that only
    expressions name."""

    items: tuple[core.OutputLabel | core.OutputExpression, ...]
    labels: frozenset[str]
    parameters: tuple[str, ...] | None = None
    """Attributes that the column of the parameter set shows; None: all."""


Items: TypeAlias = syntax.AllItems | syntax.NoItems | tuple[syntax.SelectItem, ...]


def select(
    items: Items | None,
    site: Site,
    source: Source,
    span: Span,
    partition_by: Container[str] = (),
    *,
    flat: bool = False,
) -> Selection:
    """What SELECT keeps of a formula whose labels `site` shows; without SELECT the same as `*`.

    `span` is the place of items from `*`. The attributes of `partition_by` are columns in any case.
    `flat`: a label becomes a column for each of its attributes.
    """
    selection = _selected(items, site, source, span, partition_by)
    if not flat:
        return selection
    columns = [column for item in selection.items for column in _flat(item, site)]
    return replace(selection, items=tuple(columns))


def _flat(
    item: core.OutputLabel | core.OutputExpression, site: Site
) -> Iterator[core.OutputExpression]:
    """A column as SELECT FLAT has it: for a label, one for each attribute of its only event."""
    if isinstance(item, core.OutputExpression):
        yield item
        return
    extent = site.frame.labels[item.label].extent
    # A label without a column would not tell rows apart.
    if (extent.least, extent.most) != (1, 1) or not item.attributes:
        example = item.attributes[0].name if item.attributes else None
        site.found.add(types.flat_label(item.label, example, not extent.least, item.span))
        return
    for one in item.attributes:
        value = core.AttributeValue(item.label, one.name, one.type, item.span)
        text, name = f"{item.label}.{one.name}", f"{item.label}_{one.name}"
        yield core.OutputExpression(name, text, value, (item.label,), item.span)


def _selected(
    items: Items | None, site: Site, source: Source, span: Span, partition_by: Container[str]
) -> Selection:
    match items:
        case None | syntax.AllItems():
            kept = star(site.frame.labels)
            columns = tuple(_column(label, None, span, site) for label in kept)
            return Selection(columns, frozenset(kept))
        case syntax.NoItems():
            return Selection((), frozenset())
        case _:
            of_set = [item for item in items if is_of_set(item, site)]
            labels = tuple(item for item in items if item not in of_set)
            found = _listed(labels, site, source, partition_by)
            return replace(found, parameters=_shown(of_set, site))


def is_of_set(item: syntax.SelectItem, site: Site) -> bool:
    """Whether it is the item `rule` or `rule[a]` of the parameter set."""
    each = site.schema.for_each
    if each is None or not isinstance(item, syntax.LabelItem):
        return False
    return item.label.text == each.set.name


def shown_of_set(items: Items | None, site: Site) -> tuple[str, ...] | None:
    """The attributes that the column of the parameter set shows beside totals; None: all."""
    written = items if isinstance(items, tuple) else ()
    return _shown([item for item in written if is_of_set(item, site)], site)


def _shown(items: Sequence[syntax.SelectItem], site: Site) -> tuple[str, ...] | None:
    """The attributes that the column of the parameter set shows; None: all of them."""
    each, shown = site.schema.for_each, None
    assert each is not None or not items
    for item in items:
        assert isinstance(item, syntax.LabelItem)
        assert each is not None
        if item is not items[0]:
            before = items[0].span
            site.found.add(names.repeated_label(item.label.text, "SELECT", item.span, before))
        elif item.attributes is not None:
            places: dict[str, Span] = {}
            for attribute in item.attributes:
                text, span = attribute.text, attribute.span
                if text in places:
                    where = f"{item.label.text}[…]"
                    site.found.add(names.repeated_attribute(text, where, span, places[text]))
                elif each.knows(attribute, site.found):
                    places[text] = span
            shown = tuple(places)
    return shown


def star(labels: Labels) -> tuple[str, ...]:
    """The labels that `SELECT *` keeps, in order of first appearance in the text.

    They are the labels made with AS or by renaming or named in a PROJECT, and the type name of each
    atom under no AS, as far as they reach the top of the formula.
    """
    places = {}
    for label, binding in labels.items():
        offsets = [at for at in (binding.named_at, binding.bare_at) if at is not None]
        if offsets:
            places[label] = min(offsets)
    return tuple(sorted(places, key=places.__getitem__))


def _column(
    label: str, attributes: tuple[core.AttributeDeclaration, ...] | None, span: Span, site: Site
) -> core.OutputLabel:
    if attributes is None:
        mask = site.frame.labels[label].extent.types
        attributes = site.schema.attributes_of(mask)
    return core.OutputLabel(label, attributes, span)


def _listed(
    items: tuple[syntax.SelectItem, ...], site: Site, source: Source, partition_by: Container[str]
) -> Selection:
    columns: list[core.OutputLabel | core.OutputExpression] = []
    places: dict[str, Span] = {}
    mentioned: dict[str, None] = {}
    for item in items:
        if isinstance(item, syntax.ExpressionItem):
            column = _expression_column(item, site, source)
            if column is not None:
                columns.append(column)
                mentioned.update(dict.fromkeys(column.labels))
            continue
        label, span = item.label.text, item.label.span
        mentioned[label] = None
        if label in places:
            site.found.add(names.repeated_label(label, "SELECT", span, places[label]))
        elif (label in _TIMES or label in partition_by) and label not in site.frame.labels:
            whose = "every answer" if label in _TIMES else f"PARTITION BY {written(label)}"
            site.found.add(names.partition_in_select(whose, span, without_item(item, items)))
        elif binding_of(label, span, site) is not None:
            columns.append(_column(label, _attributes(item, site), span, site))
        places.setdefault(label, span)
    return Selection(tuple(columns), frozenset(mentioned))


def without_item(
    item: syntax.SelectItem, items: Sequence[syntax.SelectItem], alone: str = "NONE"
) -> Fix:
    """The change that leaves an item of SELECT out; `alone` stands for an only one."""
    at = items.index(item)
    if len(items) == 1:
        return Fix(item.span, alone)
    if at:
        return Fix(Span(items[at - 1].span.end, item.span.end), "")
    return Fix(Span(item.span.start, items[1].span.start), "")


def _attributes(item: syntax.LabelItem, site: Site) -> tuple[core.AttributeDeclaration, ...] | None:
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
            declared.append(core.AttributeDeclaration(name, data_type))
    return tuple(declared)


def _expression_column(
    item: syntax.ExpressionItem, site: Site, source: Source
) -> core.OutputExpression | None:
    node = item.expression
    if meant.selects_type(node, site):
        return None
    value: core.Expression | core.Collection | None
    if isinstance(node, syntax.Call) and node.function.text.upper() == "COLLECT" and not node.prior:
        argument = attribute_argument(node, site)
        value = None if argument is None else core.Collection(*argument, node.span)
    else:
        value = expression(node, site)
    text = source.slice(node.span)
    if item.name is None:
        site.found.add(types.unnamed_expression(text, _name_for(node), node.span))
        return None
    if value is None:
        return None
    return core.OutputExpression(item.name.text, text, value, _labels_of(value), item.name.span)


def _name_for(node: syntax.Expression) -> str:
    """A name for the column of an expression, taken from its text."""
    match node:
        case syntax.Attribute(label=syntax.Name() as label):
            words = [label.text, node.attribute.text]
        case syntax.Call(argument=syntax.Attribute() as argument):
            words = [node.function.text.lower(), argument.attribute.text]
        case _:
            words = ["value"]
    name = "_".join(words)
    return name if name.isidentifier() else "value"


def _labels_of(value: core.Expression | core.Collection) -> tuple[str, ...]:
    """The labels that an item names, in order of first appearance."""
    if isinstance(value, core.Collection):
        return (value.label,)
    leaves = (node for node in nodes_of(value) if isinstance(node, Leaf))
    return tuple(dict.fromkeys(leaf.label for leaf in leaves))


def check_columns(
    selection: Selection,
    partition_by: tuple[tuple[str, Span], ...],
    star_span: Span,
    site: Site,
    *,
    decided: bool,
    collapsed: bool,
    uncertain: bool,
) -> None:
    """Report output columns whose names Spark could not distinguish.

    - `decided`: matches can wait for an absence at their end, so the output says when they are
      decided
    - `collapsed`: the output says for how many matches a row stands
    - `uncertain`: the output says how likely a match is
    """
    own = OWN_COLUMNS + (("decided_time",) if decided else ())
    own += ("matches",) if collapsed else ()
    own += ("confidence",) if uncertain else ()
    columns = [Column("partition attribute", name, span) for name, span in partition_by]
    each = site.schema.for_each
    if each is not None:
        columns.append(Column("parameter set", each.set.name, each.clause))
    for item in selection.items:
        if isinstance(item, core.OutputLabel):
            # Items from `*` have no place of their own in SELECT, so the label's place is used.
            span = site.frame.labels[item.label].place if item.span == star_span else item.span
            columns.append(Column("label", item.label, span))
        else:
            columns.append(Column("expression", item.name, item.span))
    check_names(own, columns, site.found)


class Column(NamedTuple):
    """A column of the output: what it is, and its place in the query."""

    what: str
    name: str
    span: Span


def check_names(own: Iterable[str], columns: Iterable[Column], found: Diagnostics) -> None:
    """Report columns whose names Spark could not distinguish; `own` are those without a place."""
    taken: dict[str, tuple[str, str, Span | None]] = {
        _key(name): ("the column", name, None) for name in own
    }
    for what, name, span in columns:
        other = taken.get(_key(name))
        if other is None:
            taken[_key(name)] = (what, name, span)
        else:
            found.add(names.duplicate_column(name, what, other[1], other[0], span, other[2]))


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()

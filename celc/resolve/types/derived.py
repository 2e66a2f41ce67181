"""What is computed of one event alone, before the query reads it.

A function of one event's attributes in a condition becomes an attribute of the event. So conditions
on it are ordinary ones: pushed down to Spark, part of symbols, usable in PREV and as keys. On Spark
the column is Spark's own expression, on one machine vectorised code.
"""

from __future__ import annotations

from dataclasses import replace

from celc.core import formula as core
from celc.core.traversal import Leaf, map_expression, nodes_of
from celc.resolve.scopes import look_up
from celc.resolve.types.site import Site


def of_event(value: core.Expression, site: Site) -> core.Expression:
    """The attribute of an event that a value is, where it is of one event; else the value."""
    leaves = [n for n in nodes_of(value) if isinstance(n, Leaf | core.Variable)]
    labels = {n.label for n in leaves if isinstance(n, core.AttributeValue)}
    if len(labels) != 1 or not all(isinstance(n, core.AttributeValue) for n in leaves):
        return value
    (label,) = labels
    seen = look_up(site.frame, label)
    mask = site.schema.everything if seen is None else seen[0].extent.types

    def known(node: Leaf) -> core.Expression:
        assert isinstance(node, core.AttributeValue)
        made = site.schema.made.value_of(node.attribute)
        if made is None or site.schema.made.is_declared(node.attribute):
            return _where_declared(node, mask, made, site)
        return made

    alone = map_expression(value, known)
    taken = frozenset(site.schema.types)
    return core.AttributeValue(
        label, site.schema.made.name_of(alone, taken), value.type, value.span
    )


def _where_declared(
    node: core.AttributeValue, mask: int, made: core.Expression | None, site: Site
) -> core.Expression:
    """An attribute without its label, or the value that it is `made` of. It is NULL in an event
    whose type lacks it, whatever the column of the table holds there."""
    value = replace(node, label="") if made is None else made
    if node.attribute == core.TYPE:
        types = site.schema.event_types
        # Of a stream of one type, the table need not tell it.
        alone = core.Constant(core.text_of_type(types[0]), value.type, node.span)
        return alone if len(types) == 1 else value
    lacking = site.schema.lacking(node.attribute) & mask
    if not lacking or lacking == mask:
        return value
    having = map(core.text_of_type, site.schema.types_of(mask & ~lacking))
    of_type = core.AttributeValue("", core.TYPE, core.DataType.STRING, node.span)
    asked = core.Membership(of_type, tuple(having), False, False, node.span)
    null = core.Constant(None, node.type, node.span)
    return core.Conditional(((asked, value),), null, node.type, node.span)

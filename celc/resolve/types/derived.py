"""What is computed from one event alone, before the query reads it.

A function of one event's attributes in a condition becomes an attribute of the event. So conditions
on it are ordinary ones: pushed down to Spark, part of symbols, usable in PREV and as keys. On Spark
the column is Spark's own expression, on one machine vectorised code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, TypeGuard

from celc.core import formula as core
from celc.core.traversal import Leaf, map_expression, nodes_of
from celc.resolve.scopes import look_up
from celc.resolve.types.site import Site


def of_event(value: core.Expression, site: Site) -> core.Expression:
    """The attribute of an event that a value is, where it is of one event; else the value. The
    event is the one chosen for a label, the one before it, or the first or last of a label."""
    found = _event_of(value, site)
    if found is None:
        return value
    mask = _mask_of(found.label, site)

    def known(node: Leaf) -> core.Expression:
        assert isinstance(node, core.AttributeValue | core.Previous | core.Aggregate)
        assert node.attribute is not None
        read = core.AttributeValue(found.label, node.attribute, node.type, node.span)
        made = site.schema.made.value_of(node.attribute)
        if made is None or site.schema.made.is_declared(node.attribute):
            return _where_declared(read, mask, made, site)
        return made

    alone = map_expression(value, known)
    name = site.schema.made.name_of(alone, frozenset(site.schema.types))
    read = replace(found, attribute=name, type=value.type, span=value.span)
    return replace(read, read=_scaled(value.type)) if isinstance(read, core.Aggregate) else read


def _scaled(type: core.DataType) -> tuple[core.DataType, ...]:
    """What FIRST and others say of the type that they read: code for DECIMALs depends on their
    scale."""
    return (type,) if isinstance(type, core.DecimalType) else ()


_OfEvent: TypeAlias = core.AttributeValue | core.Previous | core.Aggregate


def _event_of(value: core.Expression, site: Site) -> _OfEvent | None:
    """How a value reads its only event; None: it reads several, or none."""
    leaves = [n for n in nodes_of(value) if isinstance(n, Leaf | core.Variable)]
    ways = {_without_attribute(n) for n in leaves if _reads_event(n)}
    if len(ways) != 1 or not all(map(_reads_event, leaves)):
        return None
    (found,) = ways
    if not isinstance(found, core.Aggregate):
        return found
    # Where there is no such event, the value is NULL, if it is of NULLs.
    seen = look_up(site.frame, found.label)
    is_there = not found.prior and seen is not None and seen[0].extent.least > 0
    return found if (is_there and found.function != "NTH") or _is_strict(value) else None


def _without_attribute(node: _OfEvent) -> _OfEvent:
    node = replace(node, attribute="", type=core.DataType.BOOLEAN)
    return replace(node, read=()) if isinstance(node, core.Aggregate) else node


def _reads_event(node: core.Expression) -> TypeGuard[_OfEvent]:
    if isinstance(node, core.Aggregate):
        return node.function in ("FIRST", "LAST", "NTH")
    return isinstance(node, core.AttributeValue | core.Previous)


def _is_strict(value: core.Expression) -> bool:
    """Whether a value is NULL where its operands are."""
    return not any(
        isinstance(node, core.Choice | core.Conditional)
        or (isinstance(node, core.Call) and node.function in ("ISNAN", "HASH", "SIZE"))
        for node in nodes_of(value)
    )


def _mask_of(label: str, site: Site) -> int:
    seen = look_up(site.frame, label)
    return site.schema.everything if seen is None else seen[0].extent.types


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

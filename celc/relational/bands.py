"""Conditions `ABS(x.a - y.b) < c`: two floating numbers that lie in a narrow band.

Spark finds such pairs by equality of intervals twice as long as the band. Half an interval is more
than rounding can add, so both numbers are in one interval or in neighbouring ones.
"""

import math

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.core.formula import DataType, Expression
from celc.core.traversal import nodes_of
from celc.relational.relations import Condition, Relations

_FLOATING = (DataType.FLOAT, DataType.DOUBLE)


@frozen
class Band:
    """The value `left` of an event of scan `first` and `right` of one of scan `second` differ by
    less than half of `width`. `second` is joined later."""

    first: str
    second: str
    left: Expression
    right: Expression
    width: float


def bands_of(relations: Relations) -> tuple[Band, ...]:
    """The bands of the conditions, one for each scan that is joined later."""
    places = {scan.name: place for place, scan in enumerate(relations.scans)}
    found: dict[str, Band] = {}
    for condition in relations.conditions:
        band = _band(condition)
        if band is None:
            continue
        if places[band.first] > places[band.second]:
            band = _turned(band)
        known = found.get(band.second)
        if known is None or band.width < known.width:
            found[band.second] = band
    return tuple(found.values())


def absent_bands_of(relations: Relations) -> tuple[Band, ...]:
    """The bands of events that must not be there: the absent event is `second`."""
    found = []
    for missing in relations.missing:
        name = missing.scan.name
        bands = [band for band in map(_band, missing.conditions) if band is not None]
        turned = [_turned(band) if band.first == name else band for band in bands]
        own = [band for band in turned if band.second == name]
        if own:
            found.append(min(own, key=lambda band: band.width))
    return tuple(found)


def is_tied(relations: Relations, band: Band) -> bool:
    """Whether equalities tie both events of a band, directly or through others."""
    tied = {band.first}
    links = [pair for pair in map(_equal, relations.conditions) if pair is not None]
    while more := {scan for pair in links if pair & tied for scan in pair} - tied:
        tied |= more
    return band.second in tied


def _equal(condition: Condition) -> frozenset[str] | None:
    """The two events that an equality ties."""
    if len(condition) != 1 or not isinstance(condition[0], core.Comparison):
        return None
    comparison = condition[0]
    names = {_scan_of(comparison.left), _scan_of(comparison.right)} - {None}
    if comparison.operator != "=" or len(names) != 2:
        return None
    return frozenset(name for name in names if name is not None)


def _turned(band: Band) -> Band:
    return Band(band.second, band.first, band.right, band.left, band.width)


def _band(condition: Condition) -> Band | None:
    if len(condition) != 1 or not isinstance(condition[0], core.Comparison):
        return None
    comparison = condition[0]
    near, bound = comparison.left, comparison.right
    operator = comparison.operator
    if isinstance(bound, core.Absolute):
        near, bound, operator = bound, near, core.MIRRORED[operator]
    if operator not in ("<", "<=") or not isinstance(bound, core.Constant):
        return None
    while isinstance(near, core.Cast) and near.type in _FLOATING:
        near = near.operand
    if not isinstance(near, core.Absolute) or not isinstance(near.operand, core.Arithmetic):
        return None
    difference = near.operand
    if difference.operator != "-" or difference.type not in _FLOATING:
        return None
    first, second = _scan_of(difference.left), _scan_of(difference.right)
    width = 2.0 * bound.value if isinstance(bound.value, int | float) else 0.0
    if first is None or second is None or first == second:
        return None
    if not (width > 0 and math.isfinite(width)):
        return None
    return Band(first, second, difference.left, difference.right, width)


def _scan_of(value: Expression) -> str | None:
    """The only scan that a value reads."""
    names = {node.label for node in nodes_of(value) if isinstance(node, core.AttributeValue)}
    return min(names) if len(names) == 1 else None

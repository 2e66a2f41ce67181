"""What every match of a query has, by event types: far from these no other event is in a match."""

from __future__ import annotations

from typing import TypeAlias

from celc.core import formula as core
from celc.core.traversal import matched_parts_of

_Types: TypeAlias = frozenset[tuple[str, str]]

_MOST = 8  # groups; the others would rule out little more


def needs_of(formula: core.Formula) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Groups of event types as (stream, type): each match has an event of one type of each group.

    Empty where there are not two, since one rules out nothing.
    """
    found = _needs(formula)
    least = [one for one in found if not any(other < one for other in found)]
    groups = sorted(tuple(sorted(one)) for one in least)[:_MOST]
    return tuple(groups) if len(groups) > 1 else ()


def _needs(formula: core.Formula) -> frozenset[_Types]:
    match formula:
        case core.Atom():
            return frozenset({frozenset((one.stream, one.name) for one in formula.types)})
        case core.Disjunction():
            first, *others = map(_needs, formula.operands)
            return first.intersection(*others)
        case core.Iteration() if formula.least == 0:
            return frozenset()
        case core.ThenFirst() if formula.least == 0:
            return _needs(formula.left)
    return frozenset[_Types]().union(*map(_needs, matched_parts_of(formula)))

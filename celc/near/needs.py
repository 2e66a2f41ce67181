"""What every match of a query has, by event types: far from these no other event is in a match. And
what its events have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from celc.core import formula as core
from celc.core.formula import DataType
from celc.core.traversal import formulas_in, matched_parts_of, parts_of
from celc.near.labels import atoms_of
from celc.normal.equalities import equality_of

_Types: TypeAlias = frozenset[tuple[str, str]]

_COUNTED = (DataType.INT, DataType.LONG, DataType.STRING)
"""Types whose values are equal where their codes are."""

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


def tied_by(formula: core.Formula) -> str | None:
    """An attribute with one value in all events of a match, and in all events that can keep them
    from being one; None: there is none, or it is not seen.

    Equalities tie events that each match has. What FIRST and selectors take no equality outside of
    them decides.
    """
    parts = [*formulas_in(formula)]
    for part in parts:
        optional = isinstance(part, core.Iteration) and part.least == 0
        if optional or isinstance(part, core.Disjunction | core.Selector | core.ThenFirst):
            return None
    atoms = {id(one) for one in parts if isinstance(one, core.Atom)}
    tied: dict[str, list[set[int]]] = {}
    for attribute, one in _ties(formula, {}):
        sets = tied.setdefault(attribute, [])
        joined = one.union(*(other for other in sets if other & one))
        tied[attribute] = [other for other in sets if not other & one] + [joined]
    return next((attribute for attribute, sets in tied.items() if atoms in sets), None)


def _ties(
    formula: core.Formula, around: Mapping[str, Mapping[int, core.Atom]]
) -> Iterator[tuple[str, set[int]]]:
    """Attributes with atoms whose events have one value of it. `around`: the atoms under each label
    that a condition sees besides those of its operand."""
    match formula:
        case core.Iteration():
            return  # an equality inside is one of each round
        case core.Filter():
            atoms = {**around, **atoms_of(formula.operand)}
            for clause in formula.clauses:
                match equality_of(clause):
                    case (
                        (left, core.AttributeValue(attribute=name, type=type)),
                        (right, core.AttributeValue(attribute=other)),
                    ) if (
                        name == other and type in _COUNTED
                    ):
                        yield name, {*atoms.get(left, ()), *atoms.get(right, ())}
    inside = matched_parts_of(formula)
    for part in parts_of(formula):
        yield from _ties(part, around if part in inside else {**around, **atoms_of(formula)})

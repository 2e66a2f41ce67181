"""VALID: the labelled events of a match lie between two times of a parameter row.

The condition stands at single events. So it is one more condition of the alphabet, and the index of
rows answers it with the others. An event that a match takes without a label (NOT, PROJECT), and one
that must be absent, may lie at any time.

Rejected: two conditions on the first and the last labelled event, which are not known before a
match ends where a label can be on any of several events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from celc.core import formula as core
from celc.core.formula import Formula
from celc.core.traversal import formulas_in

Labels = frozenset[str] | None
"""Labels that stay on their events; None: all."""


def valid_only(
    formula: Formula,
    time: core.AttributeDeclaration,
    first: str,
    last: str,
    labels: Labels = None,
) -> Formula:
    """The formula whose labelled events have a `time` from the column `first` to the column `last`;
    `labels`: those that its events keep around it."""

    def valid(one: Formula, kept: Labels = labels) -> Formula:
        return valid_only(one, time, first, last, kept)

    match formula:
        case core.Atom():
            if labels is not None and formula.label not in labels:
                return formula
            return _within(formula, time, first, last)
        case core.As():
            # The label is on all events of the operand that have one.
            all_kept = labels is None or formula.label in labels
            return replace(formula, operand=valid(formula.operand, None if all_kept else labels))
        case core.Project():
            kept = frozenset(formula.labels)
            kept = kept if labels is None else kept & labels
            return replace(formula, operand=valid(formula.operand, kept))
        case core.Rename():
            if labels is None:
                return replace(formula, operand=valid(formula.operand))
            kept = labels - {formula.old} | ({formula.old} if formula.new in labels else set())
            return replace(formula, operand=valid(formula.operand, kept))
        case core.Sequence() | core.Disjunction():
            return replace(formula, operands=tuple(map(valid, formula.operands)))
        case core.Absence():
            return replace(formula, left=valid(formula.left), right=valid(formula.right))
        case core.Conjunction() | core.All():
            return replace(formula, left=valid(formula.left), right=valid(formula.right))
        case core.ThenFirst():
            return replace(formula, left=valid(formula.left), operand=valid(formula.operand))
        case core.Unless():
            return replace(formula, left=valid(formula.left))
        case core.Iteration() | core.Filter() | core.Selector() | core.Within():
            return replace(formula, operand=valid(formula.operand))
        case core.AbsenceBefore() | core.AbsenceAfter():
            return replace(formula, operand=valid(formula.operand))
        case _:
            assert_never(formula)


def looks_out(formula: Formula) -> bool:
    """Whether matches depend on events before their first labelled one, or take events that may
    have no label."""
    parts = formulas_in(formula)
    return any(isinstance(part, core.AbsenceBefore | core.Project) for part in parts)


def _within(atom: core.Atom, time: core.AttributeDeclaration, first: str, last: str) -> Formula:
    def value(name: str) -> core.AttributeValue:
        return core.AttributeValue(atom.label, name, time.type, atom.span)

    comparisons = (
        core.Comparison(">=", value(time.name), value(first), atom.span),
        core.Comparison("<=", value(time.name), value(last), atom.span),
    )
    clauses = (core.Clause((one,), (atom.label,), atom.span) for one in comparisons)
    return core.Filter(atom, tuple(clauses), atom.span)

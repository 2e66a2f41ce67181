"""FIRST before an operand, as other formulas where they say the same.

- A FIRST of one event is the absence of such an event before it (`as_absence`). Events that last
  are an exception: one can start in between and end later.
- PREV and PRIOR of a label of the operand look back over the positions to the left too. They become
  functions of the label as it is to the left (`with_history`).
"""

from dataclasses import replace
from typing import assert_never

from celc.core import formula as core
from celc.core.terms import distances_looked_back, labels_asked
from celc.core.traversal import (
    Leaf,
    is_one_event,
    labels_bound,
    map_leaves,
    with_parts_of_first,
)
from celc.diagnostics.source import Span

_HERE = "\0here: "
"""The beginning of a label of the operand, while conditions compare it with the same label to the
left. No label begins so, because a query has no such character."""


def as_absence(formula: core.ThenFirst) -> core.Absence | None:
    """`left ; !operand ; operand`, which says the same where events have no duration; None: the
    operand is more than one event, or it has rounds."""
    is_plain = (formula.least, formula.most, formula.absent) == (1, 1, None)
    if not is_plain or formula.both_sides or formula.looks_back:
        return None
    operand, gap = formula.operand, formula.gap
    if not is_one_event(operand):
        return None
    middle = operand
    if gap is not None:
        asks_other = labels_asked(gap) & labels_bound(operand)
        if asks_other or labels_asked(operand) & labels_bound(gap):
            # Each sees its own labels only.
            middle = core.Project(operand, (), operand.span)
            gap = core.Project(gap, (), gap.span)
        middle = core.Disjunction((gap, middle), formula.span)
    return core.Absence(formula.left, middle, operand, formula.span)


def with_history(formula: core.Formula, labels: tuple[str, ...]) -> core.Formula:
    """The operand of a FIRST, in which `here(x)` is each of these labels x, and x is the label to
    the left."""
    for label in labels:
        formula = _with_history(formula, label)
    return formula


def here(label: str) -> str:
    """The label that stands for one of the operand's own."""
    return _HERE + label


def _with_history(formula: core.Formula, old: str) -> core.Formula:
    new = here(old)

    def changed(part: core.Formula) -> core.Formula:
        return _with_history(part, old)

    def named(label: str) -> str:
        return new if label == old else label

    match formula:
        case core.Atom():
            return replace(formula, label=named(formula.label))
        case core.As():
            return replace(formula, operand=changed(formula.operand), label=named(formula.label))
        case core.Rename():
            operand = changed(formula.operand)
            return replace(formula, operand=operand, old=named(formula.old), new=named(formula.new))
        case core.Project():
            kept = tuple(map(named, formula.labels))
            return replace(formula, operand=changed(formula.operand), labels=kept)
        case core.Filter():
            clauses = tuple(_clause(clause, old, new) for clause in formula.clauses)
            return replace(formula, operand=changed(formula.operand), clauses=clauses)
        case core.Sequence() | core.Disjunction():
            return replace(formula, operands=tuple(map(changed, formula.operands)))
        case core.Absence():
            left, right = changed(formula.left), changed(formula.right)
            return replace(formula, left=left, middle=changed(formula.middle), right=right)
        case core.Conjunction() | core.All() | core.Unless():
            return replace(formula, left=changed(formula.left), right=changed(formula.right))
        case core.ThenFirst():
            looked = tuple(map(named, formula.looks_back))
            both = tuple(map(named, formula.both_sides))
            changed_parts = with_parts_of_first(formula, changed)
            return replace(changed_parts, looks_back=looked, both_sides=both)
        case core.AbsenceBefore() | core.AbsenceAfter():
            absent = changed(formula.absent)
            return replace(formula, operand=changed(formula.operand), absent=absent)
        case core.Iteration() | core.Selector() | core.Within():
            return replace(formula, operand=changed(formula.operand))
        case _:
            assert_never(formula)


def _clause(clause: core.Clause, old: str, new: str) -> core.Clause:
    """A clause in which the label is `new`, and what looks back is a function of `old`. It is TRUE
    where fewer positions are to the left."""
    predicates: list[core.Predicate] = []
    for predicate in clause.predicates:
        predicates.append(_renamed(predicate, old, new))
        distance = distances_looked_back(predicate).get(old)
        if distance is not None:
            predicates.append(_fewer(old, distance, predicate.span))
    labels = tuple(new if label == old else label for label in clause.labels)
    return replace(clause, predicates=tuple(predicates), labels=labels)


def _fewer(label: str, number: int, span: Span) -> core.Comparison:
    count = core.Aggregate("COUNT", label, None, False, core.DataType.LONG, span)
    return core.Comparison("<", count, core.Constant(number, core.DataType.LONG, span), span)


def _renamed(predicate: core.Predicate, old: str, new: str) -> core.Predicate:
    def change(node: Leaf) -> core.Expression:
        if node.label != old:
            return node
        match node:
            case core.Previous(distance=1):
                return core.Aggregate("LAST", old, node.attribute, False, node.type, node.span)
            case core.Previous():
                return core.Aggregate(
                    "NTH",
                    old,
                    node.attribute,
                    False,
                    node.type,
                    node.span,
                    place=-node.distance,
                )
            case core.Aggregate(prior=True):
                return replace(node, prior=False)
            case _:
                return replace(node, label=new)

    if isinstance(predicate, core.Quantified):
        labels = tuple(new if label == old else label for label in predicate.labels)
        condition = _of_quantified(predicate.condition, old, new, every=predicate.every)
        return replace(predicate, labels=labels, condition=condition)
    return map_leaves(predicate, change)


def _of_quantified(truth: core.Truth, old: str, new: str, *, every: bool) -> core.Truth:
    """The condition of SOME, which is not TRUE where fewer positions are to the left, or of EVERY,
    which is."""
    if isinstance(truth, core.Every | core.Some):
        parts = tuple(_of_quantified(part, old, new, every=every) for part in truth.parts)
        return replace(truth, parts=parts)
    found = _renamed(truth, old, new)
    distance = distances_looked_back(truth).get(old)
    if distance is None:
        return found
    fewer = _fewer(old, distance, truth.span)
    if every:
        return core.Some((found, fewer), truth.span)
    return core.Every((found, replace(fewer, operator=">=")), truth.span)

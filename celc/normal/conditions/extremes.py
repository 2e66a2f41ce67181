"""Comparisons with MAX and MIN that single events decide: necessary and sufficient conditions."""

from celc.core import formula as core
from celc.core.fold import is_constant
from celc.core.formula import Clause, Expression
from celc.core.traversal import nodes_of
from celc.diagnostics.source import Span


def necessary(clause: Clause) -> Clause | None:
    """The condition on each single event that a comparison with MAX or MIN implies; None: it
    implies none.

    `x.a > MAX(PRIOR x.a)` asks x.a to be greater than each value before it, so the first value that
    is not smaller refutes it. `x.a > MIN(PRIOR x.a)` asks that of some value only, so only the
    whole set refutes it. These are the false-value and true-value consistent conditions of the SASE
    paper on expensive queries (section 5.2). NULLs are skipped. The clause itself checks that some
    value is not NULL.
    """
    sides = _compared_with_extreme(clause)
    if sides is None:
        return None
    left, operator, right, span = sides
    assert right.attribute is not None
    if (right.function, operator[0]) not in (("MAX", ">"), ("MIN", "<")):
        return None
    if right.prior:
        one: Expression = core.Previous(right.label, right.attribute, right.type, right.span)
        labels = clause.labels
        if labels != (right.label,):
            return None
    else:
        one = core.AttributeValue(right.label, right.attribute, right.type, right.span)
        labels = tuple(dict.fromkeys((*clause.labels, right.label)))
        if right.label in clause.labels:
            return None  # the chosen event and the one of the set have one role
    return Clause(
        (
            core.Comparison(operator, left, one, span),
            core.NullTest(one, False, span),
        ),
        labels,
        clause.span,
    )


def sufficient(clause: Clause) -> Clause | None:
    """The condition on one value before x that makes a comparison with a MIN or MAX of PRIOR TRUE.

    PREV(x.a) stands for that value. None for all other clauses. Several events can wait for such a
    value. The most demanding one decides for all: the others ask for less, and an event before it
    is before them as well.
    """
    sides = _compared_with_extreme(clause)
    if sides is None:
        return None
    left, operator, right, span = sides
    if not right.prior or (right.function, operator[0]) not in (("MIN", ">"), ("MAX", "<")):
        return None
    if clause.labels != (right.label,) or is_constant(left):
        return None
    assert right.attribute is not None
    before = core.Previous(right.label, right.attribute, right.type, right.span)
    return Clause((core.Comparison(operator, left, before, span),), clause.labels, clause.span)


def _compared_with_extreme(
    clause: Clause,
) -> tuple[Expression, core.ComparisonOperator, core.Aggregate, Span] | None:
    """The parts of a clause that compares an expression on chosen events with one function."""
    if len(clause.predicates) != 1:
        return None
    (predicate,) = clause.predicates
    if not isinstance(predicate, core.Comparison) or predicate.beside:
        return None
    left, right, operator = predicate.left, predicate.right, predicate.operator
    if isinstance(left, core.Aggregate):
        left, right, operator = right, left, core.MIRRORED[operator]
    if not isinstance(right, core.Aggregate) or right.attribute is None:
        return None
    if any(isinstance(node, core.Aggregate | core.Previous) for node in nodes_of(left)):
        return None
    return left, operator, right, predicate.span

"""What is TRUE exactly where a condition is not, in SQL's logic of three values.

NOT asks where a condition is FALSE. SOME and EVERY ask where it is TRUE: `NOT (SOME x: x.a > 2)` is
"no x.a is above 2", and a NULL is not above 2. So a comparison becomes its negation, or one of its
sides is NULL.
"""

from dataclasses import replace
from typing import assert_never

from celc.core import formula as core
from celc.core.formula import Expression, Predicate, Truth
from celc.core.terms import type_tested


def complement(truth: Truth) -> Truth:
    """The condition that is TRUE where this one is FALSE or NULL. Where comparisons that look back
    have nothing before, those of one are TRUE and those of the other are not."""
    match truth:
        case core.Every():
            return core.Some(tuple(map(complement, truth.parts)), truth.span)
        case core.Some():
            return core.Every(tuple(map(complement, truth.parts)), truth.span)
        case _:
            return _of_predicate(truth)


def _of_predicate(predicate: Predicate) -> Truth:
    match predicate:
        case core.Quantified():
            return replace(predicate, negated=not predicate.negated)
        case core.NullTest():
            return replace(predicate, negated=not predicate.negated)
        case core.Comparison():
            negated = replace(predicate, operator=core.NEGATED[predicate.operator])
            left, right, others = predicate.left, predicate.right, predicate.beside
            return _or_null(negated, (left, (right, *others)), (right, (left, *others)))
        case core.PatternMatch():
            return _or_null(replace(predicate, negated=not predicate.negated), _alone(predicate))
        case core.Membership() if type_tested(predicate) is not None:
            return replace(predicate, negated=not predicate.negated)
        case core.Membership() if predicate.values and not (
            predicate.negated and predicate.has_null
        ):
            turned = replace(predicate, negated=not predicate.negated, has_null=False)
            return _or_null(turned, _alone(predicate))
        case core.Membership():  # it is never TRUE, or where there is a value
            operand, others = _alone(predicate)
            there = core.NullTest(operand, True, predicate.span, others)
            missing = replace(there, negated=False)
            never = predicate.has_null or not predicate.negated
            return core.Some((there, missing), predicate.span) if never else missing
        case _:
            assert_never(predicate)


def _alone(
    predicate: core.Membership | core.PatternMatch,
) -> tuple[Expression, tuple[Expression, ...]]:
    others = predicate.beside if isinstance(predicate, core.Membership) else ()
    return predicate.operand, others


def _or_null(negated: Predicate, *operands: tuple[Expression, tuple[Expression, ...]]) -> core.Some:
    """A negated predicate, or one of its operands is NULL; each with what is beside it."""
    missing = [
        core.NullTest(operand, False, negated.span, others)
        for operand, others in operands
        if not isinstance(operand, core.Constant) or operand.value is None
    ]
    return core.Some((negated, *missing), negated.span)

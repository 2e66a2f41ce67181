"""Sequences and rounds while they are parsed: operands with their `!` and `?`, numbers in braces.

Whether an operand may have `!` or `?` depends on its neighbours. A grammar that says so would have
several rules for each operand, and its errors would name rules. So the grammar accepts both signs
everywhere, and `check_optional` looks at the whole sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.mistakes import repeats
from celc.parse.mistakes.tokens import report
from celc.parse.tokens import Token


@dataclass(slots=True)
class Negated:
    """An operand after `!`, until the sequence around it is known."""

    bang: Span  # of the `!`
    operand: syntax.Formula
    doubled: bool = False  # whether it is `!!`
    length: syntax.Window | None = None  # what FOR says


@dataclass(slots=True)
class Optional:
    """An operand before `?`, until the sequence around it is known."""

    operand: syntax.Formula
    sign: Span


@dataclass(slots=True)
class Step:
    """An operand of a growing sequence, with the operator before it, and the length after FOR."""

    operator: Token | None
    operand: syntax.Formula
    bang: Span | None = None
    question: Span | None = None
    length: syntax.Window | None = None

    @property
    def span(self) -> Span:
        end = self.question or (self.length.span if self.length else self.operand.span)
        return (self.bang or self.operand.span).to(end)


def link_of(step: Step) -> syntax.Link:
    """The link of a sequence that a step after the first one becomes."""
    assert step.operator is not None
    return syntax.Link(
        contiguous=step.operator.type == "COLON",
        negated=step.bang is not None,
        operand=step.operand,
        operator_span=step.operator.span,
        optional=step.question is not None,
    )


class RoundsBuilder:
    """The methods for rounds in braces and for `?`."""

    diagnostics: Diagnostics

    def exact_bound(self, c: list[Any]) -> repeats.Bounds:
        return repeats.Bounds(c[0], c[0])

    def both_bounds(self, c: list[Any]) -> repeats.Bounds:
        return repeats.Bounds(c[0], c[2])

    def least_bound(self, c: list[Any]) -> repeats.Bounds:
        return repeats.Bounds(c[0], None)

    def greatest_bound(self, c: list[Any]) -> repeats.Bounds:
        return repeats.Bounds(None, c[1])

    def rounds(self, c: list[Any]) -> syntax.Iteration:
        """Rounds in braces."""
        operand, opener, bounds, closer = c
        contiguous, span = opener.type == "COLON_LBRACE", operand.span.to(closer.span)
        problem = repeats.wrong_bounds(bounds, contiguous, opener.span.to(closer.span))
        if problem is not None:
            report(self.diagnostics, problem)
            return syntax.Iteration(operand, contiguous, span)
        least = 1 if bounds.least is None else bounds.least.value
        most = None if bounds.most is None else bounds.most.value
        return syntax.Iteration(operand, contiguous, span, least, most)

    def optional(self, c: list[Any]) -> Optional:
        return Optional(c[0], c[1].span)


def check_optional(steps: Sequence[Step], diagnostics: Diagnostics) -> None:
    """Report operands that cannot be optional."""
    signs = [step.question for step in steps if step.question is not None]
    if signs and all(step.question or step.bang for step in steps):
        report(diagnostics, repeats.all_optional(signs[0]))
        return
    for at, step in enumerate(steps):
        if step.question is None:
            continue
        near = (steps[at - 1] if at else None, *steps[at + 1 : at + 2])
        if any(other is not None and other.bang for other in near):
            span = steps[0].span.to(steps[-1].span)
            ways = _both_ways(steps, at, diagnostics.source)
            report(diagnostics, repeats.optional_beside_absence(step.question, span, ways))
        elif 0 < at < len(steps) - 1:
            before, after = step.operator, steps[at + 1].operator
            assert before is not None
            assert after is not None
            if before.type != after.type:
                texts = [
                    diagnostics.source.slice(one.operand.span) for one in steps[at - 1 : at + 2]
                ]
                signs_there = (before.text, after.text)
                report(
                    diagnostics, repeats.mixed_joints(step.question, after.span, texts, signs_there)
                )


def _both_ways(steps: Sequence[Step], at: int, source: Source) -> tuple[str, str] | None:
    """(the sequence with the optional operand at `at`, the sequence without it), as texts.

    None if there is no such pair: the operand is the first or the last one, or its neighbours both
    have a `!`.
    """
    if not 0 < at < len(steps) - 1 or (steps[at - 1].bang and steps[at + 1].bang):
        return None
    step = steps[at]
    before = source.slice(steps[0].span.to(steps[at - 1].span))
    after = source.slice(steps[at + 1].span.to(steps[-1].span))
    sign = steps[at + 1].operator
    assert sign is not None
    assert step.operator is not None
    middle = f"{step.operator.text} {source.slice(step.operand.span)} {sign.text}"
    return f"{before} {middle} {after}", f"{before} {sign.text} {after}"

"""Where `!` and FOR can stand in a sequence whose operands are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from celc.diagnostics.errors import Diagnostic
from celc.diagnostics.source import Source
from celc.parse.mistakes import absences
from celc.parse.sequences import Step


def misplaced_absences(
    steps: Sequence[Step], source: Source, event_types: Sequence[str]
) -> Iterator[Diagnostic]:
    """A message for each `!` that cannot stand where it does; `event_types`: those of the query."""
    for at, step in enumerate(steps):
        if step.bang is None:
            continue
        if at == 0:
            found = _first(steps, source, event_types)
        elif at == len(steps) - 1:
            found = _last(steps, source)
        else:
            found = _between(steps, at, source)
        if found is not None:
            yield found


def _first(steps: Sequence[Step], source: Source, event_types: Sequence[str]) -> Diagnostic | None:
    step, following = steps[0], steps[1]
    assert step.bang is not None
    if step.length is None:
        operand, neighbour = source.slice(step.operand.span), source.slice(following.operand.span)
        other = _other_type(event_types, operand, neighbour)
        span = step.span.to(following.span)
        return absences.without_length(step.bang, operand, neighbour, other, span)
    assert following.operator is not None
    if following.operator.type == "COLON":
        return absences.contiguous_after(step.bang, following.operator.span)
    return None


def _last(steps: Sequence[Step], source: Source) -> Diagnostic | None:
    before, step = steps[-2:]
    assert step.bang is not None
    assert step.operator is not None
    if step.operator.type == "COLON":
        return absences.contiguous_before(step.bang, step.operator.span)
    if before.bang is not None and len(steps) == 2:
        return absences.nothing_between(step.bang, before.bang, source.slice(before.span))
    if before.bang is not None:
        operands = source.slice(before.operand.span), source.slice(step.operand.span)
        return absences.negation_twice(step.bang, before.bang, operands)
    return None


def _between(steps: Sequence[Step], at: int, source: Source) -> Diagnostic | None:
    step, previous = steps[at], steps[at - 1].bang
    assert step.bang is not None
    before, operand, after = (source.slice(one.operand.span) for one in steps[at - 1 : at + 2])
    parts = (before, f"!{operand}", after)
    if at == 1 and previous is not None:
        first = source.slice(steps[0].span)
        span = step.span.to(steps[-1].span)
        rest = source.slice(span)
        return absences.lengths_in_a_row(step.bang, previous, first, rest, span)
    if step.length is not None:
        absence = source.slice(step.span)
        return absences.length_between(step.bang, step.length.span, absence, parts, step.span)
    for operator in (step.operator, steps[at + 1].operator):
        assert operator is not None
        if operator.type == "COLON":
            return absences.negation_contiguous(step.bang, operator.span, parts)
    if previous is not None:
        return absences.negation_twice(step.bang, previous, (before, operand))
    return None


def _other_type(event_types: Sequence[str], *texts: str) -> str | None:
    """An event type for the side that is missing."""
    return next((name for name in event_types if name not in texts), None)

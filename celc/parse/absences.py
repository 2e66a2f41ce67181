"""Where `!` and FOR can stand in a sequence whose operands are known."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from celc.diagnostics.errors import Diagnostic
from celc.diagnostics.messages.wording import written
from celc.diagnostics.source import Source, Span
from celc.parse import syntax
from celc.parse.mistakes import absences
from celc.parse.sequences import Step

Times = Mapping[str, tuple[str, ...]]
"""The event types of a query, each with its attributes that are times."""


def misplaced_absences(
    steps: Sequence[Step], source: Source, event_types: Times
) -> Iterator[Diagnostic]:
    """A message for each `!` that cannot stand where it does."""
    for at, step in enumerate(steps):
        if step.bang is None:
            continue
        if at == 0:
            found = _first(steps, source, event_types)
        elif at == len(steps) - 1:
            found = _last(steps, source)
        else:
            found = _between(steps, at, source, event_types)
        if found is not None:
            yield found


def _first(steps: Sequence[Step], source: Source, event_types: Times) -> Diagnostic | None:
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


def _between(
    steps: Sequence[Step], at: int, source: Source, event_types: Times
) -> Diagnostic | None:
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
        mended = _by_times(steps, at, source, event_types)
        span = steps[0].span.to(steps[-1].span)
        counts = isinstance(step.length, syntax.EventsWindow)
        return absences.length_between(
            step.bang, step.length.span, absence, parts, span, mended, counts=counts
        )
    for operator in (step.operator, steps[at + 1].operator):
        assert operator is not None
        if operator.type == "COLON":
            return absences.negation_contiguous(step.bang, operator.span, parts)
    if previous is not None:
        return absences.negation_twice(step.bang, previous, (before, operand))
    return None


def _by_times(steps: Sequence[Step], at: int, source: Source, event_types: Times) -> str | None:
    """A sequence whose conditions say the same as the length of the absence between two events.
    None where one of the three is more than an event, or no attribute is known as the time."""
    length, events = steps[at].length, [one.operand for one in steps[at - 1 : at + 2]]
    if length is None or isinstance(length, syntax.EventsWindow):
        return None
    names = [_event_type(one) for one in events]
    times = [
        name
        for name in event_types.get(names[0], ())
        if all(name in event_types.get(other, ()) for other in names)
    ]
    if length.attribute is None and len(times) != 1:
        return None
    if "" in names:
        return None
    ts = written(times[0] if length.attribute is None else length.attribute.text)
    end = length.parts[-1].span if isinstance(length, syntax.DurationWindow) else length.size.span
    size = source.slice(Span(length.span.start, end.end))
    span = steps[0].span.to(steps[-1].span)
    whole = source.slice(span)
    labels: list[str] = []
    texts: list[str] = []
    for one, name in zip(events, names, strict=True):
        text = source.slice(one.span)
        if isinstance(one, syntax.As):
            label = one.label.text
        elif len(re.findall(rf"\b{re.escape(name)}\b", whole)) == 1:
            label = name
        else:
            taken = {*labels, *re.findall(r"\w+", whole)}
            numbered = (f"{letter}" for letter in (name[0].lower(), *"xyzuvw"))
            label = next((one for one in numbered if one not in taken), f"{name}_{len(labels)}")
            text = f"{text} AS {written(label)}"
        labels.append(label)
        texts.append(text)
    first, absent, last = map(written, labels)
    texts[1] = f"({texts[1]} FILTER {absent}.{ts} - {first}.{ts} <= {size})"
    mended = source.text[span.start : events[0].span.start]
    for one, text, following in zip(events, texts, (*events[1:], None), strict=True):
        until = span.end if following is None else following.span.start
        gap_start = steps[at].span.end if one is events[1] else one.span.end
        mended += text + source.text[gap_start:until]
    return f"({mended} FILTER {last}.{ts} - {first}.{ts} > {size})"


def _event_type(formula: syntax.Formula) -> str:
    event = formula.operand if isinstance(formula, syntax.As) else formula
    return event.type.text if isinstance(event, syntax.EventAtom) else ""


def _other_type(event_types: Iterable[str], *texts: str) -> str | None:
    """An event type for the missing side."""
    return next((name for name in event_types if name not in texts), None)

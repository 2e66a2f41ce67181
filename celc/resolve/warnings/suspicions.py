"""Warnings about formulas that may not mean what was intended, or that cost much.

They look at the structure: labels on two sides of a `;`, labels that a filter may find empty, and
what can make the number of matches, or the search for them, grow exponentially.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from celc.core import formula as core
from celc.core.fold import fold_predicate
from celc.core.terms import labels_chosen_from, nodes_written_in, quantified_labels
from celc.diagnostics.errors import Diagnostic, Diagnostics
from celc.diagnostics.messages import warnings
from celc.diagnostics.messages.wording import quote
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.event_types import STANDS_FOR
from celc.resolve.extents import MANY, UNLIMITED, Binding, Labels
from celc.resolve.labels import Scoped, fold_joints, positive_parts
from celc.resolve.schema import Schema
from celc.resolve.scopes import Frame, look_up, looks_left

# --- labels ---------------------------------------------------------------------------------------


def check_sides(sides: Sequence[Labels], operator: str, schema: Schema, found: Diagnostics) -> None:
    """Warn of each label that two operands of a sequence or ALL bind; names of event types do not
    count."""
    first: dict[str, Binding] = {}
    told: set[str] = set()
    for labels in sides:
        for label, binding in labels.items():
            if not binding.extent.most or label in schema.masks or label in told:
                continue
            if label in first:
                found.add(warnings.unsafe_label(label, operator, binding.place, first[label].place))
                told.add(label)
            first[label] = binding


def check_use(
    clauses: Sequence[core.Clause], frame: Frame, found: Diagnostics
) -> list[core.Predicate]:
    """Warn of labels that a filter names but may find empty, or finds at one position at most.
    Returns the filter's predicates, each once."""
    judged: set[str] = set()
    predicates = list(dict.fromkeys(p for clause in clauses for p in clause.predicates))
    for predicate in predicates:
        found.extend(_idle_counts(predicate, frame))
        of_its_own = quantified_labels(predicate)
        for part in nodes_written_in(predicate):
            back = isinstance(part, core.Previous) or (
                isinstance(part, core.Aggregate) and part.prior
            )
            if not back and not isinstance(part, core.AttributeValue):
                continue
            assert isinstance(part, core.AttributeValue | core.Previous | core.Aggregate)
            binding, sure = _seen(frame, part.label)
            if part.label in of_its_own:
                continue  # SOME and EVERY say what holds of none
            if not sure and part.label not in judged:
                found.add(warnings.maybe_unbound(part.label, part.span, binding.place))
            judged.add(part.label)
            if back and binding.extent.most < MANY and not looks_left(frame, part.label):
                what = "PREV" if isinstance(part, core.Previous) else "PRIOR"
                found.add(
                    warnings.single_position(
                        what, part.label, frame.repeated, part.span, binding.place
                    )
                )
    return predicates


def _seen(frame: Frame, label: str) -> tuple[Binding, bool]:
    seen = look_up(frame, label)
    assert seen is not None, "conditions name only labels that their frames have"
    return seen


def _idle_counts(predicate: core.Predicate, frame: Frame) -> Iterator[Diagnostic]:
    """COUNT(x) ≥ 2, in any notation, where x has at most one position."""
    if not isinstance(predicate, core.Comparison):
        return
    for side, other in (
        (predicate.left, predicate.right),
        (predicate.right, predicate.left),
    ):
        counted = side.operand if isinstance(side, core.Cast) else side
        if not isinstance(counted, core.Aggregate) or counted.function != "COUNT" or counted.prior:
            continue
        binding, _ = _seen(frame, counted.label)
        if not isinstance(other, core.Constant) or binding.extent.most >= MANY:
            continue
        if isinstance(other.value, int | float):
            near = (max(MANY, int(other.value)), max(MANY, int(other.value) + 1))
            idle = not _holds_of(predicate, side, (0, 1)) and _holds_of(predicate, side, near)
        else:
            idle = False
        if idle:
            yield warnings.single_position(
                "COUNT", counted.label, frame.repeated, predicate.span, binding.place
            )


def _holds_of(predicate: core.Comparison, side: core.Expression, numbers: Iterable[int]) -> bool:
    for number in numbers:
        value = float(number) if side.type is core.DataType.DOUBLE else number
        constant = core.Constant(value, side.type, side.span)
        is_left = side is predicate.left
        left = constant if is_left else predicate.left
        right = predicate.right if is_left else constant
        if fold_predicate(core.Comparison(predicate.operator, left, right, predicate.span)):
            return True
    return False


# --- growth ---------------------------------------------------------------------------------------


_COMPUTED = ("SUM", "AVG", "VARIANCE", "STDDEV", "MEDIAN")


def check_search(
    predicates: Iterable[core.Predicate], frame: Frame, selector: str | None, found: Diagnostics
) -> None:
    """Warn of the first predicate of a filter that keeps partial matches under `+` apart. Only for
    filters that no window bounds. `selector` is that of the formula around, if any."""
    for predicate in predicates:
        for part in nodes_written_in(predicate):
            if not isinstance(part, core.Aggregate | core.Previous) or not _is_unlimited(
                frame, part.label
            ):
                continue
            call = _name_of(part)
            if call is not None:
                why = f"{call} under '+' tells apart matches that differ in one event only"
                found.add(warnings.exponential_search(why, selector, part.span))
                return
        labels = labels_chosen_from(predicate)
        if len(labels) > 1 and (frame.repeated or any(_is_unlimited(frame, one) for one in labels)):
            names = " and ".join(map(quote, labels[:2]))
            why = f"a comparison of {names} under '+' must hold for every pair of their events"
            found.add(warnings.exponential_search(why, selector, predicate.span))
            return


def _is_unlimited(frame: Frame, label: str) -> bool:
    return _seen(frame, label)[0].extent.most == UNLIMITED


def _name_of(part: core.Aggregate | core.Previous) -> str | None:
    if isinstance(part, core.Previous):
        return "PREV"
    if part.prior:
        return "PRIOR"
    if part.own is not None:
        return part.own.name
    if part.function == "LIST":
        return "a function of one's own"
    if part.function == "DISTINCT":
        return "COUNT(DISTINCT …)"
    return part.function if part.function in _COMPUTED else None


def check_growth(scoped: Scoped, kept: frozenset[str], found: Diagnostics) -> None:
    """Warn of each outermost `+` whose choices of events show in the labels `kept`. Only for
    queries without window, selector and LIMIT."""
    for span in _growing(scoped, kept):
        sign = found.source.slice(span).rstrip(") \n")
        sign = sign[sign.rfind("{") :] if sign.endswith("}") else "+"
        found.add(warnings.exponential_output(sign, span))


def growing_labels(scoped: Scoped, kept: frozenset[str]) -> frozenset[str]:
    """The labels among `kept` whose events a `+` chooses."""
    places = set(_growing(scoped, kept))
    return frozenset(label for label in kept if any(_binds(scoped, places, label)))


def _binds(scoped: Scoped, places: set[Span], label: str) -> Iterator[bool]:
    if scoped.node.span in places:
        yield label in scoped.labels
    for part in scoped.parts:
        yield from _binds(part, places, label)


def _growing(scoped: Scoped, kept: frozenset[str]) -> tuple[Span, ...]:
    node, parts = scoped.node, scoped.parts
    match node:
        case syntax.EventAtom() | syntax.Selector() | syntax.Within():
            return ()
        case syntax.Iteration():
            shown = any(label in kept for label in scoped.labels)
            if shown and node.most is None and (not node.contiguous or _has_gaps(parts[0])):
                return (node.span,)
        case syntax.As():
            if node.label.text in kept:
                kept = kept | parts[0].labels.keys()
        case syntax.Rename():
            if node.new.text in kept:
                kept = kept | {node.old.text}
        case syntax.Project():
            kept = kept & scoped.labels.keys()
        case syntax.Sequence():
            parts = positive_parts(node, parts)
        case syntax.First():
            # Each round has one end, so the number of matches grows with the rounds only.
            parts = () if _is_loop(node.operand) else parts[:1]
        case syntax.Unless() | syntax.AbsenceBefore() | syntax.AbsenceAfter():
            parts = parts[:1]
        case syntax.Conjunction():
            return fold_joints(node, [_growing(part, kept) for part in parts], _growing_together)
        case syntax.Disjunction() | syntax.Filter():
            pass
        case syntax.OtherEvent():
            raise AssertionError(STANDS_FOR)
        case _:
            assert_never(node)
    return tuple(span for part in parts for span in _growing(part, kept))


def _growing_together(operator: str, sides: Sequence[tuple[Span, ...]]) -> tuple[Span, ...]:
    # AND has no more matches than its side with the fewest.
    if operator == "AND" and not all(sides):
        return ()
    return tuple(span for side in sides for span in side)


def has_choices(scoped: Scoped) -> bool:
    """Whether some `+` of a formula can take or leave events. `:+` cannot: it has one path for each
    start, so that a search takes polynomial time."""
    match scoped.node:
        case syntax.Iteration(most=None, contiguous=contiguous):
            return not contiguous or _has_gaps(scoped.parts[0])
        case _:
            return any(map(has_choices, scoped.parts))


def _is_loop(node: syntax.Formula) -> bool:
    """Whether a formula has any number of rounds, from one on: of these only one can end first."""
    return isinstance(node, syntax.Iteration) and node.least == 1


def _has_gaps(scoped: Scoped) -> bool:
    """Whether matches with the same first event can take different events."""
    node = scoped.node
    if isinstance(node, syntax.Sequence) and not all(link.contiguous for link in node.links):
        return True
    if isinstance(node, syntax.Iteration) and not node.contiguous:
        return True
    return any(map(_has_gaps, scoped.parts))

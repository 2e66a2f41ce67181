"""Warnings about formulas that can match nothing, as far as their structure alone shows it.

Every warning is certain. But many formulas that can match nothing are not found. Sets of event
types are masks with a bit for each type.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from operator import and_, or_
from typing import TypeAlias, assert_never

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages.warnings import never_matches
from celc.diagnostics.messages.wording import counted
from celc.diagnostics.source import Span
from celc.parse import syntax
from celc.resolve.event_types import STANDS_FOR
from celc.resolve.extents import NOTHING, Extent, Labels, merge
from celc.resolve.labels import (
    JOINTS,
    Scoped,
    Taken,
    fold_joints,
    operands_taken,
)
from celc.resolve.schema import Schema
from celc.resolve.warnings.suspicions import check_sides

# --- what a match covers --------------------------------------------------------------------------


@frozen
class _Reach:
    """The interval from the first to the last event of a match, over all matches of a formula."""

    least: int  # the number of events in the shortest interval
    most: int | None  # in the longest one; None: there is no bound
    first: int  # the types that the first event can have, as a mask; 0: not known
    last: int  # the types that the last event can have, likewise


def _reach(scoped: Scoped) -> _Reach:
    parts = scoped.parts
    match scoped.node:
        case syntax.EventAtom():
            return _Reach(1, 1, scoped.support.types, scoped.support.types)
        case syntax.First():
            once = _reach(parts[0])
            return _Reach(once.least * scoped.node.least, None, once.first, once.last)
        case syntax.Iteration():
            once, rounds = _reach(parts[0]), scoped.node
            most = None
            if once.most is not None and rounds.most is not None:
                tight = rounds.contiguous or rounds.most == 1
                most = once.most * rounds.most if tight else None
            return _Reach(once.least * rounds.least, most, once.first, once.last)
        case syntax.Sequence():
            taken = operands_taken(scoped.node, parts)
            row = [_reach(operand.part) for operand in taken]
            contiguous = all(link.contiguous for link in scoped.node.links)
            return _Reach(
                sum(row[k].least for k, operand in enumerate(taken) if not operand.optional),
                _bounded(sum, row) if contiguous else None,
                _any_of([row[k].first for k in _outermost(taken)]),
                _any_of([row[len(row) - 1 - k].last for k in _outermost(taken[::-1])]),
            )
        case syntax.Disjunction():
            branches = [_reach(part) for part in parts]
            return _Reach(
                min(reach.least for reach in branches),
                _bounded(max, branches),
                _any_of([reach.first for reach in branches]),
                _any_of([reach.last for reach in branches]),
            )
        case syntax.Conjunction():
            return fold_joints(scoped.node, [_reach(part) for part in parts], _joined)
        case (
            syntax.As()
            | syntax.Rename()
            | syntax.Project()
            | syntax.Unless()
            | syntax.Filter()
            | syntax.Selector()
        ):
            return _reach(parts[0])
        case syntax.Within(window=syntax.EventsWindow(size=size)):
            inside, fitting = _reach(parts[0]), int(size.value) + 1
            most = fitting if inside.most is None else min(inside.most, fitting)
            return replace(inside, most=most)
        case syntax.Within() | syntax.AbsenceBefore() | syntax.AbsenceAfter():
            return _reach(parts[0])
        case syntax.OtherEvent():
            raise AssertionError(STANDS_FOR)
        case _:
            assert_never(scoped.node)


def _outermost(operands: Sequence[Taken]) -> Iterator[int]:
    """The numbers of the operands at which a match can begin: the first one that is not optional,
    and all before it."""
    for number, operand in enumerate(operands):
        yield number
        if not operand.optional:
            return


def _joined(operator: str, sides: Sequence[_Reach]) -> _Reach:
    least = max(reach.least for reach in sides)
    first, last = [reach.first for reach in sides], [reach.last for reach in sides]
    if operator == "ALL":
        return _Reach(least, None, _any_of(first), _any_of(last))
    most = min((reach.most for reach in sides if reach.most is not None), default=None)
    return _Reach(least, most, _all_of(first), _all_of(last))


def _bounded(combine: Callable[[Iterable[int]], int], reaches: Sequence[_Reach]) -> int | None:
    """The greatest lengths combined; None if one of them has no bound."""
    bounds = [reach.most for reach in reaches if reach.most is not None]
    return combine(bounds) if len(bounds) == len(reaches) else None


def _any_of(masks: Sequence[int]) -> int:
    """The types of any of the masks; 0 if one of them is not known."""
    return reduce(or_, masks) if all(masks) else 0


def _all_of(masks: Sequence[int]) -> int:
    return reduce(and_, masks)


# --- AND ------------------------------------------------------------------------------------------


@frozen
class _Side:
    """An operand of AND or ALL, or the result of several operands that were joined before."""

    labels: Labels
    support: Extent  # of the events with any label
    reach: _Reach
    span: Span


def check_joints(
    scoped: Scoped,
    node: syntax.Conjunction,
    schema: Schema,
    found: Diagnostics,
    *,
    simultaneous: bool,
) -> None:
    """Warn where two sides of AND cannot be the same match, or two sides of ALL bind the same
    label.

    simultaneous: events of one time are one instant. Then the two sides may begin and end with
    different events of an instant, so the types of their ends and their lengths show nothing.
    """

    def join(operator: str, sides: list[_Side]) -> _Side:
        if operator == "ALL":
            check_sides([side.labels for side in sides], "ALL", schema, found)
        else:
            clash = _clash(sides, simultaneous=simultaneous)
            if clash is not None:
                reason, place, other = clash
                found.add(never_matches(reason, _SAME_MATCH, place.span, other.span))
        combine = JOINTS[operator]
        return _Side(
            merge([side.labels for side in sides], combine),
            combine([side.support for side in sides]),
            _joined(operator, [side.reach for side in sides]),
            sides[0].span.to(sides[-1].span),
        )

    sides = [
        _Side(part.labels, part.support, _reach(part), part.node.span) for part in scoped.parts
    ]
    fold_joints(node, sides, join)


_SAME_MATCH = (
    "AND takes the same match on both sides, labels included; ALL joins two matches, and FILTER "
    "adds a condition"
)
_Clash: TypeAlias = tuple[str, _Side, _Side]
"""The reason, then the two sides."""


def _clash(sides: Sequence[_Side], *, simultaneous: bool) -> _Clash | None:
    """Why sides of AND have no match in common, and the two sides that show it."""
    for label in dict.fromkeys(label for side in sides for label in side.labels):
        extents = [side.labels[label].extent if label in side.labels else NOTHING for side in sides]
        clash = _numbers(
            sides,
            extents,
            f"one side of AND binds label '{label}', the other never does",
            f"one side of AND gives label '{label}' more positions than the other",
        ) or _types(
            sides, extents, f"the two sides of AND give label '{label}' events of different types"
        )
        if clash is not None:
            return clash
    supports = [side.support for side in sides]
    return (
        _numbers(
            sides,
            supports,
            "one side of AND labels events, the other never does",
            "one side of AND labels more events than the other",
        )
        or _types(sides, supports, "the two sides of AND label events of different types")
        or (None if simultaneous else _ends(sides) or _lengths(sides))
    )


def _numbers(
    sides: Sequence[_Side], extents: Sequence[Extent], never: str, fewer: str
) -> _Clash | None:
    """A clash if one side needs more positions than another one can have.

    never: the reason if that other side can have none. fewer: the reason if it can have some.
    """
    richest = max(range(len(sides)), key=lambda k: extents[k].least)
    poorest = min(range(len(sides)), key=lambda k: extents[k].most)
    if extents[richest].least <= extents[poorest].most:
        return None
    return fewer if extents[poorest].most else never, sides[poorest], sides[richest]


def _types(sides: Sequence[_Side], extents: Sequence[Extent], reason: str) -> _Clash | None:
    # Where a label has no position, its events have no types that could differ.
    if not any(extent.least for extent in extents):
        return None
    return _disjoint(sides, [extent.types for extent in extents], reason)


def _ends(sides: Sequence[_Side]) -> _Clash | None:
    first, last = [side.reach.first for side in sides], [side.reach.last for side in sides]
    return _disjoint(
        sides, first, "the two sides of AND begin with events of different types"
    ) or _disjoint(sides, last, "the two sides of AND end with events of different types")


def _disjoint(sides: Sequence[_Side], masks: Sequence[int], reason: str) -> _Clash | None:
    """A clash if no type is in the masks of all sides."""
    if not all(masks) or _all_of(masks):
        return None
    for (mask, side), (other_mask, other) in combinations(zip(masks, sides, strict=True), 2):
        if not mask & other_mask:
            return reason, other, side
    return reason, sides[-1], sides[0]


def _lengths(sides: Sequence[_Side]) -> _Clash | None:
    """A clash if one side covers more events than another one can."""
    bounded = [side for side in sides if side.reach.most is not None]
    if not bounded:
        return None
    longest = max(sides, key=lambda side: side.reach.least)
    shortest = min(bounded, key=lambda side: side.reach.most or 0)
    least, most = longest.reach.least, shortest.reach.most
    if most is None or least <= most:
        return None
    reason = (
        f"one side of AND stretches over at least {counted(least, 'event')}, the other over at "
        f"most {most}"
    )
    return reason, shortest, longest


# --- UNLESS ---------------------------------------------------------------------------------------


_LONGEST_PATTERN = 100  # rounds of `{n}`, which are compared one by one; more are not looked at


def check_unless(scoped: Scoped, found: Diagnostics) -> None:
    """Warn where every match of the left side contains a match of the right side."""
    left, right = scoped.parts
    for pattern in _sure_patterns(right):
        if _advance(left, pattern, 0) == len(pattern):
            found.add(
                never_matches(
                    "every match left of UNLESS contains one of the right side",
                    "the right side may not lie anywhere from the first to the last event; for "
                    "what may not lie between two events write ';' and '!'",
                    right.node.span,
                    left.node.span,
                )
            )
            return


def _sure_patterns(scoped: Scoped) -> list[tuple[int, ...]]:
    """Sequences of masks: events of these types in this order always have a match among them."""
    parts = scoped.parts
    match scoped.node:
        case syntax.EventAtom():
            return [(scoped.support.types,)] if scoped.support.types else []
        case syntax.As() | syntax.Rename() | syntax.Project():
            return _sure_patterns(parts[0])
        case syntax.Iteration():
            least = scoped.node.least
            if least == 1:
                return _sure_patterns(parts[0])
            if scoped.node.contiguous or least > _LONGEST_PATTERN:
                return []
            return _in_a_row([_sure_patterns(parts[0])] * least)
        case syntax.Selector() | syntax.Within():
            # If every match is one event, it fits every window, and no other match has its end.
            return _sure_patterns(parts[0]) if _reach(parts[0]).most == 1 else []
        case syntax.Disjunction():
            return [pattern for part in parts for pattern in _sure_patterns(part)]
        case syntax.First():
            return []
        case syntax.Sequence():
            if any(link.negated or link.contiguous for link in scoped.node.links):
                return []
            taken = operands_taken(scoped.node, parts)
            return _in_a_row([_sure_patterns(one.part) for one in taken if not one.optional])
        case syntax.Conjunction() | syntax.Unless() | syntax.Filter():
            return []
        case syntax.AbsenceBefore() | syntax.AbsenceAfter():
            return []
        case syntax.OtherEvent():
            raise AssertionError(STANDS_FOR)
        case _:
            assert_never(scoped.node)


def _in_a_row(parts: Iterable[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
    """The sure pattern of parts that follow each other, from the sure patterns of each part.

    Patterns of one event are alternatives, so they make one mask. Empty: there is no such pattern.
    """
    row: list[int] = []
    for patterns in parts:
        mask = 0
        for pattern in patterns:
            if len(pattern) == 1:
                mask |= pattern[0]
        if mask:
            row.append(mask)
        elif len(patterns) == 1:
            row.extend(patterns[0])
        else:
            return []
    return [tuple(row)]


def _advance(scoped: Scoped, pattern: tuple[int, ...], at: int) -> int:
    """The place in the pattern that every match of a formula reaches, if it begins at place `at`.

    The place is the number of masks that events of the match satisfy, one after another.
    """
    parts = scoped.parts
    match scoped.node:
        case syntax.EventAtom():
            types = scoped.support.types
            if at < len(pattern) and types and not types & ~pattern[at]:
                return at + 1
            return at
        case syntax.Sequence():
            for operand in operands_taken(scoped.node, parts):
                at = at if operand.optional else _advance(operand.part, pattern, at)
            return at
        case syntax.Iteration() | syntax.First():
            for _ in range(min(scoped.node.least, len(pattern))):
                at = _advance(parts[0], pattern, at)
            return at
        case syntax.Disjunction():
            return min(_advance(part, pattern, at) for part in parts)
        case syntax.Conjunction():
            return max(_advance(part, pattern, at) for part in parts)
        case _:
            return _advance(parts[0], pattern, at)

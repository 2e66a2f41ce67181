"""Formulas that can match nothing, where their structure shows it, conditions aside.

What is found here is certain; much that can match nothing is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from celc import syntax
from celc.errors import Diagnostic, Diagnostics
from celc.messages.warnings import never_matches
from celc.resolve.labels import (
    JOINTS,
    NOTHING,
    Labels,
    Scoped,
    fold_joints,
    identical,
    merge,
    positive_parts,
)
from celc.resolve.schema import Schema
from celc.resolve.suspicions import check_sides
from celc.source import Span

# --- AND ------------------------------------------------------------------------------------------


def check_joints(
    scoped: Scoped, node: syntax.Conjunction, schema: Schema, found: Diagnostics
) -> None:
    """Warn where two sides of AND cannot be the same match, or two of ALL bind the same label."""

    def join(operator: str, sides: list[tuple[Labels, Span]]) -> tuple[Labels, Span]:
        bound = [labels for labels, _ in sides]
        if operator == "ALL":
            check_sides(bound, "ALL", schema, found)
        else:
            found.extend(_differing(sides))
        return merge(bound, JOINTS[operator]), sides[0][1].to(sides[-1][1])

    fold_joints(node, [(part.labels, part.node.span) for part in scoped.parts], join)


def _differing(sides: Sequence[tuple[Labels, Span]]) -> Iterator[Diagnostic]:
    advice = (
        "AND takes the same match on both sides, labels included; ALL joins two matches, and "
        "FILTER adds a condition"
    )
    for label in dict.fromkeys(label for labels, _ in sides for label in labels):
        extents = [labels[label].extent if label in labels else NOTHING for labels, _ in sides]
        richest = max(range(len(sides)), key=lambda k: extents[k].least)
        poorest = min(range(len(sides)), key=lambda k: extents[k].most)
        if extents[richest].least > extents[poorest].most:
            if extents[poorest].most == 0:
                reason = f"one side of AND binds label '{label}', the other never does"
            else:
                reason = f"one side of AND gives label '{label}' more positions than the other"
            yield never_matches(reason, advice, sides[poorest][1], sides[richest][1])
            return
        known = all(extent.types for extent in extents)
        if known and extents[richest].least and not identical(extents).types:
            reason = f"the two sides of AND give label '{label}' events of different types"
            yield never_matches(reason, advice, sides[-1][1], sides[0][1])
            return


# --- UNLESS ---------------------------------------------------------------------------------------


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
    """Sequences of event types (as masks) whose mere occurrence in order makes a match."""
    parts = scoped.parts
    match scoped.node:
        case syntax.EventAtom():
            return [(scoped.support.types,)] if scoped.support.types else []
        case syntax.As() | syntax.Rename() | syntax.Project() | syntax.Iteration():
            return _sure_patterns(parts[0])
        case syntax.Selector():
            # With matches of one event only there is nothing to choose from.
            single = parts[0].support.most == 1
            return [p for p in _sure_patterns(parts[0]) if single and len(p) == 1]
        case syntax.Disjunction():
            return [pattern for part in parts for pattern in _sure_patterns(part)]
        case syntax.Sequence():
            if any(link.negated or link.contiguous for link in scoped.node.links):
                return []
            return _in_a_row([_sure_patterns(part) for part in parts])
        case syntax.Conjunction() | syntax.Unless() | syntax.Filter():
            return []
        case _:
            assert_never(scoped.node)


def _in_a_row(parts: Iterable[list[tuple[int, ...]]]) -> list[tuple[int, ...]]:
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
    """How far every match of a formula gets in the pattern, at least, beginning at `at`."""
    parts = scoped.parts
    match scoped.node:
        case syntax.EventAtom():
            types = scoped.support.types
            if at < len(pattern) and types and not types & ~pattern[at]:
                return at + 1
            return at
        case syntax.Sequence():
            for part in positive_parts(scoped.node, parts):
                at = _advance(part, pattern, at)
            return at
        case syntax.Disjunction():
            return min(_advance(part, pattern, at) for part in parts)
        case syntax.Conjunction():
            return max(_advance(part, pattern, at) for part in parts)
        case _:
            return _advance(parts[0], pattern, at)

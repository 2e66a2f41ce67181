"""Pattern → a pattern with the same matches in the same order of preference, and fewer places.

Written out, `(A{0,1}){n}` has n rows each of which can be left out, so from each of them any later
one can come next: n² moves for what counting says in one sentence, up to n rows of A. Three rules
turn such patterns into one quantifier, whose rows are in a chain:

1. `(X{0,b}){c,d}` is `X{0,b·d}`, all greedy, where X has at least one row. Whatever follows an
   empty round also follows the same rows without it, and came first.
2. `(A{a,b}){c,d}` of one row A is `A{a·c,b·d}` where no number of rows in between is missing:
   where a ≤ 1, or where c = d.
3. `A{a,b} A{c,d}` of one row A is `A{a+c,b+d}`.

In 2 and 3 there is one way to take a number of rows, so only the order of the numbers counts. It is
from the most to the fewest where all are greedy, and from the fewest to the most where all are
reluctant. For longer parts than one row rules 2 and 3 would change the order of preference: with
`X = (A | B)`, `X{1,3}{2}` tries all ways to take a third row before it goes back to two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from celc.row_pattern import core
from celc.row_pattern.core import Concatenation, OneRow, Pattern, Repetition


def simplest(pattern: Pattern) -> Pattern:
    """The pattern by these rules, from the inside out."""
    return _simplest(pattern, {})


def _simplest(pattern: Pattern, known: dict[int, Pattern]) -> Pattern:
    """The simplest form of a pattern. known: that of parts by their identity, because the orders of
    PERMUTE share parts."""
    if id(pattern) not in known:
        match pattern:
            case OneRow() | core.Anchor():
                return pattern
            case Concatenation():
                found = _concatenation([_simplest(part, known) for part in pattern.parts])
            case core.Alternation():
                parts = (_simplest(part, known) for part in pattern.parts)
                found = core.Alternation(tuple(parts))
            case Repetition():
                found = _repetition(_simplest(pattern.part, known), pattern)
            case _:
                assert_never(pattern)
        known[id(pattern)] = found
    return known[id(pattern)]


def size_of(pattern: Pattern) -> int:
    """How many rows a pattern names when its quantifiers are written out."""
    known: dict[int, int] = {}

    def size(part: Pattern) -> int:
        if id(part) not in known:
            match part:
                case OneRow():
                    return 1
                case core.Anchor():
                    return 0
                case Concatenation() | core.Alternation():
                    found = sum(map(size, part.parts))
                case Repetition():
                    found = max(part.least, part.most or 1) * max(size(part.part), 1)
                case _:
                    assert_never(part)
            known[id(part)] = found
        return known[id(part)]

    return size(pattern)


def can_be_empty(pattern: Pattern) -> bool:
    """Whether a pattern can match no row."""
    match pattern:
        case OneRow():
            return False
        case core.Anchor():
            return True
        case Concatenation():
            return all(map(can_be_empty, pattern.parts))
        case core.Alternation():
            return any(map(can_be_empty, pattern.parts))
        case Repetition():
            return pattern.least == 0 or can_be_empty(pattern.part)
        case _:
            assert_never(pattern)


def _repetition(part: Pattern, outer: Repetition) -> Pattern:
    least, most = outer.least, outer.most
    if (least, most) == (1, 1):
        return part
    if isinstance(part, Repetition):
        empty = part.least == 0
        counts = isinstance(part.part, OneRow) and (part.least <= 1 or least == most)
        greedy = not _is_reluctant(part) and not _is_reluctant(outer)
        if counts and _one_way(part, outer):
            reluctant = _is_reluctant(part) or _is_reluctant(outer)
            return Repetition(part.part, part.least * least, _times(part.most, most), reluctant)
        if empty and greedy and not can_be_empty(part.part):
            return Repetition(part.part, 0, _times(part.most, most), False)
    return Repetition(part, least, most, outer.reluctant)


def _concatenation(simple: Iterable[Pattern]) -> Pattern:
    parts: list[Pattern] = []
    for one in simple:
        for part in one.parts if isinstance(one, Concatenation) else (one,):
            joined = _joined(parts[-1], part) if parts else None
            if joined is None:
                parts.append(part)
            else:
                parts[-1] = joined
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _joined(first: Pattern, second: Pattern) -> Pattern | None:
    """Two neighbours as one quantifier; None where they are not of one row, or not of one order."""
    one, other = _rounds(first), _rounds(second)
    if one is None or other is None or one.part != other.part or not _one_way(one, other):
        return None
    most = None if one.most is None or other.most is None else one.most + other.most
    reluctant = _is_reluctant(one) or _is_reluctant(other)
    return Repetition(one.part, one.least + other.least, most, reluctant)


def _rounds(pattern: Pattern) -> Repetition | None:
    """A number of single rows; None for anything else."""
    if isinstance(pattern, OneRow):
        return Repetition(pattern, 1, 1, False)
    if isinstance(pattern, Repetition) and isinstance(pattern.part, OneRow):
        return pattern
    return None


def _is_exact(one: Repetition) -> bool:
    """Whether there is no choice, so that it is neither greedy nor reluctant."""
    return one.least == one.most


def _is_reluctant(one: Repetition) -> bool:
    return one.reluctant and not _is_exact(one)


def _one_way(one: Repetition, other: Repetition) -> bool:
    """Whether both prefer more rounds, or both fewer."""
    return _is_exact(one) or _is_exact(other) or one.reluctant == other.reluctant


def _times(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other

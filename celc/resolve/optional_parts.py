"""Operands of a sequence that may be missing: `A ; B? ; C` is `(A ; B ; C) OR (A ; C)`.

Choices in different places of a sequence are independent. So `A ; B? ; C ; D? ; E` becomes `A ; (B
; C OR C) ; (D ; E OR E)`. Optional operands are joined with the next one that stays (the last ones
with the one before), so only those in a row multiply. In a sequence with an absence all ways are
written out instead. Conditions in an absence see the labels to its left; where an operand is
missing they see those of a scope further out. The same holds for a sequence with a FIRST, which
chooses from what follows all that is before it, and where events last for one with `:`, which asks
what ends before the end of its right side: `A : (B : C)` has no match, because B ends there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from celc_runtime.plan.frozen import frozen

from celc.core import formula as core
from celc.diagnostics.source import Span
from celc.parse import syntax


@frozen
class Chain:
    """The operands of a sequence, which of them are optional, and what is between each two. Between
    two operands is whether they are contiguous, or a formula without a match there."""

    operands: Sequence[core.Formula]
    optional: Sequence[bool]
    gaps: Sequence[bool | core.Formula]
    firsts: Sequence[Chosen | None]


@frozen
class Chosen:
    """What is said of an operand after FIRST, beside the operand: as in `core.ThenFirst`."""

    node: syntax.First
    absent: core.Formula | None
    looks_back: tuple[str, ...]
    both_sides: tuple[str, ...]


def size_of_ways(node: syntax.Sequence, sizes: Sequence[int], *, lasts: bool) -> int:
    """The number of events that `ways_of` writes for a sequence, from the sizes of its operands
    with absences; `lasts`: events last."""
    optional = [node.first_is_optional, *(link.optional for link in node.links)]
    whole = any(link.negated or isinstance(link.operand, syntax.First) for link in node.links)
    if whole or (lasts and any(link.contiguous for link in node.links)):
        blocks = [range(len(sizes))]
    else:
        blocks = _blocks(optional)
    total = 0
    for block in blocks:
        kept = sum(sizes[k] for k in block if not optional[k])
        choices = sum(optional[k] for k in block)
        some = sum(sizes[k] for k in block if optional[k])
        # Each choice is made in half of the ways.
        total += (kept << choices) + (some << choices >> 1)
    return total


def ways_of(chain: Chain, span: Span, *, lasts: bool) -> core.Formula:
    """The formula of a sequence at a place; `lasts`: events last."""
    if not any(chain.optional):
        return _joined(chain, range(len(chain.operands)), span)
    whole = any(not isinstance(gap, bool) for gap in chain.gaps) or any(chain.firsts)
    if whole or (lasts and True in chain.gaps):
        return _either_way(chain, range(len(chain.operands)), span)
    blocks = _blocks(chain.optional)
    parts = [_either_way(chain, block, _covered(chain, block)) for block in blocks]
    gaps = [chain.gaps[block.start - 1] for block in blocks[1:]]
    nothing = [None] * len(parts)
    return _joined(Chain(parts, [False] * len(parts), gaps, nothing), range(len(parts)), span)


def _blocks(optional: Sequence[bool]) -> list[range]:
    """The operands that are chosen together: each that stays, with the optional ones before it. The
    last one also has those after it."""
    stays = [k for k, is_optional in enumerate(optional) if not is_optional]
    starts = [0, *(k + 1 for k in stays[:-1])]
    return [
        range(start, end) for start, end in zip(starts, [*starts[1:], len(optional)], strict=True)
    ]


def _either_way(chain: Chain, block: range, span: Span) -> core.Formula:
    """Some operands in a row, with and without those that may be missing."""
    ways = tuple(_joined(chain, kept, span) for kept in _choices(chain, block))
    return ways[0] if len(ways) == 1 else core.Disjunction(ways, span)


def _choices(chain: Chain, block: range) -> Iterator[list[int]]:
    """The operands that are there in each way; the way with all of them comes first."""
    whether = [(True, False) if chain.optional[k] else (True,) for k in block]
    for there in product(*whether):
        yield [k for k, is_there in zip(block, there, strict=True) if is_there]


def _joined(chain: Chain, kept: Sequence[int], span: Span) -> core.Formula:
    """A sequence of some of the operands. Where an operand is missing, the same lies on its two
    sides."""
    operands, gaps = [chain.operands[kept[0]]], list[bool]()
    for k in kept[1:]:
        gap, right, first = chain.gaps[k - 1], chain.operands[k], chain.firsts[k]
        if first is not None:
            left = _sequence(operands, gaps, operands[0].span.to(operands[-1].span))
            operands, gaps = [_then_first(left, right, first, gap)], []
        elif isinstance(gap, bool):
            operands.append(right)
            gaps.append(gap)
        else:
            left = _sequence(operands, gaps, operands[0].span.to(operands[-1].span))
            operands, gaps = [core.Absence(left, gap, right, left.span.to(right.span))], []
    return _sequence(operands, gaps, span)


def _then_first(
    left: core.Formula, operand: core.Formula, first: Chosen, gap: bool | core.Formula
) -> core.ThenFirst:
    return core.ThenFirst(
        left,
        operand,
        left.span.to(first.node.span),
        first.node.least,
        first.node.most,
        first.absent,
        None if isinstance(gap, bool) else gap,
        first.looks_back,
        first.both_sides,
    )


def _sequence(operands: Sequence[core.Formula], gaps: Sequence[bool], span: Span) -> core.Formula:
    if len(operands) == 1:
        return operands[0]
    return core.Sequence(tuple(operands), tuple(gaps), span)


def _covered(chain: Chain, block: range) -> Span:
    return chain.operands[block[0]].span.to(chain.operands[block[-1]].span)

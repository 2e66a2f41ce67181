"""A warning about LIMIT n where no end position has more than n matches.

LIMIT is for each end position, and people expect it to be for the answer. Where it can cut nothing,
it does not do what it was written for. The number of matches is judged of all streams, conditions
aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple, assert_never

from celc.core import formula as core
from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import warnings
from celc.parse import syntax

_MOST = 1_000_000  # matches; a limit is seldom larger


class Bounds(NamedTuple):
    """What holds of the matches of a formula in any stream; None: there is no bound."""

    at_end: int | None  # the most matches with one end
    of_support: int | None  # the most matches with one set of labelled positions
    size: int | None  # the number of these positions, where all matches have the same


def check_limit(
    clause: syntax.LimitClause,
    formula: core.Formula,
    strategy: str,
    per_start: core.PerStart | None,
    found: Diagnostics,
) -> None:
    """Warn of a LIMIT that no end position reaches, after the choice that SELECT makes."""
    bounds = _bounds(formula)
    most = bounds.at_end
    if strategy == "ANY":
        most = 1
    elif strategy in ("NXT", "LAST") or (per_start is not None and per_start.disjoint):
        # There is one set of positions for each end.
        most = _least(bounds.at_end, bounds.of_support)
    if most is not None and most <= clause.count.value:
        count = found.source.slice(clause.count.span)
        found.add(warnings.idle_limit(count, most, clause.span))


def _bounds(formula: core.Formula) -> Bounds:
    match formula:
        case core.Atom():
            return Bounds(1, 1, 1)
        case core.As() | core.Filter() | core.Rename() | core.Within():
            return _bounds(formula.operand)
        case core.AbsenceBefore() | core.AbsenceAfter():
            return _bounds(formula.operand)
        case core.Unless():
            return _bounds(formula.left)
        case core.Project():
            # Matches with different starts can have the same labels.
            return Bounds(_bounds(formula.operand).at_end, None, None)
        case core.Sequence():
            parts = list(map(_bounds, formula.operands))
            return _sequence(parts, contiguous=all(formula.contiguous))
        case core.Absence():
            return _sequence([_bounds(formula.left), _bounds(formula.right)], contiguous=False)
        case core.Iteration():
            return _iteration(formula, _bounds(formula.operand))
        case core.Disjunction():
            parts = list(map(_bounds, formula.operands))
            sizes = {part.size for part in parts}
            return Bounds(
                _sum(part.at_end for part in parts),
                _sum(part.of_support for part in parts),
                sizes.pop() if len(sizes) == 1 else None,
            )
        case core.Conjunction():
            left, right = _bounds(formula.left), _bounds(formula.right)
            return Bounds(*map(_least, left, right))
        case core.All() | core.ThenFirst():
            return Bounds(None, None, None)
        case core.Selector():
            inner = _bounds(formula.operand)
            if formula.strategy in ("NXT", "LAST"):
                return inner._replace(at_end=_least(inner.at_end, inner.of_support))
            return inner
        case _:
            assert_never(formula)


def _sequence(parts: list[Bounds], *, contiguous: bool) -> Bounds:
    of_unknown_size = [part for part in parts if part.size is None]
    return Bounds(
        _product(part.at_end for part in parts) if contiguous else None,
        # Where more than one part can be longer or shorter, each cut is another match.
        _product(part.of_support for part in parts) if len(of_unknown_size) < 2 else None,
        _sum(part.size for part in parts),
    )


def _iteration(formula: core.Iteration, inner: Bounds) -> Bounds:
    if formula.least == formula.most and formula.most <= _MOST_ROUNDS:
        return _sequence([inner] * formula.most, contiguous=formula.contiguous)
    single = inner.of_support == 1 and inner.size is not None
    at_end = None
    if formula.contiguous and formula.most is not None and formula.most <= _MOST_ROUNDS:
        rounds = range(formula.least, formula.most + 1)
        at_end = _sum(_product([inner.at_end] * number) for number in rounds)
    return Bounds(at_end, 1 if single else None, None)


_MOST_ROUNDS = 100


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else _checked(sum(one or 0 for one in known))


def _product(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else _checked(prod(one or 1 for one in known))


def _checked(number: int) -> int | None:
    return number if number <= _MOST else None


def _least(one: int | None, other: int | None) -> int | None:
    known = [number for number in (one, other) if number is not None]
    return min(known, default=None)

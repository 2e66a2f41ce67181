"""How far a comparison has to be bent to be TRUE, for near misses.

The value of one side moves until the comparison holds. It may move by a share of its absolute
value, or by an amount; a strict comparison stays strict at the furthest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from .decimals import DecimalKind, WrittenFraction
from .nodes import Bend, Comparison
from .own_aggregates import truth_of
from .values import WHOLE_NUMBERS, Datum


def sides_of(operator: str) -> tuple[tuple[str, int, int], ...]:
    """The comparisons that one is made of: operator, left and right operand."""
    if operator == "BETWEEN":
        return (">=", 0, 1), ("<=", 0, 2)
    return ((operator, 0, 1),)


def how_far(comparison: Comparison, data: Sequence[Datum]) -> float | None:
    """How far its sides have to move, over how far they may; 0 where they need not, None where the
    comparison is not TRUE at the furthest either."""
    furthest = 0.0
    for bend, (operator, left, right) in zip(
        comparison.bends, sides_of(comparison.operator), strict=True
    ):
        far = _moved(operator, data[left], data[right], bend)
        if far is None:
            return None
        furthest = max(furthest, far)
    return furthest


def _moved(operator: str, left: Datum, right: Datum, bend: Bend | None) -> float | None:
    if truth_of(operator, [left, right]) is True:
        return 0.0
    decimals = [isinstance(one.kind, DecimalKind) for one in (left, right)]
    exact = any(decimals) and all(map(_is_exact, (left, right)))
    one, other = _number(left, exact), _number(right, exact)
    if bend is None or one is None or other is None:
        return None
    moving, staying = (one, other) if bend.side == 0 else (other, one)
    if bend.whole:
        room: float | Fraction = 1
    elif bend.room is not None:
        room = Fraction(str(bend.room)) if exact else bend.room
    else:
        room = abs(moving) * (Fraction(str(bend.share)) if exact else bend.share)
    if not room or (isinstance(room, float) and not math.isfinite(room)):
        return None
    grows = (operator in ("<", "<=")) == (bend.side == 1)
    moved = moving + room if grows else moving - room
    one, other = (moved, staying) if bend.side == 0 else (staying, moved)
    holds = {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}
    if not holds[operator]:
        return None
    return 1.0 if bend.whole else float(abs(moving - staying) / room)


def _is_exact(datum: Datum) -> bool:
    whole = isinstance(datum.kind, DecimalKind) or datum.kind in WHOLE_NUMBERS
    return whole or isinstance(datum.value, WrittenFraction)


def _number(datum: Datum, exact: bool) -> float | Fraction | None:
    if datum.value is None:
        return None
    if exact:
        value = datum.value
        return Fraction(value.text if isinstance(value, WrittenFraction) else value)
    number = float(datum.value)
    return None if math.isnan(number) else number

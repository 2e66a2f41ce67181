"""DECIMALs as Spark SQL calculates with them, by Python's `decimal`."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import reduce
from typing import NamedTuple

MOST = 38
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


class DecimalKind(NamedTuple):
    """The type DECIMAL(precision, scale)."""

    precision: int
    scale: int

    @property
    def value(self) -> str:
        """Its text."""
        return f"DECIMAL({self.precision}, {self.scale})"


class WrittenInteger(int):
    """A whole number that stands in the text."""


class WrittenFraction(float):
    """A number with a point and without an exponent that stands in the text."""

    text: str


def written(text: str) -> WrittenFraction:
    """The number that is written so."""
    found = WrittenFraction(text)
    found.text = text
    return found


def fraction_kind(number: WrittenFraction) -> DecimalKind:
    """The type that a written number has beside a DECIMAL."""
    behind = len(number.text.partition(".")[2])
    digits = len(number.text.lstrip("-").replace(".", "").lstrip("0"))
    return DecimalKind(max(digits, behind, 1), behind)


def wider(*kinds: DecimalKind) -> DecimalKind:
    """The type in which DECIMALs are compared."""

    def of_two(one: DecimalKind, other: DecimalKind) -> DecimalKind:
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale)
        if digits + scale <= MOST:
            return DecimalKind(digits + scale, scale)
        return DecimalKind(MOST, max(0, MOST - digits))

    return reduce(of_two, kinds)


def fitted(value: Decimal | int, kind: DecimalKind) -> Decimal | None:
    """A value rounded to a type; None where it has more digits."""
    found = _EXACT.quantize(Decimal(value), Decimal(f"1e-{kind.scale}"))
    return found if found.copy_abs() < Decimal(f"1e{kind.precision - kind.scale}") else None


def result(
    operator: str, left: Decimal, right: Decimal, kinds: tuple[DecimalKind, DecimalKind]
) -> tuple[DecimalKind, Decimal | None]:
    """The type and the value of arithmetic; both values of None stand for NULL."""
    (p1, s1), (p2, s2) = kinds
    scale = max(s1, s2)
    if operator in "+-":
        kind = _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    elif operator == "*":
        kind = _adjusted(p1 + p2 + 1, s1 + s2)
    elif operator == "/":
        scale = max(6, s1 + p2 + 1)
        kind = _adjusted(p1 - s1 + s2 + scale, scale)
    else:
        kind = _adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    if left is None or right is None or (operator in "/%" and right == 0):
        return kind, None
    if operator == "+":
        value = _EXACT.add(left, right)
    elif operator == "-":
        value = _EXACT.subtract(left, right)
    elif operator == "*":
        value = _EXACT.multiply(left, right)
    elif operator == "/":
        value = _EXACT.divide(left, right)
    else:
        value = _EXACT.remainder(left, right)
    return kind, fitted(value, kind)


def _adjusted(precision: int, scale: int) -> DecimalKind:
    if precision <= MOST:
        return DecimalKind(precision, scale)
    return DecimalKind(MOST, max(MOST - (precision - scale), min(scale, 6)))


def sum_of(values: list[Decimal], kind: DecimalKind) -> tuple[DecimalKind, Decimal | None]:
    """SUM of the positions of one label."""
    found = DecimalKind(min(kind.precision + 10, MOST), kind.scale)
    return found, fitted(total_of(values), found) if values else None


def mean_of(values: list[Decimal], kind: DecimalKind) -> tuple[DecimalKind, Decimal | None]:
    """AVG of the positions of one label."""
    found = DecimalKind(min(kind.precision + 4, MOST), min(kind.scale + 4, MOST))
    total = sum_of(values, kind)[1]
    if total is None:
        return found, None
    return found, fitted(_EXACT.divide(total, Decimal(len(values))), found)


def mean_over_matches(values: list[Decimal], scale: int) -> Decimal | None:
    """AVG in TOTAL."""
    kind = DecimalKind(MOST, min(scale + 4, MOST))
    return fitted(_EXACT.divide(total_of(values), Decimal(len(values))), kind) if values else None


def total_of(values: Iterable[Decimal]) -> Decimal:
    """The exact sum."""
    return reduce(_EXACT.add, values, Decimal(0))

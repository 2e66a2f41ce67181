"""Comparisons that can bend: their bent texts, and the queries that measure them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.near.queries import SHARE, Sign
from celc_runtime.values.types import NUMBERS, DataType, DecimalType

from celc.core import formula as core
from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.near import messages
from celc.near.edits import Edit
from celc.near.labels import named
from celc.parse import syntax
from celc.parse.trees import nodes_of
from celc.resolve.types.literals import MICROSECONDS

MIRRORED: Mapping[Sign, Sign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@frozen
class Side:
    """One comparison of two sides: of a BETWEEN there are two."""

    operator: Sign
    left: syntax.Expression
    right: syntax.Expression


@frozen
class Found:
    """A comparison of a FILTER under no NOT, SOME or EVERY. `owner` is x in `x[…]`. `around` is
    the smallest condition whose clauses with the comparison are all that name it, with the edits
    that leave the others out, and with its own owner."""

    node: Any
    owner: str | None
    around: syntax.Condition
    left_out: tuple[Edit, ...]
    owner_around: str | None


@frozen
class Names:
    """What names in conditions stand for: parameter sets, and functions of all positions."""

    sets: frozenset[str]
    gathering: frozenset[str]
    source: Source

    @staticmethod
    def of(file: syntax.File, source: Source) -> Names:
        """The names that a file declares."""
        gathering = {one.name.text for one in file.aggregates}
        gathering |= {one.name.text for one in file.functions}
        sets = frozenset(one.name.text for one in file.parameters)
        return Names(sets, frozenset(gathering), source)


def comparisons(condition: syntax.Condition) -> Iterator[Found]:
    """The comparisons of a condition that are under no NOT, SOME or EVERY."""
    if isinstance(condition, syntax.AndCondition):
        for one in condition.operands:
            yield from comparisons(one)
    elif isinstance(condition, syntax.EventCondition) and isinstance(
        condition.condition, syntax.AndCondition
    ):
        for one in condition.condition.operands:
            yield from _inside(one, _Around(one, condition.label.text), condition.label.text)
    else:
        yield from _inside(condition, _Around(condition, None), None)


@frozen
class _Around:
    """The condition around a comparison, with its owner, and the edits that leave clauses out."""

    condition: syntax.Condition
    owner: str | None
    left_out: tuple[Edit, ...] = ()


def _inside(condition: syntax.Condition, around: _Around, owner: str | None) -> Iterator[Found]:
    match condition:
        case syntax.NotCondition() | syntax.Quantified():
            return
        case syntax.EventCondition():
            yield from _inside(condition.condition, around, condition.label.text)
        case syntax.OrCondition():
            for one in condition.operands:
                yield from _inside(one, around, owner)
        case syntax.AndCondition():
            # A clause has one operand of an AND inside an OR, so the others are of other clauses.
            for number, one in enumerate(condition.operands):
                others = (*condition.operands[:number], *condition.operands[number + 1 :])
                gone = tuple(Edit(other.span, "TRUE") for other in others)
                narrower = replace(around, left_out=(*around.left_out, *gone))
                yield from _inside(one, narrower, owner)
        case _:
            yield Found(condition, owner, around.condition, around.left_out, around.owner)


def sides_of(node: Any) -> tuple[Side, ...]:
    """The comparisons of two sides that can bend."""
    match node:
        case syntax.Comparison(operator="<" | "<=" | ">" | ">=" as sign):
            return (Side(sign, node.left, node.right),)
        case syntax.Between(negated=False):
            low = Side(">=", node.operand, node.low)
            return low, Side("<=", node.operand, node.high)
    return ()


def place_of(node: Any, text: str) -> Span:
    """Where a comparison stands, without parentheses around it."""
    span: Span = node.span
    operands = [
        getattr(node, name) for name in ("left", "operand", "label", "value") if hasattr(node, name)
    ]
    first = operands[0].span.start
    start, end = span.start, span.end
    while start < first and text[start] in "( \t\r\n":
        if text[start] == "(":
            end = text.rindex(")", start, end)
        start += 1
    return Span(start, start + len(text[start:end].rstrip()))


# --- what moves -----------------------------------------------------------------------------------


@frozen
class Moving:
    """What bends in one comparison of two sides. `room`: an amount in place of `share`; `one`: a
    count, whose number moves by one."""

    side: Side
    left_moves: bool
    type: Any
    share: float
    room: float | None = None
    one: bool = False

    @property
    def moving(self) -> syntax.Expression:
        return self.side.left if self.left_moves else self.side.right

    @property
    def staying(self) -> syntax.Expression:
        return self.side.right if self.left_moves else self.side.left

    @property
    def grows(self) -> bool:
        """Whether it holds sooner when what moves gets larger."""
        return (self.side.operator in ("<", "<=")) != self.left_moves


def is_count(expression: syntax.Expression) -> bool:
    """Whether it is COUNT(x)."""
    return (
        isinstance(expression, syntax.Call)
        and expression.function.text.upper() == "COUNT"
        and not expression.prior
        and not expression.distinct
        and syntax.is_bare_name(expression.argument)
    )


def moving_of(
    side: Side,
    type: Any,
    names: Names,
    owner: str | None,
    near: float | Mapping[str, float],
) -> Moving | None:
    """How one comparison of two sides bends; None: it does not. `type` is that of its sides."""
    for count, number, left in ((side.left, side.right, False), (side.right, side.left, True)):
        if is_count(count) and isinstance(number, syntax.IntegerLiteral):
            operator = MIRRORED[side.operator] if left else side.operator
            least = number.value + (operator == ">")
            if operator in (">", ">=") and least < 2:
                return None
            return Moving(side, left, type, SHARE, one=True)
    if not (type in NUMBERS or isinstance(type, DecimalType) or type is DataType.INTERVAL):
        return None
    left = not named(side.left, names.sets, owner)
    share = near if isinstance(near, float) else SHARE
    found = Moving(side, left, type, share)
    if isinstance(near, float):
        return found
    attributes = attributes_in(found.staying, names.sets)
    room = near.get(next(iter(attributes))) if len(attributes) == 1 else None
    if room is not None and type is DataType.INTERVAL:
        span = found.staying.span
        raise CelError(names.source, (messages.amount_of_duration(next(iter(attributes)), span),))
    return Moving(side, left, type, share, room)


def attributes_in(expression: syntax.Expression, sets: frozenset[str]) -> frozenset[str]:
    """The attributes of events that an expression names."""
    inside = [node for node in nodes_of(expression) if isinstance(node, syntax.Attribute)]
    labels = {
        id(node.argument)
        for node in nodes_of(expression)
        if isinstance(node, syntax.Call) and is_count(node)
    }
    return frozenset(
        node.attribute.text
        for node in inside
        if id(node) not in labels and not (node.label is not None and node.label.text in sets)
    )


def bent_sides(moving: Moving, source: Source) -> tuple[Edit, ...]:
    """The edits of the sides of a comparison that let one move to its furthest."""
    node, sign = moving.moving, "+" if moving.grows else "-"
    text = source.slice(node.span)
    number = _number(node)
    if moving.one:
        assert isinstance(node, syntax.IntegerLiteral)
        bent = str(node.value + (1 if moving.grows else -1))
    elif moving.type is DataType.INTERVAL:
        return _bent_interval(moving, source)
    elif number is not None:
        bent = _bent_number(moving, number)
    elif moving.room is not None:
        bent = f"({text}) {sign} {_written(moving.room)}"
    else:
        bent = f"({text}) {sign} {_written(moving.share)} * ABS({text})"
    return (Edit(node.span, bent),)


def _bent_number(moving: Moving, number: Decimal) -> str:
    exact = isinstance(moving.type, DecimalType)
    given = moving.room if moving.room is not None else moving.share
    room: Any = Decimal(repr(given)) if exact else given
    value: Any = number if exact else float(number)
    far = room if moving.room is not None else abs(value) * room
    moved = value + far if moving.grows else value - far
    return f"({format(moved, 'f') if exact else repr(moved)})"


def _bent_interval(moving: Moving, source: Source) -> tuple[Edit, ...]:
    node = moving.moving
    if isinstance(node, syntax.DurationLiteral):
        value = float(microseconds(node.parts))
        far = value + value * moving.share if moving.grows else value - value * moving.share
        sign = MIRRORED[moving.side.operator] if moving.left_moves else moving.side.operator
        # Durations are whole microseconds, so the furthest is the last one inside.
        whole = math.ceil(far) if sign in ("<", ">=") else math.floor(far)
        return (Edit(node.span, f"({Decimal(whole) / 1_000_000:f} SECONDS)"),)
    # Durations are not divided, so both sides are multiplied.
    share = Fraction(repr(moving.share))
    more_or_less = "+" if moving.grows else "-"
    text, other = source.slice(node.span), source.slice(moving.staying.span)
    times, more = share.denominator, share.numerator
    bent = f"(({text}) * {times} {more_or_less} ABS({text}) * {more})"
    return Edit(node.span, bent), Edit(moving.staying.span, f"(({other}) * {times})")


def microseconds(parts: tuple[syntax.DurationPart, ...]) -> Fraction:
    """How long a written duration is."""
    units = [MICROSECONDS[part.unit.text.removesuffix("S")] for part in parts]
    amounts = [Fraction(str(part.amount.value)) for part in parts]
    return sum((one * unit for one, unit in zip(amounts, units, strict=True)), Fraction(0))


def _number(node: syntax.Expression) -> Decimal | None:
    if isinstance(node, syntax.Negation):
        inside = _number(node.operand)
        return None if inside is None else -inside
    if isinstance(node, syntax.IntegerLiteral):
        return Decimal(node.value)
    return Decimal(repr(node.value)) if isinstance(node, syntax.DoubleLiteral) else None


def _written(number: float) -> str:
    return format(Decimal(repr(number)), "f")


def types_by_place(formula: core.Formula) -> dict[Span, Any]:
    """The type of the sides of each comparison, by the place of the comparison in the text."""
    return {
        node.span: node.left.type for node in nodes_of(formula) if isinstance(node, core.Comparison)
    }

"""What expressions and predicates of core CEL say of events, written down once more.

Values are those of `core.Constant`; None is NULL. `UNKNOWN` stands for a value that some event
decides: what is calculated from it is unknown as well, but where every value gives NULL.
"""

from __future__ import annotations

import math
import re
import statistics
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from celc.core import formula as core
from celc.core.formula import DataType
from celc.verify.prove.verdict import NotUnderstoodError


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
NOTHING_BEFORE: Final = object()
"""The value of PREV and PRIOR where nothing is before: the comparison counts as TRUE."""

Leaf: TypeAlias = core.AttributeValue | core.Aggregate | core.Previous

_BITS = {DataType.BYTE: 8, DataType.SHORT: 16, DataType.INT: 32, DataType.LONG: 64}


class MalformedError(Exception):
    """A representation that has no meaning, which no pass may make; in words."""


class _NothingBeforeError(Exception):
    """A comparison looks back to where nothing is."""


class Meaning:
    """The meaning of expressions, given the values of attributes and of functions of labels.

    `read` gives the value of a leaf, or NOTHING_BEFORE. `quantified` decides SOME and EVERY; None:
    there are none.
    """

    def __init__(
        self,
        read: Callable[[Leaf], Any],
        quantified: Callable[[core.Quantified], bool] | None = None,
    ) -> None:
        self._read = read
        self._quantified = quantified

    # --- conditions -------------------------------------------------------------------------------

    def truth(self, truth: core.Truth, *, vacuous: bool = True) -> bool | None:
        """Whether a condition is TRUE; None where it is unknown. `vacuous`: what a comparison
        counts as that looks back to where nothing is."""
        match truth:
            case core.Every(parts=parts):
                found = [self.truth(one, vacuous=vacuous) for one in parts]
                return False if False in found else None if None in found else True
            case core.Some(parts=parts):
                found = [self.truth(one, vacuous=vacuous) for one in parts]
                return True if True in found else None if None in found else False
            case core.Quantified():
                if self._quantified is None:
                    raise NotUnderstoodError("SOME or EVERY of an event alone")
                return self._quantified(truth)
        try:
            for one in getattr(truth, "beside", ()):
                self.value(one)
            return self._compared(truth)
        except _NothingBeforeError:
            return vacuous

    def _compared(self, truth: core.Predicate) -> bool | None:
        match truth:
            case core.Comparison():
                left, right = self.value(truth.left), self.value(truth.right)
                if left is None or right is None:
                    return False
                if left is UNKNOWN or right is UNKNOWN:
                    return None
                order = ordered(left, right)
                return {
                    "=": order == 0,
                    "!=": order != 0,
                    "<": order < 0,
                    "<=": order <= 0,
                    ">": order > 0,
                    ">=": order >= 0,
                }[truth.operator]
            case core.Membership():
                value = self.value(truth.operand)
                if value is None or (truth.negated and truth.has_null):
                    return False
                if not truth.values and not truth.negated:
                    return False
                if value is UNKNOWN:
                    return None
                return any(ordered(value, one) == 0 for one in truth.values) != truth.negated
            case core.NullTest():
                value = self.value(truth.operand)
                return None if value is UNKNOWN else (value is None) != truth.negated
            case core.PatternMatch():
                text = self.value(truth.operand)
                if text is None or text is UNKNOWN:
                    return False if text is None else None
                return _is_like(truth, text) != truth.negated
        raise AssertionError(truth)

    # --- expressions ------------------------------------------------------------------------------

    # Long: a case for each kind of expression.
    def value(self, node: core.Expression) -> Any:
        """The value of an expression. Raises NotUnderstoodError."""
        match node:
            case core.Constant(value=value):
                return value
            case core.AttributeValue() | core.Aggregate() | core.Previous():
                found = self._read(node)
                if found is NOTHING_BEFORE:
                    raise _NothingBeforeError
                return found
            case core.Negation(operand=operand, type=type_):
                value = self.value(operand)
                return value if value is None or value is UNKNOWN else fitted(-value, type_)
            case core.Absolute(operand=operand, type=type_):
                value = self.value(operand)
                return value if value is None or value is UNKNOWN else fitted(abs(value), type_)
            case core.Cast(operand=operand, type=type_):
                return _cast(self.value(operand), operand.type, type_)
            case core.Arithmetic():
                return self._arithmetic(node)
            case core.Choice(function=function, operands=operands):
                values = [self.value(one) for one in operands]
                if UNKNOWN in values:
                    return UNKNOWN
                kept = [one for one in values if one is not None]
                if not kept:
                    return None
                best = kept[0]
                for one in kept[1:]:
                    order = ordered(one, best)
                    if (function, order) in (("LEAST", -1), ("GREATEST", 1)):
                        best = one
                return best
            case core.Conditional(branches=branches, otherwise=otherwise):
                for asked, then in branches:
                    truth = self.truth(asked)
                    if truth is None:
                        return UNKNOWN
                    if truth:
                        return self.value(then)
                return self.value(otherwise)
            case core.Call(function=function):
                raise NotUnderstoodError(f"the function {function}")
            case core.OwnCall(function=own):
                raise NotUnderstoodError(f"the function {own.name} of the file")
        raise NotUnderstoodError(f"{type(node).__name__} in a condition")

    def _arithmetic(self, node: core.Arithmetic) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if left is None or right is None:
            return None
        if node.operator in ("/", "%") and right is not UNKNOWN and right == 0:
            return None
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if isinstance(node.type, core.DecimalType):
            raise NotUnderstoodError("arithmetic of DECIMALs")
        match node.operator:
            case "+":
                return fitted(left + right, node.type)
            case "-":
                return fitted(left - right, node.type)
            case "*":
                return fitted(left * right, node.type)
            case "/":
                return _quotient(float(left), float(right))
        if isinstance(left, int) and isinstance(right, int):
            return fitted(math.copysign(1, left) * (abs(left) % abs(right)), node.type)
        if math.isinf(left) or math.isnan(left) or math.isnan(right):
            return math.nan
        return fitted(math.fmod(left, right), node.type)


def _quotient(left: float, right: float) -> float:
    try:
        return left / right
    except OverflowError:
        return math.copysign(math.inf, left) * math.copysign(1.0, right)


def ordered(left: Any, right: Any) -> int:
    """−1, 0 or 1 as Spark orders two values: NaN is the greatest, texts go by their bytes."""
    if isinstance(left, str):
        left, right = left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    elif left != left or right != right:
        left, right = left != left, right != right
    return int(left > right) - int(left < right)


def fitted(value: Any, type_: DataType) -> Any:
    """A result as its type holds it: whole numbers wrap, times beyond 64 bits are NULL."""
    if isinstance(type_, core.DecimalType):
        raise NotUnderstoodError("arithmetic of DECIMALs")
    if type_ in _BITS:
        half = 1 << (_BITS[type_] - 1)
        return (int(value) + half) % (2 * half) - half
    if type_ is DataType.FLOAT:
        try:
            return float(struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    if type_ is DataType.DOUBLE:
        return float(value)
    return int(value) if -(1 << 63) <= value < 1 << 63 else None


def _cast(value: Any, source: DataType, target: DataType) -> Any:
    if value is None or value is UNKNOWN or source == target:
        return value
    if isinstance(source, core.DecimalType) or isinstance(target, core.DecimalType):
        raise NotUnderstoodError("casts of DECIMALs")
    if source is DataType.DATE and target in (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ):
        return fitted(value * 86_400_000_000, target)
    return fitted(value, target)


def _is_like(predicate: core.PatternMatch, text: str) -> bool:
    if predicate.operator == "RLIKE":
        try:
            return re.search(predicate.pattern, text) is not None
        except re.error:
            raise NotUnderstoodError(f"the pattern {predicate.pattern!r}") from None
    found, escaped = "", False
    for one in predicate.pattern:
        if escaped or one not in "\\%_":
            found, escaped = found + re.escape(one), False
        elif one == "\\":
            escaped = True
        else:
            found += ".*" if one == "%" else "."
    return re.fullmatch(found, text, re.DOTALL) is not None


# --- functions of a label's set -------------------------------------------------------------------


OF_NUMBERS = ("SUM", "AVG", "MEDIAN", "VARIANCE", "STDDEV")


def aggregate(node: core.Aggregate, values: Sequence[Any]) -> Any:
    """The value of a function of the values at some positions, in their order."""
    some = [one for one in values if one is not None]
    match node.function:
        case "COUNT":
            return len(values)
        case "FIRST" | "LAST":
            return None if not values else values[0 if node.function == "FIRST" else -1]
        case "NTH":
            place = node.place - 1 if node.place > 0 else node.place
            return values[place] if -len(values) <= place < len(values) else None
        case "MIN" | "MAX":
            wanted = -1 if node.function == "MIN" else 1
            best = None
            for one in some:
                best = one if best is None or ordered(one, best) == wanted else best
            return best
        case "SUM":
            if isinstance(node.type, core.DecimalType):
                raise NotUnderstoodError("arithmetic of DECIMALs")
            return fitted(sum(some), node.type) if some else None
        case "DISTINCT":
            return len({"nan" if one != one else one for one in some})
    if isinstance(node.type, core.DecimalType) or node.type is DataType.INTERVAL:
        raise NotUnderstoodError(f"{node.function} of this type")
    if node.function in ("AVG", "MEDIAN"):
        mean = statistics.median if node.function == "MEDIAN" else statistics.fmean
        if any(isinstance(one, float) and not math.isfinite(one) for one in some):
            raise NotUnderstoodError(f"{node.function} of numbers that are not finite")
        return float(mean(some)) if some else None
    name = node.own.name if node.own is not None else node.function
    raise NotUnderstoodError(f"the function {name} of a label")


def parts_of(part: Any) -> Iterator[Any]:
    """All nodes within a formula, a condition or an expression."""
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
            continue
        slots = getattr(type(node), "__dataclass_fields__", None)
        if slots is None or isinstance(node, core.EventType | core.DecimalType):
            continue
        yield node
        waiting.extend(getattr(node, name) for name in slots if name not in ("span", "type"))


def labels_named(part: Any) -> frozenset[str]:
    """The labels that a condition or an expression names anywhere."""
    match part:
        case core.AttributeValue() | core.Previous() | core.Aggregate():
            return frozenset({part.label})
        case core.Clause():
            return frozenset(part.labels) | labels_named(part.predicates)
        case core.Quantified():
            return labels_named(part.condition) | frozenset(part.labels)
        case tuple():
            return frozenset[str]().union(*map(labels_named, part))
    names = ("left", "right", "operand", "operands", "parts", "beside", "branches", "otherwise")
    return frozenset[str]().union(
        *(labels_named(getattr(part, n)) for n in names if hasattr(part, n))
    )

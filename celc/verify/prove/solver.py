"""Conditions on one event for an SMT solver (Z3), which is imported here and nowhere else.

A value is a pair: whether it is NULL, and what it is. Whole numbers are bit vectors of their width,
FLOAT and DOUBLE numbers of IEEE 754 with NaN as the greatest, times and durations 64 bits whose
overflow is NULL, texts points of an order in which the constants of the conditions have places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import z3

from celc.core import formula as core
from celc.core.formula import DataType
from celc.normal.normal_form import EventClause
from celc.verify.prove.expressions import parts_of

_BITS = {
    DataType.BYTE: 8,
    DataType.SHORT: 16,
    DataType.INT: 32,
    DataType.DATE: 32,
    DataType.LONG: 64,
    DataType.TIMESTAMP: 64,
    DataType.TIMESTAMP_NTZ: 64,
    DataType.INTERVAL: 64,
    DataType.BOOLEAN: 8,
}
_CHECKED = (DataType.TIMESTAMP, DataType.TIMESTAMP_NTZ, DataType.INTERVAL)
_WIDE = 136  # bits in which no product of two numbers overflows
_DAY = 86_400_000_000


def uncovered(
    groups: Sequence[tuple[EventClause, ...]],
    symbols: Sequence[int],
    needs: Sequence[int],
    seconds: float,
) -> dict[str, Any] | Literal["unknown"] | None:
    """An event with truths that are no symbol and that include a need; None where there is none."""
    asked = _Asked(groups)
    solver = z3.Solver()
    solver.set("timeout", int(seconds * 1000))
    truths = [
        z3.And([z3.Or([asked.truth(p) for p in clause.predicates]) for clause in group])
        for group in groups
    ]
    named = [z3.Bool(f"group {bit}") for bit in range(len(groups))]
    solver.add([name == truth for name, truth in zip(named, truths, strict=True)])
    solver.add(asked.limits)
    for symbol in symbols:
        solver.add(z3.Or([name != bool(symbol >> bit & 1) for bit, name in enumerate(named)]))
    wanted = [[named[bit] for bit in range(len(groups)) if need >> bit & 1] for need in needs]
    solver.add(z3.Or([z3.And(one) for one in wanted]))
    match solver.check():
        case z3.unsat:
            return None
        case z3.sat:
            return asked.event(solver.model())
        case _:
            return "unknown"


class _Asked:
    """Terms of the solver for the conditions on one event."""

    def __init__(self, groups: Sequence[tuple[EventClause, ...]]) -> None:
        self.limits: list[Any] = []
        self._values: dict[Any, tuple[Any, Any]] = {}
        self._names: dict[str, tuple[DataType, tuple[Any, Any]]] = {}
        self._patterns: dict[Any, Any] = {}
        texts = set()
        for part in parts_of(tuple(groups)):
            if isinstance(part, core.Constant) and isinstance(part.value, str):
                texts.add(part.value)
            elif isinstance(part, core.Membership):
                texts |= {one for one in part.values if isinstance(one, str)}
        ordered = sorted(texts, key=lambda one: one.encode("utf-8", "surrogatepass"))
        self._texts = {text: 2 * number for number, text in enumerate(ordered)}

    def event(self, model: Any) -> dict[str, Any]:
        """The event of a model."""
        found: dict[str, Any] = {}
        for name, (type_, (null, value)) in self._names.items():
            if z3.is_true(model.eval(null, model_completion=True)):
                found[name] = None
                continue
            found[name] = self._read(type_, model.eval(value, model_completion=True))
        return found

    def _read(self, type_: DataType, value: Any) -> Any:
        if type_ is DataType.STRING:
            code = value.as_long()
            known = {place: text for text, place in self._texts.items()}
            below = max((place for place in known if place <= code), default=None)
            if below == code:
                return known[code]
            return "" if below is None else known[below] + "\x01"
        if isinstance(type_, core.DecimalType):
            return value.as_long()
        if type_ in _BITS:
            number = value.as_signed_long()
            return number != 0 if type_ is DataType.BOOLEAN else number
        text = str(z3.simplify(z3.fpToReal(value))) if not z3.is_fprm(value) else ""
        if value.isNaN():
            return float("nan")
        if value.isInf():
            return float("-inf" if value.isNegative() else "inf")
        parts = text.split("/")
        return float(int(parts[0]) / int(parts[1])) if len(parts) == 2 else float(text)

    # --- predicates -------------------------------------------------------------------------------

    def truth(self, predicate: core.Predicate) -> Any:
        """Whether a predicate is TRUE."""
        match predicate:
            case core.Comparison():
                left, right = self._value(predicate.left), self._value(predicate.right)
                there = z3.Not(z3.Or(left[0], right[0]))
                type_ = predicate.left.type
                return z3.And(there, self._compared(predicate.operator, left[1], right[1], type_))
            case core.Membership():
                null, value = self._value(predicate.operand)
                if predicate.negated and predicate.has_null:
                    return z3.BoolVal(False)
                type_ = predicate.operand.type
                among = z3.Or(
                    [
                        self._compared("=", value, self._constant(one, type_), type_)
                        for one in predicate.values
                    ]
                )
                return z3.And(z3.Not(null), z3.Not(among) if predicate.negated else among)
            case core.NullTest():
                null, _ = self._value(predicate.operand)
                return z3.Not(null) if predicate.negated else null
            case core.PatternMatch():
                null, _ = self._value(predicate.operand)
                key = predicate.operator, predicate.operand, predicate.pattern
                like = self._patterns.setdefault(key, z3.FreshBool("pattern"))
                return z3.And(z3.Not(null), z3.Not(like) if predicate.negated else like)
        return z3.FreshBool("condition")

    def _compared(self, operator: str, left: Any, right: Any, type_: DataType) -> Any:
        if type_ in (DataType.FLOAT, DataType.DOUBLE):
            equal = z3.Or(z3.And(z3.fpIsNaN(left), z3.fpIsNaN(right)), z3.fpEQ(left, right))
            less = z3.Or(z3.And(z3.Not(z3.fpIsNaN(left)), z3.fpIsNaN(right)), z3.fpLT(left, right))
        else:
            equal, less = left == right, left < right  # bit vectors compare with signs
        return {
            "=": equal,
            "!=": z3.Not(equal),
            "<": less,
            "<=": z3.Or(less, equal),
            ">": z3.Not(z3.Or(less, equal)),
            ">=": z3.Not(less),
        }[operator]

    # --- values -----------------------------------------------------------------------------------

    def _value(self, node: core.Expression) -> tuple[Any, Any]:
        found = self._values.get(node)
        if found is None:
            found = self._values[node] = self._made(node)
        return found

    def _fresh(self, type_: DataType) -> tuple[Any, Any]:
        null = z3.FreshBool("null")
        if type_ is DataType.STRING:
            return null, z3.FreshInt("text")
        if isinstance(type_, core.DecimalType):
            number = z3.FreshInt("decimal")
            most = 10**type_.precision
            self.limits += [number < most, number > -most]
            return null, number
        if type_ in _BITS:
            value = z3.FreshConst(z3.BitVecSort(_BITS[type_]), "number")
            if type_ is DataType.BOOLEAN:
                self.limits.append(z3.Or(value == 0, value == 1))
            return null, value
        return null, z3.FreshConst(_sort(type_), "real")

    def _constant(self, value: Any, type_: DataType) -> Any:
        if isinstance(value, str):
            return z3.IntVal(self._texts[value])
        if isinstance(type_, core.DecimalType):
            return z3.IntVal(int(value))
        if type_ in _BITS:
            return z3.BitVecVal(int(value), _BITS[type_])
        return z3.FPVal(value, _sort(type_))

    # Long: a case for each kind of expression.
    def _made(self, node: core.Expression) -> tuple[Any, Any]:
        match node:
            case core.Constant(value=None, type=type_):
                return z3.BoolVal(True), self._fresh(type_)[1]
            case core.Constant(value=value, type=type_):
                return z3.BoolVal(False), self._constant(value, type_)
            case core.AttributeValue(attribute=name, type=type_):
                if name not in self._names:
                    self._names[name] = type_, self._fresh(type_)
                known, found = self._names[name]
                assert known == type_, "an attribute has one type"
                return found
            case core.Negation(operand=operand, type=type_) if self._is_plain(type_):
                null, value = self._value(operand)
                if type_ in _CHECKED:
                    return self._narrow(z3.BoolVal(False), null, -self._wide(value), type_)
                return null, z3.fpNeg(value) if z3.is_fp(value) else -value
            case core.Absolute(operand=operand, type=type_) if self._is_plain(type_):
                null, value = self._value(operand)
                if z3.is_fp(value):
                    return null, z3.fpAbs(value)
                if type_ in _CHECKED:
                    wide = self._wide(value)
                    return self._narrow(
                        z3.BoolVal(False), null, z3.If(wide < 0, -wide, wide), type_
                    )
                return null, z3.If(value < 0, -value, value)
            case core.Cast(operand=operand, type=type_):
                made = self._cast(self._value(operand), operand.type, type_)
                return self._fresh(type_) if made is None else made
            case core.Arithmetic():
                made = self._arithmetic(node)
                return self._fresh(node.type) if made is None else made
            case core.Conditional(branches=branches, otherwise=otherwise):
                null, value = self._value(otherwise)
                for asked, then in reversed(branches):
                    truth, (other, given) = self._asked(asked), self._value(then)
                    null, value = z3.If(truth, other, null), z3.If(truth, given, value)
                return null, value
            case core.Choice(function=function, operands=operands, type=type_):
                null, value = self._value(operands[0])
                for one in operands[1:]:
                    missing, other = self._value(one)
                    takes = null
                    if function != "COALESCE":
                        operator = "<" if function == "LEAST" else ">"
                        better = self._compared(operator, other, value, type_)
                        takes = z3.Or(null, z3.And(z3.Not(missing), better))
                    null, value = z3.And(null, missing), z3.If(takes, other, value)
                return null, value
        return self._fresh(node.type)

    def _asked(self, truth: core.Truth) -> Any:
        match truth:
            case core.Every(parts=parts):
                return z3.And([self._asked(one) for one in parts])
            case core.Some(parts=parts):
                return z3.Or([self._asked(one) for one in parts])
            case _:
                return self.truth(truth)

    @staticmethod
    def _is_plain(type_: DataType) -> bool:
        return not isinstance(type_, core.DecimalType)

    @staticmethod
    def _wide(value: Any) -> Any:
        return z3.SignExt(_WIDE - value.size(), value)

    @staticmethod
    def _narrow(more: Any, null: Any, wide: Any, type_: DataType) -> tuple[Any, Any]:
        """A number of many bits as a time or duration, NULL where 64 bits do not hold it."""
        outside = z3.Or(wide < -(1 << 63), wide >= 1 << 63)
        return z3.Or(null, more, outside), z3.Extract(63, 0, wide)

    def _cast(
        self, value: tuple[Any, Any], source: DataType, target: DataType
    ) -> tuple[Any, Any] | None:
        null, number = value
        if source == target:
            return value
        if not (self._is_plain(source) and self._is_plain(target)):
            return None
        if source is DataType.DATE and target in _CHECKED:
            return self._narrow(z3.BoolVal(False), null, self._wide(number) * _DAY, target)
        if source in _BITS and target in _BITS:
            bits = _BITS[target] - _BITS[source]
            return null, z3.SignExt(bits, number) if bits > 0 else number
        if source in _BITS and target in (DataType.FLOAT, DataType.DOUBLE):
            return null, z3.fpSignedToFP(z3.RNE(), number, _sort(target))
        if z3.is_fp(number) and target in (DataType.FLOAT, DataType.DOUBLE):
            return null, z3.fpFPToFP(z3.RNE(), number, _sort(target))
        return None

    def _arithmetic(self, node: core.Arithmetic) -> tuple[Any, Any] | None:
        (no, left), (none, right) = self._value(node.left), self._value(node.right)
        null = z3.Or(no, none)
        if z3.is_int(left) or z3.is_int(right) or not self._is_plain(node.type):
            return None
        if z3.is_fp(left):
            operations = {"+": z3.fpAdd, "-": z3.fpSub, "*": z3.fpMul, "/": z3.fpDiv}
            if node.operator not in operations:
                return None
            made = operations[node.operator](z3.RNE(), left, right)
            zero = z3.fpIsZero(right) if node.operator == "/" else z3.BoolVal(False)
            return z3.Or(null, zero), made
        if node.operator == "/":
            return None
        if node.type in _CHECKED:
            days = [
                self._wide(value) * (_DAY if side.type is DataType.DATE else 1)
                for value, side in ((left, node.left), (right, node.right))
            ]
            if node.operator == "%":
                return None
            wide = {"+": days[0] + days[1], "-": days[0] - days[1], "*": days[0] * days[1]}
            return self._narrow(z3.BoolVal(False), null, wide[node.operator], node.type)
        if left.size() != right.size():
            return None
        if node.operator == "%":
            return z3.Or(null, right == 0), z3.SRem(left, right)
        made = {"+": left + right, "-": left - right, "*": left * right}
        return null, made[node.operator]


def _sort(type_: DataType) -> Any:
    return z3.Float32() if type_ is DataType.FLOAT else z3.Float64()

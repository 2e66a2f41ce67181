"""Expressions of MATCH_RECOGNIZE on rows of a partition; all is recomputed where it is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import Any

from celc.parse import syntax as cel
from celc.row_pattern import syntax

from . import functions, values
from .decimals import DecimalKind, WrittenInteger, written
from .values import NULL, Datum, Kind

Path = tuple[tuple[str, bool], ...]

UNITS = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
"""Units of time in microseconds."""

_WORDS = {"BIGINT": "LONG", "INTEGER": "INT", "VARCHAR": "STRING", "NUMERIC": "DECIMAL"}


def kind_of(type: cel.WrittenType) -> Any:
    """The kind of a type as it is written."""
    word = type.name.text.upper()
    word = _WORDS.get(word, word)
    if word == "DECIMAL":
        precision, scale = (*type.sizes, 0)[:2]
        return DecimalKind(precision, scale)
    return Kind(word)


@dataclass
class Values:
    """Values of expressions where the rows of `seen` are visible, of a match of the rows `whole`.

    text: that of the query. names, members: the variables as they are written, and those of each
    SUBSET. row: that of the argument of navigation or of an aggregate, None outside. measures:
    those before.
    """

    text: str
    names: Mapping[str, str]
    members: Mapping[str, set[str]]
    rows: Sequence[Mapping[str, Datum]]
    start: int
    seen: Path
    whole: Path
    number: int
    row: int | None = None
    measures: Mapping[str, Datum] = field(default_factory=dict)

    def value(self, node: syntax.Expression) -> Datum:
        """The value with its kind."""
        match node:
            case syntax.Constant():
                return self._constant(node, "")
            case syntax.Unary(operator="-", operand=syntax.Constant(value=int() | float()) as one):
                return self._constant(one, "-")
            case syntax.Time():
                return values.datum_of(Kind(node.kind), str(node.text.value))
            case syntax.Interval():
                unit = UNITS[node.unit.text.upper().removesuffix("S")]
                return Datum(Kind.INTERVAL, int(node.amount) * unit)
            case syntax.Column():
                is_measure = node.variable is None and node.name.key not in self.rows[0]
                if is_measure and node.name.key in self.measures:
                    return self.measures[node.name.key]
                if self.row is None:
                    return self._at(self._place(node.variable, False, 0), 0, node)
                return self.rows[self.row][node.name.key]
            case syntax.Call():
                return self._call(node)
            case syntax.Cast():
                name = "TRY_CAST" if node.tried else "CAST"
                return functions.call(
                    name, [self.value(node.operand)], _zone(node), kind_of(node.type)
                )
            case syntax.Unary(operator="-"):
                return values.negate(self.value(node.operand))
            case syntax.Case():
                return self._case(node)
            case syntax.Binary(operator="+" | "-" | "*" | "/" | "%"):
                left, right = self.value(node.left), self.value(node.right)
                if NULL in (left, right) and left.kind is right.kind:
                    return Datum(Kind.DOUBLE if node.operator == "/" else Kind.INT, None)
                return values.arithmetic(node.operator, left, right)
            case _:
                return Datum(Kind.BOOLEAN, self._truth(node))

    def _constant(self, node: syntax.Constant, sign: str) -> Datum:
        value = node.value
        match value:
            case None:
                return NULL
            case bool():
                return Datum(Kind.BOOLEAN, value)
            case int():
                number = WrittenInteger(f"{sign}{value}")
                kind = Kind.INT if -(2**31) <= number < 2**31 else Kind.LONG
                return Datum(kind, number)
            case float():
                text = self.text[node.span.start : node.span.end]
                is_exact = re.fullmatch(r"[0-9]+\.[0-9]+", text)
                return Datum(Kind.DOUBLE, written(sign + text) if is_exact else float(sign + text))
            case _:
                return Datum(Kind.STRING, value)

    # --- conditions -------------------------------------------------------------------------------

    def _truth(self, node: syntax.Expression) -> bool | None:
        match node:
            case syntax.Unary():
                return _not(self._asked(node.operand))
            case syntax.Binary(operator="AND"):
                return _and(self._asked(node.left), self._asked(node.right))
            case syntax.Binary(operator="OR"):
                return _or(self._asked(node.left), self._asked(node.right))
            case syntax.Binary():
                return _compare(node.operator, self.value(node.left), self.value(node.right))
            case syntax.NullTest():
                return (self.value(node.operand).value is None) != node.negated
            case syntax.DistinctTest():
                left, right = self.value(node.left), self.value(node.right)
                if left.value is None or right.value is None:
                    return (left.value is not right.value) != node.negated
                return bool(_compare("!=", left, right)) != node.negated
            case syntax.Between():
                value = self.value(node.operand)
                found = _and(
                    _compare(">=", value, self.value(node.low)),
                    _compare("<=", value, self.value(node.high)),
                )
                return _not(found) if node.negated else found
            case syntax.In():
                value, held = self.value(node.operand), False  # type: Datum, bool | None
                for one in node.values:
                    held = _or(held, _compare("=", value, self.value(one)))
                return _not(held) if node.negated else held
            case syntax.Like():
                assert isinstance(node.pattern, syntax.Constant)
                pattern = Datum(Kind.STRING, node.pattern.value)
                test = values.like if node.operator == "LIKE" else values.rlike
                found = test(self.value(node.operand), pattern)
                return _not(found) if node.negated else found
            case _:
                return self._asked(node)

    def _asked(self, node: syntax.Expression) -> bool | None:
        """A value that is a condition."""
        found = self.value(node).value
        assert found is None or isinstance(found, bool)
        return found

    def _case(self, node: syntax.Case) -> Datum:
        ways = [self.value(then) for _, then in node.branches]
        ways.append(NULL if node.otherwise is None else self.value(node.otherwise))
        taken = len(ways) - 1
        for number, (when, _) in enumerate(node.branches):
            if node.operand is None:
                test = self._asked(when)
            else:
                test = _compare("=", self.value(node.operand), self.value(when))
            if test is True:
                taken = number
                break
        return values.in_common(ways)[1][taken]

    # --- rows -------------------------------------------------------------------------------------

    def _places(self, variable: syntax.Name | None, path: Path) -> list[int]:
        if variable is None:
            return list(range(len(path)))
        members = self.members[variable.key]
        return [place for place, (one, _) in enumerate(path) if one in members]

    def _place(
        self, variable: syntax.Name | None, first: bool, offset: int, final: bool = False
    ) -> int | None:
        places = self._places(variable, self.whole if final else self.seen)
        at = offset if first else len(places) - 1 - offset
        return self.start + places[at] if 0 <= at < len(places) else None

    def _at(self, row: int | None, shift: int, node: syntax.Expression) -> Datum:
        """An expression at a row; NULL of its kind where there is none."""
        if row is None or not 0 <= row + shift < len(self.rows):
            return Datum(replace(self, row=0).value(node).kind, None)
        return replace(self, row=row + shift).value(node)

    def _label(self, row: int | None) -> Datum:
        if row is None or not 0 <= row - self.start < len(self.whole):
            return Datum(Kind.STRING, None)
        return Datum(Kind.STRING, self.names[self.whole[row - self.start][0]])

    def _call(self, node: syntax.Call) -> Datum:
        name, arguments = node.function.text.upper(), node.arguments
        final = node.semantics is not None and node.semantics.text == "FINAL"
        match name:
            case "MATCH_NUMBER":
                return Datum(Kind.LONG, self.number)
            case "CLASSIFIER":
                if self.row is not None:
                    return self._label(self.row)
                return self._label(self._place(_named(node), False, 0))
            case "FIRST" | "LAST":
                argument, offset = arguments[0], _offset(arguments, 0)
                assert not isinstance(argument, syntax.Star)
                place = self._place(_variable(argument), name == "FIRST", offset, final)
                return self._at(place, 0, argument)
            case "PREV" | "NEXT":
                inner, shift = arguments[0], _offset(arguments, 1)
                shift = -shift if name == "PREV" else shift
                first, offset = False, 0
                if isinstance(inner, syntax.Call) and inner.function.key in ("first", "last"):
                    first, offset = inner.function.key == "first", _offset(inner.arguments, 0)
                    final = inner.semantics is not None and inner.semantics.text == "FINAL"
                    inner = inner.arguments[0]
                assert not isinstance(inner, syntax.Star)
                return self._at(self._place(_variable(inner), first, offset, final), shift, inner)
            case "IF":
                asked, then, otherwise = arguments
                return self._case(syntax.Case(None, ((asked, then),), otherwise, node.span))  # type: ignore[arg-type]
            case "TIMESTAMPDIFF":
                unit, *ends = arguments
                begin, end = (values.microseconds(self.value(one)) for one in ends)  # type: ignore[arg-type]
                if begin is None or end is None:
                    return Datum(Kind.LONG, None)
                length = UNITS[unit.name.text.upper().removesuffix("S")]  # type: ignore[union-attr]
                whole = abs(end - begin) // length
                return Datum(Kind.LONG, whole if end >= begin else -whole)
            case "COUNT" | "SUM" | "AVG" | "MIN" | "MAX" | "ARRAY_AGG":
                return self._aggregate(name, node, final)
            case _:
                data = [self.value(one) for one in arguments]  # type: ignore[arg-type]
                return _called(name, data, _zone(node))

    def _aggregate(self, name: str, node: syntax.Call, final: bool) -> Datum:
        argument: Any = node.arguments[0]
        path = self.whole if final else self.seen
        read = argument.variable if isinstance(argument, syntax.Star) else _variable(argument)
        variable = read or _variable(node)
        rows = [self.start + place for place in self._places(variable, path)]
        if node.kept is not None:
            rows = [row for row in rows if replace(self, row=row).value(node.kept).value]
        for by in reversed(node.order):
            rows = self._sorted(rows, by)
        if isinstance(argument, syntax.Star):
            return Datum(Kind.LONG, len(rows))
        data = [self._at(row, 0, argument) for row in rows]
        if node.distinct is not None:
            known = enumerate(data)
            data = [one for n, one in known if all(values.is_distinct(one, o) for o in data[:n])]
        if name == "ARRAY_AGG":
            return Datum(Kind.NULL, [datum.value for datum in data])
        if name == "COUNT":
            return Datum(Kind.LONG, sum(datum.value is not None for datum in data))
        kind = data[0].kind if data else self._at(None, 0, argument).kind
        if isinstance(kind, Kind) and kind is Kind.STRING:
            known = [datum.value for datum in data if datum.value is not None]
            choose = min if name == "MIN" else max
            return Datum(kind, choose(known, key=str.encode) if known else None)
        return values.aggregate(name, Kind.INT if kind is Kind.NULL else kind, data)

    def _sorted(self, rows: list[int], by: syntax.Sorted) -> list[int]:
        """The rows sorted by one value; without a word about NULL there is none."""
        keys = {row: self._at(row, 0, by.expression) for row in rows}
        nulls = [row for row in rows if keys[row].value is None]
        assert not nulls or by.nulls_first is not None

        def compare(one: int, other: int) -> int:
            order = values.compare(keys[one], keys[other])
            assert order is not None
            return -order if by.descending else order

        kept = sorted((row for row in rows if row not in nulls), key=cmp_to_key(compare))
        return [*nulls, *kept] if by.nulls_first else [*kept, *nulls]


def _called(name: str, data: list[Datum], zone: str) -> Datum:
    """A function of values."""
    match name:
        case "ABS":
            is_null = data[0].kind is Kind.NULL
            return Datum(Kind.INT, None) if is_null else values.absolute(data[0])
        case "COALESCE" | "LEAST" | "GREATEST":
            return functions.chosen(name, data)
        case _:
            return functions.call(name, data, zone)


def _zone(node: syntax.Call | syntax.Cast) -> str:
    return "UTC" if node.zone is None else node.zone.value


def _offset(arguments: Sequence[Any], default: int) -> int:
    return arguments[1].value if len(arguments) > 1 else default  # type: ignore[no-any-return]


def _named(node: syntax.Call) -> syntax.Name | None:
    return node.arguments[0].name if node.arguments else None  # type: ignore[union-attr]


def _variable(node: Any) -> syntax.Name | None:
    """The variable that the columns and CLASSIFIERs in an argument name."""
    if isinstance(node, syntax.Column):
        return node.variable
    if isinstance(node, syntax.Call) and node.function.key == "classifier":
        return _named(node)
    found = None
    for name in getattr(node, "__slots__", ()):
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            parts = part if isinstance(part, tuple) else (part,)
            for one in parts:
                if hasattr(one, "__slots__") and not isinstance(one, syntax.Name):
                    found = found or _variable(one)
    return found


# --- truth ----------------------------------------------------------------------------------------


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _compare(operator: str, left: Datum, right: Datum) -> bool | None:
    order = values.compare(left, right)
    if order is None:
        return None
    return {
        "=": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]

"""MATCH_RECOGNIZE by its definitions: derivations in order of preference, one row at a time.

Nothing is shared with the compiler but the reader of the text. A pattern is a generator of its
derivations; expressions are evaluated on the rows mapped so far. Everything is recomputed wherever
it is asked for, so it is for tables of a few rows.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from celc.row_pattern import syntax

Row = Mapping[str, Any]
Path = tuple[tuple[str, bool], ...]
"""The variables of the rows taken so far, and whether each row is excluded."""

_UNITS = {"MILLISECOND": 1e-3, "SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}


class TooLong(Exception):
    """More steps than a test can wait for."""


class RunError(Exception):
    """The run stops with an error: `kind` says which."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def answer(query: syntax.Query, table: Sequence[Row], most: int = 200_000) -> list[dict[str, Any]]:
    """The rows of the result, partition by partition in the order of their first rows."""
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in table:
        folded = {name.casefold(): value for name, value in row.items()}
        for name in query.partition_by:
            folded[name.key] = _unsigned(folded[name.key])
        key = tuple(_in_order(folded[name.key]) for name in query.partition_by)
        parts.setdefault(key, []).append(folded)
    rows = []
    for part in parts.values():
        for one in reversed(query.order_by):
            if any(row[one.column.key] is None for row in part):
                raise RunError("null-order")
            part.sort(key=lambda row: _in_order(row[one.column.key]), reverse=one.descending)
        rows += _Partition(query, part, most).rows()
    return rows


def _unsigned(value: Any) -> Any:
    """What a partition shows of its key: 0.0 for -0.0."""
    return value + 0.0 if isinstance(value, float) else value


def _in_order(value: Any) -> Any:
    """A value that is equal where keys are, and sorts as they do: NaN equals NaN, above all."""
    if value is None:
        return (False, False, 0)
    is_nan = value != value
    return (True, is_nan, 0 if is_nan else value)


@dataclass(frozen=True)
class _Match:
    start: int
    path: Path
    number: int


class _Partition:
    def __init__(self, query: syntax.Query, rows: list[Row], most: int) -> None:
        self._query = query
        self._rows = rows
        self._left = most
        self._define = {one.name.key: one.condition for one in query.definitions}
        self._names: dict[str, str] = {}
        for name in _variables(query.pattern):
            self._names.setdefault(name.key, name.text)
        self._members = {key: {key} for key in self._names}
        for subset in query.subsets:
            self._members[subset.name.key] = {member.key for member in subset.members}

    # --- matches ----------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """The result of the partition."""
        found: list[dict[str, Any]] = []
        covered, number, start = 0, 0, 0
        while start < len(self._rows):
            path = next(self._derive(self._query.pattern, start, start, (), number + 1), None)
            if path is None:
                if self._query.rows == "WITH UNMATCHED" and start >= covered:
                    found.append(self._shown(None, start, None))
                start += 1
                continue
            number += 1
            match = _Match(start, path, number)
            found += self._rows_of(match)
            covered = max(covered, start + len(path))
            start = self._following(match)
        return found

    def _rows_of(self, match: _Match) -> Iterator[dict[str, Any]]:
        query = self._query
        if not match.path:
            if query.rows != "OMIT EMPTY":
                yield self._shown(match, match.start, None)
        elif query.rows == "ONE ROW":
            yield self._shown(match, match.start, len(match.path) - 1)
        else:
            for place, (_, excluded) in enumerate(match.path):
                if not excluded:
                    yield self._shown(match, match.start + place, place)

    def _following(self, match: _Match) -> int:
        skip = self._query.skip
        if not match.path or skip.mode == "TO NEXT ROW":
            return match.start + 1
        if skip.mode == "PAST LAST ROW":
            return match.start + len(match.path)
        assert skip.target is not None
        members = self._members[skip.target.key]
        places = [n for n, (variable, _) in enumerate(match.path) if variable in members]
        if not places:
            raise RunError("skip-target-missing")
        place = places[0 if skip.mode == "TO FIRST" else -1]
        if place == 0:
            raise RunError("skip-to-first-row")
        return match.start + place

    def _shown(self, match: _Match | None, row: int, place: int | None) -> dict[str, Any]:
        query = self._query
        measured: dict[str, Any] = {}
        for measure in query.measures:
            value = None
            if match is not None:
                whole = match.path
                seen = whole[: 0 if place is None else place + 1]
                value = _Values(self, match.start, seen, whole, match.number).value(
                    measure.expression
                )
            measured[measure.name.key] = value
        here = self._rows[row]
        keys = [name.key for name in query.partition_by]
        orders = [one.column.key for one in query.order_by]
        every = {key: here[key] for key in keys}
        if query.rows != "ONE ROW":
            every |= {key: here[key] for key in orders}
        every |= measured
        if query.rows != "ONE ROW":
            every |= {key: value for key, value in here.items() if key not in every}
        if query.selected is None:
            return every
        return {(one.alias or one.column).key: every[one.column.key] for one in query.selected}

    # --- derivations ------------------------------------------------------------------------------

    def _derive(
        self, pattern: syntax.Pattern, start: int, row: int, path: Path, number: int
    ) -> Iterator[Path]:
        """The paths to which a pattern leads from a row, the preferred first."""
        yield from self._of(pattern, start, path, number, False)

    def _of(
        self, node: syntax.Pattern, start: int, path: Path, number: int, excluded: bool
    ) -> Iterator[Path]:
        row = start + len(path)
        self._left -= 1
        if self._left < 0:
            raise TooLong
        match node:
            case syntax.Variable():
                longer = (*path, (node.name.key, excluded))
                if row < len(self._rows) and self._fits(start, row):
                    condition = self._define.get(node.name.key)
                    values = _Values(self, start, longer, longer, number)
                    if condition is None or values.value(condition) is True:
                        yield longer
            case syntax.Nothing():
                yield path
            case syntax.Anchor():
                if row == (0 if node.sign == "^" else len(self._rows)):
                    yield path
            case syntax.Concatenation():
                yield from self._in_turn(node.parts, start, path, number, excluded)
            case syntax.Alternation():
                for part in node.parts:
                    yield from self._of(part, start, path, number, excluded)
            case syntax.Permutation():
                for order in permutations(node.parts):
                    yield from self._in_turn(order, start, path, number, excluded)
            case syntax.Exclusion():
                yield from self._of(node.part, start, path, number, True)
            case syntax.Repetition():
                yield from self._rounds(node, 0, start, path, number, excluded)

    def _in_turn(
        self,
        parts: Sequence[syntax.Pattern],
        start: int,
        path: Path,
        number: int,
        excluded: bool,
    ) -> Iterator[Path]:
        if not parts:
            yield path
            return
        for longer in self._of(parts[0], start, path, number, excluded):
            yield from self._in_turn(parts[1:], start, longer, number, excluded)

    def _rounds(
        self,
        node: syntax.Repetition,
        done: int,
        start: int,
        path: Path,
        number: int,
        excluded: bool,
    ) -> Iterator[Path]:
        if node.reluctant and done >= node.least:
            yield path
        if node.most is None or done < node.most:
            for longer in self._of(node.part, start, path, number, excluded):
                if len(longer) == len(path) and done + 1 >= node.least:
                    yield longer  # an empty round past the lower bound is the last
                else:
                    yield from self._rounds(node, done + 1, start, longer, number, excluded)
        if not node.reluctant and done >= node.least:
            yield path

    def _fits(self, start: int, row: int) -> bool:
        within = self._query.within
        if within is None:
            return True
        seconds = int(within.amount) * _UNITS[within.unit.text.upper().removesuffix("S")]
        column = self._query.order_by[0].column.key
        times = self._rows[start][column], self._rows[row][column]
        return bool(times[1] - times[0] <= dt.timedelta(seconds=seconds))


def _variables(node: syntax.Pattern) -> Iterator[syntax.Name]:
    match node:
        case syntax.Variable():
            yield node.name
        case syntax.Concatenation() | syntax.Alternation() | syntax.Permutation():
            for part in node.parts:
                yield from _variables(part)
        case syntax.Exclusion() | syntax.Repetition():
            yield from _variables(node.part)


# --- expressions ----------------------------------------------------------------------------------


@dataclass
class _Values:
    """Values of expressions where the rows of `seen` are visible, of a match of the rows `whole`.

    `row` is that of the argument of navigation or of an aggregate, None outside.
    """

    part: _Partition
    start: int
    seen: Path
    whole: Path
    number: int
    row: int | None = None

    def value(self, node: syntax.Expression) -> Any:
        """The value; None for NULL."""
        match node:
            case syntax.Constant():
                return node.value
            case syntax.Time(kind="DATE"):
                return dt.date.fromisoformat(str(node.text.value))
            case syntax.Time():
                return dt.datetime.fromisoformat(str(node.text.value)).replace(tzinfo=dt.UTC)
            case syntax.Interval():
                unit = _UNITS[node.unit.text.upper().removesuffix("S")]
                return dt.timedelta(seconds=int(node.amount) * unit)
            case syntax.Column():
                if self.row is None:
                    return self._at(self._place(node.variable, False, 0), 0, node)
                return self.part._rows[self.row][node.name.key]
            case syntax.Call():
                return self._call(node)
            case syntax.Unary(operator="-"):
                value = self.value(node.operand)
                return None if value is None else -value
            case syntax.Unary():
                value = self.value(node.operand)
                return None if value is None else not value
            case syntax.Binary():
                return self._binary(node)
            case syntax.NullTest():
                return (self.value(node.operand) is None) != node.negated
            case syntax.Between():
                value = self.value(node.operand)
                found = _and(
                    _compare(">=", value, self.value(node.low)),
                    _compare("<=", value, self.value(node.high)),
                )
                return _not(found) if node.negated else found
            case syntax.In():
                value, held = self.value(node.operand), False  # type: Any, bool | None
                for one in node.values:
                    held = _or(held, _compare("=", value, self.value(one)))
                return _not(held) if node.negated else held
            case syntax.Like():
                value = self.value(node.operand)
                if value is None:
                    return None
                return bool(_regex(node).search(value)) != node.negated
            case syntax.Case():
                for when, then in node.branches:
                    if node.operand is None:
                        test = self.value(when)
                    else:
                        test = _compare("=", self.value(node.operand), self.value(when))
                    if test is True:
                        return self.value(then)
                return None if node.otherwise is None else self.value(node.otherwise)

    def _binary(self, node: syntax.Binary) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        match node.operator:
            case "AND":
                return _and(left, right)
            case "OR":
                return _or(left, right)
            case "+" | "-" | "*" | "/" | "%":
                return _arithmetic(node.operator, left, right)
            case operator:
                return _compare(operator, left, right)

    # --- rows -------------------------------------------------------------------------------------

    def _places(self, variable: syntax.Name | None, path: Path) -> list[int]:
        if variable is None:
            return list(range(len(path)))
        members = self.part._members[variable.key]
        return [place for place, (one, _) in enumerate(path) if one in members]

    def _place(
        self, variable: syntax.Name | None, first: bool, offset: int, final: bool = False
    ) -> int | None:
        places = self._places(variable, self.whole if final else self.seen)
        at = offset if first else len(places) - 1 - offset
        return self.start + places[at] if 0 <= at < len(places) else None

    def _at(self, row: int | None, shift: int, node: syntax.Expression) -> Any:
        if row is None or not 0 <= row + shift < len(self.part._rows):
            return None
        inner = _Values(self.part, self.start, self.seen, self.whole, self.number, row + shift)
        return inner.value(node)

    def _label(self, row: int | None) -> Any:
        if row is None or not 0 <= row - self.start < len(self.whole):
            return None
        return self.part._names[self.whole[row - self.start][0]]

    def _call(self, node: syntax.Call) -> Any:
        name, arguments = node.function.text.upper(), node.arguments
        final = node.semantics is not None and node.semantics.text == "FINAL"
        match name:
            case "MATCH_NUMBER":
                return self.number
            case "CLASSIFIER":
                if self.row is not None:
                    return self._label(self.row)
                return self._label(self._place(_named(node), False, 0))
            case "FIRST" | "LAST":
                argument, offset = arguments[0], _offset(arguments, 0)
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
                return self._at(self._place(_variable(inner), first, offset, final), shift, inner)
            case "ABS":
                value = self.value(arguments[0])
                return None if value is None else abs(value)
            case "COALESCE":
                values = (self.value(one) for one in arguments)
                return next((value for value in values if value is not None), None)
            case "TIMESTAMPDIFF":
                unit, begin, end = arguments
                begin, end = self.value(begin), self.value(end)
                if begin is None or end is None:
                    return None
                length = _UNITS[unit.name.text.upper().removesuffix("S")]
                micros = (end - begin) // dt.timedelta(microseconds=1)
                whole = abs(micros) // round(length * 1_000_000)
                return whole if micros >= 0 else -whole
            case _:
                return self._aggregate(name, arguments[0], final)

    def _aggregate(self, name: str, argument: Any, final: bool) -> Any:
        path = self.whole if final else self.seen
        variable = argument.variable if isinstance(argument, syntax.Star) else _variable(argument)
        rows = [self.start + place for place in self._places(variable, path)]
        if isinstance(argument, syntax.Star):
            return len(rows)
        values = [self._at(row, 0, argument) for row in rows]
        if name == "ARRAY_AGG":
            return values
        known = [value for value in values if value is not None]
        if name == "COUNT":
            return len(known)
        if not known:
            return None
        total = known[0]
        match name:
            case "SUM":
                total = 0.0 if isinstance(known[0], float) else 0
                for value in known:
                    total += value
            case "AVG":
                total = 0.0
                for value in known:
                    total += value
                total /= len(known)
            case "MIN":
                for value in known:
                    total = value if _compare("<", value, total) else total
            case "MAX":
                for value in known:
                    total = value if _compare(">", value, total) else total
        return total


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
            if hasattr(part, "__slots__") and not isinstance(part, syntax.Name):
                found = found or _variable(part)
    return found


# --- values ---------------------------------------------------------------------------------------


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


def _compare(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    nan = [isinstance(one, float) and math.isnan(one) for one in (left, right)]
    if any(nan):
        left, right = nan
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return None if right == 0 else left / right
        case _:
            if right == 0:
                return None
            if isinstance(left, float) or isinstance(right, float):
                return math.fmod(left, right)
            rest = abs(left) % abs(right)
            return rest if left >= 0 else -rest


def _regex(node: syntax.Like) -> re.Pattern[str]:
    assert isinstance(node.pattern, syntax.Constant)
    text = str(node.pattern.value)
    if node.operator == "RLIKE":
        return re.compile(text)
    parts = [{"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in text]
    return re.compile(r"\A" + "".join(parts) + r"\Z", re.DOTALL)
